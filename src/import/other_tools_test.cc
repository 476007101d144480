// SPDX-License-Identifier: Apache-2.0
// What other tools than nvidia-smi's print of GPUs.
#include "base/strings.h"
#include "import/log_test_support.h"

namespace headroom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(OtherTools, NvitopsScreenIsATable) {
  std::string text, compact;
  for (int s = 0; s < 3; ++s) {
    const std::string top =
        fmt::format("Sun Nov 16 14:03:{:02} 2025\n╒═══╕\n│ NVITOP 1.3.2       Driver Version: 535.129.03 │\n", 10 * s);
    text +=
        top + fmt::format(
                  "│ GPU  Name        Persistence-M│ Bus-Id        Disp.A │ Volatile Uncorr. ECC │\n"
                  "│   0  GeForce RTX 3090    Off  │ 00000000:01:00.0 Off │                  N/A │ MEM: ██ 75.9% │\n"
                  "│ 47%   62C    P2   287W / 350W │  18.00GiB / 24.00GiB │     {}%      Default │ UTL: ███ 97% │\n"
                  "│   0  101213 C   alice 18.02GiB  97  99.8   4.1  1:12:08  python train.py │\n",
                  90 + s);
    compact +=
        top + fmt::format("│   1  47%   62C    P2   287W / 350W │  18.00GiB / 24.00GiB │  {}%  Default │\n", 5 + s);
  }
  const Recording r = read_log(text);
  EXPECT_EQ(r.meta.origin, "import:smi-text");
  EXPECT_THAT(times(r), ElementsAre(0, 10, 20));
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.9, 0.91, 0.92));
  EXPECT_EQ(values(r, Metric::kMemoryUsed)[0], 18.0 * (1 << 30));
  EXPECT_EQ(values(r, Metric::kPower)[0], 287);
  EXPECT_EQ(device_of(r.sources[0]).name, "GeForce RTX 3090");
  const Recording one = read_log(compact);
  EXPECT_EQ(device_of(one.sources[0]).index, 1);
  EXPECT_THAT(values(one, Metric::kGpuUtil), ElementsAre(0.05, 0.06, 0.07));
}

TEST(OtherTools, TegrastatsTellsTheUseOfAJetson) {
  std::string text, untimed;
  for (int s = 0; s < 3; ++s) {
    const std::string line = fmt::format(
        "RAM 5041/7620MB (lfb 4x2MB) CPU [12%@1510,off] EMC_FREQ 30%@2133 GR3D_FREQ {}%@[624] VIC_FREQ 115 CPU@52.5C "
        "GPU@53.1C VDD_IN 8231mW/7900mW\n",
        70 + s);
    text += fmt::format("03-04-2025 10:15:{:02} {}", s, line);
    untimed += line;
  }
  const Recording r = read_log(text);
  EXPECT_EQ(r.meta.origin, "import:tegrastats");
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.7, 0.71, 0.72));
  EXPECT_EQ(values(r, Metric::kTemperature)[0], 53);
  EXPECT_EQ(r.tracks[0].at[0] / kSecond, 1741083300) << "the fourth of March";
  EXPECT_THAT(values(r, Metric::kPower), ::testing::IsEmpty()) << "that of the board is none of the GPU's";
  EXPECT_THAT(import_error(untimed).hint, HasSubstr("--log-interval"));
}

TEST(OtherTools, RadeontopsDumpIsATable) {
  std::string text = "Dumping to gpu.log, until termination.\n";
  for (int s = 0; s < 3; ++s)
    text += fmt::format(
        "174160000{}.123456: bus 03, gpu {}.50%, ee 0.00%, vgt 5.83%, ta 12.50%, vram 20.10% 1608.00mb, gtt 3.10% "
        "254.42mb, mclk 100.00% 0.875ghz, sclk 43.19% 0.760ghz\n",
        s, 48 + s);
  const Recording r = read_log(text);
  EXPECT_EQ(r.meta.origin, "import:radeontop");
  EXPECT_THAT(times(r), ElementsAre(0, 1, 2));
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.485, 0.495, 0.505));
  EXPECT_EQ(values(r, Metric::kMemoryUsed)[0], 1608.0 * (1 << 20));
  EXPECT_EQ(values(r, Metric::kSmClock)[0], 760);
  const Recording cut = read_log(
      "1741600000.1: bus 03, gpu 48.50%, ee 0.00%, vgt 5.83%, sclk 43.19% ghz\n1741600001.1: bus 03, gpu 49.50%, ee "
      "0.00%, sclk "
      "43.19% ghz\n");
  EXPECT_THAT(values(cut, Metric::kSmClock), ::testing::IsEmpty()) << "no clock was told";
}

