// SPDX-License-Identifier: Apache-2.0
// Any text is a pruner that can be written back and that decides about any values, or an error that says something.
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/result.h"
#include "tune/pruner_text.h"
#include "tune/pruners.h"

namespace {

using namespace headroom;
using namespace headroom::tune;

void decide(const PrunerSettings& settings, Direction direction) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kValues[] = {1, std::numeric_limits<double>::quiet_NaN(), -kInfinity, 2, kInfinity, 0, 0};
  constexpr std::int64_t kSteps[] = {0, 1, 2, 3, 5, 1000, std::numeric_limits<std::int64_t>::max()};
  Pruning pruning(settings, direction, "s");
  for (std::int64_t trial = 0; trial < 8; ++trial) {
    pruning.begin(trial);
    for (std::size_t i = 0; i < std::size(kSteps); ++i)
      (void)pruning.report(trial, kSteps[i], kValues[(i + static_cast<std::size_t>(trial)) % std::size(kValues)]);
    pruning.end(trial, trial % 3 == 2 ? TrialState::kPruned : TrialState::kComplete);
    if (trial == 5) pruning.change(settings);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto settings = parse_pruner({reinterpret_cast<const char*>(data), size});
  if (!settings) {
    HR_CHECK(!settings.error().what.empty(), "an error without words");
    return 0;
  }
  const auto again = parse_pruner(pruner_text(*settings));
  HR_CHECK(again && *again == *settings, "what is written is read back");
  decide(*settings, Direction::kMinimize);
  decide(*settings, Direction::kMaximize);
  return 0;
}
