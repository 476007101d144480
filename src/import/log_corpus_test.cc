// SPDX-License-Identifier: Apache-2.0
// Tables as people write them, made at random: whatever has a time and a reading of a GPU is read, to what was written.
#include <algorithm>
#include <cmath>
#include <ctime>
#include <functional>
#include <map>
#include <random>

#include "import/log_test_support.h"

namespace headroom {
namespace {

constexpr int kTables = 2000;

struct Spelled {
  Metric metric;
  double scale;                    // what is written, times this, is the metric in its unit
  std::vector<std::string> names;  // with {}: the number of the GPU
};
const std::vector<Spelled> kSpelled{
    {Metric::kGpuUtil,
     0.01,
     {"gpu_util", "utilization.gpu [%]", "GPU Utilization (%)", "gpuUtil", "utilization_gpu_percent", "GPU use (%)",
      "gpu_load_pct", "Auslastung GPU (%)", "Utilisation GPU (%)"}},
    {Metric::kMemoryUsed,
     1048576.0,
     {"memory.used [MiB]", "gpu_mem_used_mb", "Memory Used (MB)", "gpuMemoryUsed [MiB]", "vram_used_mib"}},
    {Metric::kPower, 1, {"power.draw [W]", "power_w", "Power (W)", "gpu_power_draw_watts", "powerWatts"}},
    {Metric::kTemperature, 1, {"temperature.gpu", "temp_c", "GPU Temperature (C)", "gpu_temp", "gpuTemp"}},
    {Metric::kSmClock, 1, {"clocks.sm [MHz]", "sm_clock_mhz", "gpu clock (MHz)", "graphics_clock"}},
};
const std::vector<Spelled> kSpelledPerGpu{
    {Metric::kGpuUtil,
     0.01,
     {"gpu{}_util", "GPU {} Utilization (%)", "system.gpu.{}.gpu", "gpu_{}_utilization_percent",
      "sys.gpu.{}.gpu_utilization"}},
    {Metric::kMemoryUsed,
     1048576.0,
     {"gpu{}_mem_used_mb", "GPU {} Memory Used (MiB)", "system.gpu.{}.memoryAllocatedMB"}},
    {Metric::kPower, 1, {"gpu{}_power_w", "GPU {} Power (W)", "system.gpu.{}.powerWatts"}},
};
const std::vector<std::string> kOthers{"cpu_percent", "ram_used_gb", "disk_read_mb", "epoch_number",
                                       "loss",        "host",        "net_sent_mb"};

struct Clock {
  const char* name;
  std::string (*text)(Nanos at);
};
std::string calendar(Nanos at, const char* form) {
  const std::time_t second = at / kSecond;
  std::tm parts{};
  ::gmtime_r(&second, &parts);
  char text[64];
  (void)std::strftime(text, sizeof text, form, &parts);
  return text;
}
const std::vector<Clock> kClocks{
    {"timestamp", [](Nanos at) { return calendar(at, "%Y/%m/%d %H:%M:%S.000"); }},
    {"Time", [](Nanos at) { return calendar(at, "%Y-%m-%dT%H:%M:%S"); }},
    {"datetime", [](Nanos at) { return calendar(at, "%Y-%m-%d %H:%M:%S+00:00"); }},
    {"date", [](Nanos at) { return calendar(at, "%a %b %e %H:%M:%S %Y"); }},
    {"created_at", [](Nanos at) { return calendar(at, "%a %b %d %I:%M:%S %p UTC %Y"); }},
    {"time_stamp", [](Nanos at) { return calendar(at, "%Y%m%d-%H%M%S"); }},
    {"local_time", [](Nanos at) { return calendar(at, "%d.%m.%Y %H:%M:%S"); }},
    {"Date", [](Nanos at) { return calendar(at, "%m/%d/%Y %I:%M:%S %p"); }},
    {"log_time", [](Nanos at) { return calendar(at, "%d-%m-%Y %H:%M:%S"); }},
    {"epoch_time", [](Nanos at) { return fmt::format("{}", at / kSecond); }},
    {"unix_time_ms", [](Nanos at) { return fmt::format("{}", at / kMillisecond); }},
    {"ts", [](Nanos at) { return fmt::format("{:.3f}", static_cast<double>(at / kMillisecond) / 1000); }},
    {"elapsed_s", [](Nanos at) { return fmt::format("{}", (at - kT0) / kSecond); }},
    {"runtime", [](Nanos at) { return fmt::format("{:.1f}", seconds(at - kT0)); }},
    {"elapsed",
     [](Nanos at) {
       const auto s = (at - kT0) / kSecond;
       return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
     }},
    {"when", [](Nanos at) { return calendar(at, "%m/%d/%Y %I:%M:%S\xe2\x80\xaf%p"); }},
    {"Horodatage", [](Nanos at) { return calendar(at, "%d/%m/%Y %H:%M:%S"); }},
    {"elapsed_ms", [](Nanos at) { return fmt::format("{}", (at - kT0) / kMillisecond); }},
    {"monotonic_ns", [](Nanos at) { return fmt::format("{}", at - kT0 + 48'123'000'000'789); }},
    {"logged", [](Nanos at) { return calendar(at, "%b %d %H:%M:%S"); }},
    {"measured_at",
     [](Nanos at) { return calendar(at, "%a %b %d %Y %H:%M:%S") + " GMT+0000 (Coordinated Universal Time)"; }},
};

class Table {
 public:
  explicit Table(std::uint32_t seed) : random_(seed) {
    gpus_ = one_in(2) ? 1 : 2 + below(3);
    per_gpu_ = one_in(3);
    fraction_ = one_in(6);
    separator_ = one_in(5) ? ";" : one_in(5) ? "\t" : one_in(2) ? "," : ", ";
    clock_ = &kClocks[below(kClocks.size())];
    quoted_ = separator_.starts_with(',') && one_in(6);
    comma_ = separator_ == ";" && one_in(2);
    rows_ = 12 + below(40);
    interval_ = static_cast<Nanos>(1 + below(20)) * kSecond;
    // 13 November: a number above 12 tells the order; the times begin there, so that no other day has to.
    begin_ = kT0 + 8 * 86'400 * kSecond;
    const std::string_view clock = clock_->name;
    if (clock.starts_with("elapsed") || clock == "runtime" || clock.starts_with("monotonic")) begin_ = kT0;
    columns();
    write();
  }

  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] std::size_t gpus() const { return gpus_; }
  [[nodiscard]] std::size_t rows() const { return at_.size(); }
  [[nodiscard]] double span() const { return seconds(at_.back() - at_.front()); }
  [[nodiscard]] const std::map<Metric, std::vector<std::vector<double>>>& truth() const { return truth_; }  // by GPU

