// SPDX-License-Identifier: Apache-2.0
// Tables as other tools, languages and trackers of experiments write them.
#include "import/log_column.h"
#include "import/log_test_support.h"

namespace headroom {
namespace {

using testing::ElementsAre;

TEST(Csv, WhateverTellsTheRowsOfOneTimeApartNamesTheGpus) {
  const auto gpus = [](const char* header, const char* first, const char* second) {
    std::string text = fmt::format("time,{},gpu_util_percent\n", header);
    for (int row = 0; row < 20; ++row)
      for (const char* gpu : {first, second})
        text += fmt::format("2025-02-03 10:{:02}:00,{},{}\n", row, gpu, gpu == first ? 20 : 40);
    const Recording r = read_log(text);
    return r.sources.size() == 2 ? values(r, Metric::kGpuUtil, 1).at(0) : 0;
  };
  EXPECT_EQ(gpus("Carte", "carte 0", "carte 1"), 0.4);
  EXPECT_EQ(gpus("device", "card0", "card1"), 0.4);
  EXPECT_EQ(gpus("Grafikkarte", "Karte 0", "Karte 1"), 0.4);
  EXPECT_EQ(gpus("whose", "alice", "bob"), 0.4);
  EXPECT_EQ(gpus("adapter", "RTX 3090", "RTX 4090"), 0.4);
}

TEST(Csv, ProcessesAndStepsThatTellRowsApartNameNoGpus) {
  const auto log = [](std::string_view header, int seconds) {
    std::string text = fmt::format("time,{},gpu_util_percent\n", header);
    for (int row = 0; row < 40; ++row)
      text += fmt::format("2025-02-03 10:0{}:{:02},{},{}\n", row * seconds / 120, row / 2 * seconds % 60, row % 2,
                          row % 2 * 50 + row);
    return text;
  };
  for (const char* header :
       {"pid", "process_name", "user", "jobName", "step", "Sample", "event", "status", "cpu core", "thread", "loss"})
    EXPECT_NE(import_error(log(header, 5)).what.find("tells them apart"), std::string::npos) << header;
  for (const char* header : {"pid", "user"})
    EXPECT_NE(import_error(log(header, 1)).what.find("tells them apart"), std::string::npos) << header;
  EXPECT_EQ(read_log(log("step", 1)).sources.size(), 1u) << "two samples in a second";
}

TEST(Csv, FreeMemoryAndTheWholeTellWhatIsInUse) {
  const auto log = [](std::string_view header, std::string_view cells) {
    std::string text = fmt::format("timestamp, utilization.gpu [%], {}\n", header);
    for (int row = 0; row < 3; ++row) text += fmt::format("2025/11/05 21:13:0{}.500, 80 %, {}\n", row, cells);
    return read_log(text);
  };
  const Recording left = log("memory.free [MiB], memory.total [MiB]", "1000 MiB, 24000 MiB");
  EXPECT_EQ(values(left, Metric::kMemoryUsed).at(2) / 1048576, 23000);
  EXPECT_EQ(lost(left, "column_not_kept"), 0);
  const Recording whole = log("memory.free [MiB], memory.used [MiB]", "1000 MiB, 22000 MiB");
  EXPECT_EQ(device_of(whole.sources[0]).memory_total_bytes, std::int64_t{23000} << 20U);
  EXPECT_EQ(values(whole, Metric::kMemoryUsed).at(0) / 1048576, 22000);
  EXPECT_EQ(lost(log("memory.free [MiB], memory.total [MiB]", "x MiB, 24000 MiB"), "unreadable_value"), 3);
  const Recording alone = log("memory.free [MiB]", "1000 MiB");
  EXPECT_TRUE(values(alone, Metric::kMemoryUsed).empty());
  EXPECT_EQ(detail(alone, "column_not_kept"), "free memory, without the whole");
}

TEST(Csv, ReasonsThatLimitNothingSayNothingOfThoseThatDo) {
  const auto log = [](std::string_view header, std::string_view cell) {
    std::string text = fmt::format("timestamp, power.draw [W], clocks_event_reasons.gpu_idle{}\n", header);
    for (int row = 0; row < 3; ++row) text += fmt::format("2025/11/05 21:13:0{}.500, 80 W, Active{}\n", row, cell);
    return read_log(text);
  };
  EXPECT_THAT(values(log("", ""), Metric::kEventReasons), ElementsAre(1, 1, 1)) << "nothing else says when it was idle";
  EXPECT_TRUE(values(log(", utilization.gpu [%]", ", 0 %"), Metric::kEventReasons).empty());
  EXPECT_EQ(values(log(", utilization.gpu [%], clocks_event_reasons.sw_power_cap", ", 0 %, Not Active"),
                   Metric::kEventReasons)
                .size(),
            3u);
}

TEST(Csv, OneRowOfEachGpuIsOneMoment) {
  std::string text = "index, timestamp, utilization.gpu [%]\n";
  for (int gpu = 0; gpu < 8; ++gpu) text += fmt::format("{}, 2025/11/05 21:13:07.4{}0, 50 %\n", gpu, gpu);
  const Recording r = read_log(text);
  ASSERT_EQ(r.tracks.size(), 8u);
  for (const Track& track : r.tracks) EXPECT_EQ(track.at, r.tracks[7].at);
  EXPECT_EQ(r.meta.end - r.meta.start, kSecond);
}

TEST(Csv, ARowPerMetricIsKnownByItsRows) {
  std::string text = "scrape_time,node,gpu_uuid,gpu_index,what,val\n";
  for (int row = 0; row < 20; ++row)
    text += fmt::format(
        "2025-08-01 00:{0:02}:00+00:00,n7,GPU-1,0,DCGM_FI_DEV_XID_ERRORS,0\n"
        "2025-08-01 00:{0:02}:00+00:00,n7,GPU-1,0,DCGM_FI_DEV_GPU_UTIL,94\n"
        "2025-08-01 00:{0:02}:00+00:00,n7,GPU-1,0,DCGM_FI_DEV_POWER_USAGE,352.5\n",
        row);
  const Recording r = read_log(text);
  EXPECT_EQ(values(r, Metric::kGpuUtil, 0).at(0), 0.94);
  EXPECT_EQ(values(r, Metric::kPower, 0).at(0), 352.5);
  EXPECT_NE(import_error("").what, "");
}

TEST(Csv, NumbersAsExcelWritesThemInEurope) {
  const auto memory = [](const char* cell) {
    const Recording r = read_log(fmt::format(
        "time;Auslastung GPU (%);Speicher belegt (MB)\n2025-02-03 10:00:00;73,8;{0}\n2025-02-03 10:00:01;7,5;{0}\n",
        cell));
    return values(r, Metric::kMemoryUsed).at(0) / 1048576;
  };
  for (const char* cell : {"11264", "11 264",
                           "11\xa0"
                           "264",
                           "11\xc2\xa0"
                           "264",
                           "11\xe2\x80\xaf"
                           "264",
                           "11'264", "11.264", "11.264,0",
                           "11\xc2\xa0"
                           "264\xc2\xa0"
                           "Mo"})
    EXPECT_EQ(memory(cell), 11264) << cell;
  EXPECT_EQ(memory("11.5"), 11.5) << "a point that groups nothing is a decimal one";
  EXPECT_NEAR(memory("0.125"), 0.125, 1e-6) << "nor one behind a zero";
  const Recording proof = read_log(
      "time;gpu_util;power;mem_used_mb\n2025-02-03 10:00:00;90; 1.250,5 W;\"11.264\"\n"
      "2025-02-03 10:00:01;91; 1.250,5 W;\"11.264\"\n");
  EXPECT_EQ(values(proof, Metric::kPower).at(0), 1250.5);
  EXPECT_EQ(values(proof, Metric::kMemoryUsed).at(0) / 1048576, 11264);
  const Recording split = read_log("Fecha;Hora;Uso GPU (%)\n28/05/2024;09:00:00;20\n28/05/2024;09:00:01;30\n");
  EXPECT_THAT(times(split), ElementsAre(0, 1));
}

TEST(Csv, MemoryWithoutAUnitIsInBytesWhereNoGpuHasSoMuch) {
  const Recording r = read_log(
      "timestamp,sys.gpu.0.gpu_utilization,sys.gpu.0.used_memory,sys.gpu.0.total_memory\n"
      "1709539200123,66.5,20401094656,25438126080\n1709539260123,66.2,20401094656,25438126080\n");
  EXPECT_EQ(values(r, Metric::kMemoryUsed).at(0), 20401094656.0);
  EXPECT_EQ(device_of(r.sources[0]).memory_total_bytes, 25438126080);
}

TEST(Csv, ColumnsWithLabelsOfTwoHostsAreTwoGpus) {
  const Recording r = read_log(
      "\"Time\",\"DCGM_FI_DEV_GPU_UTIL{gpu=\"\"0\"\", Hostname=\"\"a\"\"}\",\"DCGM_FI_DEV_GPU_UTIL{gpu=\"\"0\"\", "
      "Hostname=\"\"b\"\"}\"\n2024-05-14 13:02:30,93,91\n2024-05-14 13:02:45,93,81\n");
  ASSERT_EQ(r.sources.size(), 2u);
  EXPECT_THAT(values(r, Metric::kGpuUtil, 1), ElementsAre(0.91, 0.81));
}

TEST(Csv, ASecondColumnOfTheSameThingIsNamed) {
  const Recording r =
      read_log("time,gpu0_util,gpu_0_utilization\n2025-02-03 10:00:00,93,91\n2025-02-03 10:00:01,93,91\n");
  EXPECT_NE(detail(r, "column_not_kept").find("gpu_0_utilization"), std::string::npos);
}

TEST(Csv, AColumnWithoutANumberBesideNumberedOnes) {
  const Recording pandas = read_log("time,gpu_util,gpu_util.1\n2025-02-03 10:00:00,90,5\n2025-02-03 10:00:01,91,5\n");
  ASSERT_EQ(pandas.sources.size(), 2u);
  EXPECT_THAT(values(pandas, Metric::kGpuUtil, 0), ElementsAre(0.9, 0.91));
  const Recording mean =
      read_log("time,GPU 0 util,GPU 1 util,GPU util\n2025-02-03 10:00:00,90,30,40\n2025-02-03 10:00:01,91,31,40\n");
  ASSERT_EQ(mean.sources.size(), 2u);
  EXPECT_THAT(values(mean, Metric::kGpuUtil, 1), ElementsAre(0.3, 0.31));
  EXPECT_EQ(detail(mean, "column_not_kept"), "GPU util (line 1)");
}

TEST(Csv, ANumberOfAnEpochIsNoTime) {
  const std::string text = "epoch,step,gpu0_util\n0,49,20\n0,99,30\n1,149,40\n";
  EXPECT_NE(import_error(text).hint.find("--log-interval"), std::string::npos);
  EXPECT_EQ(lost(read_log("epoch,gpu0_util\n1709539200,20\n1709539201,30\n"), "no_timestamps"), 0);
}

TEST(Csv, RocmSmiInALoop) {
  std::string text;
  for (int round = 0; round < 3; ++round)
    text +=
        "device,GPU use (%),VRAM Total Memory (B),VRAM Total Used Memory (B)\ncard0,96,68702699520,60117872640\n"
        "card1,31,68702699520,11022020608\n\n";
  EXPECT_NE(import_error(text).hint.find("--log-interval"), std::string::npos);
  ImportOptions options;
  options.interval = 2 * kSecond;
  const Recording r = read_log(text, options);
  ASSERT_EQ(r.sources.size(), 2u);
  EXPECT_THAT(times(r, 1), ElementsAre(0, 2, 4));
  EXPECT_THAT(values(r, Metric::kMemoryUsed, 1), ElementsAre(11022020608.0, 11022020608.0, 11022020608.0));
}

TEST(Csv, TwoHeadersOfLibreHardwareMonitor) {
  const Recording r = read_log(
      ",/intelcpu/0/load/0,/gpu-nvidia/0/temperature/0,/gpu-nvidia/0/load/0,/gpu-nvidia/0/load/3,/gpu-nvidia/0/"
      "smalldata/1\n"
      "Time,\"CPU Total\",\"GPU Core\",\"GPU Core\",\"GPU Memory\",\"GPU Memory Used\"\n"
      "02/27/2024 20:15:03,37.8,66,67.9,71.9,7366\n02/27/2024 20:15:05,33.0,67,72.7,71.9,7367\n");
  ASSERT_EQ(r.sources.size(), 1u);
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.679, 0.727));
  EXPECT_THAT(values(r, Metric::kTemperature), ElementsAre(66, 67));
  EXPECT_THAT(values(r, Metric::kMemoryUsed), ElementsAre(7366 * 1048576.0, 7367 * 1048576.0));
  EXPECT_EQ(lost(r, "interleaved_message"), 0);
}

