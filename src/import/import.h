// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "import/byte_stream.h"
#include "import/log_date.h"
#include "model/packed_recording.h"

namespace headroom {

// What a file that a person calls a log turns out to be. Recordings and JSONL have readers of their own.
enum class LogFormat : std::uint8_t {
  kUnknown,
  kRecording,
  kJsonl,
  kNvidiaSmi,
  kDmon,
  kMonitorCsv,
  kSmiXml,
  kSmiText,
  kSmiQuery,
  kPmon,
  kGpustat,
  kJsonRows,
  kRocmText,
  kAmdText,
  kTegrastats,
  kRadeontop,
  kPowermetrics,
  kAfterburner,
  kTypeperf,
  kInflux,
  kLines,
  kDcgm,
  kPrometheus,
  kScrapes,
  kLongCsv,
  kExportCsv,
  kKineto,
  kNsys,
  kStepTimes,
};

[[nodiscard]] std::string_view log_format_name(LogFormat format);  // "nvidia-smi", "dmon", "monitor-csv", "hrec", …
[[nodiscard]] std::optional<LogFormat> log_format_of(std::string_view name);

// By content alone: its beginning, never the file's name. A file of SQLite is taken for a recording.
[[nodiscard]] LogFormat sniff_log(std::string_view text);
// The same for a file, of SQLite by the tables in it.
[[nodiscard]] Result<LogFormat> format_of_file(const std::string& path);

struct ImportOptions {
  std::optional<LogFormat> format;  // instead of looking at the content
  // The names of the columns, in order, separated by commas, instead of the log's header; or "name=metric,…": what the
  // header's names are. "-" skips a column.
  std::string columns;
  Nanos interval = 0;  // nominal time between rows of a GPU; 0: the log's own (1 s where it has no times)
  DateOrder date_order = DateOrder::kUnknown;  // of dates that do not tell: "02-11-2025"
  std::optional<Nanos> start_date;             // midnight (local to the log) of the first row, for logs without dates
  // Seconds east of UTC for a local time in seconds since 1970; empty: the log's times are UTC. Only for times that do
  // not carry a zone themselves.
  std::function<std::int64_t(std::int64_t)> utc_offset;
  // What the log does not say, or says wrongly; applied to every device.
  std::optional<double> power_limit_watts;
  std::optional<std::int64_t> memory_total_bytes;
  std::string device_name;
};

// "utc", "local" (this machine's zone), or a fixed offset such as "+05:30": for ImportOptions::utc_offset.
[[nodiscard]] Result<std::function<std::int64_t(std::int64_t)>> utc_offset_of(std::string_view text);
// "2025-11-05": for ImportOptions::start_date.
[[nodiscard]] Result<Nanos> start_date_of(std::string_view text);

// A foreign log as a recording. Instants are Unix time. A row speaks about the time since the row before it, so the
// recording begins one nominal interval before the first row. What had to be mended or was lost is in `losses`.
// kInvalidInput when nothing of it can be used: "NAME:LINE:COLUMN: what", and the next step as the hint.
[[nodiscard]] Result<Recording> import_log(const std::string& name, std::string_view text,
                                           const ImportOptions& options);
// The same for a file, a pipe or "-".
[[nodiscard]] Result<Recording> import_file(const std::string& path, const ImportOptions& options);
// The same for traces and for logs that are CSV, as their bytes come, and the error of what is no log by its beginning;
// nothing, and the bytes as they were, for all else.
[[nodiscard]] Result<std::optional<PackedRecording>> import_stream(const std::string& path, ByteStream& bytes,
                                                                   const ImportOptions& options);
// What can be read, a line each with the command that writes it: for people.
[[nodiscard]] std::string formats_text();

// The text of a log, unpacked if it is packed. A plain file is mapped, not read; a pipe and standard input ("-") are
// read to their end.
class LogText {
 public:
  [[nodiscard]] static Result<LogText> open(const std::string& path);
  // Of a stream of which nothing was taken.
  [[nodiscard]] static Result<LogText> open(const std::string& path, ByteStream bytes);
  LogText(LogText&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(other.size_), copy_(std::move(other.copy_)) {}
  LogText& operator=(LogText&&) = delete;
  LogText(const LogText&) = delete;
  LogText& operator=(const LogText&) = delete;
  ~LogText();
  [[nodiscard]] std::string_view text() const {
    return data_ ? std::string_view(static_cast<const char*>(data_), size_) : std::string_view(copy_);
  }
  [[nodiscard]] bool was_packed() const { return packed_; }

 private:
  LogText() = default;
  void* data_ = nullptr;
  std::size_t size_ = 0;
  std::string copy_;
  bool packed_ = false;
};

}  // namespace headroom
