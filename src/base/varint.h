// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace headroom {

// Small integers as bytes: 7 bits per byte, least significant first; signed ones zigzag-coded.

[[nodiscard]] constexpr std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
}
[[nodiscard]] constexpr std::int64_t unzigzag(std::uint64_t code) {
  return static_cast<std::int64_t>((code >> 1) ^ (~(code & 1) + 1));
}

inline void put_byte(std::string& out, std::uint8_t byte) { out.push_back(static_cast<char>(byte)); }
inline void put_varint(std::string& out, std::uint64_t value) {
  char bytes[10];
  std::size_t size = 0;
  for (; value >= 0x80; value >>= 7) bytes[size++] = static_cast<char>(value | 0x80);
  bytes[size++] = static_cast<char>(value);
  out.append(bytes, size);
}
inline void put_signed(std::string& out, std::int64_t value) { put_varint(out, zigzag(value)); }
inline void put_u32(std::string& out, std::uint32_t value) {
  for (int shift = 0; shift < 32; shift += 8) put_byte(out, static_cast<std::uint8_t>(value >> shift));
}

// Reads untrusted bytes. After the first read past the end (or of a malformed number) every further read gives zeros
// and ok() is false; callers check once at the end and bound every count by left() before they allocate.
class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }

  std::uint8_t byte() {
    if (at_ == end_) return spoil();
    return static_cast<std::uint8_t>(*at_++);
  }
  std::uint64_t varint() {
    if (at_ != end_ && static_cast<std::uint8_t>(*at_) < 0x80) return static_cast<std::uint8_t>(*at_++);  // most are
    std::uint64_t value = 0;
    const char* at = at_;
    for (unsigned shift = 0; shift < 64 && at != end_; shift += 7) {
      const auto next = static_cast<std::uint8_t>(*at++);
      value |= static_cast<std::uint64_t>(next & 0x7f) << shift;
      if (next >= 0x80) continue;
      at_ = at;
      return value;
    }
    return spoil();
  }
  std::int64_t signed_varint() { return unzigzag(varint()); }
  std::uint32_t u32() {
    std::uint32_t value = 0;
    for (unsigned shift = 0; shift < 32; shift += 8) value |= static_cast<std::uint32_t>(byte()) << shift;
    return value;
  }
  std::string_view take(std::uint64_t size) {
    if (size > left()) {
      spoil();
      return {};
    }
    const std::string_view bytes(at_, static_cast<std::size_t>(size));
    at_ += size;
    return bytes;
  }

 private:
  std::uint8_t spoil() {
    ok_ = false;
    at_ = end_;
    return 0;
  }
  const char* at_;
  const char* end_;
  bool ok_ = true;
};

}  // namespace headroom
