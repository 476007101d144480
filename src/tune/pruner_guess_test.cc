// SPDX-License-Identifier: Apache-2.0
#include "tune/pruner_guess.h"

#include <gtest/gtest.h>

#include <cmath>
#include <queue>
#include <random>

#include "base/time.h"
#include "tune/pruner_text.h"
#include "tune/pruners.h"

namespace headroom::tune {
namespace {

constexpr unsigned kSeed = 20261122;

struct Shape {
  std::size_t trials = 150;
  std::int64_t steps = 60;
  std::int64_t first_step = 1;
  double startup_seconds = 20;
  double obeyed = 1;  // share of prunes that the program heeds
};

// A study as four workers would have left it: curves that fall and, for some, rise again, each trial with a pace of
// its own and steps that take now more, now less.
class Simulated {
 public:
  Simulated(const PrunerSettings& settings, const Shape& shape, unsigned seed)
      : shape_(shape), pruning_(settings, Direction::kMinimize, "simulated"), random_(seed) {
    study_.name = "simulated";
    study_.directions = {Direction::kMinimize};
    curves_.resize(shape.trials);
  }

  Study run() {
    for (std::uint32_t worker = 0; worker < 4; ++worker) begin(kSecond * worker);
    while (!due_.empty()) {
      const auto [at, trial] = due_.top();
      due_.pop();
      step(static_cast<std::size_t>(trial), at);
    }
    for (std::size_t i = 0; i < study_.trials.size(); ++i) store(study_.trials[i], curves_[i]);
    return std::move(study_);
  }

 private:
  struct Curve {
    double best = 0, fall = 0, rise = 0, pace = 0;
    std::vector<StepReport> reports;
  };

  double roll(double low, double high) { return std::uniform_real_distribution(low, high)(random_); }

  void begin(Nanos at) {
    const std::size_t number = study_.trials.size();
    if (number == shape_.trials) return;
    Trial trial;
    trial.number = static_cast<std::int64_t>(number);
    trial.start = at;
    study_.trials.push_back(trial);
    curves_[number] = {
        .best = roll(0.5, 1.5), .fall = roll(0.05, 0.5), .rise = roll(-0.01, 0.03), .pace = roll(0.7, 1.4)};
    pruning_.begin(trial.number);
    due_.emplace(at + nanos(shape_.startup_seconds * roll(0.8, 1.2) + curves_[number].pace), trial.number);
  }

  void step(std::size_t number, Nanos at) {
    Curve& curve = curves_[number];
    const auto done = static_cast<double>(curve.reports.size());
    const double value = curve.best + std::exp(-curve.fall * done) + curve.rise * done + roll(-0.05, 0.05);
    curve.reports.push_back({shape_.first_step + static_cast<std::int64_t>(curve.reports.size()), value});
    const bool prune = pruning_.report(static_cast<std::int64_t>(number), curve.reports.back().step, value);
    if (prune && roll(0, 1) <= shape_.obeyed)
      end(number, TrialState::kPruned, at);
    else if (curve.reports.size() == static_cast<std::size_t>(shape_.steps))
      end(number, TrialState::kComplete, at);
    else
      due_.emplace(at + nanos(curve.pace * roll(0.9, 1.1)), number);
  }

  void end(std::size_t number, TrialState state, Nanos at) {
    pruning_.end(static_cast<std::int64_t>(number), state);
    study_.trials[number].state = state;
    study_.trials[number].complete = at;
    begin(at + nanos(roll(0, 0.5)));
  }

  void store(Trial& trial, const Curve& curve) {
    trial.first_report = study_.reports.size();
    trial.reports = curve.reports.size();
    study_.reports.insert(study_.reports.end(), curve.reports.begin(), curve.reports.end());
    for (const double value : pruning_.rungs(trial.number))
      trial.rungs.emplace_back(static_cast<int>(trial.rungs.size()), value);
  }

  static Nanos nanos(double seconds) { return static_cast<Nanos>(seconds * 1e9); }

