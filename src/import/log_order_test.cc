// SPDX-License-Identifier: Apache-2.0
#include "import/log_order.h"

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <functional>

#include "import/log_test_support.h"

namespace headroom {
namespace {

using testing::DoubleEq;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Time, ZonesAreUsedWhereTheyAreGiven) {
  ImportOptions india;
  india.utc_offset = [](std::int64_t) { return std::int64_t{19800}; };
  const auto at = [](const char* stamp, const ImportOptions& options = {}) {
    const auto r = read_log(fmt::format("timestamp,gpu_util_%\n{},5\n", stamp), options);
    return r.tracks.empty() ? Nanos{0} : r.tracks[0].at[0];
  };
  EXPECT_EQ(at("2025-11-05T21:13:00Z"), kT0);
  EXPECT_EQ(at("2025-11-06T02:43:00+05:30"), kT0);
  EXPECT_EQ(at("2025-11-06 02:43:00.000 +0530"), kT0);
  EXPECT_EQ(at("2025-11-05T13:13:00-08"), kT0);
  EXPECT_EQ(at("2025-11-05 21:13:00"), kT0);
  EXPECT_EQ(at("2025/11/06 02:43:00.000", india), kT0);
  EXPECT_EQ(at("2025-11-05T21:13:00Z", india), kT0);
  EXPECT_EQ(at("1762377180"), kT0);
  EXPECT_EQ(at("1762377180.25"), kT0 + kSecond / 4);
  EXPECT_EQ(at("1762377180250"), kT0 + kSecond / 4);
  EXPECT_EQ(at("1762377180250000000"), kT0 + kSecond / 4);
  const auto assumed = read_log(smi({{0, 1}, {1, 2}}));
  EXPECT_EQ(lost(assumed, "assumed_time_zone"), 1);
  const auto named = read_log("timestamp,gpu_util_%\n2025-11-05 21:13:00 IST,5\n");
  EXPECT_EQ(lost(named, "named_zone"), 1);
}

TEST(Time, OffsetsAndDatesAreParsedOrRefused) {
  const auto offset = [](const char* text) {
    const auto parsed = utc_offset_of(text);
    return parsed ? (*parsed)(1762377180) : std::int64_t{-1};
  };
  EXPECT_EQ(offset("utc"), 0);
  EXPECT_EQ(offset("+05:30"), 19800);
  EXPECT_EQ(offset("-0800"), -28800);
  EXPECT_EQ(offset("five"), -1);
  EXPECT_EQ(offset("+5:300"), -1);
  ::setenv("TZ", "XST-02", 1);
  ::tzset();
  EXPECT_EQ(offset("local"), 7200);
  ::unsetenv("TZ");
  EXPECT_EQ(start_date_of("2025-11-05").value_or(0), 1762300800 * kSecond);
  EXPECT_EQ(start_date_of("05.11.2025").error().hint, "write it as 2025-11-05");
}

TEST(Order, IrregularSpacingLosesNothing) {
  const auto r = read_log(smi({{0, 1}, {3, 1}, {6, 1}, {10, 1}, {13, 1}, {16, 1}, {20, 1}}));
  EXPECT_EQ(lost(r, "missing_row"), 0);
  EXPECT_EQ(lost(r, "gap"), 0);
  EXPECT_EQ(r.meta.interval, 3 * kSecond);
}

TEST(Order, MissingRowsAndGapsAreCounted) {
  const auto r = read_log(smi({{0, 1}, {5, 1}, {15, 1}, {20, 1}, {25, 1}, {50, 1}, {55, 1}}));
  EXPECT_EQ(lost(r, "missing_row"), 1 + 4);
  EXPECT_THAT(detail(r, "missing_row"), HasSubstr("5 of 12 rows"));
  EXPECT_EQ(lost(r, "gap"), 1);
  ASSERT_EQ(r.events.size(), 1u);
  EXPECT_EQ(r.events[0].kind, "gap");
  EXPECT_EQ(r.events[0].at, r.tracks[0].at[4]);
  EXPECT_EQ(r.events[0].end, r.tracks[0].at[5] - 5 * kSecond);
  EXPECT_EQ(r.events[0].source, 0);
  const auto gap = std::find_if(r.losses.begin(), r.losses.end(), [](const Loss& l) { return l.what == "gap"; });
  EXPECT_EQ(gap->places, (std::vector<LossPlace>{{r.events[0].at, *r.events[0].end, 0}}));
}

TEST(Order, AGpuMissingInSomeRoundsIsCounted) {
  std::string text = "timestamp,gpu_id,gpu_util_%\n";
  for (int round = 0; round < 10; ++round)
    for (int gpu = 0; gpu < 2; ++gpu)
      if (gpu == 1 || (round != 0 && round != 4 && round != 9))
        text += fmt::format("{},{},5\n", 1762377180 + 5 * round, gpu);
  const auto r = read_log(text);
  EXPECT_EQ(lost(r, "missing_row"), 3);
  EXPECT_THAT(detail(r, "missing_row"), HasSubstr("GPU 0: 3"));
}

TEST(Order, ALogThatEndsWithinARoundLacksNoRow) {
  const auto lost_of = [](int whole, int of_the_last, int without) {
    std::string text = "timestamp,gpu_id,gpu_util_%\n";
    for (int round = 0; round <= whole; ++round)
      for (int gpu = 0; gpu < (round == whole ? of_the_last : 4); ++gpu)
        if (round != whole || gpu != without) text += fmt::format("{},{},5\n", 1762377180 + 5 * round, gpu);
    return lost(read_log(text), "missing_row");
  };
  EXPECT_EQ(lost_of(20, 2, -1), 0);
  EXPECT_EQ(lost_of(20, 1, -1), 0);
  EXPECT_EQ(lost_of(20, 4, 0), 1) << "those that come later have theirs";
}

TEST(Order, ASecondSkippedByRoundingIsNoMissingRow) {
  const std::string header = "timestamp,gpu_id,gpu_util_%\n";
  std::string one = header, two = header;
  for (const int second : {0, 1, 2, 4, 5, 6}) one += fmt::format("{},0,5\n", 1762377180 + second);
  EXPECT_EQ(lost(read_log(one), "missing_row"), 0);
  for (const int second : {0, 1, 2, 3, 4, 5, 6}) {
    two += fmt::format("{},0,5\n", 1762377180 + second);
    if (second != 3) two += fmt::format("{},1,5\n", 1762377180 + second);
  }
  EXPECT_EQ(lost(read_log(two), "missing_row"), 1);
}

TEST(Order, ANominalIntervalIsHeldAgainstTheRows) {
  ImportOptions options;
  options.interval = 5 * kSecond;
  const auto r = read_log(smi({{0, 1}, {7, 1}, {14, 1}, {21, 1}, {28, 1}, {35, 1}}), options);
  EXPECT_EQ(lost(r, "missing_row"), 2);  // 8 rows fit 35 s at 5 s
  EXPECT_EQ(r.meta.interval, 5 * kSecond);
}

TEST(Order, RowsOutOfOrderAreSorted) {
  const auto r = read_log(smi({{0, 1}, {1, 2}, {3, 4}, {2, 3}, {4, 5}}));
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.01, 0.02, 0.03, 0.04, 0.05));
  EXPECT_EQ(lost(r, "out_of_order_row"), 1);
  EXPECT_THAT(detail(r, "out_of_order_row"), HasSubstr("line 5"));
}

