// SPDX-License-Identifier: Apache-2.0
#include "import/import.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <numeric>

#include "base/fd.h"
#include "model/entities.h"

namespace headroom {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr Nanos kT0 = 1762377180 * kSecond;  // 2025-11-05 21:13:00 UTC

Recording import(std::string_view text, const ImportOptions& options = {}) {
  auto recording = import_log("log", text, options);
  EXPECT_TRUE(recording.has_value()) << (recording ? "" : recording.error().what);
  return recording.value_or(Recording{});
}

Error import_error(std::string_view text, const ImportOptions& options = {}) {
  const auto recording = import_log("log", text, options);
  EXPECT_FALSE(recording.has_value());
  return recording ? Error{} : recording.error();
}

std::int64_t lost(const Recording& recording, std::string_view what) {
  for (const Loss& loss : recording.losses)
    if (loss.what == what) return loss.count;
  return 0;
}
std::string detail(const Recording& recording, std::string_view what) {
  for (const Loss& loss : recording.losses)
    if (loss.what == what) return loss.detail;
  return "";
}

// Readings in the metric's unit; -1000 - n stands for Absent n, so that they can be compared as a list.
std::vector<double> values(const Recording& recording, Metric metric, std::size_t gpu = 0) {
  std::vector<double> found;
  if (gpu >= recording.tracks.size()) return found;
  const Column* column = recording.tracks[gpu].find(metric);
  for (std::size_t i = 0; column && i < column->values.size(); ++i)
    found.push_back(column->has(i) ? to_unit(metric, column->values[i]) : -1000.0 - column->absent[i]);
  return found;
}
double absent(Absent reason) { return -1000.0 - static_cast<double>(reason); }

// Seconds since the first row.
std::vector<double> times(const Recording& recording, std::size_t gpu = 0) {
  std::vector<double> found;
  for (const Nanos at : recording.tracks[gpu].at) found.push_back(seconds(at - recording.tracks[gpu].at[0]));
  return found;
}

// Rows "2025/11/05 21:13:SS.000, util" for each of `seconds_and_util`.
std::string smi(const std::vector<std::pair<int, int>>& seconds_and_util) {
  std::string text = "timestamp, utilization.gpu [%]\n";
  for (const auto& [second, util] : seconds_and_util)
    text += fmt::format("2025/11/05 21:{:02}:{:02}.500, {} %\n", 13 + second / 60, second % 60, util);
  return text;
}

std::string logs(const std::string& name) { return std::string(HEADROOM_SOURCE_DIR) + "/tests/logs/" + name; }

TEST(NvidiaSmi, ReadsUnitsFactsAndTimes) {
  const auto r = import(
      "timestamp, index, uuid, name, pstate, utilization.gpu [%], memory.used [MiB], memory.total [MiB], power.draw "
      "[W], enforced.power.limit [W], temperature.gpu, clocks.current.sm [MHz], clocks_throttle_reasons.active\n"
      "2025/11/05 21:13:00.250, 3, GPU-aa, NVIDIA RTX A6000, P2, 57 %, 1024 MiB, 49140 MiB, 120.25 W, 300.00 W, 61, "
      "1800 MHz, 0x0000000000000004\n"
      "2025/11/05 21:13:01.250, 3, GPU-aa, NVIDIA RTX A6000, P8, 0 %, 2048 MiB, 49140 MiB, 20.5 W, 300.00 W, 60, "
      "210 MHz, 0x0000000000000001\n");
  ASSERT_EQ(r.sources.size(), 1u);
  const Device device = device_of(r.sources[0]);
  EXPECT_EQ(device.uuid, "GPU-aa");
  EXPECT_EQ(device.index, 3);
  EXPECT_EQ(device.name, "NVIDIA RTX A6000");
  EXPECT_EQ(device.memory_total_bytes, std::int64_t{49140} << 20);
  EXPECT_EQ(device.power_limit_watts, 300.0);
  EXPECT_EQ(device.given, std::nullopt);
  EXPECT_THAT(r.tracks[0].at, ElementsAre(kT0 + kSecond / 4, kT0 + kSecond * 5 / 4));
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.57, 0.0));
  EXPECT_THAT(values(r, Metric::kMemoryUsed), ElementsAre(1073741824.0, 2147483648.0));
  EXPECT_THAT(values(r, Metric::kPower), ElementsAre(120.25, 20.5));
  EXPECT_THAT(values(r, Metric::kPerformanceState), ElementsAre(2.0, 8.0));
  EXPECT_THAT(values(r, Metric::kSmClock), ElementsAre(1800.0, 210.0));
  EXPECT_THAT(values(r, Metric::kEventReasons), ElementsAre(4.0, 1.0));
  EXPECT_EQ(r.meta.origin, "import:nvidia-smi");
  EXPECT_EQ(r.meta.tiers, "N");
  EXPECT_EQ(r.meta.missing_tiers.at(0).tier, 'P');
  EXPECT_EQ(r.meta.interval, kSecond);
}

