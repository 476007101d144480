// SPDX-License-Identifier: Apache-2.0
#include "analyze/ledger.h"

#include <gtest/gtest.h>

#include <random>

#include "analyze/ends.h"
#include "analyze/stack_evidence.h"
#include "analyze/testing.h"
#include "analyze/testing_random.h"
#include "analyze/utilisation.h"

namespace headroom {
namespace {

using testing::cell;
using testing::random_recording_or_batch;
using testing::RecordingBuilder;

Ledger ledger_of_all(const Recording& recording) {
  return ledger(testing::times_of(recording), recording.meta.start, recording.meta.end);
}

Nanos sum(const Ledger& l) {
  Nanos total = 0;
  for (const auto& entry : l.entries) total += entry.ns;
  return total;
}

TEST(Ledger, ConservesEveryNanosecond) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const Recording recording = random_recording_or_batch(random);
    const Ledger l = ledger_of_all(recording);
    ASSERT_EQ(sum(l), l.budget()) << "seed " << seed;
  }
}

TEST(Ledger, MergedWindowsAreOneWindow) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    const Recording recording = random_recording_or_batch(random);
    const auto times = testing::times_of(recording);
    const Nanos begin = recording.meta.start, end = recording.meta.end;
    const Nanos middle = begin + static_cast<Nanos>(random()) % (end - begin);
    const Ledger all = ledger(times, begin, end), first = ledger(times, begin, middle),
                 rest = ledger(times, middle, end);
    for (const auto& account : kAccounts)
      for (std::size_t device = 0; device < all.devices.size(); ++device)
        ASSERT_EQ(all.total(account.id, device), first.total(account.id, device) + rest.total(account.id, device))
            << "seed " << seed << " " << account.label;
  }
}

// A kind of evidence that knows everything, but not how much was busy.
class KnowsTheFunction final : public Evidence {
 public:
  void claim(const IdleStretch& stretch, std::vector<HostShare>& parts) const override {
    if (stretch.part == UsePart::kTail) return;
    parts = {{stretch.end - stretch.begin, {Account::kHostCode, Confidence::kHigh, "Y", "train.py: build_graph"}}};
  }
  void cut(const Use& use, std::vector<Nanos>& cuts) const override { cuts.push_back(use.context.begin + kSecond); }
};

TEST(Ledger, MoreEvidenceNeverChangesHowMuchWasBusy) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    const Recording recording = random_recording_or_batch(random);
    const JobView job = job_view(recording);
    const StackView stacks = stack_view(recording, stacks::Families());
    std::vector<std::unique_ptr<Evidence>> more = evidence_of(recording, job, stacks, stacks::Families(), {});
    const auto with = [&](std::span<const std::unique_ptr<Evidence>> evidence) {
      return ledger(device_times(recording, job, {}, evidence).devices, recording.meta.start, recording.meta.end);
    };
    const Ledger none = with({}), some = with(more);
    more.insert(more.begin(), std::make_unique<KnowsTheFunction>());
    const Ledger all = with(more);
    for (std::size_t device = 0; device < all.devices.size(); ++device)
      for (const Account account : {Account::kUseful, Account::kDiscarded, Account::kForeign, Account::kUnobserved}) {
        ASSERT_EQ(none.total(account, device), some.total(account, device)) << "seed " << seed;
        ASSERT_EQ(some.total(account, device), all.total(account, device)) << "seed " << seed;
      }
  }
}

TEST(Ledger, TheFirstEvidenceThatSpeaksDecidesAndNamesThePlace) {
  const Recording recording = RecordingBuilder(20)
                                  .gpu(0, [](double t) { return t > 5 ? 0.5 : 0.0; })
                                  .process(100, 1, 0, 20, 0.9)
                                  .context(100, 0, 0, 20)
                                  .build();
  const JobView job = job_view(recording);
  const StackView stacks = stack_view(recording, stacks::Families());
  std::vector<std::unique_ptr<Evidence>> evidence = evidence_of(recording, job, stacks, stacks::Families(), {});
  evidence.insert(evidence.begin(), std::make_unique<KnowsTheFunction>());
  const DeviceTimes times = device_times(recording, job, {}, evidence);
  EXPECT_EQ(times.places, std::vector<std::string>{"train.py: build_graph"});
  for (const Slice& slice : times.devices[0].slices)
    if (is_held_idle(slice.account)) {
      EXPECT_EQ(slice.account, Account::kHostCode);
      EXPECT_EQ(slice.where, 0);
      EXPECT_EQ(slice.tiers, Tiers("Y"));
    }
}

