// SPDX-License-Identifier: Apache-2.0
// Whose threads fill the cores, and what a wait for them may have cost at most.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyze/testing.h"
#include "diagnose/core_waits.h"
#include "diagnose/explain.h"
#include "diagnose/testing.h"

namespace headroom {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RecordingBuilder;
using ::testing::StartsWith;

HostSummary on_two_cores() {
  HostSummary s;
  s.usable_cores = 2;
  s.owners = 1;
  return s;
}

TEST(Cores, FewerThreadsHelpOnlyWhereTheJobsOwnFillThem) {
  HostSummary others = on_two_cores();  // two workers and the main thread, beside other load
  others.owner_cpu = others.owner_threads = 0.07, others.helpers = 2, others.helper_cpu = 0.7;
  others.helper_delay = 0.5;
  EXPECT_FALSE(diagnose::own_threads_fill_cores(others));
  EXPECT_EQ(diagnose::advice_for_cores(others),
            "less other load on these 2 cores, or more cores (the job itself uses 0.84)");
  HostSummary threads = on_two_cores();
  threads.owner_cpu = 0.5, threads.owner_threads = 1.2;
  EXPECT_TRUE(diagnose::own_threads_fill_cores(threads));
  EXPECT_EQ(diagnose::advice_for_cores(threads), "fewer processes or threads on these 2 cores");
  HostSummary workers = on_two_cores();  // of one thread each
  workers.helpers = 2, workers.helper_cpu = 1.7, workers.helper_delay = 0.1;
  EXPECT_FALSE(diagnose::own_threads_fill_cores(workers));
  EXPECT_EQ(diagnose::advice_for_cores(workers), "fewer processes on these 2 cores, or more cores");
  workers.helper_delay = 0.6;
  EXPECT_TRUE(diagnose::own_threads_fill_cores(workers)) << "each ran and waited for more than one thread can";
}

// Two workers that load all the time and want cores for a fifth of it, after a start of so long.
Explanation loads(double start) {
  RecordingBuilder builder(60);
  builder.machine(2, 2).gpu(0, [=](double t) { return t > start ? 0.3 : 0.0; });
  builder.process(7, 1, 0, 60, 0.02).context(7, 0, 0, 60);
  for (const std::int64_t pid : {8, 9}) {
    builder.process({pid, 7, 0, 60, 0.75, true, {cell(Metric::kRunDelay, 210'000'000)}});
    builder.waits_for(pid, {WaitKind::kPipe, "python3", {7}});
  }
  return explain(builder.build());
}

TEST(Cores, WhatLoadsTakesItsTimeOnCoresOfItsOwnToo) {
  const Finding first = loads(0).findings.front();
  ASSERT_EQ(first.cause, Cause::kCpuOversubscribed) << first.title;
  ASSERT_TRUE(first.gain);
  EXPECT_NEAR(first.gain->high, 60.0 / 45, 0.02) << "without what loads it were 60 s to 18 s";
  EXPECT_THAT(first.bound, HasSubstr("; what loads (2 processes) takes 45.0 s, unless that changes, too"));
  EXPECT_THAT(first.advice, AllOf(HasSubstr("not fewer workers"), Not(HasSubstr("threads"))));
  EXPECT_TRUE(first.no_threads_to_save);
}

TEST(Cores, OfAStartOnlyThatCountsInWhichThreadsWantedOne) {
  const Explanation e = loads(20);
  const Finding* cores = find(e, Cause::kCpuOversubscribed);
  ASSERT_TRUE(cores && cores->gain);
  Nanos at_start = 0;
  for (const ClaimedPiece& piece : cores->counted)
    if (piece.account == Account::kStartup) at_start += piece.end - piece.begin;
  EXPECT_NEAR(seconds(at_start), 20 * (0.21 + 0.75 / 4), 1);
}

// Imports for 12 s, a function for 8 s, then kernels.
TEST(Starts, SayWhatOnlyImportsWouldSave) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double t) { return t > 20 ? 1.0 : 0.0; }).process(7, 1, 0, 60, 0.9).context(7, 0, 0, 60);
  builder.stacks(7, 0, 12,
                 {"<module> (/u/train.py:1)", "<module> (/x/site-packages/torch/__init__.py:1)",
                  "_find_and_load (<frozen importlib._bootstrap>:1)"});
  builder.stacks(7, 12, 20, {"<module> (/u/train.py:9)", "build_index (/u/train.py:5)"});
  const Explanation e = explain(builder.build());
  const Finding* start = find(e, Cause::kStartupLoad);
  ASSERT_TRUE(start && start->gain) << e.headline;
  EXPECT_NEAR(start->gain->high, 60.0 / 40, 0.1);
  EXPECT_THAT(start->bound, HasSubstr("less for longer ones; 1.2"));
  EXPECT_THAT(start->bound, HasSubstr(" if only its imports took no time"));
}

// Saves for 3 s in 20, and is held for 8 s after its last kernel.
TEST(Ends, WhatFollowsTheLastKernelIsNoMoreOfWhatStacksTell) {
  RecordingBuilder builder(88);
  builder.gpu(0, [](double t) { return t < 80 && std::fmod(t - 0.001, 20) < 17 ? 1.0 : 0.0; });
  builder.process(7, 1, 0, 88, 0.5).context(7, 0, 0, 88);
  for (int i = 0; i < 4; ++i)
    builder.stacks(7, 20 * i, 20 * i + 17, {"train (/u/train.py:1)", "_wait (/x/headroom_sim.py:1)"})
        .stacks(7, 20 * i + 17, 20 * i + 20,
                {"train (/u/train.py:1)", "save (/x/site-packages/torch/serialization.py:1)"});
  const Explanation e = explain(builder.build());
  const Finding* saves = find(e, Cause::kCheckpointSync);
  ASSERT_TRUE(saves && saves->gain) << e.headline;
  EXPECT_LT(saves->gain->high, 1.25) << "12 s; 8 s more are of the end";
}

}  // namespace
}  // namespace headroom
