// SPDX-License-Identifier: Apache-2.0
#include "model/study.h"

#include <algorithm>
#include <array>

namespace headroom {

namespace {

constexpr std::array<std::string_view, kTrialStates> kStates{"RUNNING", "COMPLETE", "PRUNED", "FAIL", "WAITING"};
constexpr std::array<std::string_view, 3> kDirections{"NOT_SET", "MINIMIZE", "MAXIMIZE"};

template <class T>
std::optional<T> named(const auto& names, std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<T>(found - names.begin());
}

}  // namespace

std::string_view trial_state_name(TrialState state) { return kStates[static_cast<std::size_t>(state)]; }
std::optional<TrialState> trial_state_of(std::string_view name) { return named<TrialState>(kStates, name); }

std::string_view direction_name(Direction direction) { return kDirections[static_cast<std::size_t>(direction)]; }
std::optional<Direction> direction_of(std::string_view name) { return named<Direction>(kDirections, name); }

}  // namespace headroom