 private:
  std::size_t below(std::size_t end) { return random_() % end; }
  bool one_in(std::size_t n) { return below(n) == 0; }

  struct Column {
    std::string name;
    std::size_t spelled = 0, gpu = 0;  // of kSpelled; of a column per GPU
    enum class Kind { kTime, kIndex, kMetric, kOther } kind = Kind::kOther;
  };

  void columns() {
    const auto& spelled = per_gpu_ ? kSpelledPerGpu : kSpelled;
    std::vector<std::size_t> chosen{below(spelled.size())};
    for (std::size_t i = 0; i < spelled.size(); ++i)
      if (i != chosen[0] && one_in(2)) chosen.push_back(i);
    const std::size_t style = below(3);  // whoever writes a table has one way to spell
    for (const std::size_t i : chosen)
      for (std::size_t gpu = 0; gpu < (per_gpu_ ? gpus_ : 1); ++gpu) {
        const auto& names = spelled[i].names;
        std::string name = names[per_gpu_ ? style % names.size() : below(names.size())];
        if (const auto open = name.find("{}"); open != std::string::npos) name.replace(open, 2, std::to_string(gpu));
        if (fraction_ && spelled[i].metric == Metric::kGpuUtil)
          name = per_gpu_ ? fmt::format("gpu{}_util", gpu) : "gpu_util";
        columns_.push_back({std::move(name), i, gpu, Column::Kind::kMetric});
      }
    if (gpus_ > 1 && !per_gpu_) columns_.push_back({one_in(2) ? "index" : "gpu_id", 0, 0, Column::Kind::kIndex});
    for (const auto& other : kOthers)
      if (one_in(3)) columns_.push_back({other, 0, 0, Column::Kind::kOther});
    std::shuffle(columns_.begin(), columns_.end(), random_);
    columns_.insert(columns_.begin() + static_cast<std::ptrdiff_t>(below(columns_.size() + 1)),
                    {clock_->name, 0, 0, Column::Kind::kTime});
  }

