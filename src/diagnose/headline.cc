// SPDX-License-Identifier: Apache-2.0
#include "diagnose/headline.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>
#include <set>
#include <string_view>
#include <vector>

#include "base/human.h"
#include "base/visible.h"
#include "diagnose/headline_parts.h"
#include "diagnose/host_memory.h"
#include "diagnose/unseen.h"
#include "diagnose/users.h"
#include "diagnose/words.h"
#include "model/losses.h"

namespace headroom::diagnose {

namespace {

std::string tasks_words(const Analysis& a) {
  std::set<std::int32_t> of_window;
  for (const TaskAttempt& attempt : a.job.batch.attempts) of_window.insert(attempt.task);
  const std::size_t tasks = of_window.size();
  return fmt::format("{} {}", human_count(static_cast<std::int64_t>(tasks)), tasks == 1 ? "task" : "tasks");
}

// What else a batch's GPU time went into, after "31 % ".
std::string batch_words(const Analysis& a, Account account) {
  switch (account) {
    case Account::kStartup:
      return "was start-up of " + tasks_words(a);
    case Account::kDiscarded:
      return "went into work that was thrown away";
    case Account::kTaskWaiting:
      return "passed beside waiting tasks, the GPU free";
    case Account::kNoTask:
      return "had no task";
    case Account::kNotUsed:
      return "was given to tasks that used no GPU";
    case Account::kForeign:
      return "went to other people's kernels";
    case Account::kUnexplained:
      return "stood idle for reasons not seen";
    case Account::kUnderWay:
      return a.goes_on ? "went into tasks that are still under way"
                       : "went into tasks that were under way when the recording ended";
    default:
      return fmt::format("was {}", info(account).label);
  }
}

// The account with most of a batch's time besides what counts as computing: that of thrown-away work and of tasks under
// way, too, where no task counts.
std::pair<Account, Nanos> largest_besides(const Analysis& a, bool none_counts) {
  std::pair<Account, Nanos> largest{Account::kUseful, 0};
  for (const AccountInfo& account : kAccounts) {
    const bool computes = account.id == Account::kUseful ||
                          (none_counts && (account.id == Account::kDiscarded || account.id == Account::kUnderWay));
    if (const Nanos ns = a.ledger.total(account.id); !computes && ns > largest.second) largest = {account.id, ns};
  }
  return largest;
}

// "The 2 GPUs computed for 81 % of 0:47 each; 6 % was start-up of 252 tasks."
std::string batch_headline(const Analysis& a) {
  const Nanos useful = a.ledger.total(Account::kUseful), lost = a.ledger.total(Account::kDiscarded);
  const Nanos under_way = a.ledger.total(Account::kUnderWay);
  const bool none_counts = useful == 0 && lost + under_way > 0;
  const auto [largest, most] = largest_besides(a, none_counts);
  std::vector<std::size_t> all(a.devices.size());
  std::iota(all.begin(), all.end(), 0U);
  std::string each = mean_of(apart_words(a, all, [&](std::size_t device) {
    const auto total = [&](Account account) { return a.ledger.total(account, device); };
    return share_of_span(
        a, total(Account::kUseful) + (none_counts ? total(Account::kDiscarded) + total(Account::kUnderWay) : 0));
  }));
  if (each.empty() && all.size() > 1) each = " each";
  std::string text =
      fmt::format("{} computed for {} of {}{}", subject(a, all),
                  human_percent(a.share(useful + (none_counts ? lost + under_way : 0))), span_words(a), each);
  if (none_counts && under_way == 0)
    text += ", all for work that was thrown away";
  else if (none_counts && lost == 0)
    text += a.goes_on ? ", all for tasks that are still under way"
                      : ", all for tasks that were under way when the recording ended";
  else if (none_counts)
    text += ", none of it for a task that has succeeded";
  if (a.share(most) >= a.limits[Threshold::kWorthSaying])
    text += fmt::format("; {} {}", human_percent(a.share(most)), batch_words(a, largest));
  return text + ".";
}

// The devices that the headline is about, and those of which it only says that nobody used them, or who did.
struct Cast {
  std::vector<std::size_t> used, unused, of_others, unreported;
};

Cast cast_of(const Analysis& a) {
  Cast cast;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const bool free = a.gpus[device].idle_peer || a.ledger.total(Account::kNotUsed, device) == a.ledger.span();
    (a.gpus[device].unreported  ? cast.unreported
     : a.gpus[device].of_others ? cast.of_others
     : free                     ? cast.unused
                                : cast.used)
        .push_back(device);
  }
  if (cast.used.empty()) std::swap(cast.used, cast.unused);
  return cast;
}

// Whether some of what counts its steps was lost; those that no line tells any more, as after an epoch's last one, are
// in no count of lines.
bool steps_lost(const Analysis& a) {
  if (a.work->via == "output") return true;
  const LossKind kind = LossKind::kMarkLost;
  return std::any_of(a.losses.begin(), a.losses.end(), [&](const Loss& loss) { return loss.what == info(kind).name; });
}

std::string rate_words(double rate) { return human_figure(rate, 3); }

// "The driver lost GPU 1. "; nothing where it lost none of the budget.
std::string lost_words(const Analysis& a) {
  std::vector<std::size_t> gone;
  bool back = true;
  for (std::size_t device = 0; device < a.devices.size(); ++device)
    for (const LostDevice& lost : a.lost) {
      if (lost.source != a.devices[device].source) continue;
      if (gone.empty() || gone.back() != device) gone.push_back(device);
      back &= unread_around(a, lost).end < a.window.end;
    }
  if (gone.empty()) return "";
  const std::string names = gone.size() < a.devices.size() ? gpu_names(a, gone)
                            : gone.size() == 1             ? "the GPU"
                                                           : fmt::format("the {} GPUs", gone.size());
  return fmt::format("The driver lost {}{}. ", names, back ? " for a time" : "");
}

// Whether the kernels that wait, if they do, are those of a single GPU beside one that works.
bool may_have_a_job_of_its_own(const Analysis& a) {
  const Claims& claims = a.waits_in_kernels.claims;
  return a.waits_in_kernels.worker && std::all_of(claims.begin(), claims.end(), [&](const ClaimedPiece& piece) {
           return piece.device == claims.front().device;
         });
}

constexpr const char* kTellsNothing = "That tells nothing of the time before and after";

// " GPU 0: utilisation 0 %, 26.7 GiB of 31.8 GiB of memory in use, 412 W.": of a single reading of a few GPUs.
std::string levels_then(const Analysis& a) {
  constexpr std::size_t kNamed = 4;
  std::vector<std::string> gpus;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const MetricStats *memory = a.stats_of(device, Metric::kMemoryUsed), *power = a.stats_of(device, Metric::kPower);
    const MetricStats* util = a.stats_of(device, Metric::kGpuUtil);
    std::vector<std::string> levels;
    const auto total = a.devices[device].device.memory_total_bytes;
    if (util && util->samples > 0) levels.push_back("utilisation " + human_percent(util->max));
    if (memory && memory->samples > 0)
      levels.push_back(fmt::format("{}{} of memory in use", human_bytes(static_cast<std::int64_t>(memory->max)),
                                   total ? " of " + human_bytes(*total) : ""));
    if (power && power->samples > 0) levels.push_back(fmt::format("{:.0f} W", power->max));
    if (!levels.empty()) gpus.push_back(fmt::format("{}: {}", a.device_name(device), fmt::join(levels, ", ")));
  }
  return gpus.empty() || gpus.size() > kNamed ? "" : fmt::format(" {}.", fmt::join(gpus, "; "));
}

