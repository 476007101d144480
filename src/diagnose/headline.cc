// SPDX-License-Identifier: Apache-2.0
#include "diagnose/headline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/human.h"
#include "diagnose/claims.h"

namespace headroom::diagnose {

namespace {

struct Phrase {
  Account account;
  const char* text;  // "31 % …"
};
constexpr std::array kPhrases{
    Phrase{Account::kInput, "waited {} for its data"},
    Phrase{Account::kHostCode, "waited {} for code on the CPU"},
    Phrase{Account::kStartup, "waited {} for the start-up"},
    Phrase{Account::kCheckpoint, "waited {} for checkpoints"},
    Phrase{Account::kTeardown, "stayed held for {} after the last kernel"},
    Phrase{Account::kHung, "hung for {}"},
    Phrase{Account::kUnexplained, "stood idle {} for reasons not seen"},
    Phrase{Account::kTaskWaiting, "stood free {} while tasks waited"},
    Phrase{Account::kNotUsed, "went unused for {}"},
    Phrase{Account::kNoTask, "had nothing to do for {}"},
    Phrase{Account::kForeign, "computed {} for others"},
    Phrase{Account::kUnobserved, "went unobserved for {}"},
};

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
    default:
      return fmt::format("was {}", info(account).label);
  }
}

// "The 2 GPUs computed for 81 % of 0:47 each; 6 % was start-up of 252 tasks."
std::string batch_headline(const Analysis& a) {
  Account largest = Account::kUseful;
  Nanos most = 0;
  for (const AccountInfo& account : kAccounts)
    if (const Nanos ns = a.ledger.total(account.id); account.id != Account::kUseful && ns > most) {
      most = ns;
      largest = account.id;
    }
  std::string text =
      fmt::format("{} computed for {} of {}{}", subject(a), human_percent(a.share(a.ledger.total(Account::kUseful))),
                  span_words(a), a.devices.size() == 1 ? "" : " each");
  if (a.share(most) >= a.limits[Threshold::kWorthSaying])
    text += fmt::format("; {} {}", human_percent(a.share(most)), batch_words(a, largest));
  return text + ".";
}

}  // namespace

std::string headline(const Analysis& a, const std::vector<Finding>& findings) {
  if (a.machine.empty()) return fmt::format("No GPU was recorded in {}.", span_words(a));
  if (a.devices.empty()) return fmt::format("The job was given no GPU and used none in {}.", span_words(a));
  if (a.job.batch.present) return batch_headline(a);
  const auto useful = a.ledger.total(Account::kUseful);
  const auto set = [&](Cause cause) {
    return std::any_of(findings.begin(), findings.end(), [&](const auto& f) { return f.cause == cause; });
  };
  if (set(Cause::kJobNeverUsesGpu)) return fmt::format("The job never used a GPU in {}.", span_words(a));
  const std::string busy = human_percent(a.share(useful));
  const Nanos idle = a.ledger.total(Account::kUnexplained);
  Nanos pauses = 0;
  for (const LedgerEntry& entry : a.ledger.entries)
    if (entry.account == Account::kUnexplained && a.is_pause(entry.phase)) pauses += entry.ns;
  if (!a.job.has_contexts && a.material(idle - pauses)) {
    const bool one = a.devices.size() == 1;
    return fmt::format("{} {} {} busy for {}. Why {} idle otherwise cannot be told from this recording alone.",
                       subject(a), one ? "was" : "were", busy, span_words(a), one ? "it was" : "they were");
  }
  if (!a.job.has_contexts && pauses > 0 && useful > 0)
    return fmt::format("{} computed for {} of {} and stood idle {}, in phases that recur.", subject(a), busy,
                       span_words(a), human_percent(a.share(idle)));
  std::string text = fmt::format("{} computed for {} of {}.", subject(a), busy, span_words(a));
  const Phrase* largest = nullptr;
  Nanos most = 0;
  for (const Phrase& phrase : kPhrases)
    if (const Nanos ns = a.ledger.total(phrase.account); ns > most) {
      most = ns;
      largest = &phrase;
    }
  if (largest && a.share(most) >= a.limits[Threshold::kWorthSaying])
    text += fmt::format(" {} {}.", a.devices.size() == 1 ? "It" : "They",
                        fmt::format(fmt::runtime(largest->text), human_percent(a.share(most))));
  return text;
}

}  // namespace headroom::diagnose
