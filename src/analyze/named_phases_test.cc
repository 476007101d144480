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
struct Job : RecordingBuilder {
  explicit Job(double length = 60) : RecordingBuilder(length) {
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
  const Analysis a = analyze(Job().marks(kPid, "marks", epochs("train", "validate"), {{0, 0}, {60, 600}}, 32).build());
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

TEST(NamedPhases, TheirNameTellsTheAccountOnlyWhereNothingElseDoes) {
  const auto with = [](const std::string& name) {
    return analyze(Job().marks(kPid, "nvtx", epochs("train", name)).build()).ledger;
  };
  const Nanos plain = with("between").total(Account::kValidationHost);
  EXPECT_EQ(plain, 0);
  EXPECT_NEAR(seconds(with("validate").total(Account::kValidationHost)), 15, 1.1);
  EXPECT_NEAR(seconds(with("epoch/save_checkpoint").total(Account::kCheckpoint)), 15, 1.1);
  EXPECT_EQ(with("validate").busy(), with("between").busy());
}

TEST(NamedPhases, WhatIsShorterThanItsReadingsBelongsToThePhaseAroundIt) {
  std::vector<std::pair<double, std::string>> phases;
  std::vector<std::pair<double, std::int64_t>> steps;
  for (int i = 0; i < 100; ++i) {
    phases.insert(phases.end(), {{i * 0.3, "train/load"}, {i * 0.3 + 0.1, "train"}});
    steps.insert(steps.end(), {{i * 0.3 + 0.1, i}, {i * 0.3 + 0.2, i + 1}});
  }
  phases.insert(phases.end(), {{30, "validate"}, {40, ""}});
  const Analysis a = analyze(Job().marks(kPid, "marks", phases, steps).build());
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

TEST(NamedPhases, MarksGoBeforeNvtxAndThatBeforeOutput) {
  const auto by = [](std::initializer_list<std::string> ways) {
    Job builder;
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
  Job builder;
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
  const Analysis a =
      analyze(Job().marks(kPid, "marks", {{0, "epoch 1"}, {20, "epoch 2"}, {40, "epoch 3"}, {50, "stage 7"}}).build());
  EXPECT_THAT(names(a), ElementsAre("marks: epoch N", "marks: stage 7"));
  EXPECT_EQ(named(a)[0].count, 3) << "but each is a time";
  EXPECT_EQ(named(a)[1].count, 1);
}

TEST(NamedPhases, TimesAreCountedAsTheJobCountsThem) {
  Job builder;
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

TEST(NamedPhases, StacksNameWhatNobodyMarked) {
  Job builder(40);
  for (int epoch = 0; epoch < 2; ++epoch) {
    builder.stacks(kPid, epoch * 20, epoch * 20 + 15, {"main (/w/train.py:1)", "step (/w/train.py:9)"});
    builder.stacks(
        kPid, epoch * 20 + 15, epoch * 20 + 20,
        {"main (/w/train.py:1)", "evaluate (/w/train.py:30)", "_next_data (/l/torch/utils/data/dataloader.py:1)"});
  }
  const Analysis a = analyze(builder.build());
  EXPECT_THAT(names(a), ElementsAre("stacks: validation"));
  EXPECT_EQ(named(a)[0].count, 2);
  EXPECT_NEAR(seconds(named(a)[0].total), 10, 0.5);
}

TEST(NamedPhases, ThoseOfAWindowAreOfThatWindow) {
  const Recording recording = Job().marks(kPid, "marks", epochs("train", "validate"), {{0, 0}, {60, 600}}).build();
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
  EXPECT_EQ(tiers(Job().build()), "NP");
  EXPECT_EQ(tiers(Job().marks(kPid, "nvtx", epochs("a", "b")).build()), "NPX");
  EXPECT_EQ(tiers(Job().marks(kPid, "output", epochs("a", "b")).build()), "NPL");
}

TEST(NamedPhases, NoNamesNoPhases) { EXPECT_THAT(named(analyze(Job().build())), IsEmpty()); }

TEST(NamedPhases, TheSlicesCoverTheTimeAsBefore) {
  const Analysis a = analyze(Job().marks(kPid, "marks", epochs("train", "validate")).build());
  Nanos at = a.window.begin;
  for (const Slice& slice : a.devices[0].slices) {
    EXPECT_EQ(slice.begin, at);
    EXPECT_GE(slice.named, 0);
    at = slice.end;
  }
  EXPECT_EQ(at, a.window.end);
  EXPECT_EQ(a.ledger.busy(), analyze(Job().build()).ledger.busy());
}

}  // namespace
}  // namespace headroom
