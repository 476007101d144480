// SPDX-License-Identifier: Apache-2.0
#include "record/codec.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "base/varint.h"

namespace headroom {
namespace {

constexpr auto kMin = std::numeric_limits<std::int64_t>::min(), kMax = std::numeric_limits<std::int64_t>::max();

void expect_round_trip(const std::vector<std::int64_t>& values, const std::vector<std::uint8_t>& absent = {}) {
  std::string bytes;
  encode_column(values, absent, bytes);
  std::vector<std::int64_t> back_values;
  std::vector<std::uint8_t> back_absent;
  ASSERT_TRUE(decode_column(bytes, values.size(), back_values, back_absent));
  EXPECT_EQ(back_values, values);
  EXPECT_EQ(back_absent, absent);
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    back_values.clear(), back_absent.clear();
    EXPECT_FALSE(decode_column(std::string_view(bytes).substr(0, size), values.size(), back_values, back_absent));
  }
}

TEST(Codec, ExtremesComeBackExactly) {
  expect_round_trip({0});
  expect_round_trip({kMin, kMax, kMin, 0, -1, kMax});
  expect_round_trip({kMin, 0, kMin, 0});
  expect_round_trip({kMax, kMin});
  expect_round_trip(std::vector<std::int64_t>(300, 42));
  expect_round_trip({10'000'000, 20'000'000, 50'000'000});
}

TEST(Codec, AbsentRowsKeepTheirReason) {
  expect_round_trip({0, 5, 0, 7}, {4, 0, 2, 0});
  expect_round_trip({0, 0}, {1, 8});
}

TEST(Codec, RandomColumnsComeBack) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::int64_t> values(1 + random() % 300);
    const unsigned shift = static_cast<unsigned>(random() % 64);
    const auto unit = static_cast<std::int64_t>(1 + random() % 1000);
    for (auto& value : values) value = static_cast<std::int64_t>(random()) >> shift;
    if (shift > 20)
      for (auto& value : values) value *= unit;
    std::string bytes;
    encode_column(values, {}, bytes);
    std::vector<std::int64_t> back;
    std::vector<std::uint8_t> absent;
    ASSERT_TRUE(decode_column(bytes, values.size(), back, absent));
    ASSERT_EQ(back, values);
    EXPECT_LE(bytes.size(), 8 * values.size() + 32) << "noise must not grow";
  }
}

TEST(Codec, AFrameIsCheckedBeforeItIsBelieved) {
  Track track;
  for (int i = 0; i < 256; ++i) track.at.push_back(i * kSecond);
  track.columns.push_back({Metric::kPower, std::vector<std::int64_t>(256, 55'000), {}});
  FrameEncoder encoder;
  const auto frame = encoder.encode(track, 0, 256);
  ASSERT_TRUE(frame);
  EXPECT_LT(frame->head.size() + frame->body.size(), 60U);
  FrameDecoder decoder;
  EXPECT_TRUE(decoder.open(frame->head, frame->body));
  for (std::size_t i = 0; i < frame->body.size(); ++i) {
    std::string damaged = frame->body;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    EXPECT_FALSE(decoder.open(frame->head, damaged));
  }
  for (std::size_t i = 0; i < frame->head.size(); ++i) {
    std::string damaged = frame->head;
    damaged[i] = static_cast<char>(damaged[i] ^ 0x10);
    EXPECT_FALSE(decoder.open(damaged, frame->body));
  }
}

TEST(Bytes, VarintsAreBounded) {
  std::string bytes;
  for (const std::int64_t value : {std::int64_t{0}, std::int64_t{-1}, kMin, kMax}) put_signed(bytes, value);
  ByteReader reader(bytes);
  EXPECT_EQ(reader.signed_varint(), 0);
  EXPECT_EQ(reader.signed_varint(), -1);
  EXPECT_EQ(reader.signed_varint(), kMin);
  EXPECT_EQ(reader.signed_varint(), kMax);
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(reader.varint(), 0U);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(checksum("123456789"), 0xcbf43926U) << "the check value of crc32";
}

}  // namespace
}  // namespace headroom
