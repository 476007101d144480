// SPDX-License-Identifier: Apache-2.0
#include "plan/shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/human.h"
#include "model/cores.h"
#include "model/observations.h"
#include "plan/measured.h"

namespace headroom::planning {

namespace {

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

// Other workers of the loader: as many as are asked for, or as the cores carry.
class LoaderWorkers {
 public:
  LoaderWorkers(const Explanation& e, const StepModel& model, const PlanRequest& request, const Numbers& known,
                Candidate& made)
      : e_(e), model_(model), request_(request), known_(known), made_(made), option_(made.option) {}

  bool shape() {
    if (const auto finding = made_.change.finding)  // what to do is no number of workers
      if (const auto& remedy = e_.findings[*finding].remedy; remedy && remedy->fix == option_.id) return true;
    if (option_.id == "more_requests" && !(asleep_ && model_.workers > 0)) return false;  // what is full takes no more
    limit_to_cores();
    if (workers_ <= model_.workers && !made_.asked) return false;  // the cores carry no more
    if (const double now = said_ ? said_->value : model_.workers; workers_ == now) {
      stay();
      return true;
    }
    if (model_.cores && !asleep_) made_.change.workers = workers_;  // else the finding's own bound is all that is known
    option_.apply = how();
    if (!known_.workers) option_.apply += ", with as many as cores are free: they were not recorded";
    option_.apply += limit_;
    tell_of_simulation();
    tell_how_to_verify();
    if (!made_.change.finding && model_.workers > 0) option_.promises = true;
    return true;
  }

 private:
  void limit_to_cores() {
    if (!model_.cores || asleep_ || probed_) return;
    const double most = std::ceil(*cores_then(model_, made_.change) / model_.cores_each);
    if (workers_ <= most) return;
    workers_ = static_cast<int>(most);
    limit_ = fmt::format("; {} workers would share {:.3g} usable cores", *known_.workers, e_.host->usable_cores);
  }

  // Who asks for workers is answered also where there can be no more than there are.
  void stay() {
    option_.title = fmt::format("Stay with {}", count_of(workers_, "loader worker"));
    const std::string loaders = workers_ == 1 ? "the process that it started loads"
                                              : fmt::format("the {} processes that it started load", workers_);
    option_.apply = said_ ? fmt::format("nothing: the job has {} already{}", workers_, limit_)
                          : fmt::format("nothing, if {} its data{}", loaders, limit_);
    option_.safety = Safety::kSafe;
    option_.why_safe = "it changes nothing";
    option_.promises = false;
    option_.gain = {.none = "none"};
    option_.verify = which_is_faster("FEWER,MORE");
  }

  // Whether stacks were looked at in the time that this finding claims, and were in no loader there.
  [[nodiscard]] bool no_loader_seen() const {
    const auto finding = made_.change.finding;
    return finding && e_.findings[*finding].tiers.has("Y") && !model_.findings[*finding].input;
  }

  [[nodiscard]] std::string by_processes() const {
    if (without_python(e_.meta))
      return fmt::format("let {} load the next batches meanwhile",
                         count_of(workers_, "thread or process", "threads or processes"));
    const std::string processes = count_of(workers_, "process", "processes");
    if (request_.loader == Loader::kPool) return fmt::format("a Pool of {} that load the next batches", processes);
    return fmt::format("let {} load the next batches meanwhile (of a DataLoader: num_workers={})", processes, workers_);
  }

  [[nodiscard]] bool by_threads() const {
    return made_.change.finding && e_.findings[*made_.change.finding].by_threads;
  }
  [[nodiscard]] bool by_sleeping_threads() const { return asleep_ && by_threads(); }

  [[nodiscard]] std::string how() const {
    if (by_sleeping_threads()) return e_.findings[*made_.change.finding].advice;
    if (said_ && said_->value != workers_)
      return fmt::format("{}{} instead of {}{}", said_->name, workers_, said_->words,
                         words_for(e_.meta, {" (num_workers of the DataLoader)", ""}));
    if (by_threads()) return "if it can be made ahead of the kernels that need it: " + by_processes();
    if (no_loader_seen()) return "if it loads data there: " + by_processes();
    if (request_.loader == Loader::kOther && option_.id == "more_loader_workers")  // what these do is not known
      return "if it needs nothing of the step before: " + by_processes();
    if (request_.loader == Loader::kPool || request_.loader == Loader::kOther || without_python(e_.meta))
      return by_processes();
    if (known_.workers)
      return fmt::format("DataLoader(..., num_workers={}, persistent_workers=True, pin_memory=True)", workers_);
    return option_.apply;
  }

