// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/result.h"
#include "base/sqlite.h"
#include "storage/sqlite_storage.h"
#include "storage/storage.h"

namespace headroom {

// All that is read of Optuna's tables, in pieces. Trials come before what belongs to them: what a trial has is
// committed no later than that it is finished, so that a trial read as finished is read whole.
[[nodiscard]] Result<StorageContent> read_sqlite_tables(const StorageRequest& request, Database& database,
                                                        const SqliteReading& reading);

}  // namespace headroom
