// SPDX-License-Identifier: Apache-2.0
#include "analyze/named_phases.h"

#include <gmock/gmock.h>

#include "analyze/testing.h"

namespace headroom {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::RecordingBuilder;

constexpr std::int64_t kPid = 100;

// Epochs of 20 s: 15 s of training at 80 % busy, 5 s of validation at none.
struct MarkedJob : RecordingBuilder {
  explicit MarkedJob(double length = 60) : RecordingBuilder(length) {
    gpu(0, [](double t) { return std::fmod(t - 0.001, 20) < 15 ? 0.8 : 0.0; });
    process(kPid, 1, 0, length, 0.9).context(kPid, 0, 0, length);
  }
};

std::vector<std::pair<double, std::string>> epochs(const std::string& train, const std::string& validate) {
  std::vector<std::pair<double, std::string>> phases;
  for (int epoch = 0; epoch < 3; ++epoch) {
    phases.emplace_back(epoch * 20, train);
    phases.emplace_back(epoch * 20 + 15, validate);
  }
  return phases;
}

std::vector<Phase> named(const Analysis& a) {
  std::vector<Phase> phases;
  for (const Phase& phase : a.phases)
    if (!phase.named_by.empty()) phases.push_back(phase);
  return phases;
}

std::vector<std::string> names(const Analysis& a) {
  std::vector<std::string> list;
  for (const Phase& phase : named(a)) list.push_back(phase.named_by + ": " + phase.name);
  return list;
}

TEST(NamedPhases, EachHasItsTimeItsShareOfTheGpuAndItsSteps) {
  const Analysis a =
      analyze(MarkedJob().marks(kPid, "marks", epochs("train", "validate"), {{0, 0}, {60, 600}}, 32).build());
  ASSERT_THAT(names(a), ElementsAre("marks: train", "marks: validate"));
  const Phase train = named(a)[0], validate = named(a)[1];
  EXPECT_EQ(train.count, 3);
  EXPECT_NEAR(seconds(train.total), 45, 0.01);
  EXPECT_NEAR(seconds(validate.total), 15, 0.01);
  EXPECT_NEAR(*train.gpu_util_ratio, 0.8, 0.03);
  EXPECT_NEAR(*validate.gpu_util_ratio, 0, 0.03);
  EXPECT_NEAR(seconds(train.period.value()), 20, 0.01);
  EXPECT_NEAR(*train.steps, 450, 1);
  ASSERT_TRUE(a.work);
  EXPECT_NEAR(*a.work->steps_per_second, 10, 0.01);
  EXPECT_NEAR(*a.work->samples_per_second, 320, 0.1);
}

// Two programs of a script, one after the other: what the first one printed last was of it, and not of the start of the
// second.
TEST(NamedPhases, WhatAProcessPrintedLastIsNoPhaseOfTheNextOne) {
  const auto named_of = [](double first_ends) {
    RecordingBuilder builder(60);
    builder.gpu(0, [](double t) { return (t > 5 && t < 29) || t > 45 ? 0.9 : 0.0; });
    builder.process(50, 1, 0, 60, 0.01).process(100, 50, 0, first_ends, 0.9);
    builder.process(101, 50, 30, 60, 0.9).context(100, 0, 0, first_ends).context(101, 0, 30, 60);
    builder.marks(50, "output", {{5, "epoch"}, {45, "validation"}});
    const Analysis a = analyze(builder.build());
    Nanos starting = 0;
    for (const Slice& slice : a.devices[0].slices)
      if (slice.pid == 101 && slice.named >= 0 && a.phases[static_cast<std::size_t>(slice.named)].name == "epoch")
        starting += slice.end - slice.begin;
    return seconds(starting);
  };
  EXPECT_EQ(named_of(30), 0);
  EXPECT_GT(named_of(31), 10) << "the one that printed it still runs";
}

TEST(NamedPhases, SamplesAreCountedFromAFirstRowWithoutAny) {
  Recording recording = MarkedJob().marks(kPid, "marks", epochs("train", "validate"), {{0, 0}, {60, 600}}, 32).build();
  for (Track& track : recording.tracks)
    for (Column& column : track.columns)
      if (column.metric == Metric::kSamples) {
        column.absent.resize(column.values.size());
        column.absent[0] = static_cast<std::uint8_t>(Absent::kNotSupported);
      }
  const Analysis a = analyze(recording);
  ASSERT_TRUE(a.work && a.work->samples_per_second);
  EXPECT_NEAR(*a.work->samples_per_second, 320, 0.1);
}

TEST(NamedPhases, TheirNameTellsTheAccountOnlyWhereNothingElseDoes) {
  const auto with = [](const std::string& name) {
    return analyze(MarkedJob().marks(kPid, "nvtx", epochs("train", name)).build()).ledger;
  };
  const Nanos plain = with("between").total(Account::kValidationHost);
  EXPECT_EQ(plain, 0);
  EXPECT_NEAR(seconds(with("validate").total(Account::kValidationHost)), 15, 1.1);
  EXPECT_NEAR(seconds(with("val").total(Account::kValidationHost)), 15, 1.1);
  EXPECT_NEAR(seconds(with("epoch/save_checkpoint").total(Account::kCheckpoint)), 15, 1.1);
  EXPECT_EQ(with("validate").busy(), with("between").busy());
}

TEST(NamedPhases, TheInnermostNameThatSaysAnythingTellsTheAccount) {
  const auto told = [](const std::string& name, Account account) {
    return seconds(analyze(MarkedJob().marks(kPid, "nvtx", epochs("train", name)).build()).ledger.total(account));
  };
  EXPECT_NEAR(told("epoch/validate/metrics", Account::kValidationHost), 15, 1.1);
  EXPECT_NEAR(told("epoch 3/evaluation/forward/loss", Account::kValidationHost), 15, 1.1);
  EXPECT_NEAR(told("validate/save", Account::kCheckpoint), 15, 1.1);
  EXPECT_NEAR(told("checkpoint/validate", Account::kValidationHost), 15, 1.1);
  EXPECT_EQ(told("evaluate_settings/train/step", Account::kValidationHost), 0) << "that trains";
}

TEST(NamedPhases, WhatIsShorterThanItsReadingsBelongsToThePhaseAroundIt) {
  std::vector<std::pair<double, std::string>> phases;
  std::vector<std::pair<double, std::int64_t>> steps;
  for (int i = 0; i < 100; ++i) {
    phases.insert(phases.end(), {{i * 0.3, "train/load"}, {i * 0.3 + 0.1, "train"}});
    steps.insert(steps.end(), {{i * 0.3 + 0.1, i}, {i * 0.3 + 0.2, i + 1}});
  }
  phases.insert(phases.end(), {{30, "validate"}, {40, ""}});
  const Analysis a = analyze(MarkedJob().marks(kPid, "marks", phases, steps).build());
  ASSERT_THAT(names(a), ElementsAre("marks: train", "marks: validate", "marks: train/load"));
  const Phase train = named(a)[0], load = named(a)[2];
  EXPECT_NEAR(seconds(train.total), 30, 0.01);
  EXPECT_EQ(train.count, 1);
  EXPECT_NEAR(seconds(load.total), 10, 0.01);
  EXPECT_EQ(load.count, 100);
  EXPECT_EQ(load.gpu_util_ratio, std::nullopt) << "no reading is so short";
  EXPECT_NEAR(*load.steps, 0, 0.01);
  EXPECT_NEAR(*train.steps, 100, 0.01);
}

TEST(NamedPhases, TheirStepsTogetherAreThoseOfTheJob) {
  // As the recorder writes them: the counts where steps pause and where they go on, and some of those in between.
  std::vector<std::pair<double, std::string>> phases;
  std::vector<std::pair<double, std::int64_t>> steps;
  for (int i = 0; i < 4; ++i) {
    const double at = i * 10;
    phases.insert(phases.end(), {{at, "epoch/train"}, {at + 7, "epoch/save"}});
    steps.insert(steps.end(), {{at + 0.01, i * 50}, {at + 3, i * 50 + 20}, {at + 6.9, i * 50 + 50}});
  }
  phases.emplace_back(40, "");
  const Analysis a = analyze(MarkedJob().marks(kPid, "marks", phases, steps).build());
  ASSERT_THAT(names(a), ElementsAre("marks: epoch/train", "marks: epoch/save"));
  EXPECT_NEAR(seconds(named(a)[0].total), 28, 0.01);
  EXPECT_NEAR(*named(a)[0].steps, 200, 0.01);
  EXPECT_NEAR(*named(a)[1].steps, 0, 0.01);
  EXPECT_NEAR(named(a)[0].steps_shared, 0, 0.01);
  EXPECT_NEAR(named(a)[1].steps_shared, 0, 0.01);
}

// All steps end with "train", of which the recorder has one count a second only.
TEST(NamedPhases, StepsBetweenTwoCountsAreSaidToBeShared) {
  std::vector<std::pair<double, std::string>> phases;
  std::vector<std::pair<double, std::int64_t>> steps;
  for (int i = 0; i < 100; ++i) phases.insert(phases.end(), {{i * 0.4, "load"}, {i * 0.4 + 0.1, "train"}});
  for (int i = 0; i <= 40; ++i) steps.emplace_back(i, i * 5 / 2);
  phases.emplace_back(40, "");
  const Analysis a = analyze(MarkedJob().marks(kPid, "marks", phases, steps).build());
  const auto phase = [&](const std::string& name) {
    for (const Phase& one : named(a))
      if (one.name == name) return one;
    return Phase{};
  };
  EXPECT_NEAR(*phase("load").steps, 25, 2) << "in proportion to time; truth: none";
  EXPECT_GT(phase("load").steps_shared, 25);
  EXPECT_GT(phase("train").steps_shared, 25);
}

TEST(NamedPhases, MarksGoBeforeNvtxAndThatBeforeOutput) {
  const auto by = [](std::initializer_list<std::string> ways) {
    MarkedJob builder;
    for (const std::string& via : ways) builder.marks(kPid, via, epochs("a", "b"));
    return named(analyze(builder.build())).at(0).named_by;
  };
  EXPECT_EQ(by({"output", "nvtx", "marks"}), "marks");
  EXPECT_EQ(by({"output", "nvtx"}), "nvtx");
  EXPECT_EQ(by({"output"}), "output");
}

TEST(NamedPhases, OutputOfTheJobSpeaksForTheProcessBelowIt) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.5; })
      .process(50, 1, 0, 60, 0.0)
      .process(kPid, 50, 0, 60, 0.9)
      .context(kPid, 0, 0, 60)
      .marks(50, "output", epochs("train", "validate"));
  EXPECT_THAT(names(analyze(builder.build())), ElementsAre("output: train", "output: validate"));
}