TEST(Ledger, RenumberingGpusChangesNothing) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    Recording recording = random_recording_or_batch(random);
    const Ledger before = ledger_of_all(recording);
    for (Source& source : recording.sources)
      if (source.kind == SourceKind::kGpu) source.attrs["index"] = source.attrs["index"] == "0" ? "1" : "0";
    const Ledger after = ledger_of_all(recording);
    ASSERT_EQ(before.devices.size(), after.devices.size());
    for (std::size_t i = 0; i < before.devices.size(); ++i)
      for (std::size_t k = 0; k < after.devices.size(); ++k)
        if (before.devices[i].uuid == after.devices[k].uuid) {
          for (const auto& account : kAccounts)
            ASSERT_EQ(before.total(account.id, i), after.total(account.id, k)) << "seed " << seed;
        }
  }
}

TEST(Ledger, ASamplesUtilisationSpeaksForTheTimeSinceTheOneBefore) {
  const Recording recording = RecordingBuilder(10).gpu(0, [](double) { return 0.25; }).build();
  EXPECT_EQ(ledger_of_all(recording).busy(), 2500 * kMillisecond);
}

TEST(Ledger, AGapIsUnobservedAndNotIdle) {
  Recording recording = RecordingBuilder(20).gpu(0, [](double) { return 1.0; }).build();
  Track& track = recording.tracks[0];
  for (Column& column : track.columns) column.values.erase(column.values.begin() + 5, column.values.begin() + 15);
  track.at.erase(track.at.begin() + 5, track.at.begin() + 15);  // readings at 6 s … 15 s are gone
  const Ledger l = ledger_of_all(recording);
  EXPECT_EQ(l.total(Account::kUnobserved), 10 * kSecond);
  EXPECT_EQ(l.total(Account::kUseful), 10 * kSecond);
}

TEST(Ledger, StartupEndsAtTheFirstKernel) {
  const Recording recording = RecordingBuilder(20)
                                  .gpu(0, [](double t) { return t > 6 ? 1.0 : 0.0; })
                                  .process(100, 1, 0, 20, 0.9)
                                  .context(100, 0, 4, 20)
                                  .build();
  const Ledger l = ledger_of_all(recording);
  EXPECT_EQ(l.total(Account::kStartup), 6 * kSecond);
  EXPECT_EQ(l.total(Account::kUseful), 14 * kSecond);
}

TEST(Ledger, AJobThatGoesOnIsStartingUntilItsFirstKernel) {
  const auto ledger = [](const std::string& stop_reason, double other) {
    RecordingBuilder builder(20);
    builder.gpu(0, [](double) { return 0.0; }).gpu(1, [=](double) { return other; });
    builder.process(100, 1, 0, 20, 0.9).context(100, 0, 4, 20).context(100, 1, 4, 20);
    builder.meta().stop_reason = stop_reason;
    return ledger_of_all(builder.build());
  };
  EXPECT_EQ(ledger("", 0).total(Account::kStartup, 0), 20 * kSecond) << "its first kernel may still come";
  EXPECT_EQ(ledger("job_ended", 0).total(Account::kStartup, 0), 0) << "there was none to start for";
  EXPECT_EQ(ledger("", 0.5).total(Account::kStartup, 0), 0) << "it computes elsewhere";
}

