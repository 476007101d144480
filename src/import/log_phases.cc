// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "import/log_builder.h"

namespace headroom {

namespace {

// Of the rows of one GPU, which are in order of time.
std::vector<PhaseBegin> phases_of(const LogData& data, const GpuLog& gpu, Nanos interval) {
  std::vector<PhaseBegin> phases;
  for (std::size_t i = 0; i < gpu.at.size(); ++i) {
    const auto next = std::upper_bound(data.phases.begin(), data.phases.end(), gpu.lines[i],
                                       [](std::int64_t line, const LogData::Phase& p) { return line < p.line; });
    if (next == data.phases.begin()) continue;
    const std::string_view name = std::prev(next)->name;
    if (!phases.empty() && phases.back().name == name) continue;
    phases.push_back({i > 0 ? gpu.at[i - 1] : gpu.at[i] - interval, std::string(name)});
  }
  return phases;
}

}  // namespace

std::vector<PhaseBegin> phases_of_rows(LogData& data, Nanos interval) {
  std::vector<PhaseBegin> told;
  const auto left_out = [&](const char* why) {
    data.losses.add(LossKind::kColumnNotKept, 1, [&] { return fmt::format("a column of phases: {}", why); });
    return std::vector<PhaseBegin>{};
  };
  if (data.phases.size() > LogData::kMostPhases) return left_out("they change too often");
  for (const GpuLog& gpu : data.gpus) {
    std::vector<PhaseBegin> phases = phases_of(data, gpu, interval);
    const auto same = [](const PhaseBegin& a, const PhaseBegin& b) { return a.name == b.name; };
    if (&gpu == data.gpus.data()) {
      told = std::move(phases);
    } else if (!std::equal(told.begin(), told.end(), phases.begin(), phases.end(), same)) {
      return left_out("they differ between the GPUs");
    }
  }
  const bool any = std::any_of(told.begin(), told.end(), [](const PhaseBegin& phase) { return !phase.name.empty(); });
  return any ? told : std::vector<PhaseBegin>{};
}

void add_phases(const std::vector<PhaseBegin>& phases, Recording& recording) {
  if (phases.empty()) return;
  std::map<std::string_view, ListId> lists;
  std::map<std::string_view, std::int32_t> times;
  Track track;
  for (const PhaseBegin& phase : phases) {
    const auto [list, is_new] = lists.try_emplace(phase.name, static_cast<ListId>(recording.lists.size()));
    if (is_new) {
      recording.lists.emplace_back();
      if (!phase.name.empty()) {
        recording.lists.back().push_back(static_cast<TextId>(recording.texts.size()));
        recording.texts.emplace_back(phase.name);
      }
    }
    track.lists.push_back({phase.at, list->second, phase.name.empty() ? 0 : ++times[phase.name]});
  }
  recording.sources.push_back({SourceKind::kMarks, "log/phase", kNoSource, {{"via", "table"}}});
  recording.tracks.push_back(std::move(track));
  recording.meta.tiers += "X";
  std::erase_if(recording.meta.missing_tiers, [](const MissingTier& missing) { return missing.tier == 'X'; });
}

}  // namespace headroom
