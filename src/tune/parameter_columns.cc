// SPDX-License-Identifier: Apache-2.0
#include "tune/parameter_columns.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>

namespace headroom::tune {

namespace {

std::optional<double> number(const std::string& word) {
  double value = 0;
  const char* const end = word.data() + word.size();
  const auto read = std::from_chars(word.data(), end, value);
  if (read.ec != std::errc{} || read.ptr != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

bool of_numbers(const ParameterSpace& space) {
  return space.kind != ParameterKind::kCategorical ||
         (!space.choices.empty() &&
          std::all_of(space.choices.begin(), space.choices.end(), [](const auto& word) { return number(word); }));
}

// What a space's values mean in its column.
struct PlaceInColumn {
  std::size_t column = 0;
  bool categories = false;
  std::vector<double> meaning;  // by index of the choice
};

}  // namespace

std::vector<ParameterColumn> parameter_columns(const Study& study) {
  std::vector<ParameterColumn> columns;
  std::map<std::string, std::size_t> by_name;
  for (const ParameterSpace& space : study.spaces) {
    const auto [at, fresh] = by_name.emplace(space.name, columns.size());
    if (fresh) columns.push_back({.name = space.name});
    columns[at->second].number = columns[at->second].number && of_numbers(space);
  }
  std::vector<PlaceInColumn> places;
  std::vector<std::map<std::string, std::size_t>> words(columns.size());
  const auto index_of = [&](std::size_t column, const std::string& word) {
    const auto [at, fresh] = words[column].emplace(word, words[column].size());
    if (fresh) columns[column].words.push_back(word);
    return static_cast<double>(at->second);
  };
  for (const ParameterSpace& space : study.spaces) {
    PlaceInColumn place{.column = by_name[space.name], .categories = space.kind == ParameterKind::kCategorical};
    const ParameterColumn& column = columns[place.column];
    for (const std::string& word : space.choices)
      place.meaning.push_back(column.number ? number(word).value_or(0) : index_of(place.column, word));
    places.push_back(std::move(place));
  }
  for (std::size_t i = 0; i < study.trials.size(); ++i) {
    for (const ParameterValue& parameter : parameters_of(study, study.trials[i])) {
      if (parameter.space >= places.size() || !std::isfinite(parameter.value)) continue;
      const PlaceInColumn& place = places[parameter.space];
      ParameterColumn& column = columns[place.column];
      double value = parameter.value;
      if (place.categories) {
        if (value < 0 || value >= static_cast<double>(place.meaning.size())) continue;
        value = place.meaning[static_cast<std::size_t>(value)];
      } else if (!column.number) {
        value = index_of(place.column, "a number");
      }
      column.values.emplace_back(i, value);
    }
  }
  return columns;
}

}  // namespace headroom::tune
