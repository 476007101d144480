// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/civil_time.h"
#include "base/fd.h"
#include "import/log_test_support.h"

namespace headroom {
namespace {

// "from second: name" of the phases that a log tells, from its beginning on.
std::vector<std::string> phases_of(const Recording& r) {
  std::vector<std::string> phases;
  const auto marks = r.find(SourceKind::kMarks, "log/phase");
  if (!marks) return phases;
  for (const ListRow& row : r.tracks[static_cast<std::size_t>(*marks)].lists)
    phases.push_back(fmt::format("{}: {}", (row.at - r.meta.start) / kSecond,
                                 r.lists[row.list].empty() ? "" : r.texts[r.lists[row.list][0]]));
  return phases;
}

TEST(Csv, ColumnsThatTheirHeaderDoesNotTellAreToldByTheirRows) {
  const auto table = [](std::string_view header, const auto& row) {
    std::string text = std::string(header) + "\n";
    for (int i = 0; i < 60; ++i) text += row(i);
    return text;
  };
  // A time, by dates and by Unix times; GPUs by a few numbers that come again.
  const Recording dates = read_log(table("Zeitstempel;card;GPU util (%)", [](int i) {
    return fmt::format("2024-01-15 08:{:02}:{:02};{};{}\n", i / 2 / 60, i / 2 % 60, i % 2, 50);
  }));
  EXPECT_EQ(dates.tracks.size(), 2U);
  EXPECT_NEAR(times(dates).back(), 29, 1e-6);
  const Recording unix = read_log(table("x,idx,util,mem_used_mb", [](int i) {
    return fmt::format("{},{},50,1000\n", 1'707'000'000 + i / 2 * 2, i % 2);
  }));
  EXPECT_EQ(unix.tracks.size(), 2U);
  EXPECT_NEAR(times(unix).back(), 58, 1e-6);
  // A count of the rows is no GPU and no time.
  const auto count = [](int i) { return fmt::format("{},{},50\n", 1'707'000'000 + i, i); };
  EXPECT_EQ(read_log(table("timestamp,id,gpu_util", count)).tracks.size(), 1U);
  EXPECT_THAT(
      import_error(table("step,gpu_util,mem_used_mb", [](int i) { return fmt::format("{},50,1000\n", i); })).what,
      testing::HasSubstr("no column says when"));
  // GPUtil's load is a GPU's, where no CPU is beside it.
  const auto load = [&](std::string_view header) {
    return table(header, [](int i) { return fmt::format("{},0,0.5,1000\n", 1'707'000'000 + i); });
  };
  EXPECT_NEAR(mean(values(read_log(load("timestamp,id,load,memoryUsed")), Metric::kGpuUtil)), 0.5, 1e-6);
  EXPECT_TRUE(values(read_log(load("timestamp,cpu,load,memoryUsed")), Metric::kGpuUtil).empty());
}

TEST(Csv, AShareOfTheSmsIsTheUtilisationWhereNoOtherColumnIs) {
  const auto util = [](std::string_view header) {
    std::string text(header);
    for (int i = 0; i < 20; ++i) text += fmt::format("\n{},58,14230,74", 1'707'000'000 + i);
    return values(read_log(text + "\n"), Metric::kGpuUtil);
  };
  EXPECT_NEAR(mean(util("t,sm_pct,vram_mb,watts")), 0.58, 1e-9);
  EXPECT_NEAR(mean(util("t,SM [%],memory.used,watts")), 0.58, 1e-9);
  EXPECT_NEAR(mean(util("t,sm_pct,vram_mb,utilization.gpu")), 0.74, 1e-9);
  EXPECT_TRUE(util("t,sm_pct,vram_mb,sm_active").empty()) << "of which it may be another reading";
}

TEST(Csv, MonitorsWriteInTheirOwnWords) {
  const auto log = [](std::string header, std::string_view cells) {
    header += "\n";
    for (int i = 0; i < 40; ++i) header += fmt::format("2023-11-02 20:00:{:02},{}\n", i, cells);
    return read_log(header);
  };
  const Recording chinese = log("时间,显卡编号,显卡利用率(%),显存占用(MB),温度(℃),功耗(W)", "3,81,21984,68,281.8");
  EXPECT_NEAR(mean(values(chinese, Metric::kGpuUtil)), 0.81, 1e-9);
  EXPECT_NEAR(mean(values(chinese, Metric::kPower)), 281.8, 1e-9);
  EXPECT_NEAR(mean(values(chinese, Metric::kTemperature)), 68, 1e-9);
  EXPECT_EQ(device_of(chinese.sources[0]).index, 3);
  const Recording hwinfo =
      log("time,GPU Core Load [%],GPU Memory Controller Load [%],GPU Video Engine Load [%]", "63.5,34.9,7");
  EXPECT_NEAR(mean(values(hwinfo, Metric::kGpuUtil)), 0.635, 1e-9);
  EXPECT_NEAR(mean(values(hwinfo, Metric::kMemoryUtil)), 0.349, 1e-9);
  const Recording nvitop =
      log("run/timestamp,run/cuda:0 (gpu:2)/gpu_utilization (%)/mean,run/cuda:0 (gpu:2)/gpu_utilization (%)/max,"
          "run/host/cpu_percent (%)/mean",
          "91.5,95,12");
  EXPECT_NEAR(mean(values(nvitop, Metric::kGpuUtil)), 0.915, 1e-9);
  EXPECT_EQ(device_of(nvitop.sources[0]).index, 2);
  const Recording dcgm =
      log("Time,gpu,DCGM_FI_DEV_GPU_UTIL,DCGM_FI_PROF_SM_ACTIVE,DCGM_FI_DEV_POWER_USAGE", "1,85,0.6,414");
  EXPECT_NEAR(mean(values(dcgm, Metric::kGpuUtil)), 0.85, 1e-9);
  EXPECT_NEAR(mean(values(dcgm, Metric::kSmActive)), 0.6, 1e-9);
  const Recording engine = log("Time,gpu,DCGM_FI_PROF_GR_ENGINE_ACTIVE,DCGM_FI_DEV_POWER_USAGE", "1,0.85,414");
  EXPECT_NEAR(mean(values(engine, Metric::kGpuUtil)), 0.85, 1e-9);
  EXPECT_EQ(lost(engine, "engine_activity"), 1);
}

TEST(Csv, ThePartOfASecondMayStandBehindTheCommaOfTheTable) {
  std::string text = "timestamp,utilization.gpu,power.draw\n";
  for (int i = 0; i < 30; ++i) text += fmt::format("2024-10-02T09:00:{:02},755374326+02:00,87, 298.86\n", i);
  const Recording r = read_log(text);
  EXPECT_NEAR(mean(values(r, Metric::kGpuUtil)), 0.87, 1e-9);
  EXPECT_EQ(r.tracks[0].at[0] % kSecond, 755'374'326);
  text = "timestamp,utilization.gpu,power.draw\n";  // a forgotten name: the cell is no part of a second
  for (int i = 0; i < 30; ++i) text += fmt::format("2024-10-02T09:00:{:02},21877,87,298.86\n", i);
  EXPECT_THAT(import_error(text).what, testing::HasSubstr("4 cells where the header has 3"));
}

TEST(Csv, WhatGpustatWritesForPeopleIsATable) {
  std::string text;
  for (int i = 0; i < 20; ++i)
    text += fmt::format(
        "box-02  Mon Oct  9 15:20:{:02} 2023  525.125.06\n"
        "[0] NVIDIA GeForce RTX 3090 | 71°C,  {} % | 23010 / 24576 MB | alice(23001M)\n"
        "[1] NVIDIA GeForce RTX 3090 | 29'C,  30 %,  0 % |     3 / 24576 MB |\n",
        2 * i, 90 + i % 2);
  const Recording r = read_log(text);
  ASSERT_EQ(r.tracks.size(), 2U);
  EXPECT_NEAR(mean(values(r, Metric::kGpuUtil)), 0.905, 1e-9);
  EXPECT_NEAR(mean(values(r, Metric::kGpuUtil, 1)), 0, 1e-9) << "the fan runs";
  EXPECT_NEAR(mean(values(r, Metric::kMemoryUsed)), 23010.0 * (1 << 20), 1);
  EXPECT_NEAR(times(r).back(), 38, 1e-6);
}

TEST(Csv, SeveralGpusThatNoColumnTellsApartAreRefused) {
  std::string text = "time,util,mem_used_mb\n";
  for (int i = 0; i < 100; ++i) {
    const double first = 1'690'000'000 + 1.7 * i + (i % 3 == 0 ? 0.4 : 0), second = 1'690'000'000 + 1.7 * i + 0.3;
    text += fmt::format("{:.2f},60,1000\n{:.2f},50,2000\n", first, second);
  }
  EXPECT_THAT(import_error(text).what, testing::HasSubstr("about several GPUs"));
}

TEST(Csv, WhatNvidiaSmiWritesForPeopleAgainAndAgainIsATable) {
  std::string text;
  for (int i = 0; i < 30; ++i)
    text += fmt::format(
        "\n==============NVSMI LOG==============\n\nTimestamp                   : Fri May  3 09:05:{:02} 2024\n"
        "Driver Version              : 535.183.01\n\nAttached GPUs               : 2\n"
        "GPU 00000000:3B:00.0\n    Product Name            : Tesla T4\n    FB Memory Usage\n"
        "        Total               : 16384 MiB\n        Used                : 12907 MiB\n    BAR1 Memory Usage\n"
        "        Used                : 5 MiB\n    Utilization\n        Gpu                 : {} %\n"
        "        Memory              : 38 %\n    GPU Utilization Samples\n        Avg                 : 99 %\n"
        "    GPU Power Readings\n        Average Power Draw  : 65.20 W\n"
        "GPU 00000000:3C:00.0\n    Utilization\n        Gpu                 : 0 %\n",
        2 * i, i % 2 == 0 ? 70 : 80);
  const Recording r = read_log(text);
  EXPECT_EQ(r.meta.origin, "import:nvidia-smi-q");
  ASSERT_EQ(r.tracks.size(), 2U);
  EXPECT_NEAR(times(r).back(), 58, 1e-6);
  EXPECT_NEAR(mean(values(r, Metric::kGpuUtil)), 0.75, 1e-9);
  EXPECT_NEAR(mean(values(r, Metric::kPower)), 65.2, 1e-9);
  EXPECT_NEAR(mean(values(r, Metric::kMemoryUsed)), 12907.0 * (1 << 20), 1);
  EXPECT_NEAR(mean(values(r, Metric::kGpuUtil, 1)), 0, 1e-9);
}

TEST(Csv, AColumnOfPhasesNamesThem) {
  const auto log = [](std::string_view second_gpu) {
    std::string text = "timestamp,gpu_index,phase,gpu_util_%\n";
    for (int i = 0; i < 40; ++i)
      for (int gpu = 0; gpu < 2; ++gpu) {
        const std::string_view name = i < 10 ? "warmup" : i % 10 == 9 ? "eval" : i < 30 ? "train" : "-";
        text += fmt::format("{},{},{},50\n", 1'770'000'000 + i, gpu, gpu == 1 && i == 20 ? second_gpu : name);
      }
    return read_log(text);
  };
  const Recording r = log("train");
  EXPECT_EQ(phases_of(r), (std::vector<std::string>{"0: warmup", "10: train", "19: eval", "20: train", "29: eval",
                                                    "30: ", "39: eval"}));
  EXPECT_EQ(r.meta.tiers, "NX");
  const Recording differ = log("other");
  EXPECT_TRUE(phases_of(differ).empty());
  EXPECT_EQ(differ.meta.tiers, "N");
  ASSERT_EQ(differ.losses.size(), 1U + r.losses.size());
  // A text that is another one in each row is no phase, nor is its last one that of all rows behind it.
  std::string often = "timestamp,gpu_index,phase,gpu_util_%\n";
  for (int i = 0; i < 100'100; ++i) often += fmt::format("{},0,p{},50\n", 1'770'000'000 + i, std::min(i, 100'050));
  EXPECT_TRUE(phases_of(read_log(often)).empty());
}

using testing::ElementsAre;
using testing::HasSubstr;

TEST(NvidiaSmi, ReadsUnitsFactsAndTimes) {
  const auto r = read_log(
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
  const auto r = read_log(smi({{10, 50}, {12, 60}, {14, 70}}));
  EXPECT_EQ(r.meta.start, r.tracks[0].at.front() - 2 * kSecond);
  EXPECT_EQ(r.meta.end, r.tracks[0].at.back());
  EXPECT_EQ(r.meta.start_realtime, r.meta.start);
}

TEST(NvidiaSmi, ColumnOrderUnitsAndAliasesDoNotMatter) {
  const auto with =
      read_log("timestamp, index, utilization.gpu [%], clocks.sm [MHz]\n2025/11/05 21:13:00.000, 0, 5 %, 7 MHz\n");
  const auto without =
      read_log("clocks.current.sm [MHz],utilization.gpu [%],index,timestamp\n7,5,0,2025/11/05 21:13:00.000\n");
  EXPECT_EQ(values(with, Metric::kGpuUtil), values(without, Metric::kGpuUtil));
  EXPECT_EQ(values(with, Metric::kSmClock), values(without, Metric::kSmClock));
  EXPECT_EQ(with.tracks[0].at, without.tracks[0].at);
}

TEST(NvidiaSmi, DecimalCommasBetweenCommasWithABlank) {
  constexpr const char* kHeader = "timestamp, index, utilization.gpu [%], memory.used [MiB], power.draw [W]\n";
  const auto rows = [&](const std::string& cells) {
    return kHeader + ("2025/11/05 21:13:00.000, 0, 5 %, " + cells) + ("\n2025/11/05 21:13:01,000, 0, 5 %, " + cells) +
           "\n";
  };
  const auto r = read_log(rows("12000 MiB, 60,25 W"));
  EXPECT_THAT(values(r, Metric::kPower), ElementsAre(60.25, 60.25));
  EXPECT_THAT(r.tracks[0].at, ElementsAre(kT0, kT0 + kSecond));
  // A thousand, or one and some? More than one in a number? A cell too many? Nobody knows.
  for (const char* cells :
       {"12,000 MiB, 60.00 W", "1,200,000 MiB, 60 W", "12000 MiB, 60,00 W, 3", "12000 MiB, 6,0a, W", "1,5 MiB,60,00 W"})
    EXPECT_FALSE(import_log("log", rows(cells), {})) << cells;
  // Rows of the header's length are as they were.
  const auto mixed = read_log(std::string(kHeader) + "2025/11/05 21:13:00.000,0, 5 %,12000 MiB,60.5 W\n");
  EXPECT_THAT(values(mixed, Metric::kPower), ElementsAre(60.5));
}

TEST(NvidiaSmi, ALogOfManyBlocksIsReadAsAShortOneIs) {
  constexpr int kRows = 10'000;  // from 22:00 on: what is the day, the rows behind midnight tell
  std::string text = "timestamp; index; utilization.gpu [%]; power.draw [W]\n";
  for (int i = 0; i < kRows; ++i)
    text += fmt::format("{:02}-11-2025 {:02}:{:02}:{:02}; 0; {} %; 60,25 W\n", i < 7200 ? 2 : 3, (22 + i / 3600) % 24,
                        i / 60 % 60, i % 60, i % 100);
  const auto r = read_log(text);
  const Nanos first = kT0 - 3 * kDay + 47 * 60 * kSecond;
  ASSERT_EQ(r.tracks[0].at.size(), std::size_t{kRows});
  const auto util = values(r, Metric::kGpuUtil);
  for (int i = 0; i < kRows; ++i) {
    const auto row = static_cast<std::size_t>(i);
    EXPECT_EQ(r.tracks[0].at[row], first + i * kSecond);
    EXPECT_EQ(util[row], i % 100 / 100.0);
  }
  EXPECT_THAT(values(r, Metric::kPower), testing::Each(60.25));
}

TEST(NvidiaSmi, AbsentValuesKeepTheirReason) {
  const auto r = read_log(
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
  const auto r = read_log(
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

TEST(NvidiaSmi, ACellBesideTheUtilisationIsNoReadingThatIsLost) {
  const auto worst = [](std::string_view util, std::string_view watts) {
    const Recording r =
        read_log(fmt::format("timestamp, utilization.gpu [%], power.draw [W]\n"
                             "2025/11/05 21:13:00.000, {}, {}\n2025/11/05 21:13:01.000, 7 %, 90 W\n",
                             util, watts));
    Severity all = Severity::kInfo;
    for (const Loss& loss : r.losses) all = std::max(all, loss.severity);
    return all;
  };
  EXPECT_EQ(worst("5 %", "-4 W"), Severity::kNotice);
  EXPECT_EQ(worst("5 %", "soup"), Severity::kNotice);
  EXPECT_EQ(worst("130 %", "90 W"), Severity::kDataLoss);
  EXPECT_EQ(worst("130 %", "-4 W"), Severity::kDataLoss);
}

TEST(NvidiaSmi, AnOutlierThatCouldBeTrueIsKept) {
  const auto r = read_log("timestamp, power.draw [W]\n2025/11/05 21:13:00.000, 590.00 W\n");
  EXPECT_THAT(values(r, Metric::kPower), ElementsAre(590.0));
}

TEST(NvidiaSmi, SingleReasonColumnsBecomeOneMask) {
  const auto r = read_log(
      "timestamp, utilization.gpu [%], clocks_event_reasons.sw_power_cap, clocks_event_reasons.hw_slowdown\n"
      "2025/11/05 21:13:00.000, 5 %, Active, Not Active\n"
      "2025/11/05 21:13:01.000, 5 %, Not Active, Active\n"
      "2025/11/05 21:13:02.000, 5 %, [N/A], [N/A]\n");
  EXPECT_THAT(values(r, Metric::kEventReasons), ElementsAre(4.0, 8.0, absent(Absent::kNotSupported)));
}

TEST(NvidiaSmi, TheEnforcedLimitWinsOverTheSetOne) {
  const auto r =
      read_log("timestamp, power.limit [W], enforced.power.limit [W]\n2025/11/05 21:13:00.000, 80.00 W, 55.00 W\n");
  EXPECT_EQ(device_of(r.sources[0]).power_limit_watts, 55.0);
  EXPECT_THAT(detail(r, "column_not_kept"), HasSubstr("power.limit"));
}

TEST(NvidiaSmi, OverridesAreApplied) {
  ImportOptions options;
  options.power_limit_watts = 55;
  options.device_name = "RTX 4050";
  options.memory_total_bytes = 6;
  const auto r = read_log(smi({{0, 1}, {1, 2}}), options);
  const Device device = device_of(r.sources[0]);
  EXPECT_EQ(device.power_limit_watts, 55.0);
  EXPECT_EQ(device.name, "RTX 4050");
  EXPECT_EQ(device.memory_total_bytes, 6);
}

TEST(NvidiaSmi, BomCrLfBlankLinesAndQuotesAreNoOddity) {
  const auto r = read_log(
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
  EXPECT_THAT(values(read_log(wide), Metric::kGpuUtil), ElementsAre(0.05, 0.06));
}

TEST(NvidiaSmi, RepeatedHeadersAreCounted) {
  const auto r = read_log(smi({{0, 1}, {1, 2}}) + smi({{2, 3}, {3, 4}}));
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.01, 0.02, 0.03, 0.04));
  EXPECT_EQ(lost(r, "repeated_header"), 1);
  EXPECT_THAT(detail(r, "repeated_header"), HasSubstr("line 4"));
  ASSERT_EQ(r.events.size(), 1u);
  EXPECT_EQ(r.events[0].kind, "repeated_header");
}

TEST(NvidiaSmi, ARunWithOtherColumnsMayFollow) {
  const auto r = read_log(smi({{0, 1}}) +
                          "timestamp, power.draw [W], utilization.gpu [%]\n2025/11/05 21:13:01.500, 30.00 W, 9 %\n");
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
  EXPECT_THAT(values(read_log(text, options), Metric::kGpuUtil), ElementsAre(0.05, 0.06));
  options.columns = "timestamp,index,utilization.gup";
  EXPECT_THAT(import_error(text, options).hint, HasSubstr("utilization.gpu"));
}

TEST(NvidiaSmi, MessagesBetweenRowsAreCountedAndKept) {
  const auto r = read_log(
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

TEST(Csv, ReasonsOfLowClocksAreReadAsFlagsMasksAndWords) {
  const auto reasons = [](std::string_view header, std::vector<std::string_view> cells) {
    std::string text = fmt::format("time,gpu,gpu_util_percent,sm_clock_mhz,max_sm_clock_mhz,{}\n", header);
    int second = 0;
    for (const std::string_view cell : cells)
      text += fmt::format("2025-02-03 10:00:{:02},0,97,705,1410,{}\n", second++, cell);
    const Recording r = read_log(text);
    EXPECT_EQ(device_of(r.sources[0]).sm_clock_max_mhz, 1410);
    return values(r, Metric::kEventReasons);
  };
  EXPECT_THAT(reasons("SwPowerCap", {"True", "False", "1", "0", "Active", "Not Active"}),
              ElementsAre(4, 0, 4, 0, 4, 0));
  EXPECT_THAT(reasons("HW Slowdown,sw_thermal_slowdown", {"yes,no", "no,yes", "no,no"}), ElementsAre(8, 0x20, 0));
  EXPECT_THAT(reasons("throttle_reasons", {"0x0000000000000004", "0x8", "4", "4.0", "0000000000000020", "0"}),
              ElementsAre(4, 8, 4, 4, 0x20, 0));
  EXPECT_THAT(reasons("clocks_throttle_reasons",
                      {"SwPowerCap", "None", "HwSlowdown|SwThermalSlowdown", "SW Power Cap + HW Thermal Slowdown"}),
              ElementsAre(4, 0, 0x28, 0x44));
  EXPECT_THAT(reasons("PerfCap Reason []", {"1", "16", "2", "4"}), ElementsAre(4, 1, 0x20, 0));
  EXPECT_THAT(reasons("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", {"4", "0", "128"}), ElementsAre(4, 0, 0x80));
}

TEST(NvidiaSmi, ALogOfMessagesOnlySaysTheMessage) {
  const Error error = import_error("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n");
  EXPECT_EQ(error.code, Errc::kInvalidInput);
  EXPECT_THAT(error.what, HasSubstr("log:1: 'NVIDIA-SMI has failed"));
  EXPECT_THAT(error.what, HasSubstr("the kernel module of the driver is not loaded"));
  EXPECT_THAT(error.hint, HasSubstr("headroom doctor"));
  const Error loop = import_error(
      "Mon Feb  3 10:00:00 UTC 2025\nNo devices were found\nMon Feb  3 10:00:05 UTC 2025\n"
      "No devices were found\n");
  EXPECT_THAT(loop.what, HasSubstr("the driver runs and has no GPU"));
  EXPECT_THAT(loop.hint, HasSubstr("headroom doctor"));
  const Error lost = import_error(
      "Unable to determine the device handle for GPU 0000:01:00.0: GPU is lost.  Reboot the system to recover this "
      "GPU\n");
  EXPECT_THAT(lost.what, HasSubstr("the driver lost the GPU"));
  EXPECT_THAT(lost.hint, HasSubstr("xid"));
  EXPECT_THAT(import_error("bash: line 1: nvidia-smi: command not found\n").hint, HasSubstr("headroom doctor"));
}

TEST(NvidiaSmi, ATruncatedLastLineIsLeftOutAndCounted) {
  const std::string head = "timestamp, utilization.gpu [%], power.draw [W]\n2025/11/05 21:13:00.000, 5 %, 30.00 W\n";
  for (const char* tail : {"2025/11/05 21:1", "2025/11/05 21:13:01.000, 6 ", "2025"}) {
    const auto r = read_log(head + tail);
    EXPECT_EQ(r.tracks[0].at.size(), 1u) << tail;
    EXPECT_EQ(lost(r, "truncated_last_line"), 1) << tail;
  }
  const auto r = read_log(head + "2025/11/05 21:13:01.000, 6 %, 3");  // 3 of 30.00 W
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
  const auto r =
      read_log(smi({{0, 1}, {1, 2}, {2, 3}}) + "2025/11/05 21:13:03.500\n2025/11/05 21:13:04.500, 5 %, 6 %\n" +
               "2025/11/05 21:13:05.500, 7 %\n");
  EXPECT_EQ(lost(r, "short_row"), 1);
  EXPECT_EQ(lost(r, "long_row"), 1);
  EXPECT_THAT(detail(r, "short_row"), HasSubstr("line 5"));
  EXPECT_EQ(r.tracks[0].at.size(), 4u);
}

TEST(NvidiaSmi, AnUnreadableTimeIsSaidWithLineAndColumn) {
  const auto r = read_log(smi({{0, 1}, {1, 2}}) + "2025/13/05 21:13:03.500, 5 %\n");
  EXPECT_EQ(lost(r, "unreadable_row"), 1);
  EXPECT_EQ(detail(r, "unreadable_row"), "first at line 4, column 1: cannot read '2025/13/05 21:13:03.500' as a time");
  const Error error = import_error("timestamp, utilization.gpu [%]\nyesterday, 5 %\nyesterday, 6 %\n");
  EXPECT_EQ(error.what, "log:2:1: cannot read 'yesterday' as a time");
  EXPECT_THAT(error.hint, ::testing::HasSubstr("--columns NAME=timestamp names another column of them"));
  EXPECT_FALSE(error.hint.empty());
}

TEST(NvidiaSmi, RowsBelowAHeaderWithoutReadingsAreCounted) {
  const auto r = read_log(smi({{0, 1}, {1, 2}, {2, 3}}) + "timestamp, name\n2025/11/05 21:13:03.500, A100\n");
  EXPECT_EQ(r.tracks[0].at.size(), 3u);
  EXPECT_EQ(lost(r, "unreadable_row"), 2);  // the header, and its row
}

TEST(NvidiaSmi, ChangedFactsAreCounted) {
  const auto r = read_log(
      "timestamp, utilization.gpu [%], driver_version\n"
      "2025/11/05 21:13:00.000, 1 %, 550.54\n2025/11/05 21:13:01.000, 1 %, 565.57\n");
  EXPECT_EQ(lost(r, "changed_fact"), 1);
  EXPECT_EQ(device_of(r.sources[0]).driver_version, "565.57");
}

TEST(NvidiaSmi, UnknownColumnsAreNamed) {
  const auto r =
      read_log("timestamp, utilization.gpu [%], mood, vbios_version\n2025/11/05 21:13:00.000, 5 %, good, 1.2\n");
  EXPECT_EQ(lost(r, "column_not_kept"), 2);
  EXPECT_EQ(detail(r, "column_not_kept"), "mood, vbios_version (line 1)");
}

TEST(NvidiaSmi, GpusAreSortedByIndexAndKeyedByUuid) {
  const auto r = read_log(
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
  const auto r = read_log("index, utilization.gpu [%]\n0, 1 %\n1, 2 %\n0, 3 %\n1, 4 %\n0, 5 %\n", options);
  EXPECT_THAT(times(r, 0), ElementsAre(0.0, 2.0, 4.0));
  EXPECT_THAT(values(r, Metric::kGpuUtil, 1), ElementsAre(0.02, 0.04));
  EXPECT_EQ(lost(r, "no_timestamps"), 1);
  EXPECT_EQ(lost(r, "missing_row"), 1);  // GPU 1 in the third round
}

TEST(Csv, LinesAboveTheFirstRowAreOfItsTime) {
  const Recording r = read_log("Loading module cuda/12.4\n" + smi({{0, 5}, {1, 6}, {2, 7}}));
  ASSERT_EQ(r.events.size(), 1u);
  EXPECT_EQ(r.events[0].at, r.tracks[0].at[0]);
}

TEST(Csv, AGpuThatIsLostIsSaidOnce) {
  std::string text = "timestamp, index, utilization.gpu [%]\n";
  for (int s = 0; s < 8; ++s) {
    text += fmt::format("2025/11/05 21:13:0{}.500, 0, 90 %\n", s);
    if (s > 4) text += fmt::format("2025/11/05 21:13:0{}.500, [GPU is lost], [GPU is lost]\n", s);
  }
  const Recording r = read_log(text + "Unable to determine the device handle for GPU0000:C1:00.0: Unknown Error\n");
  EXPECT_EQ(std::count_if(r.events.begin(), r.events.end(), [](const Event& e) { return e.kind == "device_lost"; }), 1);
}

TEST(Csv, RowsOfAnotherPaceAreNotMissing) {
  const auto log = [](bool second, int missing) {
    std::string text = "timestamp, utilization.gpu [%]\n";
    for (int s = 0; s < 180; ++s) {
      const std::string minute = fmt::format("2025/11/05 21:{:02}:{:02}", 13 + s / 60, s % 60);
      if (s != missing) text += minute + ".100, 9 %\n";
      if (second && s >= 60) text += minute + ".512, 9 %\n";
    }
    return read_log(text);
  };
  EXPECT_EQ(lost(log(true, -1), "missing_row"), 0) << "another monitor began to write into the same file";
  EXPECT_EQ(lost(log(false, 30), "missing_row"), 1);
}

TEST(Csv, RowsThatComeUnevenlyAreNotMissing) {
  std::string uneven = "timestamp, utilization.gpu [%]\n", even = uneven;
  for (int s = 0; s < 50; ++s) {
    uneven += fmt::format("2025/11/05 21:13:{:02}.{:03}, 9 %\n", s, 450 + s * 37 % 9 * 100 - 400);
    if (s != 20) even += fmt::format("2025/11/05 21:13:{:02}.500, 9 %\n", s);
  }
  EXPECT_EQ(lost(read_log(uneven), "missing_row"), 0);
  EXPECT_EQ(lost(read_log(even), "missing_row"), 1);
}

}  // namespace
}  // namespace headroom
