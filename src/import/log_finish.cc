// SPDX-License-Identifier: Apache-2.0
// The last part of an import: from rows in order of time to a recording.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "base/fnv.h"
#include "base/visible.h"
#include "import/log_builder.h"
#include "import/log_order.h"
#include "import/missing_rows.h"
#include "import/row_course.h"
#include "model/events.h"
#include "model/gpu_vendor.h"

namespace headroom {

namespace {

// Rows that name no GPU and come in tight groups are about several: nvidia-smi writes a round within milliseconds, and
// a round comes again and again.
bool looks_like_several(const GpuLog& gpu) {
  constexpr Nanos kTight = 100 * kMillisecond;
  constexpr std::size_t kMostGpus = 16;
  std::size_t tight = 0, wide = 0;
  for (std::size_t i = 1; i < gpu.at.size(); ++i) {
    const Nanos spacing = gpu.at[i] - gpu.at[i - 1];
    if (spacing < kTight)
      ++tight;
    else if (spacing > 5 * kTight)
      ++wide;
  }
  return tight * 4 > gpu.at.size() && wide >= 3 && wide * kMostGpus >= tight;
}

// Of one GPU rows come in order, or in the reverse order; of several, read one after the other and each with a time of
// its own, some step back.
bool step_back_now_and_then(const LogData& data) {
  constexpr std::int64_t kSome = 20, kMost = 2, kFewest = 10;  // of so many rows one; rows
  const auto rows = static_cast<std::int64_t>(data.gpus[0].at.size());
  const std::int64_t back = data.losses.count(LossKind::kOutOfOrderRow);
  return back >= kFewest && kSome * back >= rows && kMost * back <= rows + kSome;
}

// Rows of one GPU that have one time and differ, again and again, are rows of something smaller: of a GPU that no
// column names, of a process, of a metric. Of a log of whole seconds two may be samples, where it has rows every
// second and no column of processes.
bool shares_times(const LogData& data, const GpuLog& gpu) {
  constexpr std::size_t kFewest = 10;
  const auto& at = gpu.at;
  if (at.size() < 2 * kFewest || grows(at)) return false;
  std::vector<std::uint32_t> order(at.size());
  std::iota(order.begin(), order.end(), 0U);
  std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) { return at[a] < at[b]; });
  std::size_t near = 0, far = 0;  // rows of a time that another row had, which stands right before it or elsewhere
  PackedNumbers times;
  times.push_back(at[order[0]]);
  for (std::size_t i = 1; i < order.size(); ++i)
    if (at[order[i]] != times.back())
      times.push_back(at[order[i]]);
    else if (!rows_equal(gpu, order[i - 1], order[i]))
      ++(order[i - 1] + 1 == order[i] ? near : far);
  const bool seconds_apart = !data.whole_seconds || data.of_processes || median_spacing(times) > kSecond;
  return far * 20 > at.size() * 9 || (seconds_apart && near >= kFewest && near * 4 > at.size());
}

constexpr Nanos kMinute = 60 * kSecond;

// The rows of each time of a log in order.
std::vector<std::size_t> rows_of_times(const GpuLog& gpu) {
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < gpu.at.size(); ++i)
    i > 0 && gpu.at[i] == gpu.at[i - 1] ? void(++rows.back()) : rows.push_back(1);
  return rows;
}

// Rows that share whole minutes, of a GPU that they name; of one that they do not name where they are not as many in
// each, but for the first and the last, or more than a box has GPUs, where the interval says so, or the course of their
// readings: the seconds of their times were left out, as a spreadsheet does when it saves a log.
bool are_samples_of_minutes(const LogData& data, const GpuLog& gpu, Nanos interval) {
  constexpr std::size_t kFewest = 4, kMostGpus = 16;  // minutes
  if (!data.whole_minutes || data.of_processes || !std::is_sorted(gpu.at.begin(), gpu.at.end())) return false;
  const std::vector<std::size_t> rows = rows_of_times(gpu);
  if (rows.size() < kFewest) return false;
  const auto [least, most] = std::minmax_element(rows.begin() + 1, rows.end() - 1);
  if (*least < 2) return false;
  if (data.names_gpus || *least != *most || *least > kMostGpus || fills(interval, *least, kMinute)) return true;
  return course_of(gpu, rows.front() % *least, *least) == RowsOfOneTime::kSamples;
}

