// SPDX-License-Identifier: Apache-2.0
// What a comma within a number is, where cells stand between commas, and what numbers without a word tell by their
// size.
#include <functional>

#include "import/log_test_support.h"

namespace headroom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string table_of_rows(std::string_view header, int count, const std::function<std::string(int)>& cells) {
  std::string text(header);
  for (int i = 0; i < count; ++i) text += fmt::format("\n2025-11-05 21:{:02}:{:02},{}", 13 + i / 60, i % 60, cells(i));
  return text + "\n";
}

TEST(DecimalCommas, WithinQuotesAreDecimalWhereOneCanBeNothingElse) {
  const Recording r = read_log(table_of_rows("time,gpu_util,mem_used_mb", 4,
                                             [](int i) { return fmt::format("\"{},5\",\"7312,250\"", 90 + i); }));
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.905, 0.915, 0.925, 0.935));
  EXPECT_EQ(values(r, Metric::kMemoryUsed)[0], 7312.25 * 1048576);
  EXPECT_EQ(r.meta.extra.at("decimal_commas"), "'90,5' as 90.5");
  const Recording fractions =
      read_log(table_of_rows("time,gpu_util", 4, [](int i) { return fmt::format("\"0,35{}\"", i + 1); }));
  EXPECT_THAT(values(fractions, Metric::kGpuUtil), ElementsAre(0.351, 0.352, 0.353, 0.354));
  const auto thousands = [](int i) { return fmt::format("{},\"7,312\"", 90 + i); };
  EXPECT_NE(values(read_log(table_of_rows("time,gpu_util,mem_used_mb", 4, thousands)), Metric::kMemoryUsed)[0],
            7.312 * 1048576)
      << "nothing says that it is no thousand";
  EXPECT_FALSE(
      read_log(table_of_rows("time,gpu_util,mem_used_mb", 4, thousands)).meta.extra.contains("decimal_commas"));
  const Recording seconds = read_log("time;gpu_util\n2025-11-05 21:13:00,5;90\n2025-11-05 21:13:01,5;91\n");
  EXPECT_FALSE(seconds.meta.extra.contains("decimal_commas")) << "parts of seconds are no readings";
}

TEST(DecimalCommas, BetweenCommasAreDecimalWhereTheirDigitsCanBeNoNumbers) {
  const Recording r = read_log(table_of_rows(
      "time,gpu_util,mem_used_mb", 30, [](int i) { return fmt::format("{},{},7312,{:02}", 60 + i, i * 7 % 10, i); }));
  EXPECT_NEAR(values(r, Metric::kGpuUtil)[13], 0.731, 1e-9);
  EXPECT_NEAR(values(r, Metric::kMemoryUsed)[13], 7312.13 * 1048576, 10000);
  EXPECT_EQ(lost(r, "long_row"), 0);
}

TEST(DecimalCommas, BetweenCommasMayBeThoseOfSomeColumns) {
  std::string text = "Zeit,GPU,Auslastung [%],Leistung [W],Temperatur [°C]\n";
  for (int i = 0; i < 30; ++i)
    text += fmt::format("05.03.2025 09:17:{:02},0,{},{},{},{:02},{}\n", i, 70 + i % 20, i * 7 % 10, 200 + i,
                        i * 37 % 100, 64 + i % 2);
  const Recording r = read_log(text);
  EXPECT_NEAR(values(r, Metric::kGpuUtil)[3], 0.731, 1e-9);
  EXPECT_NEAR(values(r, Metric::kPower)[3], 203.11, 0.01);
  EXPECT_EQ(values(r, Metric::kTemperature)[3], 65);
}

TEST(DecimalCommas, CellsOfASecondGpuAreNoDecimals) {
  const auto two = [](int i) { return fmt::format("{},8000,{},8100", 60 + i, 40 + i % 7); };
  EXPECT_THAT(import_error(table_of_rows("time,gpu_util,mem_used_mb", 30, two)).what, HasSubstr("5 cells where"));
  const auto index = [](int i) { return fmt::format("{},8000,{}", 60 + i, i % 8); };
  EXPECT_THAT(import_error(table_of_rows("time,gpu_util,mem_used_mb", 30, index)).what, HasSubstr("4 cells where"));
  const auto idle = [](int i) { return fmt::format("{},0", 60 + i); };
  EXPECT_THAT(import_error(table_of_rows("time,gpu_util", 30, idle)).what, HasSubstr("3 cells where"));
}

