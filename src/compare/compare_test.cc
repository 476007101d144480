// SPDX-License-Identifier: Apache-2.0
#include "compare/compare.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace headroom::compare {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

Hardware box() { return {.gpus = {"A6000"}, .uuids = {"GPU-1"}, .driver = "550.1", .cores = 8}; }

// One after the other, from `begin` on.
Side batch(std::size_t tasks, double begin, double each, double steps = 100) {
  Side side{.label = "batch", .command = "train", .hardware = box(), .bytes_read = 0};
  for (std::size_t i = 0; i < tasks; ++i) {
    const double at = begin + static_cast<double>(i) * each;
    side.samples.push_back({.task = fmt::format("t{}", i),
                            .begin = at,
                            .end = at + each * (i % 2 == 0 ? 0.99 : 0.98),
                            .steps = steps,
                            .resolved = {{"lr", "0.1"}}});
  }
  return side;
}

// n runs of A and of B that take turns, in the order A B B A.
std::pair<Side, Side> turns(std::size_t n, double a_seconds, double b_seconds) {
  std::pair<Side, Side> sides;
  for (Side* side : {&sides.first, &sides.second}) side->hardware = box(), side->bytes_read = 0;
  double at = 0;
  for (std::size_t i = 0; i < n; ++i) {
    for (const bool b : i % 2 == 0 ? std::vector{false, true} : std::vector{true, false}) {
      const double jitter = 1 + 0.002 * static_cast<double>((i * 7 + (b ? 3 : 0)) % 5);
      const double took = (b ? b_seconds : a_seconds) * jitter;
      (b ? sides.second : sides.first)
          .samples.push_back(
              {.task = "train.py", .begin = at, .end = at + took, .steps = 500, .resolved = {{"lr", "0.1"}}});
      at += took + 1;
    }
  }
  return sides;
}

const ComparedReason* find(const Comparison& c, CompareReason reason) {
  const auto found =
      std::find_if(c.reasons.begin(), c.reasons.end(), [&](const auto& r) { return r.reason == reason; });
  return found == c.reasons.end() ? nullptr : &*found;
}
bool refuses(const Comparison& c, CompareReason reason) {
  const ComparedReason* found = find(c, reason);
  return found != nullptr && found->refuses && !c.comparable();
}
std::string text(const Comparison& c, CompareReason reason) {
  const ComparedReason* found = find(c, reason);
  return found ? found->text : "";
}

TEST(Compare, NothingIsNotComparable) {
  const Comparison nothing = compare({}, {});
  EXPECT_FALSE(nothing.comparable());
  EXPECT_TRUE(refuses(nothing, CompareReason::kDifferentTasks));
  EXPECT_EQ(nothing.valid_command, "headroom ab -- CMD_A --- CMD_B");
}

TEST(Compare, WhatNeverSucceededMakesNoValidPair) {
  auto [a, b] = turns(2, 10, 8);
  a.command = b.command = "train";
  for (Sample& sample : b.samples) sample.outcome = "exit_code_1";
  const Comparison failed = compare(a, b);
  EXPECT_FALSE(failed.comparable());
  EXPECT_EQ(failed.valid_command, "") << "it would fail again";
  for (const char* other : {"succeeded", "interrupted", "under_way"}) {
    b.samples[0].outcome = other;
    EXPECT_NE(compare(a, b).valid_command, "") << other;
  }
}

// What a batch of these tasks was asked for, in /work.
Side asked(Side side, const std::string& words) {
  side.batch = BatchAsked{.words = words, .folder = "/work"};
  for (const Sample& sample : side.samples) side.batch->tasks.push_back({sample.task, "task " + sample.task});
  return side;
}

TEST(Compare, AValidPairOfBatchesIsOfTheTasksThatBothCanDo) {
  Side all = asked(batch(6, 0, 10), "base.toml --per-gpu=3"), few = asked(batch(3, 500, 10, 200), "experiment.toml");
  few.samples[1].outcome = "failed";
  const Comparison c = compare(all, few, {.here = "/work"});
  EXPECT_EQ(c.valid_command,
            "headroom ab -- headroom batch --fresh --quiet --no-record --folder=ab-A.batch '--only=task t0' "
            "'--only=task t2' base.toml --per-gpu=3 --- headroom batch --fresh --quiet --no-record --folder=ab-B.batch "
            "'--only=task t0' '--only=task t2' experiment.toml");
  EXPECT_THAT(c.valid_note, HasSubstr("1 task of both is left out, as it failed"));
  EXPECT_THAT(c.valid_note, HasSubstr("Valid once a task does the same work in both"));
  // With a second attempt that succeeded it is no task that fails; where all of B's are meant, none has to be named.
  few.samples.push_back({.task = "t1", .begin = 900, .end = 910, .steps = 200});
  const std::string mended = compare(all, few, {.here = "/else"}).valid_command;
  EXPECT_THAT(mended, HasSubstr("'--only=task t1' '--only=task t2' base.toml"));
  EXPECT_THAT(mended, ::testing::EndsWith("--- env -C /work headroom batch --fresh --quiet --no-record "
                                          "--folder=ab-B.batch experiment.toml"))
      << "a flag before the file would read as an option with its value";
  few.batch->all_of_it = false;  // what it was given has more
  EXPECT_THAT(compare(all, few).valid_command, HasSubstr("'--only=task t2' experiment.toml"));
}

