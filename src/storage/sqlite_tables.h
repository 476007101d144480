// SPDX-License-Identifier: Apache-2.0
#pragma once
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

}  // namespace headroom
