// SPDX-License-Identifier: Apache-2.0
#include "compare/enough.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"

namespace headroom::compare {

namespace {

bool one_each(const Matching& m) { return m.a.size() == 1 && m.b.size() == 1; }

double steps_of(const Side& side) {
  double sum = 0;
  for (const Stretch& stretch : side.steps) sum += stretch.steps;
  return sum;
}

Enough enough_steps(const Facts& f) {
  const std::size_t stretches = std::min(f.a_rates.size(), f.b_rates.size());
  const double fewest = std::min(steps_of(f.a), steps_of(f.b));
  if (fewest >= kFewestSteps && stretches >= kFewestStretches) return {};
  if (f.unit == Unit::kNone) return {false, ""};  // that nothing counts them says it
  const std::string timed = fmt::format("{} in {}", count_of(static_cast<std::int64_t>(fewest), "step"),
                                        count_of(stretches, "stretch", "stretches"));
  const std::string least = fmt::format("{:g} in {} are the least", kFewestSteps, kFewestStretches);
  if (f.whole)
    return {false, fmt::format("A ran once, B once; {} runs of each are the least, since {} on the shorter side do not "
                               "tell how sure one is ({})",
                               kFewestRuns, timed, least)};
  return {false, fmt::format("{} were timed on the shorter side; {}{}", timed, least,
                             one_each(f.matching) ? fmt::format(", or {} runs of each", kFewestRuns)
                                                  : "; without --steps whole runs are compared")};
}

Enough enough_runs(const Facts& f) {
  if (f.together) return {};
  const Matching& m = f.matching;
  const std::size_t runs = m.pairs.empty() ? std::min(m.a_repeats, m.b_repeats) : m.pairs.size();
  if (m.common == 0 || runs >= kFewestRuns) return {};
  const auto times = [](std::size_t count) { return count == 1 ? "once" : count_of(count, "time"); };
  const bool steps_would_do = f.steps_would_do && f.unit == Unit::kNone && one_each(m);
  return {
      false,
      fmt::format("A ran {}, B {}; {} runs of each are the least{}", times(m.a.size()), times(m.b.size()), kFewestRuns,
                  steps_would_do ? fmt::format(", or one of each that counts its steps ({} does)", kCountsSteps) : "")};
}

}  // namespace

Enough enough_of(const Facts& facts) { return facts.by_steps ? enough_steps(facts) : enough_runs(facts); }

}  // namespace headroom::compare