  void tell_of_simulation() {
    constexpr double kNoticed = 0.05;
    const auto cores = cores_then(model_, made_.change);
    if (!cores || asleep_ || option_.gain.condition.empty()) return;
    option_.gain.more += fmt::format("; simulated with {} on {} core{}", count_of(workers_, "worker"),
                                     human_figure(*cores, 2), *cores > 1 ? "s" : "");
    if (const double others = std::min(*cores, cores_of_others(*e_.host)); others >= kNoticed)
      option_.gain.more += fmt::format(", {} of which others used meanwhile", human_figure(others, 2));
  }

  void tell_how_to_verify() {
    if (by_sleeping_threads())
      option_.title = "More loader threads", option_.verify = "time per step with twice as many threads";
    else if (!probed_)
      option_.verify = which_is_faster(fmt::format("{},{}",
                                                   said_     ? fmt::format("{}", said_->value)
                                                   : e_.host ? fmt::format("{}", e_.host->helpers)
                                                             : "NOW",
                                                   workers_));
  }

  [[nodiscard]] std::string which_is_faster(std::string_view numbers) const {
    return fmt::format("headroom probe --vary {0}={1} -- CMD {{{0}}}: which is faster",
                       words_for(e_.meta, {"num_workers", "workers"}), numbers);
  }

