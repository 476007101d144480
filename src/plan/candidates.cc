// SPDX-License-Identifier: Apache-2.0
#include "plan/candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/human.h"
#include "base/strings.h"
#include "plan/fill.h"
#include "plan/measured.h"

namespace headroom::planning {

namespace {

constexpr std::size_t kOfASet = 3;  // candidates of a set that get a fix: the likeliest stand first
// How sure a cause is, for the order of options. Judgement; the history of predictions is no part of it.
constexpr double kHigh = 0.9, kMedium = 0.7, kLow = 0.4;

double probability_of(Confidence confidence) {
  switch (confidence) {
    case Confidence::kHigh:
      return kHigh;
    case Confidence::kMedium:
      return kMedium;
    case Confidence::kLow:
      break;
  }
  return kLow;
}

const CauseHistory* history_of(const PlanRequest& request, Cause cause) {
  const auto found = std::find_if(request.history.begin(), request.history.end(),
                                  [&](const CauseHistory& entry) { return entry.cause == cause; });
  return found == request.history.end() ? nullptr : &*found;
}

// What a larger batch brings: never more than the ratio of the sizes, nor than the idle time allows; where two sizes
// were measured, never more than the line through them.
double batch_gain(const Explanation& e, const PlanRequest& request, double factor) {
  double gain = factor;
  if (e.bound) gain = std::min(gain, e.bound->speedup_high);
  if (request.step_times && request.batch) {
    const auto& [one, two] = *request.step_times;
    const double slope = (two.second - one.second) / (two.first - one.first);
    const double fixed = one.second - slope * one.first;
    const double now = request.batch->first, then = now * factor;
    const double line = (fixed + slope * now) / now / std::max(1e-12, (fixed + slope * then) / then);
    if (slope >= 0 && fixed >= 0) gain = std::min(gain, std::max(1.0, line));
    if (fixed < 0) gain = 1;  // a step that takes more than its share at the larger size
  }
  return std::max(1.0, gain);
}

class Maker {
 public:
  Maker(const Explanation& e, const StepModel& model, const PlanRequest& request)
      : e_(e), model_(model), request_(request) {}

  std::vector<Candidate> make() {
    bool unsure = false;
    for (std::size_t i = 0; i < std::min(model_.findings.size(), e_.findings.size()); ++i) {
      const Finding& finding = e_.findings[i];
      if (finding.cause) {
        for (const Fix& fix : fixes_of(*finding.cause)) add(fix, i, 1);
        continue;
      }
      unsure |= !finding.claims.empty();
      const std::size_t most = std::min(kOfASet, finding.candidates.size());
      for (std::size_t c = 0; c < most; ++c)
        if (const auto fixes = fixes_of(finding.candidates[c]); !fixes.empty())
          add(fixes.front(), i, 1.0 / static_cast<double>(c + 2));
    }
    asked_about();
    if (unsure) observe();
    return std::move(made_);
  }

 private:
  // The same fix for two findings: the one that costs more stands first and keeps it.
  [[nodiscard]] bool has(std::string_view id) const {
    return std::any_of(made_.begin(), made_.end(), [&](const Candidate& one) { return one.option.id == id; });
  }

  void add(const Fix& fix, std::optional<std::size_t> index, double part_of_set, bool asked = false) {
    if (has(fix.id)) return;
    const Finding* finding = index ? &e_.findings[*index] : nullptr;
    const Numbers known = numbers(e_, model_, request_, index);
    Candidate made;
    Option& option = made.option;
    option.id = fix.id;
    option.finding = index;
    option.cause = fix.cause;
    option.title = fix.title;
    option.safety = fix.safety;
    option.why_safe = fix.why_safe;
    option.effort = info(fix.effort).name;
    option.apply = filled(fix.apply, known);
    option.verify = fix.verify;
    option.undo = fix.undo;
    made.effort = fix.effort;
    made.asked = asked;
    made.probability = (finding ? probability_of(finding->confidence) : kLow) * part_of_set;
    if (finding) {
      option.candidates = finding->candidates;
      option.gain.condition = finding->gain ? finding->gain->condition : finding->bound;
      if (finding->gain && !finding->cause) {
        std::string_view condition = finding->gain->condition;
        constexpr std::string_view kAny = "whatever the cause, ";
        if (condition.starts_with(kAny)) condition.remove_prefix(kAny.size());
        option.gain.condition = fmt::format("if the cause is {}, and {}", info(fix.cause).words, condition);
      }
      made.flipped = finding->cause ? finding->would_overturn
                                    : fmt::format("{}, if it names another cause", info(fix.cause).observe);
    } else {
      made.flipped = info(fix.cause).observe;
    }
    made.change = Change{.mechanism = fix.mechanism, .finding = index};
    if (!shape(fix, known, made)) return;
    how_much(fix, finding, made);
    measured(made);
    made_.push_back(std::move(made));
  }

