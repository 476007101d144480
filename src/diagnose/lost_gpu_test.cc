// SPDX-License-Identifier: Apache-2.0
// A GPU that the driver lost is what a person must know first; and nobody could see what ran on it since its last
// reading, whenever the driver's word came.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "analyze/testing.h"
#include "diagnose/explain.h"

namespace headroom {
namespace {

using testing::cell;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RecordingBuilder;
using ::testing::StartsWith;

// A job of `length` seconds on GPUs that are all lost: read every second until `read_until`, with kernels from
// `kernels_from` on; the driver says so at `told`, which may lie behind the job's end.
struct GpuLoss {
  double length = 4.4, read_until = 4, told = 4.4, kernels_from = 2;
  int gpus = 1;
  bool listed = true;                              // the driver listed the job before the loss
  bool event = true;                               // else only a cell says so, as in a log
  bool job = true;                                 // else a log of the GPU alone
  std::optional<double> held_from = std::nullopt;  // else with its kernels
};

Recording recording_of(const GpuLoss& loss) {
  RecordingBuilder builder(loss.length);
  builder.meta().exit_code = 1;
  std::vector<SourceId> gpus;
  for (int index = 0; index < loss.gpus; ++index) {
    Device device;
    device.index = index;
    device.uuid = "GPU-" + std::to_string(index);
    device.memory_total_bytes = std::int64_t{48} << 30;
    gpus.push_back(builder.sink().add_source({SourceKind::kGpu, device.uuid, kNoSource, to_attrs(device)}));
    for (double t = 1; t <= loss.read_until; ++t) {
      std::vector<Cell> cells{cell(Metric::kGpuUtil, from_unit(Metric::kGpuUtil, t > loss.kernels_from)),
                              cell(Metric::kMemoryUsed, std::int64_t{1} << 30)};
      if (loss.job) cells.push_back(cell(Metric::kComputeProcesses, loss.listed ? 1 : 0));
      builder.sink().add_row(gpus.back(), RecordingBuilder::at(t), cells);
    }
    builder.sink().add_row(gpus.back(), RecordingBuilder::at(loss.told),
                           std::array{Cell{Metric::kGpuUtil, 0, Absent::kDeviceLost}});
    if (loss.event)
      builder.sink().add_event(
          to_event(events::DeviceLost{.index = index, .text = "NVML_ERROR_GPU_IS_LOST", .line = {}},
                   RecordingBuilder::at(loss.told), gpus.back()));
  }
  if (loss.job) builder.process(100, 1, 0, loss.length, 0.9);
  if (loss.listed)
    for (int index = 0; index < loss.gpus; ++index)
      builder.context(100, index, loss.held_from.value_or(std::min(loss.kernels_from, loss.read_until)),
                      loss.read_until);
  return builder.build();
}

const HealthCheck& runs_on_gpu(const Explanation& e) {
  return *std::find_if(e.health.begin(), e.health.end(), [](const auto& c) { return c.check == "runs_on_gpu"; });
}

bool names(const Explanation& e, Cause cause) {
  return std::any_of(e.findings.begin(), e.findings.end(), [&](const Finding& f) { return f.cause == cause; });
}

TEST(LostGpu, IsTheFirstFindingWheneverTheDriverSaidSo) {
  for (const int gpus : {1, 2})
    for (const double told : {4.2, 4.4, 4.9, 7.0}) {  // before the job's end, at it, after it
      const Explanation e = explain(recording_of({.told = told, .gpus = gpus}));
      ASSERT_FALSE(e.findings.empty());
      EXPECT_EQ(e.findings.front().cause, Cause::kDeviceLost) << told << ": " << e.findings.front().title;
      EXPECT_NEAR(seconds(e.findings.front().cost()), 0.4 * gpus, 0.001) << told;
      EXPECT_FALSE(names(e, Cause::kRecordingLosses)) << "to record again would not fill that gap: " << told;
      EXPECT_THAT(e.headline, StartsWith(gpus == 1 ? "The driver lost the GPU." : "The driver lost the 2 GPUs."));
    }
}

TEST(LostGpu, ComesFirstWhereItCostLittleOfTheTimeToo) {
  const Explanation e = explain(recording_of({.length = 600.4, .read_until = 600, .told = 600.4, .kernels_from = 300}));
  EXPECT_EQ(e.findings.front().cause, Cause::kDeviceLost) << e.findings.front().title;
  ASSERT_GT(e.findings.size(), 1U);
  EXPECT_GT(e.findings[1].cost(), e.findings[0].cost());
}

TEST(LostGpu, DeniesNoKernelThatNobodyCouldHaveSeen) {
  for (const bool listed : {true, false})
    for (const double told : {2.3, 2.7, 3.5}) {  // kernels may have run since the last reading, at 2 s
      const Explanation e =
          explain(recording_of({.length = 2.7, .read_until = 2, .told = told, .kernels_from = 2, .listed = listed}));
      EXPECT_EQ(e.findings.front().cause, Cause::kDeviceLost) << told << ": " << e.findings.front().title;
      EXPECT_FALSE(names(e, Cause::kJobNeverUsesGpu)) << told;
      EXPECT_EQ(runs_on_gpu(e).good, Answer::kUnknown) << runs_on_gpu(e).evidence;
      EXPECT_THAT(runs_on_gpu(e).evidence, HasSubstr("no kernel of it was seen"));
      EXPECT_THAT(e.headline, HasSubstr("No kernel was seen"));
      for (const char* denial : {"unused", "never used"}) EXPECT_THAT(e.headline, Not(HasSubstr(denial))) << told;
    }
}

TEST(LostGpu, OfALongJobThatRanNoKernelThatIsStillSaid) {
  const auto held_from = [](double from) {
    return explain(
        recording_of({.length = 120.4, .read_until = 120, .told = 120.4, .kernels_from = 120, .held_from = from}));
  };
  EXPECT_EQ(held_from(10).findings.front().cause, Cause::kDeviceLost);
  EXPECT_TRUE(names(held_from(10), Cause::kJobNeverUsesGpu));
  EXPECT_FALSE(names(held_from(119), Cause::kJobNeverUsesGpu)) << "its kernels may have been about to come";
}

TEST(LostGpu, OfALogCountsFromItsLastReadingToo) {
  const Explanation e = explain(recording_of({.length = 10, .read_until = 4, .told = 7, .event = false}));
  EXPECT_EQ(e.findings.front().cause, Cause::kDeviceLost) << e.findings.front().title;
  EXPECT_NEAR(seconds(e.findings.front().cost()), 6, 0.001);
  EXPECT_FALSE(names(e, Cause::kRecordingLosses));
}

TEST(LostGpu, OfALogWithoutAKernelSaysWhatReadingsCover) {
  Recording log = recording_of(
      {.length = 60, .read_until = 30, .told = 31, .kernels_from = 60, .listed = false, .event = false, .job = false});
  log.meta.origin = "import:nvidia-smi";
  log.meta.tiers = "N";
  const Explanation e = explain(log);
  ASSERT_EQ(e.findings.size(), 2U);
  EXPECT_EQ(e.findings[0].cause, Cause::kDeviceLost);
  EXPECT_EQ(e.findings[1].title, "No kernel was seen in the time that readings cover");
}

TEST(LostGpu, IsNotSaidToHaveAnsweredEveryQuery) {
  const auto told_apart = [](int lost) {
    RecordingBuilder builder(60);
    builder.gpu(0, [](double) { return 0.9; }).gpu(1, [](double) { return 0.0; });
    builder.process(100, 1, 0, 60, 0.9).context(100, 0, 0, 60);
    if (lost >= 0)
      builder.sink().add_event(to_event(
          events::DeviceLost{.index = lost, .text = "NVML_ERROR_GPU_IS_LOST", .line = {}}, RecordingBuilder::at(50),
          builder.sink().recording().all(SourceKind::kGpu)[static_cast<std::size_t>(lost)]));
    const Explanation e = explain(builder.build());
    for (const Finding& finding : e.findings)
      if (finding.cause == Cause::kMoreGpusThanUseful) return finding.told_apart_from;
    ADD_FAILURE() << "GPU 1 is idle beside GPU 0";
    return std::vector<std::string>();
  };
  EXPECT_THAT(told_apart(-1), Contains(HasSubstr("it answered every query")));
  EXPECT_THAT(told_apart(0), Contains(HasSubstr("it answered every query"))) << "it is the other one that was lost";
  EXPECT_THAT(told_apart(1), Not(Contains(HasSubstr("it answered every query"))));
}

// A gap long after it came back is another matter.
TEST(LostGpu, ThatAnswersAgainIsLostUntilThenOnly) {
  RecordingBuilder builder(60);
  Device device;
  device.uuid = "GPU-0";
  device.index = 0;
  const SourceId gpu = builder.sink().add_source({SourceKind::kGpu, device.uuid, kNoSource, to_attrs(device)});
  for (double t = 1; t <= 60; ++t)
    if (t <= 10 || (t > 20 && t <= 30) || t > 50)
      builder.sink().add_row(gpu, RecordingBuilder::at(t), std::array{cell(Metric::kGpuUtil, 10'000)});
  builder.sink().add_event(to_event(events::DeviceLost{.index = 0, .text = "NVML_ERROR_GPU_IS_LOST", .line = {}},
                                    RecordingBuilder::at(11), gpu));
  const Explanation e = explain(builder.process(100, 1, 0, 60, 0.9).context(100, 0, 1, 60).build());
  EXPECT_EQ(e.findings.front().cause, Cause::kDeviceLost);
  EXPECT_NEAR(seconds(e.findings.front().cost()), 10, 0.001);
  EXPECT_TRUE(names(e, Cause::kRecordingLosses));
  EXPECT_THAT(e.headline, StartsWith("The driver lost the GPU for a time."));
  EXPECT_THAT(e.findings.front().title, HasSubstr(", and it answered again at "));
  EXPECT_THAT(e.findings.front().advice + e.findings.front().would_overturn, Not(HasSubstr("reset")));
}

}  // namespace
}  // namespace headroom