TEST(Ledger, AWaitingTrainerWithBusyWorkersIsInput) {
  const Recording recording = RecordingBuilder(30)
                                  .gpu(0, [](double) { return 0.4; })
                                  .process(100, 1, 0, 30, 0.1)
                                  .process(101, 100, 0, 30, 0.95)
                                  .process(102, 100, 0, 30, 0.95)
                                  .context(100, 0, 0, 30)
                                  .build();
  const Ledger l = ledger_of_all(recording);
  EXPECT_GT(l.total(Account::kInput), 16 * kSecond);
  EXPECT_EQ(l.total(Account::kHostCode), 0);
}

TEST(Ledger, ABusyTrainerWithoutWorkersIsHostCode) {
  const Recording recording = RecordingBuilder(30)
                                  .gpu(0, [](double) { return 0.1; })
                                  .process(100, 1, 0, 30, 0.95)
                                  .context(100, 0, 0, 30)
                                  .build();
  EXPECT_GT(ledger_of_all(recording).total(Account::kHostCode), 24 * kSecond);
}

TEST(Ledger, ASleepingTrainerStaysUnexplained) {
  const Recording recording = RecordingBuilder(30)
                                  .gpu(0, [](double) { return 0.1; })
                                  .process(100, 1, 0, 30, 0.01)
                                  .context(100, 0, 0, 30)
                                  .build();
  EXPECT_GT(ledger_of_all(recording).total(Account::kUnexplained), 24 * kSecond);
}

TEST(Ledger, AHangIsToldFromATearDown) {
  const auto tail = [](double cpu) {
    return ledger_of_all(RecordingBuilder(200)
                             .gpu(0, [](double t) { return t <= 100 ? 0.9 : 0.0; })
                             .process(100, 1, 0, 200, cpu)
                             .context(100, 0, 0, 200)
                             .build());
  };
  EXPECT_EQ(tail(0.0).total(Account::kHung), 100 * kSecond);
  EXPECT_EQ(tail(0.0).total(Account::kTeardown), 0);
  EXPECT_EQ(tail(0.3).total(Account::kHung), 0);
  EXPECT_EQ(tail(0.3).total(Account::kTeardown), 100 * kSecond);
}

// It was seen at 6 s and found gone at 6.9 s: what it did in between, or whether it was there, nothing says.
TEST(Ledger, TimeInWhichAProcessEndedIsNoTearDown) {
  const auto ended = [](double stacks_until) {
    RecordingBuilder builder(10);
    builder.gpu(0, [](double t) { return t <= 5 ? 0.9 : 0.0; }).process(99, 1, 0, 10, 0);
    builder.process(100, 99, 0, 6.9, 0.5).context(100, 0, 0, 6.9);
    if (stacks_until > 0) builder.stacks(100, 5, stacks_until, {"free (train.py)"});
    return builder.build();
  };
  const auto unsure = [](const Recording& recording) {
    Nanos sum = 0;
    const auto times = testing::times_of(recording);
    for (const Slice& slice : times.front().slices)
      if (an_end_lies_in(slice)) sum += slice.end - slice.begin;
    return sum;
  };
  const Ledger l = ledger_of_all(ended(0));
  EXPECT_EQ(l.total(Account::kTeardown), kSecond);
  EXPECT_EQ(unsure(ended(0)), 900 * kMillisecond);
  EXPECT_EQ(l.total(Account::kNoTask), 3100 * kMillisecond);
  EXPECT_EQ(unsure(ended(6.5)), 400 * kMillisecond) << "its stacks were read later";
  EXPECT_EQ(ledger_of_all(ended(6.5)).total(Account::kTeardown), 1500 * kMillisecond);
}

TEST(Ledger, AProcessMayLetTheDeviceGoAndLiveOn) {
  RecordingBuilder builder(20);
  builder.gpu(0, [](double t) { return t <= 5 ? 0.9 : 0.0; }).process(100, 1, 0, 20, 0.5).context(100, 0, 0, 7);
  const Recording recording = builder.build();
  const auto times = testing::times_of(recording);
  const auto& slices = times.front().slices;
  const auto unsure = std::find_if(slices.begin(), slices.end(), an_end_lies_in);
  ASSERT_NE(unsure, slices.end());
  EXPECT_EQ(unsure->begin, RecordingBuilder::at(7));
  EXPECT_EQ(unsure->end, RecordingBuilder::at(8));
  EXPECT_EQ(ledger_of_all(recording).total(Account::kTeardown), 2 * kSecond);
}

