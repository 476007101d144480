// SPDX-License-Identifier: Apache-2.0
#include "analyze/stack_evidence.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "analyze/testing.h"

namespace headroom {
namespace {

using testing::RecordingBuilder;

const std::vector<std::string> kFetch{
    "train (/u/train.py:1)", "fetch (/x/site-packages/torch/utils/data/_utils/fetch.py:1)", "decode (/u/data.py:3)"};
const std::vector<std::string> kForward{"train (/u/train.py:1)", "Net.forward (/u/net.py:2)"};
const std::vector<std::string> kOther{"train (/u/train.py:1)", "features (/u/train.py:9)"};
const std::vector<std::string> kSync{"train (/u/train.py:1)",
                                     "synchronize (/x/site-packages/torch/cuda/__init__.py:1)"};
const std::vector<std::string> kLock{"main (/u/train.py:1)", "wait (/usr/lib/python3.11/threading.py:1)"};
const std::vector<std::string> kSave{"train (/u/train.py:1)", "save (/x/site-packages/torch/serialization.py:1)"};
const std::vector<std::string> kImport{"<module> (/u/train.py:1)", "_find_and_load (<frozen importlib._bootstrap>:1)",
                                       "<module> (/x/site-packages/torch/__init__.py:1)"};

// One process that holds GPU 0 from second 0 to `length`, with a busy share per second.
struct StackedJob : RecordingBuilder {
  StackedJob(double length, const std::function<double(double)>& util, double cpu = 1.0) : RecordingBuilder(length) {
    gpu(0, util).process(7, 1, 0, length, cpu).context(7, 0, 1, length);
  }
};

double seconds_at(const Ledger& ledger, Account account, const std::string& where) {
  double sum = 0;
  for (const LedgerEntry& entry : ledger.entries)
    if (entry.account == account &&
        (where.empty() || (entry.where >= 0 && ledger.places[static_cast<std::size_t>(entry.where)] == where)))
      sum += seconds(entry.ns);
  return sum;
}

Ledger ledger_of(RecordingBuilder&& builder) { return analyze(builder.build()).ledger; }
Ledger ledger_of(RecordingBuilder& builder) { return analyze(builder.build()).ledger; }

TEST(StackEvidence, LooksAreFoundWhereverTheyLie) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<ListRow> looks(random() % 40);
    Nanos at = static_cast<Nanos>(random() % 100);
    for (ListRow& look : looks) look.at = at += static_cast<Nanos>(random() % (random() % 8 == 0 ? 1'000'000 : 5));
    for (int i = 0; i < 100; ++i) {
      const Nanos begin = looks.empty() || i % 3 == 0
                              ? static_cast<Nanos>(random() % 200)
                              : looks[random() % looks.size()].at + static_cast<Nanos>(i % 3) - 1;
      const Nanos end = begin + static_cast<Nanos>(random() % 300) - 20;
      const auto is_within = [&](const ListRow& look) { return look.at > begin && look.at <= end; };
      const auto within = looks_within(looks, begin, end);
      ASSERT_EQ(static_cast<std::ptrdiff_t>(within.size()), std::count_if(looks.begin(), looks.end(), is_within));
      ASSERT_TRUE(std::all_of(within.begin(), within.end(), is_within));
    }
  }
}

// One thread's rows are taken where they lie; those of several, and what comes twice at one instant, are chosen from.
TEST(StackEvidence, ThereIsOneLookForEachInstant) {
  const auto looks_of = [](RecordingBuilder& builder) {
    const Recording recording = builder.build();
    const StackView view = stack_view(recording, stacks::Families());
    std::vector<std::string> places;
    double counted = 0;
    for (const auto& [process, looks] : view.looks)
      for (const ListRow& look : looks.all()) places.push_back(view.kind_of(look).where);
    for (const double count : view.count) counted += count;
    EXPECT_EQ(counted, static_cast<double>(places.size()));
    return places;
  };
  StackedJob one(20, [](double) { return 1.0; });
  one.stacks(7, 0, 5, kOther);
  const std::size_t once = looks_of(one).size();
  EXPECT_GT(once, 50U);
  StackedJob twice(20, [](double) { return 1.0; });
  twice.stacks(7, 0, 5, kOther).stacks(7, 5, 5.05, kFetch).stacks(7, 5, 5.05, kOther);  // the last two at one instant
  const std::vector<std::string> chosen = looks_of(twice);
  EXPECT_EQ(chosen.size(), once + 1);
  EXPECT_EQ(chosen.back(), "decode (data.py)");
  StackedJob two(20, [](double) { return 1.0; });
  two.stacks(7, 0, 5, kLock).stacks(7, 0, 5, kOther, 8);
  EXPECT_EQ(looks_of(two), std::vector<std::string>(once, "features (train.py)"));
}

