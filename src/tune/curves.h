// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/random.h"
#include "model/study.h"

namespace headroom::tune {

// How learning curves of a study go on, learned from those of its trials that went on: a curve that was cut takes on
// the further changes of a random trial that at about the same report had gone about as long without a better value,
// scaled to how much the curve itself moves; where that trial ends, another takes over. Being cut depends on nothing
// but the past of a curve, so that trials cut later are as good examples up to there as those that completed.
class CurveBook {
 public:
  CurveBook(std::vector<std::vector<StepReport>> curves, Direction direction);

  // Appends reports until there are `length`. `self`: index of the curve among those given, which is no example for
  // itself. Where no trial has an example of a further step, the last value stays.
  void extend(std::vector<StepReport>& curve, std::size_t length, std::size_t self, Random& random) const;

 private:
  struct Place {  // after so many reports of a curve, which has more
    std::uint32_t reports = 0, curve = 0;
  };
  static constexpr std::size_t kAges = 32;  // reports since the best one; longer ones count as this

  [[nodiscard]] bool better(double value, double than) const;
  [[nodiscard]] std::pair<double, std::size_t> best_of(const std::vector<StepReport>& curve) const;
  [[nodiscard]] const Place* example(std::size_t reports, std::size_t age, std::size_t self, Random& random) const;

  std::vector<std::vector<StepReport>> curves_;
  std::vector<std::vector<double>> moved_;  // per curve, after n reports: sum of the absolute changes
  std::vector<std::vector<Place>> places_;  // by age, rising in reports
  std::vector<std::int64_t> steps_;         // of the longest curve
  bool maximize_;
};

}  // namespace headroom::tune
