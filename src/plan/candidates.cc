// SPDX-License-Identifier: Apache-2.0
#include "plan/candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <utility>

#include "analyze/named_phases.h"
#include "base/human.h"
#include "base/strings.h"
#include "model/advice_words.h"
#include "model/loop_accounts.h"
#include "model/named_causes.h"
#include "model/observations.h"
#include "model/start_part.h"
#include "plan/fill.h"
#include "plan/fit.h"
#include "plan/limits.h"
#include "plan/measured.h"
#include "plan/named_code.h"
#include "plan/observe.h"
#include "plan/shape.h"
#include "plan/shown.h"

namespace headroom::planning {

namespace {

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

// What to do instead of an argument of the DataLoader where stacks were looked at and were in none.
struct Elsewhere {
  std::string_view fix, pool, other;
};
constexpr std::array kElsewhere{
    Elsewhere{"persistent_workers", "keep one Pool for all epochs",
              "let the processes that load go on between epochs (of a DataLoader: persistent_workers=True)"},
    Elsewhere{"larger_prefetch", "give the Pool its next batches earlier: imap or apply_async some batches ahead",
              "if it needs nothing of the step before: let it run further ahead, with a longer queue (of a DataLoader: "
              "prefetch_factor=8)"},
    Elsewhere{"pin_memory",
              "pin the buffers that are copied (tensor.pin_memory()), and tensor.to(device, non_blocking=True)",
              "pin the buffers that are copied (tensor.pin_memory()), and tensor.to(device, non_blocking=True)"},
};

class Maker {
 public:
  Maker(const Explanation& e, const StepModel& model, const PlanRequest& request)
      : e_(e), model_(model), request_(request) {}

  std::vector<Candidate> make() {
    bool unsure = false;
    const std::size_t findings = std::min(model_.findings.size(), e_.findings.size());
    for (std::size_t i = 0; i < findings; ++i)
      if (is_settled(e_.findings[i])) add_fixes_of_cause(i);
    for (std::size_t i = 0; i < findings; ++i) {
      add_named_code(i);
      if (is_settled(e_.findings[i])) continue;
      unsure |= !e_.findings[i].cause && !e_.findings[i].claims.empty();
      add_fixes_of_set(i);
    }
    asked_about();
    if (unsure) made_.push_back(first_look(e_));
    return std::move(made_);
  }

 private:
  void add_fixes_of_cause(std::size_t index) {
    for (const Fix& fix : fixes_of(*e_.findings[index].cause))
      if (fix.id != "micro_batches") add(fix, index, 1);  // of GPUs that work at once
  }

  void add_named_code(std::size_t index) {
    const Finding& finding = e_.findings[index];
    auto code = named_code(e_, index);
    if (!code || has(code->option.id)) return;
    code->probability = code->surely = probability_of(finding.confidence);
    code->cost = share_of_all(finding);
    if (!is_settled(finding)) code->change.share = share_of_all_time(model_.findings[index], code->change.share);
    made_.push_back(std::move(*code));
  }

  // The one of a cause's fixes that the finding itself has words for, else the one that comes first.
  [[nodiscard]] static const Fix& first_for(const Finding& finding, std::span<const Fix> fixes) {
    const auto own = std::find_if(fixes.begin(), fixes.end(),
                                  [&](const Fix& fix) { return finding.remedy && finding.remedy->fix == fix.id; });
    return own == fixes.end() ? fixes.front() : *own;
  }

  // Of a finding that leaves several causes open: for each that fits this job, the likeliest first.
  void add_fixes_of_set(std::size_t index) {
    // Where nobody looked at processes nearly all causes are left: the observation is worth more than a list of them.
    const std::size_t most = e_.meta.tiers.find('P') == std::string::npos ? 3 : SIZE_MAX;
    const std::vector<Cause> causes = possible_causes(e_.findings[index]);
    std::size_t there = 0;
    for (std::size_t c = 0; c < causes.size() && there < most; ++c) {
      const auto fixes = fixes_of(causes[c]);
      if (fixes.empty() || is_nothing_like_it(e_.findings[index], causes[c])) continue;
      const double part_of_set = part_of(e_.findings[index], c);
      if (causes[c] == Cause::kOneProcessImbalance)  // in a set they take turns, as parts of a model do
        add(fixes.back(), index, part_of_set);
      const Fix& fix = first_for(e_.findings[index], fixes);
      add(fix, index, part_of_set);
      there += has(fix.id) ? 1U : 0U;
    }
  }

