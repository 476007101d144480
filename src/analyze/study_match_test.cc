// SPDX-License-Identifier: Apache-2.0
#include "analyze/study_match.h"

#include <gtest/gtest.h>

#include <cmath>

#include "analyze/testing.h"
#include "model/notes.h"

namespace headroom {
namespace {

using testing::RecordingBuilder;

constexpr Nanos kUnix = 1'760'000'000 * kSecond;  // of a builder's recordings

TrialTime trial(std::int64_t number, double begin, double end, bool finished = true) {
  return {.number = number,
          .begin = kUnix + RecordingBuilder::ns(begin),
          .end = kUnix + RecordingBuilder::ns(end),
          .finished = finished};
}

// Busy from 10 s to 20 s and from 40 s to 50 s.
double two_bursts(double t) { return (t > 10 && t <= 20) || (t > 40 && t <= 50) ? 1.0 : 0.0; }

TEST(StudyMatch, AProcessPerTrialGivesEachItsOwnFigures) {
  RecordingBuilder builder(60);
  builder.gpu(0, two_bursts).process(100, 1, 2, 21, 1).process(200, 1, 32, 51, 1);
  builder.context(100, 0, 11, 20, 1).context(200, 0, 41, 50, 1);
  const StudyMatch match = match_study(builder.build(), {trial(7, 0, 22), trial(8, 30, 52)});
  ASSERT_EQ(match.trials.size(), 2U);
  EXPECT_EQ(match.trials[0].number, 7);
  for (const TrialUse& use : match.trials) {
    EXPECT_FALSE(use.shared);
    ASSERT_TRUE(use.startup.has_value());
    EXPECT_NEAR(seconds(*use.startup), 10, 1.01);
    ASSERT_TRUE(use.gpu.has_value());
    EXPECT_NEAR(seconds(*use.gpu), 10, 0.01);
    EXPECT_EQ(use.memory_bytes, std::int64_t{1} << 30);
  }
  EXPECT_NEAR(match.covered, 1, 1e-9);
  ASSERT_TRUE(match.gpu_busy.has_value());
  EXPECT_NEAR(*match.gpu_busy, 20.0 / 52, 0.001);
  EXPECT_EQ(match.memory_per_trial_bytes, std::int64_t{1} << 30);
}

TEST(StudyMatch, TrialsThatFollowEachOtherAtOnceKeepTheirOwnProcesses) {
  RecordingBuilder builder(20, 0.1);
  builder.gpu(0, [](double) { return 1.0; });
  std::vector<TrialTime> trials;
  for (int i = 0; i < 10; ++i) {
    builder.process(100 + i, 1, i * 1.5 + 0.1, i * 1.5 + 1.4, 1).context(100 + i, 0, i * 1.5 + 0.5, i * 1.5 + 1.4, 1);
    trials.push_back(trial(i, i * 1.5, i * 1.5 + 1.5));
  }
  const StudyMatch match = match_study(builder.build(), trials);
  ASSERT_EQ(match.trials.size(), 10U);
  for (const TrialUse& use : match.trials) {
    EXPECT_FALSE(use.shared);
    EXPECT_NEAR(seconds(use.startup.value_or(0)), 0.45, 0.11);
  }
}

TEST(StudyMatch, OfTheOnlyWorkerEachTrialIsKnown) {
  RecordingBuilder builder(60);
  builder.gpu(0, two_bursts).process(100, 1, 1, 59, 1).context(100, 0, 5, 58, 0);
  Recording recording = builder.build();
  const SourceId context = recording.all(SourceKind::kGpuProcess).front();
  Track& track = recording.tracks[static_cast<std::size_t>(context)];
  for (Column& column : track.columns)
    if (column.metric == Metric::kProcessSmUtil)
      for (std::size_t row = 0; row < track.at.size(); ++row)
        column.values[row] =
            from_unit(Metric::kProcessSmUtil, two_bursts(seconds(track.at[row] - recording.meta.start)));
  const StudyMatch match = match_study(recording, {trial(0, 6, 22), trial(1, 22, 52)});
  ASSERT_EQ(match.trials.size(), 2U);
  ASSERT_TRUE(match.trials[0].startup && match.trials[1].startup);
  EXPECT_NEAR(seconds(*match.trials[0].startup), 4, 1.01);
  EXPECT_NEAR(seconds(*match.trials[1].startup), 18, 1.01);
  EXPECT_NEAR(seconds(*match.trials[0].gpu), 10, 0.01);
  EXPECT_NEAR(seconds(*match.trials[1].gpu), 10, 0.01);
  EXPECT_TRUE(match.trials[0].shared) << "by its time, not by its process";
}

// Kernels of the only worker for the last `busy` of each trial's `each` seconds; a reading a second.
StudyMatch one_worker(double each, double busy, int trials) {
  const double whole = each * trials;
  const auto util = [&](double t) {  // of the second before
    double sum = 0;
    for (int k = 0; k < 100; ++k) {
      const double at = t - (k + 0.5) / 100;
      sum += at > 0 && std::fmod(at, each) >= each - busy ? 0.01 : 0;
    }
    return sum;
  };
  RecordingBuilder builder(whole + 2, 1);
  builder.gpu(0, util).process(100, 1, 0, whole + 1, 1).context(100, 0, 0, whole + 1, 0);
  Recording recording = builder.build();
  Track& track = recording.tracks[static_cast<std::size_t>(recording.all(SourceKind::kGpuProcess).front())];
  for (Column& column : track.columns)
    if (column.metric == Metric::kProcessSmUtil)
      for (std::size_t row = 0; row < track.at.size(); ++row)
        column.values[row] = from_unit(Metric::kProcessSmUtil, util(seconds(track.at[row] - recording.meta.start)));
  std::vector<TrialTime> times;
  for (int i = 0; i < trials; ++i) times.push_back(trial(i, i * each, (i + 1) * each));
  return match_study(recording, std::move(times));
}

TEST(StudyMatch, AStartUpThatAReadingHidesIsNotMeasured) {
  for (const TrialUse& use : one_worker(2.4, 1.8, 12).trials) EXPECT_FALSE(use.startup.has_value());
  const StudyMatch long_ones = one_worker(12.3, 7, 6);
  ASSERT_EQ(long_ones.trials.size(), 6U);
  for (const TrialUse& use : long_ones.trials) {
    ASSERT_TRUE(use.startup.has_value());
    EXPECT_NEAR(seconds(*use.startup), 5.3, 1.01);
  }
}

TEST(StudyMatch, OfATrialThatIsShorterThanAReadingItIsNotKnownWhetherItComputed) {
  const auto computed = [](double each, double busy) {
    std::vector<bool> found;
    for (const TrialUse& use : one_worker(each, busy, 4).trials) found.push_back(use.computed);
    return found;
  };
  EXPECT_EQ(computed(0.2, 0.08), std::vector<bool>(4, false)) << "0.4 s of a reading, of which 0.8 s are others'";
  EXPECT_EQ(computed(3, 1.2), std::vector<bool>(4, true));
}

TEST(StudyMatch, TrialsOfSeveralWorkersShareTheKernelsAndHaveNoStartup) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 1.0; }).process(100, 1, 0, 60, 1).process(200, 1, 0, 60, 1);
  builder.context(100, 0, 1, 60).context(200, 0, 1, 60);
  const StudyMatch match =
      match_study(builder.build(), {trial(0, 0, 30), trial(1, 0, 40), trial(2, 30, 60), trial(3, 40, 60)});
  ASSERT_EQ(match.trials.size(), 4U);
  double sum = 0;
  for (const TrialUse& use : match.trials) {
    EXPECT_TRUE(use.shared);
    EXPECT_FALSE(use.startup || use.memory_bytes);
    sum += seconds(use.gpu.value_or(0));
  }
  EXPECT_NEAR(sum, 60, 0.1) << "no kernel twice";
  EXPECT_NEAR(seconds(*match.trials[1].gpu), 20, 0.1);
  EXPECT_EQ(match.memory_per_trial_bytes, std::int64_t{1} << 30);
}

