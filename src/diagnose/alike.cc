// SPDX-License-Identifier: Apache-2.0
#include "diagnose/alike.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "base/human.h"
#include "diagnose/claims.h"
#include "diagnose/words.h"

namespace headroom::diagnose {

namespace {

// Where `name`, such as "GPU 1", stands in `text`, and not as the beginning of "GPU 10".
std::size_t place_of(const std::string& name, const std::string& text) {
  for (auto at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const auto behind = at + name.size();
    if (behind >= text.size() || text[behind] < '0' || text[behind] > '9') return at;
  }
  return std::string::npos;
}

// The one device that a title names; nothing where it names none or several.
std::optional<std::size_t> named_device(const Analysis& a, const std::string& title) {
  std::optional<std::size_t> found;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    if (place_of(a.device_name(device), title) == std::string::npos) continue;
    if (found) return std::nullopt;
    found = device;
  }
  return found;
}

std::string with_name(const Analysis& a, std::string title, std::size_t device, const std::string& name) {
  const std::string old = a.device_name(device);
  return title.replace(place_of(old, title), old.size(), name);
}

struct Group {
  Finding finding;
  std::vector<std::size_t> devices;  // those that titles named; empty: the finding stands alone
  bool same_figures = true;          // of all of them
};

std::string without_name(const Analysis& a, const std::string& sentence, std::size_t device) {
  return place_of(a.device_name(device), sentence) == std::string::npos ? sentence : with_name(a, sentence, device, "");
}

bool same_words(const Analysis& a, const Group& group, const Finding& other, std::size_t device) {
  if (group.devices.empty()) return false;
  const Finding& one = group.finding;
  return one.cause == other.cause && one.candidates == other.candidates && one.advice == other.advice &&
         one.gain.has_value() == other.gain.has_value() && (!one.gain || one.gain->words() == other.gain->words()) &&
         with_name(a, one.title, group.devices.front(), "") == with_name(a, other.title, device, "");
}

void join(const Analysis& a, Group& group, Finding&& other, std::size_t device) {
  Finding& one = group.finding;
  group.same_figures =
      group.same_figures &&
      std::equal(one.evidence.begin(), one.evidence.end(), other.evidence.begin(), other.evidence.end(),
                 [&](const std::string& first, const std::string& next) {
                   return without_name(a, first, group.devices.front()) == without_name(a, next, device);
                 });
  one.claims.insert(one.claims.end(), other.claims.begin(), other.claims.end());
  one.tiers |= other.tiers;
  if (one.gain && other.gain && other.gain->high > one.gain->high) {
    one.gain = std::move(other.gain);
    one.bound = std::move(other.bound);
    one.counted = std::move(other.counted);
  }
  one.confidence = std::max(one.confidence, other.confidence);  // the less sure one
  std::vector<std::string> denied;                              // only what is denied of each of them
  for (std::string& words : one.told_apart_from)
    if (std::find(other.told_apart_from.begin(), other.told_apart_from.end(), words) != other.told_apart_from.end())
      denied.push_back(std::move(words));
  one.told_apart_from = std::move(denied);
  group.devices.push_back(device);
}

void tell_of_all(const Analysis& a, Group& group) {
  if (group.devices.size() < 2) return;
  Finding& finding = group.finding;
  const std::size_t first = group.devices.front();
  const bool begins = place_of(a.device_name(first), finding.title) == 0;
  finding.title = with_name(a, finding.title, first,
                            fmt::format("{} of {}", begins ? "Each" : "each", gpu_names(a, group.devices)));
  for (std::string& sentence : finding.evidence)
    if (place_of(a.device_name(first), sentence) == std::string::npos)
      sentence = fmt::format("{}: {}", a.device_name(first), sentence);
  const std::string others = gpu_names(a, {group.devices.begin() + 1, group.devices.end()});
  finding.evidence.push_back(group.same_figures ? "the same of " + others
                                                : fmt::format("likewise {}, with other figures", others));
  std::sort(finding.claims.begin(), finding.claims.end(), [](const ClaimedPiece& x, const ClaimedPiece& y) {
    return std::pair(x.device, x.begin) < std::pair(y.device, y.begin);
  });
  if (!finding.gain) return;
  // Each may have taken time with it that it does not claim.
  Finding alone = finding;
  gains_by_removal(a, finding.claims, alone, *finding.gain);
  if (!alone.gain || alone.gain->high <= finding.gain->high) return;
  finding.gain = std::move(alone.gain);
  finding.bound = std::move(alone.bound);
}

}  // namespace

void name_the_device(const Analysis& a, Finding& finding) {
  constexpr double kNearlyAll = 0.95;
  constexpr std::string_view kThe = "The GPU ";
  if (a.devices.size() < 2 || a.job.batch.present || finding.cost() == 0) return;
  std::vector<Nanos> of_device(a.devices.size());
  for (const ClaimedPiece& piece : finding.claims) of_device[piece.device] += piece.end - piece.begin;
  const auto most = std::max_element(of_device.begin(), of_device.end());
  const auto device = static_cast<std::size_t>(most - of_device.begin());
  const double share = static_cast<double>(*most) / static_cast<double>(finding.cost());
  const std::string name = a.device_name(device);
  const auto named = [&](const std::string& text) { return place_of(name, text) != std::string::npos; };
  const bool said = named(finding.title) || std::any_of(finding.evidence.begin(), finding.evidence.end(), named);
  if (share < kNearlyAll || said) return;
  constexpr double kRounds = 0.995;  // to all of it
  const bool in_title = finding.title.starts_with(kThe);
  if (in_title) finding.title.replace(0, kThe.size() - 1, name);
  if (in_title && share >= kRounds) return;
  const std::string how_much = share < kRounds ? human_percent(share) : share < 1 ? "nearly all" : "all";
  finding.evidence.insert(finding.evidence.begin(), fmt::format("{} of this time is {}'s", how_much, name));
}

std::vector<Finding> join_alike(const Analysis& a, std::vector<Finding> findings) {
  std::vector<Group> groups;
  for (Finding& finding : findings) {
    const auto device = named_device(a, finding.title);
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& other) {
      return device && same_words(a, other, finding, *device);
    });
    if (group != groups.end())
      join(a, *group, std::move(finding), *device);
    else
      groups.push_back({std::move(finding), device ? std::vector{*device} : std::vector<std::size_t>{}});
  }
  std::vector<Finding> joined;
  for (Group& group : groups) {
    tell_of_all(a, group);
    joined.push_back(std::move(group.finding));
  }
  return joined;
}

}  // namespace headroom::diagnose
