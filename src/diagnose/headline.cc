// SPDX-License-Identifier: Apache-2.0
#include "diagnose/headline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/human.h"
#include "diagnose/claims.h"
#include "diagnose/words.h"
#include "model/losses.h"

namespace headroom::diagnose {

namespace {

struct Phrase {
  Account account;
  const char* text;  // "31 % …"
};
constexpr std::array kPhrases{
    Phrase{Account::kInput, "waited {} for its data"},
    Phrase{Account::kHostCode, "waited {} for code of the job"},
    Phrase{Account::kStartup, "waited {} for the start-up"},
    Phrase{Account::kCheckpoint, "waited {} while the job wrote to storage"},
    Phrase{Account::kValidationHost, "waited {} while the job validated"},
    Phrase{Account::kTransfer, "waited {} for copies"},
    Phrase{Account::kSync, "waited {} while the job synchronised with it"},
    Phrase{Account::kPeers, "waited {} for other processes of the job"},
    Phrase{Account::kTeardown, "stayed held for {} after the last kernel"},
    Phrase{Account::kHung, "hung for {}"},
    Phrase{Account::kStopped, "stood idle {} while the job was stopped"},
    Phrase{Account::kUnexplained, "stood idle {} for reasons not seen"},
    Phrase{Account::kTaskWaiting, "stood free {} while tasks waited"},
    Phrase{Account::kNotUsed, "went unused for {}"},
    Phrase{Account::kNoTask, "had nothing to do for {}"},
    Phrase{Account::kForeign, "computed {} for others"},
    Phrase{Account::kUnobserved, "went unobserved for {}"},
};

// The devices that the headline is about, and those of which it only says that nobody used them.
struct Cast {
  std::vector<std::size_t> used, unused, unreported;
};

Cast cast_of(const Analysis& a) {
  Cast cast;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const bool free = a.idle_peer[device] || a.ledger.total(Account::kNotUsed, device) == a.ledger.span();
    (a.unreported[device] ? cast.unreported : free ? cast.unused : cast.used).push_back(device);
  }
  if (cast.used.empty()) std::swap(cast.used, cast.unused);
  return cast;
}

std::string subject(const Analysis& a, const std::vector<std::size_t>& devices) {
  if (devices.size() < a.devices.size()) return gpu_names(a, devices);
  return devices.size() == 1 ? "The GPU" : fmt::format("The {} GPUs", devices.size());
}
std::string subject(const Analysis& a) {
  return a.devices.size() == 1 ? "The GPU" : fmt::format("The {} GPUs", a.devices.size());
}

std::string span_words(const Analysis& a) { return human_duration(a.ledger.span()); }

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

// "The 2 GPUs computed for 81 % of 0:47 each; 6 % was start-up of 252 tasks."
std::string batch_headline(const Analysis& a) {
  const Nanos useful = a.ledger.total(Account::kUseful), lost = a.ledger.total(Account::kDiscarded);
  const Nanos under_way = a.ledger.total(Account::kUnderWay);
  const bool none_counts = useful == 0 && lost + under_way > 0;
  Account largest = Account::kUseful;
  Nanos most = 0;
  for (const AccountInfo& account : kAccounts) {
    const bool said = account.id == Account::kUseful ||
                      (none_counts && (account.id == Account::kDiscarded || account.id == Account::kUnderWay));
    if (const Nanos ns = a.ledger.total(account.id); !said && ns > most) {
      most = ns;
      largest = account.id;
    }
  }
  std::string text = fmt::format("{}{} computed for {} of {}{}", a.goes_on ? "So far: " : "", subject(a),
                                 human_percent(a.share(useful + (none_counts ? lost + under_way : 0))), span_words(a),
                                 a.devices.size() == 1 ? "" : " each");
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

// "GPU 0 computed for 17 % of 21.6 s. It waited 77 % for its data."
std::string about_used(const Analysis& a, const std::vector<std::size_t>& devices) {
  const auto total = [&](Account account) {
    Nanos sum = 0;
    for (const std::size_t device : devices) sum += a.ledger.total(account, device);
    return sum;
  };
  const Nanos time = a.ledger.span() * static_cast<Nanos>(devices.size());
  const auto share = [&](Nanos ns) { return static_cast<double>(ns) / static_cast<double>(std::max<Nanos>(1, time)); };
  const bool one = devices.size() == 1;
  const Nanos useful = total(Account::kUseful), idle = total(Account::kUnexplained);
  const std::string busy = human_percent(share(useful));
  Nanos pauses = 0, error = 0;
  for (const LedgerEntry& entry : a.ledger.entries)
    if (entry.account == Account::kUnexplained && a.is_pause(entry.phase)) pauses += entry.ns;
  for (const std::size_t device : devices) error += a.busy_error[device];
  const double material = a.limits[Threshold::kMaterial];
  if (!a.job.has_contexts && share(idle - pauses) >= material)
    return fmt::format("{} {} busy for {}{} of {}. Why {} idle otherwise cannot be told from this recording alone.",
                       subject(a, devices), one ? "was" : "were", share(error) >= material ? "about " : "", busy,
                       span_words(a), one ? "it was" : "they were");
  if (!a.job.has_contexts && pauses > 0 && useful > 0)
    return fmt::format("{} computed for {} of {} and stood idle {}, in phases that recur.", subject(a, devices), busy,
                       span_words(a), human_percent(share(idle)));
  std::string text = fmt::format("{} computed for {} of {}.", subject(a, devices), busy, span_words(a));
  const auto words = [&](const Phrase& phrase) {
    const bool of_job = phrase.account == Account::kNoTask && a.job.has_job;  // which may have done something else
    return of_job ? "stood without a process of the job for {}" : phrase.text;
  };
  const Phrase* largest = nullptr;
  Nanos most = 0;
  for (const Phrase& phrase : kPhrases)
    if (const Nanos ns = total(phrase.account); ns > most) {
      most = ns;
      largest = &phrase;
    }
  if (largest && share(most) >= a.limits[Threshold::kWorthSaying])
    text += fmt::format(" {} {}.", one ? "It" : "They",
                        fmt::format(fmt::runtime(words(*largest)), human_percent(share(most))));
  return text;
}

bool marks_lost(const Analysis& a) {
  return std::any_of(a.losses.begin(), a.losses.end(), [](const Loss& loss) {
    return loss.what == info(LossKind::kMarkLost).name || loss.what == info(LossKind::kOutputLost).name;
  });
}

std::string rate_words(double rate) {
  return rate >= 1000 ? human_count(static_cast<std::int64_t>(rate)) : fmt::format("{:.3g}", rate);
}

}  // namespace

std::string headline(const Analysis& a, const std::vector<Finding>& findings) {
  if (a.machine.empty() && !a.ranks.empty()) {
    const RankPace& slowest = a.ranks.front();
    return fmt::format(
        "Of {} ranks that count their steps, {} was the slowest: {:.2f} times the median of its peers in {} "
        "steps in a row, {:.2f} times in all {}. No GPU was recorded.",
        a.ranks.size(), slowest.name, slowest.slowest, slowest.to - slowest.from + 1, slowest.all, slowest.steps);
  }
  if (a.machine.empty()) return fmt::format("No GPU was recorded in {}.", span_words(a));
  if (a.devices.empty()) return fmt::format("The job was given no GPU and used none in {}.", span_words(a));
  if (a.job.batch.present) return batch_headline(a);
  const auto set = [&](Cause cause) {
    return std::any_of(findings.begin(), findings.end(), [&](const auto& f) { return f.cause == cause; });
  };
  if (set(Cause::kJobNeverUsesGpu)) return fmt::format("The job never used a GPU in {}.", span_words(a));
  const Cast cast = cast_of(a);
  if (cast.used.empty())
    return fmt::format("What the GPUs did in {} is unknown: their utilisation was not reported.", span_words(a));
  const Nanos unobserved = a.ledger.total(Account::kUnobserved);
  if (unobserved == a.ledger.budget()) return fmt::format("No reading covers these {}.", span_words(a));
  std::string text = about_used(a, cast.used);
  for (const Finding& finding : findings) {
    const bool waits = !finding.candidates.empty() && finding.candidates.front() == Cause::kHang &&
                       !finding.claims.empty() && finding.claims.front().account == Account::kUseful;
    if (waits) text += fmt::format(" In {} of it their kernels only waited.", human_percent(a.share(finding.cost())));
  }
  if (set(Cause::kOwnersUnknown)) text += " Whose kernels they were is unknown.";
  if (!cast.unused.empty()) {
    const bool touched = std::any_of(cast.unused.begin(), cast.unused.end(),
                                     [&](std::size_t device) { return a.ledger.busy(device) > 0; });
    if (a.job.owners_unknown)
      text += fmt::format(" On {} {} kernel ran.", gpu_names(a, cast.unused), touched ? "hardly a" : "no");
    else
      text += fmt::format(" {} {} {} used.", gpu_names(a, cast.unused), cast.unused.size() == 1 ? "was" : "were",
                          touched ? "hardly" : "never");
  }
  if (a.work && a.work->steps_per_second) {
    const std::string rate =
        (marks_lost(a) ? "at least " : "") + rate_words(*a.work->steps_per_second) + " steps per second";
    if (a.work->processes > 1)
      text += fmt::format(" Of {} processes that count steps, the one with most did {}.", a.work->processes, rate);
    else
      text += fmt::format(" The job did {}{}.", rate,
                          a.work->samples_per_second
                              ? fmt::format(", {} samples per second", rate_words(*a.work->samples_per_second))
                              : "");
  }
  if (!cast.unreported.empty()) text += fmt::format(" {} reported no utilisation.", gpu_names(a, cast.unreported));
  return text;
}

}  // namespace headroom::diagnose