TEST(StudyMatch, ATrialWhoseOwnProcessIsGoneIsGone) {
  RecordingBuilder builder(60);
  builder.gpu(0, two_bursts).process(100, 1, 2, 21, 1).process(200, 1, 32, 45, 1);
  builder.context(100, 0, 11, 20).context(200, 0, 41, 44);
  const StudyMatch match = match_study(builder.build(), {trial(0, 0, 22), trial(1, 30, 3600, false)});
  ASSERT_EQ(match.trials.size(), 2U);
  EXPECT_FALSE(match.trials[0].gone);
  EXPECT_TRUE(match.trials[1].gone);
}

TrialTime failed(std::int64_t number, double begin, double end) {
  TrialTime one = trial(number, begin, end);
  one.failed = true;
  return one;
}

std::vector<std::pair<std::int64_t, bool>> out_of_memory(const StudyMatch& match) {
  std::vector<std::pair<std::int64_t, bool>> found;
  for (const OutOfMemoryTrial& one : match.out_of_memory) found.emplace_back(one.number, one.said);
  return found;
}

TEST(StudyMatch, AFailedTrialRanOutOfMemoryIfTheOutputSaidSoAsItEnded) {
  RecordingBuilder builder(60);
  builder.gpu(0, two_bursts).process(100, 1, 0, 60, 1).context(100, 0, 1, 60);
  for (const double at : {20.3, 20.4, 45.0})
    builder.sink().add_event(
        to_event(events::Note{.text = std::string(kNoteOutOfMemory) + "CUDA out of memory", .line = {}},
                 RecordingBuilder::at(at)));
  const std::vector<TrialTime> trials{failed(0, 0, 20), trial(1, 2, 20.4), failed(2, 1, 25), failed(3, 30, 38)};
  EXPECT_EQ(out_of_memory(match_study(builder.build(), trials)),
            (std::vector<std::pair<std::int64_t, bool>>{{0, true}}))
      << "the nearest that failed; one that completed did not, and 7 s later nothing ended";
}

