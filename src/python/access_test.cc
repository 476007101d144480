// SPDX-License-Identifier: Apache-2.0
#include "python/access.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "python/process.h"
#include "python/testing.h"

namespace headroom::python {
namespace {

using testing::HasSubstr;

std::string machine_with_scope(const char* scope) {
  const std::string root = testing::TempDir() + "headroom-yama-" + std::to_string(::getpid()) + scope;
  std::filesystem::create_directories(root + "/proc/sys/kernel/yama");
  std::ofstream(root + "/proc/sys/kernel/yama/ptrace_scope") << scope << "\n";
  return root;
}

TEST(Access, WhatYamaForbidsIsSaidWithTheWayOut) {
  EXPECT_EQ(ptrace_scope("/nonexistent"), std::nullopt);
  const std::string root = machine_with_scope("1");
  EXPECT_EQ(ptrace_scope(root), 1);
  const Error error = denied(::getpid(), root);
  EXPECT_EQ(error.code, Errc::kNoPermission);
  EXPECT_THAT(error.what, HasSubstr("ptrace_scope is 1"));
  EXPECT_THAT(error.hint, HasSubstr("headroom run"));
  EXPECT_THAT(denied(::getpid(), machine_with_scope("2")).what, HasSubstr("ptrace_scope is 2"));
  EXPECT_THAT(denied(::getpid(), machine_with_scope("3")).what, HasSubstr("ptrace_scope is 3"));
}

TEST(Access, WhatIsSaidOfOwnChildrenIsTrue) {
  Program program("/usr/bin/python3", "import time\nprint(1, flush=True)\ntime.sleep(1000)");
  ASSERT_EQ(program.line(), "1");
  const auto process = PythonProcess::attach(program.pid());
  const auto can = can_read_stacks(Whose::kOwn);
  EXPECT_EQ(can.has_value(), process.has_value()) << (can ? process.error().what : can.error().what);
}

}  // namespace
}  // namespace headroom::python
