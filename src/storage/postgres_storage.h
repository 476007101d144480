// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "base/result.h"
#include "storage/storage.h"

namespace headroom {

// Optuna's tables on a PostgreSQL server, in one transaction that only reads, of one moment: readers there keep no
// writer waiting. `library` is libpq, as dlopen() takes it.
[[nodiscard]] Result<StorageContent> read_postgres(const StorageRequest& request,
                                                   const std::string& library = "libpq.so.5");

}  // namespace headroom
