// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "compare/verify.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto plan = headroom::compare::read_plan({static_cast<const char*>(static_cast<const void*>(data)), size});
  if (plan)
    for (const auto& option : plan->options)
      HR_CHECK(!option.id.empty() && (!option.promises || option.gain.low <= option.gain.high), "an option");
  return 0;
}
