// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/time.h"

// Numbers as people read them; the same everywhere. Locale-independent.
namespace headroom {

[[nodiscard]] std::string human_duration(Nanos ns);         // "340 ms", "5.3 s", "7:02", "1:02:03", "17.5 h"
[[nodiscard]] std::string human_bytes(std::int64_t bytes);  // "167 MiB", "47.9 GiB": binary units, three digits
[[nodiscard]] std::string human_percent(double ratio);      // "61 %", "2.7 %", "0.04 %", "99.7 %": two digits below ten
[[nodiscard]] std::string human_factor(double factor);      // "1.32x", "8.8x", "12x"
[[nodiscard]] std::string human_count(std::int64_t count);  // "691,200"
// "0.12", "1.3", "128", "1,234": so many digits, or all of a whole number that has more; never an exponent.
[[nodiscard]] std::string human_figure(double value, int digits);
// "1 task", "2,000 tasks", "2 processes": the noun as the count has it. `nouns` where an "s" does not make the plural.
[[nodiscard]] std::string count_of(std::int64_t count, std::string_view noun, std::string_view nouns = "");
[[nodiscard]] std::string count_of(std::unsigned_integral auto count, std::string_view noun,
                                   std::string_view nouns = "") {
  return count_of(static_cast<std::int64_t>(count), noun, nouns);
}
// "21:16:20" of a Unix time, in UTC plus `offset`.
[[nodiscard]] std::string clock_time(Nanos unix_ns, Nanos offset = 0);

}  // namespace headroom
