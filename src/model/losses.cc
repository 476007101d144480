// SPDX-License-Identifier: Apache-2.0
#include "model/losses.h"

#include <algorithm>
#include <limits>

namespace headroom {

namespace {

constexpr bool losses_in_order() {
  for (std::size_t i = 0; i < kLosses.size(); ++i)
    if (kLosses[i].id != static_cast<LossKind>(i)) return false;
  return kLosses.back().id == LossKind::kAssumedDateOrder;
}
static_assert(losses_in_order(), "kLosses[i] is the i-th kind");

void add_place(std::vector<LossPlace>& places, const LossPlace& place) {
  const auto same = std::find_if(places.rbegin(), places.rend(), [&](const LossPlace& p) {
    return p.source == place.source && place.begin <= p.end && p.begin <= place.end;
  });
  if (same == places.rend() && places.size() < kMostLossPlaces) {
    places.push_back(place);
    return;
  }
  LossPlace& grown = same == places.rend() ? places.back() : *same;
  grown.begin = std::min(grown.begin, place.begin);
  grown.end = std::max(grown.end, place.end);
  if (grown.source != place.source) grown.source = kNoSource;
}

}  // namespace

std::optional<LossKind> loss_kind_of(std::string_view name) {
  for (const LossInfo& loss : kLosses)
    if (loss.name == name) return loss.id;
  return std::nullopt;
}

Loss make_loss(LossKind kind, std::int64_t count, std::string detail, std::optional<LossPlace> place,
               Severity at_least) {
  const LossInfo& known = info(kind);
  Loss loss{std::string(known.name), count, std::max(known.severity, at_least), std::move(detail)};
  if (place) loss.places.push_back(*place);
  return loss;
}

bool touches_slices(const Loss& loss) {
  const auto kind = loss_kind_of(loss.what);
  if (kind && info(*kind).touches_slices) return true;
  return loss.severity >= Severity::kDataLoss && (!kind || loss.severity > info(*kind).severity);
}

bool reaches(const Loss& loss, SourceId source, Nanos begin, Nanos end) {
  if (loss.places.empty()) return true;
  return std::any_of(loss.places.begin(), loss.places.end(), [&](const LossPlace& place) {
    return (place.source == kNoSource || place.source == source) && place.begin < end && begin <= place.end;
  });
}

void count_loss(std::vector<Loss>& losses, const Loss& loss) {
  const auto known = std::find_if(losses.begin(), losses.end(), [&](const Loss& l) { return l.what == loss.what; });
  if (known == losses.end()) {
    losses.push_back(loss);
    return;
  }
  if (__builtin_add_overflow(known->count, loss.count, &known->count))
    known->count = std::numeric_limits<std::int64_t>::max();
  known->severity = std::max(known->severity, loss.severity);
  if (known->places.empty() || loss.places.empty())
    known->places.clear();
  else
    for (const LossPlace& place : loss.places) add_place(known->places, place);
}

bool is_little(const Loss& loss, Nanos span) {
  double touched = 0;
  for (const LossPlace& place : loss.places)
    touched += static_cast<double>(place.end) - static_cast<double>(place.begin);
  return !loss.places.empty() && loss.severity < Severity::kError && 100 * touched < static_cast<double>(span);
}

}  // namespace headroom
