// SPDX-License-Identifier: Apache-2.0
#include "import/import.h"

#include <unistd.h>

#include "base/fd.h"

#include "import/log_test_support.h"

namespace headroom {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(Sniff, TellsFilesByContent) {
  EXPECT_EQ(sniff_log(std::string_view("SQLite format 3\0xyz", 19)), LogFormat::kRecording);
  EXPECT_EQ(sniff_log("{\"headroom\":1}\n"), LogFormat::kUnknown) << "JSON of whoever";
  const std::string begun = R"({"event":"attempt_start","attrs":{"gpus":"0","query_time":"1"}})";
  EXPECT_EQ(sniff_log("{\"recording\":1,\"meta\":{}}\n" + begun), LogFormat::kJsonl) << "its own first line wins";
  EXPECT_EQ(sniff_log("\n{ \"recording\" : 1, \"meta\":{}}\n" + begun), LogFormat::kJsonl);
  EXPECT_EQ(sniff_log(begun), LogFormat::kGpustat) << "the words that were taken for gpustat's";
  EXPECT_EQ(sniff_log("timestamp, utilization.gpu [%]\n"), LogFormat::kNvidiaSmi);
  EXPECT_EQ(sniff_log("# gpu    pwr  gtemp\n"), LogFormat::kDmon);
  EXPECT_EQ(sniff_log("timestamp,gpu_id,gpu_util_%\n"), LogFormat::kMonitorCsv);
  EXPECT_EQ(sniff_log("name,age\nann,5\n"), LogFormat::kUnknown);
  EXPECT_EQ(sniff_log(""), LogFormat::kUnknown);
}

TEST(Errors, SayWhatItIsAndWhatNext) {
  const auto says = [](std::string_view text, const char* what, const char* hint) {
    const Error error = import_error(text);
    EXPECT_EQ(error.code, Errc::kInvalidInput) << text;
    EXPECT_THAT(error.what, HasSubstr(what));
    EXPECT_THAT(error.hint, HasSubstr(hint));
  };
  says("", "empty", "import --help");
  says(" \n\n", "empty", "import --help");
  says(std::string_view("\x7f"
                        "ELF\0\0",
                        6),
       "a program", "headroom run -- ");
  says(std::string_view("a\0b", 3), "binary", "import --help");
  says("name,age\nann,5\n", "no column is a reading of a GPU that is known: name, age", "--columns NAME=");
  says("PK\x03\x04", "zip archive", "--query-gpu");
  says("#!/bin/sh\ntrue\n", "a script", "headroom run -- ");
  says(std::string("\x18\0\0\0\0\0\0\0????\x09\0\0\0", 16) + "brain.Event:2", "TensorBoard", "headroom run");
  says("loading\nepoch 1 loss 0.5\nepoch 2 loss 0.4\nepoch 3 loss 0.3\n", "what a program printed", "headroom run");
  says("[\n  {\n    \"gpu\": 0,\n    \"usage\": 3\n  }\n]\n", "JSON of a tool that is not known", "import --help");
  says("# my notes\nfirst\n", "a text in which no reading of a GPU is known; it begins with '# my notes'",
       "--query-gpu");
  says("==============NVSMI LOG==============\n", "no reading of a GPU", "nvidia-smi -q -d UTILIZATION");
  says(
      "# gpu         pid   type     sm    mem    enc    dec    command\n# Idx           #    C/G      %      %      %  "
      "    %    name\n",
      "no row of a GPU", "pmon -o DT");
  says("timestamp, utilization.gpu [%]\n", "a header and no rows", "");
  says("timestamp, name\n2025/11/05 21:13:00.000, A100\n", "no column that a recording can hold", "utilization.gpu");
  says("{\"recording\":1}\n", "recording", "headroom why");
}

TEST(Errors, SomeKindsAreToldByTheirEnding) {
  const auto of = [](const char* name) {
    const auto r = import_log(name, "x = 1\n", {});
    return r ? Error{} : r.error();
  };
  EXPECT_THAT(of("dir/a b.py").hint, HasSubstr("headroom run -- python3 'dir/a b.py'"));
  EXPECT_THAT(of("run.nsys-rep").hint, HasSubstr("nsys export --type sqlite"));
  EXPECT_THAT(of("x.py.txt").what, HasSubstr("a text"));
}

TEST(Errors, AMissingFileIsSaid) {
  const auto r = import_file("/nonexistent/gpu.csv", {});
  ASSERT_FALSE(r.has_value());
  EXPECT_EQ(r.error().code, Errc::kNotFound);
  EXPECT_THAT(r.error().what, HasSubstr("/nonexistent/gpu.csv"));
}

TEST(Files, APipeIsReadToItsEnd) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const Fd reading(ends[0]);
  {
    const Fd writing(ends[1]);
    ASSERT_TRUE(write_all(writing.get(), smi({{0, 50}, {1, 60}})));
  }
  const auto r = import_file(fmt::format("/dev/fd/{}", ends[0]), {});
  ASSERT_TRUE(r.has_value()) << r.error().what;
  EXPECT_THAT(values(*r, Metric::kGpuUtil), ElementsAre(0.5, 0.6));
}

