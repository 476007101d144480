// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "model/packed_recording.h"
#include "model/shelf.h"

// The answers about recordings themselves: what was made, which there are, which went.
namespace headroom::report {

// What `headroom record` did.
struct Recorded {
  std::string path;
  Nanos duration = 0;
  std::size_t gpus = 0;
  std::vector<std::int64_t> processes;  // watched
  std::string stop_reason;
};
[[nodiscard]] std::string to_json(const Recorded& recorded);  // "headroom.record/1", one line
// "1 GPU and 2 process trees"
[[nodiscard]] std::string what_is_recorded(std::size_t gpus, const std::vector<std::int64_t>& processes);

[[nodiscard]] std::string to_json(const ShelfListing& listing);                // "headroom.recordings/1"
[[nodiscard]] std::string to_json(const PruneReport& report, DryRun dry_run);  // "headroom.recordings-prune/1"

// "headroom.import/1": what of a log was understood, written to `path`.
[[nodiscard]] std::string import_to_json(const PackedRecording& packed, const std::string& path);
[[nodiscard]] std::size_t gpu_rows(const PackedRecording& packed);

}  // namespace headroom::report