TEST(Order, RunsAppendedInAnotherOrderAreSorted) {
  const auto r = read_log(smi({{30, 4}, {31, 5}, {32, 6}}) + smi({{0, 1}, {1, 2}, {2, 3}}));
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.01, 0.02, 0.03, 0.04, 0.05, 0.06));
  EXPECT_EQ(lost(r, "backward_timestamp"), 1);
  EXPECT_EQ(lost(r, "clock_step_back"), 0);
  EXPECT_EQ(lost(r, "gap"), 1);
}

TEST(Order, AClockSetBackKeepsDurations) {
  const auto r = read_log(smi({{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 6}, {0, 7}, {1, 8}, {2, 9}}));
  EXPECT_THAT(times(r), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8));
  EXPECT_EQ(lost(r, "clock_step_back"), 1);
  EXPECT_THAT(detail(r, "clock_step_back"), HasSubstr("line 8: 5.000 s back"));
  ASSERT_EQ(r.events.size(), 1u);
  EXPECT_EQ(r.events[0].kind, "clock_step");
  EXPECT_EQ(r.events[0].at, r.tracks[0].at[6]);
}

TEST(Order, TwoCopiesOfALogAreOne) {
  const std::string once = smi({{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 6}});
  const auto r = read_log(once + once);
  EXPECT_EQ(r.tracks[0].at.size(), 6u);
  EXPECT_EQ(lost(r, "duplicate_row"), 6);
}