// Who waits for a worker's pipe does not wait for a thread that sleeps; who waits for a lock may.
TEST(StackEvidence, AThreadThatSleepsIsNotWhatOneWaitsForThatWaitsForAProcess) {
  const auto named = [](const std::string& file) {
    StackedJob builder(20, [](double t) { return t <= 10 ? 1.0 : t <= 19 ? 0.0 : 1.0; });
    builder.stacks(7, 0, 20, {"train (/u/train.py:1)", "wait (/usr/lib/python3.11/" + file + ":1)"});
    builder.stacks(7, 0, 20, {"heartbeat (/u/train.py:9)"}, 8);
    const Ledger ledger = ledger_of(builder);
    return std::pair(seconds_at(ledger, Account::kHostCode, "train (train.py)") +
                         seconds_at(ledger, Account::kInput, "train (train.py)"),
                     seconds_at(ledger, Account::kHostCode, "heartbeat (train.py)"));
  };
  EXPECT_NEAR(named("multiprocessing/connection.py").first, 9, 0.11);
  EXPECT_NEAR(named("threading.py").second, 9, 0.11);
}

TEST(StackEvidence, NamesAccountAndFunctionOfIdleTime) {
  StackedJob builder(20, [](double t) { return t <= 10 ? 1.0 : t <= 19 ? 0.0 : 1.0; });
  builder.stacks(7, 10, 15, kFetch).stacks(7, 15, 19, kOther);
  const Ledger ledger = ledger_of(builder);
  EXPECT_NEAR(seconds_at(ledger, Account::kInput, "decode (data.py)"), 5, 0.11);
  EXPECT_NEAR(seconds_at(ledger, Account::kHostCode, "features (train.py)"), 4, 0.11);
  EXPECT_EQ(ledger.total(Account::kUnexplained), 0);
}

TEST(StackEvidence, NeverChangesHowMuchWasBusy) {
  const auto util = [](double t) { return 0.1 * (static_cast<int>(t) % 10); };
  StackedJob without(40, util);
  StackedJob with(40, util);
  for (int i = 0; i < 40; ++i) with.stacks(7, i, i + 0.5, kFetch).stacks(7, i + 0.5, i + 1, kForward);
  EXPECT_EQ(ledger_of(with).busy(), ledger_of(without).busy());
  EXPECT_EQ(ledger_of(with).budget(), ledger_of(without).budget());
}

// Half of each second in the loader, half in the step, and the device idle for half of it.
TEST(StackEvidence, TheIdlePartOfAReadingIsLookedForWhereNoKernelCanRun) {
  StackedJob builder(20, [](double) { return 0.5; });
  for (int i = 0; i < 20; ++i) builder.stacks(7, i, i + 0.5, kForward).stacks(7, i + 0.5, i + 1, kFetch);
  const Ledger ledger = ledger_of(builder);
  EXPECT_NEAR(seconds_at(ledger, Account::kInput, "decode (data.py)"), 9.5, 0.6);
  EXPECT_LT(seconds_at(ledger, Account::kHostCode, ""), 0.6);
}

TEST(StackEvidence, WhatWaitsForKernelsIsIdleLast) {
  StackedJob builder(20, [](double) { return 0.7; });
  for (int i = 0; i < 20; ++i) builder.stacks(7, i, i + 0.7, kSync).stacks(7, i + 0.7, i + 1, kOther);
  const Ledger ledger = ledger_of(builder);
  EXPECT_NEAR(seconds_at(ledger, Account::kHostCode, "features (train.py)"), 5.7, 0.4);
  EXPECT_LT(seconds_at(ledger, Account::kSync, ""), 0.4);
}

