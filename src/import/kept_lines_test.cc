// SPDX-License-Identifier: Apache-2.0
// Logs whose lines or objects stand within something else: records of collectors, lines of loggers, keys of GPUs.
#include "base/strings.h"
#include "import/log_records.h"
#include "import/log_test_support.h"

namespace headroom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kKept = 4;

std::string kept_row(int row) { return fmt::format("2025/11/05 21:13:0{0}.000, 0, 9{0} %, 8000 MiB", row); }
constexpr std::string_view kSmiHeader = "timestamp, index, utilization.gpu [%], memory.used [MiB]";

TEST(KeptLines, RecordsOfDockerHoldTheLinesOfAMonitor) {
  std::string timed, untimed;
  const auto record = [](int second, std::string_view line) {
    return fmt::format(R"({{"log":"{}\n","stream":"stdout","time":"2025-11-05T20:13:0{}.{}Z"}})"
                       "\n",
                       line, second, second % 2 == 0 ? "5" : "123456789");
  };
  timed = record(0, kSmiHeader);
  untimed = record(0, "index, utilization.gpu [%]");
  for (int i = 0; i < kKept; ++i) {
    timed += record(i, kept_row(i));
    untimed += record(i, fmt::format("0, 9{} %", i));
  }
  const Recording r = read_log(timed);
  EXPECT_EQ(r.meta.origin, "import:nvidia-smi");
  EXPECT_EQ(r.tracks[0].at[0], kT0) << "the rows' own times";
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.90, 0.91, 0.92, 0.93));
  const Recording stamped = read_log(untimed);
  EXPECT_EQ(stamped.tracks[0].at[0], kT0 - 3600 * kSecond + kSecond / 2) << "else those of the records";
  EXPECT_THAT(values(stamped, Metric::kGpuUtil), ElementsAre(0.90, 0.91, 0.92, 0.93));
}

TEST(KeptLines, RecordsOfJournaldAndContainerdHoldThemToo) {
  std::string journald, cri, dmon;
  const auto put = [&](int second, std::string_view line) {
    journald += fmt::format(R"({{"MESSAGE":"{}","_HOSTNAME":"a","__REALTIME_TIMESTAMP":"176237718{}000000"}})"
                            "\n",
                            line, second);
    cri += fmt::format("2025-11-05T21:13:0{}.{}Z stdout F {}\n", second, second % 2 == 0 ? "5" : "123456789", line);
  };
  put(0, "index, utilization.gpu [%]");
  dmon = "2025-11-05T21:13:00.1Z stdout F #Date       Time        gpu     sm\n";
  for (int i = 0; i < kKept; ++i) {
    for (int gpu = 0; gpu < 2; ++gpu) put(i, fmt::format("{}, {} %", gpu, 90 + i - 50 * gpu));
    dmon += fmt::format("2025-11-05T21:14:0{0}.1Z stdout F  20251105   21:13:0{0}      0     9{0}\n", i);
  }
  for (const std::string& text : {journald, cri}) {
    const Recording r = read_log(text);
    ASSERT_EQ(r.tracks.size(), 2u) << text.substr(0, 200);
    EXPECT_EQ(r.tracks[0].at[0] / kSecond, kT0 / kSecond);
    EXPECT_THAT(values(r, Metric::kGpuUtil, 1), ElementsAre(0.40, 0.41, 0.42, 0.43));
  }
  const Recording r = read_log(dmon);
  EXPECT_EQ(r.tracks[0].at[0], kT0) << "the rows' own times";
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.90, 0.91, 0.92, 0.93));
}

std::optional<Recording> streamed(std::string_view text, const ImportOptions& options = {}) {
  ByteStream bytes = ByteStream::of(text);
  auto recording = import_stream("log", bytes, options);
  EXPECT_TRUE(recording.has_value()) << recording.error().what;
  if (!recording || !*recording) return std::nullopt;
  return unpacked(std::move(**recording));
}