void apply_overrides(Device& device, const ImportOptions& options) {
  if (!options.device_name.empty()) device.name = options.device_name;
  if (options.power_limit_watts) device.power_limit_watts = options.power_limit_watts;
  if (options.memory_total_bytes) device.memory_total_bytes = options.memory_total_bytes;
}

// One row of each GPU, a little apart: they are of one moment.
void make_one_round(LogData& data) {
  Nanos first = std::numeric_limits<Nanos>::max(), last = std::numeric_limits<Nanos>::min();
  for (const GpuLog& gpu : data.gpus) {
    if (gpu.at.size() != 1) return;
    first = std::min(first, gpu.at[0]), last = std::max(last, gpu.at[0]);
  }
  if (last - first >= kSecond) return;
  for (GpuLog& gpu : data.gpus) gpu.at.set(0, last);
}

// What is not free is in use, or reserved by the driver; what is in use and what is free are the whole.
void take_free_memory(LogData& data, GpuLog& gpu, std::optional<std::int64_t> total) {
  if (gpu.free_memory.values.empty()) return;
  pad(gpu.free_memory, gpu.at.size());
  if (!total) total = gpu.device.memory_total_bytes;
  const PackedColumn* used = gpu.column(Metric::kMemoryUsed);
  if (!used && !total)
    return data.losses.add(LossKind::kColumnNotKept, 1, [] { return std::string("free memory, without the whole"); });
  if (!used) {
    PackedColumn column{Metric::kMemoryUsed, {}, gpu.free_memory.absent};
    for (std::size_t i = 0; i < gpu.at.size(); ++i)
      column.values.push_back(column.has(i) ? std::max<std::int64_t>(0, *total - gpu.free_memory.values[i]) : 0);
    gpu.columns.push_back(std::move(column));
  } else if (!total) {
    std::int64_t whole = 0;
    for (std::size_t i = 0; i < used->values.size(); ++i)
      if (used->has(i) && gpu.free_memory.has(i)) whole = std::max(whole, used->values[i] + gpu.free_memory.values[i]);
    if (whole > 0) gpu.device.memory_total_bytes = whole;
  }
}

// A log has one of the two; both are the power of about that moment.
void take_instant_power(GpuLog& gpu) {
  PackedColumn* instant = gpu.column(Metric::kPowerInstant);
  if (instant && !gpu.column(Metric::kPower)) instant->metric = Metric::kPower;
}

// The share of time in which an engine for kernels or graphics was active is the driver's utilisation, without copies.
void take_engine_activity(LogData& data) {
  for (GpuLog& gpu : data.gpus) {
    PackedColumn* active = gpu.column(Metric::kGraphicsActive);
    if (!active || gpu.column(Metric::kGpuUtil)) continue;
    gpu.columns.push_back(*active);
    gpu.columns.back().metric = Metric::kGpuUtil;
    data.losses.add(LossKind::kEngineActivity, 1, [] { return std::string("graphics_active_ratio"); });
  }
}

void take_power_limit(GpuLog& gpu) {
  const PackedColumn* limit = gpu.column(Metric::kPowerLimit);
  for (std::size_t i = 0; limit && i < limit->values.size(); ++i) {
    if (!limit->has(i)) continue;
    gpu.device.power_limit_watts = to_unit(Metric::kPowerLimit, limit->values[i]);
    return;
  }
}

// The values of ratios without a unit: all between 0 and 1, and some neither, is a fraction of one; nvidia-smi knows
// whole percents. Whole percents and fractions in one column are of two monitors, and a 1 may be either's.
struct ValuesOfRatio {
  static constexpr std::int64_t kOne = 100 * kOfOneScale;
  std::int64_t highest = 0, between = 0, below_one = 0, whole = 0;