  // How much of what speaks for a set speaks for one of its causes, by judgement.
  [[nodiscard]] static double part_of(const Finding& finding, std::size_t candidate) {
    constexpr double kLikely = 0.8;  // diagnose/weigh.cc
    if (!finding.cause) return 1.0 / static_cast<double>(candidate + 2);
    return candidate == 0 ? kLikely : (1 - kLikely) / static_cast<double>(candidate);
  }

  // What runs at one time only is nothing that comes with each epoch, and of a step, or of what makes no data, nothing
  // can be prepared once.
  [[nodiscard]] static bool is_nothing_like_it(const Finding& finding, Cause cause) {
    if ((finding.role.part == LoopPart::kStep || finding.names_no_data) && cause == Cause::kHostGraphBuilding)
      return true;
    return finding.role.recurs == Recurs::kOnce && (cause == Cause::kValidation || cause == Cause::kEpochEndHostWork ||
                                                    cause == Cause::kDuplicatePreprocessing);
  }

  // Where the code that has most of the time has its own option, a cause of the set for which nothing speaks, while
  // something does for others: no advice beside that, unless it is the likeliest.
  [[nodiscard]] bool is_a_guess(const Candidate& made) const {
    const bool asked = made.asked || (request_.workers && made.option.id == "start_loader_workers");
    if (asked || made.option.candidates.empty()) return false;
    const bool named = std::any_of(made_.begin(), made_.end(), [&](const Candidate& one) {
      return one.option.id == kNamedCode && one.option.finding == made.option.finding;
    });
    const Finding& finding = e_.findings[*made.option.finding];
    const auto said = [](const std::string& words) { return !words.empty(); };
    return named && !is_likeliest(finding, *made.option.cause) && !speaks_for(finding, *made.option.cause) &&
           std::any_of(finding.speaks_for.begin(), finding.speaks_for.end(), said);
  }

  [[nodiscard]] static bool speaks_for(const Finding& finding, Cause cause) {
    const std::vector<Cause> causes = possible_causes(finding);
    const auto place = std::find(causes.begin(), causes.end(), cause);
    return place != causes.end() &&
           !finding.speaks_for_candidate(static_cast<std::size_t>(place - causes.begin())).empty();
  }

  // The same fix for two findings: the one whose cause is told, else the one that costs more, stands first and keeps
  // it.
  [[nodiscard]] bool has(std::string_view id) const {
    return std::any_of(made_.begin(), made_.end(), [&](const Candidate& one) { return one.option.id == id; });
  }

  void add(const Fix& fix, std::optional<std::size_t> index, double part_of_set, bool asked = false) {
    const Finding* finding = index ? &e_.findings[*index] : nullptr;
    if (has(fix.id)) return;
    const Numbers known = numbers(e_, model_, request_, index);
    Candidate made;
    Option& option = made.option;
    option.id = fix.id;
    option.finding = index;
    option.cause = fix.cause;
    option.title = words_for(e_.meta, fix.title);
    option.safety = fix.safety;
    option.why_safe = fix.why_safe;
    option.effort = info(fix.effort).name;
    option.apply = filled(applied(fix), known);
    fit_to_the_job(e_, fix, finding, known, option);
    if (fix.id == "larger_eval_batch" && finding && !finding->remedy && without_kernels(*finding)) {
      if (finding->asleep || finding->mostly_waits) return;  // nor would a GPU be quicker
      validates_on_the_cpu(e_.meta, option);
    }
    made.effort = fix.effort;
    made.asked = asked;
    if (finding && !is_settled(*finding)) made.look = step_of_observation(fix.cause, *finding, e_.meta);
    made.surely = finding ? probability_of(finding->confidence) : kLow;
    made.probability = made.surely * part_of_set;
    if (finding)
      take_from(*finding, fix, made);
    else
      made.flipped = observation(fix.cause);
    made.change.mechanism = fix.mechanism;
    made.change.finding = index;
    without_tries(fix, made);
    may_be_elsewhere(fix, made);
    made.change.frees = fix.cause == Cause::kCpuOversubscribed;
    if (!shape(e_, model_, request_, known, made)) return;
    how_much(fix, finding, made);
    measured(made);
    if (!made.measured) keep_within_limits(e_, model_, made);
    if (!loads_already(made) && !is_there(made) && !is_a_guess(made)) made_.push_back(std::move(made));
  }

