// SPDX-License-Identifier: Apache-2.0
#include "diagnose/headline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/human.h"

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

std::string subject(const Case& c) {
  return c.times.size() == 1 ? "The GPU" : fmt::format("The {} GPUs", c.times.size());
}

std::string span_words(const Case& c) { return human_duration(c.ledger().span()); }

std::string tasks_words(const Case& c) {
  const std::size_t tasks = c.job.batch.tasks.size();
  return fmt::format("{} {}", human_count(static_cast<std::int64_t>(tasks)), tasks == 1 ? "task" : "tasks");
}

// What else a batch's GPU time went into, after "31 % ".
std::string batch_words(const Case& c, Account account) {
  switch (account) {
    case Account::kStartup:
      return "was start-up of " + tasks_words(c);
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
std::string batch_headline(const Case& c) {
  constexpr double kWorthSaying = 0.02;
  Account largest = Account::kUseful;
  Nanos most = 0;
  for (const AccountInfo& account : kAccounts)
    if (const Nanos ns = c.ledger().total(account.id); account.id != Account::kUseful && ns > most) {
      most = ns;
      largest = account.id;
    }
  std::string text =
      fmt::format("{} computed for {} of {}{}", subject(c), human_percent(c.share(c.ledger().total(Account::kUseful))),
                  span_words(c), c.times.size() == 1 ? "" : " each");
  if (c.share(most) >= kWorthSaying)
    text += fmt::format("; {} {}", human_percent(c.share(most)), batch_words(c, largest));
  return text + ".";
}

}  // namespace

std::string headline(const Case& c) {
  if (c.recording.all(SourceKind::kGpu).empty()) return fmt::format("No GPU was recorded in {}.", span_words(c));
  if (c.times.empty()) return fmt::format("The job was given no GPU and used none in {}.", span_words(c));
  if (c.job.batch.present) return batch_headline(c);
  const Nanos budget = std::max<Nanos>(1, c.ledger().budget());
  const auto useful = c.ledger().total(Account::kUseful);
  const auto set = [&](Cause cause) {
    return std::any_of(c.so_far.findings.begin(), c.so_far.findings.end(),
                       [&](const auto& f) { return f.cause == cause; });
  };
  if (set(Cause::kJobNeverUsesGpu)) return fmt::format("The job never used a GPU in {}.", span_words(c));
  const std::string busy = human_percent(c.share(useful));
  const Nanos idle = c.ledger().total(Account::kUnexplained);
  Nanos pauses = 0;
  for (std::size_t device = 0; device < c.times.size(); ++device) pauses += idle_in_pauses(c, device);
  if (!c.job.has_contexts && c.share(idle - pauses) >= kMaterial) {
    const bool one = c.times.size() == 1;
    return fmt::format("{} {} {} busy for {}. Why {} idle otherwise cannot be told from this recording alone.",
                       subject(c), one ? "was" : "were", busy, span_words(c), one ? "it was" : "they were");
  }
  if (!c.job.has_contexts && pauses > 0 && useful > 0)
    return fmt::format("{} computed for {} of {} and stood idle {}, in phases that recur.", subject(c), busy,
                       span_words(c), human_percent(c.share(idle)));
  std::string text = fmt::format("{} computed for {} of {}.", subject(c), busy, span_words(c));
  const Phrase* largest = nullptr;
  Nanos most = 0;
  for (const Phrase& phrase : kPhrases)
    if (const Nanos ns = c.ledger().total(phrase.account); ns > most) {
      most = ns;
      largest = &phrase;
    }
  if (largest && most * 50 >= budget)
    text += fmt::format(" {} {}.", c.times.size() == 1 ? "It" : "They",
                        fmt::format(fmt::runtime(largest->text), human_percent(c.share(most))));
  return text;
}

}  // namespace headroom::diagnose
