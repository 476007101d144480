// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include "model/study_report.h"

namespace headroom::tune {

// How Python writes each pruner: one table for reading and for writing.
struct PrunerArgument {
  using Field = std::variant<std::int64_t PrunerSettings::*, std::optional<std::int64_t> PrunerSettings::*,
                             double PrunerSettings::*, std::optional<double> PrunerSettings::*>;
  enum class When : std::uint8_t { kOptional, kRequired };
  enum class Place : std::uint8_t { kAnywhere, kByNameOnly };

  std::string_view name;
  Field field;
  std::string_view
      absent;  // what Python writes where an optional field has no value: "auto", "None"; "" : not possible
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  When when = When::kOptional;
  Place place = Place::kAnywhere;
};

struct PrunerForm {
  std::string_view class_name;
  std::string_view short_name;
  PrunerSettings defaults;
  std::span<const PrunerArgument> arguments;
};

[[nodiscard]] std::span<const PrunerForm> pruner_forms();  // PatientPruner is not among them
[[nodiscard]] const PrunerForm& pruner_form(PrunerKind kind);
[[nodiscard]] std::span<const PrunerArgument> patient_arguments();  // after the wrapped pruner

}  // namespace headroom::tune