  // What the simulation needs beside the claims. False: nothing to advise.
  bool shape(const Fix& fix, const Numbers& known, Candidate& made) {
    Option& option = made.option;
    option.promises = made.change.finding && e_.findings[*made.change.finding].gain.has_value();
    made.change.cheaper = fix.mechanism == Mechanism::kRemoves &&
                          (fix.cause == Cause::kInputInMainProcess || fix.cause == Cause::kInputTooFewWorkers);
    switch (fix.mechanism) {
      case Mechanism::kLoads:
        return loads(known, made);
      case Mechanism::kEnlarges:
        if (fix.cause != Cause::kBatchTooSmall) {
          option.promises = false;
          return true;
        }
        return enlarges(known, made);
      case Mechanism::kPacks:
        if (made.asked && !made.change.finding && e_.bound) {
          made.change.factor = std::min(e_.bound->speedup_high, static_cast<double>(request_.tasks.value_or(1)));
          option.promises = true;
          option.gain.condition = "if their kernels do not slow each other down and memory and cores suffice";
        }
        return true;
      case Mechanism::kSpreads:
        return spreads(made);
      case Mechanism::kReturns:
        option.promises = false;
        return true;
      case Mechanism::kRemoves:
      case Mechanism::kOverlaps:
        if (fix.id == "reserve_memory") reserve(made);
        return true;
    }
    return true;
  }

  bool loads(const Numbers& known, Candidate& made) {
    Option& option = made.option;
    const auto said = workers_said(e_);
    int workers = known.workers.value_or(4);
    std::string limit;
    if (model_.cores && workers > std::ceil(*model_.cores)) {
      workers = static_cast<int>(std::ceil(*model_.cores));
      limit = fmt::format("; {} workers would share {:.3g} usable cores, of which {} are free", *known.workers,
                          e_.host->usable_cores, workers);
    }
    if (workers <= model_.workers && !made.asked) return false;  // the cores carry no more
    if (model_.cores) made.change.workers = workers;             // else the finding's own bound is all that is known
    if (said && said->value != workers)
      option.apply =
          fmt::format("{}{} instead of {} (num_workers of the DataLoader)", said->name, workers, said->words);
    else if (known.workers)
      option.apply = fmt::format("DataLoader(..., num_workers={}, persistent_workers=True, pin_memory=True)", workers);
    if (!known.workers) option.apply += ", with as many as cores are free: they were not recorded";
    option.apply += limit;
    if (!made.change.finding && model_.workers > 0) option.promises = true;
    return true;
  }

  bool enlarges(const Numbers& known, Candidate& made) {
    Option& option = made.option;
    const double factor = batch_gain(e_, request_, known.batch_factor.value_or(2));
    if (known.batch_factor && *known.batch_factor <= 1 && !made.asked) return false;  // no memory for it
    made.change.finding.reset();  // it acts on every step, not on what is claimed
    made.change.factor = factor;
    option.promises = e_.bound.has_value();
    if (const auto said = batch_said(e_); said && known.batch && said->value == known.batch->first)
      option.apply = fmt::format("{}{:g} instead of {}; measure it first at both sizes", said->name,
                                 known.batch->second, said->words);
    if (request_.step_times && request_.batch)
      option.gain.condition = "by the line through two measured batch sizes, if the loader keeps up";
    else if (known.batch)
      option.gain.condition = fmt::format(
          "if batch {:g} to {:g} is the cause at all and the accuracy stays; else no gain. Two batch sizes "
          "measured tell",
          known.batch->first, known.batch->second);
    else
      option.gain.condition = "if the batch is the cause at all and the accuracy stays. Two batch sizes measured tell";
    if (!known.batch_limit.empty()) option.gain.condition += "; " + known.batch_limit;
    return true;
  }

