// SPDX-License-Identifier: Apache-2.0
#include "tune/study_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/human.h"
#include "base/median.h"
#include "tune/gpu_share.h"
#include "tune/robust_line.h"
#include "tune/standstill.h"
#include "tune/timeline.h"
#include "tune/workers.h"

namespace headroom::tune {

namespace {

constexpr double kNanos = 1e9;
constexpr std::size_t kMostReplayed = 100'000;  // of the trials that are replayed, if none is pruned
constexpr std::size_t kFewestEnded = 8;         // trials that ended: fewer say nothing of how trials go

bool ended(const Trial& trial) {
  return is_finished(trial.state) && trial.start && trial.complete && *trial.complete >= *trial.start;
}

std::size_t count_open(const Study& study) {
  return static_cast<std::size_t>(std::count_if(study.trials.begin(), study.trials.end(), [](const Trial& trial) {
    return trial.state == TrialState::kRunning;
  }));
}

// What a replay has to do for a trial that goes all the way: its begin, its start-up and its reports.
std::size_t most_events(const std::vector<const Trial*>& trials) {
  std::size_t longest = 0;
  for (const Trial* trial : trials) longest = std::max(longest, trial->reports);
  return longest + 2;
}

bool feasible(const Trial& trial) {
  return std::none_of(trial.constraints.begin(), trial.constraints.end(), [](double c) { return c > 0; });
}

std::vector<const Trial*> trials_that_ended(const Study& study) {
  std::vector<const Trial*> trials;
  for (const Trial& trial : study.trials) {
    if (ended(trial)) trials.push_back(&trial);
  }
  std::stable_sort(trials.begin(), trials.end(), [](const Trial* a, const Trial* b) {
    return a->start != b->start ? *a->start < *b->start : a->number < b->number;
  });
  return trials;
}

// Begins and ends on a clock that stops where the study stood still.
void set_times(StudyModel& model, const Study& study, const StudyOptions& options, const StudyReport& facts) {
  const Nanos zero = *model.trials.front()->start;
  for (const Trial* trial : model.trials) {
    TimedTrial timed{.begin = static_cast<double>(*trial->start - zero) / kNanos,
                     .end = static_cast<double>(*trial->complete - zero) / kNanos,
                     .reports = trial->reports,
                     .startup = std::nullopt,
                     .relative = 1};
    if (const auto i = static_cast<std::size_t>(trial - study.trials.data()); i < facts.step_time.relative.size())
      timed.relative = facts.step_time.relative[i];
    if (const auto seen = options.measured.find(trial->number); seen != options.measured.end()) {
      timed.startup = seen->second.startup_seconds;
    }
    model.times.push_back(timed);
  }
  const std::vector<Standstill> stills = standstills(model.times);
  double still = 0;
  for (const Standstill& one : stills) still += one.end - one.begin;
  for (TimedTrial& timed : model.times) {
    timed.begin = without(stills, timed.begin);
    timed.end = without(stills, timed.end);
    model.seconds = std::max(model.seconds, timed.end);
  }
  if (still > 0) {
    model.assumptions.push_back(
        fmt::format("The study stood still for {} in all; that time is left out.", human_duration(to_nanos(still))));
  }
}

void set_presence(StudyModel& model, const ParallelismFacts& parallelism) {
  if (!parallelism.workers_told && !parallelism.fewer.empty()) {
    model.present = present(model.times, parallelism.fewer.front().second, kPause * model.between);
    model.workers = parallelism.fewer.back().second;
    model.assumptions.push_back(
        fmt::format("There were {} at first and {} in the end: the calibration has it so; the study as it is and its "
                    "changes have those that were left.",
                    count_of(parallelism.fewer.front().second, "worker"), model.workers));
    return;
  }
  model.present = present(model.times, model.workers, kPause * model.between);
  if (std::all_of(model.present.begin(), model.present.end(), [&](std::int64_t n) { return n == model.workers; }))
    return;
  model.assumptions.push_back(fmt::format(
      "Not all of the {} were there all the time: the calibration has it so; the study as it is and its changes have "
      "them all.",
      count_of(model.workers, "worker")));
}

void set_trials(StudyModel& model, const Study& study) {
  std::vector<std::vector<StepReport>> curves;
  for (const Trial* trial : model.trials) {
    const auto reports = reports_of(study, *trial);
    ReplayTrial& made = model.observed.emplace_back();
    made.number = trial->number;
    made.curve.assign(reports.begin(), reports.end());
    made.ends = trial->state;
    ++model.states[static_cast<std::size_t>(trial->state)];
    curves.push_back(made.curve);
    if (trial->state != TrialState::kComplete) continue;
    if (!made.curve.empty()) model.lengths.push_back(made.curve.size());
    if (feasible(*trial) && !trial->values.empty() && !std::isnan(trial->values.front())) {
      made.value = trial->values.front();
    }
  }
  model.curves.emplace(std::move(curves), model.direction);
}

// The best value of a trial that completed. False: there is none.
bool set_target(StudyModel& model) {
  bool found = false;
  for (const ReplayTrial& trial : model.observed) {
    if (!trial.value) continue;
    const bool better =
        model.direction == Direction::kMaximize ? *trial.value > model.target : *trial.value < model.target;
    if (!found || better) model.target = *trial.value;
    found = true;
  }
  return found && std::isfinite(model.target);
}

// By the recording's share of time in which a kernel ran: the share that gives it, with so many trials computing.
double share_from_busy(const std::vector<double>& computing, double busy) {
  double low = 0, high = 1;
  for (int i = 0; i < 40; ++i) {
    const double middle = 0.5 * (low + high);
    double sum = 0;
    for (std::size_t k = 1; k < computing.size(); ++k) {
      sum += computing[k] * gpu_busy(static_cast<std::int64_t>(k), middle);
    }
    (sum < busy ? low : high) = middle;
  }
  return 0.5 * (low + high);
}

void set_kernel_share(StudyModel& model, const StudyOptions& options, std::optional<double> startup) {
  if (options.kernel_share) {
    model.kernel_share = std::clamp(*options.kernel_share, 0.01, 1.0);
    model.assumptions.push_back(fmt::format("A trial's kernels run for {} of its steps when it is alone, as told.",
                                            human_percent(model.kernel_share)));
  } else if (options.recording && options.recording->gpu_busy) {
    model.kernel_share =
        std::clamp(share_from_busy(computing_shares(model.times, startup), *options.recording->gpu_busy), 0.01, 1.0);
    model.assumptions.push_back(fmt::format(
        "A trial's kernels run for {} of its steps when it is alone: so that the GPU is busy for {}, as recorded.",
        human_percent(model.kernel_share), human_percent(*options.recording->gpu_busy)));
  } else {
    model.assumptions.push_back(fmt::format(
        "Nothing says for how much of a step its kernels run: utilisation here is the share of time in which at least "
        "one trial is {}, which is the most it can be.",
        startup ? "past its start-up" : "open"));
  }
}

// How far trials slow each other down, in words: the range that the durations leave open.
std::string contention_text(const std::vector<StepTimes>& ways) {
  double best = ways.front().fits;
  for (const StepTimes& way : ways) best = std::max(best, way.fits);
  double total = 0, low = -1, high = 0, sum = 0;
  for (const StepTimes& way : ways) total += std::exp(way.fits - best);
  for (const StepTimes& way : ways) {
    if (sum < 0.95 * total) high = way.contended;
    sum += std::exp(way.fits - best);
    if (low < 0 && sum > 0.05 * total) low = way.contended;
  }
  if (high - low > 0.6) {
    return "How far trials slow each other down does not show in their durations: the replays try everything between "
           "not at all and as on a GPU that each would fill alone.";
  }
  return fmt::format(
      "Trials slow each other down as if each had the GPU for {:.0f} to {:.0f} % of its steps and they took turns: "
      "that "
      "fits their durations.",
      100 * low, 100 * high);
}

void set_host(StudyModel& model, const StudyOptions& options) {
  model.cores = options.cores;
  model.loader_workers = options.loader_workers.value_or(0);
  if (!options.cores) {
    model.assumptions.push_back("The host's cores are not known and limit nothing here.");
  } else {
    model.assumptions.push_back(
        fmt::format("A start-up and a trial's own process keep a core busy each, of {:g} (--cores, else this "
                    "machine's); a loader worker anything from "
                    "none to a whole one.",
                    *options.cores));
  }
}

// Where later steps take longer: the power of the number of reports with which lengths of trials rise.
void set_growth(StudyModel& model, const StudyReport& facts) {
  constexpr double kMost = 4;
  if (model.startup_known || facts.step_time.seconds || facts.step_time.direction.empty()) return;
  std::vector<std::pair<double, double>> points;
  for (const TimedTrial& timed : model.times)
    if (timed.reports > 0 && timed.end > timed.begin)
      points.emplace_back(std::log(static_cast<double>(timed.reports)), std::log(timed.end - timed.begin));
  const auto line = theil_sen(points);
  if (!line) return;
  model.growth = std::clamp(line->slope, 1.0, kMost);
  for (TimedTrial& timed : model.times)
    timed.relative = std::pow(std::max(1.0, static_cast<double>(timed.reports)), model.growth - 1);
  model.assumptions.push_back(fmt::format(
      "Later steps take longer: the first k of a trial take k^{:.2g} times as long as its first one.", model.growth));
}

void set_times_of_steps(StudyModel& model, const StudyOptions& options, const StudyReport& facts) {
  std::optional<double> startup;
  if (facts.startup.inside_seconds) startup = facts.startup.inside_seconds->value;
  model.startup_known = startup.has_value();
  set_growth(model, facts);
  set_kernel_share(model, options, startup);
  const std::optional<double> share = model.kernel_share < 1 ? std::optional(model.kernel_share) : std::nullopt;
  model.ways = step_times(model.times, share, startup);
  const auto best = std::max_element(model.ways.begin(), model.ways.end(),
                                     [](const StepTimes& a, const StepTimes& b) { return a.fits < b.fits; });
  if (startup) model.ways = step_times(model.times, share, best->startup);  // again: it says who computed when
  model.assumptions.push_back(contention_text(model.ways));
}

// Whether a process takes trial after trial: by the workers that a journal names, which are threads of one each; else
// by how soon the next trial begins.
bool is_one_process(const StudyModel& model) {
  constexpr std::size_t kEach = 2;
  std::set<std::uint32_t> workers;
  for (const Trial* trial : model.trials) {
    if (!trial->worker) return model.between <= kProgramStart;
    workers.insert(*trial->worker);
  }
  return kEach * workers.size() <= model.trials.size();
}

}  // namespace

std::size_t most_reports(const StudyModel& model) { return model.trials.size() * most_events(model.trials); }

Result<StudyModel> study_model(const Study& study, const StudyOptions& options, const StudyReport& facts) {
  if (study.directions.size() > 1)
    return fail(Errc::kInvalidInput, "it has several objectives, and so no best value to reach");
  StudyModel model;
  model.name = study.name;
  if (!study.directions.empty()) model.direction = study.directions.front();
  model.trials = trials_that_ended(study);
  if (model.trials.size() < kFewestEnded) {
    return fail(Errc::kInvalidInput, fmt::format("{} ended with a begin and an end; a replay needs {}",
                                                 count_of(model.trials.size(), "trial"), kFewestEnded));
  }
  if (const std::size_t open = count_open(study); open > 0) {
    model.assumptions.push_back(
        fmt::format("{} that had not ended {} left out.", count_of(open, "trial"), open == 1 ? "is" : "are"));
  }
  const std::size_t ended = model.trials.size(),
                    most = std::max(kFewestEnded, kMostReplayed / most_events(model.trials));
  if (ended > most) {  // the first ones: a pruner's decisions hang on all that came before
    model.trials.resize(most);
    model.assumptions.push_back(fmt::format("The first {} of the {} trials that ended are replayed.",
                                            human_count(static_cast<std::int64_t>(most)),
                                            human_count(static_cast<std::int64_t>(ended))));
  }
  set_times(model, study, options, facts);
  set_trials(model, study);
  if (!set_target(model))
    return fail(Errc::kInvalidInput, "no trial completed with a finite value, so there is none to reach");
  if (model.seconds <= 0) return fail(Errc::kInvalidInput, "its trials took no time at all");
  model.workers = std::max<std::int64_t>(1, facts.parallelism.workers);
  if (facts.startup.between_seconds) model.between = std::max(0.0, facts.startup.between_seconds->value);
  model.one_process = is_one_process(model);
  if (model.between > 0) set_presence(model, facts.parallelism);
  if (!model.lengths.empty()) model.pruner = facts.pruner_settings;
  set_times_of_steps(model, options, facts);
  set_host(model, options);
  return model;
}

}  // namespace headroom::tune
