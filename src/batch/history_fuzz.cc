// SPDX-License-Identifier: Apache-2.0
// Any text is a history, with its damaged lines counted; what is written of it is read again whole.
#include <cstddef>
#include <cstdint>

#include "base/result.h"
#include "batch/history.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using headroom::batch::History;
  const std::string written = History::parse({reinterpret_cast<const char*>(data), size}).text();
  const History again = History::parse(written);
  HR_CHECK(again.text() == written && again.damaged() == 0, "written is read");
  return 0;
}
