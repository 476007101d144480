// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <set>
#include <unordered_map>

#include "base/strings.h"
#include "import/trace.h"
#include "import/trace_builder.h"
#include "model/bounds.h"

namespace headroom {

namespace {

// https://docs.nvidia.com/nsight-systems/UserGuide/ (SQLite export): tables are there if something was seen for them,
// and columns differ from version to version.
constexpr std::array<std::string_view, 11> kTables{"CUPTI_ACTIVITY_KIND_KERNEL",
                                                   "CUPTI_ACTIVITY_KIND_MEMCPY",
                                                   "CUPTI_ACTIVITY_KIND_MEMSET",
                                                   "CUPTI_ACTIVITY_KIND_RUNTIME",
                                                   "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
                                                   "NVTX_EVENTS",
                                                   "StringIds",
                                                   "TARGET_INFO_GPU",
                                                   "TARGET_INFO_SESSION_START_TIME",
                                                   "ENUM_CUDA_MEM_KIND",
                                                   "PROCESSES"};

constexpr std::size_t kLongestName = 300;                      // characters; no rule asks for what is further in
constexpr std::size_t kMostNameBytes = std::size_t{64} << 20;  // of all names together
constexpr std::size_t kPerName = 64;                           // bytes, what the map takes for one

// A process and thread as one number: 8 bits of hardware, 8 of a virtual machine, 24 of the process, 24 of the thread.
std::int64_t pid_of(std::int64_t global) { return global >> 24 & 0xff'ffff; }
TraceBuilder::Thread thread_of(std::int64_t global) { return {pid_of(global), global & 0xff'ffff}; }

// Numbers of calls are those of a process.
TraceBuilder::Correlation correlation_of(std::int64_t global, std::int64_t number) {
  return number <= 0
             ? 0
             : static_cast<std::uint64_t>(pid_of(global)) << 32 | (static_cast<std::uint64_t>(number) & 0xffff'ffff);
}

bool is_of_python(std::string_view name) {
  constexpr std::array<std::string_view, 14> kSigns{
      "python",     "Python", ".py", "at::",    "aten::", "torch", "Torch",
      "tensorflow", "xla",    "jax", "triton_", "cupy",   "numba", "autograd"};
  return std::any_of(kSigns.begin(), kSigns.end(), [&](auto sign) { return name.find(sign) != name.npos; });
}

class NsysReader {
 public:
  NsysReader(const std::string& name, Database& database)
      : name_(name), database_(database), builder_(name, "nsys", "Nsight Systems") {}

  Result<Recording> read() {
    HR_TRYV(database_.check_stored_tables(kTables));
    HR_TRYV(find_columns());
    HR_TRYV(facts());
    HR_TRYV(names());
    HR_TRYV(kernels());
    HR_TRYV(copies());
    HR_TRYV(calls());
    HR_TRYV(ranges());
    if (!of_python()) builder_.extra()["python"] = "no sign of it";
    HR_TRY(const Nanos zero, session_start());
    return builder_.finish(zero, "nvtx");
  }

 private:
  Result<void> find_columns() {
    for (const std::string_view table : kTables) {
      HR_TRY(Statement rows, database_.prepare(fmt::format("PRAGMA table_info({})", table)));
      for (;;) {
        HR_TRY(const bool more, rows.step());
        if (!more) break;
        columns_.insert(fmt::format("{}.{}", table, rows.bytes(1)));
      }
    }
    return {};
  }
  [[nodiscard]] bool has(std::string_view column) const { return columns_.contains(column); }
  // The column, or what stands for it in versions that lack it.
  [[nodiscard]] std::string column(std::string_view table, std::string_view column, std::string_view otherwise) const {
    return has(fmt::format("{}.{}", table, column)) ? fmt::format("t.\"{}\"", column) : std::string(otherwise);
  }
  // The text that a number in that column stands for; "" where there is none.
  [[nodiscard]] std::string_view name_at(Statement& row, int column) const {
    if (row.is_null(column)) return {};
    const auto known = names_.find(row.integer(column));
    if (known != names_.end()) return known->second;
    return names_left_out_ ? std::string_view("other names") : std::string_view();
  }
  // One row after another of a table that has a begin and an end; nothing where there is no such table.
  template <class Take>
  Result<void> each(std::string_view table, const std::string& columns, const Take& take, std::string_view where = "") {
    if (!has(fmt::format("{}.start", table)) || !has(fmt::format("{}.end", table))) return {};
    HR_TRY(Statement rows,
           database_.prepare(fmt::format("SELECT t.start, t.\"end\", {} FROM {} t {}", columns, table, where)));
    for (;;) {
      auto more = rows.step();
      if (!more && more.error().code == Errc::kCorrupt && read_ > 0) return stopped(table, more.error());
      if (!more) return tl::unexpected(within(name_, more.error()));
      if (!*more) return {};
      const Nanos begin = rows.integer(0), end = rows.integer(1);
      if (rows.is_null(0) || rows.is_null(1) || begin < kEarliest || end > kLatest || end < begin) {
        builder_.losses().add(LossKind::kUnreadableEvent, 1,
                              [&] { return fmt::format("first: a row of {} without a begin and an end", table); });
        continue;
      }
      ++read_;
      take(rows, begin, end);
    }
  }
  // Of a file that was cut, what stands before.
  Result<void> stopped(std::string_view table, const Error& error) {
    builder_.losses().add(LossKind::kTruncatedTrace, 1, [&] {
      return fmt::format("{} ends early ({}); {} rows before it are used", table, error.what, read_);
    });
    return {};
  }

  // Whether a name is one of Python or of a framework that it drives: of a program, a library, a kernel or a range.
  [[nodiscard]] bool of_python() const {
    return framework_ ||
           std::any_of(names_.begin(), names_.end(), [](const auto& one) { return is_of_python(one.second); });
  }

  Result<void> facts();
  Result<void> names();
  Result<void> kernels();
  // Which number of a memory's kind says so; -1: none.
  Result<std::int64_t> memory_kind(std::string_view label);
  Result<void> copies();
  Result<void> calls();
  Result<void> ranges();
  Result<Nanos> session_start();
  [[nodiscard]] bool good_device(std::int64_t device, std::string_view table);

  const std::string& name_;
  Database& database_;
  TraceBuilder builder_;
  std::set<std::string, std::less<>> columns_;
  std::unordered_map<std::int64_t, std::string> names_;  // of StringIds
  bool names_left_out_ = false;
  bool framework_ = false;  // a range has a name of Python or of a framework of it
  std::int64_t read_ = 0;
};

bool NsysReader::good_device(std::int64_t device, std::string_view table) {
  if (device >= 0 && device < 1024) return true;
  builder_.losses().add(LossKind::kUnreadableEvent, 1,
                        [&] { return fmt::format("first: a row of {} of GPU {}", table, device); });
  return false;
}

Result<void> NsysReader::facts() {
  constexpr std::string_view kGpus = "TARGET_INFO_GPU";
  if (!has("TARGET_INFO_GPU.id")) return {};
  HR_TRY(Statement rows, database_.prepare(fmt::format("SELECT {}, {}, {}, {}, {} FROM TARGET_INFO_GPU t",
                                                       column(kGpus, "cuDevice", "t.id"), column(kGpus, "name", "''"),
                                                       column(kGpus, "totalMemory", "0"), column(kGpus, "uuid", "''"),
                                                       column(kGpus, "busLocation", "''"))));
  for (;;) {
    HR_TRY(const bool more, rows.step());
    if (!more) return {};
    const std::int64_t index = rows.integer(0);
    if (index < 0 || index >= 1024) continue;
    Device& device = builder_.device(static_cast<int>(index));
    device.name = rows.bytes(1);
    if (rows.integer(2) > 0) device.memory_total_bytes = rows.integer(2);
    constexpr std::size_t kUuid = 36;  // "8-4-4-4-12"
    const std::string_view uuid = rows.bytes(3);
    if (uuid.starts_with("GPU-")) device.uuid = uuid;
    if (uuid.size() == kUuid && uuid[8] == '-') device.uuid = fmt::format("GPU-{}", uuid);
    device.pci_bus_id = rows.bytes(4);
  }
}

// All at once: a name is read as often as it stands there, and not as often as it is used.
Result<void> NsysReader::names() {
  if (!has("StringIds.id") || !has("StringIds.value")) return {};
  HR_TRY(Statement rows,
         database_.prepare(fmt::format("SELECT id, substr(value, 1, {}) FROM StringIds", kLongestName)));
  std::size_t bytes = 0;
  for (;;) {
    auto more = rows.step();
    if (!more && more.error().code == Errc::kCorrupt && !names_.empty()) return stopped("StringIds", more.error());
    if (!more) return tl::unexpected(within(name_, more.error()));
    if (!*more) return {};
    const std::string_view name = rows.bytes(1);
    if (bytes + kPerName + name.size() > kMostNameBytes) {
      names_left_out_ = true;
      builder_.losses().add(LossKind::kColumnNotKept, 1, [&] {
        return fmt::format("names of StringIds beyond {} MiB: what has one of them is called other names",
                           kMostNameBytes >> 20U);
      });
      return {};
    }
    if (names_.try_emplace(rows.integer(0), name).second) bytes += kPerName + name.size();
  }
}

Result<void> NsysReader::kernels() {
  constexpr std::string_view kKernels = "CUPTI_ACTIVITY_KIND_KERNEL", kGraphs = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";
  const auto take = [&](std::string_view table) {
    return [this, table](Statement& row, Nanos begin, Nanos end) {
      const std::int64_t device = row.integer(2), global = row.integer(4);
      if (!good_device(device, table)) return;
      const bool talks = is_communication(name_at(row, 5));
      builder_.work(static_cast<int>(device), talks ? GpuWork::kCommunication : GpuWork::kKernel, begin, end,
                    correlation_of(global, row.integer(3)));
    };
  };
  HR_TRYV(each(kKernels,
               fmt::format("t.deviceId, {}, {}, {}", column(kKernels, "correlationId", "0"),
                           column(kKernels, "globalPid", "0"), column(kKernels, "shortName", "NULL")),
               take(kKernels)));
  const std::int64_t before = read_;
  HR_TRYV(each(
      kGraphs,
      fmt::format("t.deviceId, {}, {}, NULL", column(kGraphs, "correlationId", "0"), column(kGraphs, "globalPid", "0")),
      take(kGraphs)));
  if (read_ > before)
    builder_.losses().add(LossKind::kGraphsAsKernels, read_ - before, [] {
      return std::string("the kernels within them: nsys profile --cuda-graph-trace=node shows each");
    });
  return {};
}

Result<std::int64_t> NsysReader::memory_kind(std::string_view label) {
  if (!has("ENUM_CUDA_MEM_KIND.label")) return std::int64_t{-1};
  HR_TRY(Statement kind, database_.prepare(fmt::format("SELECT id FROM ENUM_CUDA_MEM_KIND WHERE label = '{}'", label)));
  HR_TRY(const bool known, kind.step());
  return known ? kind.integer(0) : std::int64_t{-1};
}

Result<void> NsysReader::copies() {
  constexpr std::string_view kCopies = "CUPTI_ACTIVITY_KIND_MEMCPY", kSets = "CUPTI_ACTIVITY_KIND_MEMSET";
  HR_TRY(const std::int64_t pageable, memory_kind("Pageable"));
  HR_TRY(const std::int64_t pinned, memory_kind("Pinned"));
  bool with_host = false, all_pinned = true;
  HR_TRYV(each(kCopies,
               fmt::format("t.deviceId, {}, {}, {}, {}, {}, {}, {}", column(kCopies, "correlationId", "0"),
                           column(kCopies, "globalPid", "0"), column(kCopies, "copyKind", "0"),
                           column(kCopies, "srcKind", "-2"), column(kCopies, "dstKind", "-2"),
                           column(kCopies, "srcDeviceId", "-1"), column(kCopies, "dstDeviceId", "-1")),
               [&](Statement& row, Nanos begin, Nanos end) {
                 if (!good_device(row.integer(2), kCopies)) return;
                 constexpr std::int64_t kToDevice = 1, kToHost = 2, kToPeer = 10;  // CUpti_ActivityMemcpyKind
                 GpuWork what = GpuWork::kCopyOnDevice;
                 if (row.integer(5) == kToDevice)
                   what = row.integer(6) == pageable ? GpuWork::kPageableToDevice : GpuWork::kCopyToDevice;
                 if (row.integer(5) == kToHost)
                   what = row.integer(7) == pageable ? GpuWork::kPageableToHost : GpuWork::kCopyToHost;
                 const std::int64_t host = row.integer(5) == kToDevice ? row.integer(6)
                                           : row.integer(5) == kToHost ? row.integer(7)
                                                                       : pinned;
                 with_host |= row.integer(5) == kToDevice || row.integer(5) == kToHost;
                 all_pinned &= pinned >= 0 && host == pinned;
                 const bool between = row.integer(5) == kToPeer || row.integer(8) != row.integer(9);
                 if (between && what == GpuWork::kCopyOnDevice) what = GpuWork::kCopyToPeer;
                 builder_.work(static_cast<int>(row.integer(2)), what, begin, end,
                               correlation_of(row.integer(4), row.integer(3)));
               }));
  if (with_host && all_pinned) builder_.extra()["host_copies"] = "pinned";
  return each(kSets,
              fmt::format("t.deviceId, {}, {}", column(kSets, "correlationId", "0"), column(kSets, "globalPid", "0")),
              [&](Statement& row, Nanos begin, Nanos end) {
                if (good_device(row.integer(2), kSets))
                  builder_.work(static_cast<int>(row.integer(2)), GpuWork::kMemset, begin, end,
                                correlation_of(row.integer(4), row.integer(3)));
              });
}

Result<void> NsysReader::calls() {
  constexpr std::string_view kCalls = "CUPTI_ACTIVITY_KIND_RUNTIME";
  return each(
      kCalls,
      fmt::format("t.globalTid, {}, {}", column(kCalls, "correlationId", "0"), column(kCalls, "nameId", "NULL")),
      [&](Statement& row, Nanos begin, Nanos end) {
        std::string_view name = name_at(row, 4);  // "cudaLaunchKernel_v7000"
        if (const auto version = name.rfind("_v"); version != std::string_view::npos) name = name.substr(0, version);
        builder_.call(thread_of(row.integer(2)), name, begin, end, correlation_of(row.integer(2), row.integer(3)));
      });
}

Result<void> NsysReader::ranges() {
  constexpr std::string_view kRanges = "NVTX_EVENTS";
  if (!has("NVTX_EVENTS.globalTid")) return {};
  // 59: pushed and popped, 60: started and ended; 70 and 71 the same, from a text file. What else stands there, such as
  // marks and the names of domains, has no end by nature; a range has none that the program never closed, and of that
  // nobody knows how far it went.
  constexpr std::string_view kOfRanges = "WHERE t.eventType IN (59, 60, 70, 71) AND t.\"end\" IS";
  const bool typed = has("NVTX_EVENTS.eventType");
  const std::string name_columns = fmt::format("substr({}, 1, {}), {}", column(kRanges, "text", "NULL"), kLongestName,
                                               column(kRanges, "textId", "NULL"));
  const auto name_in = [this](Statement& row, int at) {
    return row.is_null(at) ? name_at(row, at + 1) : row.bytes(at);
  };
  HR_TRYV(each(
      kRanges, fmt::format("t.globalTid, {}", name_columns),
      [&](Statement& row, Nanos begin, Nanos end) {
        const auto name = name_in(row, 3);
        if (name.empty()) return;
        framework_ |= is_of_python(name);
        builder_.annotation(thread_of(row.integer(2)), name, begin, end);
      },
      typed ? fmt::format("{} NOT NULL", kOfRanges) : std::string()));
  if (!typed || !has("NVTX_EVENTS.end")) return {};
  HR_TRY(Statement open,
         database_.prepare(fmt::format("SELECT {} FROM {} t {} NULL", name_columns, kRanges, kOfRanges)));
  for (;;) {
    auto more = open.step();
    if (!more && more.error().code == Errc::kCorrupt && read_ > 0) return stopped(kRanges, more.error());
    if (!more) return tl::unexpected(within(name_, more.error()));
    if (!*more) return {};
    builder_.losses().add(LossKind::kOpenRange, 1,
                          [&] { return fmt::format("first: the range '{}' of NVTX", name_in(open, 0)); });
  }
}

Result<Nanos> NsysReader::session_start() {
  if (!has("TARGET_INFO_SESSION_START_TIME.utcEpochNs")) return 0;
  HR_TRY(const std::int64_t at, database_.number("SELECT utcEpochNs FROM TARGET_INFO_SESSION_START_TIME"));
  return at >= 0 && at <= kLatest ? at : 0;
}

Result<Database> open_export(const std::string& path) {
  constexpr std::int64_t kAnyFile = std::int64_t{1} << 28, kPerByte = 1000;
  HR_TRY(Database database, Database::open(immutable_name(path), Access::kReadOnly));
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  database.limit_steps(kAnyFile + kPerByte * static_cast<std::int64_t>(error ? 0 : size));
  return database;
}

}  // namespace

bool is_nsys(const std::string& path) {
  auto database = open_export(path);
  if (!database) return false;
  const auto tables = database->number(
      "SELECT COUNT(*) FROM sqlite_master WHERE type='table' AND "
      "(name LIKE 'CUPTI@_ACTIVITY@_KIND@_%' ESCAPE '@' OR name = 'NVTX_EVENTS' OR name = "
      "'TARGET_INFO_SESSION_START_TIME')");
  return tables.value_or(0) > 0;
}

Result<Recording> read_nsys(const std::string& path) {
  auto database = open_export(path);
  if (!database) return tl::unexpected(within(path, database.error()));
  return read_nsys(path, *database);
}

Result<Recording> read_nsys(const std::string& name, Database& database) { return NsysReader(name, database).read(); }

}  // namespace headroom
