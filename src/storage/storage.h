// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/study.h"

namespace headroom {

// Reads Optuna's storages; never writes, and never keeps a writer waiting: what is read at once is read in under 50 ms
// (in SQLite's delete mode a commit waits for readers). What a trial has when it is finished is read whole; of a
// running trial it may be some reports fewer than its storage has a moment later.
struct StorageRequest {
  std::string name;  // as Optuna takes it: "study.db", "sqlite:///study.db", "postgresql://…", "journal.log"
  std::optional<std::string> study;  // its name; absent: all
};

struct StorageContent {
  std::string engine;  // for people: "SQLite, schema v3.0.0.d, Optuna 3.1.0"
  std::vector<Study> studies;
};

// kNotFound: no file, no server, no such study (the hint lists those that are there); kInvalidInput: it is something
// else, which is named; kBusy: its writers did not let go of it for a minute; kUnsupported: a schema before v2.6.0.a or
// from the future; kCorrupt: damaged.
[[nodiscard]] Result<StorageContent> read_storage(const StorageRequest& request);

}  // namespace headroom