TEST(Csv, ARowWithTheNameOfAMetricIsNoHeader) {
  EXPECT_EQ(sniff_log("a,b,c\n1,2025-02-03 10:00:00,gpu_util\n2,2025-02-03 10:00:01,gpu_util\n"), LogFormat::kUnknown);
}

TEST(Csv, AnnotationsOfInfluxDbAreNoHeader) {
  std::string text;
  for (int gpu = 0; gpu < 2; ++gpu) {
    text += "#group,false,true\n#datatype,string,long\n#default,_result,\n,table,_time,_value,_field,index\n";
    for (int second = 0; second < 3; ++second)
      text += fmt::format(",{0},2024-05-28T09:00:0{1}Z,{2},utilization_gpu,{0}\n", gpu, second, 20 + gpu);
    text += "\n";
  }
  const Recording r = read_log(text);
  ASSERT_EQ(r.sources.size(), 2u);
  EXPECT_THAT(values(r, Metric::kGpuUtil, 1), ElementsAre(0.21, 0.21, 0.21));
}

TEST(Csv, DecimalCommasBetweenCommasAreNamedInTheRefusal) {
  std::string text = "Zeit,GPU,Auslastung [%],Leistung [W],Temperatur [C]\n", other = text;
  for (int s = 0; s < 5; ++s) {
    text += fmt::format("05.03.2025 09:17:0{},0,8{},5,209,04,65\n", s, s);
    other += fmt::format("05.03.2025 09:17:0{},0,8{},209.4,65,P0,ok\n", s, s);
  }
  EXPECT_THAT(import_error(text).hint, testing::HasSubstr("decimal commas"));
  EXPECT_THAT(import_error(text).hint, testing::HasSubstr("semicolons between cells"));
  EXPECT_THAT(import_error(other).hint, testing::Not(testing::HasSubstr("decimal commas")));
}

