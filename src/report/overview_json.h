// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/shelf.h"

// What `headroom serve` says beside the answers of other verbs.
namespace headroom::report {

// What can be looked at. A key names it for as long as the server runs, and is no path.
struct Overview {
  struct Recording {
    std::string key;
    ShelfEntry entry;
    std::string label;  // for people; "": by its command
  };
  struct Batch {
    std::string key, path, name;
    bool running = false;
    std::string recording;  // the key of its last run's; "" where it is not in the list
  };
  struct Study {
    std::string key, path, name, problem;
  };
  std::string version, host;
  Nanos now = 0;                      // Unix time
  std::vector<Recording> recordings;  // newest first
  std::vector<Batch> batches;
  std::vector<Study> studies;
};

[[nodiscard]] std::string overview_json(const Overview& overview);  // "headroom.overview/1", in one line
[[nodiscard]] std::string error_json(const Error& error);           // "headroom.error/1"

}  // namespace headroom::report
