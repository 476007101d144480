// SPDX-License-Identifier: Apache-2.0
#include "import/line_prefixes.h"

#include "import/log_test_support.h"

namespace headroom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kHeader = "timestamp, index, utilization.gpu [%], memory.used [MiB]";

std::string row(int second, int util) {
  return fmt::format("2025/03/10 10:15:{:02}.120, 0, {} %, 20211 MiB", second, util);
}

TEST(Prefixes, OfOneWriterAreTakenOff) {
  const std::vector<std::string> prefixes = {"gpu-mon-1  | ",
                                             "node7: ",
                                             "0: ",
                                             "[default0]:",
                                             "[pod/monitor/gpu] ",
                                             "Mar 10 10:15:01 node7 nvidia-smi[1234]: "};
  for (const std::string& prefix : prefixes) {
    std::string text = prefix + kHeader + "\n";
    for (int s = 0; s < 4; ++s) text += prefix + row(2 * s, 80 + s) + "\ntrainer-1  | step 10: loss=0.5, lr=0.1\n";
    const Recording r = read_log(text);
    ASSERT_EQ(r.tracks.size(), 1u) << prefix;
    EXPECT_THAT(times(r), ElementsAre(0, 2, 4, 6)) << prefix;
    EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.8, 0.81, 0.82, 0.83)) << prefix;
    EXPECT_EQ(device_of(r.sources[0]).name, "") << prefix;
  }
}

TEST(Prefixes, OfSeveralHostsTellTheirGpusApart) {
  std::string text;
  for (const char* host : {"node1", "node2"}) text += fmt::format("{}: {}\n", host, kHeader);
  for (int s = 0; s < 4; ++s) text += "node1: " + row(s, 90 + s) + "\nnode2: " + row(s, 10 + s) + "\n";
  const Recording r = read_log(text);
  ASSERT_EQ(r.sources.size(), 2u);
  EXPECT_EQ(device_of(r.sources[0]).name, "node1");
  EXPECT_EQ(device_of(r.sources[1]).name, "node2");
  EXPECT_EQ(device_of(r.sources[1]).index, 1);
  EXPECT_THAT(values(r, Metric::kGpuUtil, 1), ElementsAre(0.1, 0.11, 0.12, 0.13));
}

TEST(Prefixes, AreNotInOrdinaryLogs) {
  EXPECT_FALSE(has_prefixes(std::string(kHeader) + "\n" + row(0, 1) + "\n"));
  EXPECT_FALSE(has_prefixes("2025-06-03 14:02:11 GPU 0: util=87% mem=10240/24576MB\n"));
  EXPECT_FALSE(has_prefixes("Time: now, GPU utilization: 3\n"));
  EXPECT_FALSE(has_prefixes(""));
}

TEST(Hosts, InAColumnTellGpusApart) {
  std::string text = "time,hostname,gpu,util_pct\n", alone = "time,host,util_pct\n";
  for (int s = 0; s < 4; ++s)
    for (const char* host : {"a", "b"}) {
      for (int gpu = 0; gpu < 2; ++gpu)
        text += fmt::format("2025-05-06T01:00:{:02}Z,{},{},{}\n", s, host, gpu, (*host == 'a' ? 90 : 10) + gpu);
      alone += fmt::format("2025-05-06T01:00:{:02}Z,{},{}\n", s, host, *host == 'a' ? 90 : 10);
    }
  const Recording r = read_log(text);
  ASSERT_EQ(r.sources.size(), 4u);
  EXPECT_THAT(values(r, Metric::kGpuUtil, 1), ElementsAre(0.91, 0.91, 0.91, 0.91));
  EXPECT_THAT(values(r, Metric::kGpuUtil, 3), ElementsAre(0.11, 0.11, 0.11, 0.11));
  EXPECT_EQ(device_of(r.sources[3]).index, 3);
  const Recording two = read_log(alone);
  ASSERT_EQ(two.sources.size(), 2u) << "a GPU in each";
  EXPECT_EQ(lost(two, "no_gpu_column"), 0);
  EXPECT_THAT(import_error("time,host,value\n2025-05-06T01:00:00Z,a,3\n2025-05-06T01:00:01Z,a,3\n").what,
              HasSubstr("no column is a reading of a GPU"));
}

}  // namespace
}  // namespace headroom