// Both end with the job, which a last reading of the GPU follows.
TEST(Ledger, TheJobsOwnEndIsKnown) {
  const auto unsure = [](std::int64_t parent) {
    RecordingBuilder builder(10);
    builder.gpu(0, [](double t) { return t <= 5 ? 0.9 : 0.0; });
    builder.meta().end = RecordingBuilder::at(9.5);
    builder.process(99, 1, 0, 9.5, 0).process(100, parent, 0, 9.5, 0.5).context(100, 0, 0, 9.5);
    const auto times = testing::times_of(builder.build());
    return std::count_if(times.front().slices.begin(), times.front().slices.end(), an_end_lies_in);
  };
  EXPECT_EQ(unsure(1), 0);
  EXPECT_EQ(unsure(99), 1) << "what started it may have gone on alone";
}

TEST(Ledger, ForeignKernelsAreNotTheJobs) {
  const Recording recording = RecordingBuilder(20)
                                  .gpu(0, [](double) { return 1.0; })
                                  .process(100, 1, 0, 20, 0.5)
                                  .process({900, 1, 0, 20, 0.5, false})
                                  .context(100, 0, 0, 20, 0.75)
                                  .context(900, 0, 0, 20, 0.25)
                                  .build();
  const Ledger l = ledger_of_all(recording);
  EXPECT_NEAR(seconds(l.total(Account::kForeign)), 5, 0.3);
  EXPECT_NEAR(seconds(l.total(Account::kUseful)), 15, 0.3);
}

// The driver lists a process that has ended no more, and has no share of it for its last interval.
TEST(Ledger, AProcessThatEndsBesideAStrangerKeepsItsKernels) {
  RecordingBuilder builder(10);
  builder.gpu(0, [](double) { return 1.0; }).process(100, 1, 0, 9.8, 0.2).process({900, 1, 0, 10, 0.2, false});
  builder.context(100, 0, 0, 9, 0.3).context(900, 0, 0, 10, 0.6);
  const Recording recording = builder.build();
  const Ledger last = ledger(testing::times_of(recording), recording.meta.end - kSecond, recording.meta.end);
  EXPECT_NEAR(seconds(last.total(Account::kUseful)), 0.28, 0.03);
}

// Kernels until 10, stopped until 30 by a signal, kernels again; its stacks show a synchronisation all the time.
TEST(Ledger, AStoppedProcessIsAtNothingWhateverItsStacksShow) {
  RecordingBuilder builder(40);
  builder.gpu(0, [](double t) { return t < 10.5 || t > 30.5 ? 1.0 : 0.0; });
  builder.process(100, 1, 0, 40, 0.01).context(100, 0, 0, 40);
  builder.stacks(100, 0, 40, {"train (/u/train.py:1)", "synchronize (/x/torch/cuda/__init__.py:1)"});
  Recording recording = builder.build();
  for (std::size_t i = 0; i < recording.sources.size(); ++i)
    if (recording.sources[i].kind == SourceKind::kProcess)
      for (Column& column : recording.tracks[i].columns)
        for (std::size_t row = 0; row < column.values.size(); ++row)
          if (column.metric == Metric::kProcessState && row > 10 && row < 30) column.values[row] = 'T';
  const Ledger l = ledger_of_all(recording);
  EXPECT_EQ(l.total(Account::kStopped), 20 * kSecond);
  EXPECT_EQ(l.total(Account::kUseful), 20 * kSecond);
}