TEST(OtherTools, PowermetricsTellsTheUseOfAMac) {
  std::string text = "Machine model: Mac14,6\n\n";
  for (int s = 0; s < 3; ++s)
    text += fmt::format(
        "*** Sampled system activity (Tue Mar  4 10:00:{:02} 2025 +0100) (1004.98ms elapsed) ***\n\n**** GPU usage "
        "****\n\nGPU HW active frequency: 1340 MHz\nGPU HW active residency:  {}.50% (444 MHz: .5% 612 MHz:   0%)\nGPU "
        "idle residency:  12.5%\nGPU Power: 17400 mW\n",
        s, 80 + s);
  const Recording r = read_log(text);
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.805, 0.815, 0.825));
  EXPECT_NEAR(values(r, Metric::kPower)[0], 17.4, 1e-9);
  EXPECT_EQ(values(r, Metric::kSmClock)[0], 1340);
  EXPECT_EQ(r.tracks[0].at[0] / kSecond, 1741078800) << "09:00 UTC";
}

TEST(OtherTools, AmdSmiMonitorIsATable) {
  std::string text = " TIMESTAMP  GPU  POWER   GPU_T   MEM_T   GFX_CLK   GFX%   ENC%      VRAM_USAGE\n";
  for (int s = 0; s < 3; ++s)
    for (int gpu = 0; gpu < 2; ++gpu)
      text += fmt::format("{}    {}  412 W   65 °C   52 °C  1834 MHz  {} %    N/A  120.0/192.0 GB\n",
                          1741600001 + 2 * s, gpu, 90 + gpu);
  const Recording r = read_log(text);
  ASSERT_EQ(r.sources.size(), 2u);
  EXPECT_EQ(r.meta.origin, "import:amd-smi");
  EXPECT_THAT(times(r, 1), ElementsAre(0, 2, 4));
  EXPECT_THAT(values(r, Metric::kGpuUtil, 1), ElementsAre(0.91, 0.91, 0.91));
  EXPECT_EQ(values(r, Metric::kPower)[0], 412);
  EXPECT_EQ(values(r, Metric::kMemoryUsed)[0], 120.0 * (1 << 30));
  EXPECT_EQ(device_of(r.sources[0]).memory_total_bytes, std::int64_t{192} << 30);
}

TEST(OtherTools, TelegrafWritesLineProtocolAndJson) {
  std::string influx, json;
  for (int s = 0; s < 3; ++s) {
    influx += fmt::format(
        "cpu,cpu=cpu-total,host=a usage_user=90.5 {0}000000000\ntemp,host=a,sensor=core temp=45 {0}000000000\n"
        "nvidia_smi,host=a,index=0,name=NVIDIA\\ A100,uuid=GPU-1 driver_version=\"535.1, a b\",memory_used=30960i,"
        "power_draw=200.5,utilization_gpu={1}i {0}000000000\n",
        1741600000 + 10 * s, 70 + s);
    json += fmt::format(
        "{{\"fields\":{{\"temp\":45}},\"name\":\"temp\",\"tags\":{{\"host\":\"a\"}},\"timestamp\":{0}}}\n"
        "{{\"fields\":{{\"memory_used\":30960,\"power_draw\":200.5,\"utilization_gpu\":{1}}},\"name\":\"nvidia_smi\","
        "\"tags\":{{\"index\":\"0\",\"name\":\"NVIDIA A100\",\"uuid\":\"GPU-1\"}},\"timestamp\":{0}}}\n",
        1741600000 + 10 * s, 70 + s);
  }
  for (const std::string& text : {influx, json}) {
    const Recording r = read_log(text);
    ASSERT_EQ(r.sources.size(), 1u) << text;
    EXPECT_EQ(device_of(r.sources[0]).name, "NVIDIA A100");
    EXPECT_EQ(device_of(r.sources[0]).uuid, "GPU-1");
    EXPECT_THAT(times(r), ElementsAre(0, 10, 20));
    EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.7, 0.71, 0.72));
    EXPECT_THAT(values(r, Metric::kPower), ElementsAre(200.5, 200.5, 200.5));
  }
  EXPECT_EQ(read_log(influx).meta.origin, "import:influx");
}