TEST(NvidiaSmi, ARowSpeaksAboutTheIntervalBeforeIt) {
  const auto r = import(smi({{10, 50}, {12, 60}, {14, 70}}));
  EXPECT_EQ(r.meta.start, r.tracks[0].at.front() - 2 * kSecond);
  EXPECT_EQ(r.meta.end, r.tracks[0].at.back());
  EXPECT_EQ(r.meta.start_realtime, r.meta.start);
}

TEST(NvidiaSmi, ColumnOrderUnitsAndAliasesDoNotMatter) {
  const auto with =
      import("timestamp, index, utilization.gpu [%], clocks.sm [MHz]\n2025/11/05 21:13:00.000, 0, 5 %, 7 MHz\n");
  const auto without =
      import("clocks.current.sm [MHz],utilization.gpu [%],index,timestamp\n7,5,0,2025/11/05 21:13:00.000\n");
  EXPECT_EQ(values(with, Metric::kGpuUtil), values(without, Metric::kGpuUtil));
  EXPECT_EQ(values(with, Metric::kSmClock), values(without, Metric::kSmClock));
  EXPECT_EQ(with.tracks[0].at, without.tracks[0].at);
}

TEST(NvidiaSmi, AbsentValuesKeepTheirReason) {
  const auto r = import(
      "timestamp, utilization.gpu [%], power.draw [W], fan.speed [%], temperature.gpu\n"
      "2025/11/05 21:13:00.000, 5 %, [N/A], [Not Supported], N/A\n"
      "2025/11/05 21:13:01.000, [Unknown Error], [GPU is lost], [Insufficient Permissions], \n"
      "2025/11/05 21:13:02.000, 7 %, 30 W, 45 %, 50\n");
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.05, absent(Absent::kError), 0.07));
  EXPECT_THAT(values(r, Metric::kPower), ElementsAre(absent(Absent::kNotSupported), absent(Absent::kDeviceLost), 30.0));
  EXPECT_THAT(values(r, Metric::kFan), ElementsAre(absent(Absent::kNotSupported), absent(Absent::kNoPermission), 0.45));
  EXPECT_THAT(values(r, Metric::kTemperature),
              ElementsAre(absent(Absent::kNotSupported), absent(Absent::kNoData), 50.0));
  EXPECT_EQ(lost(r, "unreadable_value"), 0);
}

TEST(NvidiaSmi, ImpossibleValuesAreGarbageAndCounted) {
  const auto r = import(
      "timestamp, utilization.gpu [%], memory.used [MiB], memory.total [MiB]\n"
      "2025/11/05 21:13:00.000, 130 %, -5 MiB, 1000 MiB\n"
      "2025/11/05 21:13:01.000, soup, 2000 MiB, 1000 MiB\n"
      "2025/11/05 21:13:02.000, 7 %, 999 MiB, 1000 MiB\n");
  const double garbage = absent(Absent::kGarbage);
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(garbage, garbage, 0.07));
  EXPECT_THAT(values(r, Metric::kMemoryUsed), ElementsAre(garbage, garbage, 999.0 * 1048576));
  EXPECT_EQ(lost(r, "value_out_of_range"), 3);
  EXPECT_EQ(lost(r, "unreadable_value"), 1);
  EXPECT_EQ(detail(r, "unreadable_value"), "first at line 3, column 26: 'soup'");
}

TEST(NvidiaSmi, AnOutlierThatCouldBeTrueIsKept) {
  const auto r = import("timestamp, power.draw [W]\n2025/11/05 21:13:00.000, 590.00 W\n");
  EXPECT_THAT(values(r, Metric::kPower), ElementsAre(590.0));
}

TEST(NvidiaSmi, SingleReasonColumnsBecomeOneMask) {
  const auto r = import(
      "timestamp, utilization.gpu [%], clocks_event_reasons.sw_power_cap, clocks_event_reasons.hw_slowdown\n"
      "2025/11/05 21:13:00.000, 5 %, Active, Not Active\n"
      "2025/11/05 21:13:01.000, 5 %, Not Active, Active\n"
      "2025/11/05 21:13:02.000, 5 %, [N/A], [N/A]\n");
  EXPECT_THAT(values(r, Metric::kEventReasons), ElementsAre(4.0, 8.0, absent(Absent::kNotSupported)));
}

TEST(NvidiaSmi, TheEnforcedLimitWinsOverTheSetOne) {
  const auto r =
      import("timestamp, power.limit [W], enforced.power.limit [W]\n2025/11/05 21:13:00.000, 80.00 W, 55.00 W\n");
  EXPECT_EQ(device_of(r.sources[0]).power_limit_watts, 55.0);
  EXPECT_THAT(detail(r, "column_not_kept"), HasSubstr("power.limit"));
}

TEST(NvidiaSmi, OverridesAreApplied) {
  ImportOptions options;
  options.power_limit_watts = 55;
  options.device_name = "RTX 4050";
  options.memory_total_bytes = 6;
  const auto r = import(smi({{0, 1}, {1, 2}}), options);
  const Device device = device_of(r.sources[0]);
  EXPECT_EQ(device.power_limit_watts, 55.0);
  EXPECT_EQ(device.name, "RTX 4050");
  EXPECT_EQ(device.memory_total_bytes, 6);
}