TEST(StackEvidence, OfEqualsTheIdlePartTakesTheSameShare) {
  StackedJob builder(20, [](double) { return 0.6; });
  const std::vector<std::string> more{"train (/u/train.py:1)", "prepare (/u/train.py:20)"};
  for (int i = 0; i < 20; ++i) builder.stacks(7, i, i + 0.25, kOther).stacks(7, i + 0.25, i + 1, more);
  const Ledger ledger = ledger_of(builder);
  const double one = seconds_at(ledger, Account::kHostCode, "features (train.py)");
  const double other = seconds_at(ledger, Account::kHostCode, "prepare (train.py)");
  EXPECT_NEAR(other / one, 3, 0.2);
}

TEST(StackEvidence, WhileTheMainThreadWaitsAnotherOneTells) {
  StackedJob builder(20, [](double t) { return t <= 10 ? 1.0 : t <= 19 ? 0.0 : 1.0; });
  builder.stacks(7, 10, 19, kLock).stacks(7, 10, 19, kOther, 8).stacks(7, 10, 19, kLock, 9);
  EXPECT_NEAR(seconds_at(ledger_of(builder), Account::kHostCode, "features (train.py)"), 9, 0.11);
}

// PyTorch imports much of itself for its first optimizer, when the model has long been on the GPU.
TEST(StackEvidence, AnImportAfterAFirstKernelIsStartUp) {
  StackedJob job(20, [](double t) { return t <= 5 || t > 15 ? 1.0 : 0.0; });
  job.stacks(7, 0, 5, kForward).stacks(7, 5, 12, kImport).stacks(7, 12, 15, kOther).stacks(7, 15, 20, kForward);
  const Ledger ledger = ledger_of(job);
  EXPECT_NEAR(seconds_at(ledger, Account::kStartup, "import torch"), 7, 0.3);
  EXPECT_EQ(seconds_at(ledger, Account::kHostCode, "import torch"), 0);
}

TEST(StackEvidence, AStartupIsNamedByItsImports) {
  StackedJob builder(20, [](double t) { return t <= 10 ? 0.0 : 1.0; });
  builder.stacks(7, 0, 6, kImport).stacks(7, 6, 10, kOther);
  const Ledger ledger = ledger_of(builder);
  EXPECT_NEAR(seconds_at(ledger, Account::kStartup, "import torch"), 6, 0.6);
  EXPECT_NEAR(seconds_at(ledger, Account::kStartup, "features (train.py)"), 4, 0.6);
}

TEST(StackEvidence, AfterTheLastKernelACheckpointIsOneStill) {
  StackedJob builder(20, [](double t) { return t <= 10 ? 1.0 : 0.0; });
  builder.stacks(7, 10, 15, kSave).stacks(7, 15, 20, kOther);
  const Ledger ledger = ledger_of(builder);
  EXPECT_NEAR(seconds_at(ledger, Account::kCheckpoint, "train (train.py)"), 5, 0.6);
  EXPECT_NEAR(seconds_at(ledger, Account::kTeardown, "features (train.py)"), 5, 0.6);
}

TEST(StackEvidence, AValidationAfterTheLastKernelIsOneStill) {
  StackedJob builder(20, [](double t) { return t <= 10 ? 1.0 : 0.0; });
  builder.stacks(7, 10, 20, {"main (/u/train.py:1)", "validate (/u/train.py:9)"});
  EXPECT_NEAR(seconds_at(ledger_of(builder), Account::kValidationHost, "validate (train.py)"), 10, 0.6);
}

TEST(StackEvidence, WhatEndsOncePythonHasEndedIsNoLongerWhatPythonDid) {
  const std::vector<std::string> validate{"train (/u/train.py:1)", "validate (/u/train.py:5)"};
  StackedJob after_kernels(14, [](double t) { return t <= 4 ? 1.0 : 0.0; });
  Ledger ledger = ledger_of(after_kernels.stacks(7, 0, 4, kForward).stacks(7, 4, 9, validate));
  EXPECT_NEAR(seconds_at(ledger, Account::kValidationHost, ""), 5, 0.5);
  EXPECT_NEAR(seconds_at(ledger, Account::kTeardown, ""), 5, 0.5);
  StackedJob blurred(14, [](double t) { return t <= 4 || t > 13 ? 1.0 : 0.0; });  // which says so late
  ledger = ledger_of(blurred.stacks(7, 0, 4, kForward).stacks(7, 4, 12.1, validate));
  EXPECT_NEAR(seconds_at(ledger, Account::kValidationHost, ""), 8, 0.5);
}