TEST(Files, TasksOfABatchAreNoLog) {
  ByteStream bytes = ByteStream::of("[task]\ncommand = [\"true\"]\n");
  const auto r = import_stream("sweep.toml", bytes, {});
  ASSERT_FALSE(r.has_value());
  EXPECT_THAT(r.error().what, HasSubstr("tasks of a batch, not a log"));
  EXPECT_EQ(r.error().hint, "headroom batch sweep.toml runs them");
}

TEST(Files, WhatIsNoLogIsRefusedByItsBeginning) {
  std::string text = "{\"tool\":[";
  while (text.size() < std::size_t{1} << 21) text += "{\"size\":64,\"kind\":2},";
  ByteStream bytes = ByteStream::of(text);
  const auto r = import_stream("other.json", bytes, {});
  ASSERT_FALSE(r.has_value());
  EXPECT_EQ(r.error().what, import_error(text).what.replace(0, 3, "other.json"));
  std::size_t left = 0;
  (void)bytes.next();
  for (std::string_view block = bytes.next(); !block.empty(); block = bytes.next()) left += block.size();
  EXPECT_GT(left, text.size() / 2) << "the rest of it was read";
}

TEST(Forms, EachTellsTheSameMinute) {
  struct Form {
    const char *file, *origin;
    bool two, power;
  };
  for (const auto& [file, origin, two, power] :
       {Form{"semicolons.csv", "import:nvidia-smi", true, true},
        Form{"decimal_commas.csv", "import:nvidia-smi", true, true},
        Form{"one_column.csv", "import:nvidia-smi", false, false}, Form{"gpustat.json", "import:gpustat", true, true},
        Form{"dcgm.txt", "import:dcgm", true, true}, Form{"pmon.txt", "import:pmon", true, false},
        Form{"prometheus.json", "import:prometheus", true, true}, Form{"smi.xml", "import:nvidia-smi-xml", true, true},
        Form{"headroom.csv", "import:headroom-csv", true, true}}) {
    ImportOptions options;
    for (const std::string_view without_times : {"one_column.csv", "dcgm.txt"})
      if (file == without_times) options.interval = kSecond;
    const auto r = import_file(logs(fmt::format("forms/{}", file)), options);
    ASSERT_TRUE(r.has_value()) << file << ": " << r.error().what;
    EXPECT_EQ(r->meta.origin, origin);
    EXPECT_EQ(r->meta.end - r->meta.start, 60 * kSecond) << file;
    EXPECT_EQ(r->sources.size(), two ? 2u : 1u) << file;
    EXPECT_EQ(values(*r, Metric::kGpuUtil).size(), 60u) << file;
    EXPECT_NEAR(mean(values(*r, Metric::kGpuUtil)), 0.9, 1e-9) << file;
    if (two) {
      EXPECT_NEAR(mean(values(*r, Metric::kGpuUtil, 1)), 0, 1e-9) << file;
    }
    if (power) {
      EXPECT_NEAR(mean(values(*r, Metric::kPower)), 288, 1e-9) << file;
    }
    for (const Loss& loss : r->losses) EXPECT_LT(loss.severity, Severity::kDataLoss) << file << ": " << loss.detail;
  }
}