TEST(Csv, AnnotationsBetweenTablesOfColumnsAreNoLostRows) {
  std::string text;
  for (int gpu = 0; gpu < 3; ++gpu) {
    text +=
        "#group,false,false,true,true\r\n#datatype,string,long,dateTime:RFC3339,string,long\r\n"
        "#default,_result,,,,\r\n,result,table,_time,index,utilization_gpu\r\n";
    for (int second = 0; second < 3; ++second)
      text += fmt::format(",,{0},2024-05-28T09:00:0{1}Z,{0},{2}\r\n", gpu, second, 20 + gpu);
    text += "\r\n";
  }
  const Recording r = read_log(text);
  ASSERT_EQ(r.sources.size(), 3u);
  EXPECT_THAT(values(r, Metric::kGpuUtil, 2), ElementsAre(0.22, 0.22, 0.22));
  EXPECT_EQ(lost(r, "unreadable_row"), 0) << detail(r, "unreadable_row");
  EXPECT_EQ(lost(r, "interleaved_message"), 0);
}

TEST(Csv, GpusOfTwoHostsInATableWithARowPerMetric) {
  std::string text = "time,host,gpu,metric,value\n";
  for (int second = 0; second < 3; ++second)
    for (const char* host : {"a", "b"})
      text +=
          fmt::format("2024-05-28T09:00:0{0}Z,{1},0,utilization.gpu,{2}\n2024-05-28T09:00:0{0}Z,{1},0,power.draw,90\n",
                      second, host, host[0] == 'a' ? 20 : 70);
  const Recording r = read_log(text);
  ASSERT_EQ(r.sources.size(), 2u);
  EXPECT_THAT(values(r, Metric::kGpuUtil, 0), ElementsAre(0.2, 0.2, 0.2));
  EXPECT_THAT(values(r, Metric::kGpuUtil, 1), ElementsAre(0.7, 0.7, 0.7));
  EXPECT_EQ(lost(r, "duplicate_timestamp"), 0);
}

