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

}  // namespace
}  // namespace headroom