TEST(Forms, KeepWhatOnlyTheyTell) {
  const auto xml = import_file(logs("forms/smi.xml"), {});
  const Device device = device_of(xml->sources[0]);
  EXPECT_EQ(device.name, "NVIDIA GeForce RTX 3090");
  EXPECT_EQ(device.driver_version, "550.54.14");
  EXPECT_EQ(device.memory_total_bytes, std::int64_t{24576} << 20);
  EXPECT_EQ(device.power_limit_watts, 350);
  EXPECT_EQ(values(*xml, Metric::kEventReasons)[0], static_cast<double>(kReasonSwPowerCap));
  EXPECT_EQ(xml->sources[1].key, "GPU-0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9");
  const auto refused = import_file(logs("forms/dcgm.txt"), {});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().hint, AllOf(HasSubstr("--log-interval"), HasSubstr("--start-date")));
  ImportOptions each_second;
  each_second.interval = kSecond;
  const auto dcgm = import_file(logs("forms/dcgm.txt"), each_second);
  EXPECT_NEAR(mean(values(*dcgm, Metric::kSmActive)), 0.9, 1e-9);
  const auto prometheus = import_file(logs("forms/prometheus.json"), {});
  EXPECT_EQ(device_of(prometheus->sources[0]).name, "NVIDIA A100-SXM4-40GB");
}

TEST(Forms, ALogOfProcessesNamesThem) {
  std::string log = "#Date Time gpu pid type sm mem enc dec command\n#YYYYMMDD HH:MM:SS Idx # C/G % % % % name\n";
  for (int s = 10; s < 30; ++s)
    for (const char* process : {"4101 C 30 6 - - python", "4177 C 20 6 - - train"})
      log += fmt::format("20250203 10:00:{} 0 {}\n", s, process);
  const auto two = import_log("two.pmon", log, {});
  ASSERT_TRUE(two) << two.error().what;
  EXPECT_EQ(two->meta.extra.at("processes"), "4101 python 30 %, 4177 train 20 %");
  EXPECT_NEAR(mean(values(*two, Metric::kGpuUtil)), 0.5, 1e-9);
  const auto apart = import_log("apart.pmon", log + "20250203 10:00:29 1 4200 C 90 6 - - other\n", {});
  ASSERT_TRUE(apart) << apart.error().what;
  EXPECT_EQ(apart->meta.extra.at("processes"),
            "4200 other 90 % (GPU 1), 4101 python 30 % (GPU 0), 4177 train 20 % (GPU 0)");
  const std::string one =
      log.substr(0, log.find('\n', log.find("name")) + 1) + "20250203 10:00:10 0 4101 C 30 6 - - python\n";
  EXPECT_FALSE(import_log("one.pmon", one, {})->meta.extra.contains("processes")) << "of one there is no question";
}

TEST(Forms, ALogOfProcessesTellsWhoIsOnAGpuAtItsEnd) {
  std::string log = "#Date Time gpu pid type sm mem enc dec command\n#YYYYMMDD HH:MM:SS Idx # C/G % % % % name\n";
  for (int s = 10; s < 40; ++s) {
    log += fmt::format("20250203 10:00:{} 0 4101 C 30 6 - - python\n", s);
    log += fmt::format("20250203 10:00:{} 0 1822 G 1 0 - - Xorg\n", s);
    log += fmt::format("20250203 10:00:{} 1 {}\n", s, s < 30 ? "4177 C 20 6 - - train" : "- - - - - - -");
    log += fmt::format("20250203 10:00:{} 2 - - - - - - -\n", s);
  }
  const auto read = import_log("two.pmon", log, {});
  ASSERT_TRUE(read) << read.error().what;
  EXPECT_EQ(read->meta.extra.at("listed.0"), "4101 python");
  EXPECT_EQ(read->meta.extra.at("gone.1"), "4177 train, listed last at 10:00:29");
  for (int pid = 0; pid < 9; ++pid) log += fmt::format("20250203 10:00:39 1 {} C 20 6 - - t\n", 5000 + pid);
  EXPECT_EQ(import_log("many.pmon", log, {})->meta.extra.at("listed.1"), "5000 t, 5001 t, 5002 t, 5003 t and 5 others");
  EXPECT_FALSE(read->meta.extra.contains("gone.0") || read->meta.extra.contains("listed.1"));
  EXPECT_FALSE(read->meta.extra.contains("gone.2") || read->meta.extra.contains("listed.2")) << "nobody ever was there";
}

