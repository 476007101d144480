// SPDX-License-Identifier: Apache-2.0
#include "base/packed_numbers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include "base/median.h"

namespace headroom {
namespace {

constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min(),
                       kMost = std::numeric_limits<std::int64_t>::max(), kMillisecond = 1'000'000;

PackedNumbers packed(const std::vector<std::int64_t>& numbers) {
  PackedNumbers all;
  for (const std::int64_t number : numbers) all.push_back(number);
  return all;
}

void expect_same(const PackedNumbers& numbers, const std::vector<std::int64_t>& wanted) {
  ASSERT_EQ(numbers.size(), wanted.size());
  EXPECT_TRUE(std::equal(numbers.begin(), numbers.end(), wanted.begin(), wanted.end()));
}

TEST(PackedNumbers, AreWhatWasAppendedWhateverTheySpan) {
  std::mt19937_64 random(1);
  for (int width = 0; width <= 64; ++width) {
    std::vector<std::int64_t> wanted;
    for (std::size_t i = 0; i < 3 * PackedNumbers::kBlock + 7; ++i)
      wanted.push_back(width == 0 ? 42 : static_cast<std::int64_t>(random() >> (64 - width)) - width);
    expect_same(packed(wanted), wanted);
  }
  expect_same(packed(std::vector<std::int64_t>(5000, kLeast)), std::vector<std::int64_t>(5000, kLeast));
  std::vector<std::int64_t> ends(5000, kLeast);
  for (std::size_t i = 0; i < ends.size(); i += 3) ends[i] = kMost;
  expect_same(packed(ends), ends);
}

TEST(PackedNumbers, TakeAsManyBitsAsTheirNeighboursNeed) {
  constexpr std::size_t kRows = 100'000;
  const auto bits = [&](const auto& number) {
    PackedNumbers numbers;
    for (std::size_t i = 0; i < kRows; ++i) numbers.push_back(number(static_cast<std::int64_t>(i)));
    return static_cast<double>(numbers.bytes()) * 8 / kRows;
  };
  EXPECT_LT(bits([](std::int64_t) { return 31'240LL << 20; }), 2);
  EXPECT_LT(bits([](std::int64_t i) { return 1'700'000'000'000'000'000 + (i * 1'000 + i % 7) * kMillisecond; }), 22);
  EXPECT_LT(bits([](std::int64_t i) { return (i % 101) * 100; }), 15);
  EXPECT_LT(bits([](std::int64_t i) { return ((i * 37) % 20'000) << 20; }), 17);
}

TEST(PackedNumbers, AreChangedAndCutAsAVectorIs) {
  std::mt19937_64 random(2);
  std::vector<std::int64_t> wanted;
  PackedNumbers numbers;
  for (int step = 0; step < 20'000; ++step) {
    const std::uint64_t kind = random() % 100;
    if (kind < 90 || wanted.empty()) {
      wanted.push_back(static_cast<std::int64_t>(random() % 1'000));
      numbers.push_back(wanted.back());
    } else if (kind < 99) {
      const std::size_t at = random() % wanted.size();
      wanted[at] = static_cast<std::int64_t>(random());
      numbers.set(at, wanted[at]);
    } else {
      const std::size_t size = random() % (wanted.size() + 1) + (random() % 4 == 0 ? 0 : wanted.size() / 2);
      wanted.resize(size, -5);
      numbers.resize(size, -5);
    }
    if (step % 1'000 == 0) expect_same(numbers, wanted);
  }
  numbers.change_all([](std::int64_t number) { return number / 3; });
  for (std::int64_t& number : wanted) number /= 3;
  expect_same(numbers, wanted);
  numbers.clear();
  EXPECT_TRUE(numbers.empty());
}

TEST(PackedNumbers, HaveTheMedianThatAVectorHas) {
  std::mt19937_64 random(3);
  for (std::size_t size = 1; size < 200; ++size) {
    std::vector<std::int64_t> numbers;
    for (std::size_t i = 0; i < size; ++i) numbers.push_back(static_cast<std::int64_t>(random()) >> (random() % 64));
    EXPECT_EQ(median(packed(numbers)), median(numbers)) << size;
  }
  std::vector<std::int64_t> many((std::size_t{1} << 20) + 1);  // more than are copied
  for (std::int64_t& number : many) number = static_cast<std::int64_t>(random()) >> (random() % 64);
  EXPECT_EQ(median(packed(many)), median(many));
}

TEST(PackedNumbers, AreSearchedInOrder) {
  std::vector<std::int64_t> wanted;
  for (std::int64_t i = 0; i < 5'000; ++i) wanted.push_back(i * i);
  const PackedNumbers numbers = packed(wanted);
  for (const std::int64_t number : {-1, 0, 1, 17, 24'990'001, 30'000'000})
    EXPECT_EQ(std::upper_bound(numbers.begin(), numbers.end(), number) - numbers.begin(),
              std::upper_bound(wanted.begin(), wanted.end(), number) - wanted.begin());
}

}  // namespace
}  // namespace headroom
