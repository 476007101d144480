// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "storage/storage.h"

namespace headroom {

struct SqliteReading {
  Nanos hold = 20 * kMillisecond;  // a lock is kept for so long at most, and for one row more
  Nanos patience = 60 * kSecond;   // with a writer that does not let go
};

// Optuna's tables in the SQLite file `path`, which begins with `header` (100 bytes). In delete mode a commit waits for
// every reader, so the tables are read in pieces, with as long a pause after each. Writes nothing beside the file, but
// where a writer uses a log (WAL mode): there SQLite keeps the index of that log (-shm) for all who have the file open,
// us included. A file that nobody has open is read as it lies, or as a temporary copy where what a dead writer left
// must be merged.
[[nodiscard]] Result<StorageContent> read_sqlite(const StorageRequest& request, const std::string& path,
                                                 std::string_view header, const SqliteReading& reading = {});

}  // namespace headroom
