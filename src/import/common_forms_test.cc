// SPDX-License-Identifier: Apache-2.0
// Logs in forms that many have: each with readings of 90 % to 93 %, a second apart.
#include "import/log_test_support.h"

namespace headroom {
namespace {

using ::testing::HasSubstr;

TEST(CommonForms, LinesThatWereTakenOutOfABoxAreReadBelowTheirTimes) {
  const auto line = [](int use, std::string_view more) {
    return fmt::format("| N/A   66C    P0             201W / 300W |   21212MiB / 32768MiB |     {}%      Default |{}",
                       use, more);
  };
  const Recording r = read_log(lines_of("", [&](int i) {
    return fmt::format("Wed Nov  5 21:13:0{} UTC 2025\n{}\n{}", i, line(90 + i, ""), line(40, ""));
  }));
  expect_rows(r, 2);
  EXPECT_EQ(values(r, Metric::kGpuUtil, 1)[3], 0.4);
  EXPECT_EQ(values(r, Metric::kMemoryUsed)[0], 21212 * 1048576.0);
  EXPECT_EQ(values(r, Metric::kPower)[0], 201);
  EXPECT_THAT(detail(r, "no_gpu_column"), HasSubstr("in order"));
  const std::string untimed = lines_of("", [&](int i) { return line(90 + i, ""); });
  EXPECT_THAT(import_error(untimed).hint, HasSubstr("--log-interval"));
  ImportOptions options;
  options.interval = kSecond;
  expect_rows(read_log(untimed, options));
}

TEST(CommonForms, ReadingsByTheirUnitsAloneAreReadWhereSeveralStandTogether) {
  const auto log = [](std::string_view readings) {
    return lines_of("", [&](int i) {
      return fmt::format("[2025-11-05 21:13:0{0}] GPU0: 9{0}% | {1}\n[2025-11-05 21:13:0{0}] GPU1: 40% | {1}", i,
                         readings);
    });
  };
  const Recording r = read_log(log("30245MB / 40960MB | 65C | 301W"));
  expect_rows(r, 2);
  EXPECT_EQ(values(r, Metric::kMemoryUsed)[0], 30245 * 1048576.0);
  EXPECT_EQ(device_of(r.sources[1]).memory_total_bytes, std::int64_t{40960} << 20);
  EXPECT_EQ(values(r, Metric::kPower, 1)[0], 301);
  EXPECT_EQ(values(r, Metric::kTemperature)[0], 65);
  (void)import_error(log("120/456 [00:12<00:30]"));  // a bar of progress
  EXPECT_TRUE(values(read_log(log("35% | 10/24GB | 300W")), Metric::kGpuUtil).empty()) << "which is its use?";
}

TEST(CommonForms, NumbersBeforeTheirNamesAreRead) {
  const Recording r = read_log(lines_of(
      "", [](int i) { return fmt::format("2025-11-05 21:13:0{0} GPU 0: 9{0}% util, 20.5/40.0 GB, 61 C", i); }));
  expect_rows(r);
  EXPECT_EQ(values(r, Metric::kMemoryUsed)[0], 20.5 * 1073741824.0);
}

TEST(CommonForms, ADayOfTheWeekTellsWhichNumberIsTheDay) {
  ImportOptions options;
  options.columns = "timestamp,utilization.gpu,memory.used";
  const auto log = [](std::string_view day) {
    return lines_of("", [&](int i) { return fmt::format("{} 21:13:0{}.00, 9{} %, 9123 MiB", day, i, i); });
  };
  const Recording r = read_log(log("Wed 11/05/2025"), options);
  expect_rows(r);
  EXPECT_EQ(r.tracks[0].at[0], kT0);
  EXPECT_EQ(lost(r, "assumed_date_order"), 0);
  EXPECT_EQ(read_log(log("Wed 05/11/2025"), options).tracks[0].at[0], kT0);
  EXPECT_THAT(import_error(log("Wed 11/05/2025")).hint, HasSubstr("--columns timestamp,utilization.gpu,"));
}

TEST(CommonForms, PointsOfCloudWatchAreReadInOrderOfTime) {
  std::string text = R"({"Label": "nvidia_smi_utilization_gpu", "Datapoints": [)";
  for (const int i : {2, 0, 3, 1})
    text += fmt::format(
        R"({}{{"Timestamp": "2025-11-05T21:13:0{}+00:00", "Average": 9{}.0, "Maximum": 100.0, "Unit": "Percent"}})",
        i == 2 ? "" : ",", i, i);
  expect_rows(read_log(text + "]}"));
}

TEST(CommonForms, ObjectsWithinTheReadingsOfAListAreRead) {
  const Recording r = read_log(lines_of("", [](int i) {
    return fmt::format(
        R"({{"ts": {}.0, "host": "rig2", "cpu": {{"percent": 31.2}}, "mem": {{"used": 35433480192}}, "gpus": [)"
        R"({{"index": 0, "utilization": {{"gpu": 9{}, "memory": 50}}, "memory": {{"used_mb": 21011, )"
        R"("total_mb": 24576}}, "power": {{"draw_w": 330.5, "limit_w": 350}}}}]}})",
        kT0 / kSecond + i, i);
  }));
  expect_rows(r);
  EXPECT_EQ(values(r, Metric::kMemoryUsed)[0], 21011 * 1048576.0) << "not the host's";
  EXPECT_EQ(values(r, Metric::kPower)[0], 330.5);
}

TEST(CommonForms, AnswersOfNvtopWithoutTimesAskForAnInterval) {
  const std::string text = lines_of("", [](int i) {
    return fmt::format(R"([{{"device_name": "X", "gpu_clock": "2745MHz", "gpu_util": "9{}%", "mem_util": "56%"}}])", i);
  });
  EXPECT_THAT(import_error(text).hint, HasSubstr("--log-interval"));
  ImportOptions options;
  options.interval = kSecond;
  expect_rows(read_log(text, options));
  (void)import_error(R"({"model": "m", "gpu_memory_utilization": 0.9, "gpu_util": 1})");  // settings of a server
}

TEST(CommonForms, MemoryOfEachGpuWithoutAUnitIsTakenAsItsNumbersAllow) {
  const Recording r = read_log(lines_of("elapsed,loss,gpu_0_util,gpu_0_mem,gpu_1_util,gpu_1_mem\n",
                                        [](int i) { return fmt::format("{0}.5,0.3,9{0},11212,40,9000", i); }));
  expect_rows(r, 2);
  EXPECT_EQ(values(r, Metric::kMemoryUsed, 1)[0], 9000 * 1048576.0);
}

TEST(CommonForms, ColumnsOfGpusWithoutAUnitAreAskedForByTheirNames) {
  const std::string text =
      lines_of("\"Time\",\"GPU 0\",\"GPU 1\"\n", [](int i) { return fmt::format("2025-11-05 21:13:0{0},9{0},40", i); });
  EXPECT_THAT(import_error(text).hint, HasSubstr("--columns 'GPU 0=gpu0_util,GPU 1=gpu1_util'"));
  ImportOptions options;
  options.columns = "GPU 0=gpu0_util,GPU 1=gpu1_util";
  expect_rows(read_log(text, options), 2);
}

TEST(CommonForms, TablesBetweenBlanksAreRead) {
  const auto printed = [](std::string_view header, bool numbered) {
    return lines_of(fmt::format("{}\n", header), [&](int i) {
      return fmt::format("{} 2025-11-05 21:13:0{}      0   9{} %   8123", numbered ? fmt::format("{}", i) : "", i, i);
    });
  };
  for (const bool numbered : {false, true}) {
    const Recording r = read_log(printed("  timestamp   gpu   gpu_util   memory_used", numbered));
    expect_rows(r);
    EXPECT_EQ(values(r, Metric::kMemoryUsed)[0], 8123 * 1048576.0);
  }
  const std::string short_one = printed("timestamp gpu gpu_util memory_used", true) + "..   ...   ..  ...\n";
  EXPECT_THAT(import_error(short_one).hint, HasSubstr("to_csv")) << "rows were left out";
}

TEST(CommonForms, ReadingsOfAListOfGpusGoBeforeThoseOfTheHostAroundIt) {
  const Recording r = read_log(lines_of("", [](int i) {
    return fmt::format(R"({{"time": "2025-11-05 21:13:0{0}", "memory_used": 99000, "gpu": [{{"id": 0, "util": 9{0}}}, )"
                       R"({{"id": 1, "util": 40}}]}})",
                       i);
  }));
  expect_rows(r, 2);
  EXPECT_TRUE(values(r, Metric::kMemoryUsed).empty());
}

TEST(CommonForms, DictionariesOfATrainingBetweenRowsAreMessages) {
  const Recording r = read_log(lines_of("timestamp, index, utilization.gpu [%], memory.used [MiB]\n", [](int i) {
    return fmt::format(
        "2025/11/05 21:13:0{0}.000, 0, 9{0} %, 8000 MiB\n{{'loss': 0.3, 'lr': 1e-5, 'grad': 1.0, 'epoch': {0}}}", i);
  }));
  expect_rows(r);
  EXPECT_EQ(lost(r, "unreadable_row"), 0);
  EXPECT_EQ(lost(r, "interleaved_message"), 4);
}

TEST(CommonForms, ATimeGoesBeforeAnEpochThatIsNone) {
  std::string text = "[";
  for (int i = 0; i < 4; ++i)
    text += fmt::format(R"({}{{"metricName": "sys.gpu.0.gpu_utilization", "metricValue": "9{}", "timestamp": {}000, )"
                        R"("step": {}, "epoch": null}})",
                        i == 0 ? "" : ",", i, kT0 / kSecond + i, i);
  expect_rows(read_log(text + "]"));
}

TEST(CommonForms, LinesBehindATimeInBracketsAreNoJson) {
  const Error error = import_error(lines_of("", [](int i) {
    return fmt::format(
        " [2025-11-05 21:13:0{0}.5] iteration {0}0/ 500 | elapsed time per iteration (ms): 61.5 | lm loss: 1.5", i);
  }));
  EXPECT_THAT(error.what, HasSubstr("what a program printed"));
  const Error server = import_error(lines_of("", [](int i) {
    return fmt::format(
        "INFO 11-05 21:13:0{0} loggers.py:118] Avg prompt throughput: 8{0}.2 tokens/s, GPU KV cache usage: 35.0%", i);
  }));
  EXPECT_THAT(server.what, HasSubstr("a text in which no reading of a GPU is known")) << "and no table";
}

TEST(CommonForms, RowsBetweenBlanksWithoutAHeaderAreAskedForByTheirCells) {
  const std::string text = lines_of("", [](int i) { return fmt::format("2025-11-05 21:13:0{0} 9{0} 10240 65", i); });
  EXPECT_THAT(import_error(text).hint, HasSubstr("--columns timestamp,A,B,C"));
  ImportOptions options;
  options.columns = "timestamp,utilization.gpu,memory.used,temperature.gpu";
  const Recording r = read_log(text, options);
  expect_rows(r);
  EXPECT_EQ(values(r, Metric::kTemperature)[0], 65);
}

TEST(CommonForms, MarksInBracketsBeforeTheTimeOfALineAreNoneOfIt) {
  for (const char* mark : {"[rank0]:", "[INFO]", "[gpumon]"})
    expect_rows(read_log(lines_of("{'loss': 1.2, 'epoch': 0.1}\n", [&](int i) {
      return fmt::format("{1} 2025-11-05 21:13:0{0} GPU 0 | util: 9{0}% | mem: 30.1/79.2 GiB", i, mark);
    })));
}

TEST(CommonForms, AWorkbookIsToBeSavedAsCsv) {
  const auto workbook = import_log("gpu.xlsx", "PK\x03\x04 [Content_Types].xml", {});
  ASSERT_FALSE(workbook);
  EXPECT_THAT(workbook.error().what, HasSubstr("a workbook of Excel"));
  EXPECT_THAT(workbook.error().hint, HasSubstr("CSV"));
}

}  // namespace
}  // namespace headroom