TEST(KeptLines, RecordsOfRowsAreReadAsTheirBytesCome) {
  const auto log = [](bool own_times) {
    std::string docker, cri;
    const auto put = [&](int second, std::string_view line) {
      const std::string at =
          fmt::format("2025-11-05T{:02}:{:02}:{:02}.5Z", 12 + second / 3600, second / 60 % 60, second % 60);
      docker += fmt::format(R"({{"log":"{}\n","stream":"stdout","time":"{}"}})"
                            "\n",
                            line, at);
      cri += fmt::format("{} stdout F {}\n", at, line);
    };
    put(3600, own_times ? kSmiHeader : "index, utilization.gpu [%]");
    for (int i = 0; i < 3000; ++i)
      if (own_times)
        put(3600 + i, fmt::format("2025/11/05 {:02}:{:02}:{:02}.000, 0, {} %, 8000 MiB", 20 + i / 3600, i / 60 % 60,
                                  i % 60, i % 90));
      else
        put(3600 + i, fmt::format("0, {} %", i % 90));
    return std::pair(docker, cri);
  };
  for (const bool own_times : {true, false}) {
    const auto [docker, cri] = log(own_times);
    for (const std::string& text : {docker, cri}) {
      const auto r = streamed(text);
      ASSERT_TRUE(r) << text.substr(0, 200);
      const Recording whole = read_log(text);
      EXPECT_EQ(r->tracks[0].at, whole.tracks[0].at);
      EXPECT_EQ(values(*r, Metric::kGpuUtil), values(whole, Metric::kGpuUtil));
      EXPECT_EQ(r->meta.origin, whole.meta.origin);
      EXPECT_EQ(r->losses, whole.losses);
    }
  }
  std::string newest;
  for (int i = 3; i >= 0; --i)
    newest += fmt::format(R"({{"log":"{}\n","time":"2025-11-05T21:13:0{}Z"}})"
                          "\n",
                          i == 0 ? "index, utilization.gpu [%]" : fmt::format("0, 9{} %", i), i);
  EXPECT_FALSE(streamed(newest)) << "from its end on, as a whole";
  EXPECT_THAT(values(read_log(newest), Metric::kGpuUtil), ElementsAre(0.91, 0.92, 0.93));
}

TEST(KeptLines, WhatDockerEscapesIsWrittenAsItWas) {
  EXPECT_EQ(kept_line(R"({"log":"a \"b\" \\ c\n","stream":"stdout","time":"2025-11-05T20:13:00.1Z"})")->line,
            "a \"b\" \\ c");
  const auto other = kept_line(R"({"log":"\u00e9\n","stream":"stdout","time":"2025-11-05T20:13:00.123456Z"})");
  EXPECT_EQ(other->line, "é") << "as a value of JSON";
  EXPECT_EQ(other->time, "2025-11-05T20:13:00.123Z");
  EXPECT_FALSE(kept_line("0, 97 %"));
  EXPECT_FALSE(kept_line(R"({"log":"a)"));
}

TEST(KeptLines, RecordsWithoutALogInThemAreWhatTheyAre) {
  std::string text;
  for (int i = 0; i < kKept; ++i)
    text += fmt::format("{{\"log\":\"step {} loss 0.3\\n\",\"time\":\"2025-11-05T20:13:0{}Z\"}}\n", i, i);
  EXPECT_THAT(import_error(text).what,
              HasSubstr("records of a collector of logs, whose lines are no log that is known"));
  EXPECT_THAT(import_error(text).what, HasSubstr("step 0 loss 0.3"));
  std::string bare;
  for (int i = 0; i < kKept; ++i)
    bare += fmt::format("{{\"log\":\"9{}, 8000\\n\",\"time\":\"2025-11-05T21:13:0{}Z\"}}\n", i, i);
  EXPECT_THAT(import_error(bare).hint, HasSubstr("--columns utilization.gpu,memory.used,…"));
  ImportOptions options;
  options.columns = "utilization.gpu,memory.used";
  const Recording named = read_log(bare, options);
  EXPECT_EQ(named.tracks[0].at[0], kT0);
  EXPECT_THAT(values(named, Metric::kGpuUtil), ElementsAre(0.90, 0.91, 0.92, 0.93)) << "what the hint says works";
  const std::string own = R"({"time": 1762377180, "message": "ok", "gpu_util": 88})"
                          "\n"
                          R"({"time": 1762377181, "message": "ok", "gpu_util": 89})";
  EXPECT_THAT(values(read_log(own), Metric::kGpuUtil), ElementsAre(0.88, 0.89)) << "a monitor's own, with a message";
}

