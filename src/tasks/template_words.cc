// SPDX-License-Identifier: Apache-2.0
#include "tasks/template_words.h"

#include <algorithm>
#include <array>
#include <utility>

#include "tasks/template.h"

namespace headroom::tasks {

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