TEST(NvidiaSmi, BomCrLfBlankLinesAndQuotesAreNoOddity) {
  const auto r = import(
      "\xef\xbb\xbf\"timestamp\",\"name\",\"utilization.gpu [%]\"\r\n\r\n"
      "\"2025/11/05 21:13:00.000\",\"A, B\",\"5 %\"\r\n\r\n\"2025/11/05 21:13:01.000\",\"A, B\",\"6 %\"\r\n");
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.05, 0.06));
  EXPECT_EQ(device_of(r.sources[0]).name, "A, B");
  EXPECT_EQ(lost(r, "short_row") + lost(r, "long_row") + lost(r, "unreadable_row"), 0);
}

TEST(NvidiaSmi, Utf16OfPowerShellIsRead) {
  const std::string narrow = smi({{0, 5}, {1, 6}});
  std::string wide = "\xff\xfe";
  for (const char c : narrow) wide += c, wide += '\0';
  EXPECT_EQ(sniff_log(wide), LogFormat::kNvidiaSmi);
  EXPECT_THAT(values(import(wide), Metric::kGpuUtil), ElementsAre(0.05, 0.06));
}

TEST(NvidiaSmi, RepeatedHeadersAreCounted) {
  const auto r = import(smi({{0, 1}, {1, 2}}) + smi({{2, 3}, {3, 4}}));
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.01, 0.02, 0.03, 0.04));
  EXPECT_EQ(lost(r, "repeated_header"), 1);
  EXPECT_THAT(detail(r, "repeated_header"), HasSubstr("line 4"));
  ASSERT_EQ(r.events.size(), 1u);
  EXPECT_EQ(r.events[0].kind, "repeated_header");
}

TEST(NvidiaSmi, ARunWithOtherColumnsMayFollow) {
  const auto r =
      import(smi({{0, 1}}) + "timestamp, power.draw [W], utilization.gpu [%]\n2025/11/05 21:13:01.500, 30.00 W, 9 %\n");
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.01, 0.09));
  EXPECT_THAT(values(r, Metric::kPower), ElementsAre(absent(Absent::kNotSampled), 30.0));
  EXPECT_EQ(lost(r, "repeated_header"), 1);
}

TEST(NvidiaSmi, WithoutAHeaderTheErrorSaysHowToNameColumns) {
  const std::string text = "2025/11/05 21:13:00.000, 0, 5 %\n2025/11/05 21:13:01.000, 0, 6 %\n";
  const Error error = import_error(text);
  EXPECT_EQ(error.code, Errc::kInvalidInput);
  EXPECT_EQ(error.what, "log:1: there is no header, so what the 3 columns mean is not known");
  EXPECT_THAT(error.hint, HasSubstr("--columns"));
  ImportOptions options;
  options.columns = "timestamp,index,utilization.gpu";
  EXPECT_THAT(values(import(text, options), Metric::kGpuUtil), ElementsAre(0.05, 0.06));
  options.columns = "timestamp,index,utilisation.gpu";
  EXPECT_THAT(import_error(text, options).hint, HasSubstr("utilization.gpu"));
}

TEST(NvidiaSmi, MessagesBetweenRowsAreCountedAndKept) {
  const auto r = import(
      "timestamp, utilization.gpu [%]\n2025/11/05 21:13:00.000, 5 %\n"
      "Unable to determine the device handle for GPU 0000:01:00.0: GPU is lost.  Reboot the system to recover this "
      "GPU\n"
      "Failed to initialize NVML: Driver/library version mismatch\n2025/11/05 21:13:01.000, 6 %\n");
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.05, 0.06));
  EXPECT_EQ(lost(r, "interleaved_message"), 2);
  ASSERT_EQ(r.events.size(), 2u);
  EXPECT_EQ(r.events[0].kind, "device_lost");
  EXPECT_EQ(r.events[1].kind, "note");
}

TEST(NvidiaSmi, ALogOfMessagesOnlySaysTheMessage) {
  const Error error = import_error("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n");
  EXPECT_EQ(error.code, Errc::kInvalidInput);
  EXPECT_THAT(error.what, HasSubstr("log:1: 'NVIDIA-SMI has failed"));
}

TEST(NvidiaSmi, ATruncatedLastLineIsLeftOutAndCounted) {
  const std::string head = "timestamp, utilization.gpu [%], power.draw [W]\n2025/11/05 21:13:00.000, 5 %, 30.00 W\n";
  for (const char* tail : {"2025/11/05 21:1", "2025/11/05 21:13:01.000, 6 ", "2025"}) {
    const auto r = import(head + tail);
    EXPECT_EQ(r.tracks[0].at.size(), 1u) << tail;
    EXPECT_EQ(lost(r, "truncated_last_line"), 1) << tail;
  }
  const auto r = import(head + "2025/11/05 21:13:01.000, 6 %, 3");  // 3 of 30.00 W
  EXPECT_THAT(values(r, Metric::kPower), ElementsAre(30.0, absent(Absent::kNoData)));
  EXPECT_EQ(lost(r, "truncated_last_line"), 1);
}

