// SPDX-License-Identifier: Apache-2.0
#include "tasks/template.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/strings.h"

namespace headroom::tasks {

namespace {

constexpr std::array<std::string_view, 4> kPlaceNames{"gpu", "gpu_index", "gpu_uuid", "slot"};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name(std::string_view text) {
  return !text.empty() && is_letter(text[0]) && std::all_of(text.begin(), text.end(), [](char c) {
    return is_letter(c) || is_digit(c) || c == '-' || c == '.';
  });
}

// {} {1} {.} {/} {//} {/.} {2/.} {#} {%}
bool is_parallel_name(std::string_view text) {
  if (text == "#" || text == "%") return true;
  while (!text.empty() && is_digit(text[0])) text.remove_prefix(1);
  return text.empty() || text == "." || text == "/" || text == "//" || text == "/.";
}

class Scanner {
 public:
  Scanner(std::string_view text, Braces braces) : text_(text), braces_(braces) {}

  Result<Pieces> run() {
    while (at_ < text_.size()) {
      if (text_[at_] == '{') {
        HR_TRYV(open());
      } else if (text_[at_] == '}') {
        HR_TRYV(close());
      } else if (braces_ == Braces::kShell && text_.substr(at_, 2) == "${") {
        shell_variable();
      } else {
        literal_ += text_[at_++];
      }
    }
    flush();
    return std::move(pieces_);
  }

 private:
  Result<void> open() {
    if (braces_ == Braces::kVerbatim) return verbatim(), Result<void>{};
    if (text_.substr(at_, 2) == "{{") {
      literal_ += '{';
      at_ += 2;
      return {};
    }
    const auto end = text_.find('}', at_);
    const std::string_view name = end == std::string_view::npos ? "?" : text_.substr(at_ + 1, end - at_ - 1);
    if (is_name(name) || is_parallel_name(name)) {
      flush();
      pieces_.push_back({std::string(name), true});
      at_ = end + 1;
      return {};
    }
    if (braces_ != Braces::kParallel) return stray();
    literal_ += text_[at_++];
    return {};
  }

  Result<void> close() {
    if (braces_ != Braces::kVerbatim && text_.substr(at_, 2) == "}}")
      ++at_;
    else if (braces_ == Braces::kStrict || braces_ == Braces::kShell)
      return stray();
    literal_ += text_[at_++];
    return {};
  }

  void verbatim() {
    const bool doubled = text_.substr(at_, 2) == "{{";
    const std::size_t begin = at_ + (doubled ? 2 : 1);
    const auto end = text_.find('}', begin);
    const std::string_view name = end == std::string_view::npos ? "" : text_.substr(begin, end - begin);
    const bool known = is_place_name(name) || name == "task";
    if (known && doubled && text_.substr(end, 2) == "}}") {
      literal_ += "{" + std::string(name) + "}";
      at_ = end + 2;
    } else if (known && !doubled) {
      flush();
      pieces_.push_back({std::string(name), true});
      at_ = end + 1;
    } else {
      literal_ += text_[at_++];
    }
  }

  void shell_variable() {
    int depth = 0;
    do {
      if (text_[at_] == '{') ++depth;
      if (text_[at_] == '}') --depth;
      literal_ += text_[at_++];
    } while (at_ < text_.size() && (depth > 0 || text_[at_ - 1] == '$'));
  }

  Result<void> stray() const {
    return fail(Errc::kInvalidInput, fmt::format("a single '{}' at character {} of '{}'", text_[at_], at_ + 1, text_),
                "write a brace twice ({{ or }}) where a brace itself is meant");
  }

  void flush() {
    if (!literal_.empty()) pieces_.push_back({std::exchange(literal_, {}), false});
  }

  std::string_view text_;
  Braces braces_;
  std::size_t at_ = 0;
  std::string literal_;
  Pieces pieces_;
};

// Follows the quotes of a shell line, to know how a value has to be written where it stands.
class ShellQuotes {
 public:
  enum class State { kBare, kSingle, kDouble, kNested };

  void follow(std::string_view text) {
    for (const char c : text) step(c);
  }
  [[nodiscard]] State state() const {
    // Inside "$( … )" the shell starts afresh: what is right there depends on more than the quotes before.
    if (commands_in_quotes_ > 0) return State::kNested;
    return quote_ == '\'' ? State::kSingle : quote_ == '"' ? State::kDouble : State::kBare;
  }