TEST(Forms, ALogOfProcessesTellsWhoCameToAGpuAndWhoHadLessThen) {
  const auto log = [](int since, int share_then) {
    std::string text = "#Date Time gpu pid type sm mem enc dec command\n#YYYYMMDD HH:MM:SS Idx # C/G % % % % name\n";
    for (int s = 10; s < 50; ++s) {
      text += fmt::format("20250203 10:00:{} 0 4101 C {} 6 - - python\n", s, s < since ? 63 : share_then);
      text += fmt::format("20250203 10:00:{} 0 2290 G 1 6 - - Xorg\n", s);
      if (s >= since) text += fmt::format("20250203 10:00:{} 0 4177 C 29 6 - - ipykernel\n", s);
    }
    return text;
  };
  const auto read = import_log("two.pmon", log(30, 36), {});
  ASSERT_TRUE(read) << read.error().what;
  EXPECT_EQ(read->meta.extra.at("newcomer"),
            "4177 ipykernel was on GPU 0 from 10:00:30 to 10:00:49, too: 4101 python had 36 % of its SMs in that "
            "time, and 63 % before");
  std::string odd = log(30, 36);
  odd.replace(odd.find(" 63 "), 4, " nan ").replace(odd.find(" 63 "), 4, " 1e300 ");
  const auto strange = import_log("odd.pmon", odd, {});
  ASSERT_TRUE(strange) << strange.error().what;
  EXPECT_THAT(strange->meta.extra.at("processes") + strange->meta.extra.at("newcomer"),
              AllOf(Not(HasSubstr("nan")), Not(HasSubstr("inf")), HasSubstr("62 % before")));
  std::string with_memory = "# gpu pid type sm mem enc dec fb command\n# Idx # C/G % % % % MB name\n";
  for (int row = 0; row < 3; ++row) with_memory += " 0 20311 C 48 20 - - 9120 a\n 0 20877 C 46 20 - - 6034 b\n";
  ImportOptions each_second;
  each_second.interval = kSecond;
  EXPECT_THAT(values(read_log(with_memory, each_second), Metric::kMemoryUsed), testing::Each(15154 * 1048576.0));
  EXPECT_FALSE(import_log("equal.pmon", log(30, 60), {})->meta.extra.contains("newcomer")) << "hardly less";
  EXPECT_FALSE(import_log("short.pmon", log(45, 36), {})->meta.extra.contains("newcomer")) << "five readings";
  EXPECT_FALSE(import_log("never.pmon", log(10, 36), {})->meta.extra.contains("newcomer")) << "both from the first on";
}

TEST(Errors, OtherTablesOfNvidiaSmiAreRefused) {
  EXPECT_THAT(import_error("pid, process_name, used_gpu_memory [MiB]\n12, python, 5 MiB\n").what,
              HasSubstr("processes"));
}

