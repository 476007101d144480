// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/packed_numbers.h"
#include "model/recording.h"

namespace headroom {

// As Column and Track, in a third of the memory or less.
struct PackedColumn {
  Metric metric{};
  PackedNumbers values;
  std::vector<std::uint8_t> absent;  // as in Column

  [[nodiscard]] bool has(std::size_t row) const { return absent.empty() || absent[row] == 0; }
  [[nodiscard]] Reading<std::int64_t> at(std::size_t row) const {
    if (has(row)) return values[row];
    return tl::unexpected(static_cast<Absent>(absent[row]));
  }
};
struct PackedTrack {
  PackedNumbers at;
  std::vector<PackedColumn> columns;
};

// A recording on its way into a file, of which memory need not hold all rows as they are worked with.
struct PackedRecording {
  Recording recording;
  std::vector<PackedTrack> packed;  // rows of its first sources, whose tracks in `recording` have none

  [[nodiscard]] std::size_t rows_of(SourceId source) const;
};

[[nodiscard]] Recording unpacked(PackedRecording packed);
[[nodiscard]] inline PackedRecording not_packed(Recording recording) { return {std::move(recording), {}}; }
// As keep_in_bounds(); what has to be changed is unpacked.
void keep_in_bounds(PackedRecording& packed);
// As replay() of a recording.
void replay(const PackedRecording& packed, RecordingSink& sink);

}  // namespace headroom