  void add(std::int64_t value) {
    highest = std::max(highest, value);
    if (value % kOne != 0) ++between;
    if (value > 0 && value < kOne) ++below_one;
    if (value > kOne && value % kOne == 0) ++whole;
  }
  [[nodiscard]] bool are_fractions() const { return highest <= kOne && between > 0; }
  [[nodiscard]] bool are_of_two_monitors() const {
    constexpr std::int64_t kFewest = 3;
    return whole >= kFewest && below_one >= kFewest && below_one == between;
  }
};

Result<void> settle_fractions(LogData& data, const LogData::Scale& scale) {
  const Metric metric = data.slots[scale.slot];
  std::vector<PackedColumn*> columns;
  for (GpuLog& gpu : data.gpus)
    if (PackedColumn* column = gpu.column(metric)) columns.push_back(column);
  ValuesOfRatio seen;
  for (const PackedColumn* column : columns)
    for (const std::int64_t value : column->values) seen.add(value);
  if (!scale.says_percent && seen.are_of_two_monitors())
    return fail(Errc::kInvalidInput,
                fmt::format("{}: {} has {} values between 0 and 1 and {} whole numbers above: fractions of one and "
                            "percent in one column, and a 1 may be either",
                            data.name, info(metric).name, seen.below_one, seen.whole),
                "keep the rows of each monitor in a file of its own; nvidia-smi --query-gpu=… writes percent");
  const bool fraction = !scale.says_percent && seen.are_fractions();
  const std::int64_t unit = fraction ? 100 : kOfOneScale;
  for (PackedColumn* column : columns)
    column->values.change_all([&](std::int64_t value) { return (value + unit / 2) / unit; });
  if (fraction)
    data.losses.add(LossKind::kFractionOfOne, 1, [&] {
      return fmt::format(
          "{}: none of the values is above 1, and {} of them are no whole numbers: read as fractions, "
          "0.8 as 80 %",
          info(metric).name, seen.between);
    });
  return {};
}

// More memory in use than there is cannot be true.
void check_memory(LogData& data, GpuLog& gpu) {
  PackedColumn* used = gpu.column(Metric::kMemoryUsed);
  if (!used || !gpu.device.memory_total_bytes) return;
  for (std::size_t i = 0; i < used->values.size(); ++i) {
    if (!used->has(i) || used->values[i] <= *gpu.device.memory_total_bytes) continue;
    data.losses.add(LossKind::kValueOutOfRange, 1, [&] {
      return fmt::format("first at line {}: {} of {} bytes of memory in use", gpu.lines[i], used->values[i],
                         *gpu.device.memory_total_bytes);
    });
    if (used->absent.empty()) used->absent.assign(used->values.size(), 0);
    used->absent[i] = static_cast<std::uint8_t>(Absent::kGarbage);
    used->values.set(i, 0);
  }
}

// Home-made monitors often write used / total as "mem_util": that is how full the memory is, not how busy.
void check_memory_util(LogData& data, GpuLog& gpu) {
  const PackedColumn* util = gpu.column(Metric::kMemoryUtil);
  const PackedColumn* used = gpu.column(Metric::kMemoryUsed);
  if (data.format != LogFormat::kMonitorCsv || !util || !used || !gpu.device.memory_total_bytes) return;
  std::size_t rows = 0;
  double fullest = 0;
  for (std::size_t i = 0; i < util->values.size() && i < used->values.size(); ++i) {
    if (!util->has(i) || !used->has(i)) continue;
    const double full = static_cast<double>(used->values[i]) / static_cast<double>(*gpu.device.memory_total_bytes);
    if (std::abs(full - to_unit(Metric::kMemoryUtil, util->values[i])) > 0.0101) return;
    fullest = std::max(fullest, full);
    ++rows;
  }
  if (rows < 10 || fullest < 0.05) return;
  std::erase_if(gpu.columns, [](const PackedColumn& c) { return c.metric == Metric::kMemoryUtil; });
  data.losses.add(LossKind::kMemoryUtilIsOccupancy, 1, [] {
    return std::string(
        "the memory utilisation column is used / total in every row: how full the memory is, not how "
        "busy; left out");
  });
}