  // GPUs that stood free could have worked as those that did.
  bool spreads(Candidate& made) {
    if (!made.change.finding) return false;
    std::set<std::size_t> claimed;
    for (const ClaimedPiece& piece : e_.findings[*made.change.finding].claims) claimed.insert(piece.device);
    const std::size_t all = e_.ledger.devices.size();
    const bool may_be_one_task = !e_.findings[*made.change.finding].cause;
    made.change.finding.reset();
    if (claimed.empty() || claimed.size() >= all || may_be_one_task) {
      made.option.promises = false;
      return true;
    }
    made.change.factor = static_cast<double>(all) / static_cast<double>(all - claimed.size());
    made.option.promises = true;
    made.option.gain.condition =
        "if the work can be split evenly over all of them, and nothing for a single task that uses one GPU";
    return true;
  }

  // The one thing that Headroom may change itself: what the task file says of memory.
  void reserve(Candidate& made) {
    if (!e_.batch || !e_.batch->largest_gpu_bytes) return;
    if (e_.batch->too_large) {
      made.option.apply = "a smaller batch for the task that ran out of memory alone on its GPU, or a GPU with more";
      made.option.promises = false;
      return;
    }
    constexpr double kMargin = 1.25;  // of the largest attempt that was seen: it had not all it wanted
    const double bytes = kMargin * static_cast<double>(*e_.batch->largest_gpu_bytes);
    const auto mib = static_cast<std::int64_t>(bytes / (1 << 20)) + 1;
    made.option.apply = fmt::format("gpu_memory = \"{}MiB\" in [defaults] of the task file (--apply writes it)", mib);
    made.option.setting = fmt::format("task_file.gpu_memory={}MiB", mib);
  }

  void how_much(const Fix& fix, const Finding* finding, Candidate& made) {
    constexpr double kUnproven = 0.5;  // of the time that the bound lets go
    const CauseHistory* history = history_of(request_, fix.cause);
    made.least = kUnproven;
    if (history) {  // the bound stays what this recording allows
      made.least = std::clamp(history->shrink_low, 0.0, 1.0);
      made.option.outcomes = history->n;
    }
    made.change.share = 1 - fix.stays;
    const bool measured = fix.mechanism == Mechanism::kEnlarges && request_.step_times;
    const bool certain = finding && finding->cause && finding->confidence != Confidence::kLow;
    // Whether the work can be split, and how much cheaper it can get, is not recorded.
    const bool splits = fix.mechanism == Mechanism::kSpreads || fix.cause == Cause::kOneProcessImbalance;
    if ((!certain && !measured) || splits || made.change.cheaper) made.least = 0;
  }

  // What a probe ran of the values that are considered.
  void measured(Candidate& made) {
    if (!request_.probe) return;
    const ProbeReport& probe = *request_.probe;
    const bool sizes =
        varied(probe) == Varied::kBatchSize && made.option.cause == Cause::kBatchTooSmall && request_.batch;
    const bool workers = varied(probe) == Varied::kWorkers && made.change.mechanism == Mechanism::kLoads &&
                         made.change.workers == static_cast<double>(request_.workers.value_or(0));
    if (!sizes && !workers) return;
    const auto said = workers_said(e_);
    const double now = sizes ? request_.batch->first : said ? said->value : model_.workers;
    const double then = sizes ? request_.batch->second : made.change.workers;
    made.measured = measured_change(probe, now, then);
    if (!made.measured) return;
    made.option.outcomes = 0;
    made.option.gain.condition = fmt::format("as headroom probe measured {} {:g} and {:g} in turn, {} each",
                                             probe.parameter, now, then, count_of(probe.complete, "run"));
  }