TEST(Compare, AValidPairOfBatchesFollowsWhatTheyWereGiven) {
  Side a = asked(batch(3, 0, 10), "x.toml"), b = asked(batch(3, 500, 10), "x.toml");
  a.hardware.uuids = b.hardware.uuids = {"GPU-1", "GPU-2"};
  b.samples[0].outcome = "interrupted";  // it refuses, and may succeed
  const Comparison edited = compare(a, b, {.here = "/work"});
  EXPECT_THAT(edited.valid_command, HasSubstr("headroom ab --gpus=GPU-1,GPU-2 -- env -C FOLDER_OF_A headroom batch "));
  EXPECT_THAT(edited.valid_note, HasSubstr("FOLDER_OF_A: a copy of its code as A ran it"));
  b.hardware.uuids = {"GPU-1"};
  const std::string fewer = compare(a, b).valid_command;
  EXPECT_THAT(fewer, HasSubstr("headroom ab --gpus=GPU-1,GPU-2 -- "));
  EXPECT_THAT(fewer, HasSubstr("--folder=ab-A.batch --gpus=GPU-1,GPU-2 "));
  EXPECT_THAT(fewer, HasSubstr("--folder=ab-B.batch --gpus=GPU-1 "));
  b.hardware.uuids = {"GPU-3"};
  EXPECT_THAT(compare(a, b).valid_command, HasSubstr("headroom ab -- ")) << "each is given the first";
  a.batch->words = b.batch->words = "", a.batch->from_stdin = b.batch->from_stdin = true;
  const Comparison lines = compare(a, b, {.here = "/work"});
  EXPECT_THAT(lines.valid_command, HasSubstr("-- headroom batch --fresh --quiet --no-record --folder=ab-A.batch "
                                             "TASKS_OF_A --- "));
  EXPECT_THAT(lines.valid_note, HasSubstr("TASKS_OF_B: a file with the lines that B had on standard input"));
}

TEST(Compare, NoPairIsMadeOfBatchesThatShareNoTaskThatWorks) {
  Side a = asked(batch(3, 0, 10), "x.toml"), b = asked(batch(3, 500, 10), "y.toml");
  EXPECT_EQ(compare(a, a).valid_command, "") << "one batch, named twice";
  Side failed = b, others = b;
  for (Sample& sample : failed.samples) sample.outcome = "exit_code_1";
  EXPECT_EQ(compare(a, failed).valid_command, "") << "they would fail again";
  for (BatchTask& task : others.batch->tasks) task.key += "'";
  for (Sample& sample : others.samples) sample.task += "'";
  EXPECT_EQ(compare(a, others).valid_command, "");
  b.samples[0].outcome = "failed", b.batch.reset();
  EXPECT_EQ(compare(a, b).valid_command, "") << "nobody knows what it was asked for";
}

TEST(Compare, InterleavedPairsGiveARatio) {
  const auto [a, b] = turns(6, 10, 8);
  const Comparison c = compare(a, b);
  ASSERT_TRUE(c.comparable()) << c.reasons.front().text;
  EXPECT_NEAR(c.ratio->value, 0.8, 0.005);
  EXPECT_TRUE(c.differs());
  EXPECT_EQ(c.pairs, 6);
  EXPECT_EQ(c.method, "6 interleaved pairs, start-up included");
  EXPECT_EQ(c.unit, "step");
  EXPECT_TRUE(c.reasons.empty());
  Side by_lines = b;
  for (Sample& sample : by_lines.samples) sample.steps_of_lines = true;
  EXPECT_EQ(compare(a, by_lines).method,
            "6 interleaved pairs, start-up included; steps as lines of output tell of them: more may have been done");
  const Comparison back = compare(b, a);
  EXPECT_NEAR(back.ratio->value * c.ratio->value, 1, 1e-12);
}

TEST(Compare, PairsMayBeNamedByWhoRanThem) {
  auto [a, b] = turns(4, 10, 8);
  for (std::size_t i = 0; i < 4; ++i)
    a.samples[i].repeat = static_cast<std::int64_t>(i), b.samples[i].repeat = static_cast<std::int64_t>(i);
  b.samples.pop_back();  // the last pair was not completed
  const Comparison c = compare(a, b);
  ASSERT_TRUE(c.comparable());
  EXPECT_EQ(c.pairs, 3);
}

TEST(Compare, TwoBatchesOfTheSameTasks) {
  const Comparison c = compare(batch(10, 0, 10), batch(10, 1000, 8));
  ASSERT_TRUE(c.comparable());
  EXPECT_NEAR(c.ratio->value, 0.8, 1e-9);
  EXPECT_GT(c.ratio->high / c.ratio->low, 1.04);  // each ran once: 1 % of either is taken for granted
  EXPECT_EQ(c.method, "10 tasks, each run by both, start-up included");
  ASSERT_NE(find(c, CompareReason::kNotInterleaved), nullptr);
  EXPECT_FALSE(find(c, CompareReason::kNotInterleaved)->refuses);
  ASSERT_NE(find(c, CompareReason::kTooFewRepeats), nullptr);
}