Nanos nominal_interval(LogData& data, const ImportOptions& options) {
  if (options.interval > 0) return options.interval;
  const auto longest = std::max_element(data.gpus.begin(), data.gpus.end(),
                                        [](const auto& a, const auto& b) { return a.at.size() < b.at.size(); });
  const Nanos spacing = median_spacing(longest->at);
  if (spacing > 0) return spacing;
  data.losses.add(LossKind::kAssumedInterval, 1, [] {
    return std::string("one row per GPU: it is taken to speak about 1 s (--log-interval says otherwise)");
  });
  return kSecond;
}

RecordingMeta make_meta(const LogData& data, Nanos interval, std::string_view origin) {
  RecordingMeta meta;
  std::uint64_t hash = fnv1a(data.name);  // over name and rows: the same log gets the same id
  const auto mix = [&](std::int64_t value) { hash = fnv1a(static_cast<std::uint64_t>(value), hash); };
  meta.start = std::numeric_limits<Nanos>::max();
  for (const GpuLog& gpu : data.gpus) {
    meta.start = std::min(meta.start, gpu.at.front() - interval);
    meta.end = std::max(meta.end, gpu.at.back());
    PackedNumbers::InOrder at = gpu.at.in_order();
    for (std::size_t i = 0; i < at.size(); ++i) mix(at[i]);
    for (const PackedColumn& column : gpu.columns)
      for (std::size_t i = 0; i < column.values.size(); i += 97) mix(column.values[i]);
  }
  meta.id = fmt::format("{:016x}", hash);
  meta.origin = fmt::format("import:{}", origin);
  meta.writer = "headroom " HEADROOM_VERSION;
  meta.tiers = "N";
  const bool of_nvidia = data.format == LogFormat::kNvidiaSmi || data.format == LogFormat::kSmiXml ||
                         data.format == LogFormat::kSmiText || data.format == LogFormat::kSmiQuery;
  const std::string why =
      fmt::format("{} has readings of GPUs only", !vendor_of(data.extra).empty()          ? "such a log"
                                                  : data.format == LogFormat::kMonitorCsv ? "a monitor's CSV"
                                                  : data.format == LogFormat::kDmon       ? "a log of nvidia-smi dmon"
                                                  : of_nvidia                             ? "a log of nvidia-smi"
                                                                                          : "such a log");
  for (const char tier : {'P', 'L', 'Y', 'X', 'C'}) meta.missing_tiers.push_back({tier, why});
  meta.start_realtime = meta.start;
  meta.interval = interval;
  meta.extra = data.extra;
  meta.extra["source_file"] = data.name;
  return meta;
}

// Positions in data.gpus in the order in which people count GPUs.
std::vector<std::size_t> by_index(const LogData& data) {
  std::vector<std::size_t> order(data.gpus.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return data.gpus[a].device.index < data.gpus[b].device.index; });
  return order;
}