TEST(NamedPhases, WhereNobodyIsKnownToHoldTheDeviceTheJobsOwnAreTaken) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.5; }).process(kPid, 1, 0, 60, 0.9);  // the driver lists no process
  const Analysis a = analyze(builder.marks(kPid, "marks", epochs("train", "validate")).build());
  EXPECT_THAT(names(a), ElementsAre("marks: train", "marks: validate"));
}

TEST(NamedPhases, OfSeveralThatCountStepsOneIsToldAndNoPhaseHasAny) {
  MarkedJob builder;
  builder.process(200, 1, 0, 60, 0.5).context(200, 0, 0, 60);
  builder.marks(kPid, "marks", epochs("train", "validate"), {{0, 0}, {60, 600}}, 32);
  builder.marks(200, "marks", epochs("train", "validate"), {{0, 0}, {60, 300}}, 32);
  const Analysis a = analyze(builder.build());
  ASSERT_TRUE(a.work);
  EXPECT_EQ(a.work->processes, 2);
  EXPECT_NEAR(*a.work->steps_per_second, 10, 0.01);
  for (const Phase& phase : named(a)) EXPECT_EQ(phase.steps, std::nullopt);
}

TEST(NamedPhases, NumbersDoNotMakePhases) {
  const Analysis a = analyze(
      MarkedJob().marks(kPid, "marks", {{0, "epoch 1"}, {20, "epoch 2"}, {40, "epoch 3"}, {50, "stage 7"}}).build());
  EXPECT_THAT(names(a), ElementsAre("marks: epoch N", "marks: stage 7"));
  EXPECT_EQ(named(a)[0].count, 3) << "but each is a time";
  EXPECT_EQ(named(a)[1].count, 1);
}