// Of a log that has too few readings to conclude anything.
std::string about_readings(const Analysis& a, std::int64_t readings) {
  double highest = 0, least = 0, most = 0;
  std::size_t gpus = 0;
  std::vector<std::size_t> free;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const MetricStats* util = a.stats_of(device, Metric::kGpuUtil);
    if (!util || util->samples == 0) continue;
    ++gpus;
    highest = std::max(highest, util->max);
    const MetricStats* memory = a.stats_of(device, Metric::kMemoryUsed);
    if (!memory || memory->samples == 0) continue;
    least += memory->min, most += memory->max;
    if (util->max == 0 && memory->max < kLeastContext) free.push_back(device);
  }
  std::string text = fmt::format("The log has {} of {}", count_of(readings, "reading"),
                                 gpus == 1 ? "the GPU" : fmt::format("each of {} GPUs", gpus));
  if (highest == 0 && most > 2 * least && readings > 1)
    text += fmt::format("; memory went from {} MiB to {} MiB, as at the start of a job",
                        static_cast<std::int64_t>(least) >> 20, static_cast<std::int64_t>(most) >> 20);
  text += fmt::format(".{} {}: log for minutes, once a second.", readings == 1 ? levels_then(a) : "", kTellsNothing);
  if (!free.empty())
    text += fmt::format(" No program had a context of CUDA on {} then.",
                        free.size() == gpus ? "any of them" : gpu_names(a, free));
  return text;
}