TEST(KeptLines, ATableOfTimesAndLinesIsReadFromItsOldestOn) {
  std::string newest = "labels,Time,Line,id\n", list = "[";
  for (int i = kKept - 1; i >= 0; --i) {
    newest += fmt::format("\"{{job=\"\"gpu\"\"}}\",176237718{}000,\"gpu=0 util=9{}% mem=8000MB\",x{}\n", i, i, i);
    list += fmt::format(R"({}{{"line": "GPU 0: util=9{}%", "timestamp": "2025-11-05T21:13:0{}Z"}})",
                        list.size() > 1 ? "," : "", i, i);
  }
  for (const std::string& text : {newest, list + "]"}) {
    const Recording r = read_log(text);
    EXPECT_EQ(r.tracks[0].at[0], kT0);
    EXPECT_THAT(times(r), ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.90, 0.91, 0.92, 0.93));
  }
}

TEST(KeptLines, ObjectsBehindALoggersTimeAreRows) {
  std::string dynolog, python;
  for (int i = 0; i < kKept; ++i)
    for (int gpu = 0; gpu < 2; ++gpu) {
      const std::string front = fmt::format("I20251105 21:13:0{}.668320  100{} Logger.cpp:54] ", i, gpu);
      dynolog.append(front).append("Logging : 3 values\n").append(front);
      dynolog += fmt::format(
          "time = 2025-11-05T21:13:0{}.000Z data = {{\"device\":{},\"gpu_device_utilization\":{},"
          "\"sm_active_ratio\":0.14}}\n",
          i, gpu, 90 + i - 40 * gpu);
      python +=
          fmt::format("2025-11-05 21:13:0{},120 INFO monitor {{'gpu': {}, 'util': {}}}\n", i, gpu, 90 + i - 40 * gpu);
    }
  for (const std::string& text : {dynolog, python}) {
    const Recording r = read_log(text);
    ASSERT_EQ(r.tracks.size(), 2u) << text.substr(0, 200);
    EXPECT_THAT(times(r), ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(values(r, Metric::kGpuUtil, 1), ElementsAre(0.50, 0.51, 0.52, 0.53));
  }
  EXPECT_EQ(values(read_log(dynolog), Metric::kSmActive)[0], 0.14);
}

TEST(KeptLines, ObjectsByUuidOrNumberAreOneOfEachGpu) {
  std::string by_uuid, nested, by_number, by_row = "{";
  for (int i = 0; i < kKept; ++i) {
    by_uuid += fmt::format(
        R"({{"timestamp": 176237718{0}, "GPU-11112222-aa": {{"utilization_gpu": 9{0}}}, "GPU-33332222-aa": {{"utilization_gpu": 4{0}}}}})"
        "\n",
        i);
    nested +=
        fmt::format(R"({{"ts": 176237718{0}, "nvml": {{"GPU-aaaa": {{"util": 9{0}}}, "GPU-bbbb": {{"util": 4{0}}}}}}})"
                    "\n",
                    i);
    by_number += fmt::format(R"({{"time": 176237718{0}, "0": {{"util": 9{0}}}, "1": {{"util": 4{0}}}}})"
                             "\n",
                             i);
    by_row += fmt::format(R"({1}"{0}": {{"timestamp": 176237718{0}, "gpu_util": 9{0}}})", i, i > 0 ? "," : "");
  }
  for (const std::string& text : {by_uuid, nested, by_number}) {
    const Recording r = read_log(text);
    ASSERT_EQ(r.tracks.size(), 2u) << text.substr(0, 100);
    EXPECT_THAT(values(r, Metric::kGpuUtil, 0), ElementsAre(0.90, 0.91, 0.92, 0.93));
    EXPECT_THAT(values(r, Metric::kGpuUtil, 1), ElementsAre(0.40, 0.41, 0.42, 0.43));
  }
  EXPECT_EQ(device_of(read_log(by_uuid).sources[0]).uuid, "GPU-11112222-aa");
  const Recording rows = read_log(by_row + "}");
  ASSERT_EQ(rows.tracks.size(), 1u) << "these numbers are of the rows";
  EXPECT_THAT(values(rows, Metric::kGpuUtil), ElementsAre(0.90, 0.91, 0.92, 0.93));
}

TEST(KeptLines, SmiStatsIsATableWithARowPerMetric) {
  std::string text;
  for (int i = 0; i < kKept; ++i)
    text += fmt::format(
        "0, gpuUtil    , 1762377180{0}00012, 4{0}\n0, pwrDraw    , 1762377180{0}00498, 163\n"
        "0, procClk    , 1762377180{0}00700, 1410\n0, violPwr    , 1762377180{0}00800, 7\n",
        i);
  const Recording r = read_log(text);
  ASSERT_EQ(r.tracks.size(), 1u);
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.40, 0.41, 0.42, 0.43));
  EXPECT_EQ(values(r, Metric::kPower)[3], 163);
  EXPECT_EQ(values(r, Metric::kSmClock)[0], 1410);
}