TEST(NamedPhases, TimesAreCountedAsTheJobCountsThem) {
  MarkedJob builder;
  builder.marks(kPid, "output", {{0, "epoch"}, {15, "validate"}, {18, "epoch"}, {20, "epoch"}, {40, "epoch"}});
  Recording recording = builder.build();
  const std::vector<Phase> uncounted = named(analyze(recording));
  EXPECT_EQ(uncounted.at(0).count, 2) << "recorded before anybody counted";
  for (Track& track : recording.tracks)
    if (track.lists.size() == 5)
      for (const auto& [row, nth] : {std::pair(0, 1), {2, 1}, {3, 2}, {4, 3}})
        track.lists[static_cast<std::size_t>(row)].value = nth;
  const std::vector<Phase> phases = named(analyze(recording));
  ASSERT_EQ(phases.size(), 2U);
  EXPECT_EQ(phases[0].name, "epoch");
  EXPECT_EQ(phases[0].count, 3) << "what goes on after the validation is the same epoch";
  EXPECT_NEAR(seconds(phases[0].total), 57, 0.01);
  EXPECT_NEAR(seconds(phases[0].period.value()), 20, 0.01);
}

TEST(NamedPhases, WhatGoesOnAroundAnotherIsOneTime) {
  using Row = std::tuple<double, std::string, std::int32_t>;
  const auto counted = [](const std::vector<Row>& rows) {
    MarkedJob builder;
    std::vector<std::pair<double, std::string>> phases;
    for (const auto& [at, name, nth] : rows) phases.emplace_back(at, name);
    Recording recording = builder.marks(kPid, "marks", phases).build();
    for (Track& track : recording.tracks)
      for (std::size_t row = 0; track.lists.size() == rows.size() && row < rows.size(); ++row)
        track.lists[row].value = std::get<2>(rows[row]);
    std::map<std::string, std::int64_t> counts;
    for (const Phase& phase : named(analyze(recording))) counts[phase.name] = phase.count;
    return counts;
  };
  using Counts = std::map<std::string, std::int64_t>;
  EXPECT_EQ(
      counted({{0, "epoch", 1}, {10, "epoch/train", 1}, {20, "epoch", 1}, {30, "epoch", 2}, {40, "epoch/train", 2}}),
      (Counts{{"epoch", 2}, {"epoch/train", 2}}));
  EXPECT_EQ(counted({{0, "epoch 1", 1}, {10, "epoch 1/train", 1}, {20, "epoch 1", 1}, {30, "epoch 2", 1}}),
            (Counts{{"epoch N", 2}, {"epoch 1/train", 1}}))
      << "each of its own name for the first time";
  EXPECT_EQ(counted({{0, "epoch", 1}, {10, "epoch/load", 1}, {10.2, "epoch", 1}, {30, "epoch", 2}}),
            (Counts{{"epoch", 2}, {"epoch/load", 1}}));
}

