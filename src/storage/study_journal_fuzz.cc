// SPDX-License-Identifier: Apache-2.0
// Any text is studies whose rows belong together, or an error that says something.
#include <cstddef>
#include <cstdint>

#include "storage/journal_storage.h"
#include "storage/testing.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto content = headroom::read_journal_text({}, {reinterpret_cast<const char*>(data), size});
  if (!content) {
    HR_CHECK(!content.error().what.empty(), "an error without words");
    return 0;
  }
  for (const headroom::Study& study : content->studies) headroom::testing::check_study(study);
  return 0;
}
