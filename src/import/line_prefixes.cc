// SPDX-License-Identifier: Apache-2.0
#include "import/line_prefixes.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include "base/civil_time.h"
#include "base/strings.h"
#include "import/column_rows.h"
#include "import/log_reader.h"

namespace headroom {

namespace {

constexpr std::size_t kLongestPrefix = 100;

struct Split {
  std::string_view writer, rest;
};

// "node7" of "Mar 10 10:15:01 node7 nvidia-smi[1234]"; of all others the whole.
std::string_view writer_of(std::string_view prefix) {
  prefix = trim(prefix);
  const auto blank = prefix.rfind(' ');
  if (blank == std::string_view::npos || prefix.find(':') == std::string_view::npos) return prefix;
  const std::string_view before = trim(prefix.substr(0, blank));
  return before.substr(before.find_last_of(' ') + 1);  // npos + 1 is 0
}

// The line at the first `sign` behind which `wanted` holds of what follows.
template <class Wanted>
std::optional<Split> split_at(std::string_view line, std::string_view sign, const Wanted& wanted) {
  const std::string_view front = line.substr(0, kLongestPrefix);
  for (auto at = front.find(sign); at != std::string_view::npos; at = front.find(sign, at + 1)) {
    const std::string_view rest = trim(line.substr(at + sign.size()));
    if (at > 0 && front.substr(0, at).find(',') == std::string_view::npos && wanted(rest))
      return Split{writer_of(line.substr(0, at)), rest};
  }
  return std::nullopt;
}

bool is_timed_header(std::string_view text) {
  const auto cells = csv_cells(text);
  const auto is_time = [](std::string_view cell) {
    const auto rule = csv_column(cell);
    return rule && rule->role == ColumnRole::kTimestamp && cell.find(':') == std::string_view::npos;
  };
  return cells.size() > 1 && std::any_of(cells.begin(), cells.end(), is_time) && is_csv_header(cells);
}

struct Header {
  std::string_view text, sign;  // between prefix and text
};

// The header behind its prefix, near the beginning; nothing where a line before it is one as it stands.
std::optional<Header> find_header(std::string_view text) {
  constexpr std::array<std::string_view, 4> kSigns{": ", "| ", "] ", ":"};
  constexpr std::uint32_t kLooked = 60;
  LineCursor lines(text);
  while (lines.next() && lines.number() <= kLooked) {
    const std::string_view line = trim(lines.line());
    for (const std::string_view sign : kSigns)
      if (const auto split = split_at(line, sign, is_timed_header)) return Header{split->rest, sign};
    if (is_timed_header(line) || line.starts_with('{') || line.starts_with('<')) return std::nullopt;
  }
  return std::nullopt;
}

// A number, as srun --label writes it, is of a task.
std::string host_of(std::string_view writer) {
  return parse_number<int>(writer) ? fmt::format("task {}", writer) : std::string(writer);
}

using Writers = std::set<std::string, std::less<>>;

// A log with a prefix in front of each line.
class PrefixedLog {
 public:
  explicit PrefixedLog(const Header& header) : header_(header), separator_(separator_of(header.text)) {
    split_cells(header.text, separator_, cells_);
    columns_ = cells_.size();
  }

  [[nodiscard]] bool is_header(std::string_view rest) const { return rest == header_.text; }

  // A row, or a header.
  std::optional<Split> row(std::string_view line) {
    return split_at(line, header_.sign, [&](std::string_view rest) {
      if (is_header(rest)) return true;
      split_cells(rest, separator_, cells_);
      return cells_.size() == columns_ && is_row(cells_);
    });
  }

  // Who wrote rows.
  Writers writers(std::string_view text) {
    Writers found;
    LineCursor lines(text);
    while (lines.next())
      if (const auto split = row(lines.line()); split && !is_header(split->rest)) found.emplace(split->writer);
    return found;
  }

  [[nodiscard]] std::string with_host(const Split& row) const {
    return fmt::format("{}{}{}", row.rest, separator_, is_header(row.rest) ? "hostname" : host_of(row.writer));
  }

  // What is no row; "" of those who wrote none.
  [[nodiscard]] std::string_view message(std::string_view line, const Writers& writers) const {
    const auto split = split_at(line, header_.sign, [](std::string_view) { return true; });
    if (!split) return line;
    return writers.contains(split->writer) ? split->rest : "";
  }

