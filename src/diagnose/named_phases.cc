// SPDX-License-Identifier: Apache-2.0
#include "diagnose/named_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "analyze/call_evidence.h"
#include "base/human.h"
#include "model/places.h"

namespace headroom::diagnose {

namespace {

constexpr double kMostOfIt = 0.8;  // of a time in a phase

// Of the phases in one, those too short for the readings: which of its idle time is theirs nobody can tell.
std::string within(const Analysis& a, const std::string& phase) {
  std::map<std::string, Nanos> inner;
  for (const Phase& one : a.phases)
    if (!one.gpu_util_ratio && one.named_by != "stacks" && one.name.starts_with(phase + "/"))
      inner[one.name] = one.total;
  if (inner.empty()) return "";
  const auto most =
      std::max_element(inner.begin(), inner.end(), [](const auto& x, const auto& y) { return x.second < y.second; });
  return fmt::format(" ({} in it took {}, each too short for the readings)", most->first, human_duration(most->second));
}

}  // namespace

std::map<std::string, Nanos> by_named_phase(const Analysis& a, const Claims& claims) {
  std::map<std::string, Nanos> by_name;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const std::vector<Slice>& slices = a.devices[device].slices;
    for (const ClaimedPiece& piece : claims) {
      if (piece.device != device) continue;
      auto slice = std::upper_bound(slices.begin(), slices.end(), piece.begin,
                                    [](Nanos at, const Slice& s) { return at < s.end; });
      for (; slice != slices.end() && slice->begin < piece.end; ++slice)
        if (slice->named >= 0 && a.phases[static_cast<std::size_t>(slice->named)].named_by != "stacks")
          by_name[a.phases[static_cast<std::size_t>(slice->named)].name] +=
              std::min(piece.end, slice->end) - std::max(piece.begin, slice->begin);
    }
  }
  return by_name;
}

std::string phase_of_most(const Analysis& a, const Claims& claims) {
  for (const auto& [name, ns] : by_named_phase(a, claims))
    if (static_cast<double>(ns) >= kMostOfIt * static_cast<double>(length(claims))) return name;
  return "";
}

namespace {

// When the first phase of a GPU begins that something but stacks names; nothing where none does.
std::optional<Nanos> first_range(const Analysis& a, std::size_t device) {
  const auto& slices = a.devices[device].slices;
  const auto first = std::find_if(slices.begin(), slices.end(), [&](const Slice& s) {
    return s.named >= 0 && a.phases[static_cast<std::size_t>(s.named)].named_by != "stacks";
  });
  return first == slices.end() ? std::nullopt : std::optional(first->begin);
}

bool mostly_named(const Analysis& a, const Claims& claims) {
  Nanos named = 0;
  for (const auto& [name, ns] : by_named_phase(a, claims)) named += ns;
  return static_cast<double>(named) >= kMostOfIt * static_cast<double>(length(claims));
}

// One phase, which nearly all of the time is from its begin on: that something lay in it tells nothing.
bool one_phase_is_all(const Analysis& a) {
  Claims rest;
  for (std::size_t device = 0; device < a.devices.size(); ++device)
    if (const auto first = first_range(a, device))
      rest.push_back({device, *first, a.window.end, Account::kUnexplained, -1});
  return by_named_phase(a, rest).size() == 1 && mostly_named(a, rest);
}

}  // namespace

Claims before_first_range(const Analysis& a, const Claims& claims) {
  Claims lead, rest;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const auto first = first_range(a, device);
    if (!first || *first <= a.window.begin) continue;
    lead.push_back({device, a.window.begin, *first, Account::kUnexplained, -1});
    rest.push_back({device, *first, a.window.end, Account::kUnexplained, -1});
  }
  return mostly_named(a, rest) ? common(claims, lead) : Claims{};
}

void name_the_phase(const Analysis& a, Finding& finding) {
  constexpr double kLeast = 0.05;
  const auto is_said = [](const Phase& phase) { return !phase.named_by.empty() && phase.named_by != "stacks"; };
  if (std::none_of(a.phases.begin(), a.phases.end(), is_said)) return;
  const std::map<std::string, Nanos> by_name = by_named_phase(a, finding.claims);
  std::vector<std::pair<Nanos, std::string>> order;
  for (const auto& [name, ns] : by_name)
    if (static_cast<double>(ns) >= kLeast * static_cast<double>(finding.cost())) order.emplace_back(-ns, name);
  if (order.empty()) return;
  std::sort(order.begin(), order.end());
  const std::string inner = within(a, order[0].second);
  if (inner.empty() && phase_of_most(a, finding.claims) == order[0].second && one_phase_is_all(a)) return;
  constexpr std::size_t kMost = 2;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMost, order.size()); ++i)
    text += fmt::format("{}{} of it in {}{}", i == 0 ? "" : ", ",
                        human_percent(static_cast<double>(-order[i].first) / static_cast<double>(finding.cost())),
                        i == 0 ? "the phase " : "", order[i].second);
  text += inner;
  finding.evidence.insert(finding.evidence.begin(), text);
}

}  // namespace headroom::diagnose