  void take_from(const Finding& finding, const Fix& fix, Candidate& made) const {
    Gain& gain = made.option.gain;
    made.cost = share_of_all(finding);
    if (!is_settled(finding)) made.option.candidates = possible_causes(finding);
    if (!is_settled(finding)) made.option.likeliest = finding.cause;
    gain = finding.gain.value_or(Gain{.none = finding.bound, .unbounded = finding.unbounded});
    gain.low = gain.high = 1;  // the simulation's to say
    gain.beside.clear();       // another option's
    if (finding.gain && !is_settled(finding)) {
      gain.any_cause = false;
      gain.causes = {fix.cause};
      if (const OwnLimit* own = finding.limit_of(fix.cause)) gain = own->gain();
      gain.high = 1;
      if (cores_without_bound(finding, fix.cause))
        gain.more +=
            "; its main thread's own wait for a core is no bound: its other threads or processes may have kept it "
            "waiting for want of one";
      // Who only exchanges at another time leaves each GPU its kernels: equal shares are another cause's gain.
      made.change.keeps =
          fix.cause == Cause::kExposedCommunication && e_.bound && finding.gain->high > e_.bound->speedup_high;
      if (made.change.keeps) gain.condition = "if no GPU waited for another, while each keeps its kernels";
    }
    made.flipped = is_settled(finding)
                       ? finding.would_overturn
                       : fmt::format("{}, if it names another cause", next_observation(fix.cause, finding, e_.meta));
    if (fix.id == "fewer_gpus")  // the finding's own words are about using all of them
      gain = {.none = "none for this job, which takes as long with fewer; the others come back"};
  }

  // Whether its main thread was seen to wait for a core, and nothing bounds what cores can have cost (model/finding.h,
  // OwnLimit).
  [[nodiscard]] bool cores_without_bound(const Finding& finding, Cause cause) const {
    return cause == Cause::kCpuOversubscribed && speaks_for(finding, cause) && !finding.limit_of(cause) &&
           std::none_of(e_.limits.begin(), e_.limits.end(), [&](const OwnLimit& one) { return one.cause == cause; });
  }

  // Each later start of a job that failed for memory was one more try: once it has the memory, there is none.
  void without_tries(const Fix& fix, Candidate& made) const {
    const bool tried = std::any_of(e_.findings.begin(), e_.findings.end(),
                                   [](const Finding& finding) { return finding.cause == Cause::kOomRestartLoop; });
    if (!tried || !made.option.gain.later_starts || fix.mechanism != Mechanism::kRemoves) return;
    made.option.gain.later_starts = false;
    made.change.only_own = true;
  }

  [[nodiscard]] std::string_view applied(const Fix& fix) const {
    const auto row =
        std::find_if(kElsewhere.begin(), kElsewhere.end(), [&](const Elsewhere& one) { return one.fix == fix.id; });
    if (row != kElsewhere.end() && request_.loader == Loader::kPool) return row->pool;
    if (row != kElsewhere.end() && request_.loader == Loader::kOther) return row->other;
    return words_for(e_.meta, fix.apply);
  }

  // For two causes of a set the same may be to do: that is one option, for either of them.
  [[nodiscard]] bool is_there(const Candidate& made) {
    const auto same = std::find_if(made_.begin(), made_.end(), [&](const Candidate& one) {
      return one.option.cause && one.option.finding == made.option.finding && one.option.apply == made.option.apply;
    });
    if (same == made_.end() || made.option.candidates.empty()) return false;
    if (auto& causes = same->option.gain.causes; !causes.empty()) causes.push_back(*made.option.cause);
    same->probability = std::min(same->surely, same->probability + made.probability);
    return true;
  }