TEST(Compare, WhereNobodyLookedAtCachesThatIsSaid) {
  Side a = batch(10, 0, 10), b = batch(10, 1000, 8);
  EXPECT_EQ(find(compare(a, b), CompareReason::kCacheStateUnknown), nullptr) << "neither fetched anything";
  b.bytes_read.reset();
  const Comparison one = compare(a, b);
  EXPECT_TRUE(one.comparable());
  EXPECT_THAT(text(one, CompareReason::kCacheStateUnknown), HasSubstr("is not recorded"));
  a.bytes_read = 1e6, b.bytes_read = 1e9;
  EXPECT_THAT(text(compare(a, b), CompareReason::kCacheStateUnknown), HasSubstr("may have found its data in the page"));
}

TEST(Compare, OfRunsWithoutParametersItSaysHowMany) {
  const Side all = batch(36, 0, 0.69);
  Side some = batch(36, 5000, 0.83);
  some.samples[3].resolved.clear(), some.samples[20].resolved.clear();
  EXPECT_EQ(text(compare(all, some), CompareReason::kParametersUnknown),
            "2 of B's 36 runs did not record the parameters that they settled on");
  EXPECT_EQ(find(compare(all, all), CompareReason::kParametersUnknown), nullptr);
}

// Case 000: 36 windows out of 576, against 36 windows of another run.
TEST(Compare, APartOfABatchIsNotAnotherBatch) {
  Side all = batch(576, 0, 0.69);
  Side few = batch(36, 5000, 0.83, 200);  // twice the work each
  for (std::size_t i = 0; i < 576; ++i)
    all.samples[i].begin = std::floor(static_cast<double>(i) / 6) * 4.1;  // six at once
  for (std::size_t i = 0; i < 576; ++i) all.samples[i].end = all.samples[i].begin + 4.1;
  for (std::size_t i = 0; i < 36; ++i) all.samples[i * 16].task = fmt::format("t{}", i);
  for (std::size_t i = 0; i < 576; ++i)
    if (i % 16 != 0) all.samples[i].task = fmt::format("other{}", i);
  few.samples[3].outcome = few.samples[20].outcome = "failed";
  for (Sample& sample : all.samples) sample.resolved.clear();
  const Comparison c = compare(all, few);
  EXPECT_FALSE(c.comparable());
  EXPECT_THAT(text(c, CompareReason::kDifferentTasks), HasSubstr("36 of A's 576 tasks are among B's 36"));
  EXPECT_THAT(text(c, CompareReason::kInterleavedWithOtherWork), HasSubstr("A's 36 ran among 5"));
  EXPECT_THAT(text(c, CompareReason::kConcurrencyDiffersOrUnknown),
              HasSubstr("6.0 of A's tasks ran at once on average, 1.0 of B's"));
  EXPECT_THAT(text(c, CompareReason::kOutcomesDiffer), HasSubstr("2 of B's 36 runs: failed"));
  EXPECT_THAT(text(c, CompareReason::kDifferentWork), HasSubstr("A did 100 steps a run, B 200 steps"));
  EXPECT_THAT(text(c, CompareReason::kFasterWithMoreWork), HasSubstr("B did 2.0x of A's work in 20 % of its time"));
  EXPECT_THAT(text(c, CompareReason::kParametersUnknown), HasSubstr("A did not record"));
  EXPECT_NE(find(c, CompareReason::kTooFewRepeats), nullptr);
  EXPECT_EQ(c.valid_command, "") << "of one command twice nothing can be learned";
  all.command = "train --lr 1", few.command = "train --lr 2";
  EXPECT_EQ(compare(all, few).valid_command, "") << "a command is of one task, and speaks for no batch";
  EXPECT_TRUE(c.accounts.empty() && c.phases.empty() && c.metrics.empty());
  EXPECT_EQ(c.a.seconds, 0);
  EXPECT_FALSE(c.a.work);
}

TEST(Compare, EachReasonAloneRefuses) {
  const auto sides = turns(4, 10, 8);
  ASSERT_TRUE(compare(sides.first, sides.second).comparable());
  const auto with = [&](auto change) {
    auto changed = sides;
    change(changed.first, changed.second);
    const Comparison c = compare(changed.first, changed.second);
    EXPECT_FALSE(c.comparable());
    EXPECT_FALSE(c.reasons.empty());
    return c.reasons.empty() ? CompareReason::kDifferentTasks : c.reasons.front().reason;
  };
  EXPECT_EQ(with([](Side&, Side& b) {
              for (Sample& s : b.samples) s.task = "eval.py";
            }),
            CompareReason::kDifferentTasks);
  EXPECT_EQ(with([](Side&, Side& b) {
              for (Sample& s : b.samples) s.steps = 510;
            }),
            CompareReason::kDifferentWork);
  EXPECT_EQ(with([](Side&, Side& b) { b.samples[1].steps = 510; }), CompareReason::kDifferentWork);
  EXPECT_EQ(with([](Side&, Side& b) {
              for (Sample& s : b.samples) s.steps.reset();
            }),
            CompareReason::kWorkUnknown);
  EXPECT_EQ(with([](Side&, Side& b) { b.hardware.gpus = {"A100"}; }), CompareReason::kDifferentHardware);
  EXPECT_EQ(with([](Side&, Side& b) { b.hardware.driver = "560.1"; }), CompareReason::kDifferentHardware);
  EXPECT_EQ(with([](Side&, Side& b) { b.hardware.cores = 4; }), CompareReason::kDifferentHardware);
  EXPECT_EQ(with([](Side& a, Side&) { a.samples[2].outcome = "failed"; }), CompareReason::kOutcomesDiffer);
  EXPECT_EQ(with([](Side& a, Side&) { a.others = 0.1; }), CompareReason::kOtherTenants);
  EXPECT_EQ(with([](Side&, Side& b) { b.throttled = "power cap for 40 %"; }), CompareReason::kThrottled);
  EXPECT_EQ(with([](Side&, Side& b) {
              for (Sample& s : b.samples) s.end = s.begin;
            }),
            CompareReason::kConcurrencyDiffersOrUnknown);
  EXPECT_EQ(with([](Side& a, Side& b) {
              for (std::size_t i = 0; i < 4; ++i) {
                b.samples[i].end = a.samples[i].begin + b.samples[i].seconds();
                b.samples[i].begin = a.samples[i].begin;
              }
            }),
            CompareReason::kInterleavedWithOtherWork);
  EXPECT_EQ(with([](Side&, Side& b) {
              for (Sample& s : b.samples) s.resolved = {{"lr", "0.2"}};
            }),
            CompareReason::kParametersDifferUnintended);
  EXPECT_EQ(with([](Side& a, Side& b) { a.samples.resize(2), b.samples.resize(2); }), CompareReason::kTooFewRepeats);
}

