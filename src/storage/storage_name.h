// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "base/result.h"

namespace headroom {

enum class StorageEngine { kFile, kPostgresql };

// Where a storage is, from its name as Optuna takes it.
struct StorageName {
  StorageEngine engine = StorageEngine::kFile;
  std::string path;  // of a file: which kind it is, its content says
};

// kInvalidInput: a name that says no place; kUnsupported: a database or server that is not read.
[[nodiscard]] Result<StorageName> parse_storage_name(const std::string& name);

}  // namespace headroom