TEST(OtherTools, JsonMayHoldATableByItsColumnsOrARowPerMetric) {
  const std::string pandas =
      R"({"_timestamp":{"0":1741600000,"1":1741600010},"system.cpu":{"0":3,"1":4},"system.gpu.0.gpu":{"0":80,"1":90}})";
  const std::string lists = R"({"timestamps": [1741600000, 1741600010], "gpu_util": [80, 90], "loss": [2.0, 1.5]})";
  std::string mlflow = R"({"metrics":[)";
  for (int i = 0; i < 2; ++i)
    mlflow += fmt::format(R"({}{{"key":"system/gpu_0_utilization_percentage","value":{},"timestamp":{},"step":{}}})",
                          i ? "," : "", 80 + 10 * i, 1741600000123 + std::int64_t{10000} * i, i);
  mlflow += "]}";
  for (const std::string& text : {pandas, lists, mlflow}) {
    const Recording r = read_log(text);
    ASSERT_EQ(r.tracks.size(), 1u) << text;
    EXPECT_THAT(times(r), ElementsAre(0, 10)) << text;
    EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.8, 0.9)) << text;
  }
  EXPECT_EQ(sniff_log(mlflow.substr(0, mlflow.size() - 20)), LogFormat::kJsonRows) << "by its beginning";
  EXPECT_THAT(import_error(R"({"gpu_util": [80, 90], "loss": [2.0, 1.5]})").what, HasSubstr("JSON of a tool"))
      << "no times";
}

TEST(OtherTools, InstancesOfAGpuThatIsSplitAreDevices) {
  std::string text = "#Entity   GRACT        SMACT\nID\n";
  for (int s = 0; s < 3; ++s) text += "GPU-I 0     0.900        0.500\nGPU-I 1     0.030        0.010\n";
  ImportOptions each_second;
  each_second.interval = kSecond;
  const Recording r = read_log(text, each_second);
  ASSERT_EQ(r.sources.size(), 2u);
  EXPECT_EQ(device_of(r.sources[1]).name, "MIG instance 1");
  EXPECT_THAT(values(r, Metric::kGpuUtil, 1), ElementsAre(0.03, 0.03, 0.03));
}

TEST(OtherTools, TablesOfAmdAndIntelAreReadAndTheirMakerIsKnown) {
  std::string monitor =
      "timestamp,gpu,power_usage,hotspot_temperature,memory_temperature,gfx,gfx_clock,mem,mem_clock,vram_used,vram_"
      "total\n";
  std::string metric =
      "timestamp,gpu,gfx_activity,umc_activity,socket_power,gfx_0_clk,gfx_0_max_clk,edge,hotspot,mem\n";
  std::string rocm = "time,device,GPU use (%),GFX Activity,Average Graphics Package Power (W)\n";
  std::string xpu = "Timestamp, DeviceId, GPU Utilization (%), GPU Power (W), GPU Core Temperature (Celsius Degree)\n";
  for (int s = 0; s < 3; ++s)
    for (int gpu = 0; gpu < 2; ++gpu) {
      const int util = 80 + 10 * gpu + s;
      monitor += fmt::format("17416000{:02},{},412,65,52,{},1834,45,1200,20000,196592\n", s, gpu, util);
      metric += fmt::format("17416000{:02},{},{},30,412,1834,2100,50,65,52\n", s, gpu, util);
      rocm += fmt::format("2025-03-10 10:00:{:02},card{},{},91234567,130.0\n", s, gpu, util);
      xpu += fmt::format("06:14:{:02}.000, {}, {}.00, 210.5, 61.0\n", s, gpu, util);
    }
  for (const std::string& text : {monitor, metric, rocm, xpu}) {
    const Recording r = read_log(text);
    ASSERT_EQ(r.sources.size(), 2u) << text;
    EXPECT_THAT(values(r, Metric::kGpuUtil, 1), ElementsAre(0.9, 0.91, 0.92)) << text;
    EXPECT_EQ(values(r, Metric::kPower).size(), 3u) << text;
    EXPECT_EQ(lost(r, "value_out_of_range"), 0) << text;
    EXPECT_EQ(r.meta.extra.at("vendor"), text == xpu ? "intel" : "amd") << text;
  }
  EXPECT_EQ(values(read_log(monitor), Metric::kTemperature)[0], 65);
  EXPECT_EQ(values(read_log(metric), Metric::kSmClock)[0], 1834);
  EXPECT_EQ(device_of(read_log(metric).sources[0]).sm_clock_max_mhz, 2100);
  EXPECT_EQ(values(read_log(xpu), Metric::kTemperature)[0], 61);
  const Recording counter =
      read_log("time,device,GFX Activity\n2025-03-10 10:00:00,card0,40\n2025-03-10 10:00:01,card0,50\n");
  EXPECT_THAT(values(counter, Metric::kGpuUtil), ElementsAre(0.4, 0.5)) << "no SMs";
}

