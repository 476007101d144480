// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

// The names of a ring: texts that are added and never change. Nothing here waits: several threads add at once.
namespace headroom::inject {

inline constexpr std::size_t kLongestText = 255;  // bytes

// Bytes of `text` to its end, or as many whole UTF-8 characters as fit.
[[nodiscard]] std::size_t text_length(const char* text);

class TextTable {
 public:
  // `area` is zero.
  void begin_at(char* area, std::uint32_t bytes);
  // The number of a text; adds it where the area is then filled up to `share_percent` at most. Once half of it is used,
  // a new text with digits in it is taken with N for each row of them: "step 1", "step 2", … would fill it.
  [[nodiscard]] std::uint32_t number_of(const char* text, std::size_t length, unsigned share_percent);

 private:
  [[nodiscard]] std::uint32_t find_or_add(const char* text, std::size_t length, bool add, unsigned share_percent);
  [[nodiscard]] std::uint32_t append(const char* text, std::size_t length, unsigned share_percent);
  [[nodiscard]] bool is(std::uint32_t number, const char* text, std::size_t length) const;

  static constexpr std::size_t kPlaces = 16384;  // twice the most texts
  static constexpr std::uint32_t kMost = kPlaces / 2;
  char* area_ = nullptr;
  std::uint32_t bytes_ = 0;
  std::uint32_t used_ = 0;           // atomic, bytes
  std::uint32_t count_ = 0;          // atomic
  std::uint64_t places_[kPlaces]{};  // atomic: a hash's upper half, and the number + 1; 0: free
};

// The text of a wide string as UTF-8, at most kLongestText bytes and a zero.
void to_utf8(const wchar_t* wide, char (&out)[kLongestText + 1]);

}  // namespace headroom::inject
