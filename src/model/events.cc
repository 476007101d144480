// SPDX-License-Identifier: Apache-2.0
#include "model/events.h"

#include <fmt/format.h>

#include "base/strings.h"

namespace headroom {

namespace {

constexpr bool events_in_order() {
  for (std::size_t i = 0; i < kEventKinds.size(); ++i)
    if (kEventKinds[i].id != static_cast<EventKind>(i)) return false;
  return kEventKinds.back().id == EventKind::kProgress;
}
static_assert(events_in_order(), "kEventKinds[i] is the i-th kind");

template <class T>
bool read_number(const std::string& text, T& value) {
  const auto number = parse_number<T>(std::string_view(text));
  if (number) value = *number;
  return number.has_value();
}

}  // namespace

std::optional<EventKind> event_kind_of(std::string_view name) {
  for (const EventKindInfo& kind : kEventKinds)
    if (kind.name == name) return kind.id;
  return std::nullopt;
}

namespace event_text {

std::string write(const std::string& value) { return value; }
std::string write(std::int64_t value) { return fmt::format("{}", value); }
std::string write(std::uint64_t value) { return fmt::format("{}", value); }
std::string write(double value) { return fmt::format("{}", value); }
std::string write(const std::vector<std::string>& value) { return join(value, ","); }
std::string write(AttemptOutcome value) { return std::string(info(value).name); }
std::string write(PlacementProof value) { return std::string(name(value)); }

bool read(const std::string& text, std::string& value) {
  value = text;
  return true;
}
bool read(const std::string& text, std::int64_t& value) { return read_number(text, value); }
bool read(const std::string& text, std::uint64_t& value) { return read_number(text, value); }
bool read(const std::string& text, double& value) { return read_number(text, value); }
bool read(const std::string& text, std::vector<std::string>& value) {
  if (text.empty()) return true;
  for (const auto part : split(text, ',')) value.emplace_back(part);
  return true;
}
bool read(const std::string& text, AttemptOutcome& value) {
  for (const OutcomeInfo& outcome : kOutcomes) {
    if (outcome.name != text) continue;
    value = outcome.id;
    return true;
  }
  return false;
}
bool read(const std::string& text, PlacementProof& value) {
  for (const PlacementProof proof :
       {PlacementProof::kUnseen, PlacementProof::kVerified, PlacementProof::kMisplaced, PlacementProof::kCpuFallback}) {
    if (name(proof) != text) continue;
    value = proof;
    return true;
  }
  return false;
}

}  // namespace event_text

}  // namespace headroom