TEST(OtherTools, ProcessesThatAnAnswerNamesAreKept) {
  std::string box, pmon = "#Date       Time        gpu     pid  type    sm   mem   enc   dec   command\n";
  for (int s = 0; s < 3; ++s) {
    box += fmt::format(
        "Mon Feb  3 10:00:{:02} 2025\n| NVIDIA-SMI 535.129.03   Driver Version: 535.129.03   CUDA Version: 12.2 |\n"
        "|   0  NVIDIA L40S                 On  | 00000000:4A:00.0 Off |                    0 |\n"
        "| N/A   47C    P0        180W /  350W  |  20000MiB / 46068MiB |     97%      Default |\n"
        "| Processes:                                                                   |\n"
        "|  GPU   GI   CI        PID   Type   Process name                   GPU Memory |\n"
        "|    0   N/A  N/A      2101      G   /usr/lib/xorg/Xorg                  4MiB |\n"
        "|    0   N/A  N/A     41201      C   /opt/conda/bin/python            19990MiB |\n",
        s);
    pmon += fmt::format(" 20250203   10:00:{:02}      0   41201     C    97    40     -     -   python\n", s);
  }
  EXPECT_EQ(read_log(box).meta.extra.at("named_processes"), "41201 python (GPU 0)");
  EXPECT_EQ(read_log(pmon).meta.extra.at("named_processes"), "41201 python (GPU 0)");
}

TEST(OtherTools, TwoProcessesThatFillAGpuTogetherShareIt) {
  const auto log = [](int one, int other, int third = 1) {
    std::string text = "#Date       Time        gpu     pid  type    sm   mem   enc   dec   command\n";
    for (int s = 0; s < 30; ++s)
      text += fmt::format(
          " 20250203   10:00:{0:02}      0   4101     C    {1}    20     -     -   python\n"
          " 20250203   10:00:{0:02}      0   4177     C    {2}    20     -     -   vllm\n"
          " 20250203   10:00:{0:02}      0   4300     C    {3}    20     -     -   eval\n",
          s, one, other, third);
    const auto extra = read_log(text).meta.extra;
    return extra.contains("sharing") ? extra.at("sharing") : std::string();
  };
  EXPECT_THAT(log(52, 46), HasSubstr("4101 python and 4177 vllm were on GPU 0 in the same 30 readings and had 98 %"));
  EXPECT_THAT(log(52, 46), HasSubstr("the log does not show"));
  EXPECT_THAT(log(45, 41, 9),
              HasSubstr("4101 python, 4177 vllm and 4300 eval were on GPU 0 in the same 30 readings and "
                        "had 95 % of its SMs together (45 %, 41 % and 9 %)"));
  EXPECT_EQ(log(30, 20), "") << "there is room for both";
  EXPECT_EQ(log(90, 5), "");
}

TEST(OtherTools, MetricsAndColumnsOfALongTableThatAreLeftOutAreNamed) {
  std::string text = "time,host,device,metric,value,site\n";
  for (int s = 0; s < 3; ++s)
    for (const char* host : {"a", "b"})
      text += fmt::format(
          "2025-05-06T01:00:{0:02}Z,{1},nvidia0,gpu_util_percent,9{0},x\n2025-05-06T01:00:{0:02}Z,{1},nvidia0,frobs,3,"
          "x\n"
          "2025-05-06T01:00:{0:02}Z,{1},nvidia0,SwPowerCap,1,x\n",
          s, host);
  const Recording r = read_log(text);
  ASSERT_EQ(r.sources.size(), 2u);
  EXPECT_EQ(device_of(r.sources[1]).name, "b");
  EXPECT_THAT(values(r, Metric::kEventReasons), ElementsAre(4, 4, 4));
  EXPECT_EQ(detail(r, "column_not_kept"), "frobs, site");
}

TEST(OtherTools, DatesAboveAnswersNeedNoOrderWhereTheyAreOneDay) {
  std::string text;
  for (int s = 0; s < 3; ++s)
    text += fmt::format(
        "03/02/2025 10:00:{:02}\n| NVIDIA-SMI 535.129.03   Driver Version: 535.129.03   CUDA Version: 12.2 |\n"
        "|   0  NVIDIA L40S                 On  | 00000000:4A:00.0 Off |                    0 |\n"
        "| N/A   47C    P0        180W /  350W  |  20000MiB / 46068MiB |     97%      Default |\n",
        10 * s);
  const Recording r = read_log(text);
  EXPECT_THAT(times(r), ElementsAre(0, 10, 20));
  EXPECT_EQ(lost(r, "assumed_date_order"), 1);
}

