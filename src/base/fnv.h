// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string_view>

// FNV-1a, 64 bits (Fowler, Noll, Vo): for names that are to stay the same from run to run and need no library. Contents
// of files are hashed with xxhash, which is far faster and has 128 bits.
namespace headroom {

inline constexpr std::uint64_t kFnvBasis = 0xcbf29ce484222325;
inline constexpr std::uint64_t kFnvPrime = 0x100000001b3;

[[nodiscard]] constexpr std::uint64_t fnv1a(std::uint64_t value, std::uint64_t hash) {
  return (hash ^ value) * kFnvPrime;
}
[[nodiscard]] constexpr std::uint64_t fnv1a(std::string_view bytes, std::uint64_t hash = kFnvBasis) {
  for (const char c : bytes) hash = fnv1a(std::uint64_t{static_cast<unsigned char>(c)}, hash);
  return hash;
}
static_assert(fnv1a("foobar") == 0x85944171f73967e8);  // the authors' test vector

}  // namespace headroom
