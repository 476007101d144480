// SPDX-License-Identifier: Apache-2.0
#include "tune/pruner_guess.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tune/pruner_candidates.h"
#include "tune/pruner_text.h"
#include "tune/pruners.h"
#include "tune/study_events.h"

namespace headroom::tune {

namespace {

// Reports over which candidates are held against the study: first all of them over a few, then the best over more. Far
// more than it takes to tell them apart.
constexpr std::size_t kFirstLook = 1500, kSecondLook = 10000, kFinalists = 24;
constexpr std::size_t kTrialsAtLeast = 12, kMostReports = 60000;  // where trials report often, so many all the same
constexpr double kWrong = 0.03, kPrunesWrong = 0.25;              // at most, where settings are taken as known
constexpr std::int64_t kFew = 20, kSome = 2;                      // of more prunes than a few, some may be wrong

// One candidate against what happened.
struct Score {
  std::int64_t decisions = 0, right = 0;    // of reports
  std::int64_t prunes = 0, prunes_hit = 0;  // that happened
  std::int64_t prunes_more = 0;             // that did not
  std::int64_t trials = 0, rungs_right = 0;

  [[nodiscard]] std::int64_t wrong() const { return decisions - right + trials - rungs_right; }
  // Most reports are no prunes: these alone would make a pruner that never prunes look right. Prunes of successive
  // halving hang on the order of reports, which is an estimate; when a trial reaches its rungs does not, and tells
  // more.
  [[nodiscard]] bool nearly_all(bool with_rungs) const {
    const auto few = [](std::int64_t wrong, std::int64_t all, double share) {
      return static_cast<double>(wrong) <= share * static_cast<double>(all);
    };
    const std::int64_t prunes_wrong = prunes - prunes_hit + prunes_more;
    return few(decisions - right, decisions, kWrong) && few(trials - rungs_right, trials, kWrong) &&
           (few(prunes_wrong, prunes, with_rungs ? kPrunesWrong : kWrong) || (prunes > kFew && prunes_wrong <= kSome));
  }
};

// What the last report of a trial that failed or runs was answered is not known.
bool is_known(const Trial& trial, std::size_t report) {
  return report + 1 < trial.reports || trial.state == TrialState::kPruned || trial.state == TrialState::kComplete;
}

bool same_rungs(std::span<const double> ours, const Trial& trial) {
  return std::ranges::equal(ours, trial.rungs, {}, {}, [](const auto& rung) { return rung.second; });
}

// Stops where more is wrong than `most_wrong`.
Score score(const PrunerSettings& settings, const Study& study, const std::vector<StudyEvent>& timeline,
            std::int64_t most_wrong) {
  Score score;
  Pruning pruning(settings, study.directions.front(), study.name);
  for (const StudyEvent& event : timeline) {
    const Trial& trial = study.trials[event.trial];
    if (event.kind == StudyEvent::Kind::kBegin) {
      pruning.begin(trial.number);
    } else if (event.kind == StudyEvent::Kind::kEnd) {
      pruning.end(trial.number, trial.state);
    } else {
      const StepReport& report = reports_of(study, trial)[event.report];
      const bool ours = pruning.report(trial.number, report.step, report.value);
      const bool last = event.report + 1 == trial.reports;
      if (last) {
        ++score.trials;
        score.rungs_right += same_rungs(pruning.rungs(trial.number), trial);
      }
      if (!is_known(trial, event.report)) continue;
      const bool theirs = last && trial.state == TrialState::kPruned;
      ++score.decisions;
      score.right += ours == theirs;
      score.prunes += theirs;
      score.prunes_hit += ours && theirs;
      score.prunes_more += ours && !theirs;
    }
    if (score.wrong() > most_wrong) break;
  }
  return score;
}

struct Scored {
  PrunerSettings settings;
  Score score;
};

// The best of the candidates, kFinalists at most, the best one first.
std::vector<Scored> ranked(const std::vector<PrunerSettings>& candidates, const Study& study, std::size_t reports) {
  const auto timeline = study_events(study, reports);
  const auto wrong = [](const Scored& s) { return s.score.wrong(); };
  std::vector<Scored> best;
  for (const PrunerSettings& settings : candidates) {
    const bool full = best.size() == kFinalists;
    const std::int64_t most = full ? wrong(best.back()) - 1 : std::numeric_limits<std::int64_t>::max();
    Scored scored{settings, score(settings, study, timeline, most)};
    if (wrong(scored) > most) continue;
    if (full) best.pop_back();
    best.insert(std::ranges::upper_bound(best, wrong(scored), {}, wrong), std::move(scored));
  }
  return best;
}

// Whether they differ in what any study tells; of resources and start-ups there are often several that decide alike.
bool differ(const PrunerSettings& a, const PrunerSettings& b) {
  return a.kind != b.kind || a.patience != b.patience || a.reduction_factor != b.reduction_factor ||
         a.percentile != b.percentile;
}

// The best; or the one with the fewest settings of those that differ from it in start-up and warm-up only, and where
// the estimated order of some reports explains the rest.
const Scored& simplest(const std::vector<Scored>& all) {
  const Scored& best = all.front();
  if (best.settings.kind != PrunerKind::kMedian && best.settings.kind != PrunerKind::kPercentile) return best;
  const auto unlikely = [&](const Scored& s) {
    const bool same = !differ(s.settings, best.settings) && s.score.wrong() <= best.score.wrong() + kSome;
    return same ? pruner_text(s.settings).size() : std::string::npos;
  };
  return *std::ranges::min_element(all, {}, unlikely);
}

std::string traces_text(const PruningTraces& traces) {
  std::string text = traces.rungs ? "rungs are stored, as successive halving leaves them" : "no rungs are stored";
  if (!traces.pruned) return text + "; no trial that reported was pruned";
  return text + fmt::format("; the earliest prune is after {} report{}, at step {}", *traces.fewest_reports,
                            *traces.fewest_reports == 1 ? "" : "s", *traces.earliest_step);
}

std::string score_text(const Score& score, const Study& study) {
  const auto reporting = std::ranges::count_if(study.trials, [](const Trial& t) { return t.reports > 0; });
  std::string text = fmt::format(
      "replayed over {} of the {} trials that reported, it agrees with what happened after "
      "{} of {} reports",
      score.trials, reporting, score.right, score.decisions);
  if (score.prunes > 0) text += fmt::format(", {} of {} prunes among them", score.prunes_hit, score.prunes);
  return text;
}

PrunerGuess unknown(std::string evidence) {
  return {.said = {.text = "unknown", .told = false, .evidence = std::move(evidence)}, .settings = {}};
}

// How many reports of the first trials to take, of `usual` ones where trials are short.
std::size_t look(const Study& study, std::size_t usual) {
  std::size_t reports = 0;
  for (const Trial& trial : std::span(study.trials).first(std::min(study.trials.size(), kTrialsAtLeast)))
    reports += trial.reports;
  return std::max(usual, std::min(reports, kMostReports));
}

PrunerGuess guess(const Study& study, const PruningTraces& traces) {
  std::vector<PrunerSettings> finalists;
  for (const Scored& s : ranked(pruner_candidates(study, traces), study, look(study, kFirstLook)))
    finalists.push_back(s.settings);
  const std::vector<Scored> all = ranked(finalists, study, look(study, kSecondLook));
  const Scored& best = simplest(all);
  const std::string said = traces_text(traces) + "; ";
  if (best.score.decisions == 0)
    return unknown(said + "no trial is stored that has a time and few enough reports to be replayed");
  if (!best.score.nearly_all(traces.rungs) && best.score.prunes_hit == 0)
    return unknown(said + "no setting that was tried prunes where the study did");
  if (!best.score.nearly_all(traces.rungs))
    return unknown(said + fmt::format("of the settings tried {} comes nearest: {} of {} prunes given back, {} added",
                                      pruner_text(best.settings), best.score.prunes_hit, best.score.prunes,
                                      best.score.prunes_more));
  std::string alike;
  for (const Scored& other : all) {
    if (&other == &best || other.score.wrong() > best.score.wrong()) continue;
    if (differ(other.settings, best.settings))
      return unknown(said + fmt::format("{} and {} would have decided alike", pruner_text(best.settings),
                                        pruner_text(other.settings)));
    if (alike.empty()) alike = "; some other settings would decide alike: " + pruner_text(other.settings);
  }
  return {.said = {.text = pruner_text(best.settings),
                   .told = false,
                   .evidence = said + score_text(best.score, study) + alike},
          .settings = best.settings};
}

}  // namespace

PrunerGuess guess_pruner(const Study& study) {
  if (study.directions.size() != 1) return unknown("the study has several objectives, and Optuna prunes only with one");
  if (std::ranges::none_of(study.trials, [](const Trial& t) { return t.reports > 0; }))
    return unknown("no trial reported a value, so that no pruner had anything to decide about");
  constexpr std::int64_t kLatestStep = std::int64_t{1} << 40;
  if (std::ranges::any_of(study.reports, [](const StepReport& r) { return r.step < 0 || r.step > kLatestStep; }))
    return unknown("some reports have steps below 0, or so large that nothing counts them");
  return guess(study, pruning_traces(study));
}

}  // namespace headroom::tune
