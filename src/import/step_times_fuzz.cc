// SPDX-License-Identifier: Apache-2.0
// Any bytes are a recording whose rows are in order, or an error that says something.
#include <cstddef>
#include <cstdint>

#include "import/step_times.h"
#include "import/trace_testing.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)headroom::is_step_times(text);
  headroom::testing::check_trace(headroom::read_step_times("table", text));
  return 0;
}
