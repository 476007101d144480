// SPDX-License-Identifier: Apache-2.0
// nvidia-smi dmon: two comment lines (names, units) every so many rows, then words between blanks; with --format=csv
// between commas. "-o D" and "-o T" put the date and the time in front.
#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "import/log_reader.h"
#include "import/table.h"

namespace headroom {

namespace {

bool is_between(char c) { return c == ' ' || c == '\t' || c == ','; }

void split_words(std::string_view line, std::vector<std::string_view>& words) {
  words.clear();
  for (std::size_t i = 0; i < line.size();) {
    while (i < line.size() && is_between(line[i])) ++i;
    const std::size_t begin = i;
    while (i < line.size() && !is_between(line[i])) ++i;
    if (i > begin) words.push_back(line.substr(begin, i - begin));
  }
}

// The words of a comment line, without its '#'.
std::vector<std::string_view> comment_words(std::string_view line) {
  std::vector<std::string_view> words;
  const std::string_view text = trim(line);
  if (text.empty() || text[0] != '#') return words;
  split_words(text.substr(1), words);
  return words;
}

// "0  43  35  -  # warm-up ends": what somebody wrote behind the cells is none of them.
bool is_cell(std::string_view word) { return word == "-" || is_digit(word[0]); }

bool names_columns(const std::vector<std::string_view>& words) {
  return std::find(words.begin(), words.end(), "gpu") != words.end();
}

class DmonReader {
 public:
  DmonReader(const std::string& name, const ImportOptions& options)
      : name_(name), options_(options), reader_(name, LogFormat::kDmon, options) {}

  Result<Recording> read(std::string_view text) {
    HR_TRYV(find_columns(text));
    LineCursor lines(text);
    while (lines.next()) {
      const std::string_view line = trim(lines.line());
      if (line.empty()) continue;
      if (line[0] != '#') {
        data_line(lines);
      } else if (const auto words = comment_words(line); names_columns(words)) {
        if (words != names_) HR_TRYV(use(words, lines.number()));  // a run with other groups was appended
      }
    }
    return reader_.finish().map(unpacked);
  }

 private:
  // The first header of the log also tells what the rows above it are, should its beginning have been cut off.
  Result<void> find_columns(std::string_view text) {
    if (!options_.columns.empty()) {
      std::vector<std::string_view> names;
      split_words(options_.columns, names);
      return use(names, 0);
    }
    LineCursor lines(text);
    while (lines.next()) {
      if (const auto words = comment_words(lines.line()); names_columns(words)) return use(words, lines.number());
      if (lines.line().find(':') == std::string_view::npos) continue;
      if (auto stamp = time_of_line(lines.line())) stamp_ = std::move(*stamp);
    }
    return fail(Errc::kInvalidInput, fmt::format("{}:1: there is no dmon header ('# gpu …')", name_),
                "say the columns with --columns \"gpu pwr gtemp mtemp sm mem …\"");
  }

  Result<void> use(const std::vector<std::string_view>& names, std::uint32_t line) {
    names_ = names;
    std::vector<std::string_view> all(names);
    const bool timed = std::any_of(names.begin(), names.end(), [](std::string_view name) {
      return lower(name) == "time" || lower(name) == "date";
    });
    stamped_ = !stamp_.empty() && !timed;
    if (stamped_) all.push_back(kStamp);
    const auto find = [](std::string_view name) { return name == kStamp ? csv_column(name) : dmon_column(name); };
    columns_ = reader_.columns(all, find, line);
    if (columns_.metrics.empty())
      return fail(Errc::kInvalidInput,
                  fmt::format("{}:{}: no column that a recording can hold in: {}", name_, line, fmt::join(names, " ")),
                  "wanted: dmon -s pucm, with -o DT for the times");
    return {};
  }

  void data_line(const LineCursor& at) {
    if (stamped_ && at.line().find(':') != std::string_view::npos)
      if (auto stamp = time_of_line(at.line())) return void(stamp_ = std::move(*stamp));
    split_words(at.line(), words_);
    const std::size_t own = columns_.count - (stamped_ ? 1 : 0);
    if (words_.size() > own && !is_cell(words_[own])) words_.resize(own);
    if (stamped_) words_.emplace_back(stamp_);
    const bool digits_first = !words_.empty() && words_[0][0] >= '0' && words_[0][0] <= '9';
    if (!digits_first)
      reader_.message(at);
    else if (words_.size() != columns_.count)
      reader_.odd_row(at, words_.size(), columns_.count);
    else
      reader_.row(columns_, words_, at);
  }

  const std::string& name_;
  const ImportOptions& options_;
  LogReader reader_;
  LogColumns columns_;
  std::vector<std::string_view> names_, words_;
  static constexpr std::string_view kStamp = "timestamp";
  std::string stamp_;     // a line that is a time, of the rows below it
  bool stamped_ = false;  // the rows have no time, and lines between them have
};

}  // namespace

bool is_dmon_header(std::string_view line) {
  const auto words = comment_words(line);
  const bool pmon = std::find(words.begin(), words.end(), "pid") != words.end();
  if (!names_columns(words) || pmon) return false;
  return std::count_if(words.begin(), words.end(), [](std::string_view w) { return dmon_column(w).has_value(); }) >= 2;
}

Result<Recording> read_dmon_log(const std::string& name, std::string_view text, const ImportOptions& options) {
  return DmonReader(name, options).read(text);
}

}  // namespace headroom