// The job's own code between two saves, such as its fsync, is of the checkpoint; what follows the last one is not.
TEST(NamedPhases, WhatLiesAmongTheLooksOfAPhaseIsOfIt) {
  MarkedJob builder(40);
  const std::vector<std::string> keeps{"main (/w/train.py:1)", "keep (/w/train.py:30)"};
  std::vector<std::string> saves = keeps;
  saves.emplace_back("save (/l/torch/serialization.py:1)");
  for (const double begin : {15.0, 35.0}) {
    builder.stacks(kPid, begin - 15, begin, {"main (/w/train.py:1)", "step (/w/train.py:9)"});
    for (double at = begin; at < begin + 3.9; at += 0.4)
      builder.stacks(kPid, at, at + 0.15, saves).stacks(kPid, at + 0.15, at + 0.4, keeps);
    builder.stacks(kPid, begin + 4, begin + 5, keeps);
  }
  const Analysis a = analyze(builder.build());
  EXPECT_THAT(names(a), ElementsAre("stacks: checkpoint"));
  EXPECT_NEAR(seconds(a.ledger.total(Account::kCheckpoint)), 2 * 3.75, 0.6) << "a reading is a second";
}

// What is packed before the first kernel is data, whichever function packs it.
TEST(NamedPhases, ACheckpointIsSavedAfterAKernelOnly) {
  const auto saved_from = [](double begin) {
    RecordingBuilder builder(40);
    builder.gpu(0, [](double t) { return t <= 10 ? 0.0 : 0.9; }).process(kPid, 1, 0, 40, 0.9).context(kPid, 0, 1, 40);
    const std::vector<std::string> steps{"main (/w/train.py:1)", "step (/w/train.py:9)"};
    builder.stacks(kPid, 0, begin, steps);
    builder.stacks(kPid, begin, begin + 8.5, {"main (/w/train.py:1)", "save (/l/torch/serialization.py:1)"});
    builder.stacks(kPid, begin + 8.5, 40, steps);
    return names(analyze(builder.build()));
  };
  EXPECT_THAT(saved_from(2), IsEmpty());
  EXPECT_THAT(saved_from(20), ElementsAre("stacks: checkpoint"));
}

