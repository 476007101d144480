// SPDX-License-Identifier: Apache-2.0
#include "storage/file_kind.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace headroom {

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

}  // namespace headroom