  Shape shape_;
  Study study_;
  Pruning pruning_;
  std::mt19937 random_;
  std::vector<Curve> curves_;
  using Due = std::pair<Nanos, std::int64_t>;
  std::priority_queue<Due, std::vector<Due>, std::greater<>> due_;
};

Study simulated(std::string_view pruner, const Shape& shape = {}, unsigned seed = kSeed) {
  return Simulated(parse_pruner(pruner).value(), shape, seed).run();
}

TEST(PrunerGuess, GivesBackWhatPrunedTheStudy) {
  for (const std::string text :
       {"NopPruner()", "MedianPruner()", "MedianPruner(n_startup_trials=10, n_warmup_steps=10)",
        "PercentilePruner(percentile=25)", "PatientPruner(MedianPruner(), patience=5)",
        "PatientPruner(None, patience=4)", "SuccessiveHalvingPruner()", "SuccessiveHalvingPruner(min_resource=1)",
        "SuccessiveHalvingPruner(min_resource=5, reduction_factor=3)", "HyperbandPruner()",
        "HyperbandPruner(max_resource=60)", "HyperbandPruner(min_resource=5, max_resource=60)",
        "PatientPruner(HyperbandPruner(max_resource=60, reduction_factor=6), patience=3)",
        "PatientPruner(SuccessiveHalvingPruner(min_resource=1), patience=2)", "ThresholdPruner(upper=2)",
        "ThresholdPruner(upper=1.2, n_warmup_steps=20)"}) {
    const PrunerGuess guess = guess_pruner(simulated(text));
    EXPECT_EQ(guess.said.text, text) << guess.said.evidence << ", seed " << kSeed;
    ASSERT_TRUE(guess.settings.has_value());
    EXPECT_EQ(pruner_text(*guess.settings), text);
    EXPECT_FALSE(guess.said.told);
  }
}

TEST(PrunerGuess, StepsFromZeroAndShortStartUpsMakeNoDifference) {
  const Shape shape{.first_step = 0, .startup_seconds = 0.1};
  for (const std::string text : {"MedianPruner()", "HyperbandPruner(max_resource=60, reduction_factor=4)"})
    EXPECT_EQ(guess_pruner(simulated(text, shape)).said.text, text);
}

TEST(PrunerGuess, TrialsThatReportOftenAreLookedAtToo) {
  const Shape shape{.trials = 60, .steps = 2000};
  EXPECT_EQ(guess_pruner(simulated("HyperbandPruner(max_resource=2000)", shape, 2)).said.text,
            "HyperbandPruner(max_resource=2000)");
}

TEST(PrunerGuess, AProgramThatHeedsHalfOfItsPrunesIsNotExplained) {
  const PrunerGuess guess = guess_pruner(simulated("MedianPruner()", {.obeyed = 0.5}));
  EXPECT_EQ(guess.said.text, "unknown");
  EXPECT_EQ(guess.settings, std::nullopt);
  EXPECT_NE(guess.said.evidence.find("no rungs are stored; the earliest prune is after 1 report, at step 1; of the"),
            std::string::npos)
      << guess.said.evidence;
}

TEST(PrunerGuess, WhatDecidesAlikeIsNotToldApart) {
  const PrunerGuess guess = guess_pruner(simulated("MedianPruner()", {.trials = 4}));
  EXPECT_EQ(guess.settings, std::nullopt);
  EXPECT_EQ(guess.said.evidence,
            "no rungs are stored; no trial that reported was pruned; NopPruner() and MedianPruner() would have decided "
            "alike");
}

TEST(PrunerGuess, RungsThatNoSettingsGiveAreStillNamed) {
  Study study = simulated("SuccessiveHalvingPruner(min_resource=1)");
  for (Trial& trial : study.trials)
    for (auto& [rung, value] : trial.rungs) value += 1;
  const PrunerGuess guess = guess_pruner(study);
  EXPECT_EQ(guess.settings, std::nullopt);
  EXPECT_TRUE(
      guess.said.evidence.starts_with("rungs are stored, as successive halving leaves them; the earliest prune"))
      << guess.said.evidence;
}

TEST(PrunerGuess, SaysWhyItCannotTell) {
  Study study = simulated("MedianPruner()");
  study.directions = {Direction::kMinimize, Direction::kMaximize};
  EXPECT_EQ(guess_pruner(study).said.evidence, "the study has several objectives, and Optuna prunes only with one");
  study.directions = {Direction::kMinimize};
  Study damaged = study;
  damaged.reports.front().step = std::numeric_limits<std::int64_t>::min();
  EXPECT_EQ(guess_pruner(damaged).settings, std::nullopt);
  for (Trial& trial : study.trials) trial.start.reset();
  EXPECT_TRUE(guess_pruner(study).said.evidence.ends_with(
      "; no trial is stored that has a time and few enough reports to be replayed"));
  for (Trial& trial : study.trials) trial.reports = 0;
  EXPECT_EQ(guess_pruner(study).said.evidence,
            "no trial reported a value, so that no pruner had anything to decide about");
  EXPECT_EQ(guess_pruner(Study{.directions = {Direction::kMinimize}}).settings, std::nullopt);
}

}  // namespace
}  // namespace headroom::tune
