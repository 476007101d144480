// SPDX-License-Identifier: Apache-2.0
// Logs in forms of tools and languages that few have: each with readings of 90 % to 93 %, a second apart.
#include "base/strings.h"
#include "import/log_test_support.h"

namespace headroom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kFormsBegin = 1'762'377'180;

TEST(FurtherForms, ClocksOfAMachineAreTimesSinceABeginning) {
  const Recording r = read_log(lines_of("monotonic_ns,gpu_util\n", [](int i) {
    return fmt::format("{},9{}", 48'123'123'456'789 + i * 1'000'000'000LL, i);
  }));
  expect_rows(r);
  EXPECT_THAT(detail(r, "no_date"), HasSubstr("times count from the log's beginning"));
}

TEST(FurtherForms, MangoHudCountsNanosecondsAndGibibytes) {
  const Recording r = read_log(lines_of(
      "os,cpu,gpu,ram,kernel,driver,cpuscheduler\nArch,AMD Ryzen 9,NVIDIA RTX,32780644,6.10,560.35,powersave\n"
      "fps,frametime,cpu_load,cpu_power,gpu_load,cpu_temp,gpu_temp,gpu_core_clock,gpu_mem_clock,gpu_vram_used,gpu_"
      "power,"
      "ram_used,swap_used,process_rss,elapsed\n",
      [](int i) {
        return fmt::format("92.1,10.8,24,61.0,9{},58,66,1875,9501,7.5,244,14.2,0,3.1,{}", i, i * 1'000'000'000LL);
      }));
  expect_rows(r);
  EXPECT_EQ(values(r, Metric::kMemoryUsed)[0], 7.5 * 1073741824);
  EXPECT_EQ(values(r, Metric::kPower)[0], 244);
}

TEST(FurtherForms, AcceleratorsOfIntelAreGpus) {
  const Recording r = read_log(lines_of(
      "timestamp, name, temperature.aip [C], module_id, utilization.aip [%], memory.total [MiB], memory.used [MiB]\n",
      [](int i) {
        return fmt::format(
            "Wed Nov  5 21:13:0{0} UTC 2025, HL-225, 44, 0, 9{0}, 98304, 71000\n"
            "Wed Nov  5 21:13:0{0} UTC 2025, HL-225, 44, 5, 40, 98304, 22000",
            i);
      }));
  expect_rows(r, 2);
  EXPECT_EQ(device_of(r.sources[0]).name, "HL-225");
}

TEST(FurtherForms, ExportersOfOtherNamesAreScrapedToo) {
  const Recording r = read_log(lines_of("", [](int i) {
    return fmt::format(
        "# scraped {}\n# HELP nvidia_smi_memory_used_bytes memory.used [MiB]\n"
        "# TYPE nvidia_smi_memory_used_bytes gauge\nnvidia_smi_memory_used_bytes{{uuid=\"df6e\"}} 8.8604672e+09\n"
        "# TYPE nvidia_smi_utilization_gpu_ratio gauge\nnvidia_smi_utilization_gpu_ratio{{uuid=\"df6e\"}} 0.9{}",
        1762377180 + i, i);
  }));
  expect_rows(r);
  EXPECT_EQ(values(r, Metric::kMemoryUsed)[0], 8860467200.0);
  EXPECT_EQ(lost(r, "fraction_of_one"), 1);
  EXPECT_FALSE(import_log("log", "# TYPE node_load1 gauge\nnode_load1 0.2\n", {}).has_value());
}

TEST(FurtherForms, ColumnsOfTwoLevelsAreOfEachGpu) {
  for (const std::string header : {",util,util,mem_used_mb,mem_used_mb\ngpu,0,1,0,1\ntimestamp,,,,\n",
                                   ",util,util,mem_used_mb,mem_used_mb\n,gpu0,gpu1,gpu0,gpu1\n"})
    expect_rows(
        read_log(lines_of(header, [](int i) { return fmt::format("2025-11-05 21:13:0{0},9{0},40,8000,900", i); })), 2);
  const Recording other = read_log(lines_of(",0,0,1,1\nmetric,util,mem_used_mb,util,mem_used_mb\n", [](int i) {
    return fmt::format("2025-11-05 21:13:0{0},9{0},8000,40,900", i);
  }));
  expect_rows(other, 2);
  EXPECT_EQ(lost(other, "unreadable_row"), 0);
  EXPECT_EQ(values(other, Metric::kMemoryUsed, 1)[0], 900.0 * 1048576);
  const Recording plain = read_log(
      lines_of(",util,mem_used_mb\n", [](int i) { return fmt::format("2025-11-05 21:13:0{0},9{0},8000", i); }));
  expect_rows(plain);
}

TEST(FurtherForms, DatesWithoutAYearAreOfOneThatIsSaid) {
  const std::string rows = lines_of("time,gpu_util\n", [](int i) { return fmt::format("Nov  5 21:13:0{0},9{0}", i); });
  const Recording r = read_log(rows);
  expect_rows(r);
  EXPECT_THAT(detail(r, "no_date"), HasSubstr("times carry no year: taken as of 1972"));
  ImportOptions options;
  options.start_date = *start_date_of("2025-01-01");
  const Recording told = read_log(rows, options);
  EXPECT_EQ(told.tracks[0].at[0], kT0);
  EXPECT_EQ(lost(told, "no_date"), 0);
  const Recording eve = read_log(
      "time,gpu_util\nDec 31 23:59:58,90\nDec 31 23:59:59,91\nJan  1 00:00:00,92\nJan  1 00:00:01,93\n", options);
  expect_rows(eve);
  const Recording leap = read_log("time,gpu_util\nFeb 28 23:59:59,90\nFeb 29 00:00:00,91\n");
  EXPECT_THAT(times(leap), ElementsAre(0, 1));
  const Recording stamped = read_log(lines_of("", [](int i) {
    return (i == 0 ? "Nov 05 21:13:00 #Entity   GPUTL          POWER\nNov 05 21:13:00 ID                   W\n" : "") +
           fmt::format("Nov 05 21:13:0{0} GPU 0     9{0}             310.5", i);
  }));
  expect_rows(stamped);
}

TEST(FurtherForms, JavaScriptsDatesHaveTheirOffset) {
  const Recording r = read_log(lines_of("Time,gpu_util\n", [](int i) {
    return fmt::format("Wed Nov 05 2025 22:13:0{0} GMT+0100 (Central European Standard Time),9{0}", i);
  }));
  expect_rows(r);
  EXPECT_EQ(r.tracks[0].at[0], kT0);
}

TEST(FurtherForms, SeriesOfTimesAndValuesAreReadings) {
  const std::string clearml =
      R"({":monitor:gpu":{"gpu_0_utilization":{"name":"gpu_0_utilization","x":[1762377180000,1762377181000,1762377182000,)"
      R"(1762377183000],"y":[90,91,92,93]}},":monitor:machine":{"cpu_usage":{"x":[1762377180000,1762377181000],"y":[1,2]}}})";
  expect_rows(read_log(clearml));
  const std::string cloudwatch =
      R"({"MetricDataResults":[{"Id":"u","Label":"nvidia_smi_utilization_gpu","Timestamps":["2025-11-05T21:13:03Z",)"
      R"("2025-11-05T21:13:02Z","2025-11-05T21:13:01Z","2025-11-05T21:13:00Z"],"Values":[93,92,91,90]},{"Id":"m",)"
      R"("Label":"nvidia_smi_memory_used","Timestamps":["2025-11-05T21:13:03Z","2025-11-05T21:13:02Z",)"
      R"("2025-11-05T21:13:01Z","2025-11-05T21:13:00Z"],"Values":[8000,8000,8000,8000]}]})";
  const Recording r = read_log(cloudwatch);
  expect_rows(r);
  EXPECT_EQ(values(r, Metric::kMemoryUsed)[0], 8000.0 * 1048576);
  EXPECT_FALSE(import_log("log", R"({"gpu_0_utilization":{"x":[0,1,2],"y":[90,91,92]}})", {}).has_value())
      << "steps are no times";
}

TEST(FurtherForms, ProcessesWithinRecordsHaveTheRecordsTimes) {
  std::string text;
  const auto put = [&](int second, std::string_view line) {
    text += fmt::format(R"({{"log":"{}\n","stream":"stdout","time":"2025-11-05T21:13:0{}.5Z"}})"
                        "\n",
                        line, second);
  };
  put(0, "# gpu         pid   type     sm    mem    enc    dec    command");
  put(0, "# Idx           #    C/G      %      %      %      %    name");
  for (int i = 0; i < 4; ++i) {
    put(i, fmt::format("    0       812     C     5{}     15      -      -    python", i));
    put(i, "    0       977     C     40     15      -      -    triton");
  }
  expect_rows(read_log(text));
}

TEST(FurtherForms, EmptyCellsBesidePercentAreNoReadings) {
  const Recording r = read_log(lines_of("Time,GPU 0,GPU 1\n2025-11-05 21:12:59,,\n",
                                        [](int i) { return fmt::format("2025-11-05 21:13:0{0},9{0}%,40%", i); }));
  ASSERT_EQ(r.tracks.size(), 2u);
  EXPECT_EQ(values(r, Metric::kGpuUtil).back(), 0.93);
}

TEST(FurtherForms, WindowsCountsEnginesOfProcesses) {
  const std::string gpu = "luid_0x0_0x0000E8C5_phys_0";
  const auto engine = [&](int pid, std::string_view adapter, int number) {
    return fmt::format(R"(,"\\PC\GPU Engine(pid_{}_{}_eng_{}_engtype_3D)\Utilization Percentage")", pid, adapter,
                       number);
  };
  std::string text = "\"(PDH-CSV 4.0) (W. Europe Standard Time)(-60)\"" + engine(11, gpu, 0) + engine(12, gpu, 0) +
                     engine(12, gpu, 3) + engine(12, "luid_0x0_0x00000001_phys_0", 0) +
                     fmt::format(R"(,"\\PC\GPU Adapter Memory({})\Dedicated Usage")", gpu) + "\n";
  for (int i = 0; i < 4; ++i)
    text += fmt::format(
        "\"11/05/2025 22:13:0{0}.000\",\"50.000000\",\"4{0}.000000\",\"12,5\",\"0.000000\",\"5368709120\"\n", i);
  const Recording r = read_log(text + "\nExiting, please wait...\n");
  expect_rows(r);
  EXPECT_EQ(r.tracks[0].at[0], kT0);
  EXPECT_EQ(values(r, Metric::kMemoryUsed)[0], 5368709120.0);
}

TEST(FurtherForms, AdaptersOfWindowsAreCountedByTheirNumbers) {
  const auto use = [](std::string_view luid) {
    return fmt::format(R"(,"\\PC\GPU Engine(pid_4_luid_0x0_{}_phys_0_eng_0_engtype_3D)\Utilization Percentage")", luid);
  };
  std::string text = "\"(PDH-CSV 4.0) (GMT Standard Time)(0)\"" + use("0x10A3B") + use("0xE8C5") + "\n";
  for (int i = 0; i < 4; ++i) text += fmt::format("\"11/05/2025 21:13:0{0}.000\",\"40.0\",\"9{0}.0\"\n", i);
  const Recording r = read_log(text);
  ASSERT_EQ(r.tracks.size(), 2u);
  EXPECT_EQ(values(r, Metric::kGpuUtil, 0)[0], 0.9) << "0xE8C5 is the lower one";
}

TEST(FurtherForms, PanelsOfOneHostAreReadByTheUnitsInTheirCells) {
  const auto panel = [](std::string_view host, std::string_view other, std::string_view cell) {
    return lines_of(fmt::format("\"Time\",\"{0} GPU 0\",\"{1} GPU 1\"\n", host, other),
                    [&](int i) { return fmt::format("2025-11-05 21:13:0{0},9{0}{1},40{1}", i, cell); });
  };
  const Recording use = read_log(panel("node-1", "node-1", "%"));
  expect_rows(use, 2);
  EXPECT_EQ(values(use, Metric::kGpuUtil, 1)[0], 0.4);
  EXPECT_EQ(values(read_log(panel("node-1", "node-1", ".5 W")), Metric::kPower)[3], 93.5);
  EXPECT_EQ(values(read_log(panel("", "", " GiB")), Metric::kMemoryUsed, 1)[0], 40 * 1073741824.0);
  const Recording hosts = read_log(panel("node-1", "node-2", "%"));
  ASSERT_EQ(hosts.tracks.size(), 2u);
  EXPECT_EQ(values(hosts, Metric::kGpuUtil, 0)[3], 0.93);
  EXPECT_EQ(values(hosts, Metric::kGpuUtil, 1)[0], 0.4);
  EXPECT_THAT(hosts.sources[1].key + device_of(hosts.sources[1]).name, HasSubstr("node-2"));
  EXPECT_THAT(import_error(panel("fan-1", "fan-1", "%")).what, HasSubstr("fan-1 GPU 0"));
  EXPECT_THAT(import_error(panel("step-1", "step-1", "%")).what, HasSubstr("step-1 GPU 0"));
}

TEST(FurtherForms, PanelsOfLabelsAloneAreReadByTheUnitsInTheirCells) {
  const std::string header = R"("Time","{Hostname=""a1"", gpu=""0""}","{Hostname=""b2"", gpu=""0""}")";
  const Recording r =
      read_log(lines_of(header + "\n", [](int i) { return fmt::format("2025-11-05 21:13:0{0},9{0} %,40 %", i); }));
  ASSERT_EQ(r.tracks.size(), 2u);
  EXPECT_EQ(values(r, Metric::kGpuUtil, 0)[3], 0.93);
  EXPECT_EQ(values(r, Metric::kGpuUtil, 1)[0], 0.4);
}

TEST(FurtherForms, MemoryWithoutAUnitIsTakenAsItsNumbersAllow) {
  const auto log = [](std::string_view name, std::string_view memory, int util) {
    return read_log(lines_of(fmt::format("timestamp,gpu_utilization,{}\n", name),
                             [&](int i) { return fmt::format("2025-11-05 21:13:0{0},{1}{0},{2}", i, util, memory); }));
  };
  EXPECT_EQ(values(log("gpu_memory", "21900", 9), Metric::kMemoryUsed)[0], 21900 * 1048576.0) << "as nvidia-smi has it";
  EXPECT_TRUE(values(log("gpu_memory", "2.19", 9), Metric::kMemoryUsed).empty());
  EXPECT_TRUE(values(log("gpu_memory", "87", 9), Metric::kMemoryUsed).empty());
  const Recording share = log("gpu_memory_usage", "37.41", 9);
  EXPECT_TRUE(values(share, Metric::kMemoryUsed).empty()) << "37 MiB are too few for a program";
  EXPECT_THAT(detail(share, "column_not_kept"), HasSubstr("memory in use, in percent or GB"));
  EXPECT_EQ(values(log("gpu_memory_usage", "37.5", 0), Metric::kMemoryUsed)[0], 37.5 * 1048576)
      << "of nobody they are not";
  EXPECT_EQ(values(log("gpu_memory_usage", "37", 9), Metric::kMemoryUsed)[0], 37 * 1048576.0);
}

TEST(FurtherForms, ClocksInFrontOfLinesAndBetweenThemAreTimes) {
  expect_rows(read_log(lines_of("21:13:00 #Entity   GPUTL  POWER\n21:13:00 ID               W\n",
                                [](int i) { return fmt::format("21:13:0{0} GPU 0     9{0}     352.1", i); })));
  expect_rows(read_log(lines_of("utilization.gpu [%], memory.used [MiB]\n",
                                [](int i) { return fmt::format("21:13:0{0}\n9{0} %, 100 MiB", i); })));
}

TEST(FurtherForms, LengthsBehindWordsBetweenRowsAreNoTimes) {
  expect_rows(read_log(lines_of("utilization.gpu [%], memory.used [MiB]\n", [](int i) {
    return fmt::format("2025-11-05 21:13:0{0}\nETA: 00:12:34\n9{0} %, 100 MiB", i);
  })));
}

TEST(FurtherForms, Log4jHasTheYearFirst) {
  const auto log = [](std::string_view behind) {
    return read_log(lines_of("", [&](int i) {
      return fmt::format("25/11/05 21:13:0{0} {1}  GPU 0: Util=9{0}%, Mem=4.2GB/8.0GB (52%)", i, behind);
    }));
  };
  const Recording r = log("INFO NVMLMonitor:");
  expect_rows(r);
  EXPECT_EQ(r.tracks[0].at[0], kT0);
  EXPECT_EQ(lost(r, "assumed_date_order"), 0);
  const Recording assumed = log("INFO");  // as Python's logging may have it, with the day first
  EXPECT_EQ(assumed.tracks[0].at[0], kT0);
  EXPECT_THAT(detail(assumed, "assumed_date_order"), HasSubstr("read with the year first"));
}

TEST(FurtherForms, WhatWatchHeadsItsAnswersWithIsTheirTime) {
  expect_rows(read_log(lines_of("", [](int i) {
    return fmt::format(
        "Every 1.0s: nvidia-smi --query-gpu=utilization.gpu --format=csv   box: Wed Nov  5 21:13:0{0} 2025\n\n"
        "utilization.gpu [%], memory.used [MiB]\n9{0} %, 8123 MiB",
        i);
  })));
}

TEST(FurtherForms, TablesOfMarkdownAreReadAndThoseBetweenBlanksAreAskedForAsCsv) {
  const Recording r = read_log(lines_of("| time | gpu util | mem |\n|---|---:|---|\n", [](int i) {
    return fmt::format("| 2025-11-05 21:13:0{0} | 9{0}% | 10240 MiB |", i);
  }));
  expect_rows(r);
  EXPECT_EQ(lost(r, "unreadable_row"), 0);
  EXPECT_EQ(values(r, Metric::kMemoryUsed)[0], 10240 * 1048576.0);
  EXPECT_THAT(import_error("            timestamp  gpu_util\n0 2025-11-05 21:13:00        90\n").hint,
              HasSubstr("to_csv"));
}

TEST(FurtherForms, AnswersOfPrometheusOfAMomentEachAreRows) {
  const auto answer = [](int i) {
    return fmt::format(R"({{"status":"success","data":{{"resultType":"vector","result":[{{"metric":)"
                       R"({{"__name__":"DCGM_FI_DEV_GPU_UTIL","gpu":"0"}},"value":[{},"9{}"]}}]}}}})",
                       1'762'377'180 + i, i);
  };
  expect_rows(read_log(lines_of("", answer)));
  EXPECT_THAT(import_error(answer(0)).what, HasSubstr("readings of one moment"));
}

TEST(FurtherForms, LinesWithoutTimesAreReadWhereTheirIntervalIsTold) {
  const std::string text = lines_of("", [](int i) {
    return fmt::format("[GPU Monitor] Util: 9{}% | Mem: 7000MB / 24564MB\nEpoch {} - loss: 0.5", i, i);
  });
  EXPECT_THAT(import_error(text).hint, HasSubstr("--log-interval"));
  ImportOptions options;
  options.interval = kSecond;
  const Recording r = read_log(text, options);
  expect_rows(r);
  EXPECT_EQ(device_of(r.sources[0]).memory_total_bytes, std::int64_t{24564} << 20);
  expect_rows(
      read_log(lines_of(
          "",
          [](int i) {
            return fmt::format(
                "- time: 2025-11-05T21:13:0{0}\n  gpu0: {{util: 9{0}, mem: 8000}}\n  gpu1: {{util: 40, mem: 8000}}", i);
          })),
      2);
}

TEST(FurtherForms, TablesOfGpuUtilBelowTimesAreRead) {
  const std::string text = lines_of("", [](int i) {
    return fmt::format(
        "2025-11-05 21:13:0{0}.123456\n| ID | GPU | MEM |\n------------------\n|  0 | 9{0}% | 61% |\n|  1 | 34% | 22% "
        "|",
        i);
  });
  const Recording r = read_log(text);
  expect_rows(r, 2);
  EXPECT_THAT(detail(r, "column_not_kept"), HasSubstr("MEM"));
  std::string untimed;
  for (const std::string_view line : split(text, '\n'))
    if (!line.starts_with("2025")) untimed += std::string(line) + "\n";
  EXPECT_THAT(import_error(untimed).hint, HasSubstr("--log-interval"));
}

TEST(FurtherForms, RangesThatPromtoolPrintsAreRead) {
  std::string text;
  for (const int gpu : {0, 1}) {
    text += fmt::format("DCGM_FI_DEV_GPU_UTIL{{gpu=\"{}\", instance=\"n3:9400\", modelName=\"NVIDIA A30\"}} =>\n", gpu);
    for (int i = 0; i < 4; ++i) text += fmt::format("{} @[{}]\n", gpu == 0 ? 90 + i : 40, 1'762'377'180 + i);
  }
  const Recording r = read_log(text);
  expect_rows(r, 2);
  EXPECT_EQ(device_of(r.sources[0]).name, "NVIDIA A30");
  EXPECT_THAT(import_error("{} =>\n57 @[1762377180]\n58 @[1762377240]\n").what,
              HasSubstr("without the name of their metric"));
}

TEST(FurtherForms, RowsWithoutAHeaderAreAskedForByTheirCells) {
  EXPECT_EQ(import_error("2025/11/05 21:13:00.120, 45 %\n2025/11/05 21:13:02.120, 46 %\n").hint,
            "say it with --columns timestamp,utilization.gpu");
  EXPECT_THAT(import_error("2025/11/05 21:13:00.120, 0, NVIDIA A30, P0, 00000000:01:00.0, GPU-1, 71, 190.5 W\n").hint,
              HasSubstr("--columns timestamp,A,name,pstate,pci.bus_id,uuid,B,power.draw, with a name such as"));
  EXPECT_THAT(import_error("Wed Nov  5 21:13:00 2025,45 %,2 %\n").hint,
              HasSubstr("--columns timestamp,utilization.gpu,utilization.memory"));
  EXPECT_THAT(import_error("2025/11/05 21:13:00.120, 0, 71\n").hint, HasSubstr("A is 0, B is 71"));
}

TEST(FurtherForms, LinesAndAnswersOfGraphiteAreSeriesOfTheirLastParts) {
  std::string lines, two;
  for (int i = 0; i < 4; ++i)
    for (const int gpu : {0, 1}) {
      lines += fmt::format("servers.gpu07.nvidia.gpu{}.utilization_gpu {} {}\n", gpu, gpu == 0 ? 90 + i : 40,
                           kFormsBegin + i);
      lines += fmt::format("servers.gpu07.nvidia.gpu{}.memory_used 14011 {}\n", gpu, kFormsBegin + i);
      lines += fmt::format("servers.gpu07.cpu.{}.utilization 77 {}\n", gpu, kFormsBegin + i);
      two += fmt::format("n{}.gpu.0.util {} {}\n", gpu + 1, 90 + i, kFormsBegin + i);
    }
  const Recording r = read_log(lines);
  expect_rows(r, 2);
  EXPECT_EQ(r.meta.origin, "import:long-csv");
  EXPECT_EQ(values(r, Metric::kGpuUtil, 1)[3], 0.4);
  EXPECT_EQ(values(r, Metric::kMemoryUsed, 1)[0], 14011.0 * (1 << 20));
  const Recording hosts = read_log(two);
  expect_rows(hosts, 2);
  EXPECT_THAT(device_of(hosts.sources[1]).name, HasSubstr("n2"));
  const std::string answer = fmt::format(
      R"([{{"target": "a.gpu0.util", "tags": {{}}, "datapoints": [[90, {0}], [91, {1}], [92, {2}], [93, {3}], [null, {4}]]}},)"
      R"( {{"target": "a.gpu1.util", "datapoints": [[40, {0}], [40, {1}], [40, {2}], [41, {3}]]}}])",
      kFormsBegin, kFormsBegin + 1, kFormsBegin + 2, kFormsBegin + 3, kFormsBegin + 4);
  expect_rows(read_log(answer), 2);
  const std::string csv = lines_of(
      "", [](int i) { return fmt::format("servers.gpu07.gpu1.utilization,2025-11-05 21:13:0{},{}.0", i, 90 + i); });
  EXPECT_EQ(device_of(read_log(csv).sources[0]).index, 1);
  expect_rows(read_log(csv));
  const auto series_of_gpus = [](const char* form) {
    std::string text;
    for (const int gpu : {0, 1}) {
      std::string series = form;
      for (const auto& [mark, number] : {std::pair{"GPU", gpu},
                                         {"T0", kFormsBegin},
                                         {"T1", kFormsBegin + 1},
                                         {"T2", kFormsBegin + 2},
                                         {"T3", kFormsBegin + 3}})
        for (auto at = series.find(mark); at != std::string::npos; at = series.find(mark))
          series.replace(at, std::string_view(mark).size(), fmt::format("{}", number));
      text += (gpu == 0 ? "[" : ", ") + series;
    }
    return text + "]";
  };
  expect_rows(
      read_log(series_of_gpus(R"({"metric": "nvml.gpu_utilization", "scope": "host:n1,gpu:GPU", "display_name": "x", )"
                              R"("pointlist": [[T0000, 90.0], [T1000, 91.0], [T2000, 92.0], [T3000, 93.0]]})")),
      2);
  expect_rows(read_log(series_of_gpus(
                  R"({"metric": "gpu.utilization", "tags": {"host": "n1", "gpu": "GPU"}, "aggregateTags": [], )"
                  R"("dps": {"T0": 90, "T1": 91, "T2": 92, "T3": 93}})")),
              2);
  EXPECT_THAT(import_error("servers.web1.load 3.1 1762377180\nservers.web1.load 3.2 1762377190\n").what,
              HasSubstr("no reading of a GPU"));
}

TEST(FurtherForms, TablesInJsonWithTheirNamesOnceAreRead) {
  const auto rows = [](bool newest_first) {
    std::string text;
    for (int i = 0; i < 4; ++i) {
      const int at = newest_first ? 3 - i : i;
      text += fmt::format("{}[{}, {}, 8011]", i == 0 ? "" : ", ", kFormsBegin + at, 90 + at);
    }
    return text;
  };
  const std::string names = R"(["time", "utilization_gpu", "memory_used"])";
  std::string influx = R"({"results": [{"statement_id": 0, "series": [)";
  for (const int gpu : {0, 1})
    influx += fmt::format(R"({}{{"name": "nvidia_smi", "tags": {{"index": "{}"}}, "columns": {}, "values": [{}]}})",
                          gpu == 0 ? "" : ", ", gpu, names, rows(false));
  expect_rows(read_log(influx + "]}]}"), 2);
  const Recording netdata = read_log(fmt::format(R"({{"labels": {}, "data": [{}]}})", names, rows(true)));
  expect_rows(netdata);
  EXPECT_EQ(values(netdata, Metric::kMemoryUsed)[0], 8011.0 * (1 << 20));
  expect_rows(read_log(fmt::format(R"({{"columns": {}, "index": [0, 1, 2, 3], "data": [{}]}})", names, rows(false))));
  EXPECT_THAT(import_error(R"({"labels": ["time", "utilization_gpu"], "data": [[1762377180], [1762377181]]})").what,
              HasSubstr("JSON of a tool"));
}

TEST(FurtherForms, AReadingARowMayBeCalledByItsDimensionAndItsGpu) {
  std::string text;
  for (int i = 0; i < 4; ++i) {
    text += fmt::format(R"({{"Timestamp": {}, "Type": "cpu", "Name": "cpu0", "Dimension": "CPUUtilization", )"
                        R"("NodeId": "algo-1", "Value": 55.0}})",
                        kFormsBegin + i) +
            "\n";
    for (const int gpu : {0, 1})
      text += fmt::format(R"({{"Timestamp": {}, "Type": "gpu", "Name": "gpu{}", "Dimension": "GPUUtilization", )"
                          R"("NodeId": "algo-1", "Value": {}.0}})",
                          kFormsBegin + i, gpu, 90 + i) +
              "\n";
  }
  expect_rows(read_log(text), 2);
}

TEST(FurtherForms, SeriesAsVictoriaMetricsExportsThemAreRead) {
  std::string text;
  for (const int gpu : {0, 1})
    text += fmt::format(R"({{"metric":{{"__name__":"DCGM_FI_DEV_GPU_UTIL","gpu":"{}","modelName":"NVIDIA L4"}},)"
                        R"("values":[90,91,92,93],"timestamps":[{}000,{}000,{}000,{}000]}})",
                        gpu, kFormsBegin, kFormsBegin + 1, kFormsBegin + 2, kFormsBegin + 3) +
            "\n";
  const Recording r = read_log(text);
  expect_rows(r, 2);
  EXPECT_EQ(r.meta.origin, "import:prometheus");
  EXPECT_EQ(device_of(r.sources[0]).name, "NVIDIA L4");
}

TEST(FurtherForms, DatesOfDate1AndTimesBeforeATabAreThoseOfTheirRows) {
  const ImportOptions options{.columns = "utilization.gpu,memory.used"};
  for (const char* front : {"Mon Mar 10 09:15:0{} UTC 2025\t", "Mon Mar 10 09:15:0{} UTC 2025 ",
                            "Mon Mar 10 09:15:0{} 2025 ", "Mon 10 Mar 2025 09:15:0{} AM UTC "}) {
    const std::string text = lines_of(
        "", [&](int i) { return fmt::format(fmt::runtime(front), i) + fmt::format("{} %, 10240 MiB", 90 + i); });
    const Recording r = read_log(text, options);
    expect_rows(r);
    EXPECT_EQ(r.tracks[0].at[0] / kSecond, 1'741'598'100) << front;
    EXPECT_THAT(import_error(text).what, HasSubstr("rows of 2 cells behind a time, and no header")) << front;
  }
}

TEST(FurtherForms, WhatOnlySeemsToBeReadingsIsToldAsWhatItIs) {
  std::string job = "        Slurm Job Statistics\n  GPU utilization per node\n";
  for (int gpu = 0; gpu < 4; ++gpu) job += fmt::format("    della-i14g2 (GPU {}): 65.7%\n", gpu);
  EXPECT_THAT(import_error(job).what, HasSubstr("means of a whole job"));
  const std::string burn =
      "GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-5c)\nInitialized device 0 with 40339 MB of memory, using FLOATS\n"
      "1.0%  proc'd: 1000 (14803 Gflop/s)   errors: 0   temps: 61 C\n";
  EXPECT_THAT(import_error(burn).hint, HasSubstr("--query-gpu"));
}

TEST(FurtherForms, ColumnsMayBeToldByTheWordsOfHeaders) {
  std::string text;
  for (int i = 0; i < 4; ++i) text += fmt::format("{},{}, 10240,40, 9001,\n", kFormsBegin + i, 90 + i);
  EXPECT_THAT(import_error(text).hint, HasSubstr("--columns timestamp,A,B,C,D,-"));
  ImportOptions options;
  options.columns = "timestamp,gpu0_util,gpu0_mem,gpu1_util,gpu1_memory,-";
  const Recording r = read_log(text, options);
  expect_rows(r, 2);
  EXPECT_EQ(values(r, Metric::kMemoryUsed, 1)[0], 9001.0 * (1 << 20));
  options.columns = "timestamp,cpu,-,-,-,-";
  EXPECT_THAT(import_error(text, options).what, HasSubstr("no column is called 'cpu'"));
}

}  // namespace
}  // namespace headroom
