// SPDX-License-Identifier: Apache-2.0
#include "tune/pruner_text.h"

#include <gtest/gtest.h>

#include <random>

#include "tune/pruner_forms.h"

namespace headroom::tune {
namespace {

constexpr unsigned kTextSeed = 20261122;

PrunerSettings read(std::string_view text) {
  const auto settings = parse_pruner(text);
  if (!settings) ADD_FAILURE() << text << ": " << settings.error().what;
  return settings.value_or(PrunerSettings{});
}

TEST(PrunerText, ReadsPythonAsItStandsInPrograms) {
  const PrunerSettings hyperband{
      .kind = PrunerKind::kHyperband, .patience = 2, .min_resource = 1, .max_resource = 100, .reduction_factor = 3};
  EXPECT_EQ(read("PatientPruner(HyperbandPruner(1, 100, 3), patience=2)"), hyperband);
  EXPECT_EQ(read("optuna.pruners.PatientPruner(optuna.pruners.HyperbandPruner(max_resource=100), 2)"), hyperband);
  EXPECT_EQ(read("pruner=pruners.PatientPruner(\n    patience=2,  # epochs (of 100)\n"
                 "    wrapped_pruner=HyperbandPruner(1, 1_00,),\n),"),
            hyperband);
}

TEST(PrunerText, ReadsShortForms) {
  EXPECT_EQ(read("none"), PrunerSettings{});
  EXPECT_EQ(read(" median "), read("MedianPruner()"));
  EXPECT_EQ(read("Hyperband(1, 60, 6)"), read("HyperbandPruner(1, 60, 6)"));
  EXPECT_EQ(read("successive_halving"), read("SuccessiveHalvingPruner('auto', 4)"));
}

TEST(PrunerText, DefaultsAreOptunasOwn) {
  EXPECT_EQ(read("SuccessiveHalvingPruner()").min_resource, std::nullopt);
  EXPECT_EQ(read("SuccessiveHalvingPruner()").reduction_factor, 4);
  EXPECT_EQ(read("HyperbandPruner()").max_resource, std::nullopt);
  EXPECT_EQ(read("HyperbandPruner()").reduction_factor, 3);
  EXPECT_EQ(read("MedianPruner()").n_startup_trials, 5);
}

TEST(PrunerText, ReadsNumbersOfPython) {
  EXPECT_EQ(read("ThresholdPruner(-1e-3, +.5)").lower, -1e-3);
  EXPECT_EQ(read("ThresholdPruner(-1e-3, +.5)").upper, .5);
  EXPECT_EQ(read("ThresholdPruner(None, 1)").lower, std::nullopt);
  EXPECT_EQ(read("ThresholdPruner(float('-inf'), math.inf)").upper, std::numeric_limits<double>::infinity());
}

TEST(PrunerText, AroundNothingAndAroundANopPrunerDiffer) {
  EXPECT_EQ(read("PatientPruner(None, 3)"), PrunerSettings{.patience = 3});
  EXPECT_EQ(read("PatientPruner(NopPruner(), 3)"), PrunerSettings{}) << "it asks the NopPruner, which never prunes";
}

struct Refused {
  std::string_view text, what, hint;
};

TEST(PrunerText, ErrorsSayWhatAndWhatIsPossible) {
  constexpr Refused kRefused[] = {
      {"Hyperbnd(1, 9)", "unknown pruner 'Hyperbnd'", "did you mean HyperbandPruner?"},
      {"MySpecialPruner()", "unknown pruner 'MySpecialPruner'",
       "write one of Optuna's out: PatientPruner, NopPruner, MedianPruner, PercentilePruner, SuccessiveHalvingPruner, "
       "HyperbandPruner, ThresholdPruner"},
      {"WilcoxonPruner()", "the WilcoxonPruner cannot be replayed", ""},
      {"HyperbandPruner(min_resorce=1)", "HyperbandPruner: no argument 'min_resorce'", "did you mean min_resource?"},
      {"NopPruner(x=1)", "NopPruner: no argument 'x'", "it takes none"},
      {"PercentilePruner(101)", "PercentilePruner: percentile is 101, and can be a number from 0 to 100", ""},
      {"PercentilePruner()", "PercentilePruner: percentile is missing; it has no default", ""},
      {"MedianPruner(interval_steps=0)", "MedianPruner: interval_steps is 0, and can be a whole number of 1 or more",
       ""},
      {"MedianPruner(n_warmup_steps=2.5)",
       "MedianPruner: n_warmup_steps is 2.5, and can be a whole number of 0 or more", ""},
      {"MedianPruner(1, 2, 3, 4)", "MedianPruner: '4' is one argument too many", ""},
      {"MedianPruner(n_warmup_steps=2, 3)", "'3' has no name, and stands after an argument that has one", ""},
      {"HyperbandPruner(1, min_resource=2)", "HyperbandPruner: min_resource stands there twice", ""},
      {"HyperbandPruner(1, epochs)",
       "HyperbandPruner: max_resource is epochs, and can be a whole number of 1 or more, or 'auto'", ""},
      {"HyperbandPruner('auto')", "HyperbandPruner: min_resource is 'auto', and can be a whole number of 1 or more",
       ""},
      {"HyperbandPruner(bootstrap_count=1)",
       "HyperbandPruner: bootstrap_count cannot be set while max_resource is 'auto'", ""},
      {"SuccessiveHalvingPruner(1, 1)",
       "SuccessiveHalvingPruner: reduction_factor is 1, and can be a whole number of 2 or more", ""},
      {"ThresholdPruner()", "ThresholdPruner: one of lower and upper is needed", ""},
      {"ThresholdPruner(2, 1)", "ThresholdPruner: lower is 2, which is over upper, 1", ""},
      {"ThresholdPruner(nan)", "ThresholdPruner: lower is nan, and can be a number, or None", ""},
      {"PatientPruner(median)", "PatientPruner: patience is missing; it has no default", ""},
      {"PatientPruner(median, -1)", "PatientPruner: patience is -1, and can be a whole number of 0 or more", ""},
      {"PatientPruner(PatientPruner(None, 1), 1)", "a PatientPruner within a PatientPruner cannot be replayed", ""},
  };
  for (const auto& [text, what, hint] : kRefused) {
    const auto settings = parse_pruner(text);
    ASSERT_FALSE(settings.has_value()) << text;
    EXPECT_EQ(settings.error().what, what);
    EXPECT_EQ(settings.error().hint, hint);
  }
}

TEST(PrunerText, WhatIsNoCallIsAnErrorWithItsPlace) {
  for (const std::string_view text :
       {"", "(", "MedianPruner(", "MedianPruner(1", "MedianPruner(1))", "MedianPruner(=1)", "median()()",
        "median median", "PatientPruner(", "'", "pruner=", "median(,)"}) {
    const auto settings = parse_pruner(text);
    ASSERT_FALSE(settings.has_value()) << text;
    EXPECT_FALSE(settings.error().what.empty());
  }
}

TEST(PrunerText, LeavesDefaultsOut) {
  EXPECT_EQ(pruner_text({}), "NopPruner()");
  EXPECT_EQ(pruner_text(read("PatientPruner(HyperbandPruner(1, 60, 6), 3, 0.0)")),
            "PatientPruner(HyperbandPruner(max_resource=60, reduction_factor=6), patience=3)");
  EXPECT_EQ(pruner_text(read("ThresholdPruner(None, float('inf'))")), "ThresholdPruner(upper=float(\"inf\"))");
  EXPECT_EQ(pruner_text(read("PercentilePruner(50)")), "PercentilePruner(percentile=50)");
  EXPECT_EQ(pruner_text({.patience = 0, .min_delta = 0.1}), "PatientPruner(None, patience=0, min_delta=0.1)");
}

// Random settings that Optuna takes.
PrunerSettings random_settings(std::mt19937& random) {
  const PrunerForm& form = pruner_forms()[random() % pruner_forms().size()];
  PrunerSettings settings = form.defaults;
  const auto roll = [&](const PrunerArgument& argument) {
    std::visit(
        [&](auto field) {
          if (random() % 2 == 0) return;
          const double least = std::max(argument.least, -1e9), most = std::min(argument.most, 1e9);
          const double value = std::uniform_real_distribution(least, most)(random);
          if constexpr (std::is_same_v<decltype(field), std::int64_t PrunerSettings::*> ||
                        std::is_same_v<decltype(field), std::optional<std::int64_t> PrunerSettings::*>)
            settings.*field = static_cast<std::int64_t>(std::ceil(value));
          else
            settings.*field = value;
        },
        argument.field);
  };
  for (const PrunerArgument& argument : form.arguments) roll(argument);
  if (random() % 2 == 0)
    for (const PrunerArgument& argument : patient_arguments()) roll(argument);
  if (!settings.patience) settings.min_delta = 0;
  if (settings.kind == PrunerKind::kThreshold && !settings.lower) settings.upper = 1e-7;
  if (settings.lower && settings.upper && *settings.lower > *settings.upper) std::swap(settings.lower, settings.upper);
  if (!(settings.kind == PrunerKind::kHyperband ? settings.max_resource : settings.min_resource))
    settings.bootstrap_count = 0;
  return settings;
}

TEST(PrunerText, WhatIsWrittenIsReadBack) {
  std::mt19937 random(kTextSeed);
  for (int i = 0; i < 2000; ++i) {
    const PrunerSettings settings = random_settings(random);
    const std::string text = pruner_text(settings);
    EXPECT_EQ(read(text), settings) << text << ", seed " << kTextSeed;
  }
}

}  // namespace
}  // namespace headroom::tune