TEST(OtherTools, WhatIsNoLogIsCalledWhatItIs) {
  const auto says = [](std::string_view text, const char* what, const char* hint) {
    const Error error = import_error(text);
    EXPECT_THAT(error.what, HasSubstr(what)) << text;
    EXPECT_THAT(error.hint, HasSubstr(hint)) << text;
  };
  says("=====\n  Slurm Job Statistics\n=====\n  GPU utilization  [||| 68%]\n", "jobstats", "--query-gpu");
  says(" ** CUDA GPU Kernel Summary:\n Time (%)  Total Time (ns)  Instances  Avg (ns)\n", "nsys stats", "nsys export");
  says("--------  ----------\n    Name  Self CPU %\n--------  ----------\naten::mm  11.02%\n",
       "sums, and nothing of when", "export_chrome_trace");
  says("1741600000123 71.0 0\n1741600010123 72.0 1\n", "as MLflow keeps them", "--columns timestamp,utilization.gpu,-");
  std::string printed;
  for (int i = 0; i < 4; ++i)
    printed += fmt::format("Epoch {} | loss 0.5 | GPU util: {}% | mem: 7.2/15.9 GB\n", i, 40 + i);
  says(printed, "no column says when", "--log-interval");
  says("[I 2025-03-10 10:00:00,101] A new study created in memory with name: x\n", "what Optuna printed",
       "headroom study");
  says("[I 2025-03-10 10:00:00,101] Trial 3 finished with value: 0.5 and parameters: {}.\n", "what Optuna printed",
       "sqlite:///study.db");
  says(",number,value,datetime_start,datetime_complete,duration,state\n0,0,1,a,b,c,COMPLETE\n", "a study's trials",
       "headroom study");
  says("JobID|Elapsed|TRESUsageInTot\n1|10:00:00|gres/gpuutil=78\n", "what sacct keeps", "--query-gpu");
  says("Job ID: 1\nState: COMPLETED\nCPU Efficiency: 10.00%\n", "as seff prints", "--query-gpu");
  says("<html><body>GPU</body></html>\n", "a web page", "--query-gpu");
  says("<?xml version=\"1.0\"?>\n<!-- made -->\n<rocprof>\n<kernel name=\"a\"/><kernel/></rocprof>\n",
       "XML of a tool that is not known, not a log (its elements: rocprof, kernel)", "headroom import --help");
  says("{\"card0\": {\"GPU use (%)\": \"40\"}}\n{\"card0\": {\"GPU use (%)\": \"41\"}}\n", "do not say when",
       "do date; rocm-smi");
  says("# gpu pid type fb ccpm command\n# Idx # C/G MB MB name\n 0 31001 C 18221 0 python\n",
       "nothing that the GPU did", "pmon -s um");
}

TEST(OtherTools, AnswersOfRocmSmiBelowTheirDatesAreRead) {
  std::string text;
  for (int s = 0; s < 20; ++s)
    text += fmt::format(
        "Sun Mar  9 09:00:{:02} UTC 2025\n{{\"card0\": {{\"GPU use (%)\": \"90\", \"Temperature (Sensor edge) (C)\": "
        "\"51.0\"}}, \"card1\": {{\"GPU use (%)\": \"40\", \"Temperature (Sensor edge) (C)\": \"50.0\"}}}}\n",
        s);
  const Recording r = read_log(text);
  ASSERT_EQ(r.tracks.size(), 2u);
  EXPECT_EQ(values(r, Metric::kGpuUtil, 0).at(0), 0.9);
  EXPECT_EQ(values(r, Metric::kGpuUtil, 1).at(19), 0.4);
}

TEST(OtherTools, HostsInTheNamesOfColumnsTellGpusOfOneNumberApart) {
  std::string text = "Time,node01_gpu0_util,node01_gpu1_util,node02_gpu0_util,node02_gpu1_util\n";
  for (int s = 0; s < 20; ++s) text += fmt::format("2025-06-09 04:00:{:02},91,92,{},94\n", s, s);
  const Recording r = read_log(text);
  ASSERT_EQ(r.tracks.size(), 4u);
  EXPECT_EQ(r.meta.extra.at("hosts"), "node01 (GPUs 0 and 1), node02 (GPUs 2 and 3)");
  const auto of = [](const char* header) {
    return import_error(fmt::format("time,{}\n2025-06-09 04:00:00,1,2\n2025-06-09 04:00:01,1,2\n", header)).what;
  };
  EXPECT_NE(of("max_gpu0_util,min_gpu0_util"), "") << "no hosts";
  EXPECT_NE(of("p50_gpu0_util,p95_gpu0_util"), "");
  EXPECT_NE(of("run1_gpu0_util,run2_gpu0_util"), "");
}

