// SPDX-License-Identifier: Apache-2.0
#include "plan/probe_reader.h"

#include <cstddef>
#include <cstdint>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto probe = headroom::planning::read_probe({static_cast<const char*>(static_cast<const void*>(data)), size});
  if (!probe) return 0;
  HR_CHECK(*probe->best < probe->values.size() && probe->values[*probe->best].level, "the fastest");
  for (const auto& value : probe->values)
    HR_CHECK(!value.level || (value.level->low > 0 && value.level->low <= value.level->high), "a time");
  return 0;
}