std::string about_moment(const Analysis& a, const std::vector<std::size_t>& devices) {
  Nanos busy = 0;
  for (const std::size_t device : devices) busy += a.ledger.busy(device);
  return fmt::format("{} computed for {} of the {} that were watched. {}: watch for a minute or more.",
                     subject(a, devices), human_percent(share_of_span(a, busy / static_cast<Nanos>(devices.size()))),
                     span_words(a), kTellsNothing);
}

// What is to be said where no GPU is there to speak of.
std::optional<std::string> about_no_gpu(const Analysis& a) {
  if (a.machine.empty() && !a.ranks.empty()) {
    const RankPace& slowest = a.ranks.front();
    return fmt::format(
        "Of {} ranks that count their steps, {} was the slowest: {:.2f} times the median of its peers in {} "
        "steps in a row, {:.2f} times in all {}. No GPU was recorded.",
        a.ranks.size(), slowest.name, slowest.slowest, slowest.to - slowest.from + 1, slowest.all, slowest.steps);
  }
  if (a.machine.empty() && a.goes_on && a.window.end <= a.window.begin) return "Nothing has been read yet.";
  if (a.machine.empty()) return fmt::format("No GPU was recorded in {}.", span_words(a));
  if (a.devices.empty()) return fmt::format("The job was given no GPU and used none in {}.", span_words(a));
  return std::nullopt;
}

// Of kernels that only waited.
std::string waiting_kernels(const Analysis& a, const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    const bool waits = !finding.candidates.empty() && finding.candidates.front() == Cause::kHang &&
                       !finding.claims.empty() && finding.claims.front().account == Account::kUseful;
    if (waits) text += fmt::format(" In {} of it their kernels only waited.", human_percent(a.share(finding.cost())));
  }
  const Nanos waited = length(a.waits_in_kernels.claims);
  if (!a.material(waited)) return text;
  const bool alone = may_have_a_job_of_its_own(a);
  return text + fmt::format(" In {} of it kernels {}.", human_percent(a.share(waited)),
                            a.waits_in_kernels.everywhere ? "hardly worked"
                            : alone                       ? "hardly worked beside another GPU, and may have waited"
                                                          : "only waited for another GPU");
}