TEST(Samples, SmallGpuHasTheFiguresOfItsCase) {
  const auto r = import_file(logs("small_gpu_4050.csv"), {});
  ASSERT_TRUE(r.has_value());
  const auto util = values(*r, Metric::kGpuUtil), power = values(*r, Metric::kPower);
  EXPECT_EQ(util.size(), 90u);
  EXPECT_NEAR(mean(util), 0.114, 1e-9);
  EXPECT_NEAR(mean(power), 26.8, 1e-9);
  EXPECT_EQ(power[60], 590.0);
  EXPECT_NEAR((mean(power) * 90 - 590) / 89, 20.5, 0.05);
  EXPECT_NEAR(seconds(r->meta.end - r->meta.start), 300, 1);
  EXPECT_EQ(device_of(r->sources[0]).power_limit_watts, std::nullopt);
  EXPECT_EQ(lost(*r, "missing_row") + lost(*r, "gap"), 0);
  const auto limited = import_file(logs("small_gpu_4050_limit.csv"), {});
  ASSERT_TRUE(limited.has_value());
  EXPECT_EQ(device_of(limited->sources[0]).power_limit_watts, 55.0);
}

TEST(Samples, EpochsAreBusyForThreeQuarters) {
  const auto r = import_file(logs("epochs_a100.dmon"), {});
  ASSERT_TRUE(r.has_value());
  EXPECT_NEAR(mean(values(*r, Metric::kGpuUtil)), 318.0 / 420, 1e-9);
  EXPECT_EQ(r->meta.end - r->meta.start, 1260 * kSecond);
}

TEST(Samples, RowsThatDoNotFitAreCounted) {
  const auto r = import_file(logs("two_gpus_103_rows.csv"), {});
  ASSERT_TRUE(r.has_value());
  EXPECT_EQ(lost(*r, "missing_row"), 55);
  EXPECT_THAT(detail(*r, "missing_row"), HasSubstr("55 of 158 rows"));
}

TEST(Errors, TablesOfProcessesOrOfAReportNameWhatHelps) {
  const auto says = [](std::string_view text, const char* what, const char* hint) {
    const Error error = import_error(text);
    EXPECT_THAT(error.what, HasSubstr(what)) << text;
    EXPECT_THAT(error.hint, HasSubstr(hint)) << text;
  };
  says(
      "timestamp, gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n2024/03/14 15:09:26.535, GPU-7, 1, python, 5 "
      "MiB\n",
      "processes", "--query-gpu");
  says("time,pid,gpu_mem_mb\n2024-03-14 15:09:26,1,5\n2024-03-14 15:09:26,2,5\n", "processes", "--query-gpu");
  says("Start (ns),Duration (ns),CorrId,Name\n5,7,300,gemm\n", "nsys stats", "nsys export --type sqlite");
  says("Time(%),Total Time(nsec),Instances,Name\n5,7,300,gemm\n", "nsys stats", "nsys export --type sqlite");
  says("{\n  \"gpus\": 4,\n  \"nodes\": {\"a\": {\"cpus\": 16}}\n}\n", "JSON of a tool that is not known",
       "--query-gpu");
}

TEST(Forms, PmonWithoutTimesIsARowAnInterval) {
  ImportOptions each_second;
  each_second.interval = kSecond;
  for (const char* separator : {"  ", ", "}) {
    std::string log = fmt::format("# gpu{0}pid{0}type{0}sm{0}mem{0}enc{0}dec{0}command\n", separator);
    for (int s = 0; s < 3; ++s)
      log +=
          fmt::format("    0{0}11{0}C{0}45{0}22{0}0{0}0{0}python\n    0{0}12{0}C{0}20{0}2{0}0{0}0{0}gmx\n", separator);
    EXPECT_THAT(import_error(log).hint, HasSubstr("nvidia-smi pmon -o DT writes times"));
    const auto r = import_log("a.pmon", log, each_second);
    ASSERT_TRUE(r) << r.error().what;
    EXPECT_THAT(times(*r), ElementsAre(0, 1, 2));
    EXPECT_NEAR(mean(values(*r, Metric::kGpuUtil)), 0.65, 1e-9);
  }
}