TEST(NamedPhases, StacksNameWhatNobodyMarked) {
  MarkedJob builder(40);
  for (int epoch = 0; epoch < 2; ++epoch) {
    builder.stacks(kPid, epoch * 20, epoch * 20 + 15, {"main (/w/train.py:1)", "step (/w/train.py:9)"});
    builder.stacks(
        kPid, epoch * 20 + 15, epoch * 20 + 20,
        {"main (/w/train.py:1)", "evaluate (/w/train.py:30)", "_next_data (/l/torch/utils/data/dataloader.py:1)"});
  }
  const Analysis a = analyze(builder.build());
  EXPECT_THAT(names(a), ElementsAre("stacks: validation"));
  EXPECT_EQ(named(a)[0].count, 2);
  EXPECT_NEAR(seconds(named(a)[0].total), 10, 0.03) << "a look is 50 ms";
}

TEST(NamedPhases, ThoseOfAWindowAreOfThatWindow) {
  const Recording recording =
      MarkedJob().marks(kPid, "marks", epochs("train", "validate"), {{0, 0}, {60, 600}}).build();
  const Nanos start = recording.meta.start;
  const Analysis a = analyze(recording, {start + 10 * kSecond, start + 20 * kSecond});
  ASSERT_THAT(names(a), ElementsAre("marks: train", "marks: validate"));
  EXPECT_NEAR(seconds(named(a)[0].total), 5, 0.01);
  EXPECT_EQ(named(a)[0].count, 1);
  EXPECT_NEAR(*named(a)[0].steps, 50, 0.1);
  EXPECT_THAT(named(analyze(recording, {start, start})), IsEmpty());
}

TEST(NamedPhases, ADeviceWithoutAKernelThatNobodyHeldHasNone) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.5; }).gpu(1, [](double) { return 0.0; }).process(kPid, 1, 0, 60, 0.9);
  const Analysis a = analyze(builder.marks(kPid, "marks", epochs("train", "validate")).build());
  for (const Phase& phase : named(a)) EXPECT_EQ(phase.device, 0U);
  EXPECT_EQ(named(a).size(), 2U);
}

TEST(NamedPhases, AWayInWhichNothingWasSaidIsNoEvidence) {
  const auto tiers = [](Recording recording) {
    recording.meta.tiers = "NPXL";
    return analyze(recording).meta.tiers;
  };
  EXPECT_EQ(tiers(MarkedJob().build()), "NP");
  EXPECT_EQ(tiers(MarkedJob().marks(kPid, "nvtx", epochs("a", "b")).build()), "NPX");
  EXPECT_EQ(tiers(MarkedJob().marks(kPid, "output", epochs("a", "b")).build()), "NPL");
}

