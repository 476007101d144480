// SPDX-License-Identifier: Apache-2.0
#include "python/maps.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_map>

#include "base/strings.h"

namespace headroom::python {

namespace {

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::optional<std::uint64_t> hex(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The next field of a line, and the rest behind it.
std::string_view take_field(std::string_view& line) {
  const auto end = std::min(line.find(' '), line.size());
  const auto field = line.substr(0, end);
  line.remove_prefix(std::min(line.find_first_not_of(' ', end), line.size()));
  return field;
}

// "3.11" or "311" at the beginning.
int minor_at(std::string_view text) {
  if (text.starts_with('2')) return 0;
  if (!text.starts_with('3')) return -1;
  text.remove_prefix(text.starts_with("3.") ? 2 : 1);
  int minor = -1;
  constexpr std::size_t kMostDigits = 2;
  std::from_chars(text.data(), text.data() + std::min(text.size(), kMostDigits), minor);
  return minor;
}

}  // namespace

std::vector<MappedFile> mapped_files(std::string_view maps) {
  std::vector<MappedFile> files;
  std::unordered_map<std::string_view, std::size_t> known;  // a process may map tens of thousands of files
  for (std::string_view line : split(maps, '\n')) {
    const auto range = take_field(line);
    const auto rights = take_field(line);
    const auto offset = hex(take_field(line));
    take_field(line);  // device
    take_field(line);  // inode
    const auto begin = hex(range.substr(0, range.find('-')));
    if (!begin || !offset || !line.starts_with('/')) continue;
    const auto [at, added] = known.try_emplace(line, files.size());
    if (added) files.push_back({line, *begin, *offset, false});
    MappedFile& file = files[at->second];
    file.executable = file.executable || rights.find('x') != std::string_view::npos;
  }
  return files;
}

bool may_hold_python(std::string_view path) {
  const auto name = file_name(path);
  return name.starts_with("libpython") || name.starts_with("python");
}

int minor_in_name(std::string_view path) {
  const auto name = file_name(path);
  for (const std::string_view before : {"libpython", "python", "cpython-"}) {
    const auto at = name.find(before);
    if (at == std::string_view::npos) continue;
    if (const int minor = minor_at(name.substr(at + before.size())); minor >= 0) return minor;
  }
  return -1;
}

}  // namespace headroom::python