TEST(Forms, NvidiaSmiQTellsWhatLimitsTheClocks) {
  std::string text;
  for (int s = 0; s < 2; ++s)
    text += fmt::format(
        "\n==============NVSMI LOG==============\n\nTimestamp                 : Thu Mar 28 23:45:{:02} 2024\n"
        "GPU 00000000:3B:00.0\n    Clocks {} Reasons\n        SW Power Cap      : Active\n"
        "        HW Slowdown       : Not Active\n            HW Thermal Slowdown : Active\n"
        "    Utilization\n        Gpu               : 97 %\n",
        10 + s, s == 0 ? "Event" : "Throttle");
  const auto r = import_log("a.log", text, {});
  ASSERT_TRUE(r) << r.error().what;
  const auto mask = static_cast<double>(kReasonSwPowerCap | kReasonHwThermal);
  EXPECT_THAT(values(*r, Metric::kEventReasons), ElementsAre(mask, mask));
}

TEST(Forms, ObjectsOfJsonAreRows) {
  std::string flat, nested;
  for (int s = 0; s < 3; ++s) {
    flat += fmt::format("{{\"timestamp\": {}, \"cpu_percent\": 30, \"gpu\": {{\"util\": {}, \"mem_used_mb\": 512}}}}\n",
                        1738500000 + 2 * s, 80 + s);
    nested += fmt::format(
        "{{\"time\": {}.25, \"gpus\": [{{\"index\": 0, \"utilization\": 40}}, {{\"index\": 1, \"utilization\": "
        "{}}}]}}\n",
        1738500000 + 2 * s, 70 + s);
  }
  const Recording one = read_log(flat);
  EXPECT_EQ(one.meta.origin, "import:json-rows");
  EXPECT_THAT(times(one), ElementsAre(0, 2, 4));
  EXPECT_THAT(values(one, Metric::kGpuUtil), ElementsAre(0.8, 0.81, 0.82));
  EXPECT_EQ(values(one, Metric::kMemoryUsed)[0], 512 * 1048576.0);
  const Recording two = read_log(nested);
  ASSERT_EQ(two.sources.size(), 2u);
  EXPECT_THAT(times(two, 1), ElementsAre(0, 2, 4)) << "the time stands beside the list";
  EXPECT_THAT(values(two, Metric::kGpuUtil, 1), ElementsAre(0.7, 0.71, 0.72));
  EXPECT_THAT(import_error("{\"gpu_util\": 80}\n{\"gpu_util\": 81}\n").what, HasSubstr("JSON of a tool"))
      << "without a time it is no log";
}

TEST(Forms, NvtopTellsOfEachGpuBelowADate) {
  std::string text;
  for (int s = 0; s < 3; ++s)
    text += fmt::format(
        "2026-01-09T16:40:{:02}+01:00\n[\n  {{\n   \"device_name\": \"A\",\n   \"gpu_clock\": \"210MHz\",\n   "
        "\"temp\": "
        "\"36C\",\n   \"power_draw\": null,\n   \"gpu_util\": \"3%\",\n   \"mem_util\": \"35%\"\n  }},\n  {{\n   "
        "\"device_name\": \"B\",\n   \"gpu_clock\": \"2625MHz\",\n   \"gpu_util\": \"{}%\",\n   \"mem_util\": "
        "\"71%\"\n  "
        "}}\n]\n",
        4 * s, 90 + s);
  const Recording r = read_log(text);
  ASSERT_EQ(r.sources.size(), 2u);
  EXPECT_EQ(device_of(r.sources[1]).name, "B");
  EXPECT_THAT(times(r, 1), ElementsAre(0, 4, 8));
  EXPECT_THAT(values(r, Metric::kGpuUtil, 1), ElementsAre(0.9, 0.91, 0.92));
  EXPECT_THAT(values(r, Metric::kMemoryUtil, 1), testing::IsEmpty()) << "nvtop's is how full the memory is";
  EXPECT_THAT(detail(r, "column_not_kept"), testing::HasSubstr("mem_util of nvtop"));
}

TEST(Forms, GpustatWithPowerIsRead) {
  std::string text;
  for (int s = 0; s < 3; ++s)
    text += fmt::format(
        "node07   Mon Mar 10 10:15:{:02} 2025  550.54.15\n[0] NVIDIA A100 | 55'C,  30 %,  {} %,  160 / 400 W | 30512 / "
        "40960 MB | alice(30500M)\n",
        s, 90 + s);
  const Recording r = read_log(text);
  EXPECT_EQ(r.meta.origin, "import:gpustat");
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.9, 0.91, 0.92));
  EXPECT_THAT(values(r, Metric::kPower), ElementsAre(160, 160, 160));
  EXPECT_EQ(device_of(r.sources[0]).power_limit_watts, 400);
}

