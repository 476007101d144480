// SPDX-License-Identifier: Apache-2.0
// Any text is a space whose choices can be counted or whose range is finite, or nothing.
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "storage/optuna_json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto space = headroom::parse_distribution("x", {reinterpret_cast<const char*>(data), size});
  if (!space) return 0;
  HR_CHECK((space->kind == headroom::ParameterKind::kCategorical) == !space->choices.empty(), "choices of a category");
  HR_CHECK(std::isfinite(space->low) && std::isfinite(space->high), "a range");
  HR_CHECK(headroom::are_compatible(*space, *space), "itself");
  return 0;
}