  // More that load are one change, whichever findings ask for them: the surer one tells of it, and it ends the other,
  // too.
  [[nodiscard]] bool loads_already(const Candidate& made) {
    if (made.change.mechanism != Mechanism::kLoads || !made.change.finding || *made.change.finding >= 64) return false;
    const auto same = std::find_if(made_.begin(), made_.end(), [&](const Candidate& one) {
      return one.change.mechanism == Mechanism::kLoads && one.change.finding &&
             one.change.finding != made.change.finding && one.option.promises == made.option.promises &&
             one.surely >= made.surely;
    });
    if (same == made_.end()) return false;
    same->asked = same->asked || made.asked;
    same->change.also |= std::uint64_t{1} << *made.change.finding;
    same->option.gain.more += fmt::format("; in finding {} as well", *made.change.finding + 1);
    return true;
  }

  // A cause that one finding names or leaves open may be in another one, too: the change ends it there as well.
  void may_be_elsewhere(const Fix& fix, Candidate& made) const {
    if (!made.change.finding || (fix.mechanism != Mechanism::kRemoves && fix.mechanism != Mechanism::kOverlaps)) return;
    std::vector<std::string> others;
    for (std::size_t i = 0; i < std::min<std::size_t>(64, e_.findings.size()); ++i) {
      const Finding& other = e_.findings[i];
      if (i == *made.change.finding || !names(other, fix.cause) || !other.gain || other.part_of == made.change.finding)
        continue;
      made.change.also |= std::uint64_t{1} << i;
      others.push_back(fmt::format("{}", i + 1));
    }
    if (!others.empty())
      made.option.gain.more +=
          fmt::format("; in {} {} as well", others.size() == 1 ? "finding" : "findings", fmt::join(others, " and "));
  }

  // What is not run has no kernels either, nor other idle time, and kernels of larger batches take less time: what else
  // the phases hold that the claims lie in, on the device where that is least.
  void rest_of_phases(const Finding& finding, Candidate& made) const {
    if (e_.batch || finding.claims.empty()) return;
    std::map<std::size_t, Nanos> rest;
    for (const std::int32_t phase : phases_within(finding)) {
      const Phase& one = e_.phases[static_cast<std::size_t>(phase)];
      Nanos claimed = 0, all = 0;
      for (const LedgerEntry& entry : e_.ledger.entries) {
        if (entry.phase != phase || entry.device != one.device) continue;
        all += entry.ns;
        if (entry.account == finding.claims.front().account) claimed += entry.ns;
      }
      rest[one.device] += all - claimed;
    }
    if (rest.empty()) return;
    const auto least = std::min_element(rest.begin(), rest.end(), [](auto& x, auto& y) { return x.second < y.second; });
    made.change.beside = seconds(least->second);
    made.change.keeps = without_kernels(finding);
    made.seen = made.change.share * model_.findings[*made.change.finding].seconds;
    if (least->second > 0)
      made.option.gain.more += fmt::format("; its high end has {}the other time of these phases, too",
                                           made.change.keeps ? "" : "the kernels and ");
  }

  // Phases that are named as what the claims are, or are claimed for most of their time, with a tenth of all that is
  // claimed. In any other phase, such as an epoch of training, the kernels are not of what is claimed there.
  [[nodiscard]] std::vector<std::int32_t> phases_within(const Finding& finding) const {
    const Account account = finding.claims.front().account;
    std::vector<Nanos> whole(e_.phases.size()), idle(e_.phases.size()), claimed(e_.phases.size());
    Nanos all = 0;
    for (const LedgerEntry& entry : e_.ledger.entries) {
      if (entry.phase < 0) continue;
      const auto phase = static_cast<std::size_t>(entry.phase);
      whole[phase] += entry.ns;
      if (is_busy(entry.account)) continue;
      idle[phase] += entry.ns;
      if (entry.account == account) claimed[phase] += entry.ns, all += entry.ns;
    }
    std::vector<std::int32_t> found;
    for (std::size_t phase = 0; phase < idle.size(); ++phase) {
      const Phase& one = e_.phases[phase];
      const bool named = account_told_by(one.name) == account && 2 * claimed[phase] > idle[phase];
      if (!one.named_by.empty() && 10 * claimed[phase] > all && (named || 2 * claimed[phase] > whole[phase]))
        found.push_back(static_cast<std::int32_t>(phase));
    }
    return found;
  }

