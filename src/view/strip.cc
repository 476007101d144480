// SPDX-License-Identifier: Apache-2.0
#include "view/strip.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace headroom::view {

namespace {

using Sums = std::array<Nanos, kAccounts.size()>;

std::vector<Share> shares_of(const Sums& sums) {
  std::vector<Share> shares;
  for (const AccountInfo& account : kAccounts)
    if (const Nanos ns = sums[static_cast<std::size_t>(account.id)]; ns > 0) shares.push_back({account.id, ns});
  return shares;
}

bool is_negligible(const Share& share, Nanos bin) {
  return share.ns < kNegligible && static_cast<double>(share.ns) < kNegligibleShare * static_cast<double>(bin);
}

}  // namespace

Nanos bin_edge(Nanos begin, Nanos end, std::size_t bins, std::size_t i) {
  const auto n = static_cast<Nanos>(bins), k = static_cast<Nanos>(i), span = end - begin;
  return begin + span / n * k + span % n * k / n;  // span * k may not fit
}

std::size_t bin_of(Nanos begin, Nanos end, std::size_t bins, Nanos at) {
  if (bins == 1) return 0;
  const double guess = static_cast<double>(at - begin) / static_cast<double>(end - begin) * static_cast<double>(bins);
  std::size_t bin = std::min(bins - 1, static_cast<std::size_t>(std::max(0.0, guess)));
  while (bin > 0 && bin_edge(begin, end, bins, bin) > at) --bin;
  while (bin + 1 < bins && bin_edge(begin, end, bins, bin + 1) <= at) ++bin;
  return bin;
}

Strip strip_of(std::span<const Slice> slices, Nanos begin, Nanos end, std::size_t bins) {
  Strip strip;
  if (end <= begin || bins == 0) return strip;
  std::size_t bin = 0;
  Nanos edge = bin_edge(begin, end, bins, 1);
  Sums sums{};
  const auto next_bin = [&] {
    strip.bins.push_back(shares_of(sums));
    sums = {};
    ++bin;
    edge = bin_edge(begin, end, bins, bin + 1);
  };
  for (const Slice& slice : slices) {
    Nanos from = std::max(begin, slice.begin);
    const Nanos to = std::min(end, slice.end);
    while (from < to) {
      while (edge <= from) next_bin();
      const Nanos until = std::min(to, edge);
      sums[static_cast<std::size_t>(slice.account)] += until - from;
      from = until;
    }
  }
  while (bin < bins) next_bin();
  return strip;
}

std::vector<Share> sum_of(std::span<const Slice> slices) {
  Sums sums{};
  for (const Slice& slice : slices) sums[static_cast<std::size_t>(slice.account)] += slice.end - slice.begin;
  return shares_of(sums);
}

std::vector<std::size_t> heights(std::span<const Share> bin, std::size_t units) {
  std::vector<std::size_t> high(bin.size(), 0);
  Nanos all = 0;
  for (const Share& share : bin) all += share.ns;
  if (all <= 0 || units == 0) return high;
  std::vector<double> remainder(bin.size());
  std::size_t given = 0;
  for (std::size_t i = 0; i < bin.size(); ++i) {
    const double exact = static_cast<double>(bin[i].ns) / static_cast<double>(all) * static_cast<double>(units);
    high[i] = std::min(units - given, static_cast<std::size_t>(exact));
    given += high[i];
    remainder[i] = exact - static_cast<double>(high[i]);
  }
  std::vector<std::size_t> order(bin.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return remainder[a] > remainder[b]; });
  for (std::size_t i = 0; given < units; i = (i + 1) % order.size(), ++given) ++high[order[i]];
  for (std::size_t i = 0; i < bin.size(); ++i) {
    if (high[i] > 0 || is_negligible(bin[i], all)) continue;
    const auto largest = std::max_element(high.begin(), high.end());
    if (*largest < 2) break;
    --*largest;
    high[i] = 1;
  }
  return high;
}

void Spans::add(Nanos begin, Nanos end) {
  if (end <= begin) return;
  ns_ += end - begin;
  if (!spans_.empty() && begin - spans_.back().end < gap_) {
    spans_.back().end = std::max(spans_.back().end, end);
    spans_.back().ns += end - begin;
  } else {
    spans_.push_back({begin, end, end - begin});
  }
}

}  // namespace headroom::view
