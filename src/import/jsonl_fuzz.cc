// SPDX-License-Identifier: Apache-2.0
// Any text is a recording with rows in order and columns of equal length, or an error that names its place.
#include <cstddef>
#include <cstdint>

#include "import/jsonl.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto recording = headroom::read_jsonl({reinterpret_cast<const char*>(data), size});
  if (!recording) {
    HR_CHECK(!recording.error().what.empty(), "an error without words");
    return 0;
  }
  HR_CHECK(recording->tracks.size() == recording->sources.size(), "a track per source");
  for (const auto& track : recording->tracks) {
    for (std::size_t i = 1; i < track.at.size(); ++i) HR_CHECK(track.at[i - 1] <= track.at[i], "rows in order of time");
    for (const auto& column : track.columns) {
      HR_CHECK(column.values.size() == track.at.size(), "a value per row");
      HR_CHECK(column.absent.empty() || column.absent.size() == track.at.size(), "a reason per row, or none");
    }
  }
  return 0;
}