// A process that writes 20 MB in every other second, for a tenth of it, while its GPU does nothing.
Ledger writes_now_and_then(const std::vector<std::string>& save, bool also_between) {
  RecordingBuilder builder(22);
  builder.gpu(0, [](double t) { return t <= 1 || t > 21 ? 1.0 : 0.0; });
  builder.process({7, 1, 0, 22, 0.1, true, {{Metric::kWriteBytes, 1, std::nullopt}}}).context(7, 0, 1, 22);
  for (int i = 1; i < 21; ++i) {
    const bool writes = i % 2 == 0;
    builder.stacks(7, i, i + 0.9, writes || also_between ? kOther : kLock);
    builder.stacks(7, i + 0.9, i + 1, writes ? save : also_between ? kOther : kLock);
  }
  Recording recording = builder.build();
  for (Track& track : recording.tracks)
    for (Column& column : track.columns)
      if (column.metric == Metric::kWriteBytes)
        for (std::size_t row = 0; row < column.values.size(); ++row)
          column.values[row] = 20'000'000 * static_cast<std::int64_t>((row + 1) / 2);
  return analyze(recording).ledger;
}

// "dump" is no name that tells of writing: that it is seen only while the process writes does.
TEST(StackEvidence, WhatIsSeenAsOftenWithoutWritingDidNotWrite) {
  const std::vector<std::string> dump{"train (/u/train.py:1)", "dump (/u/train.py:30)"};
  for (const auto& save : {kSave, dump}) {
    const Ledger ledger = writes_now_and_then(save, true);
    EXPECT_NEAR(seconds_at(ledger, Account::kCheckpoint, ""), 1, 0.3);
    EXPECT_EQ(seconds_at(ledger, Account::kCheckpoint, "features (train.py)"), 0);
    EXPECT_NEAR(seconds_at(ledger, Account::kHostCode, "features (train.py)"), 19, 0.3);
  }
}

// The driver's ring reads more often than the counters are read that say that the process wrote.
TEST(StackEvidence, AStackThatNamesACheckpointWroteWhatItsSecondsCountersSay) {
  const auto written = [](const std::vector<std::string>& save) {
    RecordingBuilder builder(12);
    builder.gpu(0, [](double t) { return t <= 1 || t > 11 ? 1.0 : 0.0; });
    const SourceId gpu = *builder.sink().recording().find(SourceKind::kGpu, "GPU-0");
    const SourceId ring = builder.sink().add_source({SourceKind::kGpuUtilRing, "GPU-0", gpu, {}});
    for (int i = 1; i <= 72; ++i)  // six a second
      builder.sink().add_row(ring, RecordingBuilder::at(i / 6.0),
                             std::array{testing::cell(Metric::kGpuUtil, i <= 6 || i > 66 ? 10000 : 0)});
    builder.process({7, 1, 0, 12, 0.1, true, {{Metric::kWriteBytes, 20'000'000, std::nullopt}}}).context(7, 0, 1, 12);
    for (int i = 1; i < 11; ++i) builder.stacks(7, i, i + 0.9, kOther).stacks(7, i + 0.9, i + 1, save);
    return seconds_at(analyze(builder.build()).ledger, Account::kCheckpoint, "");
  };
  EXPECT_NEAR(written(kSave), 1, 0.5);
  EXPECT_NEAR(written(kLock), 10, 0.5) << "nothing says who else wrote";
}

