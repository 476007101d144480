// SPDX-License-Identifier: Apache-2.0
#include "report/findings_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/human.h"
#include "base/strings.h"
#include "base/visible.h"
#include "model/named_causes.h"
#include "model/observations.h"
#include "report/layout.h"
#include "report/words.h"

namespace headroom::report {

namespace {

std::string labelled(std::string_view label, std::string_view text, const TextOptions& options) {
  return wrap(text, options.width, "   " + pad_right(label, 10), std::string(13, ' '));
}

std::string head(const Explanation& e, const Finding& finding, const std::string& number, const TextOptions& options) {
  const std::string title = fmt::format("{}. {}", number, finding.title), cost = finding_cost(e, finding);
  if (cost.empty()) return bold(wrap(title, options.width, "", "   "), options);
  if (display_width(title) + display_width(cost) + 2 <= options.width)
    return bold(pad_right(title, options.width - display_width(cost)), options) + cost + "\n";
  return bold(wrap(fmt::format("{} ({})", title, cost), options.width, "", "   "), options);
}

// Where the last clause of `text` begins that stands in no brackets; 0: it has one alone.
std::size_t last_clause(std::string_view text) {
  int open = 0;
  for (std::size_t i = text.size(); i-- > 1;) {
    if (text[i] == ')') ++open;
    if (text[i] == '(') --open;
    if (open == 0 && text[i] == ' ' && (text[i - 1] == ';' || text[i - 1] == '.')) return i;
  }
  return 0;
}

// As much of `text` as ends with a clause and takes at most `lines` lines; at least its first clause.
std::string clauses(std::string_view text, std::string_view label, std::size_t lines, const TextOptions& options) {
  std::string shown = labelled(label, text, options);
  while (lines_in(shown) > lines) {
    const std::size_t cut = last_clause(text);
    if (cut == 0) break;
    text = text.substr(0, cut - 1);
    shown = labelled(label, text, options);
  }
  return shown;
}

// Whole sentences of the evidence, as many as fit.
std::string evidence_in_short(const Finding& finding, std::size_t lines, const TextOptions& options) {
  std::string words, shown;
  for (const std::string& sentence : finding.evidence) {
    const std::string longer = words.empty() ? sentence : words + "; " + sentence;
    const std::string laid_out = wrap(longer + ".", options.width, "   ", "   ");
    if (!shown.empty() && lines_in(laid_out) > lines) break;
    words = longer;
    shown = laid_out;
  }
  if (shown.empty() || finding.confidence == Confidence::kHigh) return shown;
  return wrap(fmt::format("{}. Confidence: {}.", words, confidence_name(finding.confidence)), options.width, "   ",
              "   ");
}

// How much is said where lines are few. What to try and what it brings goes last: a finding without them is a
// complaint.
struct Detail {
  std::size_t findings;               // told in full; of the others the title
  std::size_t evidence, of_the_rest;  // lines of it: the first finding's, and the others'
  std::size_t prose, candidates;      // lines each; how many
  bool check;
  bool reasons = false;  // of candidates
};
constexpr std::array kDetails{
    Detail{3, 3, 3, 3, 4, true, true}, Detail{3, 3, 3, 3, 4, true},  Detail{3, 3, 3, 2, 4, false},
    Detail{3, 2, 2, 2, 4, false},      Detail{3, 2, 1, 2, 4, false}, Detail{3, 1, 1, 1, 3, false},
    Detail{3, 1, 0, 1, 3, false},      Detail{3, 1, 0, 1, 2, false}, Detail{2, 1, 0, 1, 2, false},
    Detail{1, 2, 0, 2, 4, false},      Detail{1, 1, 0, 1, 2, false}, Detail{0, 0, 0, 0, 0, false}};

// "slow storage (it was seen asleep on a connection)"
std::string cause_words(const Finding& finding, std::size_t i) {
  const std::string_view words = info(possible_causes(finding)[i]).words, evidence = finding.speaks_for_candidate(i);
  return evidence.empty() ? std::string(words) : fmt::format("{} ({})", words, evidence);
}

// What of a cause that is not settled else it may be.
std::string likely(const Finding& finding, bool reasons, const TextOptions& options) {
  const std::string words = reasons ? cause_words(finding, 0) : std::string(info(*finding.cause).words);
  return labelled("Likely", fmt::format("{}; less likely, or a part of it: {}", words, less_likely(finding)), options);
}

std::string candidates_in_short(const Finding& finding, const Detail& detail, const TextOptions& options) {
  if (finding.cause) return is_settled(finding) ? "" : likely(finding, detail.reasons, options);
  std::vector<std::string> words;  // the likeliest come first
  for (std::size_t i = 0; i < finding.candidates.size(); ++i)
    words.push_back(detail.reasons ? cause_words(finding, i) : std::string(info(finding.candidates[i]).words));
  const std::size_t most = detail.candidates;
  if (words.size() > most) {
    const std::size_t more = words.size() - most;
    words.resize(most);
    words.push_back(fmt::format("{} (--full)", count_of(more, "other")));
  }
  return words.empty() ? "" : labelled("Could be", join(words, ", or "), options);
}

constexpr std::size_t kLeastOfThree = 7;  // of kDetails

std::string in_short(const Explanation& e, const Finding& finding, std::size_t number, const Detail& detail,
                     const TextOptions& options) {
  std::string text = head(e, finding, fmt::format("{}", number), options);
  if (number > detail.findings) return text;
  const std::size_t evidence = number == 1 ? detail.evidence : detail.of_the_rest;
  if (evidence > 0) text += evidence_in_short(finding, evidence, options);
  text += candidates_in_short(finding, detail, options);
  if (!finding.advice.empty()) text += clauses(finding.advice, "Try", detail.prose, options);
  if (!finding.bound.empty()) text += clauses(finding.bound, "Gain", detail.prose, options);
  if (detail.check && number == 1 && !finding.would_overturn.empty())
    text += labelled("Check", finding.would_overturn, options);
  return text + "\n";
}

std::string with_detail(const Explanation& e, const Detail& detail, const TextOptions& options) {
  constexpr std::size_t kTop = 3;
  std::string text;
  std::size_t number = 0, left_out = 0;
  for (const Finding& finding : e.findings) {
    if (finding.part_of || number == kTop) {
      ++left_out;
      continue;
    }
    text += in_short(e, finding, ++number, detail, options);
  }
  if (number > detail.findings) text += "\n";
  if (left_out > 0)
    text += wrap(fmt::format("{} more with --full.", count_of(left_out, "finding")), options.width, "", "") + "\n";
  return text;
}

std::string candidate_table(const Explanation& e, const Finding& finding, const TextOptions& options) {
  std::size_t left = 0;
  for (std::size_t i = 0; i < told_of_a_set(finding); ++i)
    left = std::max(left, display_width(info(finding.candidates[i]).words));
  const std::size_t room = options.width - std::min<std::size_t>(options.width, 5 + 2 + 24);
  left = std::min(left, std::max<std::size_t>(room, 12)) + 2;
  std::string text = fmt::format("   {}{}\n", pad_right("could be", left + 2), "seen; what would tell");
  for (std::size_t i = 0; i < told_of_a_set(finding); ++i) {
    const Cause cause = finding.candidates[i];
    std::string words = "     " + pad_right(info(cause).words, left);
    if (display_width(info(cause).words) + 2 > left) {  // a line of its own
      text += wrap(info(cause).words, options.width, "     ", "       ");
      words = std::string(5 + left, ' ');
    }
    if (const std::string_view evidence = finding.speaks_for_candidate(i); !evidence.empty()) {
      text += wrap(fmt::format("here {}", evidence), options.width, words, std::string(5 + left, ' '));
      words = std::string(5 + left, ' ');
    }
    std::string tells(next_observation(cause, finding, e.meta));
    if (!info(cause).beyond.empty()) tells += fmt::format("; readings leave it open: it takes {}", info(cause).beyond);
    text += wrap(tells, options.width, words, std::string(5 + left, ' '));
  }
  if (const std::string others = less_likely(finding); !others.empty())
    text += wrap(fmt::format("less likely: {}", others), options.width, "     ", "       ");
  return text;
}

std::string in_full(const Explanation& e, const Finding& finding, const std::string& number,
                    const TextOptions& options) {
  std::string text = head(e, finding, number, options);
  for (const std::string& sentence : finding.evidence) text += wrap(sentence, options.width, "   - ", "     ");
  if (!finding.candidates.empty()) text += candidate_table(e, finding, options);
  if (!finding.less_likely.empty()) text += likely(finding, true, options);
  if (!finding.told_apart_from.empty()) text += labelled("Not", join(finding.told_apart_from, "; "), options);
  if (!finding.advice.empty()) text += labelled("Try", finding.advice, options);
  if (!finding.bound.empty()) text += labelled("Gain", finding.bound, options);
  if (!finding.would_overturn.empty()) text += labelled("Check", finding.would_overturn, options);
  const std::string evidence = evidence_words(finding.tiers.letters());
  text += labelled(
      "Evidence",
      fmt::format("{}confidence {}", evidence.empty() ? "" : evidence + "; ", confidence_name(finding.confidence)),
      options);
  return text + "\n";
}

}  // namespace

std::size_t told_of_a_set(const Finding& finding) {
  constexpr std::size_t kMost = 4;
  return finding.speaks_for.empty() ? finding.candidates.size() : std::min(kMost, finding.candidates.size());
}

std::string less_likely(const Finding& finding) {
  std::vector<std::string> names;
  for (std::size_t i = told_of_a_set(finding); i < finding.candidates.size(); ++i)
    names.emplace_back(info(finding.candidates[i]).words);
  for (const Cause cause : finding.less_likely) names.emplace_back(info(cause).words);
  return join(names, ", ");
}

bool is_unknown_time(const Finding& finding) {
  return finding.cost() > 0 && std::all_of(finding.claims.begin(), finding.claims.end(), [](const ClaimedPiece& piece) {
           return piece.account == Account::kUnobserved;
         });
}

std::string finding_cost(const Explanation& e, const Finding& finding) {
  if (finding.cost() == 0) return "";
  const bool several = !finding.claims.empty() && finding.claims.front().device != finding.claims.back().device;
  if (is_unknown_time(finding))
    return fmt::format("{}{} unknown", human_duration(finding.cost()), several ? " of GPU time" : "");
  return fmt::format("costs {}{}{}", human_duration(finding.cost()), several ? " of GPU time" : "",
                     finding.part_of && e.ledger.budget() > 0 ? " of these" : "");
}

std::string evidence_words(std::string_view letters) {
  constexpr std::array<std::pair<char, std::string_view>, 7> kWords{{{'N', "GPU driver"},
                                                                     {'P', "process times"},
                                                                     {'L', "lines of output"},
                                                                     {'Y', "Python stacks"},
                                                                     {'X', "marks or annotations"},
                                                                     {'C', "kernel times"},
                                                                     {'S', "what became of each task"}}};
  std::vector<std::string> words;
  for (const auto& [letter, meaning] : kWords)
    if (letters.find(letter) != std::string_view::npos) words.emplace_back(meaning);
  return join(words, ", ");
}

std::string recording_argument(const Explanation& e, const TextOptions& options) {
  return options.recording.empty() ? typed_word(e.path) : options.recording;
}

std::string top_findings(const Explanation& explanation, const TextOptions& options, std::size_t lines) {
  std::string text;
  for (const Detail& detail : kDetails) {
    text = with_detail(explanation, detail, options);
    if (lines_in(text) <= lines) break;
  }
  return text;
}

std::size_t least_lines(const Explanation& explanation, const TextOptions& options) {
  return lines_in(with_detail(explanation, kDetails[kLeastOfThree], options));
}

std::string all_findings(const Explanation& explanation, const TextOptions& options) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz";
  std::string text;
  std::size_t number = 0, part = 0;
  for (const Finding& finding : explanation.findings) {
    part = finding.part_of ? part + 1 : 0;
    if (part == 0) ++number;
    const std::string_view letter = part == 0 ? "" : kLetters.substr((part - 1) % kLetters.size(), 1);
    text += in_full(explanation, finding, fmt::format("{}{}", number, letter), options);
  }
  return text;
}

}  // namespace headroom::report