TEST(NamedPhases, OfPhasesThatReadingsCannotPlaceNoShareIsSaid) {
  const auto told = [](double length, double util_in_it) {
    RecordingBuilder builder(60);  // a reading a second
    std::vector<std::pair<double, std::string>> phases;
    for (double t = 0.7; t < 50; t += 10) phases.insert(phases.end(), {{t, "train"}, {t + 10 - length, "checkpoint"}});
    phases.emplace_back(50.7, "train");
    builder.gpu(0, [=](double t) { return std::fmod(t - 0.7, 10) <= 10 - length ? 0.8 : util_in_it; })
        .process(kPid, 1, 0, 60, 0.9)
        .context(kPid, 0, 0, 60)
        .marks(kPid, "marks", phases);
    for (const Phase& phase : named(analyze(builder.build())))
      if (phase.name == "checkpoint") return phase.gpu_util_ratio;
    ADD_FAILURE() << "no such phase";
    return std::optional<double>();
  };
  EXPECT_EQ(told(1.6, 0.3), std::nullopt) << "none of them lies in it as a whole";
  EXPECT_NEAR(told(4, 0.4).value(), 0.4, 0.01);
  EXPECT_EQ(told(4, 0.0), 0) << "kernels of the reading at its edge were before it";
}

TEST(NamedPhases, AHalfSecondHasItsShareWithTheDriversRing) {
  RecordingBuilder builder(20, 0.16);  // as far apart as the ring's
  std::vector<std::pair<double, std::string>> phases;
  for (double t = 0.25; t < 19; t += 1.5) phases.insert(phases.end(), {{t, "train"}, {t + 1, "validate"}});
  phases.emplace_back(19.75, "");
  builder.gpu(0, [](double) { return 0.97; }).process(kPid, 1, 0, 20, 0.9).context(kPid, 0, 0, 20);
  const Analysis a = analyze(builder.marks(kPid, "marks", phases).build());
  ASSERT_THAT(names(a), ElementsAre("marks: train", "marks: validate"));
  EXPECT_NEAR(named(a)[1].gpu_util_ratio.value(), 0.97, 0.001);
}

TEST(NamedPhases, WhereNothingWasReadNoShareIsSaid) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double t) { return t <= 40 ? 1.0 : 0.0; }).process(kPid, 1, 0, 60, 0.9);
  Recording recording = builder.marks(kPid, "marks", {{0, "train"}, {40, "save"}, {60, ""}}).build();
  const auto share_of_saving = [&] { return named(analyze(recording)).at(1).gpu_util_ratio; };
  EXPECT_EQ(share_of_saving(), 0) << "zero is a reading";
  for (const SourceId id : recording.all(SourceKind::kGpu))
    for (Column& column : recording.tracks[static_cast<std::size_t>(id)].columns) {
      column.absent.resize(column.values.size(), 0);
      std::fill(column.absent.begin() + 40, column.absent.end(), static_cast<std::uint8_t>(Absent::kNotSampled));
    }
  EXPECT_EQ(share_of_saving(), std::nullopt);
}

TEST(NamedPhases, NoNamesNoPhases) { EXPECT_THAT(named(analyze(MarkedJob().build())), IsEmpty()); }

TEST(NamedPhases, TheSlicesCoverTheTimeAsBefore) {
  const Analysis a = analyze(MarkedJob().marks(kPid, "marks", epochs("train", "validate")).build());
  Nanos at = a.window.begin;
  for (const Slice& slice : a.devices[0].slices) {
    EXPECT_EQ(slice.begin, at);
    EXPECT_GE(slice.named, 0);
    at = slice.end;
  }
  EXPECT_EQ(at, a.window.end);
  EXPECT_EQ(a.ledger.busy(), analyze(MarkedJob().build()).ledger.busy());
}

}  // namespace
}  // namespace headroom