TEST(NvidiaSmi, EveryPrefixOfALogIsReadOrRefused) {
  const auto text = read_file(logs("small_gpu_4050.csv"));
  ASSERT_TRUE(text.has_value());
  std::size_t most = 0;
  for (std::size_t size = 0; size < 2000; ++size) {
    const auto r = import_log("log", std::string_view(*text).substr(0, size), {});
    const std::size_t rows = r && !r->tracks.empty() ? r->tracks[0].at.size() : 0;
    EXPECT_GE(rows + 1, most) << size;  // a longer prefix never has fewer rows
    most = std::max(most, rows);
  }
  EXPECT_GT(most, 10u);
}

TEST(NvidiaSmi, ShortAndLongRowsAreCountedByTheirLine) {
  const auto r = import(smi({{0, 1}, {1, 2}, {2, 3}}) + "2025/11/05 21:13:03.500\n2025/11/05 21:13:04.500, 5 %, 6 %\n" +
                        "2025/11/05 21:13:05.500, 7 %\n");
  EXPECT_EQ(lost(r, "short_row"), 1);
  EXPECT_EQ(lost(r, "long_row"), 1);
  EXPECT_THAT(detail(r, "short_row"), HasSubstr("line 5"));
  EXPECT_EQ(r.tracks[0].at.size(), 4u);
}

TEST(NvidiaSmi, AnUnreadableTimeIsSaidWithLineAndColumn) {
  const auto r = import(smi({{0, 1}, {1, 2}}) + "2025/13/05 21:13:03.500, 5 %\n");
  EXPECT_EQ(lost(r, "unreadable_row"), 1);
  EXPECT_EQ(detail(r, "unreadable_row"), "first at line 4, column 1: cannot read '2025/13/05 21:13:03.500' as a time");
  const Error error = import_error("timestamp, utilization.gpu [%]\nyesterday, 5 %\nyesterday, 6 %\n");
  EXPECT_EQ(error.what, "log:2:1: cannot read 'yesterday' as a time");
  EXPECT_FALSE(error.hint.empty());
}

TEST(NvidiaSmi, UnknownColumnsAreNamed) {
  const auto r =
      import("timestamp, utilization.gpu [%], mood, vbios_version\n2025/11/05 21:13:00.000, 5 %, good, 1.2\n");
  EXPECT_EQ(lost(r, "column_not_kept"), 2);
  EXPECT_EQ(detail(r, "column_not_kept"), "line 1: mood, vbios_version");
}

TEST(NvidiaSmi, GpusAreSortedByIndexAndKeyedByUuid) {
  const auto r = import(
      "timestamp, uuid, index, utilization.gpu [%]\n"
      "2025/11/05 21:13:00.000, GPU-b, 1, 5 %\n2025/11/05 21:13:00.003, GPU-a, 0, 6 %\n"
      "2025/11/05 21:13:01.000, GPU-b, 1, 7 %\n2025/11/05 21:13:01.003, GPU-a, 0, 8 %\n");
  ASSERT_EQ(r.sources.size(), 2u);
  EXPECT_EQ(r.sources[0].key, "GPU-a");
  EXPECT_THAT(values(r, Metric::kGpuUtil, 0), ElementsAre(0.06, 0.08));
  EXPECT_THAT(values(r, Metric::kGpuUtil, 1), ElementsAre(0.05, 0.07));
  EXPECT_EQ(lost(r, "missing_row"), 0);
}

TEST(NvidiaSmi, SeveralGpusWithoutAnIndexAreRefused) {
  std::string text = "timestamp, utilization.gpu [%]\n";
  for (int second = 0; second < 10; ++second)
    for (int gpu = 0; gpu < 2; ++gpu) text += fmt::format("2025/11/05 21:13:{:02}.00{}, 5 %\n", second, 3 * gpu);
  const Error error = import_error(text);
  EXPECT_THAT(error.what, HasSubstr("several GPUs"));
  EXPECT_THAT(error.hint, HasSubstr("index"));
}

TEST(NvidiaSmi, WithoutTimesRowsAreRoundsOfTheInterval) {
  ImportOptions options;
  options.interval = 2 * kSecond;
  const auto r = import("index, utilization.gpu [%]\n0, 1 %\n1, 2 %\n0, 3 %\n1, 4 %\n0, 5 %\n", options);
  EXPECT_THAT(times(r, 0), ElementsAre(0.0, 2.0, 4.0));
  EXPECT_THAT(values(r, Metric::kGpuUtil, 1), ElementsAre(0.02, 0.04));
  EXPECT_EQ(lost(r, "no_timestamps"), 1);
  EXPECT_EQ(lost(r, "missing_row"), 1);  // GPU 1 in the third round
}

