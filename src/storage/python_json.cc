// SPDX-License-Identifier: Apache-2.0
#include "storage/python_json.h"

#include <array>
#include <limits>
#include <string>
#include <utility>

#include "base/json.h"

namespace headroom {

namespace {

// Stands in for a bare word while the library parses; no text that Python writes has such a value by accident.
struct Word {
  std::string_view word, escaped, stand_in;
  double value;
};
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::array kWords{
    Word{"NaN", "\"\\u0001NaN\"", "\1NaN", std::numeric_limits<double>::quiet_NaN()},
    Word{"Infinity", "\"\\u0001Infinity\"", "\1Infinity", kInfinity},
    Word{"-Infinity", "\"\\u0001-Infinity\"", "\1-Infinity", -kInfinity},
};

std::string quote_words(std::string_view text) {
  std::string quoted;
  quoted.reserve(text.size() + text.size() / 8);
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const Word* found = nullptr;
    if (!in_string && (c == 'N' || c == 'I' || c == '-')) {
      for (const Word& word : kWords)
        if (text.substr(i).starts_with(word.word)) found = &word;
    }
    if (found != nullptr) {
      quoted += found->escaped;
      i += found->word.size() - 1;
      continue;
    }
    quoted += c;
    if (in_string && c == '\\' && i + 1 < text.size())
      quoted += text[++i];
    else if (c == '"')
      in_string = !in_string;
  }
  return quoted;
}

// As deep as the text was nested, which parse_json() has limited.
void restore_words(Json& value) {
  if (value.is_structured()) {
    for (Json& part : value) restore_words(part);
  } else if (value.is_string()) {
    for (const Word& word : kWords) {
      if (value.get_ref<const std::string&>() != word.stand_in) continue;
      value = word.value;
      return;
    }
  }
}

}  // namespace

Json parse_python_json(std::string_view text) {
  if (text.find("NaN") == std::string_view::npos && text.find("Infinity") == std::string_view::npos)
    return parse_json<Json>(text);
  Json value = parse_json<Json>(quote_words(text));
  restore_words(value);
  return value;
}

const Json& member(const Json& object, const char* key) {
  static const Json kNull;
  if (!object.is_object()) return kNull;
  const auto found = object.find(key);
  return found == object.end() ? kNull : *found;
}

std::optional<double> number_of(const Json& value) {
  if (!value.is_number()) return std::nullopt;
  return value.get<double>();
}

std::optional<std::int64_t> integer_of(const Json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  if (value.is_number_unsigned() && !std::in_range<std::int64_t>(value.get<std::uint64_t>())) return std::nullopt;
  return value.get<std::int64_t>();
}

std::optional<std::string_view> text_of(const Json& value) {
  if (!value.is_string()) return std::nullopt;
  return value.get_ref<const std::string&>();
}

}  // namespace headroom