 private:
  void step(char c) {
    const char before = std::exchange(previous_, c);
    if (escaped_) {
      escaped_ = false;
      previous_ = 0;
    } else if (quote_ == '\'') {
      if (c == '\'') quote_ = 0;
    } else if (c == '\\') {
      escaped_ = true;
    } else if (c == '`' || (c == '(' && before == '$')) {
      if (quote_ == '"') ++commands_in_quotes_;
    } else if (c == '"') {
      quote_ = quote_ == '"' ? 0 : '"';
    } else if (c == '\'' && quote_ == 0) {
      quote_ = '\'';
    }
  }

  char quote_ = 0, previous_ = 0;
  bool escaped_ = false;
  int commands_in_quotes_ = 0;  // never counted down: certain is better than clever
};

Result<std::string> quoted(const std::string& value, ShellQuotes::State state, std::string_view name) {
  if (shell_quote(value) == value) return value;
  std::string text;
  switch (state) {
    case ShellQuotes::State::kBare:
      return shell_quote(value);
    case ShellQuotes::State::kSingle:
      for (const char c : value) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
      return text;
    case ShellQuotes::State::kDouble:
      for (const char c : value) {
        if (c == '"' || c == '\\' || c == '$' || c == '`') text += '\\';
        text += c;
      }
      return text;
    case ShellQuotes::State::kNested:
      break;
  }
  return fail(Errc::kInvalidInput,
              fmt::format("the value '{}' of {{{}}} cannot be quoted inside a command in double quotes", value, name),
              fmt::format("write X={{{}}}; first, and \"$X\" where it is used", name));
}

tl::unexpected<Error> unknown(std::string_view name, const Filling& filling) {
  std::vector<std::string_view> candidates = filling.known;
  candidates.insert(candidates.end(), kPlaceNames.begin(), kPlaceNames.end());
  const auto guess = closest(name, candidates);
  std::string hint;
  if (!guess.empty()) {
    hint = fmt::format("did you mean {{{}}}?", guess);
  } else {
    for (const auto candidate : candidates) hint += fmt::format("{}{{{}}}", hint.empty() ? "" : ", ", candidate);
    hint = fmt::format("known here: {}; a brace itself is written twice: {{{{{}}}}}", hint, name);
  }
  return fail(Errc::kInvalidInput, fmt::format("unknown placeholder {{{}}}", name), hint);
}

}  // namespace

bool is_place_name(std::string_view name) {
  return std::find(kPlaceNames.begin(), kPlaceNames.end(), name) != kPlaceNames.end();
}

Result<Pieces> parse_template(std::string_view text, Braces braces) { return Scanner(text, braces).run(); }

bool has_placeholder(const Pieces& pieces, std::string_view name) {
  return std::any_of(pieces.begin(), pieces.end(),
                     [name](const Piece& piece) { return piece.placeholder && piece.text == name; });
}

Filling filling_of(const Parameters& parameters, const std::string* task) {
  Filling filling;
  for (const auto& [name, value] : parameters) filling.known.push_back(name);
  if (task != nullptr) filling.known.emplace_back("task");
  filling.value = [&parameters, task](std::string_view name) -> std::optional<std::string> {
    for (const auto& [known, value] : parameters)
      if (known == name) return value;
    if (task != nullptr && name == "task") return *task;
    return std::nullopt;
  };
  return filling;
}

std::string double_braces(std::string_view text) {
  std::string doubled;
  for (const char c : text) {
    doubled += c;
    if (c == '{' || c == '}') doubled += c;
  }
  return doubled;
}

Result<std::string> fill(const Pieces& pieces, const Filling& filling, Form form) {
  std::string text;
  ShellQuotes quotes;
  for (const Piece& piece : pieces) {
    if (!piece.placeholder) {
      text += form == Form::kText ? piece.text : double_braces(piece.text);
      if (form == Form::kShell) quotes.follow(piece.text);
      continue;
    }
    std::optional<std::string> value = filling.value(piece.text);
    if (!value && is_place_name(piece.text)) {
      if (form == Form::kText)
        return fail(Errc::kInvalidInput, fmt::format("{{{}}} is not known before the task starts", piece.text),
                    "use parameters and {task} here");
      text += "{" + piece.text + "}";
      continue;
    }
    if (!value) return unknown(piece.text, filling);
    if (form == Form::kShell) {
      HR_TRY(value, quoted(*value, quotes.state(), piece.text));
    }
    text += form == Form::kText ? *value : double_braces(*value);
  }
  return text;
}

namespace {

std::string place_value(std::string_view name, const Place& place) {
  if (name == "slot") return std::to_string(place.slot);
  std::vector<std::string> values;
  for (std::size_t i = 0; i < place.gpu_uuid.size(); ++i) {
    if (name == "gpu_uuid") values.push_back(place.gpu_uuid[i]);
    if (name == "gpu") values.push_back(std::to_string(i));
    if (name == "gpu_index" && i < place.gpu_index.size()) values.push_back(std::to_string(place.gpu_index[i]));
  }
  return join(values, ",");
}

// Calls `placeholder(name)` and `literal(char)` for a text in the form between.
template <class Placeholder, class Literal>
void walk(std::string_view text, Placeholder placeholder, Literal literal) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view two = text.substr(i, 2);
    if (two == "{{" || two == "}}") {
      literal(text[i++]);
      continue;
    }
    const auto end = text[i] == '{' ? text.find('}', i) : std::string_view::npos;
    if (end != std::string_view::npos && is_place_name(text.substr(i + 1, end - i - 1))) {
      placeholder(text.substr(i + 1, end - i - 1));
      i = end;
    } else {
      literal(text[i]);
    }
  }
}

}  // namespace

