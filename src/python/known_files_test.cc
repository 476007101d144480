// SPDX-License-Identifier: Apache-2.0
#include "python/known_files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <filesystem>
#include <fstream>

namespace headroom::python {
namespace {

Fd opened(const std::string& path) { return Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)); }

TEST(KnownFiles, AFileIsReadOnceUntilItIsWrittenTo) {
  const std::string path = ::testing::TempDir() + "headroom-known-" + std::to_string(::getpid());
  std::filesystem::copy_file("/proc/self/exe", path);
  KnownFiles files;
  ASSERT_NE(files.symbols_of(opened(path)), nullptr);
  ASSERT_NE(files.symbols_of(opened(path)), nullptr);
  EXPECT_EQ(files.files_read(), 1U);
  std::ofstream(path) << "no program any more";
  EXPECT_EQ(files.symbols_of(opened(path)), nullptr);
  EXPECT_EQ(files.symbols_of(opened(path)), nullptr);
  EXPECT_EQ(files.files_read(), 2U);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace headroom::python