TEST(Compare, WhatTheCommandsSayDifferentlyIsMeant) {
  auto [a, b] = turns(4, 10, 8);
  for (Sample& sample : a.samples) sample.asked = {{"num_workers", "0"}};
  for (Sample& sample : b.samples) {
    sample.asked = {{"num_workers", "4"}};
    sample.resolved.emplace_back("num_workers", "4");
  }
  const Comparison c = compare(a, b);
  ASSERT_TRUE(c.comparable());
  ASSERT_EQ(c.parameters.size(), 1U);
  EXPECT_EQ(c.parameters[0], (ComparedParameter{"num_workers", "0", "4", true}));
  // Somebody says what was meant: nothing else is.
  EXPECT_FALSE(compare(a, b, {.changed = {{"lr"}}}).comparable());
  EXPECT_TRUE(compare(a, b, {.changed = {{"num-workers"}}}).comparable());
}

TEST(Compare, VariablesOfTheEnvironmentAreComparedWhereBothWereRecorded) {
  auto [a, b] = turns(4, 10, 8);
  for (Sample& sample : a.samples) sample.variables = Parameters{{"OMP_NUM_THREADS", "1"}, {"NCCL_DEBUG", "WARN"}};
  EXPECT_TRUE(compare(a, b).parameters.empty()) << "of the other nobody knows";
  for (Sample& sample : b.samples) sample.variables = Parameters{{"NCCL_DEBUG", "WARN"}};
  const Comparison c = compare(a, b);
  ASSERT_TRUE(c.comparable());
  ASSERT_EQ(c.parameters.size(), 1U);
  EXPECT_EQ(c.parameters[0], (ComparedParameter{"OMP_NUM_THREADS", "1", "", true}));
}

TEST(Compare, AValidPairHasTheVariablesThatDiffer) {
  auto [a, b] = turns(1, 10, 8);
  a.command = b.command = "python train.py", a.folder = b.folder = "/work";
  for (Sample& sample : a.samples) sample.variables = Parameters{{"NCCL_DEBUG", "WARN"}, {"OMP_NUM_THREADS", "1"}};
  for (Sample& sample : b.samples) sample.variables = Parameters{{"OMP_NUM_THREADS", "2"}};
  a.samples.resize(1), b.samples.resize(1);
  const std::string pair = compare(a, b, {.here = "/else"}).valid_command;
  EXPECT_THAT(pair, HasSubstr("-- env -C /work NCCL_DEBUG=WARN OMP_NUM_THREADS=1 python train.py --- "
                              "env -C /work -u NCCL_DEBUG OMP_NUM_THREADS=2 python train.py"));
}

TEST(Compare, MoreWorkInLessTimeIsFlaggedInEitherDirection) {
  auto [a, b] = turns(4, 10, 8);
  for (Sample& sample : b.samples) sample.steps = 1000;
  EXPECT_TRUE(refuses(compare(a, b), CompareReason::kFasterWithMoreWork));
  EXPECT_TRUE(refuses(compare(b, a), CompareReason::kFasterWithMoreWork));
  for (Sample& sample : b.samples) sample.steps = 400;  // less work in less time is only different work
  const Comparison less = compare(a, b);
  EXPECT_TRUE(refuses(less, CompareReason::kDifferentWork));
  EXPECT_EQ(find(less, CompareReason::kFasterWithMoreWork), nullptr);
}

// A program that nobody counts the steps of.
Side uncounted(const std::vector<double>& begins, double seconds) {
  Side side{.command = "train", .folder = "/here", .hardware = box(), .bytes_read = 0};
  for (const double at : begins) side.samples.push_back({.task = "train.py", .begin = at, .end = at + seconds});
  return side;
}

TEST(Compare, RepeatsThatCountNothingAreComparedByTheirTime) {
  for (const By by : {By::kAuto, By::kTasks, By::kWhole}) {
    const Comparison c = compare(uncounted({0, 30, 40}, 10), uncounted({12, 20, 52}, 5), {.by = by});
    ASSERT_TRUE(c.comparable()) << c.reasons.front().text;
    EXPECT_NEAR(c.ratio->value, 0.5, 1e-9);
    EXPECT_EQ(c.unit, "run");
    EXPECT_THAT(text(c, CompareReason::kWorkUnknown), HasSubstr("taken from their having succeeded"));
  }
}

