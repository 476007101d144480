// SPDX-License-Identifier: Apache-2.0
// Any text form that can be read can be explained.
#include <cstddef>
#include <cstdint>

#include "import/jsonl.h"
#include "tests/fuzz/explained.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace headroom;
  const auto recording = read_jsonl({reinterpret_cast<const char*>(data), size});
  if (recording) testing::check_explained(*recording);
  return 0;
}
