// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace headroom::python {

// Whether this process may read the memory of other ones of the same user, as far as can be told without one at hand.
enum class Whose : std::uint8_t {
  kOwn,     // what it started itself: `headroom run`
  kOthers,  // processes that run already: `headroom record --pid`
};
[[nodiscard]] Result<void> can_read_stacks(Whose whose = Whose::kOwn);

// kernel.yama.ptrace_scope: 0 same user, 1 own descendants, 2 administrators, 3 nobody. Nothing without Yama.
[[nodiscard]] std::optional<int> ptrace_scope(const std::string& root = "");

// Why the memory of `pid` may not be read, given that it may not.
[[nodiscard]] Error denied(std::int64_t pid, const std::string& root = "");

}  // namespace headroom::python