// Three runs of each that count nothing: B takes half of the time.
std::pair<Side, Side> asked_for(const Parameters& a, const Parameters& b) {
  std::pair<Side, Side> sides{uncounted({0, 30, 40}, 10), uncounted({12, 20, 52}, 5)};
  for (Sample& sample : sides.first.samples) sample.asked = a;
  for (Sample& sample : sides.second.samples) sample.asked = b;
  return sides;
}
std::string implausible(const std::pair<Side, Side>& sides, const CompareRequest& request = {}) {
  return text(compare(sides.first, sides.second, request), CompareReason::kFasterWithMoreWork);
}

TEST(Compare, MoreThatWasAskedForInLessTimeIsSaidBesideTheRatio) {
  const auto sides = asked_for({{"n_estimators", "500"}, {"num-leaves", "127"}, {"lr", "0.1"}},
                               {{"n_estimators", "1000"}, {"num-leaves", "255"}, {"lr", "0.1"}});
  const Comparison c = compare(sides.first, sides.second);
  ASSERT_TRUE(c.comparable()) << "a name is a sign and no count";
  EXPECT_EQ(text(c, CompareReason::kFasterWithMoreWork),
            "B was asked for 2.0x the n_estimators (1000 instead of 500) and 2.0x the num-leaves (255 instead of 127) "
            "and took 0.50x of A's time; nothing counts what it really did: it may have stopped early, or done "
            "something else");
  EXPECT_THAT(implausible({sides.second, sides.first}), HasSubstr("A was asked for 2.0x the n_estimators"));
}

TEST(Compare, WhatElseDiffersIsNamedWhereMoreThatWasAskedForTookLessTime) {
  const Parameters few{{"num_leaves", "127"}, {"max_depth", "9"}, {"n_estimators", "500"}, {"gpu_use_dp", "0"}},
      many{{"num_leaves", "255"}, {"max_depth", "15"}, {"n_estimators", "1000"}, {"gpu_use_dp", "1"}};
  EXPECT_EQ(implausible(asked_for(few, many)),
            "B was asked for 2.0x the n_estimators (1000 instead of 500) and 2.0x the num_leaves (255 instead of 127) "
            "and took 0.50x of A's time (what else differs may explain it: gpu_use_dp, max_depth); nothing counts what "
            "it really did: it may have stopped early, or done something else");
}

TEST(Compare, MoreThatWasAskedForIsNotSaidWhereItNeedNotBeSo) {
  const Parameters few{{"n_estimators", "500"}}, many{{"n_estimators", "1000"}};
  ASSERT_NE(implausible(asked_for(few, many)), "");
  const auto with = [](Parameters parameters, const char* name, const char* value) {
    parameters.emplace_back(name, value);
    return parameters;
  };
  EXPECT_EQ(implausible(asked_for(many, few)), "") << "less in less time";
  EXPECT_EQ(implausible(asked_for(few, {{"n_estimators", "540"}})), "") << "hardly more";
  EXPECT_EQ(implausible(asked_for(few, {{"n_estimators", "auto"}})), "");
  EXPECT_EQ(implausible(asked_for(with(few, "epochs", "9"), with(many, "epochs", "3"))), "") << "and less of another";
  for (const char* name : {"warmup_steps", "logging_steps", "save_steps", "eval_steps", "steps_per_epoch", "max_depth",
                           "gradient_accumulation_steps", "n_steps", "batch_size"})
    EXPECT_EQ(implausible(asked_for({{name, "500"}}, {{name, "1000"}})), "") << name;
  for (const char* name : {"early_stopping_rounds", "callbacks.early-stopping.patience", "n_iter_no_change", "tol"}) {
    EXPECT_EQ(implausible(asked_for(with(few, name, "50"), with(many, name, "50"))), "") << name;
    EXPECT_NE(implausible(asked_for(with(few, name, "None"), with(many, name, "None"))), "") << name << " is off";
  }
  auto printed = asked_for(few, many);
  printed.second.samples[1].resolved = {{"early_stopping", "yes"}};
  EXPECT_EQ(implausible(printed), "");
}

TEST(Compare, WhatWasDoneSpeaksForItself) {
  auto sides = asked_for({{"model.epochs", "5"}}, {{"model.epochs", "10"}});
  ASSERT_NE(implausible(sides), "");
  EXPECT_EQ(implausible(sides, {.changed = {{"lr"}}}), "") << "refused: no number of time";
  for (Sample& sample : sides.second.samples) sample.resolved = {{"epochs", "5"}};
  for (Sample& sample : sides.first.samples) sample.resolved = {{"epochs", "5"}};
  EXPECT_EQ(implausible(sides), "") << "the programs settled on the same";
  sides = asked_for({{"epochs", "5"}}, {{"epochs", "10"}});
  for (Side* side : {&sides.first, &sides.second})
    for (Sample& sample : side->samples) sample.steps = 100;
  EXPECT_EQ(implausible(sides), "") << "equal steps";
  for (Sample& sample : sides.second.samples) sample.steps = 200;
  EXPECT_THAT(implausible(sides), HasSubstr("B did 2.0x of A's work in 50 % of its time"));
}