  const Explanation& e_;
  const StepModel& model_;
  const PlanRequest& request_;
  const Numbers& known_;
  Candidate& made_;
  Option& option_;
  const std::optional<SaidSetting> said_ = workers_said(e_);
  const bool asleep_ = loading_sleeps(e_, model_, made_.change.finding);  // then cores are not what limits workers
  // Then it is known what more of them give.
  const bool probed_ = request_.probe && varied(*request_.probe) == Varied::kWorkers;
  int workers_ = known_.workers.value_or(4);
  std::string limit_;
};

bool enlarges(const Explanation& e, const PlanRequest& request, const Numbers& known, Candidate& made) {
  Option& option = made.option;
  if (option.cause != Cause::kBatchTooSmall) {
    option.promises = false;
    return true;
  }
  const double factor = batch_gain(e, request, known.batch_factor.value_or(2));
  if (known.batch_factor && *known.batch_factor <= 1 && !made.asked) return false;  // no memory for it
  made.change.finding.reset();  // it acts on every step, not on what is claimed
  made.change.factor = factor;
  option.promises = e.bound.has_value();
  // What was asked about may run all the same, though less would fit: which of both is not known.
  if (!request.batch || known.batch_limit.empty()) option.batch_sizes = known.batch;
  if (const auto said = batch_said(e); said && known.batch && said->value == known.batch->first)
    option.apply = fmt::format("{}{:g} instead of {}", said->name, known.batch->second, said->words);
  if (request.step_times) made.flipped.clear();
  if (request.step_times && request.batch)
    option.gain = {.condition = "by the line through two measured batch sizes, if the loader keeps up"};
  else if (known.batch)
    option.gain = {.condition = fmt::format("if batch {:g} to {:g} is the cause at all and the accuracy stays; else "
                                            "no gain. Two batch sizes measured tell",
                                            known.batch->first, known.batch->second)};
  else
    option.gain = {.condition =
                       "if the batch is the cause at all and the accuracy stays. Two batch sizes measured tell"};
  if (!known.batch_limit.empty()) option.gain.more = "; " + known.batch_limit;
  if (!request.step_times && !request.probe) {
    option.apply += "; measure it first at both sizes";
    option.verify = fmt::format(
        "headroom probe --vary batch_size={} -- CMD {{batch_size}}: time per sample at both sizes; then the metric "
        "at "
        "equal samples",
        known.batch ? fmt::format("{:g},{:g}", known.batch->first, known.batch->second) : "SIZE,LARGER");
  }
  return true;
}

void packs(const Explanation& e, const PlanRequest& request, Candidate& made) {
  if (!made.asked || made.change.finding || !e.bound) return;
  const double at_once = e.batch ? e.batch->at_once.value_or(1) : 1;
  const double times = static_cast<double>(request.tasks.value_or(1)) / std::max(1.0, at_once);
  made.change.factor = std::clamp(times, 1.0, e.bound->speedup_high);
  made.option.promises = true;
  made.option.gain = {.condition =
                          times > 1 ? "if their kernels do not slow each other down and memory and cores suffice"
                                    : fmt::format("{:.1f} tasks ran at once on each GPU already, on average", at_once)};
}

// GPUs that stood free could have worked as those that did.
bool spreads(const Explanation& e, Candidate& made) {
  if (!made.change.finding) return false;
  std::set<std::size_t> claimed;
  for (const ClaimedPiece& piece : e.findings[*made.change.finding].claims) claimed.insert(piece.device);
  const std::size_t all = e.ledger.devices.size();
  const bool may_be_one_task = !e.findings[*made.change.finding].cause;
  made.change.finding.reset();
  if (claimed.empty() || claimed.size() >= all || may_be_one_task) {
    made.option.promises = false;
    return true;
  }
  made.change.factor = static_cast<double>(all) / static_cast<double>(all - claimed.size());
  made.option.promises = true;
  made.option.gain = {
      .condition = "if the work can be split evenly over all of them, and nothing for a single task that uses one GPU"};
  return true;
}

// The one thing that Headroom may change itself: what the task file says of memory.
void reserve(const Explanation& e, Candidate& made) {
  if (!e.batch || !e.batch->largest_gpu_bytes) return;
  if (e.batch->too_large) {
    made.option.title = "Make the task smaller that fits no GPU here";
    made.option.apply = "a smaller batch for the task that ran out of memory alone on its GPU, or a GPU with more";
    made.option.promises = false;
    return;
  }
  constexpr double kMargin = 1.25;  // of the largest attempt that was seen: it had not all it wanted
  const double bytes = kMargin * static_cast<double>(*e.batch->largest_gpu_bytes);
  const auto mib = static_cast<std::int64_t>(bytes / (1 << 20)) + 1;
  made.option.apply = fmt::format("gpu_memory = \"{}MiB\" in [defaults] of the task file (--apply writes it)", mib);
  made.option.task_file = {"gpu_memory", fmt::format("{}MiB", mib)};
}

bool removes(const Explanation& e, const StepModel& model, Candidate& made) {
  const Option& option = made.option;
  if (option.id == "reserve_memory") reserve(e, made);
  // Where processes were watched, who waits for no data has nobody that reads ahead.
  if (option.id == "larger_prefetch" && e.host && made.change.finding && !model.findings[*made.change.finding].input)
    return false;
  return option.id != "longest_first" || option.promises;  // where no order helps it is no advice
}

}  // namespace

bool shape(const Explanation& e, const StepModel& model, const PlanRequest& request, const Numbers& known,
           Candidate& made) {
  const Cause cause = *made.option.cause;
  made.option.promises = made.change.finding && e.findings[*made.change.finding].gain.has_value();
  // Of workers that start anew what they use is starts, too.
  made.change.cheaper = made.change.mechanism == Mechanism::kRemoves &&
                        (cause == Cause::kInputInMainProcess || cause == Cause::kInputTooFewWorkers ||
                         cause == Cause::kEpochWorkerRestart);
  switch (made.change.mechanism) {
    case Mechanism::kLoads:
      return LoaderWorkers(e, model, request, known, made).shape();
    case Mechanism::kEnlarges:
      return enlarges(e, request, known, made);
    case Mechanism::kPacks:
      packs(e, request, made);
      return true;
    case Mechanism::kSpreads:
      return spreads(e, made);
    case Mechanism::kReturns:
      made.option.promises = false;
      return true;
    case Mechanism::kRemoves:
    case Mechanism::kOverlaps:
      return removes(e, model, made);
  }
  return true;
}

}  // namespace headroom::planning