  void asked_about() {
    if (request_.batch) ask(Cause::kBatchTooSmall, "larger_batch");
    if (request_.workers && !has_asked("start_loader_workers")) ask(Cause::kInputTooFewWorkers, "more_loader_workers");
    if (request_.tasks) ask(Cause::kUnderPacking, "more_tasks_per_gpu");
  }
  bool has_asked(std::string_view id) {
    for (Candidate& made : made_)
      if (made.option.id == id) made.asked = true;
    return has(id);
  }

  // Readings of the GPU alone leave all of its idle time to any cause; others have seen that nothing waited for this.
  void ask(Cause cause, std::string_view id) {
    if (has_asked(id)) return;
    const Fix& fix = fixes_of(cause).front();
    std::optional<std::size_t> index;
    for (std::size_t i = 0; i < e_.findings.size() && !index; ++i)
      if (names(e_.findings[i], cause)) index = i;
    const bool blind = e_.meta.tiers.find('P') == std::string::npos;
    if (!index && blind && cause != Cause::kBatchTooSmall)
      for (std::size_t i = 0; i < e_.findings.size() && !index; ++i)
        if (!e_.findings[i].claims.empty() && e_.findings[i].claims.front().account == Account::kUnexplained &&
            e_.findings[i].gain)
          index = i;
    const std::size_t before = made_.size();
    add(fix, index, 1.0 / 4, true);
    if (made_.size() == before || index) return;
    Option& option = made_.back().option;
    if (option.promises) return;
    option.promises = true;
    made_.back().change.factor = 1;
    option.gain.condition = "nothing in this recording waited for it";
  }
  static bool names(const Finding& finding, Cause cause) {
    return finding.cause == cause ||
           std::find(finding.candidates.begin(), finding.candidates.end(), cause) != finding.candidates.end();
  }

  void observe() {
    const auto& tiers = e_.meta.tiers;
    const auto set = std::find_if(e_.findings.begin(), e_.findings.end(),
                                  [](const Finding& f) { return !f.cause && !f.claims.empty(); });
    Candidate made;
    Option& option = made.option;
    option.id = "observe";
    option.finding = static_cast<std::size_t>(set - e_.findings.begin());
    option.candidates = set->candidates;
    option.why_safe = "it changes nothing";
    option.promises = false;
    option.undo = "none needed";
    option.gain.condition = "none by itself: it makes the answer surer";
    option.verify = "the next plan names one cause where this one names several";
    if (tiers.find('P') == std::string::npos) {
      option.title = fmt::format("First record the next run: {} several causes open", what_leaves());
      option.apply = "headroom run -- CMD (process times and Python stacks; nothing of the job changes)";
    } else if (tiers.find('Y') == std::string::npos) {
      option.title = "First look at the stacks: process times leave several causes open";
      option.apply =
          fmt::format("headroom run with Python stacks{}, or {}",
                      e_.batch ? " for one task: a batch reads none" : " (headroom doctor says why there were none)",
                      info(set->candidates.front()).observe);
    } else {
      option.title = "First tell the candidates apart";
      option.apply = info(set->candidates.front()).observe;
    }
    option.effort = "one run";
    made_.push_back(std::move(made));
  }

  // What there is where nobody looked at processes.
  [[nodiscard]] std::string_view what_leaves() const {
    const auto has = [&](char tier) { return e_.meta.tiers.find(tier) != std::string::npos; };
    if (has('C')) return "a trace of kernels and copies leaves";
    if (has('N')) return "readings of the GPU alone leave";
    return "times of steps alone leave";
  }

  const Explanation& e_;
  const StepModel& model_;
  const PlanRequest& request_;
  std::vector<Candidate> made_;
};

}  // namespace

std::vector<Candidate> candidates(const Explanation& e, const StepModel& model, const PlanRequest& request) {
  return Maker(e, model, request).make();
}

}  // namespace headroom::planning
