// SPDX-License-Identifier: Apache-2.0
#include "import/line_prefixes.h"

#include "import/log_test_support.h"

namespace headroom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kRowsHeader = "timestamp, index, utilization.gpu [%], memory.used [MiB]";

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
    std::string text = prefix + kRowsHeader + "\n";
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
  for (const char* host : {"node1", "node2"}) text += fmt::format("{}: {}\n", host, kRowsHeader);
  for (int s = 0; s < 4; ++s) text += "node1: " + row(s, 90 + s) + "\nnode2: " + row(s, 10 + s) + "\n";
  const Recording r = read_log(text);
  ASSERT_EQ(r.sources.size(), 2u);
  EXPECT_EQ(device_of(r.sources[0]).name, "node1");
  EXPECT_EQ(device_of(r.sources[1]).name, "node2");
  EXPECT_EQ(device_of(r.sources[1]).index, 1);
  EXPECT_THAT(values(r, Metric::kGpuUtil, 1), ElementsAre(0.1, 0.11, 0.12, 0.13));
}

TEST(Prefixes, TimesInFrontAreThoseOfRowsWithoutOne) {
  std::string csv, dcgm, dmon;
  for (int s = 0; s < 4; ++s) {
    const std::string utc = fmt::format("2025-05-02T10:11:1{}.679565213Z ", 2 * s),
                      ts = fmt::format("2025-05-02 10:11:1{} ", 2 * s);
    csv += utc + "utilization.gpu [%], memory.used [MiB]\n" + utc + fmt::format("{} %, 30211 MiB\n", 80 + s);
    if (s == 0) {
      dcgm += ts + "#Entity   GPUTL    FBUSD    SMACT  \n" + ts + "ID    \n";
      dmon += ts + "# gpu     sm    mem\n" + ts + "# Idx      %      %\n";
    }
    for (int gpu = 0; gpu < 2; ++gpu) {
      dcgm += ts + fmt::format("GPU {}     {}       71200    0.112 \n", gpu, 80 + s - 50 * gpu);
      dmon += ts + fmt::format("    {}    {}     38\n", gpu, 80 + s - 50 * gpu);
    }
  }
  for (const std::string& text : {csv, dcgm, dmon}) {
    const Recording r = read_log(text);
    ASSERT_EQ(r.tracks.size(), text == csv ? 1u : 2u) << text;
    EXPECT_THAT(times(r), ElementsAre(0, 2, 4, 6)) << text;
    EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.8, 0.81, 0.82, 0.83)) << text;
    EXPECT_EQ(lost(r, "no_timestamps"), 0);
    EXPECT_EQ(lost(r, "unreadable_row"), 0);
  }
  EXPECT_THAT(values(read_log(dcgm), Metric::kSmActive, 1), ElementsAre(0.112, 0.112, 0.112, 0.112));
  std::string own;  // times of the rows' own are better
  for (int s = -1; s < 4; ++s)
    own += fmt::format("2025-03-10T10:16:0{}Z {}\n", s + 1, s < 0 ? std::string(kRowsHeader) : row(s, 80 + s));
  EXPECT_NEAR(seconds(read_log(own).tracks[0].at[0]), 1741601700.12, 1e-3) << "2025-03-10 10:15:00.12";
}

TEST(Prefixes, WhatSetsColoursOnATerminalIsTakenOff) {
  std::string text;
  for (int s = 0; s < 4; ++s)
    text += fmt::format(
        "\x1b[H\x1b[2J\x1b[1m\x1b[37mbox3      \x1b(B\x1b[m  Tue Sep  3 08:12:4{} 2024  \x1b[1m550.54.15\x1b[m\n"
        "\x1b[36m[0]\x1b[m \x1b[34mNVIDIA RTX 6000 Ada\x1b[m |\x1b[31m 70°C\x1b[m, \x1b[1;32m {} %\x1b[m | "
        "\x1b[36m\x1b[1m\x1b[33m38044\x1b[m / \x1b[33m49140\x1b[m MB | \x1b[1mtom\x1b[m(\x1b[33m38030M\x1b[m)\n",
        2 * s, 90 + s);
  const Recording r = read_log(text);
  ASSERT_EQ(r.tracks.size(), 1u);
  EXPECT_EQ(r.meta.origin, "import:gpustat");
  EXPECT_THAT(times(r), ElementsAre(0, 2, 4, 6));
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.9, 0.91, 0.92, 0.93));
  EXPECT_EQ(without_escapes("\x1b[1;32mgreen\x1b[m and \x1b[2").value_or(""), "green and ");
  EXPECT_FALSE(without_escapes("plain"));
}

