// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "base/result.h"
#include "storage/storage.h"

namespace headroom {

// Optuna's journal in the file `path`, as far as it goes at the moment. Lines are only ever appended: no lock is
// needed.
[[nodiscard]] Result<StorageContent> read_journal_storage(const StorageRequest& request, const std::string& path);

// The same of its text.
[[nodiscard]] Result<StorageContent> read_journal_text(const StorageRequest& request, std::string_view text);

}  // namespace headroom
