// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "model/ledger.h"

// Accounts over time in bins.
//
// Downsampling, so that short peaks survive: a bin keeps the exact share of every account in it, however short, and the
// shares of all bins add up to the ledger to the nanosecond. heights() draws each account of a bin that is not
// negligible (kNegligible) at least one unit high, and takes what that needs from the largest.
namespace headroom::view {

// Time in one account.
struct Share {
  Account account = Account::kUnexplained;
  Nanos ns = 0;
  bool operator==(const Share&) const = default;
};

struct Strip {
  std::vector<std::vector<Share>> bins;  // each in the order of accounts, without zeros
};

// Bins are as equal as whole nanoseconds allow: bin i of n covers [bin_edge(i), bin_edge(i + 1)).
[[nodiscard]] Nanos bin_edge(Nanos begin, Nanos end, std::size_t bins, std::size_t i);
[[nodiscard]] std::size_t bin_of(Nanos begin, Nanos end, std::size_t bins, Nanos at);  // begin <= at < end

[[nodiscard]] Strip strip_of(std::span<const Slice> slices, Nanos begin, Nanos end, std::size_t bins);

// In the order of accounts, without zeros.
[[nodiscard]] std::vector<Share> sum_of(std::span<const Slice> slices);

// What is shorter than a millisecond, and less than a hundredth of its bin, is rounding more often than a peak.
inline constexpr Nanos kNegligible = kMillisecond;
inline constexpr double kNegligibleShare = 0.01;

// How many of `units` (rows of pixels, eighths of a character) each share of a bin is high; they sum to `units`. By the
// largest remainders, and one at least for each that is not negligible while the largest has units to give.
[[nodiscard]] std::vector<std::size_t> heights(std::span<const Share> bin, std::size_t units);

// A stretch of time, and how much of it is meant.
struct Span {
  Nanos begin = 0, end = 0;
  Nanos ns = 0;
  bool operator==(const Span&) const = default;
};

// Collects pieces in order of time; pieces less than `gap` apart become one span.
class Spans {
 public:
  explicit Spans(Nanos gap) : gap_(gap) {}
  void add(Nanos begin, Nanos end);
  [[nodiscard]] Nanos ns() const { return ns_; }
  [[nodiscard]] std::vector<Span> take() && { return std::move(spans_); }

 private:
  Nanos gap_, ns_ = 0;
  std::vector<Span> spans_;
};

}  // namespace headroom::view