  std::string number(double value, int digits) {
    std::string text = fmt::format("{:.{}f}", value, digits);
    if (comma_) std::replace(text.begin(), text.end(), '.', ',');
    return text;
  }

  std::string reading(const Column& column, std::size_t gpu) {
    const Spelled& spelled = (per_gpu_ ? kSpelledPerGpu : kSpelled)[column.spelled];
    const auto written = static_cast<double>(spelled.metric == Metric::kMemoryUsed    ? 500 + below(20'000)
                                             : spelled.metric == Metric::kTemperature ? 30 + below(60)
                                             : spelled.metric == Metric::kSmClock     ? 200 + below(1800)
                                             : spelled.metric == Metric::kPower       ? 20 + below(300)
                                                                                      : below(101));
    auto& of_gpus = truth_[spelled.metric];
    of_gpus.resize(gpus_);
    of_gpus[gpu].push_back(written * spelled.scale);
    if (fraction_ && spelled.metric == Metric::kGpuUtil) return number(written / 100, 2);
    return spelled.metric == Metric::kPower ? number(written, 1) : fmt::format("{:.0f}", written);
  }

  void line(const std::vector<std::string>& cells) {
    for (std::size_t i = 0; i < cells.size(); ++i)
      text_ += fmt::format("{}{}", i == 0 ? "" : separator_, quoted_ ? "\"" + cells[i] + "\"" : cells[i]);
    text_ += '\n';
  }

  void write() {
    std::vector<std::string> cells;
    for (const Column& column : columns_) cells.push_back(column.name);
    line(cells);
    Nanos at = begin_;
    for (std::size_t row = 0; row < rows_; ++row) {
      at += interval_;
      if (one_in(20)) at += interval_ * static_cast<Nanos>(below(9));  // a gap
      at_.push_back(at);
      for (std::size_t gpu = 0; gpu < (per_gpu_ ? 1 : gpus_); ++gpu) {
        cells.clear();
        for (const Column& column : columns_)
          cells.push_back(column.kind == Column::Kind::kTime     ? clock_->text(at)
                          : column.kind == Column::Kind::kIndex  ? std::to_string(gpu)
                          : column.kind == Column::Kind::kMetric ? reading(column, per_gpu_ ? column.gpu : gpu)
                                                                 : std::to_string(below(50)));
        line(cells);
      }
    }
  }

  std::mt19937 random_;
  std::size_t gpus_ = 1, rows_ = 0;
  bool per_gpu_ = false, fraction_ = false, quoted_ = false, comma_ = false;
  std::string separator_, text_;
  const Clock* clock_ = nullptr;
  Nanos interval_ = 0, begin_ = 0;
  std::vector<Column> columns_;
  std::vector<Nanos> at_;
  std::map<Metric, std::vector<std::vector<double>>> truth_;
};

TEST(LogCorpus, TablesOfAnySpellingAreReadToWhatWasWritten) {
  for (std::uint32_t seed = 0; seed < kTables; ++seed) {
    const Table table(seed);
    const auto recording = import_log("log", table.text(), {});
    const auto shown = [&] { return fmt::format("seed {}:\n{}", seed, table.text().substr(0, 400)); };
    ASSERT_TRUE(recording) << recording.error().what << "\n" << recording.error().hint << "\n" << shown();
    ASSERT_EQ(recording->sources.size(), table.gpus()) << shown();
    for (std::size_t gpu = 0; gpu < table.gpus(); ++gpu) {
      ASSERT_EQ(recording->tracks[gpu].at.size(), table.rows()) << shown();
      ASSERT_NEAR(seconds(recording->tracks[gpu].at.back() - recording->tracks[gpu].at.front()), table.span(), 1e-3)
          << shown();
      for (const auto& [metric, by_gpu] : table.truth()) {
        const auto read = values(*recording, metric, gpu);
        ASSERT_EQ(read.size(), table.rows()) << info(metric).name << " " << shown();
        const double peak = *std::max_element(by_gpu[gpu].begin(), by_gpu[gpu].end());
        const double tolerance = 1e-3 * std::max(1.0, std::abs(peak));
        ASSERT_NEAR(mean(read), mean(by_gpu[gpu]), tolerance) << info(metric).name << " " << shown();
        ASSERT_NEAR(*std::max_element(read.begin(), read.end()), peak, tolerance)
            << info(metric).name << " " << shown();
      }
    }
  }
}

TEST(LogCorpus, ATableWithoutATimeIsRefusedAndTheErrorNamesTheOptions) {
  const Error error = import_error("gpu_util,mem_used_mb\n20,4000\n30,4000\n40,4000\n");
  EXPECT_NE(error.hint.find("--log-interval"), std::string::npos) << error.what << error.hint;
  EXPECT_NE(error.hint.find("--start-date"), std::string::npos);
  ImportOptions options;
  options.interval = 5 * kSecond;
  EXPECT_EQ(read_log("gpu_util,mem_used_mb\n20,4000\n30,4000\n40,4000\n", options).tracks[0].at.size(), 3u);
}

TEST(LogCorpus, ADateThatNoRowDecidesIsAskedFor) {
  const std::string text = "timestamp,gpu_util\n02-11-2025 10:00:00,20\n03-12-2025 10:00:01,30\n";
  const Error error = import_error(text);
  EXPECT_NE(error.hint.find("--date-order"), std::string::npos) << error.what;
  ImportOptions options;
  options.date_order = DateOrder::kDayFirst;
  EXPECT_EQ(read_log(text, options).tracks[0].at[0], 1762077600 * kSecond);
}

TEST(LogCorpus, ADateThatAllRowsShareIsNotAskedFor) {
  const std::string rows = "02-11-2025 10:00:00,20\n02-11-2025 10:00:01,30\n02-11-2025 10:00:02,30\n";
  const Recording recording = read_log("timestamp,gpu_util\n" + rows);
  EXPECT_THAT(times(recording), ::testing::ElementsAre(0, 1, 2));
  EXPECT_EQ(lost(recording, "assumed_date_order"), 1);
  const Recording loop =
      read_log("timestamp,utilization.gpu [%]\n03/02/2025 10:00:00, 20 %\n03/02/2025 10:00:01, 30 %\n");
  EXPECT_EQ(loop.tracks[0].at[0], 1740909600 * kSecond) << "the second of March";
  const Recording decided = read_log("timestamp,gpu_util\n12-11-2025 23:59:59,20\n13-11-2025 00:00:01,30\n");
  EXPECT_EQ(lost(decided, "assumed_date_order"), 0);
  EXPECT_THAT(times(decided), ::testing::ElementsAre(0, 2));
}

TEST(LogCorpus, AYearOfTwoDigitsIsToldByTheDaysOrAssumedAndSaid) {
  constexpr Nanos kDayOf2025 = 1763164800 * kSecond;  // 15 November
  const auto log = [](const char* first, const char* second) {
    return fmt::format("timestamp,gpu_util\n{} 00:00:00,20\n{} 00:00:01,30\n", first, second);
  };
  const Recording assumed = read_log(log("25/11/15", "25/11/15"));
  EXPECT_EQ(assumed.tracks[0].at[0], kDayOf2025);
  EXPECT_TRUE(detail(assumed, "assumed_date_order").starts_with("all times are of one date ('25/11/15"));
  const Recording day = read_log(log("15/11/25", "15/11/25"));
  EXPECT_EQ(day.tracks[0].at[0], kDayOf2025);
  EXPECT_TRUE(detail(day, "assumed_date_order").find("read with the day first (") != std::string::npos);
  const Recording told =
      read_log("timestamp,gpu_util\n25/11/15 00:00:00,20\n25/11/16 00:00:00,30\n25/11/17 00:00:00,1\n");
  EXPECT_EQ(told.tracks[0].at[0], kDayOf2025);
  EXPECT_EQ(lost(told, "assumed_date_order"), 0);
  ImportOptions options;
  options.date_order = DateOrder::kDayFirst;
  EXPECT_EQ(read_log(log("25/11/15", "25/11/15"), options).tracks[0].at[0], 1448409600 * kSecond);
}

TEST(LogCorpus, ColumnsCanBeRenamedAndSkipped) {
  ImportOptions options;
  options.columns = "when=timestamp,g=utilization.gpu,power=-";
  const Recording renamed = read_log("when,g,power\n2025-02-03 10:00:00,20,7\n2025-02-03 10:00:01,30,7\n", options);
  EXPECT_THAT(values(renamed, Metric::kGpuUtil), ::testing::ElementsAre(0.2, 0.3));
  EXPECT_EQ(renamed.tracks[0].find(Metric::kPower), nullptr);
  options.columns = "timestamp,-,utilization.gpu";
  const Recording given =
      read_log("time,gpu_util_percent\n2025-02-03 10:00:00,x,20\n2025-02-03 10:00:01,x,30\n", options);
  EXPECT_THAT(values(given, Metric::kGpuUtil), ::testing::ElementsAre(0.2, 0.3));
  const Error shape = import_error("time,gpu_util_percent\n2025-02-03 10:00:00,x,20\n2025-02-03 10:00:01,x,30\n");
  EXPECT_NE(shape.hint.find("--columns"), std::string::npos) << shape.what << shape.hint;
  const Error unknown = import_error("timestamp,loss,lr\n2025-02-03 10:00:00,1,20\n");
  EXPECT_NE(unknown.hint.find("--columns"), std::string::npos) << unknown.what;
}

TEST(LogCorpus, ADateAndATimeWithAmAndPmInTwoColumns) {
  const Recording recording = read_log("Date,Time,GPU %\n03/14/2025,11:59:59 AM,20\n03/14/2025,12:00:00 PM,30\n");
  EXPECT_THAT(times(recording), ::testing::ElementsAre(0, 1));
  EXPECT_THAT(values(recording, Metric::kGpuUtil), ::testing::ElementsAre(0.2, 0.3));
}

TEST(LogCorpus, FractionsAreToldFromPercent) {
  const auto util = [](const std::string& header, const std::string& cells) {
    std::string text = "timestamp," + header + "\n";
    int second = 0;
    for (const char digit : cells) text += fmt::format("2025-02-03 10:00:{:02},0.{}\n", second++, digit);
    const Recording recording = read_log(text);
    return std::pair(values(recording, Metric::kGpuUtil).at(0), lost(recording, "fraction_of_one"));
  };
  EXPECT_EQ(util("gpu_util", "8024"), std::pair(0.8, std::int64_t{1}));
  EXPECT_EQ(util("gpu_util_%", "8024"), std::pair(0.008, std::int64_t{0})) << "the header says percent";
  EXPECT_EQ(util("gpu_util", "0000"), std::pair(0.0, std::int64_t{0})) << "nothing tells";
}

TEST(LogCorpus, NvidiaSmisBoxInALoop) {
  std::string text;
  for (int second = 0; second < 3; ++second)
    text += fmt::format(
        "Mon Feb 03 10:00:{:02} 2025       \n"
        "+-----------------------------------------------------------------------------------------+\n"
        "| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |\n"
        "|-----------------------------------------+------------------------+----------------------+\n"
        "| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |\n"
        "| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |\n"
        "|=========================================+========================+======================|\n"
        "|   0  NVIDIA L40S                    On  |   00000000:4A:00.0 Off |                    0 |\n"
        "| N/A   47C    P0            180W /  350W |   20000MiB /  46068MiB |     {}%      Default |\n"
        "|                                         |                        |                  N/A |\n"
        "|   1  NVIDIA L40S                   Off  |   00000000:4B:00.0 Off |                  N/A |\n"
        "| 30%   47C    P8             N/A /  N/A  |     10MiB /  46068MiB  |      0%      Default |\n"
        "+-----------------------------------------------------------------------------------------+\n"
        "| Processes:                                                                              |\n"
        "|    0   N/A  N/A      4242      C   python                                      19990MiB |\n"
        "+-----------------------------------------------------------------------------------------+\n",
        second, 27 + second);
  const Recording recording = read_log(text);
  ASSERT_EQ(recording.sources.size(), 2u);
  EXPECT_EQ(device_of(recording.sources[0]).name, "NVIDIA L40S");
  EXPECT_THAT(values(recording, Metric::kGpuUtil), ::testing::ElementsAre(0.27, 0.28, 0.29));
  EXPECT_THAT(values(recording, Metric::kPower), ::testing::ElementsAre(180, 180, 180));
  EXPECT_THAT(values(recording, Metric::kMemoryUsed, 1), ::testing::ElementsAre(10485760, 10485760, 10485760));
  EXPECT_THAT(times(recording), ::testing::ElementsAre(0, 1, 2));
}

TEST(LogCorpus, ScrapesAndTablesWithARowPerMetric) {
  std::string scrapes = "# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n", rows = "timestamp,gpu,metric_name,value\n";
  for (int second = 0; second < 3; ++second) {
    scrapes += fmt::format("2025-02-03 10:00:{:02}\n", second);
    for (int gpu = 0; gpu < 2; ++gpu) {
      scrapes += fmt::format("DCGM_FI_DEV_GPU_UTIL{{gpu=\"{0}\",UUID=\"GPU-{0}\",modelName=\"NVIDIA L4\"}} {1}\n", gpu,
                             20 + second + gpu);
      scrapes += fmt::format("DCGM_FI_DEV_FB_USED{{gpu=\"{0}\",UUID=\"GPU-{0}\",modelName=\"NVIDIA L4\"}} 100\n", gpu);
      rows += fmt::format(
          "2025-02-03 10:00:{0:02},{1},DCGM_FI_DEV_GPU_UTIL,{2}\n2025-02-03 10:00:{0:02},{1},gpu_memory_used_mb,100\n",
          second, gpu, 20 + second + gpu);
    }
  }
  for (const Recording& recording : {read_log(scrapes), read_log(rows)}) {
    ASSERT_EQ(recording.sources.size(), 2u);
    EXPECT_THAT(values(recording, Metric::kGpuUtil, 1), ::testing::ElementsAre(0.21, 0.22, 0.23));
    EXPECT_THAT(values(recording, Metric::kMemoryUsed), ::testing::ElementsAre(104857600, 104857600, 104857600));
    EXPECT_THAT(times(recording), ::testing::ElementsAre(0, 1, 2));
  }
  EXPECT_NE(
      import_error("# TYPE DCGM_FI_DEV_GPU_UTIL gauge\nDCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 35\n").hint.find("query_range"),
      std::string::npos);
}

TEST(LogCorpus, TimesBetweenMarksAreTimesOfWhatFollows) {
  for (const char* mark : {"=== {} ===", "# scraped {}", "--- taken at: {}"}) {
    std::string scrapes = "# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).\n";
    for (int second = 0; second < 3; ++second)
      scrapes += fmt::format(fmt::runtime(mark), 1738576800 + 30 * second) +
                 fmt::format("\nDCGM_FI_DEV_GPU_UTIL{{gpu=\"0\"}} {}\n", 20 + second);
    const auto found = times(read_log(scrapes));
    ASSERT_EQ(found.size(), 3u) << mark;
    EXPECT_NEAR(found[2], 60, 1e-3) << mark;
  }
}

TEST(LogCorpus, LabelsTellTheGpuOfARowPerMetric) {
  for (const char* labels : {"\"host=a,index={}\"", "'gpu': '{}'", "index={}"}) {
    std::string rows = "Timestamp,MetricName,Dimension,Value,Unit\n";
    for (int minute = 0; minute < 3; ++minute)
      for (int gpu = 0; gpu < 2; ++gpu)
        rows += fmt::format("2026-03-15T00:{:02}:00Z,nvidia_smi_utilization_gpu,{},{},Percent\n", minute,
                            fmt::format(fmt::runtime(labels), gpu), 20 + minute + gpu);
    const Recording recording = read_log(rows);
    ASSERT_EQ(recording.sources.size(), 2u) << labels;
    EXPECT_THAT(values(recording, Metric::kGpuUtil, 1), ::testing::ElementsAre(0.21, 0.22, 0.23)) << labels;
  }
}

TEST(LogCorpus, AFileOfAnotherVerbNamesThatVerb) {
  EXPECT_NE(import_error("{\"op_code\": 0, \"worker_id\": \"a\", \"study_name\": \"s\"}\n").hint.find("headroom study"),
            std::string::npos);
  EXPECT_EQ(import_error("{\n  \"card0\": {\n    \"GPU load\": \"high\"\n  }\n}\n").what,
            "log: JSON of a tool that is not known, not a log (with the keys card0, GPU load)");
}

TEST(LogCorpus, SeriesThatFollowEachOtherAreOneTable) {
  const auto table = [](const char* header, const std::function<std::string(int, int, const char*)>& row) {
    std::string text = fmt::format("{}\n", header);
    for (const char* metric : {"memory_used", "utilization_gpu"})
      for (int gpu = 0; gpu < 2; ++gpu)
        for (int second = 0; second < 3; ++second) text += row(gpu, second, metric) + "\n";
    return read_log(text);
  };
  const auto time = [](int second) { return fmt::format("2025-02-03 10:00:{:02}", second); };
  const Recording influx =
      table(",result,_start,_time,_value,_field,index", [&](int gpu, int second, const char* metric) {
        return fmt::format("7,_result,2025-02-03 00:00:00,{},{},{},{}", time(second), 20 + gpu + second, metric, gpu);
      });
  const Recording tracker = table("key,value,timestamp,step", [&](int gpu, int second, const char* metric) {
    return fmt::format("system/gpu_{}_{},{},{},{}", gpu, metric, 20 + gpu + second, 1738576800000 + second * 1000,
                       second);
  });
  const Recording grafana = table("\"Series\",\"Time\",\"Value\"", [&](int gpu, int second, const char* metric) {
    return fmt::format("\"{}{{gpu=\"\"{}\"\"}}\",{},{}", metric, gpu, time(second), 20 + gpu + second);
  });
  for (const Recording& recording : {influx, tracker, grafana}) {
    ASSERT_EQ(recording.sources.size(), 2u);
    EXPECT_THAT(times(recording, 1), ::testing::ElementsAre(0, 1, 2));
    EXPECT_THAT(values(recording, Metric::kGpuUtil, 1), ::testing::ElementsAre(0.21, 0.22, 0.23));
    EXPECT_THAT(values(recording, Metric::kMemoryUsed), ::testing::ElementsAre(20971520, 22020096, 23068672));
    EXPECT_EQ(lost(recording, "clock_step_back"), 0);
  }
}

}  // namespace
}  // namespace headroom
