// SPDX-License-Identifier: Apache-2.0
#include "base/secrets.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "base/fnv.h"
#include "base/strings.h"

namespace headroom {

namespace {

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::array<std::string_view, 5> kStems{"key", "token", "secret", "pass", "credential"};
constexpr std::array<std::string_view, 15> kHarmless{"tokeniz",  "tokenis",     "keyboard", "keyframe", "keypoint",
                                                     "keystone", "keyword",     "monkey",   "bypass",   "compass",
                                                     "passes",   "passthrough", "passage",  "passive",  "keynote"};
constexpr std::array<std::string_view, 8> kNoSecrets{"", "yes", "no", "true", "false", "on", "off", "none"};
constexpr std::size_t kLongestNumber = 12;

// How tokens begin that well-known services give out: GitHub, GitLab, Hugging Face, OpenAI and others, Slack, AWS,
// Google, JSON Web Tokens. Behind that they have so many letters and digits in a row, which names of files have not.
constexpr std::array<std::string_view, 14> kTokens{"ghp_", "gho_",  "ghu_",  "ghs_", "github_pat_", "glpat-", "hf_",
                                                   "sk-",  "xoxb-", "xoxp-", "AKIA", "ASIA",        "AIza",   "eyJ"};
constexpr std::ptrdiff_t kInARow = 16;

std::string without_harmless_words(std::string_view name) {
  std::string text = lower(name);
  for (const auto word : kHarmless)
    for (auto at = text.find(word); at != std::string::npos; at = text.find(word)) text.replace(at, word.size(), "_");
  return text;
}

bool contains_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [&](auto part) { return text.find(part) != text.npos; });
}

bool is_number(std::string_view text) {
  return text.size() <= kLongestNumber && parse_number<double>(text).has_value();
}

bool is_alphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

bool is_name_character(char c) { return is_alphanumeric(c) || c == '_' || c == '-' || c == '.' || c == '+'; }

std::string_view unquoted(std::string_view text) {
  while (!text.empty() && (text.front() == '"' || text.front() == '\'')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == '"' || text.back() == '\'')) text.remove_suffix(1);
  return text;
}

// How much of `text` one word of a shell takes: up to a blank outside quotes.
std::size_t word_length(std::string_view text) {
  char quote = '\0';
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && quote != '\'')
      ++i;
    else if (quote != '\0')
      quote = c == quote ? '\0' : quote;
    else if (c == '"' || c == '\'')
      quote = c;
    else if (kBlanks.find(c) != kBlanks.npos)
      return i;
  }
  return text.size();
}

bool is_known_token(std::string_view word) {
  const auto start = std::find_if(kTokens.begin(), kTokens.end(), [&](auto one) { return word.starts_with(one); });
  if (start == kTokens.end()) return false;
  std::ptrdiff_t row = 0;
  return std::any_of(word.begin() + static_cast<std::ptrdiff_t>(start->size()), word.end(), [&](char c) {
    row = is_alphanumeric(c) ? row + 1 : 0;
    return row >= kInARow;
  });
}

// Hides the known tokens in a word, each up to a character that names do not have.
std::string without_tokens(std::string_view word) {
  std::string out;
  while (!word.empty()) {
    const auto begin = std::find_if(word.begin(), word.end(), is_name_character);
    const auto end = std::find_if_not(begin, word.end(), is_name_character);
    const auto one = word.substr(static_cast<std::size_t>(begin - word.begin()), static_cast<std::size_t>(end - begin));
    out.append(word.begin(), begin);
    out += is_known_token(one) ? kHidden : one;
    word.remove_prefix(static_cast<std::size_t>(end - word.begin()));
  }
  return out;
}

// scheme://user:password@host
std::string without_url_password(std::string_view word) {
  std::string text(word);
  for (auto at = text.find("://"); at != std::string::npos; at = text.find("://", at + 3)) {
    const auto end = text.find_first_of("/?#\"' ", at + 3);
    const auto host = text.rfind('@', end == std::string::npos ? end : end - 1);
    const auto colon = text.find(':', at + 3);
    if (host != std::string::npos && host > at && colon < host) text.replace(colon + 1, host - colon - 1, kHidden);
  }
  return without_tokens(text);
}

// --name=value, whose value reaches to the end whatever blanks it has.
bool is_long_assignment(std::string_view text) {
  const auto end = std::find_if_not(text.begin(), text.end(), is_name_character);
  return text.starts_with('-') && end != text.end() && *end == '=';
}

