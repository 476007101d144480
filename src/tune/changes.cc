// SPDX-License-Identifier: Apache-2.0
#include "tune/changes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/human.h"
#include "tune/pruner_text.h"
#include "tune/safety.h"

namespace headroom::tune {

namespace {

constexpr std::int64_t kMostWorkers = 16;  // per GPU
constexpr double kLeastSaving = 0.01;      // of a worker's time: a start-up shorter by less is not worth a replay

std::string workers_text(std::int64_t workers) {
  return workers == 1 ? "1 trial at a time" : fmt::format("{} trials at once", workers);
}

std::string number_of(const std::optional<std::int64_t>& value, std::string_view absent) {
  return value ? fmt::format("{}", *value) : std::string(absent);
}

bool has_rungs(const PrunerSettings& pruner) {
  return pruner.kind == PrunerKind::kSuccessiveHalving || pruner.kind == PrunerKind::kHyperband;
}

// Edits of the study's own settings, one after the other.
class Editor {
 public:
  Editor(const StudyModel& model, const StudyReport& facts) : model_(model), facts_(facts), change_(as_it_is(model)) {}

  Editor& warm() {
    change_.warm = model_.startup_known;  // else only what lies between trials is known to be one
    if (!change_.warm) change_.settings.between = std::min(model_.between, kProgramStart);
    if (model_.one_process)
      add("warm workers",
          "do once per process what each trial does before its first step (load data, build what stays the same): "
          "outside objective(), before study.optimize(); trials follow each other in one process already");
    else
      add("warm workers",
          "one process per worker that takes trial after trial and keeps imports, data and the CUDA context: "
          "study.optimize(objective, n_trials=…) around what is loaded once, outside objective()");
    return *this;
  }
  Editor& workers(std::int64_t n) {
    change_.settings.workers = n;
    add(workers_text(n),
        fmt::format("start {} of the processes that run study.optimize(), or one with n_jobs={}", n, n));
    return *this;
  }
  Editor& half_startup() {
    change_.settings.startup_factor = 0.5;
    if (model_.between > kProgramStart) change_.settings.between = 0.5 * model_.between;
    add("start-up halved",
        "cache the prepared data set, import less: `headroom run -- …` of one trial shows where its start-up goes");
    return *this;
  }
  Editor& loaders(std::int64_t n) {
    add(fmt::format("loader workers {} -> {}", change_.loader_workers, n),
        fmt::format("DataLoader(num_workers={}, persistent_workers=True, …)", n));
    change_.loader_workers = n;
    return *this;
  }
  Editor& pruner(const PrunerSettings& pruner, std::string name) {
    change_.settings.pruner = pruner;
    pruner_ = true;
    name_.push_back(std::move(name));
    return *this;
  }
  Editor& from(std::size_t trial) {  // the pruner changes in mid-study
    change_.settings.change = {trial, change_.settings.pruner};
    change_.settings.pruner = *model_.pruner;
    name_.back() += fmt::format(" from trial {} on", trial);
    return *this;
  }
  Change made(const StudyOptions& options) {
    if (pruner_) {
      const PrunerSettings& last = change_.settings.change ? change_.settings.change->second : change_.settings.pruner;
      how_.push_back("pruner=" + pruner_text(last));
    }
    change_.name = fmt::format("{}", fmt::join(name_, ", "));
    change_.how = fmt::format("{}", fmt::join(how_, "; "));
    judge(change_,
          {.pruner_changed = pruner_,
           .base_workers = model_.workers,
           .mid_study = facts_.live || change_.settings.change.has_value()},
          options);
    return std::move(change_);
  }

 private:
  void add(std::string name, std::string how) {
    name_.push_back(std::move(name));
    how_.push_back(std::move(how));
  }