TEST(Prefixes, AreNotInOrdinaryLogs) {
  EXPECT_FALSE(has_prefixes(std::string(kRowsHeader) + "\n" + row(0, 1) + "\n"));
  EXPECT_FALSE(has_prefixes("2025-06-03 14:02:11 GPU 0: util=87% mem=10240/24576MB\n"));
  EXPECT_FALSE(has_prefixes("Time: now, GPU utilization: 3\n"));
  EXPECT_FALSE(has_prefixes(""));
  EXPECT_FALSE(
      stamps_as_lines(std::string(kRowsHeader) + "\n" + row(0, 1) + "\n" + row(1, 1) + "\n" + row(2, 1) + "\n"));
  EXPECT_FALSE(stamps_as_lines(row(0, 1) + "\n" + row(1, 1) + "\n" + row(2, 1) + "\n"));
  EXPECT_FALSE(stamps_as_lines(""));
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

TEST(Hosts, AreToldWhateverTheirColumnIsCalledAndWhateverTheGpusAre) {
  const auto read = [](std::string_view header, const auto& cells) {
    std::string text = fmt::format("time,{},gpu_util_percent,mem_used_mb\n", header);
    for (int s = 0; s < 30; ++s)
      for (int host = 0; host < 2; ++host)
        for (int gpu = 0; gpu < 2; ++gpu)
          text += fmt::format("2025-05-06T01:00:{:02}Z,{},{},4000\n", s, cells(host, gpu), host * 50 + gpu * 10 + 5);
    const Recording r = read_log(text);
    EXPECT_EQ(r.sources.size(), 4u) << header;
    if (r.sources.size() != 4) return std::string();
    EXPECT_EQ(values(r, Metric::kGpuUtil, 3).at(0), 0.65) << header;
    EXPECT_EQ(device_of(r.sources[2]).index, 2) << header;
    return device_of(r.sources[2]).name;
  };
  const auto named = [](int host, int gpu) { return fmt::format("node{},{}", host + 1, gpu); };
  for (const char* header : {"node,device", "host,gpu", "instance,minor", "server,index", "node_name,card"})
    EXPECT_EQ(read(header, named), "node2") << header;
  const auto numbered = [](int host, int gpu) { return fmt::format("{},{}", host, gpu); };
  EXPECT_EQ(read("node,device", numbered), "host 1");
  EXPECT_EQ(read("compute_node_rank,device", numbered), "host 1");
  EXPECT_EQ(read("gpu", [](int host, int gpu) { return fmt::format("node{}:{}", host, gpu); }), "node1");
  EXPECT_EQ(read("device", [](int host, int gpu) { return fmt::format("a{}/gpu{}", host, gpu); }), "a1");
}

TEST(Hosts, ANumberThatTellsNoRowsApartIsNone) {
  std::string text = "time,node,gpu,gpu_util_percent\n";
  for (int s = 0; s < 30; ++s)
    for (int gpu = 0; gpu < 2; ++gpu) text += fmt::format("2025-05-06T01:00:{:02}Z,{},{},{}\n", s, gpu, gpu, 50 + gpu);
  const Recording r = read_log(text);
  ASSERT_EQ(r.sources.size(), 2u);
  EXPECT_EQ(device_of(r.sources[1]).name, "") << "of NUMA";
}

TEST(Hosts, OfUuidsAreSaidAndTheirIndicesAreNotShared) {
  std::string text = "timestamp, host, index, uuid, utilization.gpu [%]\n";
  for (int s = 0; s < 4; ++s)
    for (const char* host : {"a", "b"})
      text += fmt::format("2025/11/05 21:13:{:02}.000, {}, 0, GPU-{}, 7 %\n", s, host, host);
  const Recording r = read_log(text);
  ASSERT_EQ(r.sources.size(), 2u);
  EXPECT_EQ(device_of(r.sources[1]).name, "b");
  EXPECT_EQ(device_of(r.sources[1]).index, 1);
}

TEST(Hosts, OfAnAnswerOfPrometheusAreInTheReport) {
  const auto series = [](std::string_view labels, int value) {
    return fmt::format(
        R"({{"metric":{{"__name__":"DCGM_FI_DEV_GPU_UTIL","gpu":"0",{}}},"values":[[1741600000,"{}"],[1741600005,"{}"]]}})",
        labels, value, value);
  };
  const auto answer = [&](std::string_view one, std::string_view other) {
    return fmt::format(R"({{"status":"success","data":{{"resultType":"matrix","result":[{},{}]}}}})", series(one, 90),
                       series(other, 20));
  };
  const Recording named = read_log(answer(R"("Hostname":"n1","instance":"10.0.0.1:9400")", R"("Hostname":"n2")"));
  ASSERT_EQ(named.sources.size(), 2u);
  EXPECT_EQ(device_of(named.sources[0]).name, "n1");
  EXPECT_EQ(device_of(named.sources[1]).name, "n2");
  EXPECT_EQ(named.meta.extra.at("hosts"), "n1 (GPU 0), n2 (GPU 1)");
  const Recording scraped =
      read_log(answer(R"("instance":"10.0.0.1:9400")", R"("instance":"10.0.0.2:9400","modelName":"A")"));
  ASSERT_EQ(scraped.sources.size(), 2u);
  EXPECT_EQ(device_of(scraped.sources[0]).name, "10.0.0.1");
  EXPECT_EQ(device_of(scraped.sources[1]).name, "A (10.0.0.2)");
}

TEST(Hosts, WhatTellsRowsApartAndIsCalledOtherwiseIsNamedByACommandThatRuns) {
  std::string text = "time,thread,gpu_util_percent\n";
  for (int s = 0; s < 40; ++s)
    for (int gpu = 0; gpu < 2; ++gpu) text += fmt::format("2025-05-06T01:{:02}:00Z,{},{}\n", s, gpu, 50 + gpu);
  const Error error = import_error(text);
  EXPECT_THAT(error.hint, HasSubstr("--columns thread=index"));
  ImportOptions options;
  options.columns = "thread=index";
  EXPECT_EQ(read_log(text, options).sources.size(), 2u);
}

}  // namespace
}  // namespace headroom
