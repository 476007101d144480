// SPDX-License-Identifier: Apache-2.0
#include "host/discovery.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>

namespace headroom::host {
namespace {

bool found(std::span<const Candidate> candidates, std::int64_t pid) {
  return std::any_of(candidates.begin(), candidates.end(), [&](const Candidate& one) { return one.pid == pid; });
}

TEST(Discovery, WhoCouldNotBeJudgedIsFoundOnceMore) {
  ProcDir proc("/proc");
  Discovery discovery;
  EXPECT_TRUE(found(discovery.fresh(proc), ::getpid()));
  EXPECT_FALSE(found(discovery.fresh(proc), ::getpid()));
  discovery.look_again_at(::getpid());
  discovery.look_again_at(::getpid());
  const auto again = discovery.fresh(proc);
  EXPECT_EQ(std::count_if(again.begin(), again.end(), [](const Candidate& one) { return one.pid == ::getpid(); }), 1);
  EXPECT_FALSE(found(discovery.fresh(proc), ::getpid()));
}

}  // namespace
}  // namespace headroom::host
