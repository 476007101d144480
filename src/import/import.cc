// SPDX-License-Identifier: Apache-2.0
#include "import/import.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/strings.h"
#include "base/visible.h"
#include "import/column_rows.h"
#include "import/line_prefixes.h"
#include "import/log_reader.h"
#include "import/log_records.h"
#include "import/plain_text.h"
#include "import/step_times.h"
#include "import/table.h"
#include "import/trace.h"
#include "import/unknown_file.h"
#include "model/losses.h"

namespace headroom {

namespace {

bool is_utf16(std::string_view text) { return text.starts_with("\xff\xfe") || text.starts_with("\xfe\xff"); }

// Windows PowerShell's ">" writes UTF-16; the characters of a log are ASCII, others become '?'.
std::string from_utf16(std::string_view text) {
  const std::size_t low = text[0] == '\xff' ? 0 : 1;
  std::string narrow;
  narrow.reserve(text.size() / 2);
  for (std::size_t i = 2; i + 1 < text.size(); i += 2)
    narrow.push_back(text[i + 1 - low] == 0 && static_cast<unsigned char>(text[i + low]) < 0x80 ? text[i + low] : '?');
  return narrow;
}

std::string_view without_mark(std::string_view text) {
  return text.starts_with(kByteOrderMark) ? text.substr(kByteOrderMark.size()) : text;
}

bool is_headerless_row(std::string_view line) {
  const auto cells = csv_cells(line);
  return cells.size() > 1 && cells[0].size() >= 10 && (TimeReader({}).read(cells[0]) || is_time(cells[0]));
}

// What a line says about the log it is in; nothing for messages and rows of dmon.
std::optional<LogFormat> format_of_line(std::string_view line, std::string_view rows) {
  if (is_dmon_header(line)) return LogFormat::kDmon;
  std::deque<std::string> made;
  const auto cells = told_by_rows(csv_cells(line), rows, separator_of(line), made);
  const bool one_column = cells.size() == 1 && line.find_first_of(".[") == std::string_view::npos;
  if (!one_column && is_csv_header(cells)) {
    const bool dotted = std::any_of(cells.begin(), cells.end(), [](std::string_view cell) {
      return cell.find('.') != std::string_view::npos && csv_column(cell);
    });
    return dotted ? LogFormat::kNvidiaSmi : LogFormat::kMonitorCsv;
  }
  if (is_headerless_row(line)) return LogFormat::kNvidiaSmi;
  return std::nullopt;
}

bool is_message(std::string_view line) {
  constexpr std::array<std::string_view, 5> kBeginnings{"NVIDIA-SMI has failed", "Failed to initialize NVML",
                                                        "Unable to determine", "No devices were found",
                                                        "Unable to get"};
  return std::any_of(kBeginnings.begin(), kBeginnings.end(), [&](std::string_view b) { return line.starts_with(b); });
}

// {"recording":1, … begins what `headroom export -f jsonl` writes, whatever words of others come later in it.
bool is_our_own(std::string_view text) {
  text = trim(text.substr(0, 256));
  if (!text.starts_with('{')) return false;
  return trim(text.substr(1)).starts_with("\"recording\"");
}

// By the first line that tells it; a log of messages alone is nvidia-smi's, which failed.
LogFormat format_by_lines(std::string_view text) {
  constexpr std::uint32_t kLines = 200;
  LineCursor lines(text);
  bool messages = false;
  while (lines.next() && lines.number() <= kLines) {
    const std::string_view line = trim(lines.line());
    if (line.empty()) continue;
    if (line[0] == '[' && lines.number() == 1 && line.find('"') == std::string_view::npos) return LogFormat::kUnknown;
    if (line[0] == '{') return messages || lines.number() > 1 ? LogFormat::kJsonl : LogFormat::kUnknown;
    if (is_other_table(csv_cells(line))) return LogFormat::kUnknown;
    if (const auto format = format_of_line(line, lines.at_hand())) return *format;
    messages = messages || is_message(line);
  }
  return messages ? LogFormat::kNvidiaSmi : LogFormat::kUnknown;
}

}  // namespace

LogFormat sniff_log(std::string_view text) {
  if (text.starts_with(std::string_view("SQLite format 3\0", 16))) return LogFormat::kRecording;
  text = text.substr(0, kLogHead);
  if (is_utf16(text)) {
    const std::string narrow = from_utf16(text);
    return sniff_log(narrow);
  }
  text = without_mark(text);
  if (text.substr(0, 4096).find('\0') != std::string_view::npos) return LogFormat::kUnknown;
  if (const auto plain = plain_lines(text)) return sniff_log(*plain);
  if (is_our_own(text)) return LogFormat::kJsonl;
  if (is_kineto(text)) return LogFormat::kKineto;
  if (is_step_times(text)) return LogFormat::kStepTimes;
  if (has_prefixes(text)) return LogFormat::kNvidiaSmi;
  if (const auto plain = timed_by_lines(text)) return sniff_log(*plain);
  const LogFormat format = sniff_table(text);
  return format == LogFormat::kUnknown ? format_by_lines(text) : format;
}

Result<LogFormat> format_of_file(const std::string& path) {
  HR_TRY(ByteStream bytes, ByteStream::open(path));
  const LogFormat format = sniff_log(bytes.peek(kLogHead));
  return format == LogFormat::kRecording && !bytes.packed() && is_nsys(path) ? LogFormat::kNsys : format;
}

Result<LogText> LogText::open(const std::string& path) {
  HR_TRY(ByteStream bytes, ByteStream::open(path));
  return open(path, std::move(bytes));
}

Result<LogText> LogText::open(const std::string& path, ByteStream bytes) {
  LogText log;
  const std::string_view head = bytes.peek(1);
  log.packed_ = bytes.packed();
  struct stat info {};
  const bool regular = path != "-" && ::fstat(bytes.fd(), &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0;
  if (regular && !log.packed_ && !head.empty()) {
    log.size_ = static_cast<std::size_t>(info.st_size);
    void* data = ::mmap(nullptr, log.size_, PROT_READ, MAP_PRIVATE, bytes.fd(), 0);
    if (data == MAP_FAILED) return tl::unexpected(errno_error(fmt::format("map {}", path)));
    log.data_ = data;
    ::madvise(data, log.size_, MADV_SEQUENTIAL);
    return log;
  }
  auto text = bytes.rest();  // pipes, /proc, empty files
  if (!text) return tl::unexpected(within(path, text.error()));
  log.copy_ = std::move(*text);
  return log;
}

LogText::~LogText() {
  if (data_) ::munmap(data_, size_);
}

namespace {

// A program or a notebook has no rows, whatever its lines look like; what was asked for is done.
bool is_program(const std::string& name, const ImportOptions& options) {
  if (options.format || !options.columns.empty()) return false;
  return name.ends_with(".py") || name.ends_with(".sh") || name.ends_with(".ipynb");
}

LogFormat format_of(const std::string& name, std::string_view text, const ImportOptions& options) {
  if (is_program(name, options)) return LogFormat::kUnknown;
  const LogFormat format = options.format ? *options.format : sniff_log(text);
  return format == LogFormat::kUnknown && !options.columns.empty() ? LogFormat::kNvidiaSmi : format;
}

bool is_unreadable(std::string_view text) {
  const std::string_view head = text.substr(0, 4096);
  return trim(head).empty() || head.find('\0') != std::string_view::npos;
}

Result<void> check_interval(const ImportOptions& options) {
  if (options.interval >= 0 && options.interval <= 366 * kDay) return {};
  return fail(Errc::kInvalidInput, "the interval between rows must be between 0 and a year");
}

// Metrics that the table of a log has no column for, beside the columns of the table that are not kept.
void name_left_out(const std::vector<std::string>& names, Recording& recording) {
  if (names.empty()) return;
  const auto count = static_cast<std::int64_t>(names.size());
  std::string text = fmt::format("{}", fmt::join(names, ", "));
  for (Loss& loss : recording.losses)
    if (loss.what == info(LossKind::kColumnNotKept).name) {
      loss.count += count;
      loss.detail = fmt::format("{}, {}", text, loss.detail);
      return;
    }
  recording.losses.push_back(make_loss(LossKind::kColumnNotKept, count, std::move(text)));
}

}  // namespace

Result<std::function<std::int64_t(std::int64_t)>> utc_offset_of(std::string_view text) {
  using Offset = std::function<std::int64_t(std::int64_t)>;
  const std::string word = lower(text);
  if (word == "utc" || word == "z") return Offset([](std::int64_t) { return std::int64_t{0}; });
  if (word == "local") {
    return Offset([](std::int64_t local) {
      std::time_t second = local;
      std::tm parts{};
      ::gmtime_r(&second, &parts);  // the local calendar time, which mktime then places in this machine's zone
      parts.tm_isdst = -1;
      return local - static_cast<std::int64_t>(std::mktime(&parts));
    });
  }
  if (const auto fixed = parse_utc_offset(text)) return Offset([fixed](std::int64_t) { return *fixed; });
  return fail(Errc::kInvalidInput, fmt::format("'{}' is no offset from UTC", text), "write utc, local, or +05:30");
}

Result<Nanos> start_date_of(std::string_view text) {
  if (const auto date = parse_date(text)) return *date;
  return fail(Errc::kInvalidInput, fmt::format("'{}' is no date", text), "write it as 2025-11-05");
}

namespace {

Result<Recording> import_table(const std::string& name, LogFormat format, std::string_view text,
                               const ImportOptions& options) {
  auto table = table_of(format, text);
  if (!table) return tl::unexpected(within(name, table.error()));
  const Attrs extra = std::move(table->extra);
  const std::vector<std::string> left_out = std::move(table->left_out);
  const bool by_order = table->by_order;
  const std::string csv = std::exchange(*table, {}).csv();
  ByteStream bytes = ByteStream::of(csv);
  auto recording = read_csv_log(name + " as a table", bytes, format, options).map(unpacked);
  if (!recording) return recording;
  recording->meta.extra.insert(extra.begin(), extra.end());
  name_left_out(left_out, *recording);
  if (by_order)
    recording->losses.push_back(
        make_loss(LossKind::kNoGpuColumn, 1, "the rows below each time are taken as one of each GPU, in order"));
  return recording;
}

}  // namespace

Result<Recording> import_log(const std::string& name, std::string_view text, const ImportOptions& options) {
  if (is_utf16(text)) return import_log(name, from_utf16(text), options);
  text = without_mark(text);
  if (const auto plain = plain_lines(text, options.columns)) return import_log(name, *plain, options);
  if (const auto plain = timed_by_lines(text, options.columns)) return import_log(name, *plain, options);
  HR_TRYV(check_interval(options));
  const LogFormat format = format_of(name, text, options);
  const bool unreadable = is_unreadable(text);
  switch (format) {
    case LogFormat::kRecording:
    case LogFormat::kJsonl:
      return fail(Errc::kInvalidInput, fmt::format("{}: this is a recording, not a foreign log", name),
                  fmt::format("open it as it is: headroom why {}", typed_word(name)));
    case LogFormat::kDmon:
      if (!unreadable) return read_dmon_log(name, text, options);
      break;
    case LogFormat::kNvidiaSmi:
    case LogFormat::kMonitorCsv: {
      const auto plain = without_prefixes(text);
      ByteStream bytes = ByteStream::of(plain ? *plain : text);
      if (!unreadable) return read_csv_log(name, bytes, format, options).map(unpacked);
      break;
    }
    case LogFormat::kSmiXml:
    case LogFormat::kSmiText:
    case LogFormat::kSmiQuery:
    case LogFormat::kScrapes:
    case LogFormat::kLongCsv:
    case LogFormat::kPmon:
    case LogFormat::kGpustat:
    case LogFormat::kJsonRows:
    case LogFormat::kRocmText:
    case LogFormat::kAmdText:
    case LogFormat::kTegrastats:
    case LogFormat::kRadeontop:
    case LogFormat::kPowermetrics:
    case LogFormat::kAfterburner:
    case LogFormat::kTypeperf:
    case LogFormat::kInflux:
    case LogFormat::kLines:
    case LogFormat::kDcgm:
    case LogFormat::kPrometheus:
    case LogFormat::kExportCsv:
      return import_table(name, format, text, options);
    case LogFormat::kKineto: {
      ByteStream bytes = ByteStream::of(text);
      return read_kineto(name, bytes);
    }
    case LogFormat::kStepTimes:
      return read_step_times(name, text);
    case LogFormat::kNsys:
    case LogFormat::kUnknown:
      break;
  }
  return tl::unexpected(unknown_file(name, text));
}

namespace {

bool is_csv(LogFormat format) { return format == LogFormat::kNvidiaSmi || format == LogFormat::kMonitorCsv; }

// The lines in records, block by block: each time a line of its own above those that had it, or none.
class KeptLines {
 public:
  KeptLines(ByteStream& bytes, bool with_times) : lines_(bytes), with_times_(with_times) {}
  std::string_view next() {
    constexpr std::size_t kBlock = std::size_t{1} << 18;
    block_.clear();
    while (block_.size() < kBlock && lines_.next()) {
      const auto kept = kept_line(lines_.line());
      const std::string_view line = kept ? std::string_view(kept->line) : lines_.line();
      if (trim(line).empty()) continue;
      if (kept && with_times_ && kept->time != last_) block_ += (last_ = kept->time) + '\n';
      (block_ += line) += '\n';
    }
    return block_;
  }

 private:
  LineCursor lines_;
  bool with_times_;
  std::string block_, last_;
};

// A log whose lines a collector keeps in a record each, and which is CSV within them, as its bytes come; nothing for
// all else. `head` is its beginning.
std::optional<ByteStream> rows_in_records(ByteStream& bytes, std::string_view head, const ImportOptions& options) {
  const std::string_view lines = head.substr(0, head.rfind('\n'));
  const auto first = kept_line(lines.substr(0, lines.find('\n')));
  const auto begin = first ? lines_of_records(lines) : std::nullopt;
  if (!begin || !begin->starts_with(first->time)) return std::nullopt;  // the newest first, as a whole
  const auto plain = timed_by_lines(*begin, options.columns);
  if (!plain || has_prefixes(*plain) || timed_by_lines(*plain, options.columns)) return std::nullopt;
  if (!is_csv(format_of("", *plain, options))) return std::nullopt;
  const bool own_times = stamped_rows_have_times(*begin) || names_a_time(options.columns);
  return ByteStream::from([kept = std::make_shared<KeptLines>(bytes, !own_times)] { return kept->next(); });
}

}  // namespace

Result<std::optional<PackedRecording>> import_stream(const std::string& path, ByteStream& bytes,
                                                     const ImportOptions& options) {
  const std::string_view head = bytes.peek(kLogHead);
  const LogFormat format = format_of(path, head, options);
  if (format == LogFormat::kKineto) return read_kineto(path, bytes).map(not_packed);
  const auto rows_of = [&](ByteStream& rows) -> Result<std::optional<PackedRecording>> {
    HR_TRYV(check_interval(options));
    bytes.be_bounded();
    auto recording = read_csv_log(path, rows, format, options);
    if (const auto sound = bytes.sound(); !sound) return tl::unexpected(within(path, sound.error()));
    return recording;
  };
  if (auto rows = is_utf16(head) ? std::nullopt : rows_in_records(bytes, head, options)) return rows_of(*rows);
  const bool as_it_stands =
      !has_prefixes(head) && !plain_lines(head, options.columns) && !timed_by_lines(head, options.columns);
  if (is_csv(format) && !is_utf16(head) && !is_unreadable(head) && as_it_stands) return rows_of(bytes);
  if (format == LogFormat::kNsys || (format == LogFormat::kRecording && !bytes.packed() && is_nsys(path)))
    return read_nsys(path).map(not_packed);
  if (format == LogFormat::kUnknown && !head.empty() && !is_utf16(head) && bytes.sound())
    return tl::unexpected(unknown_file(path, on_terminal(head).value_or(std::string(without_mark(head)))));
  return std::nullopt;
}

Result<Recording> import_file(const std::string& path, const ImportOptions& options) {
  HR_TRY(ByteStream bytes, ByteStream::open(path));
  HR_TRY(auto streamed, import_stream(path, bytes, options));
  if (streamed) return unpacked(std::move(*streamed));
  HR_TRY(const LogText log, LogText::open(path, std::move(bytes)));
  return import_log(path, log.text(), options);
}

}  // namespace headroom
