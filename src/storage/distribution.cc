// SPDX-License-Identifier: Apache-2.0
#include "storage/distribution.h"

#include <array>
#include <cmath>

#include "storage/python_json.h"

namespace headroom {

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

// As Python prints it.
std::string choice_word(const Json& choice) {
  if (choice.is_null()) return "None";
  if (choice.is_boolean()) return choice.get<bool>() ? "True" : "False";
  if (const auto text = text_of(choice)) return std::string(*text);
  if (const auto number = number_of(choice); number && !std::isfinite(*number))
    return std::isnan(*number) ? "nan" : *number > 0 ? "inf" : "-inf";
  return choice.dump(-1, ' ', false, Json::error_handler_t::replace);
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