TEST(Order, LogsOfTwoGpusMayFollowEachOther) {
  const std::string header = "timestamp, index, utilization.gpu [%]\n";
  std::string first = header, second = header;
  for (int i = 0; i < 6; ++i) {
    first += fmt::format("2025/11/05 21:13:{:02}.100, 0, 1 %\n", i);
    second += fmt::format("2025/11/05 21:13:{:02}.200, 1, 2 %\n", i);
  }
  const auto r = read_log(first + second);
  ASSERT_EQ(r.tracks.size(), 2u);
  EXPECT_EQ(r.tracks[0].at.size(), 6u);
  EXPECT_EQ(r.tracks[1].at.size(), 6u);
  EXPECT_EQ(lost(r, "clock_step_back") + lost(r, "out_of_order_row") + lost(r, "missing_row"), 0);
  EXPECT_EQ(lost(r, "repeated_header"), 1);
}

TEST(Order, AClockSetBackTwiceKeepsDurations) {
  std::string text = smi({{0, 1}, {1, 2}, {2, 3}, {3, 4}, {4, 5}, {5, 6}});
  for (const int start : {1, 0})
    for (int i = 0; i < 5; ++i) text += fmt::format("2025/11/05 21:13:{:02}.500, 9 %\n", start + i);
  const auto r = read_log(text);
  EXPECT_EQ(lost(r, "clock_step_back"), 2);
  EXPECT_NEAR(times(r).back(), 15.0, 1e-9);
  EXPECT_EQ(lost(r, "gap") + lost(r, "missing_row"), 0);
}

TEST(Order, OfTwoRowsAtOneInstantTheLastIsKept) {
  const auto r = read_log(smi({{0, 1}, {1, 2}, {1, 3}, {2, 4}}));
  EXPECT_THAT(values(r, Metric::kGpuUtil), ElementsAre(0.01, 0.03, 0.04));
  EXPECT_EQ(lost(r, "duplicate_timestamp"), 1);
  EXPECT_THAT(detail(r, "duplicate_timestamp"), HasSubstr("line 4"));
}

TEST(Order, RowsThatShareAWholeSecondAreSpreadOverIt) {
  const auto r = read_log(
      "timestamp,gpu_util_%\n2025-11-05 21:13:00,1\n2025-11-05 21:13:00,2\n2025-11-05 21:13:01,3\n2025-11-05 "
      "21:13:01,4\n");
  EXPECT_THAT(times(r), ElementsAre(0, 0.5, 1, 1.5));
  EXPECT_EQ(lost(r, "shared_second"), 2);
  EXPECT_EQ(r.meta.interval, kSecond / 2);
}

TEST(Order, TimesThatJumpEverywhereEndSomewhere) {
  std::string text = "timestamp,gpu_util_%\n";
  for (std::uint32_t i = 0; i < 5000; ++i) text += fmt::format("{}.5,5\n", 1762377180 + (i * 2654435761U) % 100000);
  const auto r = read_log(text);
  const auto& at = r.tracks[0].at;
  EXPECT_EQ(std::adjacent_find(at.begin(), at.end(), std::greater_equal<>()), at.end());
  EXPECT_GT(lost(r, "out_of_order_row"), 1000);
}

