// SPDX-License-Identifier: Apache-2.0
#include "import/step_times.h"

#include <gtest/gtest.h>

#include "import/import.h"

namespace headroom {
namespace {

TEST(StepTimes, EachWorkerCountsItsStepsOnAClockOfItsOwn) {
  const auto r =
      read_step_times("steps.csv", "rank,step,step_time_s,loss\n0,1,0.5,9\n1,1,1.5,9\n0,2,0.5,9\n1,2,1.0,9\n");
  ASSERT_TRUE(r) << r.error().what;
  EXPECT_EQ(r->meta.origin, "import:step-times");
  EXPECT_EQ(r->meta.end, 2'500 * kMillisecond);
  EXPECT_TRUE(r->losses.empty());
  const auto worker = r->find(SourceKind::kMarks, "worker/1");
  ASSERT_TRUE(worker);
  EXPECT_EQ(r->tracks[static_cast<std::size_t>(*worker)].at,
            (std::vector<Nanos>{0, 1'500 * kMillisecond, 2'500 * kMillisecond}));
}

TEST(StepTimes, TimesWithoutAUnitAreSaidToHaveNone) {
  const auto r = read_step_times("steps.csv", ",worker,gpu,time,batch_time_norm\n0,6,25,1,476\n");
  ASSERT_TRUE(r);
  EXPECT_EQ(r->meta.end, 476 * kMillisecond);
  ASSERT_EQ(r->losses.size(), 1U);
  EXPECT_EQ(r->losses[0].what, "assumed_unit");
}

TEST(StepTimes, RowsThatCannotBeAreCountedAndNoneLeftIsAnError) {
  const auto r = read_step_times("steps.csv", "worker,step,step_time_ms\n0,1,5\n0,2,-1\n0,3\n0,x,5\n0,4,1e300\n");
  ASSERT_TRUE(r);
  EXPECT_EQ(r->meta.end, 5 * kMillisecond);
  ASSERT_EQ(r->losses.size(), 1U);
  EXPECT_EQ(r->losses[0].count, 4);
  EXPECT_FALSE(read_step_times("steps.csv", "worker,step,step_time_ms\n"));
  EXPECT_FALSE(read_step_times("steps.csv", ""));
}

TEST(StepTimes, AreToldFromMonitors) {
  EXPECT_EQ(sniff_log(",worker,gpu,time,batch_time_norm\n0,0,25,1,476\n"), LogFormat::kStepTimes);
  EXPECT_EQ(sniff_log("timestamp,gpu_id,gpu_util_%\n2025-01-01 00:00:00,0,5\n"), LogFormat::kMonitorCsv);
}

}  // namespace
}  // namespace headroom
