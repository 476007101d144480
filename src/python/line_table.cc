// SPDX-License-Identifier: Apache-2.0
#include "python/line_table.h"

#include <algorithm>
#include <limits>

namespace headroom::python {

namespace {

constexpr std::int64_t kNoLine = 0;

// Numbers of the tables since 3.11: six bits a byte, the lowest first.
class Entries {
 public:
  explicit Entries(std::span<const std::byte> bytes) : bytes_(bytes) {}
  [[nodiscard]] bool at_end() const { return next_ == bytes_.size(); }
  [[nodiscard]] bool sound() const { return sound_; }
  // Every entry begins with a byte that has its highest bit set, and no other byte has.
  std::uint8_t head() { return byte(true); }
  void skip(std::size_t count) {
    for (; count > 0; --count) (void)byte(false);
  }
  std::uint64_t number() {
    constexpr unsigned kBits = 6, kMost = 30;
    constexpr std::uint8_t kMask = 0x3F, kGoesOn = 0x40;
    std::uint64_t value = 0;
    for (unsigned shift = 0; sound_; shift += kBits) {
      const std::uint8_t next = byte(false);
      value |= static_cast<std::uint64_t>(next & kMask) << shift;
      if ((next & kGoesOn) == 0) break;
      sound_ = sound_ && shift < kMost;
    }
    return value;
  }
  std::int64_t signed_number() {
    const std::uint64_t value = number();
    const auto size = static_cast<std::int64_t>(value >> 1U);
    return (value & 1U) != 0 ? -size : size;
  }

 private:
  std::uint8_t byte(bool head) {
    constexpr std::uint8_t kHead = 0x80;
    if (at_end()) return sound_ = false, std::uint8_t{0};
    const auto value = std::to_integer<std::uint8_t>(bytes_[next_++]);
    sound_ = sound_ && ((value & kHead) != 0) == head;
    return value;
  }

  std::span<const std::byte> bytes_;
  std::size_t next_ = 0;
  bool sound_ = true;
};

constexpr int kWithRanges = 10, kWithEntries = 11;

}  // namespace

void LineTable::add(std::uint64_t end, std::int64_t line) {
  if (line < 0 || line > std::numeric_limits<std::int32_t>::max()) line = kNoLine;
  if (!parts_.empty() && parts_.back().line == line)
    parts_.back().end = end;
  else if (end > code_bytes())
    parts_.push_back({end, line});
}

std::optional<LineTable> LineTable::read(int minor, std::int32_t first_line, std::span<const std::byte> table) {
  LineTable lines;
  std::uint64_t at = 0;
  std::int64_t line = first_line;
  if (minor < kWithEntries) {
    if (table.size() % 2 != 0) return std::nullopt;
    for (std::size_t i = 0; i < table.size(); i += 2) {
      const auto bytes = std::to_integer<std::uint8_t>(table[i]);
      const auto more = static_cast<std::int8_t>(std::to_integer<std::uint8_t>(table[i + 1]));
      at += bytes;
      if (minor < kWithRanges) {  // what lies before `at` is of the line until now
        lines.add(at, line);
        line += more;
        continue;
      }
      constexpr std::int8_t kNone = -128;
      if (more != kNone) line += more;
      lines.add(at, more == kNone ? kNoLine : line);
    }
    if (minor < kWithRanges) lines.add(kOpen, line);
    return lines;
  }
  Entries entries(table);
  while (!entries.at_end()) {
    const std::uint8_t head = entries.head();
    constexpr unsigned kUnit = 2, kCodeShift = 3, kCodeMask = 15, kLengthMask = 7;
    const unsigned code = head >> kCodeShift & kCodeMask;
    constexpr unsigned kOneLine = 10, kNoColumns = 13, kLong = 14, kNone = 15;
    if (code < kOneLine) {  // on the same line
      entries.skip(1);
    } else if (code < kNoColumns) {
      line += code - kOneLine;
      entries.skip(2);
    } else if (code != kNone) {
      line += entries.signed_number();
      if (code == kLong)
        for (int rest = 0; rest < 3; ++rest) (void)entries.number();
    }
    if (!entries.sound()) return std::nullopt;
    at += std::uint64_t{kUnit} * ((head & kLengthMask) + 1U);
    lines.add(at, code == kNone ? kNoLine : line);
  }
  return lines;
}

std::optional<std::int32_t> LineTable::line_at(std::uint64_t offset) const {
  const auto part = std::upper_bound(parts_.begin(), parts_.end(), offset,
                                     [](std::uint64_t at, const Part& one) { return at < one.end; });
  if (part == parts_.end() || part->line == kNoLine) return std::nullopt;
  return static_cast<std::int32_t>(part->line);
}

}  // namespace headroom::python