std::string about_unused(const Analysis& a, const std::vector<std::size_t>& unused) {
  if (unused.empty()) return "";
  const bool touched =
      std::any_of(unused.begin(), unused.end(), [&](auto device) { return a.ledger.busy(device) > 0; });
  if (a.job.owners_unknown)
    return fmt::format(" On {} {} kernel ran.", gpu_names(a, unused), touched ? "hardly a" : "no");
  return fmt::format(" {} {} {}.", gpu_names(a, unused), unused.size() == 1 ? "was" : "were",
                     touched                      ? "hardly used"
                     : a.goes_on                  ? "not used so far"
                     : may_have_missed_kernels(a) ? "not seen in use"
                                                  : "never used");
}

std::string about_steps(const Analysis& a) {
  if (!a.work || !a.work->steps_per_second) return "";
  const std::string rate =
      (steps_lost(a) ? "at least " : "") + rate_words(*a.work->steps_per_second) + " steps per second";
  if (a.work->processes > 1)
    return fmt::format(" Of {} processes that count steps, the one with most did {} from its first to its last.",
                       a.work->processes, rate);
  return fmt::format(" From its first step to its last the job did {}{}.", rate,
                     a.work->samples_per_second
                         ? fmt::format(", {} samples per second", rate_words(*a.work->samples_per_second))
                         : "");
}

// What a log says of the processes on its GPUs.
std::string about_processes(const Analysis& a) {
  std::string text;
  if (const auto shares = a.meta.extra.find("processes"); shares != a.meta.extra.end())
    text = fmt::format(" In the log are several processes, with these mean shares of the SMs: {}.",
                       visible(shares->second));
  else if (const std::string named = named_processes(a); !named.empty())
    text = fmt::format(" Processes in the log: {}.", named);
  if (const std::string users = users_words(a); !users.empty())
    text += fmt::format(" Processes in the log: {}.", users);
  for (const char* const key : {"sharing", "newcomer"})
    if (const auto told = a.meta.extra.find(key); told != a.meta.extra.end())
      text += fmt::format(" {}.", visible(told->second));
  return text;
}

std::string what_happened(const Analysis& a, const std::vector<Finding>& findings) {
  if (const auto text = about_no_gpu(a)) return *text;
  if (a.job.batch.present) return batch_headline(a);
  const auto set = [&](Cause cause) {
    return std::any_of(findings.begin(), findings.end(), [&](const auto& f) { return f.cause == cause; });
  };
  if (set(Cause::kJobNeverUsesGpu))
    return fmt::format("The job {} a GPU in {}.", was_met_midway(a) ? "did not use" : "never used", span_words(a));
  const Cast cast = cast_of(a);
  if (cast.used.empty())
    return fmt::format("What the GPUs did in {} is unknown: {}.", span_words(a),
                       !cast.unreported.empty() && logged_no_utilisation(a, cast.unreported.front())
                           ? "the log has " + no_utilisation_words(a)
                           : std::string("their utilisation was not reported"));
  if (const auto readings = too_few_readings(a)) return about_readings(a, *readings);
  if (a.ledger.total(Account::kUnobserved) == a.ledger.budget())
    return fmt::format("No reading covers these {}.", span_words(a));
  if (watched_for_a_moment(a)) return about_moment(a, cast.used);
  std::string text = about_used(a, findings, cast.used) + waiting_kernels(a, findings);
  if (set(Cause::kOwnersUnknown)) text += " Whose kernels they were is unknown.";
  text += about_unused(a, cast.unused);
  if (!cast.of_others.empty())
    text += fmt::format(" {} {} used by other programs alone.", gpu_names(a, cast.of_others),
                        cast.of_others.size() == 1 ? "was" : "were");
  text += about_steps(a);
  if (!cast.unreported.empty()) text += fmt::format(" {} reported no utilisation.", gpu_names(a, cast.unreported));
  return text + about_processes(a);
}

