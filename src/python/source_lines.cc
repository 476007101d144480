// SPDX-License-Identifier: Apache-2.0
#include "python/source_lines.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <optional>

#include "base/fd.h"
#include "base/regular_file.h"
#include "host/proc_dir.h"
#include "host/proc_parse.h"

namespace headroom::python {

namespace {

constexpr std::int64_t kNoLine = 0;

// Numbers of the tables since 3.11: six bits a byte, the lowest first.
class Entries {
 public:
  explicit Entries(std::span<const std::byte> bytes) : bytes_(bytes) {}
  [[nodiscard]] bool at_end() const { return next_ == bytes_.size(); }
  [[nodiscard]] bool sound() const { return sound_; }
  // Every entry begins with a byte that has its highest bit set, and no other byte has.
  std::uint8_t head() { return byte(true); }
  std::uint8_t plain() { return byte(false); }
  std::uint64_t number() {
    constexpr unsigned kBits = 6, kMost = 30;
    constexpr std::uint8_t kMask = 0x3F, kGoesOn = 0x40;
    std::uint64_t value = 0;
    for (unsigned shift = 0; sound_; shift += kBits) {
      const std::uint8_t next = byte(false);
      value |= static_cast<std::uint64_t>(next & kMask) << shift;
      if ((next & kGoesOn) == 0) break;
      sound_ = sound_ && shift < kMost;
    }
    return value;
  }
  std::int64_t signed_number() {
    const std::uint64_t value = number();
    const auto size = static_cast<std::int64_t>(value >> 1U);
    return (value & 1U) != 0 ? -size : size;
  }

 private:
  std::uint8_t byte(bool head) {
    constexpr std::uint8_t kHead = 0x80;
    if (at_end()) return sound_ = false, std::uint8_t{0};
    const auto value = std::to_integer<std::uint8_t>(bytes_[next_++]);
    sound_ = sound_ && ((value & kHead) != 0) == head;
    return value;
  }

  std::span<const std::byte> bytes_;
  std::size_t next_ = 0;
  bool sound_ = true;
};

// The entries of a table since 3.11, one after another.
class Locations {
 public:
  struct Location {
    std::uint64_t end = 0;  // of its instructions, in bytes from the first one
    std::int64_t line = kNoLine, end_line = kNoLine;
    std::int32_t column = -1, end_column = -1;  // -1: none
  };
  Locations(std::int32_t first_line, std::span<const std::byte> table) : entries_(table), line_(first_line) {}
  // Whether all that was asked for made sense.
  [[nodiscard]] bool sound() const { return entries_.sound(); }

  std::optional<Location> next() {
    if (entries_.at_end()) return std::nullopt;
    const std::uint8_t head = entries_.head();
    constexpr unsigned kUnit = 2, kCodeShift = 3, kCodeMask = 15, kLengthMask = 7;
    const unsigned code = head >> kCodeShift & kCodeMask;
    constexpr unsigned kOneLine = 10, kNoColumns = 13, kLong = 14, kNone = 15;
    Location location;
    std::int64_t more_lines = 0;
    if (code < kOneLine) {  // on the same line
      constexpr unsigned kColumns = 8, kFirstShift = 4, kFirstMask = 7, kLengthOfCode = 15;
      const unsigned columns = entries_.plain();
      location.column = static_cast<std::int32_t>(kColumns * code + (columns >> kFirstShift & kFirstMask));
      location.end_column = location.column + static_cast<std::int32_t>(columns & kLengthOfCode);
    } else if (code < kNoColumns) {
      line_ += code - kOneLine;
      location.column = entries_.plain();
      location.end_column = entries_.plain();
    } else if (code != kNone) {
      line_ += entries_.signed_number();
      if (code == kLong) {
        more_lines = static_cast<std::int64_t>(entries_.number());
        location.column = column_of(entries_.number());
        location.end_column = column_of(entries_.number());
      }
    }
    if (!entries_.sound()) return std::nullopt;
    end_ += std::uint64_t{kUnit} * ((head & kLengthMask) + 1U);
    location.end = end_;
    if (code == kNone) return location;
    location.line = line_;
    location.end_line = line_ + more_lines;
    return location;
  }

 private:
  static std::int32_t column_of(std::uint64_t one_more) {
    return one_more > std::numeric_limits<std::int32_t>::max() ? -1 : static_cast<std::int32_t>(one_more) - 1;
  }
  Entries entries_;
  std::uint64_t end_ = 0;
  std::int64_t line_;
};

constexpr int kWithRanges = 10, kWithEntries = 11;

}  // namespace

void LineTable::add(std::uint64_t end, std::int64_t line) {
  if (line < 0 || line > std::numeric_limits<std::int32_t>::max()) line = kNoLine;
  if (!parts_.empty() && parts_.back().line == line)
    parts_.back().end = end;
  else if (end > code_bytes())
    parts_.push_back({end, line});
}

std::optional<LineTable> LineTable::read(int minor, std::int32_t first_line, std::span<const std::byte> table) {
  LineTable lines;
  std::uint64_t at = 0;
  std::int64_t line = first_line;
  if (minor < kWithEntries) {
    if (table.size() % 2 != 0) return std::nullopt;
    for (std::size_t i = 0; i < table.size(); i += 2) {
      const auto bytes = std::to_integer<std::uint8_t>(table[i]);
      const auto more = static_cast<std::int8_t>(std::to_integer<std::uint8_t>(table[i + 1]));
      at += bytes;
      if (minor < kWithRanges) {  // what lies before `at` is of the line until now
        lines.add(at, line);
        line += more;
        continue;
      }
      constexpr std::int8_t kNone = -128;
      if (more != kNone) line += more;
      lines.add(at, more == kNone ? kNoLine : line);
    }
    if (minor < kWithRanges) lines.add(kOpen, line);
    return lines;
  }
  Locations locations(first_line, table);
  while (const auto location = locations.next()) lines.add(location->end, location->line);
  return locations.sound() ? std::optional(std::move(lines)) : std::nullopt;
}

std::optional<LineTable::Extent> LineTable::extent_at(std::int32_t first_line, std::span<const std::byte> table,
                                                      std::uint64_t offset) {
  Locations locations(first_line, table);
  auto location = locations.next();
  while (location && location->end <= offset) location = locations.next();
  if (!location || location->column < 0 || location->end_column < 0) return std::nullopt;
  const auto fits = [](std::int64_t number) {
    return number >= 0 && number <= std::numeric_limits<std::int32_t>::max();
  };
  if (location->line <= 0 || !fits(location->line) || !fits(location->end_line)) return std::nullopt;
  return Extent{static_cast<std::int32_t>(location->line), static_cast<std::int32_t>(location->end_line),
                location->column, location->end_column};
}

std::optional<std::int32_t> LineTable::line_at(std::uint64_t offset) const {
  const auto part = std::upper_bound(parts_.begin(), parts_.end(), offset,
                                     [](std::uint64_t at, const Part& one) { return at < one.end; });
  if (part == parts_.end() || part->line == kNoLine) return std::nullopt;
  return static_cast<std::int32_t>(part->line);
}

namespace {

constexpr std::size_t kLargestFile = std::size_t{256} << 10, kMostText = std::size_t{512} << 10, kMostSources = 32;
constexpr std::size_t kLongestCall = 4096, kLongestCalled = 60;
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
  return is_operator || name.size() > kLongestCalled ? "" : std::string(name);
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
