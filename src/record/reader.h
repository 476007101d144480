// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "model/recording.h"
#include "model/shelf.h"

namespace headroom {

struct ReadOptions {
  // Refuses files that would decode to more values (2^30 take 8 GiB), or to more than 2^27 and 64 per byte of the file.
  std::uint64_t max_values = std::uint64_t{1} << 30;
  // Metrics nobody will look at: their columns are left out, as if they had never been sampled, and cost next to
  // nothing. Must outlive the call.
  std::span<const Metric> leave_out = {};
};

// Reads a .hrec file: one that is being written (a consistent prefix), one that a crash left, or a closed one; no file
// is ever changed. What it says is kept in bounds (model/bounds.h). What cannot be read or understood is counted in
// `losses`: damaged_chunk, missing_rows, unknown_metric, unknown_codec, unknown_source, unknown_table, damaged_file.
// After a crash meta.stop_reason is "recovered" and meta.end the last instant seen.
[[nodiscard]] Result<Recording> read_recording(const std::string& path, ReadOptions options = {});

// What a list of recordings shows, without reading rows.
[[nodiscard]] Result<RecordingSummary> summarize(const std::string& path);

// A copy as one plain file, also of a recording that is being written. Fails if `to` exists.
[[nodiscard]] Result<void> copy_recording(const std::string& path, const std::string& to);

}  // namespace headroom
