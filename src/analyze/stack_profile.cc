// SPDX-License-Identifier: Apache-2.0
#include "analyze/stack_profile.h"

#include <algorithm>
#include <map>

#include "analyze/stack_evidence.h"
#include "analyze/utilisation.h"
#include "model/parts.h"

namespace headroom {

std::vector<stacks::WeightedStack> stack_profile(const Recording& recording, const Analysis& analysis) {
  const StackView view = stack_view(recording, stacks::Families(analysis.told.families));
  std::vector<stacks::WeightedStack> by_list(view.kind_of_list.size());
  for (const DeviceTime& device : analysis.devices) {
    const IdleTime time(util_samples(recording, device.source, analysis.limits));
    for (const ContextUse& use : analysis.job.uses) {
      if (!use.ours || use.device != device.source || !use.process) continue;
      const auto known = view.looks.find(*use.process);
      if (known == view.looks.end()) continue;
      const std::span<const ListRow> all = known->second.all();
      const auto& readings = time.samples();
      const auto first = std::upper_bound(readings.begin(), readings.end(), use.begin,
                                          [](Nanos at, const UtilSample& sample) { return at < sample.end; });
      for (auto each_reading = first; each_reading != readings.end() && each_reading->begin < use.end; ++each_reading) {
        const UtilSample& reading = *each_reading;
        const Nanos begin = std::max({reading.begin, use.begin, analysis.window.begin});
        const Nanos end = std::min({reading.end, use.end, analysis.window.end});
        if (begin >= end || !reading.util) continue;
        const auto looks = looks_within(all, begin, end);
        const auto idle_of = idle_by_busy(view, all, time, reading);
        const double each = seconds(end - begin) / static_cast<double>(std::max<std::size_t>(1, looks.size()));
        for (const ListRow& look : looks) {
          const double share = idle_of[static_cast<std::size_t>(view.busy_of_list[look.list])];
          stacks::WeightedStack& stack = by_list[look.list];
          stack.idle += each * share;
          stack.busy += each * (1 - share);
        }
      }
    }
  }
  for (std::size_t i = 0; i < view.several.size(); ++i) {
    const stacks::WeightedStack& one = by_list[recording.lists.size() + i];
    const auto parts = static_cast<double>(view.several[i].size());
    for (const ListId list : view.several[i]) {
      by_list[list].idle += one.idle / parts;
      by_list[list].busy += one.busy / parts;
    }
  }
  std::vector<stacks::WeightedStack> profile;
  for (std::size_t list = 0; list < recording.lists.size(); ++list) {
    stacks::WeightedStack& stack = by_list[list];
    if (stack.idle + stack.busy <= 0 || recording.lists[list].empty()) continue;  // empty: between two functions
    for (const TextId text : recording.lists[list]) stack.frames.push_back(recording.texts[text]);
    profile.push_back(std::move(stack));
  }
  std::stable_sort(profile.begin(), profile.end(), [](const auto& x, const auto& y) { return x.idle > y.idle; });
  return profile;
}

std::vector<stacks::WeightedStack> profile_of(const Recording& recording, std::pair<Nanos, Nanos> window,
                                              const std::vector<stacks::FamilyRule>& families) {
  const RecordingMeta& meta = recording.meta;
  if (!has_parts(recording))
    return stack_profile(recording, analyze(recording, {meta.start + window.first, meta.start + window.second}, {},
                                            Told{.families = families}));
  std::map<std::vector<std::string>, stacks::WeightedStack> sums;
  const std::vector<RecordingMeta> metas = metas_of_parts(recording);
  for (std::size_t i = 0; i < metas.size(); ++i) {
    const Nanos later = metas[i].start_realtime - meta.start, span = metas[i].end - metas[i].start;
    const std::pair own{std::clamp<Nanos>(window.first - later, 0, span),
                        std::clamp<Nanos>(window.second - later, 0, span)};
    if (own.first >= own.second) continue;
    for (stacks::WeightedStack& stack : profile_of(part_of(recording, i), own, families)) {
      stacks::WeightedStack& sum = sums[stack.frames];
      sum.idle += stack.idle, sum.busy += stack.busy;
      sum.frames = std::move(stack.frames);
    }
  }
  std::vector<stacks::WeightedStack> profile;
  for (auto& [frames, stack] : sums) profile.push_back(std::move(stack));
  std::stable_sort(profile.begin(), profile.end(), [](const auto& x, const auto& y) { return x.idle > y.idle; });
  return profile;
}

std::string why_no_stacks(const RecordingMeta& meta) {
  for (const MissingTier& tier : meta.missing_tiers)
    if (tier.tier == 'Y') return tier.why;
  return meta.tiers.find('Y') == std::string::npos ? "they were not recorded"
                                                   : "no Python process of the job held a GPU while it was looked at";
}

}  // namespace headroom
