// SPDX-License-Identifier: Apache-2.0
#include "tune/pruner_forms.h"

#include <array>

namespace headroom::tune {

namespace {

using Settings = PrunerSettings;
using When = PrunerArgument::When;
using Place = PrunerArgument::Place;

constexpr PrunerArgument kReductionFactor{"reduction_factor", &Settings::reduction_factor, "", 2};
constexpr PrunerArgument kBootstrapCount{"bootstrap_count", &Settings::bootstrap_count, "", 0};
constexpr PrunerArgument kStartupTrials{"n_startup_trials", &Settings::n_startup_trials, "", 0};
constexpr PrunerArgument kWarmupSteps{"n_warmup_steps", &Settings::n_warmup_steps, "", 0};
constexpr PrunerArgument kIntervalSteps{"interval_steps", &Settings::interval_steps, "", 1};
constexpr PrunerArgument kMinTrials{
    .name = "n_min_trials", .field = &Settings::n_min_trials, .absent = "", .least = 1, .place = Place::kByNameOnly};

constexpr std::array kMedian{kStartupTrials, kWarmupSteps, kIntervalSteps, kMinTrials};
constexpr std::array kPercentile{PrunerArgument{"percentile", &Settings::percentile, "", 0, 100, When::kRequired},
                                 kStartupTrials, kWarmupSteps, kIntervalSteps, kMinTrials};
constexpr std::array kHalving{PrunerArgument{"min_resource", &Settings::min_resource, "auto", 1}, kReductionFactor,
                              PrunerArgument{"min_early_stopping_rate", &Settings::min_early_stopping_rate, "", 0},
                              kBootstrapCount};
constexpr std::array kHyperband{PrunerArgument{"min_resource", &Settings::min_resource, "", 1},
                                PrunerArgument{"max_resource", &Settings::max_resource, "auto", 1}, kReductionFactor,
                                kBootstrapCount};
constexpr std::array kThreshold{PrunerArgument{"lower", &Settings::lower, "None"},
                                PrunerArgument{"upper", &Settings::upper, "None"}, kWarmupSteps, kIntervalSteps};
constexpr std::array kPatient{
    PrunerArgument{.name = "patience", .field = &Settings::patience, .absent = "", .least = 0, .when = When::kRequired},
    PrunerArgument{"min_delta", &Settings::min_delta, "", 0}};

// In the order of PrunerKind. Optuna's defaults, where they are not those of PrunerSettings.
constexpr std::array kForms{
    PrunerForm{"NopPruner", "none", {.kind = PrunerKind::kNone}, {}},
    PrunerForm{"MedianPruner", "median", {.kind = PrunerKind::kMedian}, kMedian},
    PrunerForm{"PercentilePruner", "percentile", {.kind = PrunerKind::kPercentile}, kPercentile},
    PrunerForm{"SuccessiveHalvingPruner",
               "successive_halving",
               {.kind = PrunerKind::kSuccessiveHalving, .min_resource = std::nullopt, .reduction_factor = 4},
               kHalving},
    PrunerForm{"HyperbandPruner", "hyperband", {.kind = PrunerKind::kHyperband}, kHyperband},
    PrunerForm{"ThresholdPruner", "threshold", {.kind = PrunerKind::kThreshold}, kThreshold},
};

constexpr bool in_order_of_kinds() {
  for (std::size_t i = 0; i < kForms.size(); ++i)
    if (static_cast<std::size_t>(kForms[i].defaults.kind) != i) return false;
  return true;
}
static_assert(in_order_of_kinds());

}  // namespace

std::span<const PrunerForm> pruner_forms() { return kForms; }
const PrunerForm& pruner_form(PrunerKind kind) { return kForms[static_cast<std::size_t>(kind)]; }
std::span<const PrunerArgument> patient_arguments() { return kPatient; }

}  // namespace headroom::tune
