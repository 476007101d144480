// SPDX-License-Identifier: Apache-2.0
#include "analyze/code_seen.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "model/losses.h"

namespace headroom {

namespace {

// CPython tells from 3.11 on which part of a line runs.
bool calls_are_named(const Recording& recording) {
  const auto threads = recording.all(SourceKind::kPythonThread);
  return !threads.empty() && std::all_of(threads.begin(), threads.end(), [&](SourceId id) {
    const auto& attrs = recording.sources[static_cast<std::size_t>(id)].attrs;
    const auto python = attrs.find("python");
    const auto parts = python == attrs.end() ? std::vector<std::string_view>{} : split(python->second, '.');
    return parts.size() > 1 && parts[0] == "3" && parse_number<int>(parts[1]).value_or(0) >= 11;
  });
}

// Of the places that stacks name those at which code of a family ran, by most of their looks.
std::map<std::string, stacks::Family> families_of(const StackView& stacks) {
  std::map<std::string, std::map<stacks::Family, double>> looks_at;
  for (std::size_t kind = 0; kind < stacks.kinds.size(); ++kind)
    if (stacks.count[kind] > 0) looks_at[stacks.kinds[kind].where][stacks.kinds[kind].family] += stacks.count[kind];
  std::map<std::string, stacks::Family> families;
  for (const auto& [place, counts] : looks_at) {
    const auto most = std::max_element(counts.begin(), counts.end(),
                                       [](const auto& x, const auto& y) { return x.second < y.second; });
    if (most->first != stacks::Family::kNone) families[place] = most->first;
  }
  for (const stacks::StackKind& kind : stacks.kinds)  // of threads that were at it beside others only
    if (kind.family != stacks::Family::kNone && !looks_at.contains(kind.where))
      families.try_emplace(kind.where, kind.family);
  return families;
}

// Looks at waits for kernels do not count: the device works then.
std::map<std::string, double> plain_shares(const StackView& stacks) {
  std::map<std::string, std::pair<double, double>> looks_at;  // that are plain; all
  for (std::size_t kind = 0; kind < stacks.kinds.size(); ++kind) {
    const stacks::StackKind& one = stacks.kinds[kind];
    if (one.busy == stacks::Busy::kWaitsForKernels) continue;
    auto& [plain, all] = looks_at[one.where];
    all += stacks.count[kind];
    if (one.plain) plain += stacks.count[kind];
  }
  std::map<std::string, double> shares;
  for (const auto& [place, looks] : looks_at)
    if (looks.first > 0) shares[place] = looks.first / looks.second;
  return shares;
}

// The places at which stacks are so, and hardly ever otherwise. A function that launches kernels, too, is seen at these
// as well: looks at those do not count.
std::set<std::string> places_of(const StackView& stacks, bool (*is_so)(const stacks::StackKind&)) {
  constexpr double kHardlyElse = 0.9;
  std::map<std::string, std::pair<double, double>> looks_at;  // that are so; all
  for (std::size_t kind = 0; kind < stacks.kinds.size(); ++kind) {
    const stacks::StackKind& one = stacks.kinds[kind];
    if (one.busy == stacks::Busy::kWaitsForKernels || one.busy == stacks::Busy::kLaunches) continue;
    auto& [so, all] = looks_at[one.where];
    all += stacks.count[kind];
    if (is_so(one)) so += stacks.count[kind];
  }
  std::set<std::string> places;
  for (const auto& [place, looks] : looks_at)
    if (looks.first > 0 && looks.first >= kHardlyElse * looks.second) places.insert(place);
  return places;
}

std::map<std::string, std::vector<std::pair<std::string, double>>> callers_of(const StackView& stacks) {
  std::map<std::string, std::vector<std::pair<std::string, double>>> callers;
  for (const auto& [place, looks] : stacks.callers) {
    if (looks.size() < 2) continue;
    double all = 0;
    for (const auto& [caller, count] : looks) all += count;
    auto& shares = callers[place];
    for (const auto& [caller, count] : looks) shares.emplace_back(caller, count / all);
    std::stable_sort(shares.begin(), shares.end(), [](const auto& x, const auto& y) { return x.second > y.second; });
  }
  return callers;
}

std::map<std::string, std::map<std::string, double>> holders_of(const StackView& stacks) {
  std::map<std::string, std::map<std::string, double>> holders;
  for (const auto& [place, looks] : stacks.held_by) {
    const double all = looks.at("");
    for (const auto& [function, count] : looks)
      if (!function.empty() && !stacks.hold_all.contains(function)) holders[place][function] = count / all;
  }
  return holders;
}

}  // namespace

CodeSeen code_seen(const Recording& recording, const WatchedJob& watched, const std::vector<std::string>& places,
                   const Thresholds& limits) {
  const StackView& stacks = watched.stacks;
  CodeSeen seen;
  seen.roles = loop_roles(recording, watched);
  seen.workers = worker_looks(watched);
  seen.other_threads = thread_code(watched);
  seen.interpreter_taken = interpreter_taken_at_most(watched);
  const auto left_out = [](const Loss& loss) { return loss.what == info(LossKind::kStackLeftOut).name; };
  seen.one_python_thread_each =
      one_python_thread_each(watched) && std::none_of(recording.losses.begin(), recording.losses.end(), left_out);
  seen.calls_named = calls_are_named(recording);
  seen.kernel_waits = kernel_waits(watched);
  seen.launch_calls = launch_calls(watched);
  seen.idle_shares = idle_shares(watched, places, stacks::Busy::kUnknown, 0);
  seen.launch_idle_shares = idle_shares(watched, places, stacks::Busy::kLaunches, 1);
  seen.long_stays = long_stays(watched, limits.time(Threshold::kLongPause));
  seen.precision = stacks::precision_seen(recording.texts);
  seen.families = families_of(stacks);
  seen.callers = callers_of(stacks);
  seen.held_by = holders_of(stacks);
  seen.plain_shares = plain_shares(stacks);
  seen.process_waits = places_of(stacks, [](const stacks::StackKind& kind) { return kind.of_processes && kind.waits; });
  seen.idle_loops = places_of(stacks, [](const stacks::StackKind& kind) { return kind.in_loop; });
  seen.feeding = places_of(stacks, [](const stacks::StackKind& kind) { return kind.feeds_main; });
  seen.thread_waits = thread_waits_at_end(watched);
  for (const stacks::StackKind& kind : stacks.kinds) {
    if (kind.for_child) seen.child_waits.insert(kind.where);
    if (!kind.file.empty()) seen.own.insert(kind.where);
  }
  return seen;
}

}  // namespace headroom
