// SPDX-License-Identifier: Apache-2.0
#include "import/byte_stream.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/fd.h"

namespace headroom {
namespace {

std::string gzip(std::string_view text) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string packed(deflateBound(&stream, text.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string zstd(std::string_view text) {
  std::string packed(ZSTD_compressBound(text.size()), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), 3));
  return packed;
}

Result<std::string> unpack(std::string_view bytes, std::size_t most = std::size_t{1} << 30) {
  ByteStream stream = ByteStream::of(bytes);
  return stream.rest(most);
}

TEST(Unpack, GivesBackWhatWasPacked) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i * 7919);
  for (const auto pack : {gzip, zstd}) {
    const std::string packed = pack(text);
    EXPECT_TRUE(is_packed(packed));
    EXPECT_EQ(unpack(packed), text);
    EXPECT_EQ(unpack(packed + pack("more")), text + "more") << "logs that were appended";
    const auto cut = unpack(std::string_view(packed).substr(0, packed.size() / 2));
    ASSERT_TRUE(cut);
    EXPECT_TRUE(text.starts_with(*cut));
    EXPECT_GT(cut->size(), text.size() / 4);
  }
  EXPECT_FALSE(is_packed("timestamp"));
}

TEST(Unpack, IsBounded) {
  const std::string zeros(std::size_t{8} << 20, '\0');
  for (const auto pack : {gzip, zstd}) {
    const std::string bomb = pack(zeros);
    EXPECT_LT(bomb.size(), zeros.size() / 500);
    EXPECT_EQ(unpack(bomb, zeros.size())->size(), zeros.size());
    EXPECT_EQ(unpack(bomb, zeros.size() / 2).error().code, Errc::kInvalidInput);
  }
}

TEST(ByteStream, MayBeBoundedWhileItIsRead) {
  const std::string zeros(std::size_t{8} << 20, '\0');
  for (const auto pack : {gzip, zstd}) {
    const std::string bomb = pack(zeros);
    for (const std::size_t most : {zeros.size(), zeros.size() / 2}) {
      ByteStream stream = ByteStream::of(bomb);
      stream.be_bounded(most);
      std::size_t got = 0;
      for (std::string_view block = stream.next(); !block.empty(); block = stream.next()) got += block.size();
      EXPECT_LE(got, most);
      EXPECT_EQ(stream.sound().has_value(), most == zeros.size());
    }
  }
}

TEST(Unpack, DamageIsSaid) {
  for (const auto pack : {gzip, zstd}) {
    std::string packed = pack("some text that is long enough to be packed, and packed, and packed");
    EXPECT_FALSE(unpack(std::string_view(packed).substr(0, 4)));
    for (std::size_t i = 4; i < packed.size(); ++i) {
      std::string damaged = packed;
      damaged[i] = static_cast<char>(damaged[i] ^ 0x55);
      (void)unpack(damaged);
    }
  }
}

std::string text_of(const std::string& path, std::size_t peeked) {
  auto stream = ByteStream::open(path);
  if (!stream) return stream.error().what;
  (void)stream->peek(peeked);
  std::string text;
  for (std::string_view block = stream->next(); !block.empty(); block = stream->next()) text += block;
  return text;
}

TEST(ByteStream, AFileComesInBlocksPackedOrNotAndWhatWasPeekedComesAgain) {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += std::to_string(i * 7919);
  const std::string path = ::testing::TempDir() + "byte_stream_test";
  for (const std::string& bytes : {text, gzip(text), zstd(text), gzip(text.substr(0, 10)) + gzip(text.substr(10))}) {
    ASSERT_TRUE(write_file(path, bytes));
    for (const std::size_t peeked : {std::size_t{0}, std::size_t{10}, std::size_t{400'000}, std::size_t{10'000'000}})
      EXPECT_EQ(text_of(path, peeked), text);
  }
  EXPECT_EQ(::unlink(path.c_str()), 0);
}

TEST(ByteStream, PackedDataThatWasCutEndsThereAndSaysSo) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += std::to_string(i * 7919);
  for (const auto pack : {gzip, zstd}) {
    const std::string packed = pack(text);
    ByteStream stream = ByteStream::of(std::string_view(packed).substr(0, packed.size() / 2));
    std::string got;
    for (std::string_view block = stream.next(); !block.empty(); block = stream.next()) got += block;
    EXPECT_TRUE(text.starts_with(got));
    EXPECT_GT(got.size(), text.size() / 4);
    EXPECT_FALSE(stream.cut().empty());
    EXPECT_FALSE(stream.damaged());
  }
}

}  // namespace
}  // namespace headroom