PackedRecording assemble(LogData& data, const std::vector<std::size_t>& order, RecordingMeta meta) {
  PackedRecording made;
  Recording& recording = made.recording;
  recording.meta = std::move(meta);
  std::vector<SourceId> ids(data.gpus.size(), kNoSource);
  for (const std::size_t index : order) {
    GpuLog& gpu = data.gpus[index];
    ids[index] = static_cast<SourceId>(recording.sources.size());
    while (recording.find(SourceKind::kGpu, gpu.key)) gpu.key += "'";  // "0" and "GPU 0" in one log
    recording.sources.push_back({SourceKind::kGpu, gpu.key, kNoSource, to_attrs(gpu.device)});
    std::erase_if(gpu.columns, [](const PackedColumn& column) {  // a metric that no row of this GPU had
      return std::all_of(column.absent.begin(), column.absent.end(),
                         [](std::uint8_t a) { return a == static_cast<std::uint8_t>(Absent::kNotSampled); }) &&
             !column.absent.empty();
    });
    recording.tracks.emplace_back();
    made.packed.push_back({std::move(gpu.at), std::move(gpu.columns)});
  }
  for (Event& event : data.events) {
    if (event.source != kNoSource) event.source = ids[static_cast<std::size_t>(event.source)];
    recording.events.push_back(std::move(event));
  }
  std::stable_sort(recording.events.begin(), recording.events.end(),
                   [](const Event& a, const Event& b) { return a.at < b.at; });
  recording.losses = data.losses.all();
  for (Loss& loss : recording.losses)
    for (LossPlace& place : loss.places) place.source = ids[static_cast<std::size_t>(place.source)];
  return made;
}

// "GPU 4", "GPUs 4 to 7", "GPUs 0, 2 and 5".
std::string words_of_gpus(std::vector<int> indices) {
  std::sort(indices.begin(), indices.end());
  if (indices.size() == 1) return fmt::format("GPU {}", indices[0]);
  if (indices.size() > 2 && indices.back() - indices.front() + 1 == static_cast<int>(indices.size()))
    return fmt::format("GPUs {} to {}", indices.front(), indices.back());
  const int last = indices.back();
  indices.pop_back();
  return fmt::format("GPUs {} and {}", fmt::join(indices, ", "), last);
}

// "node1 (GPUs 0 to 3), node2 (GPUs 4 to 7)".
std::string words_of_hosts(const LogData& data) {
  constexpr std::size_t kNamed = 6;
  std::vector<std::pair<std::string, std::vector<int>>> hosts;
  for (const GpuLog& gpu : data.gpus) {
    auto known = std::find_if(hosts.begin(), hosts.end(), [&](const auto& host) { return host.first == gpu.host; });
    if (known == hosts.end()) known = hosts.insert(hosts.end(), {gpu.host, {}});
    known->second.push_back(gpu.device.index);
  }
  std::vector<std::string> words;
  for (const auto& [host, gpus] : hosts)
    if (words.size() < kNamed)
      words.push_back(fmt::format("{} ({})", host.empty() ? "one without a name" : host, words_of_gpus(gpus)));
  if (hosts.size() > kNamed) words.push_back(fmt::format("and {} others", hosts.size() - kNamed));
  return fmt::format("{}", fmt::join(words, ", "));
}

// Where rows are of several hosts, each GPU's is said behind its name.
void name_hosts(LogData& data) {
  const auto of_other_host = [&](const GpuLog& gpu) { return gpu.host != data.gpus[0].host; };
  const bool several = std::any_of(data.gpus.begin(), data.gpus.end(), of_other_host);
  const bool asked = data.format == LogFormat::kPrometheus && !data.gpus[0].host.empty();  // who asks may not know
  if (several || asked) data.extra["hosts"] = words_of_hosts(data);
  if (!several) return;
  for (GpuLog& gpu : data.gpus)
    gpu.device.name = gpu.device.name.empty() ? gpu.host : fmt::format("{} ({})", gpu.device.name, gpu.host);
}

std::string log_with_index(const LogData& data) {
  return vendor_of(data.extra).empty()
             ? "log with index or uuid: nvidia-smi --query-gpu=timestamp,index,utilization.gpu,…"
             : fmt::format("log with: {}", log_command(vendor_of(data.extra)));
}

// How far apart the rows of a minute are, as --log-interval says it.
std::string spread_over_a_minute(const GpuLog& gpu) {
  const std::vector<std::size_t> rows = rows_of_times(gpu);
  return fmt::format("{:.3g}s", seconds(kMinute) / static_cast<double>(*std::max_element(rows.begin(), rows.end())));
}

