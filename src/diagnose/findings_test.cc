// SPDX-License-Identifier: Apache-2.0
// Findings by the recordings that must lead to them, and by those that must not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>

#include "analyze/testing.h"
#include "base/fd.h"
#include "base/testing.h"
#include "diagnose/explain.h"
#include "diagnose/testing.h"
#include "model/losses.h"

namespace headroom {
namespace {

using testing::cell;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RecordingBuilder;

// Idle for 0.75 of the time; the owner's and its helper's counters grow by these per second.
Recording waits(std::vector<Cell> of_owner, std::vector<Cell> of_helper = {}) {
  return RecordingBuilder(100)
      .gpu(0, [](double) { return 0.25; })
      .process({100, 1, 0, 100, 0.05, true, std::move(of_owner)})
      .context(100, 0, 0, 100)
      .process({101, 100, 0, 100, 0.4, true, std::move(of_helper)})
      .build();
}

TEST(Findings, AnOwnerBlockedOnStorageIsSlowStorage) {
  const Explanation e = explain(waits({cell(Metric::kIoDelay, 600'000'000), cell(Metric::kReadBytes, 20'000'000)}));
  const Finding* finding = find(e, Cause::kSlowStorage);
  ASSERT_NE(finding, nullptr);
  EXPECT_THAT(finding->evidence, Contains(HasSubstr("blocked on storage for 60 %")));
  EXPECT_THAT(finding->evidence, Contains(HasSubstr("averaged over whole readings: read 19.1 MiB/s")));
  EXPECT_EQ(find(explain(waits({})), Cause::kSlowStorage), nullptr);
}

TEST(Findings, WhatTheKernelDoesNotCountIsNotSaidToBeZero) {
  const Explanation e = explain(waits({}));
  for (const Finding& finding : e.findings)
    for (const std::string& line : finding.evidence) EXPECT_THAT(line, Not(HasSubstr("blocked on storage")));
}

TEST(Findings, LargeWritesWhileTheGpuIdlesAreACheckpoint) {
  const Explanation e = explain(waits({cell(Metric::kWriteBytes, 50'000'000)}));
  const Finding* finding = find(e, Cause::kCheckpointSync);
  ASSERT_NE(finding, nullptr);
  EXPECT_NEAR(seconds(finding->cost()), 75, 2);
  EXPECT_THAT(finding->evidence, Contains(HasSubstr("47.7 MiB/s")));
  EXPECT_EQ(find(explain(waits({cell(Metric::kWriteBytes, 100'000)})), Cause::kCheckpointSync), nullptr) << "a log";
}

// The kernel adds to a process what children that it waited for had written in all their lives.
TEST(Findings, WhatAChildHadWrittenIsNoCheckpointOfItsParent) {
  const Explanation e =
      explain(waits({cell(Metric::kWriteBytes, 50'000'000), cell(Metric::kChildrenCpu, 100'000'000)}));
  EXPECT_EQ(find(e, Cause::kCheckpointSync), nullptr);
  for (const Finding& finding : e.findings)
    for (const std::string& line : finding.evidence) EXPECT_THAT(line, Not(HasSubstr("47.7 MiB/s")));
}

Recording starts_with(const std::string& comm) {
  Recording recording = RecordingBuilder(100)
                            .gpu(0, [](double t) { return t > 40 ? 0.97 : 0.0; })
                            .process(100, 1, 0, 100, 0.9)
                            .context(100, 0, 30, 100)
                            .process(101, 100, 0, 20, 0.9)
                            .build();
  for (Source& source : recording.sources)
    if (source.kind == SourceKind::kProcess && source.attrs["pid"] == "101") source.attrs["comm"] = comm;
  return recording;
}

TEST(Findings, AnInstallerInTheJobExplainsTheStartUpInWhichItLived) {
  const Explanation e = explain(starts_with("pip"));
  const Finding* finding = find(e, Cause::kEnvironmentInstall);
  ASSERT_NE(finding, nullptr);
  EXPECT_THAT(finding->evidence, Contains("process 101 of the job is pip; it lived for at most 20.0 s"));
  EXPECT_NEAR(seconds(finding->cost()), 20, 1);
  const Finding* rest = find(e, Cause::kStartupLoad);
  ASSERT_NE(rest, nullptr);
  EXPECT_NEAR(seconds(rest->cost()), 20, 1) << "what came after it";
  const Explanation without = explain(starts_with("bash"));
  EXPECT_EQ(find(without, Cause::kEnvironmentInstall), nullptr);
  ASSERT_NE(find(without, Cause::kStartupLoad), nullptr);
  EXPECT_NEAR(seconds(find(without, Cause::kStartupLoad)->cost()), 40, 1);
}

// `uv run python train.py`
TEST(Findings, WhatLaunchesTheJobInstallsAtMostUntilThen) {
  const auto launched = [](double at) {
    Recording recording = RecordingBuilder(100)
                              .gpu(0, [](double t) { return t > 40 ? 0.97 : 0.0; })
                              .process(100, 1, 0, 100, 0.01)
                              .process(101, 100, 0, 10, 0.9)  // asks git
                              .process(102, 100, at, 100, 0.9)
                              .context(102, 0, 35, 100)
                              .build();
    for (Source& source : recording.sources)
      if (source.kind == SourceKind::kProcess && source.attrs["pid"] == "100") source.attrs["comm"] = "uv";
    return explain(recording);
  };
  EXPECT_EQ(find(launched(0.1), Cause::kEnvironmentInstall), nullptr);
  const Explanation e = launched(20);
  const Finding* finding = find(e, Cause::kEnvironmentInstall);
  ASSERT_NE(finding, nullptr);
  EXPECT_THAT(finding->evidence, Contains("process 100 of the job is uv; it started what it was to run after 20.0 s"));
  EXPECT_NEAR(seconds(finding->cost()), 20, 1);
}

TEST(Findings, LostRowsAreAFindingAndMendedOnesAreNot) {
  Recording recording = RecordingBuilder(60).gpu(0, [](double) { return 0.97; }).build();
  recording.losses = {make_loss(LossKind::kLateTick, 3, "")};
  EXPECT_EQ(find(explain(recording), Cause::kRecordingLosses), nullptr);
  recording.losses = {make_loss(LossKind::kDamagedChunk, 2, "first at row 5")};
  const Explanation e = explain(recording);
  const Finding* finding = find(e, Cause::kRecordingLosses);
  ASSERT_NE(finding, nullptr);
  EXPECT_THAT(finding->evidence, Contains("damaged_chunk: 2; first at row 5"));
  EXPECT_EQ(finding->cost(), 0) << "where it was is not known";
  EXPECT_EQ(finding->title, "A part of the recording could not be read");
  EXPECT_THAT(finding->would_overturn, HasSubstr("copy the file again"));
  recording.losses = {make_loss(LossKind::kMissedTick, 2, "")};
  const Explanation gaps = explain(recording);
  ASSERT_NE(find(gaps, Cause::kRecordingLosses), nullptr);
  EXPECT_EQ(find(gaps, Cause::kRecordingLosses)->title, "The recording has gaps");
  EXPECT_THAT(find(gaps, Cause::kRecordingLosses)->evidence, Contains("looks that were left out: 2"));
}

TEST(Findings, TimeWithoutSamplesIsClaimedByTheGaps) {
  Recording recording = RecordingBuilder(60).gpu(0, [](double) { return 0.97; }).build();
  Track& track = recording.tracks[0];
  track.at.resize(30);
  for (Column& column : track.columns) column.values.resize(30);
  const Explanation e = explain(recording);
  const Finding* finding = find(e, Cause::kRecordingLosses);
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->cost(), e.ledger.total(Account::kUnobserved));
  EXPECT_THAT(finding->evidence, Contains(HasSubstr("50 % of the time is covered by no sample")));
}

TEST(Findings, OneProcessOnOneOfTwoGpusHasMoreThanItCanUse) {
  const Explanation e = explain(RecordingBuilder(100)
                                    .gpu(0, [](double) { return 0.9; })
                                    .gpu(1, [](double) { return 0.0; })
                                    .process(100, 1, 0, 100, 0.9)
                                    .context(100, 0, 0, 100)
                                    .build());
  const Finding* finding = find(e, Cause::kMoreGpusThanUseful);
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->title, "GPU 1 did nothing while GPU 0 worked");
  EXPECT_EQ(finding->cost(), e.ledger.span());
  for (const ClaimedPiece& piece : finding->claims) EXPECT_EQ(piece.device, 1U);
}

TEST(Findings, AnIdlePeerIsNotAlsoIdleForUnknownReasons) {
  RecordingBuilder builder(100);
  for (int index = 0; index < 2; ++index) {
    Device device;
    device.index = index;
    device.uuid = "GPU-" + std::to_string(index);
    const SourceId id = builder.sink().add_source({SourceKind::kGpu, device.uuid, kNoSource, to_attrs(device)});
    for (int t = 1; t <= 100; ++t)
      builder.sink().add_row(id, RecordingBuilder::at(t),
                             std::array{cell(Metric::kGpuUtil, from_unit(Metric::kGpuUtil, index == 0 ? 0.5 : 0))});
  }
  const Explanation e = explain(builder.build());
  const Finding *peer = find(e, Cause::kMoreGpusThanUseful), *unknown = find(e, Cause::kBatchTooSmall);
  ASSERT_NE(peer, nullptr);
  ASSERT_NE(unknown, nullptr);
  EXPECT_NEAR(seconds(peer->cost()), 100, 1e-6);
  EXPECT_NEAR(seconds(unknown->cost()), 50, 1) << "of GPU 0 alone";
  EXPECT_THAT(unknown->bound, HasSubstr("at most 2.0x")) << "a GPU that did nothing takes nothing from it";
}

Recording full(double memory_traffic, double watts) {
  RecordingBuilder builder(100);
  Device device;
  device.uuid = "GPU-0";
  device.power_limit_watts = 400;
  const SourceId id = builder.sink().add_source({SourceKind::kGpu, "GPU-0", kNoSource, to_attrs(device)});
  for (int t = 1; t <= 100; ++t)
    builder.sink().add_row(id, RecordingBuilder::at(t),
                           std::array{cell(Metric::kGpuUtil, from_unit(Metric::kGpuUtil, 0.99)),
                                      cell(Metric::kMemoryUtil, from_unit(Metric::kMemoryUtil, memory_traffic)),
                                      cell(Metric::kPower, from_unit(Metric::kPower, watts))});
  return builder.build();
}

TEST(Findings, BusyAtLowPowerAndWithoutMemoryTrafficIsAQuestion) {
  const Explanation odd = explain(full(0.02, 90));
  const Finding* finding = find(odd, Cause::kBusyButInefficient);
  ASSERT_NE(finding, nullptr);
  EXPECT_THAT(finding->evidence, Contains("it drew 90 of 400 W"));
  EXPECT_EQ(finding->cost(), 0) << "no idle time";
  EXPECT_EQ(find(odd, Cause::kHealthy), nullptr) << "not both in one report";
  const Explanation well = explain(full(0.6, 380));
  EXPECT_EQ(find(well, Cause::kBusyButInefficient), nullptr);
  EXPECT_NE(find(well, Cause::kHealthy), nullptr);
}

// Reasons are read every ten seconds, and of a job of ten seconds at its begin and after its end.
TEST(Findings, ClockLimitsThatWereReadOnlyAfterTheJobCount) {
  Recording recording = RecordingBuilder(10)
                            .gpu(0, [](double) { return 0.97; })
                            .process(100, 1, 0, 10, 0.9)
                            .context(100, 0, 0, 10)
                            .build();
  recording.meta.end -= kMillisecond;
  Source& gpu = recording.sources[static_cast<std::size_t>(recording.all(SourceKind::kGpu)[0])];
  gpu.attrs["sm_clock_max_mhz"] = "2000";
  Track& track = recording.tracks[static_cast<std::size_t>(recording.all(SourceKind::kGpu)[0])];
  const std::size_t rows = track.at.size();
  Column reasons{Metric::kEventReasons, std::vector<std::int64_t>(rows, 0), std::vector<std::uint8_t>(rows, 1)};
  reasons.absent.front() = reasons.absent.back() = 0;
  reasons.values.back() = kReasonHwThermal;
  track.columns.push_back(reasons);
  track.columns.push_back({Metric::kSmClock, std::vector<std::int64_t>(rows, 1000), {}});
  const Explanation e = explain(recording);
  const Finding* finding = find(e, Cause::kThrottling);
  ASSERT_NE(finding, nullptr);
  EXPECT_THAT(finding->evidence, Contains(HasSubstr("2 times while kernels ran, and named one in 1")));
  EXPECT_NEAR(seconds(finding->cost()), 9 * 0.97 / 2, 0.1) << "half the clock, since the reading before";
}

TEST(Findings, AnInvalidEntryOfTheMaskHidesTheGpusBehindIt) {
  Recording recording = RecordingBuilder(100)
                            .gpu(0, [](double) { return 0.5; })
                            .gpu(1, [](double) { return 0.0; })
                            .process(100, 1, 0, 100, 0.9)
                            .context(100, 0, 0, 100)
                            .build();
  for (Source& source : recording.sources)
    if (source.kind == SourceKind::kProcess) source.attrs["cuda_visible_devices"] = "0,9,1";
  const Explanation e = explain(recording);
  const auto wrong = std::find_if(e.findings.begin(), e.findings.end(), [](const Finding& f) {
    return f.title == "An entry of the mask is invalid and hides what follows";
  });
  ASSERT_NE(wrong, e.findings.end());
  EXPECT_THAT(wrong->evidence, Contains(HasSubstr("'9' names no GPU here, 1 of the list is left")));
}

// `sh -c 'CUDA_VISIBLE_DEVICES=0 python train.py'`: the shell has no mask.
TEST(Findings, TheMaskIsThatOfTheProcessOnTheGpu) {
  Recording recording = RecordingBuilder(100)
                            .gpu(0, [](double) { return 0.5; })
                            .gpu(1, [](double) { return 0.0; })
                            .process(100, 1, 0, 100, 0.0)
                            .process(200, 100, 0, 100, 0.9)
                            .context(200, 0, 0, 100)
                            .build();
  for (Source& source : recording.sources)
    if (source.kind == SourceKind::kProcess && process_of(source).pid == 200)
      source.attrs["cuda_visible_devices"] = "0";
  const Explanation e = explain(recording);
  const Finding* finding = find(e, Cause::kMoreGpusThanUseful);
  ASSERT_NE(finding, nullptr);
  EXPECT_THAT(finding->evidence, Contains("CUDA_VISIBLE_DEVICES was '0' for the process that the driver listed"));
}

TEST(Findings, AWindowEndsWhereItEnds) {
  // Kernels until 300 s, then idle: of the first part nothing may be said to be idle, and nothing of its later
  // readings.
  Recording recording = RecordingBuilder(420).gpu(0, [](double t) { return t <= 300 ? 1.0 : 0.0; }).build();
  ExplainOptions options;
  options.window = {0, 300 * kSecond};
  const Explanation e = explain(recording, options);
  EXPECT_EQ(e.ledger.total(Account::kUseful), e.ledger.budget());
  for (const Finding& finding : e.findings) EXPECT_EQ(finding.cost(), 0) << finding.title;
  EXPECT_EQ(e.devices[0].metrics[0].min, 1.0);
  EXPECT_THAT(e.headline, HasSubstr("100 %"));
}

// A cause has tiers in its table if and only if some rule names it.
TEST(Findings, TheTableSaysWhichCausesHaveARule) {
  std::string rules;
  for (const auto& entry : std::filesystem::directory_iterator(in_checkout("src/diagnose"))) {
    const std::string name = entry.path().filename().string();
    if (name.find("test") == std::string::npos && name.ends_with(".cc")) rules += read_file(entry.path()).value();
  }
  const std::string table = read_file(in_checkout("src/model/catalogue.cc")).value();
  for (const CauseInfo& cause : all_causes()) {
    const auto id = table.find(fmt::format("\"{}\"", cause.id));
    const auto begin = table.rfind("Cause::", id);
    const std::string name = table.substr(begin, table.find(',', begin) - begin);
    EXPECT_EQ(std::regex_search(rules, std::regex(name + "\\b")), !cause.needs.empty()) << name;
  }
}

}  // namespace
}  // namespace headroom
