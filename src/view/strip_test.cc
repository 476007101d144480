// SPDX-License-Identifier: Apache-2.0
#include "view/strip.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>

namespace headroom::view {
namespace {

using ::testing::ElementsAre;

TEST(Strip, EdgesCoverTheSpanWithoutGap) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 300; ++i) {
    const Nanos begin = static_cast<Nanos>(random() % 1'000'000'000'000'000);
    const Nanos end = begin + 1 + static_cast<Nanos>(random() % (400LL * 86'400 * kSecond));
    const std::size_t bins = 1 + random() % 2000;
    EXPECT_EQ(bin_edge(begin, end, bins, 0), begin);
    EXPECT_EQ(bin_edge(begin, end, bins, bins), end);
    const Nanos at = begin + static_cast<Nanos>(random() % static_cast<std::uint64_t>(end - begin));
    const std::size_t bin = bin_of(begin, end, bins, at);
    EXPECT_LE(bin_edge(begin, end, bins, bin), at);
    EXPECT_GT(bin_edge(begin, end, bins, bin + 1), at);
  }
}

TEST(Strip, BinsFinerThanNanosecondsLoseNothing) {
  const std::vector<Slice> slices{{.begin = 0, .end = 3, .account = Account::kUseful}};
  const Strip strip = strip_of(slices, 0, 3, 10);
  Nanos sum = 0;
  for (const auto& bin : strip.bins)
    for (const Share& share : bin) sum += share.ns;
  EXPECT_EQ(strip.bins.size(), 10U);
  EXPECT_EQ(sum, 3);
}

TEST(Heights, AddUpAndKeepWhatIsSmall) {
  const std::vector<Share> bin{
      {Account::kUseful, 990 * kSecond}, {Account::kInput, 9 * kSecond}, {Account::kHung, kSecond}};
  EXPECT_THAT(heights(bin, 24), ElementsAre(22, 1, 1));
  EXPECT_THAT(heights(bin, 1), ElementsAre(1, 0, 0));
  EXPECT_THAT(heights({}, 24), ElementsAre());
}

TEST(Heights, RoundingIsNoPeak) {
  const std::vector<Share> bin{{Account::kUseful, kSecond}, {Account::kInput, 3}};
  EXPECT_THAT(heights(bin, 24), ElementsAre(24, 0));
}

TEST(Heights, AlwaysAddUpToTheUnits) {
  std::mt19937_64 random(11);
  for (int i = 0; i < 500; ++i) {
    std::vector<Share> bin;
    for (const AccountInfo& account : kAccounts)
      if (random() % 3 == 0) bin.push_back({account.id, 1 + static_cast<Nanos>(random() % (1ULL << (random() % 50)))});
    const std::size_t units = random() % 40;
    const auto high = heights(bin, units);
    EXPECT_EQ(std::accumulate(high.begin(), high.end(), std::size_t{0}), bin.empty() ? 0 : units);
  }
}

TEST(Spans, NeighboursBecomeOneAndKeepTheirTime) {
  Spans spans(5);
  spans.add(0, 10);
  spans.add(14, 20);
  spans.add(25, 30);
  spans.add(31, 31);
  EXPECT_EQ(spans.ns(), 21);
  EXPECT_THAT(std::move(spans).take(), ElementsAre(Span{0, 20, 16}, Span{25, 30, 5}));
}

}  // namespace
}  // namespace headroom::view
