// SPDX-License-Identifier: Apache-2.0
#include "output/bar.h"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/strings.h"

namespace headroom::output {

namespace {

using re2::StringPiece;

std::string_view view(const StringPiece& piece) { return {piece.data(), piece.size()}; }

// tqdm: "Epoch 3:  45%|####5     | 120/267 [00:12<00:15,  9.60it/s, loss=0.34]", with or without a description, a
// percentage and a drawn bar; a total that is not known is "?", or left out: "120it [00:12,  9.60it/s]".
const RE2& tqdm() {
  static const RE2 regex(
      R"(^\s*(?:(.{1,160}?):\s*)??(?:\d{1,3}%)?\s*(?:\|[^|]*\|)?\s*(\d{1,15})/(\d{1,15}|\?) \[\d+:\d\d(?::\d\d)?<[^,\]]*,)"
      R"(\s*(?:[\d.]+|\?)\s*([^\s,\]\d/]+/[^\s,\]\d/]+)(?:, ([^\]]*))?)");
  return regex;
}
const RE2& tqdm_endless() {
  static const RE2 regex(
      R"(^\s*(?:(.{1,160}?):\s*)??(\d{1,15})([a-z]{1,12}) \[\d+:\d\d(?::\d\d)?,\s*(?:[\d.]+|\?)\s*([^\s,\]\d/]+/[^\s,\]\d/]+))"
      R"((?:, ([^\]]*))?)");
  return regex;
}
// Keras 2: "120/267 [====>....] - ETA: 5s - loss: 0.34", "267/267 [====] - 12s 45ms/step - loss: 0.3 - val_loss: 0.4";
// Keras 3: "120/267 ━━━━━━━━━━━━━━━━━━━━ 5s 45ms/step - loss: 0.34"; "120/Unknown - 2s 45ms/step - loss: 0.34".
const RE2& keras() {
  static const RE2 regex(
      R"(^\s*(\d{1,15})/(\d{1,15}|Unknown)(?: \[[=>.]+\]| ━+)?(?: -)? (?:ETA: [\d:]+s?|(?:\d+s|\d+(?::\d\d)+)(?: \d+[mun]?s/(?:step|epoch|sample))?)(?:$|( - .*$)))");
  return regex;
}
// rich, as Lightning draws it: "Epoch 3/9 ━━━━━━━━━━ 120/267 0:00:12 • 0:00:15 9.60it/s v_num: 1 loss: 0.34".
const RE2& rich() {
  static const RE2 regex(
      R"(^\s*([A-Z][\w /-]{0,60}?)\s+[━╸╺ ]*[━╸╺][━╸╺ ]*\s+(\d{1,15})/(\d{1,15}|--) +\d+:\d\d:\d\d • (?:[\d:]+|-:--:--) [\d.]+it/s(.*)$)");
  return regex;
}

// "it/s" and "s/it": what is counted, without what it is counted in.
bool is_step_unit(std::string_view rate) {
  const auto slash = rate.find('/');
  const std::string_view unit = rate.substr(0, slash) == "s" ? rate.substr(slash + 1) : rate.substr(0, slash);
  constexpr std::array<std::string_view, 12> kUnits{"it",    "its",     "iter", "iters",  "step",      "steps",
                                                    "batch", "batches", "ba",   "update", "iteration", "iterations"};
  return std::find(kUnits.begin(), kUnits.end(), unit) != kUnits.end();
}

std::optional<std::int64_t> number(const StringPiece& text) { return parse_number<std::int64_t>(view(text)); }

std::optional<Bar> tqdm_bar(std::string_view line) {
  const StringPiece text(line.data(), line.size());
  StringPiece description, done, total, unit, rate, rest;
  if (RE2::PartialMatch(text, tqdm(), &description, &done, &total, &rate, &rest))
    return Bar{Bar::Style::kTqdm, view(description),        {},        *number(done),
               number(total),     is_step_unit(view(rate)), view(rest)};
  if (RE2::PartialMatch(text, tqdm_endless(), &description, &done, &unit, &rate, &rest))
    return Bar{Bar::Style::kTqdm, view(description), {}, *number(done), {}, is_step_unit(view(rate)), view(rest)};
  return std::nullopt;
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words(1);
  for (const char c : lower(text)) {
    if (std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_')
      words.back() += c;
    else if (!words.back().empty())
      words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

template <std::size_t N>
bool is_one_of(const std::string& word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

BarOf about(const std::string& word) {
  constexpr std::array<std::string_view, 2> kTrain{"train", "training"};
  constexpr std::array<std::string_view, 8> kValidate{"val",        "valid", "validate",   "validating",
                                                      "validation", "eval",  "evaluation", "evaluating"};
  constexpr std::array<std::string_view, 2> kTest{"test", "testing"};
  constexpr std::array<std::string_view, 4> kPredict{"predict", "predicting", "prediction", "inference"};
  if (is_one_of(word, kTrain)) return BarOf::kTrain;
  if (is_one_of(word, kValidate)) return BarOf::kValidate;
  if (is_one_of(word, kTest)) return BarOf::kTest;
  if (is_one_of(word, kPredict)) return BarOf::kPredict;
  return word == "sanity" ? BarOf::kSanityCheck : BarOf::kOther;
}

std::string without_numbers(std::string_view text) {
  std::string key;
  for (const char c : text)
    if (std::isdigit(static_cast<unsigned char>(c)) == 0 && c != '.') key += c;
  return key;
}

}  // namespace

BarOf bar_about(std::string_view description) {
  // Beside these words a description is still about the same: "Train Epoch 3", "Validation DataLoader 0".
  constexpr std::array<std::string_view, 25> kBeside{
      "epoch",    "step",  "steps",    "iter", "iteration", "batch", "dataloader", "loader",     "loop",
      "phase",    "rank",  "fold",     "of",   "loss",      "acc",   "lr",         "train_loss", "running",
      "checking", "check", "accuracy", "e",    "avg",       "mean",  "seed"};
  const auto words = words_of(description);
  if (words.empty()) return BarOf::kUnknown;
  BarOf first = BarOf::kOther;
  for (const std::string& word : words) {
    const BarOf one = about(word);
    if (one == BarOf::kSanityCheck) return one;
    if (one == BarOf::kOther && !is_one_of(word, kBeside)) return BarOf::kOther;
    // What is told last says more: "Epoch 3 [val]"; but "Validation loss", "Train … test".
    if (one != BarOf::kOther && first == BarOf::kOther) first = one;
  }
  if (first != BarOf::kOther) return first;
  const bool numbered =
      std::any_of(description.begin(), description.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
  if (words[0] == "epoch") return numbered || words.size() > 1 ? BarOf::kTrain : BarOf::kEpochs;
  if (words[0] == "step" || words[0] == "steps" || words[0] == "iteration" || words[0] == "iter" || words[0] == "batch")
    return BarOf::kTrain;
  return BarOf::kOther;
}

std::optional<Bar> bar_of(std::string_view line) {
  // What every bar has: a cheap look before the dear ones.
  if (line.find('/') == std::string_view::npos) return std::nullopt;
  if (auto bar = tqdm_bar(line)) {
    bar->description = trim(bar->description);
    const auto words = words_of(bar->description);
    bar->of = words.size() == 1 && words[0] == "epochs" ? BarOf::kEpochs : bar_about(bar->description);
    return bar;
  }
  const StringPiece text(line.data(), line.size());
  StringPiece description, done, total, rest;
  if (RE2::PartialMatch(text, keras(), &done, &total, &rest))
    return Bar{Bar::Style::kKeras, "", BarOf::kUnknown, *number(done), number(total), true, view(rest)};
  if (RE2::PartialMatch(text, rich(), &description, &done, &total, &rest))
    return Bar{Bar::Style::kRich, view(description), bar_about(view(description)), *number(done), number(total), true,
               view(rest)};
  return std::nullopt;
}

std::string StepBars::key_of(const Bar& bar) {
  return bar.description.empty() ? fmt::format("{}/{}", static_cast<int>(bar.style), bar.total.value_or(-1))
                                 : without_numbers(bar.description);
}

bool StepBars::begins(const Bar& bar) const {
  const std::string key = key_of(bar);
  const auto known =
      std::find_if(families_.begin(), families_.end(), [&](const Family& one) { return one.key == key; });
  return known == families_.end() || bar.done < known->done;
}

StepBars::Family& StepBars::family_of(const Bar& bar) {
  constexpr std::size_t kMost = 64;
  const std::string key = key_of(bar);
  const auto known =
      std::find_if(families_.begin(), families_.end(), [&](const Family& one) { return one.key == key; });
  fresh_ = known == families_.end();
  if (!fresh_) return *known;
  if (families_.size() == kMost)
    families_.erase(
        std::find_if(families_.begin(), families_.end(), [&](const Family& one) { return one.key != leader_; }));
  return families_.emplace_back(Family{.key = key, .is_train = bar.of == BarOf::kTrain});
}

bool StepBars::takes_over(const Family& family) const {
  const auto leader =
      std::find_if(families_.begin(), families_.end(), [&](const Family& one) { return one.key == leader_; });
  if (leader == families_.end()) return true;
  if (family.is_train != leader->is_train) return family.is_train;
  return leader->complete && family.cycles > 1 && leader->cycles == 1;
}

std::int64_t StepBars::take(const Bar& bar) {
  leads_ = began_within_ = false;
  if (!bar.counts_steps || (bar.of != BarOf::kTrain && bar.of != BarOf::kUnknown)) return 0;
  Family& family = family_of(bar);
  const bool back = !fresh_ && bar.done < family.done;
  const bool began = fresh_ || back;
  if (back) ++family.cycles;
  // A bar that is first seen far from its begin went on from there: what it was drawn for before is not known.
  const std::int64_t steps = fresh_ ? (bar.done <= 1 ? bar.done : 0) : back ? bar.done : bar.done - family.done;
  family.done = bar.done;
  family.complete = bar.complete();
  if (family.key != leader_ && steps > 0 && takes_over(family)) leader_ = family.key;
  leads_ = family.key == leader_;
  if (!leads_ && began) {
    const auto leader =
        std::find_if(families_.begin(), families_.end(), [&](const Family& one) { return one.key == leader_; });
    began_within_ = leader != families_.end() && !leader->complete && leader->done > 0;
  }
  return leads_ ? steps : 0;
}

void StepBars::pass(const Bar& bar) {
  const std::string leader = leader_;
  (void)take(bar);
  leader_ = leader;
}

}  // namespace headroom::output
