// SPDX-License-Identifier: Apache-2.0
// Loader workers that are started anew, as far as readings and stacks show it.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <cmath>
#include <csignal>

#include "analyze/testing.h"
#include "diagnose/explain.h"
#include "diagnose/testing.h"

namespace headroom {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using testing::RecordingBuilder;

const std::vector<std::string> kAtItsLoader{
    "train (/u/train.py:1)",
    "_MultiProcessingDataLoaderIter._get_data (/x/site-packages/torch/utils/data/dataloader.py:1)"};

// Changes what is known of each process of the job but the one on the GPU.
void of_workers(Recording& recording, const std::function<void(Process&)>& change) {
  for (Source& source : recording.sources) {
    if (source.kind != SourceKind::kProcess) continue;
    Process process = process_of(source);
    if (process.pid != 100) change(process);
    source.attrs = to_attrs(process);
  }
}

// Epochs of 20 s, with two workers each, of which the first `set_up` wait for the workers.
Recording anew_each_epoch(double set_up, bool stacks = false, double life = 20) {
  RecordingBuilder builder(100);
  builder.gpu(0, [=](double t) { return std::fmod(t - 0.001, 20) < set_up && t > 20 ? 0.0 : 1.0; });
  builder.process(100, 1, 0, 100, 0.02).context(100, 0, 0, 100);
  for (int epoch = 0; epoch < 5; ++epoch)
    for (int worker = 0; worker < 2; ++worker)
      builder.process(101 + 2 * epoch + worker, 100, 20 * epoch + 0.1, 20 * epoch + life, 0.3);
  if (stacks) builder.stacks(100, 0, 100, kAtItsLoader);
  return builder.build();
}

TEST(WorkerRestarts, WhatStacksWaitForIsNoProgramThatLivesInPauses) {
  const Explanation plain = explain(anew_each_epoch(19, false, 19.5));
  const Finding* once = find_single(plain, Cause::kEpochWorkerRestart);
  ASSERT_NE(once, nullptr);
  EXPECT_NEAR(seconds(once->cost()), 19, 1) << "only those of the first epoch surely lived beside kernels";
  const Explanation e = explain(anew_each_epoch(19, true, 19.5));
  const Finding* restarts = find_single(e, Cause::kEpochWorkerRestart);
  ASSERT_NE(restarts, nullptr) << e.findings.front().title;
  EXPECT_NEAR(seconds(restarts->cost()), 76, 1);
  EXPECT_THAT(restarts->evidence, Contains(HasSubstr("at least 8 worker processes")));
}

// Three quarters of their life are pauses, and they were there for the rest, too.
TEST(WorkerRestarts, WhoIsThereWhileKernelsRunIsAWorkerHoweverLongItsPausesAre) {
  const Explanation e = explain(anew_each_epoch(15));
  const Finding* restarts = find_single(e, Cause::kEpochWorkerRestart);
  ASSERT_NE(restarts, nullptr) << e.findings.front().title;
  EXPECT_NEAR(seconds(restarts->cost()), 60, 1);
}

// Who is told to end does so by SIGTERM; who is killed has failed.
TEST(WorkerRestarts, WorkersThatFailedAreToldFromThoseOfTheNextEpoch) {
  const auto ended_by = [](int code) {
    Recording recording = anew_each_epoch(15, true);
    of_workers(recording, [&](Process& process) { process.exit_code = code; });
    const Explanation e = explain(recording);
    return *find_single(e, Cause::kEpochWorkerRestart);
  };
  const Finding killed = ended_by(128 + SIGKILL);
  EXPECT_EQ(killed.title, "The GPU waits while loader workers that failed are started anew");
  EXPECT_THAT(killed.evidence, Contains("8 of those that had ended did so by signal 9"));
  EXPECT_THAT(killed.advice, HasSubstr("dmesg"));
  EXPECT_TRUE(killed.remedy.has_value());
  EXPECT_THAT(ended_by(1).advice, HasSubstr("why they end by exit code 1"));
  for (const int well : {0, 128 + SIGTERM}) EXPECT_FALSE(ended_by(well).remedy.has_value()) << well;
}

// Of 20 s a worker waits 12 with its GPU; found gone 9 s later, most of its life would be pauses.
TEST(WorkerRestarts, AWorkerMayHaveEndedSoonAfterItWasLastSeen) {
  Recording recording = anew_each_epoch(12);
  of_workers(recording, [](Process& process) { process.end = *process.end + RecordingBuilder::ns(9); });
  recording.meta.interval = RecordingBuilder::ns(9);
  const Explanation e = explain(recording);
  const Finding* restarts = find_single(e, Cause::kEpochWorkerRestart);
  ASSERT_NE(restarts, nullptr) << e.findings.front().title;
  EXPECT_NEAR(seconds(restarts->cost()), 48, 1);
}

// Each second begins with a pause and two workers that live for 0.8 s: too short to be sure.
TEST(WorkerRestarts, ShortLivesOfForkedProcessesMayBeRestarts) {
  const auto first = [](const std::string& command) {
    RecordingBuilder builder(30, 0.1);
    builder.gpu(0, [](double t) { return std::fmod(t + 0.899, 1) < 0.5 ? 0.0 : 1.0; });
    builder.process(100, 1, 0, 30, 0.02).context(100, 0, 0, 30);
    for (int i = 0; i < 60; ++i) builder.process(101 + i, 100, i / 2 + 0.1, i / 2 + 0.9, 0.05);
    builder.stacks(100, 0, 30, kAtItsLoader);
    Recording recording = builder.build();
    for (Source& source : recording.sources)
      if (source.kind == SourceKind::kProcess) {
        Process process = process_of(source);
        process.cmdline = process.pid == 100 ? "python3 train.py" : command;
        source.attrs = to_attrs(process);
      }
    return explain(recording).findings.front();
  };
  const Finding forked = first("python3 train.py");
  ASSERT_FALSE(forked.candidates.empty()) << forked.title;
  EXPECT_EQ(forked.candidates.front(), Cause::kEpochWorkerRestart) << forked.title;
  EXPECT_THAT(forked.evidence, Contains(HasSubstr("around the starts of processes")));
  EXPECT_THAT(forked.advice, HasSubstr("persistent_workers"));
  EXPECT_THAT(first("nvidia-smi").candidates, ::testing::Not(Contains(Cause::kEpochWorkerRestart)));
}

}  // namespace
}  // namespace headroom