TEST(Csv, DatesOfWindowsWithAWeekday) {
  const Recording r = read_log("Zeit;GPU Auslastung (%)\nFr 14.03.2025 10:15:01,44;20\nFr 14.03.2025 10:15:02,94;30\n");
  EXPECT_THAT(times(r), ElementsAre(0, 1.5));
  EXPECT_THAT(times(read_log("time,gpu_util\nFri 03/14/2025 10:15:01.44,20\nFri 03/14/2025 10:15:02.94,30\n")),
              ElementsAre(0, 1.5));
  EXPECT_THAT(times(read_log("date;gpu_util\nmar. 11/03/2025 23:59:59,50;20\nmer. 12/03/2025 00:00:01,00;30\n")),
              ElementsAre(0, 1.5))
      << "the day changes";
}

// Rows with these times, and a column of utilisation.
std::string with_times(const char* header, const std::vector<std::string>& times) {
  std::string text = fmt::format("{},gpu_util (%)\n", header);
  for (std::size_t i = 0; i < times.size(); ++i) text += fmt::format("{},{}\n", times[i], 20 + i);
  return text;
}

TEST(Csv, ExcelCountsDays) {
  const std::vector<std::string> days{"44927.500000", "44927.500347", "44927.500694", "44927.501042"};
  for (const char* header : {"Time", "timestamp", "date_time"}) {
    const Recording r = read_log(with_times(header, days));
    ASSERT_EQ(r.tracks.size(), 1u);
    EXPECT_NEAR(times(r).back(), 90, 0.1) << header;
    EXPECT_EQ(r.tracks[0].at[0], 1672574400 * kSecond) << "2023-01-01 12:00";
  }
  const Recording comma = read_log("Zeit;GPU Auslastung (%)\n44927,500000;20\n44927,500347;30\n44927,500694;30\n");
  EXPECT_NEAR(times(comma).back(), 60, 0.1);
  const Recording elapsed = read_log(with_times("elapsed_s", days));
  EXPECT_LT(times(elapsed).back(), 1) << "the name says what it is";
}

