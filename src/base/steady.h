// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace headroom {

// How many of the entries, in ascending order of key(entry), have a key that is not later than `at`. Readings come at a
// steady pace, so that an instant says about where: of a day with one a second that takes two looks instead of 17.
template <class List, class Key>
[[nodiscard]] std::size_t count_until(const List& list, std::int64_t at, const Key& key) {
  const std::size_t size = list.size();
  if (size == 0 || at < key(list[0])) return 0;
  if (at >= key(list[size - 1])) return size;
  const double begin = static_cast<double>(key(list[0])), length = static_cast<double>(key(list[size - 1])) - begin;
  const double part = (static_cast<double>(at) - begin) / length;
  std::size_t low = std::min(static_cast<std::size_t>(part * static_cast<double>(size - 1)), size - 1);
  std::size_t high = low;  // what is before `low` is not later, the one at `high` is
  for (std::size_t step = 1; key(list[low]) > at; step *= 2) low -= std::min(low, step);
  for (std::size_t step = 1; key(list[high]) <= at; step *= 2) high = std::min(high + step, size - 1);
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (key(list[middle]) <= at)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

}  // namespace headroom