TEST(Compare, SingleRunsThatCountNothingAreOnlyTooFew) {
  const Side a = uncounted({0}, 10), b = uncounted({20}, 5);
  const Comparison c = compare(a, b);
  EXPECT_TRUE(refuses(c, CompareReason::kTooFewRepeats));
  EXPECT_EQ(text(c, CompareReason::kTooFewRepeats),
            "A ran once, B once; 3 runs of each are the least, or one of each that counts its steps (headroom.step(), "
            "or --step REGEX for lines of output, does)");
  ASSERT_NE(find(c, CompareReason::kWorkUnknown), nullptr);
  EXPECT_FALSE(find(c, CompareReason::kWorkUnknown)->refuses) << "more runs mend it";
  EXPECT_EQ(compare(a, b, {.by = By::kWhole}).reasons, c.reasons) << "no steps are asked for";
  // Steps were asked for, and that there are none is said once.
  const Comparison by_steps = compare(a, b, {.by = By::kSteps});
  EXPECT_TRUE(refuses(by_steps, CompareReason::kWorkUnknown));
  EXPECT_EQ(find(by_steps, CompareReason::kTooFewRepeats), nullptr);
  EXPECT_THAT(text(by_steps, CompareReason::kWorkUnknown), HasSubstr("headroom.step(), or --step REGEX"));
  Side counted = b;
  counted.samples[0].steps = 100;
  const Comparison one = compare(a, counted);
  EXPECT_TRUE(refuses(one, CompareReason::kWorkUnknown));
  EXPECT_EQ(text(one, CompareReason::kWorkUnknown),
            "only B counts its steps; headroom.step(), or --step REGEX for lines of output, would in A");
}

TEST(Compare, AMeanOfRatiosIsToldFromTheRatioOfMeans) {
  auto [a, b] = turns(6, 10, 8);
  EXPECT_EQ(compare(a, b).method, "6 interleaved pairs, start-up included") << "one and the same";
  for (std::size_t i = 0; i < a.samples.size(); i += 2)
    a.samples[i].end = a.samples[i].begin + 2, b.samples[i].end = b.samples[i].begin + 1.9;
  EXPECT_THAT(compare(a, b).method,
              ContainsRegex("^6 interleaved pairs, start-up included; 0.87.* is the geometric mean of their "
                            "ratios, 0.82.* the ratio of the two times"));
}

// By itself ab takes what the commands say differently; what else differs would make it refuse the pair again.
TEST(Compare, TheCommandOfAValidPairNamesWhatDiffersWithoutBeingAskedFor) {
  Side a = uncounted({0}, 10), b = uncounted({20}, 5);
  a.samples[0].asked = {{"lr", "1"}}, b.samples[0].asked = {{"lr", "2"}};
  EXPECT_THAT(compare(a, b).valid_command, HasSubstr("headroom ab -- "));
  a.samples[0].resolved = {{"num leaves", "127"}}, b.samples[0].resolved = {{"num leaves", "255"}};
  const Comparison c = compare(a, b);
  EXPECT_THAT(c.valid_command, HasSubstr("headroom ab --changed=lr '--changed=num leaves' -- "));
  EXPECT_THAT(c.valid_note, HasSubstr("--changed says that all of these are meant to differ"));
  EXPECT_FALSE(refuses(compare(a, b, {.changed = {{"lr", "num leaves"}}}), CompareReason::kParametersDifferUnintended));
}

TEST(Compare, AValidPairOfBatchesNamesTheirFoldersBesideWhatElseDiffers) {
  Side a = asked(batch(3, 0, 10), "tasks.toml"), b = asked(batch(3, 100, 10), "tasks.toml --seed=2");
  for (Sample& sample : b.samples) sample.resolved = {{"lr", "0.2"}};
  EXPECT_THAT(compare(a, b).valid_command,
              HasSubstr("headroom ab --changed=lr --changed=folder -- env -C /work headroom batch "));
}

TEST(Compare, TheCommandOfAValidPairSaysWhereItsPartsRan) {
  Side a = uncounted({0}, 10), b = uncounted({20}, 5);
  const auto pair = [&](const std::string& here) { return compare(a, b, {.here = here}); };
  // One command in one folder: its code was edited in between.
  EXPECT_EQ(pair("/here").valid_command, "headroom ab -- env -C FOLDER_OF_A train --- env -C FOLDER_OF_B train");
  EXPECT_THAT(pair("/here").valid_note, HasSubstr("FOLDER_OF_A: a copy of its code as A ran it"));
  b.folder = "/there is";
  EXPECT_EQ(pair("/here").valid_command, "headroom ab -- train --- env -C '/there is' train");
  EXPECT_EQ(pair("/here").valid_note, "");
  b.command = "train --fast", b.folder = a.folder;
  EXPECT_EQ(pair("/here").valid_command, "headroom ab -- train --- train --fast");
  EXPECT_EQ(pair("/else").valid_command, "headroom ab -- env -C /here train --- env -C /here train --fast");
  a.virtual_gpus = "headroom sim --gpus 1xA6000";
  EXPECT_EQ(pair("/here").valid_command, "headroom ab -- train --- train --fast") << "B had others, or real ones";
  b.virtual_gpus = a.virtual_gpus;
  EXPECT_EQ(pair("/here").valid_command, "headroom sim --gpus 1xA6000 -- headroom ab -- train --- train --fast");
  // A change that is not in the program: others on the GPU, or its clocks.
  EXPECT_EQ(compare(a, b, {.mended = {CompareReason::kOtherTenants}}).valid_command, "") << "ab runs both on one GPU";
  b = a;
  EXPECT_EQ(pair("/here").valid_command, "") << "one run, named twice";
}

