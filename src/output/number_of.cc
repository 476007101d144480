// SPDX-License-Identifier: Apache-2.0
#include "output/number_of.h"

#include <re2/re2.h>

namespace headroom::output {

namespace {

// A number above its whole ("step 300/267") is none of it.
std::optional<NumberOf> numbers_by(const RE2& regex, std::string_view line) {
  NumberOf found;
  if (!RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), regex, &found.number, &found.of) ||
      found.of <= 0 || found.number > found.of)
    return std::nullopt;
  return found;
}

// One that no whole follows, and no fraction.
std::optional<NumberOf> number_by(const RE2& regex, std::string_view line) {
  NumberOf found;
  if (!RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), regex, &found.number)) return std::nullopt;
  return found;
}

}  // namespace

std::optional<NumberOf> epoch_in(std::string_view line) {
  static const RE2 regex(R"((?i)\bepoch[ _:#=]*[\[(]?(\d{1,9})\s*(?:/|of\b)\s*(\d{1,9})\b)");
  return numbers_by(regex, line);
}

std::optional<NumberOf> step_in(std::string_view line) {
  static const RE2 regex(
      R"((?i)\b(?:global[ _])?(?:step|iter|iteration|batch)s?[ :=#]*[\[(]?(\d{1,12})\s*(?:/|of\b)\s*(\d{1,12})\b)");
  return numbers_by(regex, line);
}

std::optional<NumberOf> epoch_alone_in(std::string_view line) {
  static const RE2 regex(R"((?i)\bepoch[ _:#=]*[\[(]?(\d{1,9})(?:[\])]?\s*$|[\])]?\s*[^\s\d.:/o]|[\])]?[.:](?:\D|$)))");
  return number_by(regex, line);
}

std::optional<NumberOf> fold_in(std::string_view line) {
  static const RE2 whole(R"((?i)\bfold[ _:#=]*[\[(]?(\d{1,9})\s*(?:/|of\b)\s*(\d{1,9})\b)");
  static const RE2 alone(R"((?i)\bfold[ _:#=]*[\[(]?(\d{1,9})(?:[\])]?\s*$|[\])]?\s*[^\s\d.:/o]|[\])]?[.:](?:\D|$)))");
  const auto found = numbers_by(whole, line);
  return found ? found : number_by(alone, line);
}

std::string_view within_fold(std::string_view line) {
  static const RE2 prefix(
      R"((?i)^[-=*#\s\[(]*fold[ :#=]*\d{1,9}(?:\s*(?:/|of)\s*\d{1,9})?[\])]?[\s,:;|-]+(?:train(?:ing)?[ :]*)?\[?(epoch|step|iter|batch))");
  re2::StringPiece word;
  if (!RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), prefix, &word)) return line;
  return line.substr(static_cast<std::size_t>(word.data() - line.data()));
}

bool names_an_epoch(std::string_view line) {
  static const RE2 regex(R"((?i)\bepoch[ :#=]*[\[(]?\d)");
  return RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), regex);
}

namespace {

int trust(std::string_view state) {
  return state == "begun" ? 4 : state == "counted" ? 3 : state == "within" ? 2 : state == "done" ? 1 : 0;
}

}  // namespace

std::optional<std::string_view> ToldPlace::take(NumberOf at, std::string_view state) {
  if (at.of == 0 && at_ && at_->of > 0) return std::nullopt;
  if (at_ && at_->of != at.of) state_ = {};  // another training, which may tell in another way
  if (state == "done" && at_ == at && state_ == "done") state_ = "within";
  if (state == "done" && state_ == "within") state = "within";
  if (trust(state) < trust(state_)) return std::nullopt;
  state_ = state;
  if (at_ == at) return std::nullopt;
  at_ = at;
  return state_;
}

}  // namespace headroom::output
