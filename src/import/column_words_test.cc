// SPDX-License-Identifier: Apache-2.0
#include "import/column_words.h"

#include <gtest/gtest.h>

#include "import/log_column.h"

namespace headroom {
namespace {

std::string read_as(std::string_view header) {
  const auto column = column_by_words(header);
  if (!column) return "";
  std::string text(column->name);
  if (column->gpu) text += " of " + std::to_string(*column->gpu);
  if (!column->unit.empty()) text += " in " + column->unit;
  return text;
}

TEST(ColumnWords, ReasonsOfLowClocksInAnySpelling) {
  for (const char* header : {"SwPowerCap", "sw_power_cap", "SW Power Cap", "SWPowerCap", "clocks_throttle_sw_power_cap",
                             "nvmlClocksThrottleReasonSwPowerCap", "throttle_reason_power_cap", "power_throttling",
                             "Performance Limit - Power [Yes/No]", "throttle.power"})
    EXPECT_EQ(read_as(header), "reasons.sw_power_cap") << header;
  EXPECT_EQ(read_as("HW Slowdown"), "reasons.hw_slowdown");
  EXPECT_EQ(read_as("HwSlowdown [Yes/No]"), "reasons.hw_slowdown");
  EXPECT_EQ(read_as("gpu1_hw_thermal_slowdown"), "reasons.hw_thermal_slowdown of 1");
  EXPECT_EQ(read_as("thermal_throttled"), "reasons.sw_thermal_slowdown");
  EXPECT_EQ(read_as("PowerBrake"), "reasons.hw_power_brake_slowdown");
  for (const char* header : {"throttle_reasons", "ClocksThrottleReasons", "clock_event_reasons_active",
                             "throttle reasons (hex)", "GPU Throttle Reason", "clocks_event_reasons_bitmask"})
    EXPECT_EQ(read_as(header), "reasons.active") << header;
  EXPECT_EQ(read_as("PerfCap Reason []"), "reasons.perfcap");
  for (const char* header :
       {"MaxSmClock", "max_sm_clock_mhz", "Max SM Clock (MHz)", "gpu_clock_max", "sm_clock_maximum"})
    EXPECT_EQ(read_as(header).substr(0, 13), "clocks.max.sm") << header;
  EXPECT_EQ(read_as("power_cap"), "power.limit");
  EXPECT_EQ(read_as("GPU Power (W)"), "power.draw in W");
  for (const char* header : {"reason", "status", "GPU Performance State", "throttle temperature (C)", "sw_power_cap_us",
                             "Core Thermal Throttling [Yes/No]", "Thermal Throttling (PROCHOT CPU) [Yes/No]",
                             "thermal_violation", "cpu_throttled"})
    EXPECT_EQ(read_as(header), "") << header;
}

TEST(ColumnWords, SpellingsOfOneThing) {
  for (const char* header : {"GPU Utilization (%)", "gpu_utilization_percent", "gpuUtil [%]", "GPU use (%)",
                             "gpu-load %", "nvidia_gpu_usage_pct", "GPUUtil (%)", "avg gpu util [%]", "GPU (%)"})
    EXPECT_EQ(read_as(header), "utilization.gpu in %") << header;
  for (const char* header :
       {"Memory Used (MB)", "gpu_mem_used_mb", "gpuMemoryUsed [MiB]", "VRAM used MB", "gpu_memory_MB"})
    EXPECT_EQ(read_as(header), "memory.used in MiB") << header;
  EXPECT_EQ(read_as("Power (W)"), "power.draw in W");
  EXPECT_EQ(read_as("power_draw_watts"), "power.draw in W");
  EXPECT_EQ(read_as("gpu power limit [W]"), "power.limit in W");
  EXPECT_EQ(read_as("system.gpu.0.enforcedPowerLimitWatts"), "enforced.power.limit of 0 in W");
  EXPECT_EQ(read_as("GPU Temperature (C)"), "temperature.gpu in C");
  EXPECT_EQ(read_as("sm_clock_mhz"), "clocks.sm in MHz");
  EXPECT_EQ(read_as("Memory Total [GiB]"), "memory.total in GiB");
  EXPECT_EQ(read_as("PCIe RX [MB/s]"), "pcie_rx_bytes_per_second in MB/s");
  EXPECT_EQ(read_as("pcie_tx_mb_s"), "pcie_tx_bytes_per_second in MB/s");
  EXPECT_EQ(read_as("PCIe TX (GB per sec)"), "pcie_tx_bytes_per_second in GB per sec")
      << "in brackets it is as it stands";
  EXPECT_EQ(read_as("gpu_pcie_rx_kb_per_sec"), "pcie_rx_bytes_per_second in KB/s");
  EXPECT_EQ(read_as("GPU ID"), "index");
  EXPECT_EQ(read_as("GPU-0 mem MiB"), "memory.used of 0 in MiB");
  EXPECT_EQ(read_as("memory used GiB"), "memory.used in GiB");
}

TEST(ColumnWords, WhereAPartIsNamedItsUnitTellsWhatIsMeant) {
  EXPECT_EQ(read_as("gpu_sm_pct"), "utilization.gpu in %");
  EXPECT_EQ(read_as("gpu_sm_mhz"), "clocks.sm in MHz");
  EXPECT_EQ(read_as("sm_mhz"), "clocks.sm in MHz");
  EXPECT_EQ(read_as("graphics_mhz"), "clocks.sm in MHz");
  EXPECT_EQ(read_as("core_mhz"), "") << "a core may be the CPU's";
  EXPECT_EQ(read_as("gpu_membw_pct"), "utilization.memory in %");
  EXPECT_EQ(read_as("gpu_mem_bw_util"), "utilization.memory");
  EXPECT_EQ(read_as("gpu_w"), "power.draw in W");
  EXPECT_EQ(read_as("gpu0 (C)"), "temperature.gpu of 0 in C");
  EXPECT_EQ(read_as("gpu_mhz"), "clocks.sm in MHz");
  EXPECT_EQ(read_as("watts"), "power.draw");
  EXPECT_EQ(read_as("cpu_watts"), "");
  EXPECT_EQ(read_as("sm_pct"), "") << "of what, nobody says";
  EXPECT_TRUE(may_be_utilization("gpu_compute_pct"));
  EXPECT_FALSE(may_be_utilization("gpu_bus_pct"));
}

TEST(ColumnWords, AColumnPerGpu) {
  EXPECT_EQ(read_as("gpu0_util"), "utilization.gpu of 0");
  EXPECT_EQ(read_as("GPU 3 Utilization (%)"), "utilization.gpu of 3 in %");
  EXPECT_EQ(read_as("system.gpu.1.gpu"), "utilization.gpu of 1");
  EXPECT_EQ(read_as("system.gpu.1.powerWatts"), "power.draw of 1 in W");
  EXPECT_EQ(read_as("system.gpu.1.memoryAllocatedBytes"), "memory.used of 1 in B");
  EXPECT_EQ(read_as("cuda:1 memory used (GB)"), "memory.used of 1 in GiB");
  EXPECT_EQ(read_as("cuda:0 (gpu:0)/gpu_utilization (%)/mean"), "utilization.gpu of 0 in %");
  EXPECT_EQ(read_as("cuda:0 (gpu:0)/memory_used (MiB)/mean"), "memory.used of 0 in MiB");
  EXPECT_EQ(read_as("lively-sun-4 - system/gpu.0.gpu"), "utilization.gpu of 0");
  EXPECT_EQ(read_as("lively-sun-4 - system/gpu.0.memoryAllocated"), "");
}

TEST(ColumnWords, WhatIsAboutSomethingElseIsLeft) {
  for (const char* header :
       {"cpu_util", "cpu_percent", "ram_used_gb", "system.cpu", "memory", "gpu0", "loss", "usage", "name", "step",
        "process_gpu_memory_mb", "system.gpu.0.memoryAllocated", "learning_rate", "", "%", "(W)", "40", "GPU-aa"})
    EXPECT_EQ(read_as(header), "") << header;
  EXPECT_FALSE(csv_column("gpu_memory_percent")) << "how full it is";
}

TEST(ColumnWords, Times) {
  for (const char* header : {"elapsed", "seconds", "runtime", "_runtime", "relative_time", "date", "Date", "time_stamp",
                             "created_at", "epoch_time", "unix_time", "local_time", "uptime", "Time (UTC)"})
    EXPECT_EQ(read_as(header), "timestamp") << header;
  EXPECT_EQ(read_as("elapsed_s"), "timestamp in s");
  EXPECT_EQ(read_as("time_sec"), "timestamp in sec");
  EXPECT_EQ(read_as("Elapsed Time (ms)"), "timestamp in ms");
  EXPECT_EQ(read_as("Relative Time (Process)"), "timestamp");
  EXPECT_EQ(read_as("step_time"), "");
  EXPECT_EQ(read_as("epoch"), "timestamp") << "which a number of an epoch is not: see the tests of whole tables";
}

TEST(ColumnWords, AHeaderIsToldAsUtf8WhateverItWas) {
  EXPECT_EQ(header_as_utf8("GPU Temperature [\xb0"
                           "C]"),
            "GPU Temperature [\xc2\xb0"
            "C]");
  EXPECT_EQ(header_as_utf8("M\xe9moire \x80"), "M\xc3\xa9moire ?");
  EXPECT_EQ(header_as_utf8("M\xc3\xa9moire 显存"), "M\xc3\xa9moire 显存");
}

TEST(ColumnWords, OtherLanguagesWhateverTheirEncoding) {
  EXPECT_EQ(read_as("M\xc3\xa9moire utilis\xc3\xa9"
                    "e (Mo)"),
            "memory.used in MiB");
  EXPECT_EQ(read_as("M\xe9moire utilis\xe9"
                    "e (Mo)"),
            "memory.used in MiB")
      << "Windows-1252";
  EXPECT_EQ(read_as("Temp\xe9rature (\xb0"
                    "C)"),
            "temperature.gpu in C");
  EXPECT_EQ(read_as("Temperatur (\xc2\xb0"
                    "C)"),
            "temperature.gpu in C");
  EXPECT_EQ(read_as("GPU-Auslastung (%)"), "utilization.gpu in %");
  EXPECT_EQ(read_as("Leistungsaufnahme (W)"), "power.draw in W");
  EXPECT_EQ(read_as("Uso GPU (%)"), "utilization.gpu in %");
  EXPECT_EQ(read_as("Utilizaci\xc3\xb3n GPU (%)"), "utilization.gpu in %");
  EXPECT_EQ(read_as("Horodatage"), "timestamp");
  EXPECT_EQ(read_as("Datum und Uhrzeit"), "timestamp");
  EXPECT_EQ(read_as("Auslastung CPU (%)"), "");
  EXPECT_EQ(read_as("GPU利用率（％）"), "utilization.gpu in %");
  EXPECT_EQ(read_as("图形处理器利用率"), "utilization.gpu");
  EXPECT_EQ(read_as("GPU占用率"), "utilization.gpu");
  EXPECT_EQ(read_as("显存已用(MB)"), "memory.used in MiB");
  EXPECT_EQ(read_as("总显存(MB)"), "memory.total in MiB");
  EXPECT_EQ(read_as("GPU核心温度"), "temperature.gpu");
  EXPECT_EQ(read_as("采样时间"), "timestamp");
  for (const char* header : {"处理器利用率", "内存利用率", "主机功耗", "硬盘温度", "整机功耗", "显存占用率",
                             "процессор temp", "CPU核心温度"})
    EXPECT_EQ(read_as(header), "") << header;
}

TEST(ColumnWords, NamesOfTrackersOfExperiments) {
  EXPECT_EQ(read_as("sys.gpu.0.gpu_utilization"), "utilization.gpu of 0");
  EXPECT_EQ(read_as("sys.gpu.1.used_memory"), "memory.used of 1");
  EXPECT_EQ(read_as("sys_util"), "") << "whose?";
  EXPECT_EQ(read_as("system/gpu_0_utilization_percentage"), "utilization.gpu of 0 in %");
  EXPECT_EQ(read_as("system/gpu_1_memory_usage_megabytes"), "memory.used of 1 in MiB");
  EXPECT_FALSE(csv_column("system/gpu_1_memory_usage_percentage")) << "how full it is";
  EXPECT_EQ(read_as("gpu_id: 1/utilization.gpu (%)"), "utilization.gpu of 1 in %");
  EXPECT_EQ(read_as("perf/gpu_util_percent2"), "utilization.gpu of 2") << "RLlib's is a fraction of one";
  EXPECT_EQ(read_as("gpu_util_1"), "utilization.gpu of 1");
  EXPECT_EQ(read_as("gpu_temp_2"), "") << "a sensor's number";
  EXPECT_EQ(read_as("perf/cpu_util_percent"), "");
  EXPECT_EQ(read_as("VRAM Total Used Memory (B)"), "memory.used in B");
  EXPECT_EQ(read_as("Average Graphics Package Power (W)"), "power.draw in W");
  EXPECT_EQ(read_as("CPU Package Power (W)"), "");
  EXPECT_EQ(read_as("nvidia_smi_utilization_gpu_ratio"), "utilization.gpu");
}

TEST(ColumnWords, LabelsOfPrometheusNameTheGpu) {
  const auto one = series_by_labels("DCGM_FI_DEV_GPU_UTIL{UUID=\"\"GPU-aa\"\", device=\"\"nvidia3\"\", gpu=\"\"3\"\"}");
  ASSERT_TRUE(one);
  EXPECT_EQ(one->name, "DCGM_FI_DEV_GPU_UTIL");
  EXPECT_EQ(one->gpu, 3);
  EXPECT_EQ(one->of, "GPU-aa");
  EXPECT_EQ(series_by_labels("x{device=\"nvidia1\"}")->gpu, 1);
  EXPECT_FALSE(series_by_labels("x{job=\"a\"}")) << "no label names a GPU";
  EXPECT_FALSE(series_by_labels("GPU {0} util"));
}

}  // namespace
}  // namespace headroom