TEST(KeptLines, RocmSmiTellsAReadingALine) {
  std::string text;
  for (int i = 0; i < kKept; ++i)
    text += fmt::format(
        "2025-11-05 21:13:0{0}\n======= ROCm System Management Interface =======\n"
        "GPU[0]\t\t: GPU use (%): 9{0}\nGPU[1]\t\t: GPU use (%): 4{0}\n======= Current Memory Use =======\n"
        "GPU[0]\t\t: GPU Memory Allocated (VRAM%): 71\nGPU[1]\t\t: GPU Memory Allocated (VRAM%): 20\n"
        "GPU[1]\t\t: Average Graphics Package Power (W): 212.0\n======= End of ROCm SMI Log =======\n",
        i);
  const Recording r = read_log(text);
  EXPECT_EQ(r.meta.origin, "import:rocm-smi");
  ASSERT_EQ(r.tracks.size(), 2u);
  EXPECT_THAT(times(r), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(values(r, Metric::kGpuUtil, 0), ElementsAre(0.90, 0.91, 0.92, 0.93));
  EXPECT_THAT(values(r, Metric::kGpuUtil, 1), ElementsAre(0.40, 0.41, 0.42, 0.43));
  EXPECT_EQ(values(r, Metric::kPower, 1)[0], 212);
}

TEST(KeptLines, RaysSeriesAreKnownByTheirNames) {
  std::string series;
  for (int gpu = 0; gpu < 2; ++gpu)
    for (const auto& [name, first] : {std::pair{"utilization", 90}, std::pair{"used", 8000}}) {
      const std::string metric = fmt::format("ray_node_{}_{}", first == 90 ? "gpus" : "gram", name);
      std::string points;
      for (int i = 0; i < kKept; ++i)
        points += fmt::format("{}[{}, \"{}\"]", i > 0 ? "," : "", 1762377180 + i, first + i + gpu);
      series += fmt::format(
          R"({}{{"metric":{{"__name__":"{}","GpuIndex":"{}","GpuDeviceName":"NVIDIA A100","instance":"10.0.0.7:8080"}},"values":[{}]}})",
          series.empty() ? "" : ",", metric, gpu, points);
    }
  const Recording r = read_log(R"({"status":"success","data":{"resultType":"matrix","result":[)" + series + "]}}");
  ASSERT_EQ(r.tracks.size(), 2u);
  EXPECT_THAT(values(r, Metric::kGpuUtil, 1), ElementsAre(0.91, 0.92, 0.93, 0.94));
  EXPECT_EQ(values(r, Metric::kMemoryUsed)[0], 8000 * 1048576.0);
  EXPECT_EQ(device_of(r.sources[1]).name, "NVIDIA A100");
}

}  // namespace
}  // namespace headroom
