// SPDX-License-Identifier: Apache-2.0
// What one replay of a study costs, SYNTHETIC: 200 trials of 60 reports each that fall towards a limit. JSON on
// standard output: a row per setting, milliseconds per replay, the middle one and all rounds.
#include <fmt/format.h>

#include <cmath>
#include <random>

#include "base/median.h"
#include "base/time.h"
#include "tune/pruner_text.h"
#include "tune/replay.h"

namespace {

using namespace headroom;
using namespace headroom::tune;

std::vector<ReplayTrial> trials() {
  std::mt19937 draw(1);
  std::uniform_real_distribution<double> uniform;
  std::vector<ReplayTrial> all(200);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double limit = uniform(draw), fall = 3 + 20 * uniform(draw);
    all[i] = {.number = static_cast<std::int64_t>(i), .startup = 30 + 30 * uniform(draw), .step = 2 + uniform(draw)};
    for (int step = 1; step <= 60; ++step)
      all[i].curve.push_back({step, limit + 2 * std::exp(-step / fall) + 0.05 * uniform(draw)});
    all[i].value = all[i].curve.back().value;
  }
  return all;
}

std::string timed(const std::vector<ReplayTrial>& all, const std::string& pruner, const ReplaySettings& settings) {
  constexpr int kRounds = 9, kReplays = 50;
  std::vector<double> rounds;
  std::string list;
  for (int round = 0; round < kRounds; ++round) {
    const Nanos begin = thread_cpu_now();
    for (int i = 0; i < kReplays; ++i)
      HR_CHECK(replay(all, {}, settings, Direction::kMinimize, "bench", 0).seconds > 0, "a replay takes its time");
    rounds.push_back(1e3 * seconds(thread_cpu_now() - begin) / kReplays);
    list += fmt::format("{}{:.4f}", round ? ", " : "", rounds.back());
  }
  return fmt::format(R"({{"what": "{} workers, {}", "ms": {:.4f}, "rounds": [{}]}})", settings.workers, pruner,
                     median(rounds), list);
}

}  // namespace

int main() {
  const auto all = trials();
  std::string rows;
  for (const std::int64_t workers : {4, 32})
    for (const char* pruner :
         {"PatientPruner(HyperbandPruner(1, 60, 3), patience=3)", "MedianPruner()", "NopPruner()"}) {
      const auto settings = parse_pruner(pruner);
      HR_CHECK(settings, "it is one of Optuna's pruners");
      rows += (rows.empty() ? "" : ",\n ") + timed(all, pruner, {.workers = workers, .pruner = *settings});
    }
  fmt::print("[{}]\n", rows);
}