TEST(OtherTools, ColumnsThatAreNumbersOfGpusAreTheirUseWhereTheyAreInPercent) {
  const auto log = [](std::string_view header, std::string_view cells) {
    std::string text = fmt::format("when,{}\n", header);
    for (int s = 0; s < 9; ++s) text += fmt::format("20250505T23500{}Z,{}\n", s, cells);
    return text;
  };
  const Recording r = read_log(log("gpu0,GPU 1", "80%,60 %"));
  ASSERT_EQ(r.tracks.size(), 2u);
  EXPECT_EQ(values(r, Metric::kGpuUtil, 0).at(0), 0.8);
  EXPECT_EQ(values(r, Metric::kGpuUtil, 1).at(8), 0.6);
  EXPECT_EQ(r.meta.end, 1'746'489'008 * kSecond) << "a time in the basic form of ISO 8601";
  EXPECT_NE(import_error(log("gpu0,gpu1", "80,60")).what, "") << "perhaps power";
  EXPECT_EQ(values(read_log(log("GPU-Last [%]", "80")), Metric::kGpuUtil).at(0), 0.8);
}

TEST(OtherTools, WhatCometExportsIsATableWithARowPerMetric) {
  std::string text = "metricName,metricValue,timestamp,step\n";
  for (int s = 0; s < 20; ++s)
    text += fmt::format("sys.gpu.0.gpu_utilization,80,{0},{1}\nsys.gpu.1.gpu_utilization,60,{0},{1}\n",
                        1'750'000'000'000 + std::int64_t{5000} * s, s);
  const Recording r = read_log(text);
  ASSERT_EQ(r.tracks.size(), 2u);
  EXPECT_EQ(values(r, Metric::kGpuUtil, 1).at(3), 0.6);
}

TEST(OtherTools, MemoryInOneCellWithTheWholeOrByItsUnitIsRead) {
  const auto log = [](std::string_view header, std::string_view cells) {
    std::string text = fmt::format("time;gpu_util;{}\n", header);
    for (int s = 0; s < 3; ++s) text += fmt::format("2025-06-09 04:00:0{};90;{}\n", s, cells);
    return read_log(text);
  };
  const Recording box = log("Memory-Usage;Pwr:Usage/Cap", "21873MiB / 49140MiB;221W / 300W");
  EXPECT_EQ(values(box, Metric::kMemoryUsed).at(2) / 1048576, 21873);
  EXPECT_EQ(values(box, Metric::kPower).at(0), 221);
  EXPECT_EQ(device_of(box.sources[0]).memory_total_bytes, std::int64_t{49140} << 20U);
  EXPECT_EQ(device_of(box.sources[0]).power_limit_watts, 300);
  EXPECT_EQ(values(log("gpu_memory_usage", "9120/24564"), Metric::kMemoryUsed).at(0) / 1048576, 9120);
  const Recording bare = log("memory_used", "9.5/24 GiB");
  EXPECT_EQ(values(bare, Metric::kMemoryUsed).at(0) / 1048576, 9728);
  EXPECT_EQ(values(log("Mem", "14220 MiB"), Metric::kMemoryUsed).at(0) / 1048576, 14220);
  EXPECT_TRUE(values(log("Mem", "61"), Metric::kMemoryUsed).empty()) << "perhaps percent";
  EXPECT_TRUE(values(log("Mem;cpu_util", "14220 MiB;3"), Metric::kMemoryUsed).empty()) << "perhaps the host's";
}

TEST(OtherTools, ATimeInFrontOfRowsWhoseHeaderHasNoneIsTheirs) {
  std::string text = "index, utilization.gpu [%], memory.used [MiB]\n";
  for (int s = 0; s < 10; ++s)
    for (int gpu = 0; gpu < 2; ++gpu) text += fmt::format("2025-04-09 06:30:0{}, {}, 8{} %, 17004 MiB\n", s, gpu, gpu);
  const Recording r = read_log(text);
  ASSERT_EQ(r.tracks.size(), 2u);
  EXPECT_EQ(r.tracks[0].at.size(), 10u);
  EXPECT_EQ(values(r, Metric::kGpuUtil, 1).at(9), 0.81);
  EXPECT_EQ(lost(r, "no_timestamps"), 0);
  EXPECT_NE(import_error("index, utilization.gpu [%]\n7, 0, 80 %\n8, 0, 81 %\n").what.find("3 cells where"),
            std::string::npos);
}

TEST(OtherTools, BoxesTellWhoIsOnAGpuAtTheEnd) {
  const auto box = [](int s, const std::string& processes) {
    return fmt::format(
               "Mon Feb  3 10:00:{:02} 2025\n| NVIDIA-SMI 535.129.03   Driver Version: 535.129.03   CUDA Version: 12.2 "
               "|\n"
               "|   0  NVIDIA L40S                 On  | 00000000:4A:00.0 Off |                    0 |\n"
               "| N/A   47C    P0        180W /  350W  |  20000MiB / 46068MiB |     97%      Default |\n",
               s) +
           processes;
  };
  const std::string head = "| Processes:                                                                   |\n";
  const std::string one = head + "|    0   N/A  N/A     41201      C   /opt/conda/bin/python            19990MiB |\n";
  const std::string none = head + "|  No running processes found                                                 |\n";
  const auto extra = [&](const std::string& last) {
    return read_log(box(0, one) + box(1, one) + box(2, last)).meta.extra;
  };
  EXPECT_EQ(extra(one).at("listed.0"), "41201 /opt/conda/bin/python");
  EXPECT_EQ(extra(none).at("gone.0"), "41201 /opt/conda/bin/python, listed last at Mon Feb  3 10:00:01 2025");
  EXPECT_FALSE(extra("").contains("gone.0")) << "the last answer was cut before its list";
  EXPECT_FALSE(read_log(box(0, none) + box(1, none)).meta.extra.contains("gone.0")) << "as in a container";
}

TEST(OtherTools, TablesOfInfluxOneAfterTheOtherAreOneLog) {
  std::string text;
  for (const char* field : {"utilization_gpu", "memory_used"})
    for (int gpu = 0; gpu < 2; ++gpu) {
      const bool first = field[0] == 'u';
      text += fmt::format(
          "#group,false,false,true,false,false,true\r\n#datatype,string,long,string,dateTime:RFC3339,{},string\r\n"
          "#default,_result,,,,,\r\n{}\r\n",
          first ? "long" : "double",
          first ? ",result,table,index,_time,_value,_field" : ",result,table,_field,_time,_value,index");
      for (int s = 0; s < 3; ++s) {
        const std::string value = fmt::format("2025-02-03T10:00:0{}Z,{}", s, first ? 90 + s - 50 * gpu : 21000);
        text += first ? fmt::format(",,{},{},{},{}\r\n", gpu, gpu, value, field)
                      : fmt::format(",,{},{},{},{}\r\n", gpu, field, value, gpu);
      }
      text += "\r\n";
    }
  const Recording r = read_log(text);
  ASSERT_EQ(r.sources.size(), 2u);
  EXPECT_THAT(values(r, Metric::kGpuUtil, 0), ElementsAre(0.9, 0.91, 0.92));
  EXPECT_THAT(values(r, Metric::kGpuUtil, 1), ElementsAre(0.4, 0.41, 0.42));
  EXPECT_EQ(values(r, Metric::kMemoryUsed, 1)[2], 21000 * 1048576.0);
  EXPECT_EQ(detail(r, "column_not_kept"), "");
}

TEST(OtherTools, AfterburnersLogIsReadByItsLines) {
  std::string text =
      "00, 04-09-2025 22:10:07, Hardware monitoring log v1.6 \r\n01, 04-09-2025 22:10:07, GeForce RTX 4080\r\n"
      "02, 04-09-2025 22:10:07, GPU temperature     ,GPU usage           ,Memory usage        ,Core clock          ,"
      "Power               ,CPU usage           ,RAM usage           \r\n"
      "03, 04-09-2025 22:10:07, GPU usage           ,%                   ,0.000               ,100.000             "
      "\r\n";
  for (int s = 0; s < 3; ++s)
    text += fmt::format(
        "80, 04-09-2025 22:10:{:02}, 61.000              ,9{}.000              ,9123.000            ,2715.000          "
        "  ,"
        "260.500             ,22.000              ,20111.000           \r\n",
        2 * s, s);
  const Recording r = read_log(text);
  EXPECT_EQ(r.meta.origin, "import:afterburner");
  EXPECT_THAT(times(r), ElementsAre(0, 2, 4));
  EXPECT_EQ(r.tracks[0].at[0] / kSecond, 1757023800) << "the fourth of September";
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.9, 0.91, 0.92));
  EXPECT_EQ(values(r, Metric::kPower)[0], 260.5);
  EXPECT_EQ(values(r, Metric::kMemoryUsed)[0], 9123 * 1048576.0);
  EXPECT_EQ(device_of(r.sources[0]).name, "GeForce RTX 4080");
  EXPECT_EQ(detail(r, "column_not_kept"), "CPU usage, RAM usage");
}

