// SPDX-License-Identifier: Apache-2.0
// Rows that Python printed, and downloads of Google Cloud Monitoring and of charts of Weights & Biases.
#include "import/printed_rows.h"
#include "base/strings.h"
#include "import/log_test_support.h"

namespace headroom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(PrintedRows, TuplesAreRowsWithoutAHeader) {
  std::string text, dated;
  for (int s = 0; s < 3; ++s) {
    text += fmt::format("('2025-01-09T20:15:0{}', 1, {}, 8044)\n", s, 70 + s);
    dated += fmt::format("(datetime.datetime(2025, 1, 9, 20, 15{}), 1, {}, None)\n",
                         s > 0 ? fmt::format(", {}", s) : "", 70 + s);
  }
  EXPECT_THAT(import_error(text).what, HasSubstr("there is no header"));
  EXPECT_THAT(import_error(text).hint, HasSubstr("--columns timestamp,A,B,C"));
  ImportOptions options;
  options.columns = "timestamp,index,utilization.gpu,memory.used";
  for (const std::string& rows : {text, dated}) {
    const Recording r = read_log(rows, options);
    EXPECT_THAT(times(r), ElementsAre(0, 1, 2));
    EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.7, 0.71, 0.72));
    EXPECT_EQ(device_of(r.sources[0]).index, 1);
  }
}

TEST(PrintedRows, ObjectsNameTheirMembers) {
  std::string text = "started\n";
  for (int s = 0; s < 3; ++s)
    text += fmt::format("GpuStats(ts=17416000{:02}.5, gpu=2, util={}.0, mem_used_mb=9000, name='A, B')\n", s, 80 + s);
  const Recording r = read_log(text);
  EXPECT_THAT(times(r), ElementsAre(0, 1, 2));
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.8, 0.81, 0.82));
  EXPECT_EQ(values(r, Metric::kMemoryUsed)[0], 9000.0 * (1 << 20));
  EXPECT_EQ(device_of(r.sources[0]).index, 2);
}

TEST(PrintedRows, OtherLinesInBracketsAreNone) {
  EXPECT_FALSE(csv_of_printed("[0] NVIDIA A100 | 71°C,  99 %\n"));
  EXPECT_FALSE(csv_of_printed("[{\"a\": 1, \"b\": 2}]\n"));
  EXPECT_FALSE(csv_of_printed("('epoch', 'loss')\n"));
  EXPECT_FALSE(csv_of_printed("(1, 2\n"));
  EXPECT_FALSE(csv_of_printed("step 1\nstep 2\n(1, 2)\n"));
  EXPECT_EQ(csv_of_printed("(1, '2, 3')\n[4, 5]"), "1,\"2, 3\"\n4,5");
}

TEST(GoogleCsv, SeriesAreGpusByTheirLabels) {
  const auto download = [](std::string_view first, std::string_view labels) {
    std::string text = fmt::format("TimeSeries ID,{0}\n{1}", first, labels);
    for (int m = 0; m < 3; ++m)
      text += fmt::format("Thu Sep 04 2025 10:0{}:00 GMT+0900 (Japan Standard Time),{}.5,{}\n", m, 70 + m, 10 + m);
    return text;
  };
  const std::string labels = "gpu_number,0,1\nuuid,GPU-a,GPU-b\ninstance_name,vm,vm\n";
  const std::string named =
      download("agent.googleapis.com/gpu/utilization,agent.googleapis.com/gpu/utilization", labels);
  for (const std::string& text :
       {named, download("\"kubernetes.io/container/accelerator/duty_cycle (gpu_number: 0, uuid: GPU-a)\","
                        "\"kubernetes.io/container/accelerator/duty_cycle (gpu_number: 1, uuid: GPU-b)\"",
                        "")}) {
    const Recording r = read_log(text);
    EXPECT_EQ(r.sources.size(), 2U);
    EXPECT_EQ(r.tracks[0].at[1] - r.tracks[0].at[0], 60 * kSecond);
    EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.705, 0.715, 0.725));
    EXPECT_EQ(r.tracks[0].at[0] / kSecond, 1756947600);
  }
  const std::string unnamed = download("a1,a2", labels);
  EXPECT_THAT(import_error(unnamed).hint, HasSubstr("--columns"));
}

TEST(WandbCsv, OfSeveralRunsTheFirstIsReadAndTheOthersAreNamed) {
  std::string text =
      "\"Relative Time (Process)\",\"sun-1 - system/gpu.0.gpu\",\"sun-1 - system/gpu.0.gpu__MIN\","
      "\"moon-2 - system/gpu.0.gpu\",\"moon-2 - system/gpu.1.gpu\"\n";
  for (int s = 0; s < 3; ++s) text += fmt::format("\"{}\",\"{}\",\"0\",\"{}\",\"5\"\n", 15 * s, 70 + s, 20 + s);
  const Recording r = read_log(text);
  ASSERT_EQ(r.sources.size(), 1U) << "moon-2's second GPU is none of sun-1's";
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.7, 0.71, 0.72));
  EXPECT_EQ(r.meta.extra.at("other_runs"),
            "sun-1 is read, and moon-2 is left out (--columns 'sun-1 - system/gpu.0.gpu=-' reads it instead)");
  EXPECT_THAT(detail(r, "column_not_kept"), HasSubstr("moon-2 - system/gpu.1.gpu"));
  ImportOptions options;
  options.columns = "sun-1 - system/gpu.0.gpu=-";
  const Recording other = read_log(text, options);
  EXPECT_EQ(other.sources.size(), 2U);
  EXPECT_THAT(values(other, Metric::kGpuUtil), ElementsAre(0.2, 0.21, 0.22));
  EXPECT_FALSE(other.meta.extra.contains("other_runs"));
  const Recording quoted = read_log(
      "\"Relative Time (Process)\",\"it's - system/gpu.0.gpu\",\"moon-2 - system/gpu.0.gpu\"\n0,70,20\n15,71,21\n");
  EXPECT_THAT(quoted.meta.extra.at("other_runs"), HasSubstr(R"(--columns 'it'\''s - system/gpu.0.gpu=-' reads)"));
}

}  // namespace
}  // namespace headroom
