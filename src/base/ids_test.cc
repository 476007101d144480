// SPDX-License-Identifier: Apache-2.0
#include "base/ids.h"

#include <gtest/gtest.h>

#include <set>

namespace headroom {
namespace {

TEST(Ids, AThousandDiffer) {
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) seen.insert(random_id());
  EXPECT_EQ(seen.size(), 1000u);
  for (const std::string& id : seen) {
    EXPECT_EQ(id.size(), 16u);
    EXPECT_EQ(id.find_first_not_of("0123456789abcdef"), std::string::npos);
  }
}

TEST(Ids, ABootIsOneLine) {
  EXPECT_EQ(boot_id(), boot_id());
  EXPECT_EQ(boot_id().find_first_of(" \n"), std::string::npos);
}

}  // namespace
}  // namespace headroom