TEST(OtherTools, BoxesBehindTimesOfTheirLinesAreRead) {
  std::string text;
  for (int s = 0; s < 3; ++s) {
    const std::string box = fmt::format(
        "Mon Feb  3 10:00:{:02} 2025\n| NVIDIA-SMI 418.87.00    Driver Version: 418.87.00    CUDA Version: 10.1     |\n"
        "|   0  Tesla V100-SXM2...  On   | 00000000:06:00.0 Off |                    0 |\n"
        "| N/A   45C    P0   210W / 300W |  12000MiB / 16130MiB |     9{}%      Default |\n",
        10 * s, s);
    for (const std::string_view line : split(box, '\n'))
      if (!line.empty()) text += fmt::format("Feb 03 10:00:{:02} {}\n", 10 * s, line);
  }
  const Recording r = read_log(text);
  EXPECT_THAT(times(r), ElementsAre(0, 10, 20));
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.9, 0.91, 0.92));
}

TEST(OtherTools, IntelGpuTopTellsHowLongItsPeriodsWere) {
  std::string text = "[\n";
  for (int s = 0; s < 3; ++s)
    text += fmt::format(
        R"({{"period": {{"duration": 1000.5, "unit": "ms"}}, "frequency": {{"requested": 1300, "actual": 1250, "unit": "MHz"}},
            "power": {{"GPU": 35.5, "Package": 50.0, "unit": "W"}}, "engines": {{"Render/3D": {{"busy": 0.0, "unit": "%"}},
            "Compute": {{"busy": 8{}.0, "unit": "%"}}}}}},)",
        s);
  const Recording r = read_log(text);
  ASSERT_EQ(r.sources.size(), 1u);
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.8, 0.81, 0.82)) << "of the busiest engine";
  EXPECT_EQ(r.tracks[0].at[1] - r.tracks[0].at[0], 1000 * kMillisecond + 500 * kMicrosecond);
  EXPECT_THAT(values(r, Metric::kPower), ElementsAre(35.5, 35.5, 35.5));
  EXPECT_EQ(r.meta.extra.at("vendor"), "intel");
}