TEST(Time, ZonesAreUsedWhereTheyAreGiven) {
  ImportOptions india;
  india.utc_offset = [](std::int64_t) { return std::int64_t{19800}; };
  const auto at = [](const char* stamp, const ImportOptions& options = {}) {
    const auto r = import(fmt::format("timestamp,gpu_util_%\n{},5\n", stamp), options);
    return r.tracks.empty() ? Nanos{0} : r.tracks[0].at[0];
  };
  EXPECT_EQ(at("2025-11-05T21:13:00Z"), kT0);
  EXPECT_EQ(at("2025-11-06T02:43:00+05:30"), kT0);
  EXPECT_EQ(at("2025-11-06 02:43:00.000 +0530"), kT0);
  EXPECT_EQ(at("2025-11-05T13:13:00-08"), kT0);
  EXPECT_EQ(at("2025-11-05 21:13:00"), kT0);
  EXPECT_EQ(at("2025/11/06 02:43:00.000", india), kT0);
  EXPECT_EQ(at("2025-11-05T21:13:00Z", india), kT0);
  EXPECT_EQ(at("1762377180"), kT0);
  EXPECT_EQ(at("1762377180.25"), kT0 + kSecond / 4);
  EXPECT_EQ(at("1762377180250"), kT0 + kSecond / 4);
  EXPECT_EQ(at("1762377180250000000"), kT0 + kSecond / 4);
  const auto assumed = import(smi({{0, 1}, {1, 2}}));
  EXPECT_EQ(lost(assumed, "assumed_time_zone"), 1);
  const auto named = import("timestamp,gpu_util_%\n2025-11-05 21:13:00 IST,5\n");
  EXPECT_EQ(lost(named, "named_zone"), 1);
}

TEST(Time, OffsetsAndDatesAreParsedOrRefused) {
  const auto offset = [](const char* text) {
    const auto parsed = utc_offset_of(text);
    return parsed ? (*parsed)(1762377180) : std::int64_t{-1};
  };
  EXPECT_EQ(offset("utc"), 0);
  EXPECT_EQ(offset("+05:30"), 19800);
  EXPECT_EQ(offset("-0800"), -28800);
  EXPECT_EQ(offset("five"), -1);
  EXPECT_EQ(offset("+5:300"), -1);
  ::setenv("TZ", "XST-02", 1);
  ::tzset();
  EXPECT_EQ(offset("local"), 7200);
  ::unsetenv("TZ");
  EXPECT_EQ(start_date_of("2025-11-05").value_or(0), 1762300800 * kSecond);
  EXPECT_EQ(start_date_of("05.11.2025").error().hint, "write it as 2025-11-05");
}

TEST(Order, IrregularSpacingLosesNothing) {
  const auto r = import(smi({{0, 1}, {3, 1}, {6, 1}, {10, 1}, {13, 1}, {16, 1}, {20, 1}}));
  EXPECT_EQ(lost(r, "missing_row"), 0);
  EXPECT_EQ(lost(r, "gap"), 0);
  EXPECT_EQ(r.meta.interval, 3 * kSecond);
}

TEST(Order, MissingRowsAndGapsAreCounted) {
  const auto r = import(smi({{0, 1}, {5, 1}, {15, 1}, {20, 1}, {25, 1}, {50, 1}, {55, 1}}));
  EXPECT_EQ(lost(r, "missing_row"), 1 + 4);
  EXPECT_THAT(detail(r, "missing_row"), HasSubstr("5 of 12 rows"));
  EXPECT_EQ(lost(r, "gap"), 1);
  ASSERT_EQ(r.events.size(), 1u);
  EXPECT_EQ(r.events[0].kind, "gap");
  EXPECT_EQ(r.events[0].at, r.tracks[0].at[4]);
  EXPECT_EQ(r.events[0].end, r.tracks[0].at[5] - 5 * kSecond);
  EXPECT_EQ(r.events[0].source, 0);
}

TEST(Order, AGpuMissingInSomeRoundsIsCounted) {
  std::string text = "timestamp,gpu_id,gpu_util_%\n";
  for (int round = 0; round < 10; ++round)
    for (int gpu = 0; gpu < 2; ++gpu)
      if (gpu == 0 || (round != 0 && round != 4 && round != 9))
        text += fmt::format("{},{},5\n", 1762377180 + 5 * round, gpu);
  const auto r = import(text);
  EXPECT_EQ(lost(r, "missing_row"), 3);
  EXPECT_THAT(detail(r, "missing_row"), HasSubstr("GPU 1: 3"));
}

TEST(Order, ANominalIntervalIsHeldAgainstTheRows) {
  ImportOptions options;
  options.interval = 5 * kSecond;
  const auto r = import(smi({{0, 1}, {7, 1}, {14, 1}, {21, 1}, {28, 1}, {35, 1}}), options);
  EXPECT_EQ(lost(r, "missing_row"), 2);  // 8 rows fit 35 s at 5 s
  EXPECT_EQ(r.meta.interval, 5 * kSecond);
}