TEST(StudyMatch, AFailedTrialRanOutOfMemoryIfItsGpuWasFullAsItsOwnProcessEnded) {
  const auto with = [](double used) {
    RecordingBuilder builder(60);
    builder.gpu(0, two_bursts, used).process(100, 1, 2, 21, 1).process(200, 1, 32, 51, 1);
    builder.context(100, 0, 11, 20, 1).context(200, 0, 41, 50, 1);
    return out_of_memory(match_study(builder.build(), {failed(7, 0, 22), trial(8, 30, 52)}));
  };
  constexpr double kTotal = 48.0 * (1 << 30);
  EXPECT_EQ(with(0.95 * kTotal), (std::vector<std::pair<std::int64_t, bool>>{{7, false}}));
  EXPECT_TRUE(with(0.85 * kTotal).empty());
}

TEST(StudyMatch, MemoryAtOnceIsThatOfAllProcessesTogether) {
  RecordingBuilder builder(60);
  builder.gpu(0, two_bursts).process(100, 1, 0, 60, 1).process(200, 1, 0, 60, 1);
  builder.context(100, 0, 1, 60).context(200, 0, 20, 60);
  const StudyMatch match = match_study(builder.build(), {trial(0, 0, 28), trial(1, 2, 58), trial(2, 29, 59)});
  EXPECT_EQ(match.memory_per_trial_bytes, std::int64_t{1} << 30);
  EXPECT_EQ(match.memory_at_once_bytes, std::int64_t{2} << 30);
  EXPECT_EQ(match.gpu_memory_bytes, std::int64_t{48} << 30);
}

TEST(StudyMatch, WhereTrialsRanOnTwoGpusNoneHasTheMemory) {
  RecordingBuilder builder(60);
  builder.gpu(0, two_bursts).gpu(1, two_bursts).process(100, 1, 0, 60, 1).process(200, 1, 0, 60, 1);
  builder.context(100, 0, 1, 60).context(200, 1, 1, 60);
  EXPECT_FALSE(match_study(builder.build(), {trial(0, 0, 28), trial(1, 2, 58)}).gpu_memory_bytes);
}

TEST(StudyMatch, AnotherTimeOrOthersProcessesMatchNothing) {
  RecordingBuilder builder(60);
  builder.gpu(0, two_bursts).process({100, 1, 0, 60, 1, false}).context(100, 0, 1, 60);
  builder.process(300, 1, 0, 60, 1);  // the job, without a context
  const Recording recording = builder.build();
  EXPECT_TRUE(match_study(recording, {trial(0, 0, 50)}).trials.empty());
  const StudyMatch before = match_study(recording, {trial(0, -500, -100)});
  EXPECT_TRUE(before.trials.empty());
  EXPECT_EQ(before.covered, 0);
  EXPECT_FALSE(before.gpu_busy || before.memory_per_trial_bytes);
  EXPECT_TRUE(match_study({}, {}).trials.empty());
}

}  // namespace
}  // namespace headroom