TEST(Csv, SecondsOfAMachineAreNoDays) {
  EXPECT_THAT(times(read_log(with_times("time", {"44927.5", "44928.5", "44930.0"}))), ElementsAre(0, 1, 2.5));
  EXPECT_THAT(times(read_log(with_times("time", {"29999.5", "30000.5", "30001.5"}))), ElementsAre(0, 1, 2));
  const std::string text = with_times("time", {"44927.50", "44927.52", "44927.54"});
  EXPECT_NE(import_error(text).what.find("Excel"), std::string::npos) << "half an hour, or 20 ms";
  ImportOptions options;
  options.columns = "time=time (excel days)";
  EXPECT_NEAR(times(read_log(text, options)).back(), 0.04 * 86'400, 0.01);
  options.columns = "time=elapsed_s";
  EXPECT_NEAR(times(read_log(text, options)).back(), 0.04, 0.001);
}

TEST(Csv, RoundsOfMillisecondsAreNoDays) {
  const auto log = [](double round) {
    std::string text = "time,index,gpu_util\n";
    for (int row = 0; row < 12; ++row)
      text += fmt::format("{:.3f},{},{}\n", 40'000 + row / 3 * round + row % 3 * 0.002, row % 3, 20 + row);
    return text;
  };
  EXPECT_NE(import_error(log(1)).what.find("Excel"), std::string::npos);
  EXPECT_NEAR(times(read_log(log(5))).back(), 15, 0.01);
  EXPECT_NE(import_error(with_times("time", {"44927.0", "44927.00001", "44927.00002", "44930.0"})).what.find("Excel"),
            std::string::npos)
      << "days and nights";
}

TEST(Csv, SummerTimeThatBeginsOrEndsIsNoHour) {
  const auto length = [](const char* first, const char* last) {
    const Recording r = read_log(with_times("date", {first, last}));
    return r.tracks.empty() ? -1 : times(r).back();
  };
  EXPECT_EQ(length("Sun Mar 31 01:59:50 CET 2024", "Sun Mar 31 03:00:00 CEST 2024"), 10);
  EXPECT_EQ(length("Sun Oct 27 02:59:50 CEST 2024", "Sun Oct 27 02:00:00 CET 2024"), 10);
  EXPECT_EQ(length("2024-11-03 01:59:50 EDT", "2024-11-03 01:00:00 EST"), 10);
  EXPECT_EQ(length("Sun Mar 31 00:59:50 GMT 2024", "Sun Mar 31 02:00:00 BST 2024"), 10);
  EXPECT_EQ(length("Sun Oct 27 01:59:50 BST 2024", "Sun Oct 27 01:00:00 GMT 2024"), 10);
  EXPECT_EQ(length("2024-03-31 01:59:50 CET", "2024-03-31 02:00:00 CET"), 10);
  ImportOptions options;
  options.utc_offset = [](std::int64_t) { return std::int64_t{3600}; };
  const Recording r =
      read_log(with_times("date", {"Sun Mar 31 01:59:50 CET 2024", "Sun Mar 31 03:00:00 CEST 2024"}), options);
  EXPECT_EQ(r.tracks[0].at[1], 1711846800 * kSecond) << "01:00 UTC";
}

TEST(Csv, ListsInCellsAreARowOfEachGpu) {
  for (const char* row : {"\"[10, 20]\",\"[1024, 2048]\"", "\"(10, 20)\",\"(1024, 2048)\"", "[10. 20.],[1024 2048]",
                          "\"['10 %', '20 %']\",\"[1024, 2048]\""}) {
    const Recording r =
        read_log(fmt::format("time,gpu_util,mem_used_mib\n2025-02-03 10:00:00,{0}\n2025-02-03 10:00:01,{0}\n", row));
    ASSERT_EQ(r.sources.size(), 2u) << row;
    EXPECT_THAT(values(r, Metric::kGpuUtil, 1), ElementsAre(0.2, 0.2));
    EXPECT_THAT(values(r, Metric::kMemoryUsed, 0), ElementsAre(1073741824.0, 1073741824.0));
  }
  const Recording named = read_log(
      "time,gpu,gpu_util\n2025-02-03 10:00:00,\"[2, 5]\",\"[10, 20]\"\n2025-02-03 10:00:01,\"[2, 5]\",\"[10, 20]\"\n");
  ASSERT_EQ(named.sources.size(), 2u);
  EXPECT_EQ(device_of(named.sources[1]).index, 5);
  const Recording odd = read_log(
      "time,gpu_util\n2025-02-03 10:00:00,\"[10, 20]\"\n2025-02-03 10:00:01,\"[10, 20]\"\n2025-02-03 "
      "10:00:02,\"[10]\"\n2025-02-03 10:00:03,\"[10, 20]\"\n");
  EXPECT_EQ(lost(odd, "unreadable_row"), 1) << "of which GPU?";
  const Recording total = read_log(
      "time,gpu_util,mem_used_mib\n2025-02-03 10:00:00,90,\"(3000, 24000)\"\n2025-02-03 10:00:01,91,\"(3000, "
      "24000)\"\n");
  EXPECT_EQ(total.sources.size(), 1u) << "used and total of one GPU";
  EXPECT_EQ(lost(total, "unreadable_value"), 2);
}

TEST(Csv, ColumnsThatComeAgainAreOfTheNextGpu) {
  const Recording amd = read_log(
      "Timestamp,gpu,socket_power,gfx_activity,umc_activity,gpu,socket_power,gfx_activity,umc_activity,\n"
      "1719300000,4,713,97,48,6,384,41,20,\n1719300010,4,713,97,48,6,384,43,20,\n");
  ASSERT_EQ(amd.sources.size(), 2u);
  EXPECT_EQ(device_of(amd.sources[1]).index, 6);
  EXPECT_THAT(values(amd, Metric::kGpuUtil, 1), ElementsAre(0.41, 0.43));
  EXPECT_THAT(values(amd, Metric::kMemoryUtil, 0), ElementsAre(0.48, 0.48));
  const Recording bare =
      read_log("time,util,power,util,power\n2025-02-03 10:00:00,10,100,20,200\n2025-02-03 10:00:01,10,100,20,200\n");
  ASSERT_EQ(bare.sources.size(), 2u);
  EXPECT_THAT(values(bare, Metric::kPower, 1), ElementsAre(200, 200));
  const Recording twice = read_log("time,util,util\n2025-02-03 10:00:00,10,10\n2025-02-03 10:00:01,10,10\n");
  EXPECT_EQ(twice.sources.size(), 1u);
}

TEST(Csv, NamesOfOtherLanguagesAndLibraries) {
  const auto first_util = [](const char* header) {
    const auto r =
        import_log("log", fmt::format("time,{}\n2025-02-03 10:00:00,40\n2025-02-03 10:00:01,50\n", header), {});
    const auto all = r ? values(*r, Metric::kGpuUtil) : std::vector<double>{};
    return all.empty() ? -1 : all[0];
  };
  for (const char* header :
       {"Uso de GPU (%)", "Uso da GPU (%)", "Utilisation du GPU (%)", "Carga de GPU (%)", "Utilizzo della GPU [%]",
        "gpu_compute_util", "torch.cuda.utilization", "GPU compute usage (%)", "gfx_activity"})
    EXPECT_EQ(first_util(header), 0.4) << header;
  const Recording date = read_log("Data;Hora;Uso da GPU (%)\n30/08/2024;09:00:00;20,5\n30/08/2024;09:00:01;30,5\n");
  EXPECT_EQ(date.tracks.at(0).at.at(0), 1725008400 * kSecond);
  EXPECT_THAT(times(read_log("Data e hora,Uso da GPU (%)\n30/08/2024 09:00:00,20\n30/08/2024 09:00:01,30\n")),
              ElementsAre(0, 1));
}

TEST(Csv, UtilizationThatIsNotUnderstoodIsNoLogWithoutOne) {
  const Error name = import_error("time,power_w,gpu_util_p95\n2025-02-03 10:00:00,40,20\n2025-02-03 10:00:01,50,30\n");
  EXPECT_NE(name.what.find("gpu_util_p95"), std::string::npos);
  EXPECT_NE(name.hint.find("--columns gpu_util_p95=utilization.gpu"), std::string::npos);
  const Error value = import_error("time,power_w,gpu_util\n2025-02-03 10:00:00,40,9|8\n2025-02-03 10:00:01,50,7|6\n");
  EXPECT_NE(value.what.find("9|8"), std::string::npos);
  const Error some = import_error("time,power_w,gpu_util\n2025-02-03 10:00:00,40,[N/A]\n2025-02-03 10:00:01,50,7|6\n");
  EXPECT_NE(some.what.find("7|6"), std::string::npos);
  const Recording others = read_log("time,power_w,cpu_util,gpu_mem_util_max\n2025-02-03 10:00:00,40,20,30\n");
  EXPECT_EQ(others.tracks.size(), 1u);
  const Recording absent =
      read_log("time,power_w,gpu_util\n2025-02-03 10:00:00,40,[N/A]\n2025-02-03 10:00:01,50,[N/A]\n");
  EXPECT_EQ(absent.tracks.size(), 1u);
}

TEST(Csv, FractionsAndPercentInOneColumnAreRefused) {
  const auto log = [](const std::vector<const char*>& cells) {
    std::string text = "time,gpu_util\n";
    for (std::size_t i = 0; i < cells.size(); ++i) text += fmt::format("2025-02-03 10:00:0{},{}\n", i, cells[i]);
    return text;
  };
  const Error mixed = import_error(log({"0.9", "90", "1", "0.8", "85", "0.7", "70"}));
  EXPECT_NE(mixed.what.find("percent in one column"), std::string::npos);
  const Recording means = read_log(log({"0.9", "90", "1", "0.8", "85.5", "0.7", "70"}));
  EXPECT_EQ(values(means, Metric::kGpuUtil).at(1), 0.9) << "percent of an average";
}

TEST(Csv, DurationsBesideReadingsAreNoTableOfNsys) {
  for (const char* header : {"timestamp,Start,Duration,gpu_util", "Time,Duration,Start,GPU util"})
    EXPECT_EQ(
        read_log(fmt::format("{}\n2025-02-03 10:00:00,1,2,90\n2025-02-03 10:00:01,1,2,91\n", header)).sources.size(),
        1u)
        << header;
  const Error timed = import_error(
      "timestamp,pid,gpu_utilization [%],max_memory_usage [MiB],time [ms]\n2025-02-03 10:00:00,7,50,900,800\n");
  EXPECT_NE(timed.what.find("that have ended"), std::string::npos);
  EXPECT_EQ(timed.what.find("times of day"), std::string::npos);
}

TEST(Csv, FansAreNoFractions) {
  const Recording r = read_log("time,gpu_util,fan_speed\n2025-02-03 10:00:00,90,30\n2025-02-03 10:00:01,91,31\n");
  EXPECT_THAT(values(r, Metric::kFan), ElementsAre(0.3, 0.31));
}

TEST(Csv, ACellThatWasPutTogetherHasNoPlaceInItsLine) {
  const Error error = import_error("time,gpu0_util,gpu1_util\n2025-02-03 10:00:00,9|8,7|6\n2025-02-03 10:00:01,a,b\n");
  EXPECT_NE(error.what.find("column 21"), std::string::npos) << error.what;
}

TEST(Csv, HeadersWithoutEndAreSkipped) {
  std::string header = "time,gpu_util," + std::string(1'000, 'x'), row = "2025-02-03 10:00:00,90,1";
  for (int i = 0; i < 20'000; ++i) header += ",epoch", row += ",1";
  EXPECT_EQ(read_log(header + "\n" + row + "\n" + row + "\n").sources.size(), 1u);
}

TEST(Csv, ProcessesThatHaveEndedAreNoLog) {
  for (const char* text :
       {"gpu_name, pid, gpu_utilization [%], mem_utilization [%], max_memory_usage [MiB], time [ms]\n"
        "Tesla T4, 10000, 68 %, 8 %, 10421 MiB, 805939 ms\n",
        "pid, gpu_utilization [%], time [ms]\n10000, 68 %, 805939 ms\n"}) {
    const Error error = import_error(text);
    EXPECT_NE(error.what.find("--query-accounted-apps"), std::string::npos) << error.what;
    EXPECT_NE(error.hint.find("--query-gpu"), std::string::npos);
  }
}

TEST(Csv, TheUseInATableOfGpusIsTheirs) {
  for (const char* header : {"Load %", "Load (%)", "usage_percent", "Use [%]", "busy %"}) {
    const Recording r = read_log(fmt::format(
        "Timestamp,GPU,{},Power (W)\n3/17/2025 11:59:50 PM,0,64,210\n3/17/2025 11:59:55 PM,0,70,210\n", header));
    EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.64, 0.7)) << header;
  }
  const Recording host =
      read_log("time,usage (%),cpu_temp,gpu_util\n2025-02-03 10:00:00,64,50,20\n2025-02-03 10:00:01,64,50,30\n");
  EXPECT_THAT(values(host, Metric::kGpuUtil), ElementsAre(0.2, 0.3)) << "of whatever: a CPU is in the table";
  const Recording megabytes =
      read_log("time,gpu_temp,usage (MB)\n2025-02-03 10:00:00,64,50\n2025-02-03 10:00:01,64,50\n");
  EXPECT_EQ(detail(megabytes, "column_not_kept"), "usage (MB) (line 1)");
}

TEST(Csv, ATimeAboveEachAnswerIsThatOfItsRows) {
  std::string text;
  for (int s = 0; s < 3; ++s)
    text += fmt::format(
        "Tue May  6 08:00:{:02} UTC 2025\ndevice,Temperature (Sensor edge) (C),GPU use (%)\ncard0,48.0,{}\n"
        "card1,50.0,7\n\n",
        10 * s, 90 + s);
  const Recording r = read_log(text);
  ASSERT_EQ(r.sources.size(), 2u);
  EXPECT_THAT(times(r, 1), ElementsAre(0, 10, 20));
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.9, 0.91, 0.92));
  EXPECT_EQ(lost(r, "interleaved_message"), 0);
  const Recording own = read_log("2025-02-03 09:00:00\n" + smi({{0, 50}, {1, 60}}));
  EXPECT_THAT(times(own), ElementsAre(0, 1)) << "rows that have times keep them";
}

