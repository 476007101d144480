// SPDX-License-Identifier: Apache-2.0
#include "storage/find_storage.h"

#include <unistd.h>
#include <algorithm>
#include <array>
#include <cctype>

#include "base/regular_file.h"
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

namespace {

using std::string_view_literals::operator""sv;

struct Magic {
  std::string_view bytes, name;
};
constexpr std::array kMagics{
    Magic{"\x1f\x8b"sv, "a gzip archive"},
    Magic{"PK\3\4"sv, "a zip archive"},
    Magic{"\x28\xb5\x2f\xfd"sv, "a zstd archive"},
    Magic{"\x80\2"sv, "a Python pickle"},
    Magic{"\x80\3"sv, "a Python pickle"},
    Magic{"\x80\4"sv, "a Python pickle"},
    Magic{"\x80\5"sv, "a Python pickle"},
    Magic{"\x89HDF"sv, "an HDF5 file"},
    Magic{"\x7f"
          "ELF"sv,
          "a program"},
    Magic{"\x89PNG"sv, "a picture"},
};
constexpr std::string_view kSqlite = "SQLite format 3\0"sv;
constexpr std::size_t kApplicationId = 68;  // offset in the header of an SQLite file

bool is_text(std::string_view bytes) {
  return std::none_of(bytes.begin(), bytes.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 && std::isspace(byte) == 0 && byte != 0x1b;
  });
}

}  // namespace

FileKind file_kind(std::string_view beginning) {
  if (beginning.empty()) return FileKind::kEmpty;
  if (beginning.starts_with(kSqlite))
    return beginning.substr(std::min(kApplicationId, beginning.size())).starts_with("HREC") ? FileKind::kOther
                                                                                            : FileKind::kSqlite;
  // Each of its lines is an object with "op_code", wherever it stands among the keys.
  const bool journal = beginning.starts_with('{') && beginning.find("\"op_code\"") != std::string_view::npos;
  return journal ? FileKind::kJournal : FileKind::kOther;
}

std::string_view file_kind_name(std::string_view beginning) {
  if (beginning.starts_with(kSqlite)) return "a recording of Headroom";
  for (const Magic& magic : kMagics)
    if (beginning.starts_with(magic.bytes)) return magic.name;
  return is_text(beginning) ? "a text file" : "a file of a kind that is not known here";
}

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