TEST(Ledger, AJobThatComputedBeforeTheRecordingHasNoStartUpInIt) {
  const auto startup = [](double began) {
    RecordingBuilder builder(20);
    builder.gpu(0, [](double) { return 0.5; }).process(100, 1, began, 20, 0.9).context(100, 0, 0, 20);
    Recording recording = builder.build();
    for (std::size_t i = 0; i < recording.sources.size(); ++i)  // and the first look shows it
      if (recording.sources[i].kind == SourceKind::kGpuProcess) recording.tracks[i].at.front() = recording.meta.start;
    return ledger_of_all(recording).total(Account::kStartup);
  };
  EXPECT_GT(startup(0), 0);
  EXPECT_EQ(startup(-5), 0);
}

TEST(Ledger, AContextOnNoGpuOfAJobThatGoesOnIsNoIndex) {
  Recording recording = RecordingBuilder(20)
                            .gpu(0, [](double) { return 0.5; })
                            .process(100, 1, 0, 20, 0.9)
                            .context(100, 0, 0, 20)
                            .build();
  recording.meta.stop_reason.clear();
  for (Source& source : recording.sources)  // as a damaged file has it
    if (source.kind == SourceKind::kGpuProcess) source.parent = kNoSource;
  EXPECT_EQ(ledger_of_all(recording).budget(), 20 * kSecond);
}

TEST(Ledger, ADesktopOwnsNothing) {
  const Recording recording = RecordingBuilder(20)
                                  .gpu(0, [](double) { return 1.0; })
                                  .process(100, 1, 0, 20, 0.5)
                                  .process({900, 1, 0, 20, 0.5, false})
                                  .context(100, 0, 0, 20, 0.2)
                                  .context({900, 0, 0, 20, 0.8, ContextKind::kGraphics})
                                  .build();
  EXPECT_EQ(ledger_of_all(recording).total(Account::kForeign), 0);
}

TEST(Ledger, AGpuTheJobNeverTouchedIsNotUsed) {
  const Recording recording = RecordingBuilder(20)
                                  .gpu(0, [](double) { return 0.9; })
                                  .gpu(1, [](double) { return 0.0; })
                                  .process(100, 1, 0, 20, 0.5)
                                  .context(100, 0, 0, 20)
                                  .build();
  const Ledger l = ledger_of_all(recording);
  EXPECT_EQ(l.total(Account::kNotUsed, 1), 20 * kSecond);
  EXPECT_EQ(l.budget(), 40 * kSecond);
}

// The list is read each second: who ended soon after it had opened a GPU may have been missed.
TEST(Ledger, AJobThatEndedAsItOpenedAGpuMayHaveUsedIt) {
  const auto job = [](double end, std::optional<double> opened) {
    RecordingBuilder recording(end);
    recording.gpu(0, [](double) { return 0.0; }).process(100, 1, 0, end, 0.5);
    if (opened) recording.no_gpu_until(100, *opened - 0.5, *opened);
    return ledger_of_all(recording.build());
  };
  const Ledger died = job(8, 6);
  EXPECT_EQ(died.total(Account::kNotUsed), 0);
  EXPECT_EQ(died.total(Account::kStartup), 5.5 * kSecond);
  EXPECT_EQ(died.total(Account::kUnexplained), 2.5 * kSecond);
  EXPECT_EQ(job(20, 6).total(Account::kNotUsed), 20 * kSecond) << "it was looked for in vain";
  // The last look at the job itself was long before its end: what it did until then is known.
  RecordingBuilder rare(8);
  rare.gpu(0, [](double) { return 0.0; }).process(100, 1, 0, 8, 0.5).no_gpu_until(100, 6).meta().job_pid = 100;
  const Ledger late = ledger_of_all(rare.build());
  EXPECT_EQ(late.total(Account::kNotUsed), 6 * kSecond);
  EXPECT_EQ(late.total(Account::kUnexplained), 2 * kSecond);
  EXPECT_EQ(job(8, std::nullopt).total(Account::kNotUsed), 8 * kSecond);
}

