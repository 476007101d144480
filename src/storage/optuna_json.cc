// SPDX-License-Identifier: Apache-2.0
#include "storage/optuna_json.h"

#include <array>
#include <cmath>
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

namespace {

// One row per class. Optuna 3.0 made two classes of the five before; the step of one of them was called "q".
struct Class {
  std::string_view name;
  ParameterKind kind;
  const char* step;         // where the class has one
  std::optional<bool> log;  // absent: an attribute says it
};
constexpr std::array kClasses{
    Class{"FloatDistribution", ParameterKind::kFloat, "step", std::nullopt},
    Class{"IntDistribution", ParameterKind::kInt, "step", std::nullopt},
    Class{"CategoricalDistribution", ParameterKind::kCategorical, nullptr, false},
    Class{"UniformDistribution", ParameterKind::kFloat, nullptr, false},
    Class{"LogUniformDistribution", ParameterKind::kFloat, nullptr, true},
    Class{"DiscreteUniformDistribution", ParameterKind::kFloat, "q", false},
    Class{"IntUniformDistribution", ParameterKind::kInt, "step", false},
    Class{"IntLogUniformDistribution", ParameterKind::kInt, "step", true},
};

// A choice as Python prints it.
std::string choice_word(const Json& choice) {
  if (choice.is_null()) return "None";
  if (choice.is_boolean()) return choice.get<bool>() ? "True" : "False";
  if (const auto text = text_of(choice)) return std::string(*text);
  if (const auto number = number_of(choice); number && !std::isfinite(*number))
    return std::isnan(*number) ? "nan" : *number > 0 ? "inf" : "-inf";
  return json_text(choice);
}

bool read_choices(const Json& choices, ParameterSpace& space) {
  if (!choices.is_array() || choices.empty()) return false;
  for (const Json& choice : choices) space.choices.push_back(choice_word(choice));
  return true;
}

bool read_range(const Json& attributes, const Class& of, ParameterSpace& space) {
  const auto low = number_of(member(attributes, "low")), high = number_of(member(attributes, "high"));
  if (!low || !high || !std::isfinite(*low) || !std::isfinite(*high)) return false;
  space.low = *low;
  space.high = *high;
  if (of.step != nullptr) space.step = number_of(member(attributes, of.step));
  const Json& log = member(attributes, "log");
  space.log = of.log ? *of.log : log.is_boolean() && log.get<bool>();
  return true;
}

}  // namespace

std::optional<ParameterSpace> parse_distribution(std::string_view name, std::string_view text) {
  const Json json = parse_python_json(text);
  const auto class_name = text_of(member(json, "name"));
  const Json& attributes = member(json, "attributes");
  for (const Class& one : kClasses) {
    if (class_name != one.name) continue;
    ParameterSpace space{.name = std::string(name), .kind = one.kind};
    const bool whole = one.kind == ParameterKind::kCategorical ? read_choices(member(attributes, "choices"), space)
                                                               : read_range(attributes, one, space);
    return whole ? std::optional(std::move(space)) : std::nullopt;
  }
  return std::nullopt;
}

bool are_compatible(const ParameterSpace& before, const ParameterSpace& now) {
  return before.kind == now.kind && before.log == now.log && before.choices == now.choices;
}

bool is_value_of(const ParameterSpace& space, double value) {
  if (space.kind != ParameterKind::kCategorical) return !std::isnan(value);
  return value >= 0 && value < static_cast<double>(space.choices.size()) && value == std::floor(value);
}

}  // namespace headroom