TEST(Csv, TheLastTwoLinesOfHwinfoAreNoRows) {
  const std::string header = "Date,Time,\"Total CPU Usage [%]\",\"GPU Core Load [%]\",\n";
  const Recording r = read_log(header + "15.1.2025,18:22:01.123,8.0,90.0,\n15.1.2025,18:22:03.123,8.0,92.0,\n" +
                               header + ",,\"CPU [#0]: AMD Ryzen 9\",\"GPU [#0]: NVIDIA GeForce RTX 3080\",\n");
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.9, 0.92));
  EXPECT_EQ(lost(r, "unreadable_row"), 0);
  EXPECT_EQ(lost(r, "repeated_header"), 0) << "no run was appended";
  const Recording twice =
      read_log(header + "15.1.2025,18:22:01.123,8.0,90.0,\n" + header + "15.1.2025,18:22:03.123,8.0,92.0,\n" + header);
  EXPECT_EQ(lost(twice, "repeated_header"), 1);
  const Recording cut = read_log(header + "15.1.2025,18:22:01.123,8.0,90.0,\n,,8.0,92.0,\n");
  EXPECT_EQ(lost(cut, "unreadable_row"), 1) << "elsewhere a row without a time is lost";
}

TEST(Csv, MinutesAreMinutesAndTimesSinceTheBeginningMayHaveNoHours) {
  const Recording minutes = read_log("minutes,gpu_util\n0,40\n0.25,50\n0.50,60\n");
  ASSERT_EQ(minutes.tracks[0].at.size(), 3u);
  EXPECT_EQ(minutes.tracks[0].at[1] - minutes.tracks[0].at[0], 15 * kSecond);
  const Recording elapsed = read_log("elapsed,gpu_util\n59:55,40\n59:58,50\n1:00:01,60\n");
  EXPECT_THAT(times(elapsed), ElementsAre(0, 3, 6));
  EXPECT_THAT(import_error("time,gpu_util\n00:00,40\n00:03,50\n").what,
              testing::HasSubstr("cannot read '00:00' as a time"));
}

