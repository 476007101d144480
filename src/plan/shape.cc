// SPDX-License-Identifier: Apache-2.0
#include "plan/shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/human.h"
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

// Whether its stacks were looked at in the time that this finding claims, and were in no loader there.
bool no_loader_seen(const Explanation& e, const StepModel& model, std::optional<std::size_t> finding) {
  return finding && e.findings[*finding].tiers.has("Y") && !model.findings[*finding].input;
}

std::string by_processes(const Explanation& e, const PlanRequest& request, int workers) {
  if (without_python(e.meta))
    return fmt::format("let {} load the next batches meanwhile",
                       count_of(workers, "thread or process", "threads or processes"));
  const std::string processes = count_of(workers, "process", "processes");
  if (request.loader == Loader::kPool) return fmt::format("a Pool of {} that load the next batches", processes);
  return fmt::format("let {} load the next batches meanwhile (of a DataLoader: num_workers={})", processes, workers);
}

// Who asks for workers is answered also where there can be no more than there are.
void stays(int workers, bool said, std::string_view limit, Option& option) {
  option.title = fmt::format("Stay with {}", count_of(workers, "loader worker"));
  const std::string loaders = workers == 1 ? "the process that it started loads"
                                           : fmt::format("the {} processes that it started load", workers);
  option.apply = said ? fmt::format("nothing: the job has {} already{}", workers, limit)
                      : fmt::format("nothing, if {} its data{}", loaders, limit);
  option.safety = Safety::kSafe;
  option.why_safe = "it changes nothing";
  option.promises = false;
  option.gain = {.none = "none"};
  option.verify = "headroom probe --vary num_workers=FEWER,MORE -- CMD {num_workers}: which is faster";
}

bool loads(const Explanation& e, const StepModel& model, const PlanRequest& request, const Numbers& known,
           Candidate& made) {
  Option& option = made.option;
  const auto said = workers_said(e);
  int workers = known.workers.value_or(4);
  std::string limit;
  const bool asleep = loading_sleeps(e, model, made.change.finding);  // then cores are not what limits workers
  if (option.id == "more_requests" && !(asleep && model.workers > 0)) return false;  // what is full takes no more
  const double most = model.cores ? std::ceil(*cores_then(model, made.change) / model.cores_each) : 0;
  const bool ran = request.probe && varied(*request.probe) == Varied::kWorkers;  // then it is known what that gives
  if (model.cores && !asleep && !ran && workers > most) {
    workers = static_cast<int>(most);
    limit = fmt::format("; {} workers would share {:.3g} usable cores", *known.workers, e.host->usable_cores);
  }
  if (workers <= model.workers && !made.asked) return false;  // the cores carry no more
  if (const double now = said ? said->value : model.workers; workers == now) {
    stays(workers, said.has_value(), limit, option);
    return true;
  }
  if (model.cores && !asleep) made.change.workers = workers;  // else the finding's own bound is all that is known
  const bool by_sleeping_threads = made.change.finding && e.findings[*made.change.finding].by_threads && asleep;
  if (by_sleeping_threads)
    option.apply = e.findings[*made.change.finding].advice;
  else if (said && said->value != workers)
    option.apply = fmt::format("{}{} instead of {} (num_workers of the DataLoader)", said->name, workers, said->words);
  else if (no_loader_seen(e, model, made.change.finding))
    option.apply = "if it loads data there: " + by_processes(e, request, workers);
  else if (request.loader == Loader::kPool || request.loader == Loader::kOther || without_python(e.meta))
    option.apply = by_processes(e, request, workers);
  else if (known.workers)
    option.apply = fmt::format("DataLoader(..., num_workers={}, persistent_workers=True, pin_memory=True)", workers);
  if (!known.workers) option.apply += ", with as many as cores are free: they were not recorded";
  option.apply += limit;
  if (const auto cores = cores_then(model, made.change); cores && !asleep && !option.gain.condition.empty()) {
    option.gain.more += fmt::format("; simulated with {} on {} core{}", count_of(workers, "worker"),
                                    human_figure(*cores, 2), *cores > 1 ? "s" : "");
    constexpr double kNoticed = 0.05;
    if (model.others >= kNoticed)
      option.gain.more += fmt::format(", {} of which others used meanwhile", human_figure(model.others, 2));
  }
  if (by_sleeping_threads)
    option.title = "More loader threads", option.verify = "time per step with twice as many threads";
  else if (!ran)
    option.verify = fmt::format("headroom probe --vary num_workers={},{} -- CMD {{num_workers}}: which is faster",
                                said     ? fmt::format("{}", said->value)
                                : e.host ? fmt::format("{}", e.host->helpers)
                                         : "NOW",
                                workers);
  if (!made.change.finding && model.workers > 0) option.promises = true;
  return true;
}

bool enlarges(const Explanation& e, const PlanRequest& request, const Numbers& known, Candidate& made) {
  Option& option = made.option;
  const double factor = batch_gain(e, request, known.batch_factor.value_or(2));
  if (known.batch_factor && *known.batch_factor <= 1 && !made.asked) return false;  // no memory for it
  made.change.finding.reset();  // it acts on every step, not on what is claimed
  made.change.factor = factor;
  option.promises = e.bound.has_value();
  if (known.batch) option.batch_sizes = known.batch;
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

}  // namespace

bool shape(const Explanation& e, const StepModel& model, const PlanRequest& request, const Fix& fix,
           const Numbers& known, Candidate& made) {
  Option& option = made.option;
  option.promises = made.change.finding && e.findings[*made.change.finding].gain.has_value();
  // Of workers that start anew what they use is starts, too.
  made.change.cheaper = fix.mechanism == Mechanism::kRemoves &&
                        (fix.cause == Cause::kInputInMainProcess || fix.cause == Cause::kInputTooFewWorkers ||
                         fix.cause == Cause::kEpochWorkerRestart);
  switch (fix.mechanism) {
    case Mechanism::kLoads:
      return loads(e, model, request, known, made);
    case Mechanism::kEnlarges:
      if (fix.cause != Cause::kBatchTooSmall) {
        option.promises = false;
        return true;
      }
      return enlarges(e, request, known, made);
    case Mechanism::kPacks:
      if (made.asked && !made.change.finding && e.bound) {
        const double at_once = e.batch ? e.batch->at_once.value_or(1) : 1;
        const double times = static_cast<double>(request.tasks.value_or(1)) / std::max(1.0, at_once);
        made.change.factor = std::clamp(times, 1.0, e.bound->speedup_high);
        option.promises = true;
        option.gain = {
            .condition = times > 1 ? "if their kernels do not slow each other down and memory and cores suffice"
                                   : fmt::format("{:.1f} tasks ran at once on each GPU already, on average", at_once)};
      }
      return true;
    case Mechanism::kSpreads:
      return spreads(e, made);
    case Mechanism::kReturns:
      option.promises = false;
      return true;
    case Mechanism::kRemoves:
    case Mechanism::kOverlaps:
      if (fix.id == "reserve_memory") reserve(e, made);
      // Where processes were watched, who waits for no data has nobody that reads ahead.
      if (fix.id == "larger_prefetch" && e.host && made.change.finding && !model.findings[*made.change.finding].input)
        return false;
      return fix.id != "longest_first" || option.promises;  // where no order helps it is no advice
  }
  return true;
}

}  // namespace headroom::planning
