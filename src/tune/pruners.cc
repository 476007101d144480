// SPDX-License-Identifier: Apache-2.0
#include "tune/pruners.h"

#include <utility>

namespace headroom::tune {

struct Pruning::State {
  PrunerSettings settings;
};

Pruning::Pruning(const PrunerSettings& settings, Direction, std::string) : state_(new State{settings}) {}
Pruning::Pruning(Pruning&&) noexcept = default;
Pruning& Pruning::operator=(Pruning&&) noexcept = default;
Pruning::~Pruning() = default;

void Pruning::begin(std::int64_t) {}
bool Pruning::report(std::int64_t, std::int64_t, double) { return false; }
void Pruning::end(std::int64_t, TrialState) {}
void Pruning::change(const PrunerSettings& settings) { state_->settings = settings; }

std::optional<int> hyperband_bracket(const PrunerSettings&, const std::string&, std::int64_t, std::int64_t) {
  return std::nullopt;
}

}  // namespace headroom::tune
