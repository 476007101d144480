// SPDX-License-Identifier: Apache-2.0
#include "analyze/rank_paces.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analyze/ranks.h"
#include "base/median.h"
#include "base/strings.h"
#include "model/entities.h"

namespace headroom {

namespace {

struct Rank {
  std::string name;
  std::map<std::int64_t, double> steps;  // by number, how long it took in ns
};

// Steps that were counted together took the same time each.
std::map<std::int64_t, double> step_times(const Track& track, const Window& window) {
  constexpr std::int64_t kMost = 1'000'000;  // of steps in one reading: a damaged file may claim anything
  std::map<std::int64_t, double> times;
  const Column* steps = track.find(Metric::kSteps);
  std::optional<std::size_t> before;
  for (std::size_t row = 0; steps && row < track.at.size(); ++row) {
    if (!steps->has(row) || track.at[row] < window.begin || track.at[row] > window.end) continue;
    if (before) {
      const std::int64_t from = steps->values[*before], to = steps->values[row];
      const auto length = static_cast<double>(track.at[row] - track.at[*before]);
      if (to > from && to - from <= kMost)
        for (std::int64_t step = from + 1; step <= to; ++step) times[step] = length / static_cast<double>(to - from);
    }
    before = row;
  }
  return times;
}

std::string name_of(const Source& marks, const std::map<SourceId, std::int64_t>& numbers) {
  if (std::string name = attr(marks, "rank"); !name.empty()) return name;  // of several machines
  if (const std::string worker = attr(marks, "worker"); !worker.empty()) return "worker " + worker;
  const auto number = numbers.find(marks.parent);
  return process_name(parse_number<std::int64_t>(attr(marks, "pid")).value_or(0),
                      number == numbers.end() ? std::nullopt : std::optional(number->second));
}

// Those that count in the way in which most do.
std::pair<std::string, std::vector<Rank>> ranks_of(const Recording& recording, const Window& window) {
  std::map<std::string, std::map<std::string, Rank>> ways;  // by name: a process may count on several threads
  const auto numbers = counting_ranks(recording);
  for (const SourceId id : recording.all(SourceKind::kMarks)) {
    const Source& source = recording.sources[static_cast<std::size_t>(id)];
    Rank rank{name_of(source, numbers), step_times(recording.tracks[static_cast<std::size_t>(id)], window)};
    if (rank.steps.empty()) continue;
    Rank& known = ways[attr(source, "via")][rank.name];
    if (rank.steps.size() > known.steps.size()) known = std::move(rank);
  }
  std::pair<std::string, std::vector<Rank>> best;
  for (auto& [via, ranks] : ways) {
    if (ranks.size() <= best.second.size()) continue;
    best = {via, {}};
    for (auto& [name, rank] : ranks) best.second.push_back(std::move(rank));
  }
  return best;
}

std::vector<std::int64_t> steps_of_all(const std::vector<Rank>& ranks) {
  std::vector<std::int64_t> common;
  for (const auto& [step, time] : ranks.front().steps)
    if (std::all_of(ranks.begin(), ranks.end(), [&, s = step](const Rank& rank) { return rank.steps.contains(s); }))
      common.push_back(step);
  return common;
}

}  // namespace

std::vector<RankPace> rank_paces(const Recording& recording, const Window& window, const Thresholds& limits) {
  constexpr std::size_t kFewest = 3;  // of two, nobody knows which one is slow
  const auto [via, ranks] = ranks_of(recording, window);
  if (ranks.size() < kFewest) return {};
  const std::vector<std::int64_t> steps = steps_of_all(ranks);
  const auto in_a_row = static_cast<std::size_t>(std::max(1.0, limits[Threshold::kStragglerSteps]));
  if (steps.size() < in_a_row) return {};
  std::vector<RankPace> paces;
  for (std::size_t self = 0; self < ranks.size(); ++self) {
    RankPace pace{.name = ranks[self].name, .steps = static_cast<std::int64_t>(steps.size()), .via = via};
    std::vector<double> own{0}, usual{0};  // sums up to a step
    double slowest = 0, without = 0;       // of all ranks, step by step
    for (const std::int64_t step : steps) {
      std::vector<double> peers;
      for (std::size_t other = 0; other < ranks.size(); ++other)
        if (other != self) peers.push_back(ranks[other].steps.at(step));
      const double most = *std::max_element(peers.begin(), peers.end()), mine = ranks[self].steps.at(step);
      slowest += std::max(most, mine);
      without += most;
      own.push_back(own.back() + mine);
      usual.push_back(usual.back() + median(std::move(peers)));
    }
    for (std::size_t i = in_a_row; i <= steps.size(); ++i) {
      const double ratio = (own[i] - own[i - in_a_row]) / std::max(1.0, usual[i] - usual[i - in_a_row]);
      if (i > in_a_row && ratio <= pace.slowest) continue;
      pace.slowest = ratio;
      pace.from = steps[i - in_a_row];
      pace.to = steps[i - 1];
    }
    pace.all = own.back() / std::max(1.0, usual.back());
    pace.bound = slowest / std::max(1.0, without);
    paces.push_back(std::move(pace));
  }
  std::stable_sort(paces.begin(), paces.end(), [](const auto& x, const auto& y) { return x.slowest > y.slowest; });
  return paces;
}

}  // namespace headroom