  // Whether hardly a kernel runs in the phases that it lies in, by readings of the GPU: of larger batches nothing is
  // quicker there.
  [[nodiscard]] bool without_kernels(const Finding& finding) const {
    constexpr double kHardly = 0.02;  // of their time: a reading at an edge may be of what was before, or comes then
    if (e_.batch || finding.claims.empty()) return false;
    const std::vector<std::int32_t> phases = phases_within(finding);
    return !phases.empty() && std::all_of(phases.begin(), phases.end(), [&](std::int32_t phase) {
      return e_.phases[static_cast<std::size_t>(phase)].gpu_util_ratio.value_or(1) < kHardly;
    });
  }

  // What is promised of it: nothing, where neither this recording nor an outcome shows that it saves something.
  void how_much(const Fix& fix, const Finding* finding, Candidate& made) {
    std::string& more = made.option.gain.more;
    made.change.share = 1 - fix.stays;
    if (finding && fix.id == "faster_startup") take_part_of_start(*finding, made);
    const bool all_of_it = fix.id == "validate_less" || fix.id == "larger_eval_batch";
    if (all_of_it && made.change.finding && made.option.promises) rest_of_phases(*finding, made);
    if (fix.stays > 0)
      more +=
          "; at most half of all that goes, and it is not equal work: half of the validations, and what they tell, "
          "are given up";
    const std::string shown = what_is_shown(fix, finding, made);
    if (made.option.promises) more += shown;
    if (made.option.promises && finding && is_over(*finding))
      more += "; hardly any of it lies in the second half of the recording: what comes later may gain nothing";
  }

  // Whether what comes with the job's steps came in the first half of the time, as while a cache is filled.
  [[nodiscard]] bool is_over(const Finding& finding) const {
    constexpr double kHardly = 0.05;
    if (e_.batch || finding.claims.empty() || !in_loop(finding.claims.front().account)) return false;
    const Nanos half = e_.ledger.begin + e_.ledger.span() / 2;
    Nanos later = 0;
    for (const ClaimedPiece& piece : finding.claims)
      later += std::max<Nanos>(0, piece.end - std::max(piece.begin, half));
    return static_cast<double>(later) <= kHardly * static_cast<double>(finding.cost());
  }

  // How much of the bound is sure, and what shows it.
  std::string what_is_shown(const Fix& fix, const Finding* finding, Candidate& made) const {
    const bool measured = fix.mechanism == Mechanism::kEnlarges && request_.step_times;
    const bool certain = finding && is_settled(*finding) && finding->confidence != Confidence::kLow;
    // Whether the work can be split, and how much cheaper it can get, is not recorded.
    const bool splits = fix.mechanism == Mechanism::kSpreads || fix.cause == Cause::kOneProcessImbalance;
    const bool partly = made.change.cheaper && fix.cause != Cause::kEpochWorkerRestart;
    if (splits || partly || (!certain && !measured)) return certain ? "; how much of that can be had is not known" : "";
    if (const CauseHistory* history = history_of(request_, fix.cause)) {  // the bound stays what this recording allows
      made.least = std::clamp(history->shrink_low, 0.0, 1.0);
      made.option.outcomes = history->n;
      return "";
    }
    const std::string_view shown = measured ? "two sizes were measured" : shown_of(fix.id);
    const bool no_cores = made.change.mechanism == Mechanism::kLoads && !has_idle_cores();
    if (shown.empty() || no_cores) return "; nothing here shows how much of that this change saves";
    return fmt::format("; low end: {}, as {}", save_half_of_seen(made), shown);
  }

  // Of a start whose parts stacks tell, no more than the option is about, and what no stack tells.
  void take_part_of_start(const Finding& finding, Candidate& made) const {
    const StartPart part = part_of_start(e_.ledger, finding);
    made.change.share = part.share;
    if (!made.option.promises || human_percent(part.told) == human_percent(1)) return;
    made.option.gain.more += fmt::format("; {} {} of that time",
                                         part.imports            ? "imports are"
                                         : part.code.size() == 1 ? "that code has"
                                                                 : "these functions have",
                                         human_percent(part.told));
    constexpr double kSome = 0.02;
    if (part.share - part.told >= kSome)
      made.option.gain.more += fmt::format(", and of {} no stack tells", human_percent(part.share - part.told));
  }