  const StudyModel& model_;
  const StudyReport& facts_;
  Change change_;
  std::vector<std::string> name_, how_;
  bool pruner_ = false;
};

// Pruner settings and what they are called as a change.
using Pruner = std::pair<PrunerSettings, std::string>;

Pruner with_patience(const PrunerSettings& now, std::int64_t patience) {
  Pruner made{now, fmt::format("patience {} -> {}", number_of(now.patience, "none"), patience)};
  made.first.patience = patience;
  return made;
}

Pruner with_min_resource(const PrunerSettings& now, std::int64_t min_resource) {
  Pruner made{now, fmt::format("min_resource {} -> {}", number_of(now.min_resource, "auto"), min_resource)};
  made.first.min_resource = min_resource;
  return made;
}

Pruner with_reduction_factor(const PrunerSettings& now, std::int64_t factor) {
  Pruner made{now, fmt::format("reduction_factor {} -> {}", now.reduction_factor, factor)};
  made.first.reduction_factor = factor;
  return made;
}

Pruner other(const PrunerSettings& pruner) {
  return {pruner, pruner.kind == PrunerKind::kNone ? "no pruning" : pruner_text(pruner)};
}

std::vector<Pruner> pruner_changes(const PrunerSettings& now, std::size_t longest) {
  std::vector<Pruner> all;
  if (now.patience) {
    all.push_back(with_patience(now, 2 * std::max<std::int64_t>(1, *now.patience)));
    all.push_back(with_patience(now, 3 * std::max<std::int64_t>(1, *now.patience) + 1));
    Pruner bare{now, "without PatientPruner"};
    bare.first.patience = std::nullopt;
    bare.first.min_delta = 0;
    all.push_back(bare);
  } else if (now.kind != PrunerKind::kNone) {
    all.push_back(with_patience(now, 3));
  }
  const auto most = static_cast<std::int64_t>(longest);
  if (has_rungs(now)) {
    const std::int64_t least = now.min_resource.value_or(1);
    for (const std::int64_t times : {3, 9}) {
      if (least * times < most) all.push_back(with_min_resource(now, least * times));
    }
    if (now.reduction_factor != 3) all.push_back(with_reduction_factor(now, 3));
    if (now.reduction_factor <= 4) all.push_back(with_reduction_factor(now, 2 * now.reduction_factor));
  } else if (most > 3) {
    all.push_back(other({.kind = PrunerKind::kHyperband, .min_resource = 1, .max_resource = most}));
  }
  if (now.kind != PrunerKind::kMedian) all.push_back(other({.kind = PrunerKind::kMedian}));
  if (now.kind != PrunerKind::kNone) all.push_back(other({.kind = PrunerKind::kNone}));
  return all;
}

// As many trials as memory and cores take; absent where neither says.
std::optional<std::int64_t> that_fit(const StudyModel& model, const StudyOptions& options) {
  const std::optional<std::int64_t> memory = memory_per_trial(options);
  std::optional<std::int64_t> fit;
  if (memory && *memory > 0 && options.gpu_memory_bytes) {
    fit = std::max<std::int64_t>(1, (*options.gpu_memory_bytes - kReserveBytes) / *memory);
    if (options.cores) {
      fit = std::min(*fit,
                     std::max<std::int64_t>(1, static_cast<std::int64_t>(*options.cores) / (1 + model.loader_workers)));
    }
  }
  return fit ? std::optional(std::min(*fit, kMostWorkers)) : std::nullopt;
}

// The share of a worker's time that passes before the first steps, as far as a change may shorten it.
double share_before_steps(const StudyModel& model, const StudyReport& facts) {
  double before = std::max(0.0, model.between - kProgramStart), trials = 0;
  if (model.startup_known) before = model.between + facts.startup.inside_seconds->value;
  for (const TimedTrial& timed : model.times) trials += timed.end - timed.begin;
  const double each = trials / static_cast<double>(model.times.size()) + model.between;
  return each > 0 ? before / each : 0;
}

// Changes of what lies before a trial's first step.
void add_shorter_startups(const StudyModel& model, const StudyOptions& options, const StudyReport& facts,
                          std::vector<Change>& all, std::vector<std::string>& left_out) {
  const auto edit = [&] { return Editor(model, facts); };
  if (!model.startup_known)
    left_out.push_back(
        "How long a trial's start-up takes is not known: no change of it is replayed, and the replays try everything "
        "from none to the whole trial.");
  if (!model.startup_known && model.one_process) return;
  const double share = share_before_steps(model, facts);
  if (share < kLeastSaving) {
    left_out.push_back(fmt::format("Warm workers are not replayed: they would save less than {} of a worker's time.",
                                   human_percent(kLeastSaving)));
    return;
  }
  all.push_back(edit().warm().made(options));
  if (model.workers >= 2) all.push_back(edit().warm().workers(model.workers / 2).made(options));
  all.push_back(edit().warm().workers(model.workers + 2).made(options));
  if (model.startup_known && 0.5 * share >= kLeastSaving) all.push_back(edit().half_startup().made(options));
}

}  // namespace

Change as_it_is(const StudyModel& model) {
  Change change;
  change.name = "as it is";
  change.settings.workers = model.workers;
  change.settings.between = model.between;
  if (model.pruner) change.settings.pruner = *model.pruner;
  change.loader_workers = model.loader_workers;
  return change;
}

std::vector<Change> changes(const StudyModel& model, const StudyOptions& options, const StudyReport& facts,
                            std::vector<std::string>& left_out) {
  std::vector<Change> all;
  const auto edit = [&] { return Editor(model, facts); };
  const std::int64_t now = model.workers;
  std::vector<std::int64_t> counts{now + 2, 2 * now};
  if (const auto fit = that_fit(model, options)) counts.push_back(*fit);
  std::erase_if(counts, [&](std::int64_t n) { return n == now; });
  std::sort(counts.begin(), counts.end());
  counts.erase(std::unique(counts.begin(), counts.end()), counts.end());

  add_shorter_startups(model, options, facts, all, left_out);
  for (const std::int64_t n : counts) all.push_back(edit().workers(n).made(options));
  if (options.loader_workers) {
    all.push_back(edit().loaders(2 * std::max<std::int64_t>(1, model.loader_workers)).made(options));
  } else {
    left_out.push_back("Loader workers per trial are not known: no change of them is replayed.");
  }
  if (!model.pruner) {
    left_out.push_back(
        "The pruner's settings are not known: trials end where they ended, and no change of the pruner is replayed "
        "(--pruner tells it).");
    return all;
  }
  const std::size_t longest = *std::max_element(model.lengths.begin(), model.lengths.end());
  for (const auto& [pruner, name] : pruner_changes(*model.pruner, longest)) {
    all.push_back(edit().pruner(pruner, name).made(options));
  }
  if (model.pruner->patience && has_rungs(*model.pruner)) {  // more of everything: what raises utilisation
    const Pruner patient = with_patience(*model.pruner, 2 * std::max<std::int64_t>(1, *model.pruner->patience));
    const Pruner both = with_min_resource(patient.first, 3 * model.pruner->min_resource.value_or(1));
    Editor editor = edit();
    if (options.loader_workers) editor.loaders(2 * std::max<std::int64_t>(1, model.loader_workers));
    all.push_back(editor.pruner(both.first, patient.second + ", " + both.second).made(options));
    all.push_back(edit().pruner(patient.first, patient.second).from(model.trials.size() / 2).made(options));
  }
  return all;
}

}  // namespace headroom::tune