TEST(DecimalCommas, WhereNothingSaysWhichTheHintNamesWhatDoes) {
  const auto one_of_three = [](int i) { return fmt::format("{},7312,71,{}", 60 + i, 10 + i * 7 % 90); };
  const std::string text = table_of_rows("time,gpu_util,mem_used_mb,power_w", 30, one_of_three);
  EXPECT_THAT(import_error(text).hint, HasSubstr("--columns with a name for each cell, and - for those behind"));
  ImportOptions options;
  options.columns = "timestamp,utilization.gpu,memory.used,power.draw,-";
  const std::string rows_alone = text.substr(text.find('\n') + 1);
  EXPECT_EQ(values(read_log(rows_alone, options), Metric::kPower)[0], 71);
}

TEST(SizesOfNumbers, JtopsTableTellsItsGpuByAColumnOfThatName) {
  std::string text = "time,CPU1,RAM,GPU,Temp GPU,Power GPU\n", index = "time,gpu,temp_gpu,mem_used_mb\n";
  for (int i = 0; i < 40; ++i) {
    text += fmt::format("2025-11-05 21:13:{:02}.5,41,0.622,{},57.2,{}\n", i, 60 + i * 7 % 31, 6100 + 10 * i);
    index += fmt::format("2025-11-05 21:{:02}:{:02},{},60,8000\n", 13 + i / 8, i % 8, i % 8);
  }
  const Recording r = read_log(text);
  ASSERT_EQ(r.tracks.size(), 1u);
  EXPECT_EQ(values(r, Metric::kGpuUtil)[1], 0.67);
  EXPECT_NEAR(values(r, Metric::kPower)[0], 6.1, 1e-6) << "milliwatts";
  EXPECT_EQ(read_log(index).tracks.size(), 8u) << "a number in turn is a GPU's";
  std::string spike = "time,gpu_util,gpu_power\n", tasks = "time,gpu,mem_used_mb\n";
  for (int i = 0; i < 40; ++i) {
    spike += fmt::format("2025-11-05 21:13:{:02},90,{}\n", i, i == 7 ? 6553 : 210);
    tasks += fmt::format("2025-11-05 21:13:{:02},{},8000\n", i, i * 5 % 13);
  }
  EXPECT_EQ(values(read_log(spike), Metric::kPower)[0], 210) << "one that cannot be true makes no milliwatts";
  EXPECT_GT(read_log(tasks).tracks.size(), 8u) << "so few may be GPUs out of turn";
}

TEST(SizesOfNumbers, PcpsMetricsArePercentBytesAndMilliwatts) {
  const Recording r = read_log(table_of_rows(
      "Time,\"nvidia.gpuactive-gpu0\",\"nvidia.gpuactive-gpu1\",\"nvidia.memused-gpu0\",\"nvidia.power-gpu0\"", 4,
      [](int i) { return fmt::format("9{}.000,40.000,17179869184,250000", i); }));
  ASSERT_EQ(r.tracks.size(), 2u);
  EXPECT_THAT(values(r, Metric::kGpuUtil, 0), ElementsAre(0.90, 0.91, 0.92, 0.93));
  EXPECT_EQ(values(r, Metric::kMemoryUsed)[0], 17179869184.0);
  EXPECT_EQ(values(r, Metric::kPower)[0], 250);
}

TEST(SizesOfNumbers, TimesWithoutSecondsAreOfSamplesOrOfGpus) {
  const auto log = [](int odd) {
    std::string text = "timestamp,gpu_util\n";
    for (int minute = 0; minute < 20; ++minute)
      for (int row = 0; row < (minute == 7 ? odd : 6); ++row)
        text += fmt::format("9/15/2025 14:{:02},{}\n", minute, 40 + (minute * 13 + row * 29) % 50);
    return text;
  };
  const Recording samples = read_log(log(5));
  ASSERT_EQ(samples.tracks.size(), 1u);
  EXPECT_EQ(samples.tracks[0].at.size(), 119u);
  EXPECT_EQ(times(samples)[1], 10);
  EXPECT_THAT(detail(samples, "shared_minute"), HasSubstr("rows of one minute are spread over it"));
  std::string named = log(6);
  for (auto at = named.find(','); at != named.npos; at = named.find(',', at + 3)) named.insert(at, ",0");
  named.replace(0, named.find('\n'), "timestamp,index,gpu_util");
  EXPECT_EQ(read_log(named).tracks[0].at.size(), 120u) << "the rows name their GPU";
  const Error unclear = import_error(log(6));
  EXPECT_THAT(unclear.what, HasSubstr("whole minutes"));
  EXPECT_THAT(unclear.hint, HasSubstr("--log-interval 10s says so"));
  ImportOptions options;
  options.interval = 10 * kSecond;
  EXPECT_EQ(read_log(log(6), options).tracks[0].at.size(), 120u) << "what the hint says works";
  options.interval = 60 * kSecond;
  EXPECT_FALSE(import_log("log", log(6), options).has_value()) << "six a minute are not as far apart as this";
}

}  // namespace
}  // namespace headroom
