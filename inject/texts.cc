// SPDX-License-Identifier: Apache-2.0
#include "inject/texts.h"

#include <string.h>

#include "wire/marks.h"

namespace headroom::inject {

namespace {

// FNV-1a, 64 bits.
std::uint64_t hash_of(const char* text, std::size_t length) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (std::size_t i = 0; i < length; ++i) hash = (hash ^ static_cast<unsigned char>(text[i])) * 0x100000001b3U;
  return hash;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// `text` with N for each row of digits; gives its length.
std::size_t without_digits(const char* text, std::size_t length, char (&out)[kLongestText]) {
  std::size_t used = 0;
  for (std::size_t i = 0; i < length; ++i) {
    if (!is_digit(text[i]))
      out[used++] = text[i];
    else if (i == 0 || !is_digit(text[i - 1]))
      out[used++] = 'N';
  }
  return used;
}

}  // namespace

std::size_t text_length(const char* text) {
  std::size_t length = 0;
  while (length <= kLongestText && text[length] != '\0') ++length;
  if (length <= kLongestText) return length;
  length = kLongestText;
  while (length > 0 && (static_cast<unsigned char>(text[length]) & 0xc0U) == 0x80U) --length;
  return length;
}

void TextTable::begin_at(char* area, std::uint32_t bytes) {
  area_ = area;
  bytes_ = bytes;
  used_ = 0;
  if (count_ != 0) memset(places_, 0, sizeof places_);
  count_ = 0;
}

std::uint32_t TextTable::number_of(const char* text, std::size_t length, unsigned share_percent) {
  if (length == 0) return HEADROOM_NO_NAME;
  if (__atomic_load_n(&used_, __ATOMIC_RELAXED) < bytes_ / 2) return find_or_add(text, length, true, share_percent);
  char plain[kLongestText];
  const std::size_t plain_length = without_digits(text, length, plain);
  const bool same = plain_length == length && memcmp(plain, text, length) == 0;
  const std::uint32_t known = find_or_add(text, length, same, share_percent);
  return same || known != HEADROOM_NO_NAME ? known : find_or_add(plain, plain_length, true, share_percent);
}

bool TextTable::is(std::uint32_t number, const char* text, std::size_t length) const {
  std::uint16_t stored = 0;
  memcpy(&stored, area_ + number, sizeof stored);
  return stored == length && memcmp(area_ + number + sizeof stored, text, length) == 0;
}

std::uint32_t TextTable::find_or_add(const char* text, std::size_t length, bool add, unsigned share_percent) {
  const std::uint64_t hash = hash_of(text, length);
  std::uint32_t own = HEADROOM_NO_NAME;  // once it is added
  for (std::size_t i = 0; i < kPlaces; ++i) {
    std::uint64_t* place = &places_[(hash + i) % kPlaces];
    std::uint64_t entry = __atomic_load_n(place, __ATOMIC_ACQUIRE);
    if (entry == 0) {
      if (!add) return HEADROOM_NO_NAME;
      if (own == HEADROOM_NO_NAME) own = append(text, length, share_percent);
      if (own == HEADROOM_NO_NAME) return own;
      const std::uint64_t ours = (hash >> 32 << 32) | (own + 1);
      if (__atomic_compare_exchange_n(place, &entry, ours, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return own;
      // Somebody was faster: with the same text, or with one that belongs to this place as well.
    }
    const auto number = static_cast<std::uint32_t>(entry) - 1;
    if (entry >> 32 == hash >> 32 && is(number, text, length)) return number;
  }
  return HEADROOM_NO_NAME;
}

std::uint32_t TextTable::append(const char* text, std::size_t length, unsigned share_percent) {
  const std::uint32_t limit = bytes_ / 100 * share_percent;
  const auto needed = static_cast<std::uint32_t>(sizeof(std::uint16_t) + length);
  std::uint32_t at = __atomic_load_n(&used_, __ATOMIC_RELAXED);
  do {
    if (at + needed > limit || __atomic_load_n(&count_, __ATOMIC_RELAXED) >= kMost) return HEADROOM_NO_NAME;
  } while (!__atomic_compare_exchange_n(&used_, &at, at + needed, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  __atomic_add_fetch(&count_, 1, __ATOMIC_RELAXED);
  memcpy(area_ + at + sizeof(std::uint16_t), text, length);
  // The length, little endian, whose upper byte is 0 already: it is 255 at most.
  __atomic_store_n(area_ + at, static_cast<char>(length), __ATOMIC_RELEASE);
  return at;
}

void to_utf8(const wchar_t* wide, char (&out)[kLongestText + 1]) {
  std::size_t used = 0;
  for (; *wide != 0; ++wide) {
    auto c = static_cast<std::uint32_t>(*wide);  // NOLINT(bugprone-signed-char-misuse): no char
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) c = 0xfffd;
    const std::size_t bytes = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    if (used + bytes > kLongestText) break;
    if (bytes == 1) {
      out[used++] = static_cast<char>(c);
      continue;
    }
    constexpr unsigned char kFirst[] = {0, 0, 0xc0, 0xe0, 0xf0};
    out[used++] = static_cast<char>(kFirst[bytes] | c >> 6 * (bytes - 1));
    for (std::size_t left = bytes - 1; left > 0; --left)
      out[used++] = static_cast<char>(0x80U | (c >> 6 * (left - 1) & 0x3fU));
  }
  out[used] = '\0';
}

}  // namespace headroom::inject