TEST(Forms, GpustatTellsWhoseProcessesAreWhere) {
  std::string text;
  for (int s = 0; s < 3; ++s) {
    text += fmt::format("node07   Mon Mar 10 10:15:{:02} 2025  550.54.15\n", s);
    for (int gpu = 0; gpu < 2; ++gpu)
      text +=
          fmt::format("[{}] NVIDIA A100 | 55'C,  90 % | 30512 / 40960 MB | alice:python/4120{}(38198M)\n", gpu, gpu);
    text += "[2] NVIDIA A100 | 55'C,   9 % | 30512 / 40960 MB | bob:vllm/39907(21452M) eve(12M)\n";
    text += "[3] NVIDIA A100 | 55'C,   0 % |     4 / 40960 MB |\n";
  }
  const Attrs extra = read_log(text).meta.extra;
  EXPECT_EQ(extra.at("users.1"), "alice python");
  EXPECT_EQ(extra.at("users.2"), "bob vllm,eve");
  EXPECT_FALSE(extra.contains("users.3"));
}

TEST(Forms, RocmSmiTellsOfEachGpuBelowADate) {
  std::string text;
  for (int s = 0; s < 3; ++s)
    text += fmt::format(
        "Tue May  6 08:00:{:02} UTC 2025\n======= ROCm System Management Interface =======\n======= Concise Info "
        "=======\nGPU  Temp (DieEdge)  AvgPwr  SCLK     MCLK     Fan   Perf  PwrCap  VRAM%  GPU%  \n0    41.0c         "
        "  "
        "130.0W  1700Mhz  1600Mhz  0%    auto  560.0W   34%   {}%   \n======= End of ROCm SMI Log =======\n",
        10 * s, 20 + s);
  const Recording r = read_log(text);
  EXPECT_EQ(r.meta.origin, "import:rocm-smi");
  EXPECT_THAT(times(r), ElementsAre(0, 10, 20));
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.2, 0.21, 0.22));
  EXPECT_EQ(values(r, Metric::kPower)[0], 130);
  EXPECT_EQ(values(r, Metric::kTemperature)[0], 41);
  EXPECT_EQ(values(r, Metric::kSmClock)[0], 1700);
  EXPECT_EQ(device_of(r.sources[0]).power_limit_watts, 560);
}