TEST(Ledger, AMaskedGpuIsNotInTheBudget) {
  Recording recording = RecordingBuilder(20)
                            .gpu(0, [](double) { return 0.9; })
                            .gpu(1, [](double) { return 0.0; })
                            .process(100, 1, 0, 20, 0.5)
                            .context(100, 0, 0, 20)
                            .build();
  for (Source& source : recording.sources)
    if (source.key == "GPU-1" && source.kind == SourceKind::kGpu) source.attrs["given"] = "false";
  EXPECT_EQ(ledger_of_all(recording).budget(), 20 * kSecond);
}

// Of a job that is recorded while it runs its environment tells.
TEST(Ledger, AMaskOfTheJobsFirstProcessHidesGpusToo) {
  RecordingBuilder builder(20);
  builder.gpu(0, [](double) { return 0.0; }).gpu(1, [](double) { return 0.8; });
  Recording recording = builder.process(100, 1, 0, 20, 0.5).context(100, 1, 0, 20).build();
  EXPECT_EQ(ledger_of_all(recording).devices.size(), 2u);
  for (Source& source : recording.sources)
    if (source.kind == SourceKind::kProcess) source.attrs["cuda_visible_devices"] = "1";
  EXPECT_EQ(ledger_of_all(recording).devices.size(), 1u);
}

TEST(Ledger, AProcessThatStartsOwnsNoKernelOfTheOneBefore) {
  RecordingBuilder builder(40);
  builder.gpu(0, [](double t) { return t <= 20 || t > 26 ? 0.8 : 0.0; });
  builder.process(100, 1, 0, 19.95, 0.9).process(101, 1, 19.9, 40, 0.9);
  builder.context(100, 0, 0, 19.5).context(101, 0, 20, 40);
  const Ledger sum = ledger_of_all(builder.build());
  EXPECT_NEAR(seconds(sum.total(Account::kStartup)), 6.2, 0.3) << "of the second process; its kernels begin at 26 s";
  EXPECT_LT(sum.total(Account::kHostCode), 9 * kSecond);
}

// The GPU is utilised for half of the time. Looks at its compute engine come every two seconds, `late` after the
// seconds.
Recording with_engine(const std::function<double(double)>& active, bool ring = true, Nanos late = 0) {
  const auto half = [](double) { return 0.5; };
  RecordingBuilder builder(20);
  builder.gpu(0, half).process(100, 1, 0, 20, 0.1).context(100, 0, 0, 20);
  if (ring) builder.util_ring(0, half);
  Recording recording = builder.build();
  Track& track = recording.tracks[static_cast<std::size_t>(*recording.find(SourceKind::kGpu, "GPU-0"))];
  Column column{Metric::kGraphicsActive, {}, {}};
  for (std::size_t row = 0; row < track.at.size(); ++row) {
    const double at = seconds(track.at[row] - recording.meta.start);
    column.values.push_back(from_unit(Metric::kGraphicsActive, active(at)));
    column.absent.push_back(row % 2 == 1 ? 0 : static_cast<std::uint8_t>(Absent::kNotSampled));
    track.at[row] += late;
  }
  track.columns.push_back(std::move(column));
  return recording;
}

TEST(Utilisation, WhatIsUtilisedWithoutTheComputeEngineIsCopies) {
  const Ledger l = ledger_of_all(with_engine([](double at) { return at <= 10 ? 0.5 : 0.1; }));
  EXPECT_NEAR(seconds(l.total(Account::kTransfer)), 4, 1e-6);
  EXPECT_NEAR(seconds(l.busy()), 6, 1e-6);
  for (const LedgerEntry& entry : l.entries) EXPECT_TRUE(entry.account != Account::kTransfer || entry.pid == 100);
}

TEST(Utilisation, ReadingsThatRoundOrLieAskewAreNoCopies) {
  const auto copies = [](const Recording& recording) { return ledger_of_all(recording).total(Account::kTransfer); };
  EXPECT_EQ(copies(with_engine([](double) { return 0.485; })), 0) << "rounding";
  EXPECT_EQ(copies(with_engine([](double) { return 0.9; })), 0);
  EXPECT_EQ(copies(with_engine([](double) { return 0.46; }, true, kSecond / 10)), 0)
      << "nine whole readings of ten are 0.9 s, and the engine was active for 0.92";
  EXPECT_GT(copies(with_engine([](double) { return 0.46; })), 0);
  EXPECT_EQ(copies(with_engine([](double) { return 0.1; }, false)), 0) << "ticks are of parts of their time";
}