TEST(Order, RowsOfOneTimeThatNothingTellsApartAreRefused) {
  std::string rounds = "time,gpu_util_percent\n", series = rounds, samples = rounds, copies = rounds;
  for (int row = 0; row < 20; ++row)
    for (int gpu = 0; gpu < 2; ++gpu) {
      rounds += fmt::format("2025-02-03 10:{:02}:00,{}\n", row, 20 + gpu + row);
      samples += fmt::format("2025-02-03 10:00:{:02},{}\n", row, 20 + gpu + row);
    }
  for (int gpu = 0; gpu < 2; ++gpu)
    for (int row = 0; row < 20; ++row) {
      series += fmt::format("2025-02-03 10:{:02}:00,{}\n", row, 20 + gpu + row);
      copies += fmt::format("2025-02-03 10:{:02}:00,{}\n", row, 20 + row);
    }
  for (const std::string& text : {rounds, series}) {
    const Error error = import_error(text);
    EXPECT_NE(error.what.find("several rows for one time"), std::string::npos) << error.what;
    EXPECT_EQ(error.hint.find("--columns"), std::string::npos) << "there is no column that it would help with";
    EXPECT_NE(error.hint.find("log with index or uuid"), std::string::npos) << error.hint;
  }
  EXPECT_EQ(lost(read_log(samples), "shared_second"), 20) << "two a second are samples of whole seconds";
  EXPECT_EQ(lost(read_log(copies), "duplicate_row"), 20);
  std::string processes = "time,pid,gpu_index,sm_util\n";
  for (int row = 0; row < 20; ++row)
    for (const int pid : {11, 12})
      processes += fmt::format("2025-02-03 10:{:02}:00,{},0,{}\n", row, pid, 20 + pid + row);
  EXPECT_NE(import_error(processes).what.find("GPU 0 has several rows"), std::string::npos);
}

TEST(Order, RowsBelowATimeAreOneOfEachGpuWhereTheyAreAsManyEachTime) {
  const auto log = [](int odd) {
    std::string text;
    for (int round = 0; round < 20; ++round) {
      text += fmt::format("Sun Mar 30 01:{:02}:00 CET 2025\nutilization.gpu [%], memory.used [MiB]\n", round);
      for (int gpu = 0; gpu < (round == 4 ? odd : 3); ++gpu)
        text += fmt::format("{} %, {} MiB\n", 70 + gpu, 200 * round);
    }
    return text;
  };
  const Recording r = read_log(log(3));
  ASSERT_EQ(r.tracks.size(), 3u);
  for (std::size_t gpu = 0; gpu < 3; ++gpu) {
    EXPECT_EQ(r.tracks[gpu].at.size(), 20u);
    EXPECT_EQ(values(r, Metric::kGpuUtil, gpu).at(7), 0.70 + 0.01 * static_cast<double>(gpu));
  }
  EXPECT_THAT(detail(r, "no_gpu_column"), HasSubstr("taken as one of each GPU, in order"));
  std::string once = "utilization.gpu [%], memory.used [MiB]\n";
  for (int round = 0; round < 20; ++round)
    once += fmt::format("2025-03-30 01:{:02}:00\n70 %, 200 MiB\n71 %, 200 MiB\n72 %, 200 MiB\n", round);
  EXPECT_EQ(read_log(once).tracks.size(), 3u) << "the header stands above all times";
  EXPECT_NE(import_error(log(2)).what.find("several rows for one time"), std::string::npos) << "nothing says which";
  std::string bare = log(3);
  for (auto at = bare.find("util"); at != bare.npos; at = bare.find("util"))
    bare.erase(at, bare.find('\n', at) + 1 - at);
  ImportOptions options;
  options.columns = "utilization.gpu,memory.used";
  EXPECT_EQ(read_log(bare, options).tracks.size(), 3u) << "the names come from the command line";
}

TEST(Order, TimesThatCountFromTheBeginningMayHaveDays) {
  for (const char* rows : {"elapsed,gpu_util\n23:59:00,20\n\"1 day, 0:00:00\",30\n\"1 day, 0:01:00\",40\n",
                           "elapsed,gpu_util\n23:59:00,20\n1 day, 0:00:00,30\n1 day, 0:01:00,40\n",
                           "time,gpu_util\n23:59:00,20\n24:00:00,30\n24:01:00,40\n",
                           "time,gpu_util\n23:59:00,20\n0:00:00,30\n0:01:00,40\n"})
    EXPECT_THAT(times(read_log(rows)), ElementsAre(0, DoubleEq(60), DoubleEq(120))) << rows;
}

}  // namespace
}  // namespace headroom
