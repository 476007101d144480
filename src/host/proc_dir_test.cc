// SPDX-License-Identifier: Apache-2.0
#include "host/proc_dir.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

namespace headroom::host {
namespace {

// Who keeps files open leaves descriptors to who starts processes.
TEST(ProcDir, TheLastDescriptorsAreNotKept) {
  ProcDir proc("/proc");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = Fd(::open("/dev/null", O_RDONLY | O_CLOEXEC)).get();
  ASSERT_GE(next, 0);
  Fd kept;
  const rlimit few{static_cast<rlim_t>(next) + 5, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  const bool read = proc.read_kept(kept, "stat").has_value();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(read);
  EXPECT_FALSE(kept);
  EXPECT_TRUE(proc.read_kept(kept, "stat").has_value());
  EXPECT_TRUE(kept);
}

}  // namespace
}  // namespace headroom::host
