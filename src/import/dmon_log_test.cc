// SPDX-License-Identifier: Apache-2.0
#include "import/log_test_support.h"

namespace headroom {
namespace {

using testing::ElementsAre;

TEST(Dmon, ReadsDateTimeAndGroups) {
  const auto r = read_log(
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
  EXPECT_EQ(detail(r, "column_not_kept"), "pviol, tviol (line 1)");
}

ImportOptions each_second() {
  ImportOptions options;
  options.interval = kSecond;
  return options;
}

TEST(Dmon, WithoutTimesRowsAreRoundsOfAnIntervalThatSomebodySays) {
  const std::string text =
      "# gpu     sm    mem\n# Idx      %      %\n    0    100      5\n    1      0      0\n    0     90      5\n    1  "
      "    1      0\n";
  const Error error = import_error(text);
  EXPECT_THAT(error.what, testing::HasSubstr("no column says when a row was taken"));
  for (const char* word : {"--log-interval", "--start-date 2025-11-05", "nvidia-smi dmon -o DT"})
    EXPECT_THAT(error.hint, testing::HasSubstr(word));
  ImportOptions options;
  options.interval = 30 * kSecond;
  const auto r = read_log(text, options);
  EXPECT_EQ(r.tracks[1].at[1] - r.tracks[1].at[0], 30 * kSecond);
  EXPECT_EQ(detail(r, "no_timestamps"), "rows carry no time: 30 s apart, as --log-interval says");
  EXPECT_THAT(values(r, Metric::kGpuUtil, 0), ElementsAre(1.0, 0.9));
  const std::string one_round = text.substr(0, text.find("    0     90"));
  EXPECT_EQ(read_log(one_round).sources.size(), 2u) << "of one moment no interval is needed";
}

TEST(Dmon, TimeWithoutDateRollsOverMidnight) {
  ImportOptions options;
  options.start_date = 20397 * Nanos{86400} * kSecond;
  const std::string text =
      "#Time        gpu     sm    mem\n#HH:MM:SS    Idx      %      %\n 23:59:59      0      5      1\n 00:00:00      "
      "0      6      1\n";
  const auto r = read_log(text, options);
  EXPECT_THAT(times(r), ElementsAre(0, 1));
  EXPECT_EQ(r.tracks[0].at[1], 20398 * Nanos{86400} * kSecond);
  EXPECT_EQ(lost(r, "no_date"), 0);
  EXPECT_EQ(lost(read_log(text), "no_date"), 1);
}

TEST(Dmon, DateWithoutTimeCountsTheRows) {
  const auto r = read_log(
      "#Date       gpu     sm    mem\n#YYYYMMDD   Idx      %      %\n 20251105      0      5      1\n 20251105      0  "
      "    6      1\n",
      each_second());
  EXPECT_THAT(times(r), ElementsAre(0, 1));
  EXPECT_EQ(lost(r, "no_timestamps"), 1);
}

TEST(Dmon, WhatStandsBehindTheCellsIsNoneOfThem) {
  const auto r = read_log(
      "# gpu     sm    mem\n# Idx      %      %\n    0     10      -   # the run begins\n    0     20      1 <- 2nd "
      "epoch\n",
      each_second());
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.1, 0.2));
  EXPECT_EQ(lost(r, "long_row"), 0);
  const auto cut = read_log("# gpu     sm    mem\n# Idx      %      %\n 0 10 1\n 0 20 1\n 0 30 1 1\n", each_second());
  EXPECT_EQ(lost(cut, "long_row"), 1) << "a cell too many is no comment";
}

TEST(Dmon, HeadersRepeatWithoutLossAndMayChange) {
  const std::string head = "# gpu     sm    mem\n# Idx      %      %\n", row = "    0     10      1\n";
  const auto same = read_log(head + row + head + row, each_second());
  EXPECT_EQ(same.tracks[0].at.size(), 2u);
  EXPECT_EQ(lost(same, "repeated_header"), 0);
  const auto other =
      read_log(head + row + "# gpu    pwr  gtemp  mtemp\n# Idx      W      C      C\n    0     70     40      -\n",
               each_second());
  EXPECT_THAT(values(other, Metric::kPower), ElementsAre(absent(Absent::kNotSampled), 70.0));
  EXPECT_THAT(values(other, Metric::kGpuUtil), ElementsAre(0.1, absent(Absent::kNotSampled)));
}

TEST(Dmon, ALogWhoseBeginningIsCutOffUsesTheNextHeader) {
  const auto r =
      read_log("    0     10      1\n# gpu     sm    mem\n# Idx      %      %\n    0     20      1\n", each_second());
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.1, 0.2));
}

TEST(Dmon, CommaFormAndPercentSignsAreRead) {
  const auto r = read_log("#gpu, sm, mem\n#Idx, %, %\n0, 100%, 5%\n0, 90%, 4%\n", each_second());
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(1.0, 0.9));
}

TEST(Monitor, SevenColumnsAreRead) {
  const auto r = read_log(
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
  const auto r = read_log(text);
  EXPECT_EQ(r.tracks[0].find(Metric::kMemoryUtil), nullptr);
  EXPECT_EQ(lost(r, "memory_util_is_occupancy"), 1);
}

TEST(Monitor, ForcedFormatNeedsNoHeader) {
  ImportOptions options;
  options.format = LogFormat::kMonitorCsv;
  const auto r = read_log("1762377180,0,5,1,100,1000,50\n1762377185,0,6,1,100,1000,50\n", options);
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.05, 0.06));
}

TEST(Monitor, SemicolonsAndTabsSeparateToo) {
  EXPECT_THAT(values(read_log("timestamp;gpu_util_%\n1762377180;5\n"), Metric::kGpuUtil), ElementsAre(0.05));
  EXPECT_THAT(values(read_log("timestamp\tgpu_util_%\n1762377180\t5\n"), Metric::kGpuUtil), ElementsAre(0.05));
}

}  // namespace
}  // namespace headroom
