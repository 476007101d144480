// SPDX-License-Identifier: Apache-2.0
#include "storage/storage_name.h"

#include "base/strings.h"
#include "base/visible.h"

namespace headroom {

namespace {

// "sqlite:///study.db" has three slashes before a relative path, four before an absolute one.
Result<StorageName> sqlite_path(std::string_view rest) {
  if (!rest.starts_with('/'))
    return fail(Errc::kInvalidInput, "a storage in memory ends with its process, and cannot be read from outside",
                "sqlite:///PATH names a file");
  rest.remove_prefix(1);
  rest = rest.substr(0, rest.find('?'));
  if (rest.starts_with("file:")) rest.remove_prefix(5);
  if (rest.empty() || rest.starts_with(":memory:"))
    return fail(Errc::kInvalidInput, "a storage in memory ends with its process, and cannot be read from outside",
                "sqlite:///PATH names a file");
  return StorageName{StorageEngine::kFile, std::string(rest)};
}

}  // namespace

Result<StorageName> parse_storage_name(const std::string& name) {
  if (name.empty()) return fail(Errc::kInvalidInput, "the name of the storage is empty", "name a file or a URL");
  const std::size_t colon = name.find("://");
  if (colon == std::string::npos) return StorageName{StorageEngine::kFile, name};
  const std::string scheme = lower(std::string_view(name).substr(0, colon));
  const std::string dialect = scheme.substr(0, scheme.find('+'));  // behind it SQLAlchemy names a driver of Python
  if (dialect == "sqlite") return sqlite_path(std::string_view(name).substr(colon + 3));
  if (dialect == "postgresql" || dialect == "postgres") return StorageName{StorageEngine::kPostgresql, ""};
  return fail(Errc::kUnsupported, fmt::format("{}: storages of this kind are not read", visible(scheme)),
              "SQLite, PostgreSQL and journal files are; Python copies a study there: "
              "optuna.copy_study(from_study_name=NAME, from_storage=URL, to_storage=\"sqlite:///copy.db\")");
}

}  // namespace headroom