Side steps(double begin, std::size_t n, double each) {
  Side side{.hardware = box(), .bytes_read = 0};
  for (std::size_t i = 0; i < n; ++i) side.steps.push_back({each * (i % 3 == 0 ? 1.02 : 0.99), 1, std::nullopt});
  side.samples.push_back({.task = "train.py",
                          .begin = begin,
                          .end = begin + 5 + static_cast<double>(n) * each,
                          .steps = static_cast<double>(n),
                          .resolved = {{"lr", "0.1"}}});
  return side;
}

TEST(Compare, OneRunOfEachByItsSteps) {
  const Comparison c = compare(steps(0, 60, 0.1), steps(100, 90, 0.08));  // unequal numbers: time per step all the same
  ASSERT_TRUE(c.comparable()) << c.reasons.front().text;
  EXPECT_NEAR(c.ratio->value, 0.8, 0.001);
  EXPECT_EQ(c.unit, "step");
  EXPECT_TRUE(refuses(compare(steps(0, 29, 0.1), steps(100, 90, 0.08)), CompareReason::kTooFewRepeats));
  EXPECT_TRUE(
      refuses(compare(steps(0, 60, 0.1), steps(100, 60, 0.08), {.by = By::kTasks}), CompareReason::kTooFewRepeats));
}

TEST(Compare, StepsThatAreFewerByAWholeFactorMayHoldMore) {
  const Comparison four = compare(steps(0, 400, 0.1), steps(100, 100, 0.14));
  ASSERT_TRUE(four.comparable());
  EXPECT_THAT(text(four, CompareReason::kDifferentWork), HasSubstr("the steps of B may hold 4 times the samples"));
  EXPECT_EQ(text(compare(steps(0, 60, 0.1), steps(100, 90, 0.08)), CompareReason::kDifferentWork), "");
}

TEST(Compare, OneWholeRunOfEachAtEqualWork) {
  const Comparison c = compare(steps(0, 60, 0.1), steps(100, 60, 0.05), {.by = By::kWhole});
  ASSERT_TRUE(c.comparable());
  EXPECT_NEAR(c.ratio->value, 8.0 / 11.0, 0.001);  // 5 s of start-up in both
  EXPECT_EQ(c.unit, "run");
  EXPECT_TRUE(
      refuses(compare(steps(0, 60, 0.1), steps(100, 90, 0.05), {.by = By::kWhole}), CompareReason::kDifferentWork));
}

TEST(Compare, WholeRunsAreNotAskedForSteps) {
  const Comparison few = compare(steps(0, 12, 0.1), steps(100, 12, 0.05), {.by = By::kWhole});
  EXPECT_TRUE(refuses(few, CompareReason::kTooFewRepeats));
  EXPECT_THAT(text(few, CompareReason::kTooFewRepeats),
              HasSubstr("3 runs of each are the least, since 12 steps in 12"));
  const auto [a, b] = turns(4, 10, 8);  // repeats need none
  const Comparison c = compare(a, b, {.by = By::kWhole});
  ASSERT_TRUE(c.comparable()) << c.reasons.front().text;
  EXPECT_EQ(c.unit, "run");
  EXPECT_NEAR(c.ratio->value, 0.8, 0.005);
  EXPECT_DOUBLE_EQ(*c.a.work, 4);
}

// The same tasks one by one on one GPU, and two by two on two.
TEST(Compare, BatchesOfTheSameTasksAreComparedAsAWholeHoweverManyRanAtOnce) {
  const Side serial = batch(12, 0, 1);
  Side parallel = batch(12, 100, 0.5);
  for (Sample& sample : parallel.samples) sample.end = sample.begin + 1;
  parallel.hardware.gpus = {"A6000", "A6000"}, parallel.hardware.uuids = {"GPU-1", "GPU-2"};
  EXPECT_THAT(text(compare(serial, parallel), CompareReason::kConcurrencyDiffersOrUnknown),
              HasSubstr("--whole compares the time of all of them together"));
  const auto whole = [&] { return compare(serial, parallel, {.by = By::kWhole}); };
  const Comparison c = whole();
  ASSERT_TRUE(c.comparable()) << c.reasons.front().text;
  EXPECT_EQ(c.unit, "batch");
  EXPECT_EQ(c.method, "12 tasks, from the first start to the last end");
  EXPECT_NEAR(c.ratio->value, 6.5 / 11.98, 1e-9);
  EXPECT_LT(c.ratio->high, 0.65);
  EXPECT_NEAR(c.a.seconds, 11.98, 1e-9);
  EXPECT_THAT(text(c, CompareReason::kConcurrencyDiffersOrUnknown), HasSubstr("1.0 of A's tasks ran at once"));
  EXPECT_EQ(text(c, CompareReason::kDifferentHardware), "A had 1 x A6000, B 2 x A6000");
  parallel.hardware.gpus = {"H100"};
  EXPECT_TRUE(refuses(whole(), CompareReason::kDifferentHardware));
  parallel.hardware = serial.hardware;
  parallel.samples[3].outcome = "failed";
  EXPECT_TRUE(refuses(whole(), CompareReason::kOutcomesDiffer));
  parallel.samples[3].outcome = "succeeded";
  for (std::size_t i = 6; i < 12; ++i) parallel.samples[i].begin += 60, parallel.samples[i].end += 60;
  EXPECT_TRUE(refuses(whole(), CompareReason::kInterleavedWithOtherWork)) << "it was stopped for a minute";
}

