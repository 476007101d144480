// SPDX-License-Identifier: Apache-2.0
#include "batch/task_sizes.h"

#include <algorithm>
#include <cmath>

namespace headroom::batch {

namespace {
constexpr double kMuchMore = 1.5;       // tasks that are alike differ by less, as start-up and the host do
constexpr double kBinsPerFactorE = 20;  // 5 % wide
constexpr Nanos kShortest = kSecond / 1000;

bool much_more(Nanos one, Nanos other) { return static_cast<double>(one) > kMuchMore * static_cast<double>(other); }
}  // namespace

void TaskSizes::add(Nanos took, Nanos share) {
  if (differ_) return;
  const double log = std::log(static_cast<double>(std::max(took, kShortest)));
  const int bin = static_cast<int>(std::floor(log * kBinsPerFactorE));
  static const int apart = static_cast<int>(std::ceil(std::log(kMuchMore) * kBinsPerFactorE)) + 1;
  for (const auto& [other, shares] : by_length_)
    if ((other + apart <= bin && much_more(share, shares.least)) ||
        (bin + apart <= other && much_more(shares.most, share)))
      differ_ = true;
  const auto [at, first] = by_length_.try_emplace(bin, Shares{share, share});
  if (!first) at->second = {std::min(at->second.least, share), std::max(at->second.most, share)};
}

}  // namespace headroom::batch
