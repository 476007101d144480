// SPDX-License-Identifier: Apache-2.0
// Any bytes are a recording whose rows are in order, or an error that says something.
#include <cstddef>
#include <cstdint>

#include "import/trace.h"
#include "import/trace_testing.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto bytes = headroom::ByteStream::of({reinterpret_cast<const char*>(data), size});
  headroom::testing::check_trace(headroom::read_kineto("trace", bytes));
  return 0;
}