TEST(Compare, TheOtherMeasureOfAPairStandsBesideIt) {
  const Side a = steps(0, 60, 0.1), b = steps(100, 60, 0.05);
  const Comparison by_steps = compare(a, b), whole = compare(a, b, {.by = By::kWhole});
  ASSERT_TRUE(by_steps.other && whole.other);
  EXPECT_EQ(by_steps.other->unit, "run");
  EXPECT_EQ(by_steps.other->ratio, *whole.ratio);
  EXPECT_EQ(whole.other->unit, "step");
  EXPECT_EQ(whole.other->ratio, *by_steps.ratio);
  EXPECT_EQ(compare(a, steps(100, 90, 0.05)).other, std::nullopt) << "whole runs of unequal work";
  const auto [many_a, many_b] = turns(4, 10, 8);
  EXPECT_EQ(compare(many_a, many_b).other, std::nullopt);
}

TEST(Compare, ALargerBatchIsComparedBySamples) {
  Side a = steps(0, 120, 0.1), b = steps(100, 60, 0.15);
  a.samples[0].asked = {{"batch_size", "32"}}, b.samples[0].asked = {{"batch_size", "64"}};
  const Comparison c = compare(a, b);
  ASSERT_TRUE(c.comparable());
  EXPECT_NEAR(c.ratio->value, 0.75, 0.001);
  EXPECT_THAT(c.unit, HasSubstr("sample"));
  a.samples[0].asked.clear();
  EXPECT_TRUE(refuses(compare(a, b), CompareReason::kDifferentWork));
  for (Side* side : {&a, &b}) {  // counted by the programs themselves
    for (Stretch& stretch : side->steps) stretch.seen = stretch.steps * (side == &a ? 32 : 64);
    side->samples[0].seen = *side->samples[0].steps * (side == &a ? 32 : 64);
  }
  const Comparison counted = compare(a, b);
  ASSERT_TRUE(counted.comparable());
  EXPECT_EQ(counted.unit, "sample");
  EXPECT_NEAR(counted.ratio->value, 0.75, 0.001);
}

TEST(Compare, AccountsAreTimePerUnitAndMetricsStandBeside) {
  auto [a, b] = turns(4, 10, 8);
  a.accounts = {{"computing", 20}, {"input", 16}}, b.accounts = {{"computing", 20}, {"input", 8}};
  for (std::size_t i = 0; i < 4; ++i) {
    a.samples[i].metrics = {{"accuracy", 0.97 + 0.001 * static_cast<double>(i)}};
    b.samples[i].metrics = {{"accuracy", 0.97}, {"loss", 0.1}};
  }
  const Comparison c = compare(a, b);
  ASSERT_EQ(c.accounts.size(), 2U);
  EXPECT_DOUBLE_EQ(c.accounts[0].a_seconds, 20.0 / 2000);
  EXPECT_DOUBLE_EQ(c.accounts[1].b_seconds, 8.0 / 2000);
  ASSERT_EQ(c.metrics.size(), 1U);  // a loss that only one of them prints compares with nothing
  EXPECT_NEAR(c.metrics[0].a, 0.9715, 1e-9);
  EXPECT_NEAR(c.metrics[0].a_spread.value_or(0), 0.00129, 1e-4);
}

TEST(Compare, StorageThatOneReadAndTheOtherDidNotIsSaid) {
  Side a = steps(0, 60, 0.1), b = steps(100, 60, 0.05);
  a.bytes_read = 4e9;
  const Comparison c = compare(a, b);
  EXPECT_TRUE(c.comparable());
  EXPECT_THAT(text(c, CompareReason::kCacheStateUnknown), HasSubstr("A fetched"));
  b.bytes_read = 4e9;
  EXPECT_EQ(find(compare(a, b), CompareReason::kCacheStateUnknown), nullptr);
}

TEST(Compare, FiguresAreMeansOverTheRepeatsAndPeaksTheHighest) {
  auto [a, b] = turns(2, 10, 10);
  a.figures = {{"busy", "GPU 0", 0.4, ""},
               {"peak_memory", "GPU 0", 3e9, ""},
               {"accuracy", "", 0.9, ""},
               {"busy", "GPU 0", 0.6, ""},
               {"peak_memory", "GPU 0", 1e9, ""}};
  b.figures = {
      {"busy", "GPU 0", 0.8, ""}, {"busy", "GPU 0", std::nullopt, "no reading"}, {"mean_power", "GPU 0", {}, "none"}};
  const Comparison c = compare(a, b);
  EXPECT_EQ(c.figures, (std::vector<ComparedFigure>{{"busy", "GPU 0", 0.5, std::nullopt},
                                                    {"peak_memory", "GPU 0", 3e9, std::nullopt}}));
  a.figures = b.figures = {{"duration", "", 10.0, ""}, {"busy", "GPU 0", 0.5, ""}};
  b.samples.clear();
  EXPECT_EQ(compare(a, b).figures, (std::vector<ComparedFigure>{{"busy", "GPU 0", 0.5, 0.5}}))
      << "of what may not be compared nothing tells the two times";
}

}  // namespace
}  // namespace headroom::compare