TEST(Forms, LinesOfAMonitorAreRows) {
  std::string logging, panes, words;
  for (int s = 0; s < 3; ++s) {
    logging += fmt::format(
        "2025-06-03 14:02:{:02},532 INFO monitor: GPU 0: util={}% mem=10240/24576MB temp=71C power=242/350W\n"
        "2025-06-03 14:02:{:02},900 INFO trainer: epoch 3 loss 0.5\n",
        5 * s, 80 + s, 5 * s);
    words += fmt::format("3/17/2025 2:02:{:02} PM gpu 1 util: {}%, power: 90 W\n", 5 * s, 80 + s);
    panes += fmt::format("[14:02:{:02}] GPU0 Util: {} % | Mem: 10 GB / 24 GB || GPU1 Util: 7 % | Mem: 1 GB / 24 GB\n",
                         5 * s, 80 + s);
  }
  const Recording one = read_log(logging);
  EXPECT_EQ(one.meta.origin, "import:lines");
  EXPECT_EQ(one.tracks[0].at[2] - one.tracks[0].at[0], 10 * kSecond);
  EXPECT_THAT(values(one, Metric::kGpuUtil), ElementsAre(0.8, 0.81, 0.82));
  EXPECT_EQ(values(one, Metric::kMemoryUsed)[0], 10240 * 1048576.0);
  EXPECT_EQ(values(one, Metric::kTemperature)[0], 71);
  EXPECT_EQ(values(one, Metric::kPower)[0], 242);
  EXPECT_EQ(device_of(one.sources[0]).memory_total_bytes, std::int64_t{24576} << 20);
  EXPECT_EQ(device_of(one.sources[0]).power_limit_watts, 350);
  const Recording two = read_log(panes);
  ASSERT_EQ(two.sources.size(), 2u);
  EXPECT_THAT(times(two, 1), ElementsAre(0, 5, 10));
  EXPECT_THAT(values(two, Metric::kGpuUtil, 1), ElementsAre(0.07, 0.07, 0.07));
  EXPECT_EQ(values(two, Metric::kMemoryUsed, 0)[0], 10 * 1073741824.0);
  const Recording american = read_log(words);
  EXPECT_EQ(device_of(american.sources[0]).index, 1);
  EXPECT_EQ(american.tracks[0].at[0] / kSecond, 1742220120) << "2025-03-17 14:02";
  EXPECT_EQ(values(american, Metric::kPower)[2], 90);
  std::string host, sampler;
  for (int s = 0; s < 4; ++s) {
    host +=
        fmt::format("2025-06-03T14:02:{:02}Z CPU Util: 9 %, System memory used: 30 GB, GPU Util: {} %\n", s, 80 + s);
    sampler += fmt::format("2025-06-03 14:02:{:02} INFO generate: temp=0.7 top_p=0.9 loss={}\n", s, s);
  }
  const Recording both = read_log(host);
  EXPECT_THAT(values(both, Metric::kGpuUtil), ElementsAre(0.8, 0.81, 0.82, 0.83)) << "and not the CPU's";
  EXPECT_THAT(values(both, Metric::kMemoryUsed), testing::IsEmpty());
  EXPECT_THAT(import_error(sampler).what, HasSubstr("what a program printed"));
}

TEST(Forms, RoundsWithoutTimesMayCountTheGpusDown) {
  std::string text = "#Entity   GPUTL   POWER\nID\n";
  for (int s = 0; s < 3; ++s)
    for (const int gpu : {1, 0}) text += fmt::format("GPU {}     {}      80.0\n", gpu, 50 + 10 * gpu + s);
  ImportOptions each_second;
  each_second.interval = kSecond;
  const Recording r = read_log(text, each_second);
  EXPECT_THAT(times(r, 0), ElementsAre(0, 1, 2));
  EXPECT_EQ(r.tracks[0].at, r.tracks[1].at);
  EXPECT_EQ(lost(r, "missing_row"), 0);
}

TEST(Forms, GpustatsJsonTellsWhoseProcessesAreWhereAndWhoIsGone) {
  std::string text;
  for (int s = 0; s < 3; ++s) {
    const auto gpu = [&](int index, const std::string& processes) {
      return fmt::format(R"({{"index": {}, "name": "A40", "utilization.gpu": 9{}, "memory.used": 9, "processes": {}}})",
                         index, s, processes);
    };
    const auto of = [](const char* user, const char* command, int pid) {
      return fmt::format(R"([{{"username": "{}", "command": "{}", "pid": {}}}])", user, command, pid);
    };
    text += fmt::format(R"({{"hostname": "n", "query_time": "2025-03-10T10:15:0{}", "gpus": [{}, {}, {}]}})", s,
                        gpu(0, of("ann", "python", 4100)), gpu(1, s < 2 ? of("bob", "train", 4101) : "[]"),
                        gpu(2, "null")) +
            "\n";
  }
  const Attrs extra = read_log(text).meta.extra;
  EXPECT_EQ(extra.at("users.0"), "ann python");
  EXPECT_EQ(extra.at("users.1"), "bob train");
  EXPECT_EQ(extra.at("listed.0"), "4100 ann python");
  EXPECT_EQ(extra.at("gone.1"), "4101 bob train, listed last at 2025-03-10T10:15:01");
  EXPECT_FALSE(extra.contains("users.2") || extra.contains("gone.2") || extra.contains("listed.2"));
}

}  // namespace
}  // namespace headroom