  // Says of what that is the half.
  std::string save_half_of_seen(Candidate& made) const {
    made.least = 0.5;  // judgement
    if (!made.change.finding) return "half of what the high end saves";
    const double claimed = model_.findings[*made.change.finding].seconds;
    const double saved = model_.seconds - simulate(model_, std::array{made.change});
    made.seen = made.change.share * claimed;
    if (made.change.mechanism == Mechanism::kLoads) {
      const double beside = saved_beside_others(made.change);
      made.seen = std::min(*made.seen, beside);
      if (beside < std::min(made.change.share * claimed, saved))
        return "half of what it saves while others use as many cores";
    }
    constexpr double kRounding = 1e-6;  // of the time
    if (saved < *made.seen - kRounding * model_.seconds) return "half of what the high end saves";
    return fmt::format("{} of the {} of finding {} is saved", made.change.share < 1 ? "a quarter" : "half",
                       human_duration(static_cast<Nanos>(claimed * kSecond)), *made.change.finding + 1);
  }

  // What a probe ran of the values that are considered.
  void measured(Candidate& made) {
    if (!request_.probe) return;
    const ProbeReport& probe = *request_.probe;
    const bool sizes =
        varied(probe) == Varied::kBatchSize && made.option.cause == Cause::kBatchTooSmall && request_.batch;
    const bool workers =
        varied(probe) == Varied::kWorkers && made.change.mechanism == Mechanism::kLoads && request_.workers;
    if (!sizes && !workers) return;
    const auto said = workers_said(e_);
    const double now = sizes ? request_.batch->first : said ? said->value : model_.workers;
    const double then = sizes ? request_.batch->second : static_cast<double>(*request_.workers);
    if (now == then) return;
    made.measured = measured_change(probe, now, then);
    if (!made.measured) return;
    if (!made.change.finding) {  // it acts on every step, wherever that waits
      made.change = Change{.mechanism = Mechanism::kEnlarges, .factor = made.measured->high};
      made.option.promises = true;
    }
    made.option.outcomes = 0;
    made.flipped.clear();
    made.option.gain = {.condition = fmt::format("as headroom probe measured {} {:g} and {:g} in turn, {} each",
                                                 probe.parameter, now, then, count_of(probe.complete, "run"))};
  }

  void asked_about() {
    if (request_.batch) ask(Cause::kBatchTooSmall, "larger_batch");
    if (request_.workers && !has_asked("start_loader_workers") && !has_asked("more_requests"))
      ask(Cause::kInputTooFewWorkers, "more_loader_workers");
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
    for (std::size_t i = 0; i < model_.findings.size() && !index && fix.mechanism == Mechanism::kLoads; ++i)
      if (model_.findings[i].input) index = i;
    const std::size_t before = made_.size();
    add(fix, index, 1.0 / 4, true);
    if (made_.size() == before || index) return;
    Option& option = made_.back().option;
    if (option.promises) return;
    option.promises = true;
    made_.back().change.factor = 1;
    option.gain = {.condition = "nothing in this recording waited for it"};
  }

  // What it saves while others go on to use as many cores.
  [[nodiscard]] double saved_beside_others(const Change& change) const {
    StepModel beside = model_;
    if (beside.cores) *beside.cores -= beside.others;
    return beside.seconds - simulate(beside, std::array{change});
  }

  // That a job could do without a GPU costs the job nothing.
  [[nodiscard]] double share_of_all(const Finding& finding) const {
    // What ended the job cost all that it did.
    if (finding.cause == Cause::kMemoryLimited && finding.confidence == Confidence::kHigh) return 1;
    if (finding.cause == Cause::kDeviceLost) return 1;
    const Cause first = finding.cause ? *finding.cause : finding.candidates.front();
    if (first == Cause::kMoreGpusThanUseful) return 0;
    return static_cast<double>(finding.cost()) / static_cast<double>(std::max<Nanos>(1, e_.ledger.budget()));
  }

  // Who loads in a core that nobody needs takes it from nobody.
  [[nodiscard]] bool has_idle_cores() const {
    constexpr double kIdle = 0.2;  // of a core, on average: less is noise
    return e_.host && e_.host->busy_cores && e_.host->usable_cores - *e_.host->busy_cores >= kIdle;
  }

  [[nodiscard]] std::string_view observation(Cause cause) const { return next_observation(cause, e_.meta); }

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