// Goes through the words of a command. What it remembers is whether the word before named a secret.
class Hider {
 public:
  std::string word(std::string_view text, bool may_have_blanks);

 private:
  std::string inside(std::string_view text);
  std::string plain_word(std::string_view word);
  std::string pending_;  // the name that the next word is the value of
};

std::string Hider::inside(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto begin = std::min(text.find_first_not_of(kBlanks), text.size());
    out += text.substr(0, begin);
    text.remove_prefix(begin);
    const auto length = word_length(text);
    if (length == 0) break;
    const auto one = text.substr(0, length);
    // A quoted line of a shell within a line: its words are looked at, too.
    const auto inner = unquoted(one);
    const bool is_line = inner.size() < one.size() && pending_.empty() && !is_long_assignment(inner) &&
                         inner.find_first_of(kBlanks) != inner.npos && (one.front() == '"' || one.front() == '\'');
    if (is_line) {
      const auto from = static_cast<std::size_t>(inner.data() - one.data());
      out += one.substr(0, from);
      out += Hider().inside(inner);
      out += one.substr(from + inner.size());
    } else {
      out += plain_word(one);
    }
    text.remove_prefix(length);
  }
  return out;
}

std::string Hider::plain_word(std::string_view word) {
  const std::string name = std::exchange(pending_, {});
  const auto bare = unquoted(word);
  if (!name.empty() && !bare.starts_with('-'))
    return is_secret(name, bare) ? std::string(kHidden) : without_tokens(word);
  const auto from = static_cast<std::size_t>(bare.data() - word.data());
  std::size_t end = from;
  while (end < word.size() && is_name_character(word[end])) ++end;
  const auto own = word.substr(from, end - from);
  const bool option = own.starts_with('-');
  if (!is_secret_name(own)) return without_url_password(word);
  if (end == word.size() || end == from + bare.size()) {
    if (option) pending_ = own;
    return std::string(word);
  }
  if (word[end] != '=' && word[end] != ':') return without_url_password(word);
  const auto value = word.substr(end + 1);
  if (word[end] == ':' && unquoted(value).empty()) {
    pending_ = own;
    return std::string(word);
  }
  if (!is_secret(own, unquoted(value))) return without_tokens(word);
  const bool quoted = from > 0 && word.back() == word.front();
  return fmt::format("{}{}{}", word.substr(0, end + 1), kHidden, quoted ? word.substr(word.size() - 1) : "");
}

std::string Hider::word(std::string_view text, bool may_have_blanks) {
  if (may_have_blanks && pending_.empty() && text.find_first_of(kBlanks) != text.npos)
    return is_long_assignment(text) ? plain_word(text) : Hider().inside(text);
  return may_have_blanks ? plain_word(text) : inside(text);
}

}  // namespace

bool is_secret_name(std::string_view name) {
  const std::string text = without_harmless_words(name);
  return std::any_of(kStems.begin(), kStems.end(), [&](auto stem) { return text.find(stem) != std::string::npos; });
}

bool holds_known_token(std::string_view text) { return without_tokens(text) != text; }

bool is_secret(std::string_view name, std::string_view value) {
  if (holds_known_token(value)) return true;
  if (!is_secret_name(name)) return false;
  if (std::find(kNoSecrets.begin(), kNoSecrets.end(), lower(value)) != kNoSecrets.end()) return false;
  return !is_number(value) || contains_any(without_harmless_words(name), {"secret", "pass", "credential"});
}

std::vector<std::string> hide_secrets(const std::vector<std::string>& argv) {
  Hider hider;
  std::vector<std::string> hidden;
  for (const auto& argument : argv) hidden.push_back(hider.word(argument, true));
  return hidden;
}

std::string hide_secrets(std::string_view command) { return Hider().word(command, false); }

std::string hide_known_secrets(std::string_view text) { return without_url_password(text); }

std::string hidden_value(std::string_view value, std::string_view salt) {
  std::uint64_t hash = fnv1a(salt, fnv1a(value, fnv1a(salt)));
  hash = (hash ^ (hash >> 33)) * std::uint64_t{0xff51afd7ed558ccd};
  return fmt::format("{}{:08x}", kHidden, static_cast<std::uint32_t>(hash >> 32));
}

}  // namespace headroom