std::string fill_place(std::string_view text, const Place& place) {
  std::string filled;
  walk(
      text, [&](std::string_view name) { filled += place_value(name, place); }, [&](char c) { filled += c; });
  return filled;
}

bool uses_gpu(std::string_view text) {
  bool uses = false;
  walk(
      text, [&](std::string_view name) { uses = uses || name != "slot"; }, [](char) {});
  return uses;
}

Result<std::vector<std::string>> split_words(std::string_view line) {
  std::vector<std::string> words;
  bool in_word = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      in_word = false;
      continue;
    }
    if (!std::exchange(in_word, true)) words.emplace_back();
    std::string& word = words.back();
    if (c == '\\' && i + 1 < line.size()) {
      word += line[++i];
    } else if (c == '\'' || c == '"') {
      std::size_t end = i + 1;
      for (; end < line.size() && line[end] != c; ++end) {
        const char next = end + 1 < line.size() ? line[end + 1] : '\0';
        if (c == '"' && line[end] == '\\' && (next == '"' || next == '\\' || next == '$' || next == '`')) ++end;
        word += line[end];
      }
      if (end >= line.size())
        return fail(Errc::kInvalidInput, fmt::format("the {} at character {} is not closed", c, i + 1),
                    "close the quote, or write a backslash before it");
      i = end;
    } else {
      word += c;
    }
  }
  return words;
}

namespace {

// Words that are the shell's own; a program of the same name may exist and differ.
bool is_shell_word(std::string_view word) {
  static constexpr std::array<std::string_view, 51> kShellWords{
      "!",      ".",       ":",       "[",      "alias", "bg",    "break",   "case",  "cd",     "command", "continue",
      "do",     "done",    "echo",    "elif",   "else",  "esac",  "eval",    "exec",  "exit",   "export",  "fg",
      "fi",     "for",     "getopts", "hash",   "if",    "jobs",  "kill",    "local", "printf", "pwd",     "read",
      "return", "set",     "shift",   "source", "test",  "then",  "time",    "times", "trap",   "type",    "ulimit",
      "umask",  "unalias", "unset",   "until",  "wait",  "while", "function"};
  return std::find(kShellWords.begin(), kShellWords.end(), word) != kShellWords.end();
}

// True where a character outside quotes, or inside double ones, means something to the shell.
bool shell_does_something(std::string_view line) {
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '\n' || c == '\0') return true;
    if (quote == '\'' && c != '\'') continue;
    if (c == '\'' || c == '"') {
      if (quote == 0 || quote == c) quote = quote == 0 ? c : '\0';
    } else if (c == '$' || c == '`' || c == '\\') {
      return true;
    } else if (quote == 0 && c == '{') {
      const auto end = line.find('}', i);
      const auto name = end == std::string_view::npos ? "" : line.substr(i + 1, end - i - 1);
      if (!is_place_name(name) && name != "task") return true;
      i = end;
    } else if (quote == 0 && std::string_view("|&;<>()*?[]#~}!").find(c) != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

}  // namespace

std::optional<std::vector<std::string>> words_without_shell(std::string_view line) {
  if (shell_does_something(line)) return std::nullopt;
  auto words = split_words(line);
  if (!words || words->empty() || words->front().empty()) return std::nullopt;
  const std::string& program = words->front();
  if (program.find('=') != std::string::npos || is_shell_word(program)) return std::nullopt;
  return std::move(*words);
}

}  // namespace headroom::tasks