// ", in epoch 5 of 8"
std::string where_it_failed(const std::optional<Progress>& progress) {
  if (!progress || !progress->epoch) return "";
  const auto& epoch = *progress->epoch;
  const auto at = [](std::string_view unit, const Progress::At& one) {
    return fmt::format("{} {}{}", unit, one.number, one.of > 0 ? fmt::format(" of {}", one.of) : "");
  };
  const std::string fold = progress->fold ? at(" of fold", *progress->fold) : "";
  return fmt::format(", {} {}{}", epoch.done ? "after" : "in", at("epoch", epoch), fold);
}

// "It was out of host memory: the kernel killed 1 process in the job's cgroup for want of memory meanwhile. "
std::string host_kill_words(const Analysis& a) {
  const auto kill = host_kill(a);
  if (!kill) return "";
  std::string words = kill->words;
  if (kill->sure) return fmt::format("It was out of host memory: {}. ", words);
  words[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(words[0])));
  return words + ". ";
}

// Of a job that was recorded by its number; that its parent has taken the exit code is not always seen in time.
std::string failed_while_watched(const Analysis& a) {
  if (!a.meta.job_pid || a.meta.stop_reason != "job_ended") return "";
  const auto job = std::find_if(a.processes.begin(), a.processes.end(), [&](const RecordedProcess& process) {
    return process.facts.in_job && process.facts.pid == *a.meta.job_pid;
  });
  const auto code = job == a.processes.end() ? std::nullopt : job->facts.exit_code;
  if (code.value_or(0) != 0)
    return fmt::format("The job failed while it was watched: exit code {}{}. ", *code,
                       a.exception.empty() ? "" : fmt::format(" ({})", visible(a.exception)));
  if (code || a.exception.empty()) return "";
  return fmt::format("What the job wrote ended with an exception: {}. ", visible(a.exception));
}

// Who asks about a job that failed wants to know that first.
std::string failed_words(const Analysis& a, const std::optional<Progress>& progress) {
  if (a.job.batch.present || a.goes_on || a.window.end < a.meta.end) return "";
  if (!a.meta.exit_code) return failed_while_watched(a);
  const int code = *a.meta.exit_code;
  if (code == 0) return "";
  const std::string after = human_duration(a.ledger.span()) + where_it_failed(progress);
  if (const auto signal = a.signal(); signal && !a.returned)
    return fmt::format("Signal {} ended the job after {}. {}", *signal, after, host_kill_words(a));
  return fmt::format("The job failed after {}: exit code {}{}. {}", after, code,
                     a.exception.empty() ? "" : fmt::format(" ({})", visible(a.exception)), host_kill_words(a));
}

// Of a log of several machines which GPUs are whose.
std::string hosts_words(const Analysis& a) {
  const auto hosts = a.meta.extra.find("hosts");
  if (hosts == a.meta.extra.end()) return "";
  const bool several = hosts->second.find("), ") != std::string::npos;
  return fmt::format(" {} in the log: {}.", several ? "Hosts" : "Host", visible(hosts->second));
}

// A job that tells its epochs or steps has its start behind it, though no kernel of it has come: nothing waits for
// that.
std::string works_without_a_gpu(const Analysis& a, const std::optional<Progress>& progress) {
  if (!a.goes_on || !progress || !a.job.has_contexts || a.ledger.total(Account::kUseful) > 0) return "";
  if (std::any_of(a.job.uses.begin(), a.job.uses.end(), [](const ContextUse& use) { return use.ours; })) return "";
  return fmt::format("The job says how far it is, and was seen on no GPU in {}.", span_words(a));
}

}  // namespace

void put_headline(std::string sentence, bool goes_on, Explanation& e) {
  e.headline = (goes_on ? "So far: " : "") + sentence;
  e.sentence = std::move(sentence);
}

void put_headline(const Analysis& a, Explanation& e) {
  const std::string without = works_without_a_gpu(a, e.progress);
  put_headline(lost_words(a) + failed_words(a, e.progress) +
                   (without.empty() ? what_happened(a, e.findings) : without) + hosts_words(a),
               a.goes_on, e);
}

}  // namespace headroom::diagnose
