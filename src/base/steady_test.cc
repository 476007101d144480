// SPDX-License-Identifier: Apache-2.0
#include "base/steady.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <vector>

namespace headroom {
namespace {

std::size_t count(const std::vector<std::int64_t>& list, std::int64_t at) {
  return count_until(list, at, [](std::int64_t entry) { return entry; });
}

// Steady ones, bursts, long gaps, repeated instants.
TEST(Steady, AnInstantIsFoundWhereverEntriesLie) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::int64_t> list(random() % 40);
    auto at = static_cast<std::int64_t>(random() % 100);
    for (std::int64_t& entry : list)
      entry = at += round % 3 == 0 ? 10 : static_cast<std::int64_t>(random() % (random() % 8 == 0 ? 1'000'000 : 5));
    for (int i = 0; i < 100; ++i) {
      const std::int64_t wanted = list.empty() || i % 3 == 0
                                      ? static_cast<std::int64_t>(random() % 200)
                                      : list[random() % list.size()] + static_cast<std::int64_t>(i % 3) - 1;
      const auto expected = std::upper_bound(list.begin(), list.end(), wanted) - list.begin();
      ASSERT_EQ(count(list, wanted), static_cast<std::size_t>(expected));
    }
  }
}

TEST(Steady, InstantsMayLieAsFarApartAsCanBe) {
  const std::vector<std::int64_t> ends{std::numeric_limits<std::int64_t>::min(),
                                       std::numeric_limits<std::int64_t>::max()};
  EXPECT_EQ(count(ends, 0), 1U);
  EXPECT_EQ(count({}, 0), 0U);
}

}  // namespace
}  // namespace headroom