 private:
  Header header_;
  char separator_;
  std::size_t columns_ = 0;
  std::vector<std::string_view> cells_;
};

}  // namespace

bool has_prefixes(std::string_view head) { return without_prefixes(head).has_value(); }

std::optional<std::string> without_prefixes(std::string_view text) {
  const auto header = find_header(text);
  if (!header) return std::nullopt;
  PrefixedLog log(*header);
  const Writers writers = log.writers(text);
  if (writers.empty()) return std::nullopt;
  std::string plain;
  bool headed = false;
  LineCursor lines(text);
  while (lines.next()) {
    const auto row = log.row(lines.line());
    if (!row)
      plain += log.message(lines.line(), writers);
    else if (!log.is_header(row->rest) || !std::exchange(headed, true))
      plain += writers.size() > 1 ? log.with_host(*row) : std::string(row->rest);
    if (lines.complete()) plain += '\n';
  }
  return plain;
}

namespace {

bool has_year(std::string_view stamp) {
  const auto words = split(stamp, ' ');
  return std::any_of(words.begin(), words.end(), [](std::string_view word) {
    return word.size() == 4 && word.starts_with("20") && parse_number<int>(word);
  });
}

// A number, a half of the day or a zone ("UTC", "CEST"), and not "GPU".
bool may_end_a_date(std::string_view word) {
  const auto is_upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  const bool zone = word == "UTC" || (word.ends_with('T') && std::all_of(word.begin(), word.end(), is_upper));
  return zone || word == "AM" || word == "PM" || std::any_of(word.begin(), word.end(), is_digit);
}

// The time that a line has before a tab, or as date(1) writes it: "Mon Feb  3 10:00:00 AM UTC 2025 87 %, …", of which
// the longest that is one counts.
std::size_t worded_stamp_in_front(std::string_view line) {
  constexpr std::size_t kMostBlanks = 8, kShortest = 15;
  const auto is_stamp = [](std::string_view stamp) {
    return stamp.size() >= kShortest && stamp.find(':') != std::string_view::npos && TimeReader({}).read(stamp);
  };
  const std::size_t tab = line.substr(0, kLongestPrefix).find('\t');
  if (tab != std::string_view::npos && is_stamp(line.substr(0, tab))) return tab;
  if (line.empty() || line[0] == ' ' || is_digit(line[0])) return 0;
  std::size_t found = 0, blanks = 0;
  for (std::size_t at = line.find(' '); at < kLongestPrefix && blanks < kMostBlanks; at = line.find(' ', at + 1)) {
    const std::string_view stamp = line.substr(0, at);
    if (stamp.back() == ',' || stamp.back() == ' ') continue;
    ++blanks;
    if (has_year(stamp) && may_end_a_date(stamp.substr(stamp.rfind(' ') + 1)) && is_stamp(stamp)) found = at;
  }
  return found;
}

// The bytes of the time in front of a line; 0: there is none.
std::size_t stamp_in_front(std::string_view line) {
  if (const std::size_t worded = worded_stamp_in_front(line); worded > 0) return worded;
  constexpr std::size_t kMostWords = 3, kShortest = 15, kClock = 8;  // "Oct 12 06:00:00", "06:00:00"
  std::size_t end = 0;
  for (std::size_t word = 0; word < kMostWords; ++word) {
    end = line.find(' ', end + (word > 0 ? 1 : 0));
    if (end == std::string_view::npos || end > kLongestPrefix) return 0;
    const std::string_view stamp = line.substr(0, end);
    if (word == 0 && end >= kClock && parse_time_of_day(stamp)) return end;
    if (end >= kShortest && stamp.find(':') != std::string_view::npos && stamp.back() != ':' &&
        stamp.find(',') == std::string_view::npos && TimeReader({}).read(stamp))
      return end;
  }
  return 0;
}

struct Stamped {
  bool all = false;   // lines, but for a few
  bool rows = false;  // have times of their own
};

Stamped look_for_stamps(std::string_view text) {
  constexpr std::uint32_t kLooked = 60;
  constexpr std::size_t kFewest = 3, kOneOf = 20;
  Stamped found;
  std::size_t stamped = 0, all = 0;
  LineCursor lines(text);
  while (lines.next() && lines.number() <= kLooked) {
    if (trim(lines.line()).empty()) continue;
    const std::size_t end = stamp_in_front(lines.line());
    if (end > 0) ++stamped;
    if (++all <= kFewest && stamped < all) return {};
    const std::string_view rest = trim(lines.line().substr(end));
    const bool processes = rest.find(" pid ") != std::string_view::npos;  // of pmon
    const bool dmon =
        rest.starts_with('#') && (processes || is_dmon_header(rest)) && rest.find("Time") != std::string_view::npos;
    found.rows = found.rows || (end > 0 && (dmon || is_timed_header(rest)));
  }
  found.all = stamped >= kFewest && kOneOf * (all - stamped) <= all;
  return found;
}

}  // namespace

bool stamped_rows_have_times(std::string_view head) { return look_for_stamps(head).rows; }

std::optional<std::string> stamps_as_lines(std::string_view text, bool rows_have_times) {
  Stamped found = look_for_stamps(text);
  found.rows = found.rows || rows_have_times;
  if (!found.all) return std::nullopt;
  std::string plain, last;
  LineCursor lines(text);
  while (lines.next()) {
    const std::string_view line = lines.line();
    const std::size_t end = stamp_in_front(line);
    const std::string_view rest = end > 0 ? line.substr(end + 1) : line;
    if (trim(rest).empty()) continue;
    if (const auto stamp = line.substr(0, end); end > 0 && !found.rows && stamp != last) {
      last = stamp;
      plain += last + '\n';
    }
    plain += rest;
    if (lines.complete()) plain += '\n';
  }
  return plain;
}

namespace {

// Behind what the escape at this place begins: a set of characters, or a command with numbers.
std::size_t end_of_escape(std::string_view text, std::size_t at) {
  const char kind = at + 1 < text.size() ? text[at + 1] : '\0';
  if (kind == '(' || kind == ')') return at + 3;
  if (kind != '[') return at + 1;
  at += 2;
  while (at < text.size() && (text[at] < '@' || text[at] > '~') && text[at] != '\n') ++at;
  return at < text.size() && text[at] != '\n' ? at + 1 : at;
}

}  // namespace

std::optional<std::string> without_escapes(std::string_view text) {
  constexpr char kEscape = '\x1b';
  if (text.find(kEscape) == std::string_view::npos) return std::nullopt;
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t i = 0; i < text.size();)
    if (text[i] == kEscape)
      i = end_of_escape(text, i);
    else
      plain += text[i++];
  return plain;
}

}  // namespace headroom
