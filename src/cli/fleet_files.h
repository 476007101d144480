// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/fleet.h"
#include "model/shelf.h"

namespace headroom::cli {

struct FleetFile {
  std::string path;
  std::optional<RecordingSummary> summary;  // of a .hrec file; of a log nothing is known before it is read
};

struct FleetFiles {
  std::vector<FleetFile> list;  // recordings of a job before those of a whole machine, and logs last: who counts first
  std::size_t found = 0;
  std::vector<FleetLeftOut> left_out, unreadable;
};

// The recordings that `named` means: files, names that every verb takes, task files, and folders, in which all .hrec
// files are looked for and those that batches name in their journals. A file that is there twice is in the list once.
[[nodiscard]] FleetFiles fleet_files(const std::vector<std::string>& named);

}  // namespace headroom::cli
