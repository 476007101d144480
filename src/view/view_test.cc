// SPDX-License-Identifier: Apache-2.0
#include "view/view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "analyze/testing_random.h"
#include "diagnose/explain.h"

namespace headroom::view {
namespace {

using headroom::testing::RecordingBuilder;
using ::testing::SizeIs;

Nanos total(const std::vector<Share>& shares) {
  Nanos sum = 0;
  for (const Share& share : shares) sum += share.ns;
  return sum;
}

TEST(View, BinsAddUpToTheLedgerOfEveryGpu) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::mt19937 random(seed);
    const Recording recording =
        seed % 2 == 0 ? headroom::testing::random_recording(random) : headroom::testing::random_batch(random);
    const Explanation e = explain(recording);
    const View view = view_of(recording, e, {.bins = 1 + seed * 7});
    ASSERT_EQ(view.gpus.size(), e.ledger.devices.size());
    for (std::size_t device = 0; device < view.gpus.size(); ++device) {
      std::map<Account, Nanos> of_bins;
      for (const auto& bin : view.gpus[device].strip.bins)
        for (const Share& share : bin) of_bins[share.account] += share.ns;
      for (const AccountInfo& account : kAccounts)
        EXPECT_EQ(of_bins[account.id], e.ledger.total(account.id, device)) << "seed " << seed << " " << account.cause;
      EXPECT_EQ(total(view.gpus[device].ledger), e.ledger.span());
    }
    EXPECT_EQ(total(view.ledger), e.ledger.budget());
  }
}