TEST(Order, RowsOutOfOrderAreSorted) {
  const auto r = import(smi({{0, 1}, {1, 2}, {3, 4}, {2, 3}, {4, 5}}));
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.01, 0.02, 0.03, 0.04, 0.05));
  EXPECT_EQ(lost(r, "out_of_order_row"), 1);
  EXPECT_THAT(detail(r, "out_of_order_row"), HasSubstr("line 5"));
}

TEST(Order, RunsAppendedInAnotherOrderAreSorted) {
  const auto r = import(smi({{30, 4}, {31, 5}, {32, 6}}) + smi({{0, 1}, {1, 2}, {2, 3}}));
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.01, 0.02, 0.03, 0.04, 0.05, 0.06));
  EXPECT_EQ(lost(r, "backward_timestamp"), 1);
  EXPECT_EQ(lost(r, "clock_step_back"), 0);
  EXPECT_EQ(lost(r, "gap"), 1);
}

TEST(Order, AClockSetBackKeepsDurations) {
  const auto r = import(smi({{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 6}, {0, 7}, {1, 8}, {2, 9}}));
  EXPECT_THAT(times(r), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_EQ(lost(r, "clock_step_back"), 1);
  EXPECT_THAT(detail(r, "clock_step_back"), HasSubstr("line 8: 5.000 s back"));
  ASSERT_EQ(r.events.size(), 1u);
  EXPECT_EQ(r.events[0].kind, "clock_step");
  EXPECT_EQ(r.events[0].at, r.tracks[0].at[6]);
}

TEST(Order, TwoCopiesOfALogAreOne) {
  const std::string once = smi({{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 6}});
  const auto r = import(once + once);
  EXPECT_EQ(r.tracks[0].at.size(), 6u);
  EXPECT_EQ(lost(r, "duplicate_row"), 6);
}

TEST(Order, OfTwoRowsAtOneInstantTheLastIsKept) {
  const auto r = import(smi({{0, 1}, {1, 2}, {1, 3}, {2, 4}}));
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.01, 0.03, 0.04));
  EXPECT_EQ(lost(r, "duplicate_timestamp"), 1);
  EXPECT_THAT(detail(r, "duplicate_timestamp"), HasSubstr("line 4"));
}

TEST(Order, RowsThatShareAWholeSecondAreSpreadOverIt) {
  const auto r = import(
      "timestamp,gpu_util_%\n2025-11-05 21:13:00,1\n2025-11-05 21:13:00,2\n2025-11-05 21:13:01,3\n2025-11-05 "
      "21:13:01,4\n");
  EXPECT_THAT(times(r), ElementsAre(0, 0.5, 1, 1.5));
  EXPECT_EQ(lost(r, "shared_second"), 2);
  EXPECT_EQ(r.meta.interval, kSecond / 2);
}

TEST(Order, TimesThatJumpEverywhereEndSomewhere) {
  std::string text = "timestamp,gpu_util_%\n";
  for (std::uint32_t i = 0; i < 5000; ++i) text += fmt::format("{}.5,5\n", 1762377180 + (i * 2654435761U) % 100000);
  const auto r = import(text);
  const auto& at = r.tracks[0].at;
  EXPECT_EQ(std::adjacent_find(at.begin(), at.end(), std::greater_equal<>()), at.end());
  EXPECT_GT(lost(r, "out_of_order_row"), 1000);
}

TEST(Dmon, ReadsDateTimeAndGroups) {
  const auto r = import(
      "#Date       Time        gpu    pwr  gtemp  mtemp     sm    mem   mclk   pclk  pviol  tviol     fb   bar1  rxpci "
      " txpci\n"
      "#YYYYMMDD   HH:MM:SS    Idx      W      C      C      %      %    MHz    MHz      %   bool     MB     MB   MB/s "
      "  MB/s\n"
      " 20251105   21:13:00      0    250     60      -    100      5   1593   1410      0      0  40960      5     12 "
      "     3\n"
      " 20251105   21:13:01      0     70     50      -      0      0   1593   1155      0      0  40960      5      0 "
      "     0\n");
  EXPECT_EQ(r.meta.origin, "import:dmon");
  EXPECT_EQ(r.sources[0].key, "gpu0");
  EXPECT_EQ(r.tracks[0].at[0], kT0);
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(1.0, 0.0));
  EXPECT_THAT(values(r, Metric::kMemoryUtil), ElementsAre(0.05, 0.0));
  EXPECT_THAT(values(r, Metric::kPower), ElementsAre(250.0, 70.0));
  EXPECT_THAT(values(r, Metric::kMemoryTemperature),
              ElementsAre(absent(Absent::kNotSupported), absent(Absent::kNotSupported)));
  EXPECT_THAT(values(r, Metric::kMemoryUsed), ElementsAre(40960.0 * 1048576, 40960.0 * 1048576));
  EXPECT_THAT(values(r, Metric::kPcieRxRate), ElementsAre(12e6, 0.0));
  EXPECT_THAT(values(r, Metric::kPcieTxRate), ElementsAre(3e6, 0.0));
  EXPECT_EQ(detail(r, "column_not_kept"), "line 1: pviol, tviol");
}