// kInvalidInput: several rows have one time, and nothing says what tells them apart.
Result<void> tell_rows_apart(LogData& data, GpuLog& gpu, const ImportOptions& options) {
  fill_columns(gpu);
  if (!shares_times(data, gpu)) return {};
  if (are_samples_of_minutes(data, gpu, options.interval)) {
    data.spread_over = kMinute;
    return {};
  }
  if (data.whole_minutes && !data.time_column.empty() && data.may_tell_apart.empty())
    return fail(Errc::kInvalidInput,
                fmt::format("{}: the log has several rows for one time, again and again, and its times tell whole "
                            "minutes: whether these are samples of one GPU or rows of several no column says",
                            data.name),
                fmt::format("samples of one GPU: --log-interval {} says so; else a {}", spread_over_a_minute(gpu),
                            log_with_index(data)));
  return fail(Errc::kInvalidInput,
              fmt::format("{}: {} has several rows for one time, again and again, and no column that is known says "
                          "what tells them apart (GPUs, processes, metrics), or the times are cut short",
                          data.name, data.names_gpus ? fmt::format("GPU {}", gpu.device.index) : "the log"),
              data.may_tell_apart.empty()
                  ? log_with_index(data)
                  : fmt::format("if '{0}' tells the GPUs apart: --columns {1}; else a {2}", data.may_tell_apart,
                                typed_word(data.may_tell_apart + "=index"), log_with_index(data)));
}

// kInvalidInput: rows that name no GPU are of several.
Result<void> are_of_one_gpu(LogData& data) {
  if (!data.names_gpus && data.has_times && looks_like_several(data.gpus[0]))
    return fail(Errc::kInvalidInput,
                fmt::format("{}: the rows are about several GPUs, and no column says which", data.name),
                log_with_index(data));
  if (!data.names_gpus && data.has_times && step_back_now_and_then(data))
    return fail(Errc::kInvalidInput,
                fmt::format("{}: times step back again and again, as where rows are about several GPUs, and no column "
                            "says which",
                            data.name),
                fmt::format("{}; rows of one GPU: sort them by time", log_with_index(data)));
  return {};
}

}  // namespace

Result<PackedRecording> finish_log(LogData data, const ImportOptions& options) {
  settle_rows_below_times(data, options.interval);
  for (const LogData::Scale& scale : data.scales)
    if (scale.open) HR_TRYV(settle_fractions(data, scale));
  take_engine_activity(data);
  for (GpuLog& gpu : data.gpus) take_free_memory(data, gpu, options.memory_total_bytes);
  for (std::size_t i = 0; i < data.gpus.size() && data.has_times; ++i)
    HR_TRYV(tell_rows_apart(data, data.gpus[i], options));
  name_hosts(data);
  for (std::size_t i = 0; i < data.gpus.size(); ++i) put_in_order(data, i);
  close_leaps(data);
  make_one_round(data);
  for (std::size_t i = 0; i < data.gpus.size(); ++i) {
    GpuLog& gpu = data.gpus[i];
    apply_overrides(gpu.device, options);
    take_power_limit(gpu);
    take_instant_power(gpu);
    if (options.power_limit_watts) gpu.device.power_limit_watts = options.power_limit_watts;
    check_memory(data, gpu);
    check_memory_util(data, gpu);
  }
  HR_TRYV(are_of_one_gpu(data));
  if (!data.names_gpus && !data.by_order)
    data.losses.add(LossKind::kNoGpuColumn, 1,
                    [] { return std::string("no column says which GPU a row is about: taken as one GPU"); });
  const std::vector<std::size_t> order = by_index(data);
  const Nanos interval = nominal_interval(data, options);
  for (const std::size_t index : order) find_gaps(data, index, interval);
  count_missing(data, order, interval, options.interval > 0);
  RecordingMeta meta = make_meta(data, interval, log_format_name(data.format));
  const std::vector<PhaseBegin> phases = phases_of_rows(data, interval);
  PackedRecording made = assemble(data, order, std::move(meta));
  add_phases(phases, made.recording);
  keep_in_bounds(made);
  return made;
}

}  // namespace headroom