TEST(OtherTools, AProgramIsNoLogWhateverItsLinesLookLike) {
  const std::string text = "time, gpu_util\n1741600000, 40\n1741600001, 50\n";
  const auto program = import_log("plot.py", text, {}), table = import_log("plot.txt", text, {});
  ASSERT_FALSE(program);
  EXPECT_THAT(program.error().what, HasSubstr("a program in Python"));
  EXPECT_THAT(program.error().hint, HasSubstr("headroom run -- python3 plot.py"));
  EXPECT_TRUE(table);
}

TEST(OtherTools, WhatPythonPrintsOfADictionaryAndRowsByTheirTimesAreRows) {
  std::string printed, by_time = "{";
  for (int s = 0; s < 3; ++s) {
    printed += fmt::format("{{'time': '2025-03-10 10:00:0{0}', 'gpu': 0, 'util': 9{0}, 'name': None}}\n", s);
    by_time += fmt::format(R"({}"2025-03-10 10:00:0{}": {{"gpu0": {{"util": 9{}}}, "gpu1": {{"util": 40}}}})",
                           s > 0 ? "," : "", s, s);
  }
  EXPECT_THAT(values(read_log(printed), Metric::kGpuUtil), ElementsAre(0.9, 0.91, 0.92));
  const Recording two = read_log(by_time + "}");
  ASSERT_EQ(two.sources.size(), 2u);
  EXPECT_THAT(values(two, Metric::kGpuUtil, 1), ElementsAre(0.4, 0.4, 0.4));
  EXPECT_THAT(times(two), ElementsAre(0, 1, 2));
}

TEST(OtherTools, LinesOfALoggerNeedNoSignBetweenANameAndItsNumber) {
  std::string text;
  for (int s = 0; s < 3; ++s)
    text += fmt::format(
        "2025-03-10 10:00:0{0} | INFO     | __main__:monitor:31 - GPU0 util 9{0}% | mem 9000/24576 MiB | power 200W\n",
        s);
  const Recording r = read_log(text);
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.9, 0.91, 0.92));
  EXPECT_EQ(values(r, Metric::kMemoryUsed)[0], 9000 * 1048576.0);
  EXPECT_EQ(device_of(r.sources[0]).memory_total_bytes, std::int64_t{24576} << 20);
  EXPECT_EQ(values(r, Metric::kPower)[0], 200);
}

TEST(OtherTools, ATableOfMarkdownIsATable) {
  std::string text = "| time | gpu | util % | mem MiB |\n|------|-----|--------|---------|\n";
  for (int s = 0; s < 3; ++s) text += fmt::format("| 2025-03-10 10:00:0{0} | 0 | 9{0} | 9000 |\n", s);
  const Recording r = read_log(text);
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.9, 0.91, 0.92));
  EXPECT_EQ(values(r, Metric::kMemoryUsed)[0], 9000 * 1048576.0);
}

}  // namespace
}  // namespace headroom
