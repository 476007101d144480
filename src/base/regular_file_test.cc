// SPDX-License-Identifier: Apache-2.0
#include "base/regular_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>

#include "base/fd.h"

namespace headroom {
namespace {

TEST(RegularFile, WhatIsNoFileIsRefusedAndNotWaitedFor) {
  std::string folder = (std::filesystem::temp_directory_path() / "headroom-regular-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const std::string pipe = folder + "/pipe", file = folder + "/file";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  ASSERT_TRUE(write_file(file, "text"));
  for (const auto open : {open_regular, open_regular_at_once}) {
    EXPECT_FALSE(open(pipe));
    EXPECT_FALSE(open(folder));
    EXPECT_FALSE(open(folder + "/none"));
    EXPECT_TRUE(open(file));
  }
  EXPECT_EQ(*read_regular(file, 10), "text");
  EXPECT_FALSE(read_regular(file, 3)) << "it is larger";
  EXPECT_EQ(read_regular_tail(file, 2), "xt");
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace headroom
