// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/sqlite.h"
#include "base/time.h"
#include "storage/storage.h"

namespace headroom {

enum class Pauses { kNo, kYes };  // between pieces, for writers who wait for readers

// All that is read of Optuna's tables, in pieces: a lock is held for `hold` and one row more. Trials come before what
// belongs to them: what a trial has is committed no later than that it is finished, so that a trial read as finished is
// read whole.
[[nodiscard]] Result<StorageContent> read_sqlite_tables(const StorageRequest& request, Database& database, Nanos hold,
                                                        Pauses pauses);

struct SqliteReading {
  std::uintmax_t copied_whole = std::uintmax_t{16} << 20;  // bytes: a file up to here is copied under one lock
  Nanos hold = 5 * kMillisecond;                           // of others, a lock is kept for so long, and one row more
  Nanos patience = 60 * kSecond;                           // with a writer that does not let go
};

// Optuna's tables in the SQLite file `name`, which begins with `header` (100 bytes). In delete mode a commit waits for
// every reader: the pages of a small file are copied into memory under one lock (some milliseconds), and the tables of
// a large one are read in pieces, with as long a pause after each. Nothing is written: a file that nobody has open is
// read as it lies, or as a temporary copy where what a dead writer left must be merged. One thing cannot be avoided
// where a writer uses a log (WAL mode): SQLite notes in the log's index (-shm) who reads, and if the writer closes the
// file before we do, log and index stay beside it until the next writer opens it.
[[nodiscard]] Result<StorageContent> read_sqlite(const StorageRequest& request, const std::string& name,
                                                 std::string_view header, const SqliteReading& reading = {});

}  // namespace headroom
