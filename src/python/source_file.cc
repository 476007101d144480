// SPDX-License-Identifier: Apache-2.0
#include "python/source_file.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>

#include "base/fd.h"
#include "base/regular_file.h"
#include "host/proc_dir.h"
#include "host/proc_parse.h"

namespace headroom::python {

namespace {

constexpr std::size_t kLargestFile = std::size_t{256} << 10, kMostText = std::size_t{512} << 10, kMostSources = 32;
constexpr std::size_t kLongestCall = 4096, kLongestName = 60;
constexpr std::array<std::string_view, 3> kOperators{"not", "await", "yield"};  // an expression may be all in brackets

bool is_of_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

// Where a string ends that begins at `at`; the end of the source where it does not.
std::size_t end_of_string(std::string_view source, std::size_t at) {
  const char quote = source[at];
  const std::string three(3, quote);
  const std::string_view mark = source.substr(at).starts_with(three) ? std::string_view(three) : source.substr(at, 1);
  for (std::size_t i = at + mark.size(); i < source.size(); ++i) {
    if (source[i] == '\\')
      ++i;
    else if (source.substr(i).starts_with(mark))
      return i + mark.size();
  }
  return source.size();
}

std::string program_of(std::int64_t pid) {
  std::error_code error;
  return std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid), error);
}

// Unix time by which a process had begun, as exactly as the kernel tells that: to a tick. One that was forked runs what
// its parent had read by then: of the first of those that run the same program.
std::optional<Nanos> latest_begin_of(std::int64_t pid) {
  constexpr int kMostForks = 16;
  const std::string program = program_of(pid);
  const long ticks = ::sysconf(_SC_CLK_TCK);
  host::ProcDir proc("/proc");
  std::optional<Nanos> began;
  for (int i = 0; i < kMostForks && ticks > 0 && !program.empty() && program_of(pid) == program; ++i) {
    const auto text = proc.read(fmt::format("{}/stat", pid).c_str());
    const auto stat = text ? host::parse_pid_stat(*text) : std::nullopt;
    if (!stat) return std::nullopt;
    began = realtime_now() - boottime_now() + (stat->start_ticks + 1) * (kSecond / ticks);
    pid = stat->ppid;
  }
  return began;
}

}  // namespace

// The brackets that end it are those of the call, where they are round and nothing but names, members, calls and
// indices comes before them.
std::string name_of_call(std::string_view source) {
  if (source.size() > kLongestCall || !source.ends_with(')')) return "";
  std::size_t depth = 0, open = 0;  // where the last bracket outside of others opens
  for (std::size_t i = 0; i < source.size(); ++i) {
    const char c = source[i];
    if (c == '"' || c == '\'') {
      i = end_of_string(source, i) - 1;
    } else if (c == '#') {  // a comment: up to the end of the line
      i = std::min(source.find('\n', i), source.size()) - 1;
    } else if (c == '(' || c == '[' || c == '{') {
      if (depth++ == 0) open = i;
    } else if (c == ')' || c == ']' || c == '}') {
      if (depth == 0) return "";
      --depth;
    } else if (depth == 0 && !is_of_name(c)) {
      return "";
    }
  }
  if (depth != 0 || source[open] != '(') return "";
  std::size_t begin = open;
  while (begin > 0 && is_of_name(source[begin - 1])) --begin;
  while (begin < open && source[begin] == '.') ++begin;
  const std::string_view name = source.substr(begin, open - begin);
  const bool is_operator = std::find(kOperators.begin(), kOperators.end(), name) != kOperators.end();
  return is_operator || name.size() > kLongestName ? "" : std::string(name);
}

std::string SourceFiles::read(const std::string& file) const {
  struct stat process {
  }, source{};
  if (!file.starts_with('/') || ::stat(fmt::format("/proc/{}", pid_).c_str(), &process) != 0 ||
      process.st_uid != ::geteuid())
    return "";
  const std::string path = fmt::format("/proc/{}/root{}", pid_, file);
  auto text = read_regular(path, kLargestFile);
  const auto began = latest_begin_of(pid_);
  if (!text || !began || ::stat(path.c_str(), &source) != 0) return "";
  return source.st_mtim.tv_sec * kSecond + source.st_mtim.tv_nsec <= *began ? std::move(*text) : "";
}

const std::string& SourceFiles::text_of(const std::string& file) {
  static const std::string kNotKnown;
  const auto known = texts_.find(file);
  if (known != texts_.end()) return known->second;
  if (texts_.size() >= kMostSources || bytes_ >= kMostText) return kNotKnown;
  const std::string& text = texts_[file] = read(file);
  bytes_ += text.size();
  return text;
}

std::string SourceFiles::call_at(const std::string& file, const LineTable::Extent& extent) {
  if (extent.end_line - extent.line > static_cast<std::int32_t>(kLongestCall)) return "";
  const std::string_view text = text_of(file);
  std::size_t at = 0, begin = 0;  // of a line
  for (std::int32_t line = 1; line < extent.end_line; ++line) {
    if (line == extent.line) begin = at;
    const std::size_t end = text.find('\n', at);
    if (end == std::string_view::npos) return "";
    at = end + 1;
  }
  if (extent.line == extent.end_line) begin = at;
  begin += static_cast<std::size_t>(extent.column);
  const std::size_t end = at + static_cast<std::size_t>(extent.end_column);
  return begin < end && end <= text.size() ? name_of_call(text.substr(begin, end - begin)) : "";
}

}  // namespace headroom::python