TEST(Dmon, WithoutTimesRowsAreRoundsAndThatIsSaid) {
  const auto r = import(
      "# gpu     sm    mem\n# Idx      %      %\n    0    100      5\n    1      0      0\n    0     90      5\n    1  "
      "    1      0\n");
  EXPECT_THAT(times(r, 1), ElementsAre(0, 1));
  EXPECT_EQ(lost(r, "no_timestamps"), 1);
  EXPECT_EQ(r.meta.interval, kSecond);
  EXPECT_THAT(values(r, Metric::kGpuUtil, 0), ElementsAre(1.0, 0.9));
}

TEST(Dmon, TimeWithoutDateRollsOverMidnight) {
  ImportOptions options;
  options.start_date = 20397 * Nanos{86400} * kSecond;
  const std::string text =
      "#Time        gpu     sm    mem\n#HH:MM:SS    Idx      %      %\n 23:59:59      0      5      1\n 00:00:00      "
      "0      6      1\n";
  const auto r = import(text, options);
  EXPECT_THAT(times(r), ElementsAre(0, 1));
  EXPECT_EQ(r.tracks[0].at[1], 20398 * Nanos{86400} * kSecond);
  EXPECT_EQ(lost(r, "no_date"), 0);
  EXPECT_EQ(lost(import(text), "no_date"), 1);
}

TEST(Dmon, DateWithoutTimeCountsTheRows) {
  const auto r = import(
      "#Date       gpu     sm    mem\n#YYYYMMDD   Idx      %      %\n 20251105      0      5      1\n 20251105      0  "
      "    6      1\n");
  EXPECT_THAT(times(r), ElementsAre(0, 1));
  EXPECT_EQ(lost(r, "no_timestamps"), 1);
}

TEST(Dmon, HeadersRepeatWithoutLossAndMayChange) {
  const std::string head = "# gpu     sm    mem\n# Idx      %      %\n", row = "    0     10      1\n";
  const auto same = import(head + row + head + row);
  EXPECT_EQ(same.tracks[0].at.size(), 2u);
  EXPECT_EQ(lost(same, "repeated_header"), 0);
  const auto other =
      import(head + row + "# gpu    pwr  gtemp  mtemp\n# Idx      W      C      C\n    0     70     40      -\n");
  EXPECT_THAT(values(other, Metric::kPower), ElementsAre(absent(Absent::kNotSampled), 70.0));
  EXPECT_THAT(values(other, Metric::kGpuUtil), ElementsAre(0.1, absent(Absent::kNotSampled)));
}

TEST(Dmon, ALogWhoseBeginningIsCutOffUsesTheNextHeader) {
  const auto r = import("    0     10      1\n# gpu     sm    mem\n# Idx      %      %\n    0     20      1\n");
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.1, 0.2));
}

TEST(Dmon, CommaFormAndPercentSignsAreRead) {
  const auto r = import("#gpu, sm, mem\n#Idx, %, %\n0, 100%, 5%\n0, 90%, 4%\n");
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(1.0, 0.9));
}

TEST(Monitor, SevenColumnsAreRead) {
  const auto r = import(
      "timestamp,gpu_id,gpu_util_%,mem_util_%,mem_used_mb,mem_total_mb,temp_c\n"
      "2025-11-05T21:13:00.000000,0,3,1,189,49140,49\n2025-11-05T21:13:00.000000,1,20,7,711,49140,61\n"
      "2025-11-05T21:13:05.000000,0,4,1,189,49140,49\n2025-11-05T21:13:05.000000,1,37,9,711,49140,61\n");
  EXPECT_EQ(r.meta.origin, "import:monitor-csv");
  ASSERT_EQ(r.sources.size(), 2u);
  EXPECT_EQ(r.sources[1].key, "gpu1");
  EXPECT_EQ(device_of(r.sources[1]).memory_total_bytes, std::int64_t{49140} << 20);
  EXPECT_THAT(values(r, Metric::kGpuUtil, 1), ElementsAre(0.2, 0.37));
  EXPECT_THAT(values(r, Metric::kTemperature, 0), ElementsAre(49.0, 49.0));
  EXPECT_EQ(r.meta.interval, 5 * kSecond);
}

TEST(Monitor, OccupancyIsNotMemoryUtilisation) {
  std::string text = "timestamp,gpu_id,gpu_util_%,mem_util_%,mem_used_mb,mem_total_mb\n";
  for (int i = 0; i < 20; ++i) text += fmt::format("{},0,5,{:.1f},{},1000\n", 1762377180 + i, 10.0 + i, 100 + 10 * i);
  const auto r = import(text);
  EXPECT_EQ(r.tracks[0].find(Metric::kMemoryUtil), nullptr);
  EXPECT_EQ(lost(r, "memory_util_is_occupancy"), 1);
}

TEST(Monitor, ForcedFormatNeedsNoHeader) {
  ImportOptions options;
  options.format = LogFormat::kMonitorCsv;
  const auto r = import("1762377180,0,5,1,100,1000,50\n1762377185,0,6,1,100,1000,50\n", options);
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.05, 0.06));
}

