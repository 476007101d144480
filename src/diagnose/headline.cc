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

}  // namespace

std::string headline(const Case& c) {
  if (c.recording.all(SourceKind::kGpu).empty()) return fmt::format("No GPU was recorded in {}.", span_words(c));
  if (c.times.empty()) return fmt::format("The job was given no GPU and used none in {}.", span_words(c));
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