TEST(Csv, NamesInLanguagesOfEastAsiaAndEasternEurope) {
  for (const char* header :
       {"日時,GPU使用率 [%],GPUメモリ使用量 [MB],消費電力 [W]", "시간,GPU 사용률(%),GPU 메모리 사용량(MB),전력(W)",
        "Время,Загрузка ГП (%),Видеопамять использовано (МБ),Мощность ГП (Вт)",
        "tijd,GPU belasting (%),GPU geheugen gebruikt (MB),vermogen (W)",
        "Horodatage,Utilisation GPU (%),Mémoire utilisée (Mo),Consommation (W)"}) {
    const Recording r =
        read_log(std::string(header) + "\n2025-03-10 10:00:00,40,9000,210\n2025-03-10 10:00:01,50,9000,211\n");
    EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.4, 0.5)) << header;
    EXPECT_THAT(values(r, Metric::kMemoryUsed), ElementsAre(9000 * 1048576.0, 9000 * 1048576.0)) << header;
    EXPECT_THAT(values(r, Metric::kPower), ElementsAre(210, 211)) << header;
  }
}

TEST(Csv, ClocksOfRocmSmiStandInBrackets) {
  const Recording r = read_log(
      "time,device,sclk clock speed:,mclk clock speed:,GPU use (%)\n2025-03-10 10:00:00,card0,(1700Mhz),(1600Mhz),40\n"
      "2025-03-10 10:00:01,card0,(840Mhz),(1600Mhz),50\n");
  EXPECT_THAT(values(r, Metric::kSmClock), ElementsAre(1700, 840));
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.4, 0.5));
}

}  // namespace
}  // namespace headroom