TEST(Monitor, SemicolonsAndTabsSeparateToo) {
  EXPECT_THAT(values(import("timestamp;gpu_util_%\n1762377180;5\n"), Metric::kGpuUtil), ElementsAre(0.05));
  EXPECT_THAT(values(import("timestamp\tgpu_util_%\n1762377180\t5\n"), Metric::kGpuUtil), ElementsAre(0.05));
}

TEST(Sniff, TellsFilesByContent) {
  EXPECT_EQ(sniff_log(std::string_view("SQLite format 3\0xyz", 19)), LogFormat::kRecording);
  EXPECT_EQ(sniff_log("{\"headroom\":1}\n"), LogFormat::kJsonl);
  EXPECT_EQ(sniff_log("timestamp, utilization.gpu [%]\n"), LogFormat::kNvidiaSmi);
  EXPECT_EQ(sniff_log("# gpu    pwr  gtemp\n"), LogFormat::kDmon);
  EXPECT_EQ(sniff_log("timestamp,gpu_id,gpu_util_%\n"), LogFormat::kMonitorCsv);
  EXPECT_EQ(sniff_log("name,age\nann,5\n"), LogFormat::kUnknown);
  EXPECT_EQ(sniff_log(""), LogFormat::kUnknown);
}

TEST(Errors, SayWhatItIsAndWhatNext) {
  const auto says = [](std::string_view text, const char* what, const char* hint) {
    const Error error = import_error(text);
    EXPECT_EQ(error.code, Errc::kInvalidInput) << text;
    EXPECT_THAT(error.what, HasSubstr(what));
    EXPECT_THAT(error.hint, HasSubstr(hint));
  };
  says("", "empty", "accepted");
  says(" \n\n", "empty", "accepted");
  says(std::string_view("\x7f"
                        "ELF\0\0",
                        6),
       "binary", "accepted");
  says("\x1f\x8bxyz", "compressed", "gunzip");
  says("name,age\nann,5\n", "line 1", "accepted");
  says("==============NVSMI LOG==============\n", "for people", "--query-gpu");
  says(
      "# gpu         pid   type     sm    mem    enc    dec    command\n# Idx           #    C/G      %      %      %  "
      "    %    name\n",
      "pmon", "dmon");
  says("timestamp, utilization.gpu [%]\n", "a header and no rows", "");
  says("timestamp, name\n2025/11/05 21:13:00.000, A100\n", "no column that a recording can hold", "utilization.gpu");
  says("{\"headroom\":1}\n", "recording", "headroom why");
}

TEST(Errors, AMissingFileIsSaid) {
  const auto r = import_file("/nonexistent/gpu.csv", {});
  ASSERT_FALSE(r.has_value());
  EXPECT_EQ(r.error().code, Errc::kNotFound);
  EXPECT_THAT(r.error().what, HasSubstr("/nonexistent/gpu.csv"));
}

double mean(const std::vector<double>& all) {
  return std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
}

TEST(Samples, SmallGpuHasTheFiguresOfItsCase) {
  const auto r = import_file(logs("small_gpu_4050.csv"), {});
  ASSERT_TRUE(r.has_value());
  const auto util = values(*r, Metric::kGpuUtil), power = values(*r, Metric::kPower);
  EXPECT_EQ(util.size(), 90u);
  EXPECT_NEAR(mean(util), 0.114, 1e-9);
  EXPECT_NEAR(mean(power), 26.8, 1e-9);
  EXPECT_EQ(power[60], 590.0);
  EXPECT_NEAR((mean(power) * 90 - 590) / 89, 20.5, 0.05);
  EXPECT_NEAR(seconds(r->meta.end - r->meta.start), 300, 1);
  EXPECT_EQ(device_of(r->sources[0]).power_limit_watts, std::nullopt);
  EXPECT_EQ(lost(*r, "missing_row") + lost(*r, "gap"), 0);
  const auto limited = import_file(logs("small_gpu_4050_limit.csv"), {});
  ASSERT_TRUE(limited.has_value());
  EXPECT_EQ(device_of(limited->sources[0]).power_limit_watts, 55.0);
}

TEST(Samples, EpochsAreBusyForThreeQuarters) {
  const auto r = import_file(logs("epochs_a100.dmon"), {});
  ASSERT_TRUE(r.has_value());
  EXPECT_NEAR(mean(values(*r, Metric::kGpuUtil)), 318.0 / 420, 1e-9);
  EXPECT_EQ(r->meta.end - r->meta.start, 1260 * kSecond);
}

TEST(Samples, RowsThatDoNotFitAreCounted) {
  const auto r = import_file(logs("two_gpus_103_rows.csv"), {});
  ASSERT_TRUE(r.has_value());
  EXPECT_EQ(lost(*r, "missing_row"), 55);
  EXPECT_THAT(detail(*r, "missing_row"), HasSubstr("55 of 158 rows"));
}

}  // namespace
}  // namespace headroom
