// SPDX-License-Identifier: Apache-2.0
#include "storage/find_storage.h"

#include <unistd.h>

#include "base/regular_file.h"
#include "storage/file_kind.h"
#include "storage/storage_name.h"

namespace headroom {

bool begins_as_storage(std::string_view bytes) {
  // Optuna makes all its tables at once, so that what defines them is in the first pages of the file.
  const auto defines = [&](std::string_view table) { return bytes.find(table) != std::string_view::npos; };
  switch (file_kind(bytes.substr(0, kFileBeginning))) {
    case FileKind::kSqlite:
      return defines("CREATE TABLE trial_intermediate_values") && defines("CREATE TABLE study_directions");
    case FileKind::kJournal:
      return true;
    default:
      return false;
  }
}

std::optional<std::string> find_storage(const std::vector<std::string>& paths) {
  constexpr std::size_t kMost = std::size_t{256} << 10;
  std::string bytes;
  for (const std::string& path : paths) {
    const auto file = open_regular(path);
    if (!file) continue;
    bytes.resize(kMost);
    const ssize_t got = ::pread(file->get(), bytes.data(), bytes.size(), 0);
    bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    if (begins_as_storage(bytes)) return path;
  }
  return std::nullopt;
}

std::vector<std::string> files_in_word(std::string_view word) {
  std::vector<std::string> files;
  const auto add = [&](std::string_view text) {
    if (text.empty()) return;
    if (const auto name = parse_storage_name(std::string(text)); name && name->engine == StorageEngine::kFile)
      files.push_back(name->path);
  };
  add(word);
  if (const auto equals = word.find('='); equals != std::string_view::npos) add(word.substr(equals + 1));
  return files;
}

}  // namespace headroom