TEST(Utilisation, TheRingGoesBeforeTheTicks) {
  RecordingBuilder builder(10);
  builder.gpu(0, [](double) { return 0.0; });
  const SourceId gpu = *builder.sink().recording().find(SourceKind::kGpu, "GPU-0");
  const SourceId ring = builder.sink().add_source({SourceKind::kGpuUtilRing, "GPU-0", gpu, {}});
  for (int i = 1; i <= 30; ++i)  // until 5 s, six readings a second
    builder.sink().add_row(ring, RecordingBuilder::at(i / 6.0), std::array{testing::cell(Metric::kGpuUtil, 6000)});
  const Recording recording = builder.build();
  EXPECT_NEAR(seconds(ledger_of_all(recording).busy()), 3.0, 1e-6);
  const auto samples = util_samples(recording, gpu);
  for (std::size_t i = 1; i < samples.size(); ++i) EXPECT_EQ(samples[i].begin, samples[i - 1].end);
}

TEST(Utilisation, BusyTimeRoundsTowardsTheLargerPart) {
  EXPECT_EQ(busy_ns({0, 3, 5000}), 2);
  EXPECT_EQ(busy_ns({0, 3, 4000}), 1);
  EXPECT_EQ(busy_ns({0, 3, 10'000}), 3);
  EXPECT_EQ(busy_ns({0, 3, std::nullopt}), 0);
  EXPECT_EQ(busy_ns({0, 900'000'000'000'000'000, 10'000}), 900'000'000'000'000'000);
}

TEST(Activities, AStoredWaitThatIsNoneOfOursIsUnknown) {
  for (const std::int64_t stored : {-1, 12, 83, 255}) {
    const Recording recording =
        RecordingBuilder(10).process({100, 1, 0, 10, 0.1, true, {testing::cell(Metric::kWaitChannel, stored)}}).build();
    const auto process = std::find_if(recording.sources.begin(), recording.sources.end(),
                                      [](const Source& source) { return source.kind == SourceKind::kProcess; });
    ASSERT_NE(process, recording.sources.end());
    const auto list = activities(recording, static_cast<SourceId>(process - recording.sources.begin()));
    ASSERT_FALSE(list.empty());
    for (const Activity& activity : list) EXPECT_EQ(activity.wait, WaitChannel::kUnknown) << stored;
  }
}

// Such is our own CSV, read back.
TEST(Ledger, ALogThatCountsProcessesWithoutNamingThemDoesNotSayThatThereWereNone) {
  RecordingBuilder builder(10);
  builder.gpu(0, [](double) { return 0.2; });
  const SourceId gpu = *builder.sink().recording().find(SourceKind::kGpu, "GPU-0");
  builder.sink().add_row(gpu, RecordingBuilder::at(10.5), std::array{cell(Metric::kComputeProcesses, 1)});
  const auto times = testing::times_of(builder.build());
  const Ledger l = ledger(times, RecordingBuilder::at(0), RecordingBuilder::at(10));
  EXPECT_EQ(l.total(Account::kNoTask), 0);
  EXPECT_NEAR(seconds(l.total(Account::kUnexplained)), 8, 1e-6);
}

// The list was read at the start, after a second and at the end: it is that second reading which says since when.
TEST(Ledger, WhatComesAfterAKernelIsNoStartUp) {
  RecordingBuilder builder(1.2);
  builder.gpu(0, [](double) { return 0.5; }).process(100, 1, 0, 1.2, 0.1).context(100, 0, 0, 1.2);
  MemorySink& sink = builder.sink();
  const SourceId gpu = *sink.recording().find(SourceKind::kGpu, "GPU-0");
  const SourceId context = *sink.recording().find(SourceKind::kGpuProcess, "GPU-0/100/0");
  const SourceId ring = sink.add_source({SourceKind::kGpuUtilRing, "GPU-0", gpu, {}});
  for (int i = 1; i <= 12; ++i)
    sink.add_row(ring, RecordingBuilder::at(0.1 * i),
                 std::array{cell(Metric::kGpuUtil, from_unit(Metric::kGpuUtil, i > 1 ? 0.5 : 0.0))});
  sink.add_row(gpu, RecordingBuilder::at(1.2), std::array{cell(Metric::kComputeProcesses, 1)});
  sink.add_row(context, RecordingBuilder::at(1.2), std::array{cell(Metric::kProcessGpuMemory, 1 << 30)});
  const auto times = testing::times_of(builder.build());
  const Ledger l = ledger(times, RecordingBuilder::at(0), RecordingBuilder::at(1.2));
  EXPECT_NEAR(seconds(l.total(Account::kStartup)), 0.15, 1e-6);
  for (const LedgerEntry& entry : l.entries) {
    if (entry.account != Account::kUseful) continue;
    EXPECT_EQ(entry.pid, 100);
  }
}

// A GPU that computed for a second in each five, until `last`, and a job that waits for its loader meanwhile.
Recording live_until(double last, double length) {
  RecordingBuilder builder(length);
  builder.gpu(0, [=](double t) { return t <= last && static_cast<int>(t) % 20 < 4 ? 1.0 : 0.0; })
      .machine(8, 2.0)
      .process(100, 1, 0, length, 0.01)
      .process(101, 100, 0, length, 0.95)
      .context(100, 0, 1, length);
  builder.meta().stop_reason = "";
  Recording recording = builder.build();
  for (Source& source : recording.sources)
    if (source.kind == SourceKind::kProcess) source.attrs.erase("end_ns");  // of those that live nobody knows an end
  return recording;
}

Nanos total_of(const Recording& recording, Account account) {
  return ledger(testing::times_of(recording), recording.meta.start, recording.meta.end).total(account);
}

TEST(Ledger, APauseOfAJobThatGoesOnIsNoEnd) {
  Recording recording = live_until(103, 118);
  EXPECT_EQ(total_of(recording, Account::kTeardown), 0) << "it paused for 16 s before";
  EXPECT_GT(total_of(recording, Account::kInput), 80 * kSecond);
  recording.meta.stop_reason = "job_ended";
  EXPECT_NEAR(seconds(total_of(recording, Account::kTeardown)), 15, 1) << "nothing came after it";
}

TEST(Ledger, ALongerTimeWithoutKernelsThanEverMayBeTheEndOfAJobThatGoesOn) {
  EXPECT_NEAR(seconds(total_of(live_until(103, 130), Account::kTeardown)), 27, 1);
  EXPECT_EQ(total_of(live_until(3, 11), Account::kTeardown), 0)
      << "there was no pause to compare with, and it is short";
}

// 5 s of a pause at the end of a watch are no end of the job; who holds its GPU for far longer may be done.
TEST(Ledger, TheEndOfAWatchIsNoEndOfTheJob) {
  const auto teardown = [](const std::string& origin, const std::string& stop, double kernels_until) {
    RecordingBuilder builder(60);
    builder.gpu(0, [=](double t) { return t <= kernels_until ? 0.9 : 0.0; }).process(100, 1, -100, 60, 0.9);
    builder.context(100, 0, 0, 60).meta().origin = origin;
    builder.meta().stop_reason = stop;
    return seconds(ledger_of_all(builder.build()).total(Account::kTeardown));
  };
  EXPECT_EQ(teardown("record", "duration", 55), 0);
  EXPECT_EQ(teardown("record", "interrupted", 55), 0);
  EXPECT_NEAR(teardown("record", "job_ended", 55), 5, 1.1);
  EXPECT_NEAR(teardown("run", "interrupted", 55), 5, 1.1);
  EXPECT_NEAR(teardown("record", "duration", 20), 40, 1.1);
}

}  // namespace
}  // namespace headroom