// A tenth of a second of each write is too short for most looks.
TEST(StackEvidence, ASingleLookAtWhatWroteIsEnoughToTakeItFromWhatGoesOnAnyway) {
  RecordingBuilder builder(22);
  builder.gpu(0, [](double t) { return t <= 1 || t > 21 ? 1.0 : 0.0; });
  builder.process({7, 1, 0, 22, 0.1, true, {{Metric::kWriteBytes, 1, std::nullopt}}}).context(7, 0, 1, 22);
  builder.stacks(7, 1, 10.93, kOther).stacks(7, 10.93, 10.99, {"train (/u/train.py:1)", "dump (/u/train.py:30)"});
  builder.stacks(7, 10.99, 21, kOther);
  Recording recording = builder.build();
  for (Track& track : recording.tracks)
    for (Column& column : track.columns)
      if (column.metric == Metric::kWriteBytes)
        for (std::size_t row = 0; row < column.values.size(); ++row)
          column.values[row] = track.at[row] > RecordingBuilder::at(10.5) ? 20'000'000 : 0;
  const Ledger ledger = analyze(recording).ledger;
  EXPECT_LT(seconds_at(ledger, Account::kCheckpoint, ""), 0.3);
  EXPECT_GT(seconds_at(ledger, Account::kCheckpoint, ""), 0);
}

// What saves a model waits for the disk itself once torch.save has returned.
TEST(StackEvidence, WhatGoesWithWritingWroteBesideWhatNamesACheckpoint) {
  const auto written = [](bool has_interpreter) {
    RecordingBuilder builder(22);
    builder.gpu(0, [](double t) { return t <= 1 || t > 21 ? 1.0 : 0.0; });
    builder.process({7, 1, 0, 22, 0.1, true, {{Metric::kWriteBytes, 1, std::nullopt}}}).context(7, 0, 1, 22);
    builder.stacks({7, 1, 11, kOther, 0, true});
    for (int i = 11; i < 21; ++i) {
      builder.stacks({7, 1.0 * i, i + 0.5, kOther, 0, true}).stacks({7, i + 0.5, i + 0.6, kSave, 0, true});
      builder.stacks({7, i + 0.6, i + 1.0, {"train (/u/train.py:1)", "keep (/u/train.py:30)"}, 0, has_interpreter});
    }
    Recording recording = builder.build();
    for (Track& track : recording.tracks)
      for (Column& column : track.columns)
        if (column.metric == Metric::kWriteBytes)
          for (std::size_t row = 0; row < column.values.size(); ++row)
            column.values[row] =
                20'000'000 * std::max<std::int64_t>(0, (track.at[row] - RecordingBuilder::at(11)) / kSecond);
    return seconds_at(analyze(recording).ledger, Account::kCheckpoint, "");
  };
  EXPECT_NEAR(written(false), 5, 0.6);
  EXPECT_NEAR(written(true), 1, 0.6) << "it computes";
}

TEST(StackEvidence, WhatIsSeenOnlyWhileItWritesMayHaveWritten) {
  const Ledger ledger = writes_now_and_then(kOther, false);
  EXPECT_NEAR(seconds_at(ledger, Account::kCheckpoint, "features (train.py)"), 10, 1.1);
  const Ledger always = writes_now_and_then(kOther, true);  // nothing else can have written
  EXPECT_NEAR(seconds_at(always, Account::kCheckpoint, "features (train.py)"), 10, 1.1);
}

TEST(StackEvidence, WhatNoStackCoversIsLeftToTheOthers) {
  const auto util = [](double t) { return t <= 10 ? 1.0 : t <= 19 ? 0.0 : 1.0; };
  StackedJob builder(20, util);
  builder.stacks(7, 0, 5, kForward);
  const Ledger with = ledger_of(builder), without = ledger_of(StackedJob(20, util));
  EXPECT_EQ(with.entries, without.entries);
}

// Nothing of Python was seen for the pause: it was in a prompt or a library's own loop, not where the job was before.
TEST(StackEvidence, APauseInWhichNothingWasSeenIsNotWhatLiesBesideIt) {
  const auto sync = [](bool seen) {
    StackedJob job(
        100, [](double t) { return std::fmod(t - 0.01, 10) < 7 ? 1.0 : 0.0; }, 0.01);
    for (int i = 0; i < 100; i += 10) {
      job.stacks(7, i, i + 7, kSync);
      if (seen) job.stacks(7, i + 7, i + 10, kSync);
    }
    return seconds(ledger_of(job).total(Account::kSync));
  };
  EXPECT_LT(sync(false), 2);
  EXPECT_GT(sync(true), 25);
}

}  // namespace
}  // namespace headroom