TEST(View, APeakOfOneReadingInADaySurvives) {
  RecordingBuilder recording(86'400);
  recording.gpu(0, [](double t) { return t > 50'000 && t <= 50'001 ? 0.0 : 1.0; });
  const Recording day = recording.build();
  const View view = view_of(day, explain(day));
  const auto& bins = view.gpus[0].strip.bins;
  const auto with_gap = std::count_if(bins.begin(), bins.end(), [](const std::vector<Share>& bin) {
    return bin.size() == 2 && heights(bin, 24) == std::vector<std::size_t>{23, 1};
  });
  EXPECT_EQ(with_gap, 1);
  const Series& util = view.gpus[0].series.front();
  EXPECT_EQ(util.metric, Metric::kGpuUtil);
  EXPECT_EQ(std::count_if(util.bins.begin(), util.bins.end(), [](const Range& range) { return range.low == 0; }), 1);
}

TEST(View, ALiveRecordingHasNoEndsThatNobodySaw) {
  RecordingBuilder recording(100);
  recording.gpu(0, [](double) { return 0.9; });
  recording.task("first", 100, {0}, 1, 40).task({"second", 101, {0}, 41, 100, 0, ""});
  recording.meta().stop_reason = "";
  const Recording live = recording.build();
  const View view = view_of(live, explain(live));
  EXPECT_TRUE(view.goes_on);
  ASSERT_THAT(view.runs, SizeIs(2));
  EXPECT_EQ(view.runs[0].ending(), Ending::kSucceeded);
  EXPECT_EQ(view.runs[1].ending(), Ending::kRunning);
  EXPECT_EQ(view.runs[1].end, std::nullopt);
  ASSERT_THAT(view.gpus[0].bars, SizeIs(2));
  EXPECT_EQ(view.gpus[0].bars[1].end, view.end);
}

TEST(View, TasksSideBySideHaveLanesOfTheirOwn) {
  RecordingBuilder recording(100);
  recording.gpu(0, [](double) { return 0.9; });
  recording.task("a", 100, {0}, 1, 50).task("b", 101, {0}, 2, 30).task("c", 102, {0}, 31, 90);
  const Recording batch = recording.build();
  const View view = view_of(batch, explain(batch));
  ASSERT_THAT(view.gpus[0].bars, SizeIs(3));
  EXPECT_EQ(view.gpus[0].lanes, 2U);
  for (std::size_t i = 1; i < 3; ++i) {
    const Bar &before = view.gpus[0].bars[i - 1], &bar = view.gpus[0].bars[i];
    EXPECT_TRUE(bar.lane > before.lane || bar.begin >= before.end);
  }
}

TEST(View, ShortRunsShareABoxAndAFailureKeepsItsOwn) {
  RecordingBuilder recording(1000);
  recording.gpu(0, [](double) { return 0.9; });
  for (int i = 0; i < 200; ++i)
    recording.attempt({"t" + std::to_string(i), 100 + i, {0}, 10.0 + i, 10.9 + i, i == 77 ? "failed" : "succeeded"});
  const Recording batch = recording.build();
  const View view = view_of(batch, explain(batch), {.bins = 100});
  const auto& bars = view.gpus[0].bars;
  ASSERT_THAT(bars, SizeIs(3));
  EXPECT_EQ(bars[0].count, 77U);
  EXPECT_EQ(bars[1].ending, Ending::kOtherwise);
  EXPECT_EQ(view.runs[bars[1].run].task, "t77");
  EXPECT_EQ(bars[2].count, 122U);
}

TEST(View, BoxesAreBounded) {
  RecordingBuilder recording(1000);
  recording.gpu(0, [](double) { return 0.9; });
  for (int i = 0; i < 200; ++i) recording.attempt("t" + std::to_string(i), 100 + i, {0}, 4.9 * i, 4.9 * i + 4.5);
  const Recording batch = recording.build();
  const Explanation e = explain(batch);
  EXPECT_THAT(view_of(batch, e).gpus[0].bars, SizeIs(200));
  const View view = view_of(batch, e, {.most_bars = 50});
  std::size_t runs = 0;
  for (const Bar& bar : view.gpus[0].bars) runs += bar.count;
  EXPECT_LE(view.gpus[0].bars.size(), 50U);
  EXPECT_EQ(runs, 200U);
}

TEST(View, MoreRunsAtOnceThanLanesAreCounted) {
  RecordingBuilder recording(100);
  recording.gpu(0, [](double) { return 0.9; });
  for (int i = 0; i < 70; ++i) recording.attempt("t" + std::to_string(i), 100 + i, {0}, 1, 90);
  const Recording batch = recording.build();
  const View view = view_of(batch, explain(batch));
  EXPECT_EQ(view.gpus[0].lanes, 64U);
  EXPECT_EQ(view.gpus[0].runs_left_out, 6U);
}

TEST(View, ADesktopsContextIsToldFromAJobs) {
  RecordingBuilder recording(100);
  recording.gpu(0, [](double) { return 0.5; });
  recording.process(100, 1, 0, 100, 0.9).process({900, 1, 0, 100, 0.1, false});
  recording.context(100, 0, 0, 100).context({900, 0, 0, 100, 0.1, ContextKind::kGraphics});
  const Recording built = recording.build();
  for (const Process& process : view_of(built, explain(built)).processes) {
    ASSERT_EQ(process.gpus.size(), 1U) << process.pid;
    EXPECT_EQ(process.gpus[0].graphics, process.pid == 900);
  }
}

TEST(View, FindingsMarkTheTimeTheyClaim) {
  RecordingBuilder recording(100);
  recording.gpu(0, [](double t) { return t < 50 ? 0.0 : 1.0; });
  recording.process(100, 1, 0, 100, 0.9);
  recording.context(100, 0, 20, 100);
  const Recording job = recording.build();
  const Explanation e = explain(job);
  const View view = view_of(job, e);
  ASSERT_FALSE(view.gpus[0].findings.empty());
  for (const Marks& marks : view.gpus[0].findings) {
    EXPECT_EQ(marks.ns, e.findings[marks.index].cost());
    Nanos spans = 0;
    for (const Span& span : marks.spans) {
      EXPECT_LE(span.ns, span.end - span.begin);
      spans += span.ns;
    }
    EXPECT_EQ(spans, marks.ns);
  }
}

TEST(View, ReadingsThatTheStatisticsLeaveOutAreNotDrawn) {
  RecordingBuilder recording(100);
  recording.gpu(0, [](double) { return 0.5; });
  const Recording job = recording.build();
  Explanation e = explain(job);
  for (DeviceStats& stats : e.devices)
    for (MetricStats& metric : stats.metrics)
      if (metric.metric == Metric::kMemoryUsed)
        for (int t = 1; t <= 100; ++t) metric.excluded.push_back({RecordingBuilder::at(t), 1e9, "not true"});
  const View view = view_of(job, e);
  for (const Series& series : view.gpus[0].series) EXPECT_NE(series.metric, Metric::kMemoryUsed);
}

TEST(View, ProcessesOfTheGpuComeFirstAndTheirSecretsAreHidden) {
  RecordingBuilder recording(100);
  recording.gpu(0, [](double) { return 1.0; });
  recording.process(100, 1, 0, 100, 0.1).process(101, 100, 0, 100, 2.0).context(100, 0, 1, 100);
  Recording job = recording.build();
  for (Source& source : job.sources)
    if (source.kind == SourceKind::kProcess) source.attrs["cmdline"] = "train --api-key hunter2hunter2";
  const View view = view_of(job, explain(job), {.most_processes = 1});
  ASSERT_THAT(view.processes, SizeIs(1));
  EXPECT_EQ(view.processes_left_out, 1U);
  const Process& process = view.processes[0];
  EXPECT_EQ(process.pid, 100);
  EXPECT_EQ(process.command, "train --api-key ***");
  EXPECT_NEAR(process.cores.value_or(0), 0.1, 0.02);
  EXPECT_NEAR(process.cores_now.value_or(0), 0.1, 0.02);
  ASSERT_THAT(process.gpus, SizeIs(1));
  EXPECT_EQ(process.gpus[0].memory_bytes, std::int64_t{1} << 30);
  EXPECT_EQ(process.account, Account::kUseful);
}

TEST(View, AnEmptyRecordingHasAnEmptyView) {
  const Recording nothing;
  const View view = view_of(nothing, explain(nothing));
  EXPECT_TRUE(view.gpus.empty());
  EXPECT_EQ(view.begin, view.end);
}

}  // namespace
}  // namespace headroom::view
