// SPDX-License-Identifier: Apache-2.0
#include "import/row_course.h"

#include <functional>

#include "base/random.h"
#include "import/log_test_support.h"

namespace headroom {
namespace {

using ::testing::HasSubstr;

std::vector<std::int64_t> column(std::size_t times, std::size_t rows,
                                 const std::function<std::int64_t(std::int64_t, std::int64_t)>& value) {
  std::vector<std::int64_t> values;
  for (std::size_t time = 0; time < times; ++time)
    for (std::size_t row = 0; row < rows; ++row)
      values.push_back(value(static_cast<std::int64_t>(time), static_cast<std::int64_t>(row)));
  return values;
}

TEST(RowCourse, IsToldByReadingsThatGoOnAndByLevelsThatStay) {
  for (const std::int64_t n : {2, 3, 6, 16}) {
    const auto rows = static_cast<std::size_t>(n);
    const auto of = [&](const auto& value) { return course_of(column(40, rows, value), rows); };
    EXPECT_EQ(of([&](auto t, auto r) { return 7000 + 3 * (t * n + r); }), RowsOfOneTime::kSamples) << "memory grows";
    EXPECT_EQ(of([&](auto t, auto r) { return 60 + std::abs((t * n + r) % 160 - 80); }), RowsOfOneTime::kSamples)
        << "up and down";
    EXPECT_EQ(of([](auto t, auto r) { return 1000 * r + t % 3; }), RowsOfOneTime::kGpus);
    EXPECT_EQ(of([](auto t, auto) { return 7000 + 10 * t; }), RowsOfOneTime::kUnknown) << "GPUs in step";
    EXPECT_EQ(of([](auto, auto) { return 7000; }), RowsOfOneTime::kUnknown);
    EXPECT_EQ(course_of(column(5, rows, [&](auto t, auto r) { return t * n + r; }), rows), RowsOfOneTime::kUnknown)
        << "too few times";
  }
}

TEST(RowCourse, OfNoiseTellsNothing) {
  Random random(71);
  for (int round = 0; round < 300; ++round) {
    const std::size_t n = 2 + static_cast<std::size_t>(round) % 7;
    const auto noise = column(60, n, [&](auto, auto) { return static_cast<std::int64_t>(random.next() % 30); });
    EXPECT_EQ(course_of(noise, n), RowsOfOneTime::kUnknown) << round;
  }
}

std::string below_times(const std::function<int(int, int)>& memory) {
  std::string text = "utilization.gpu [%], memory.used [MiB]\n";
  for (int time = 0; time < 20; ++time) {
    text += fmt::format("2025-11-05 21:{:02}:00\n", 13 + time);
    for (int row = 0; row < 6; ++row) text += fmt::format("{} %, {} MiB\n", 50 + time * 7 % 11, memory(time, row));
  }
  return text;
}

TEST(RowCourse, RowsBelowATimeAreSamplesWhereTheirReadingsGoOn) {
  const Recording samples = read_log(below_times([](int time, int row) { return 7000 + 2 * (6 * time + row); }));
  ASSERT_EQ(samples.tracks.size(), 1u);
  EXPECT_EQ(samples.tracks[0].at.size(), 120u);
  EXPECT_EQ(times(samples)[1], 10) << "spread over the minute to the next time";
  EXPECT_EQ(times(samples).back(), 1190);
  EXPECT_EQ(values(samples, Metric::kMemoryUsed)[7], 7014.0 * 1048576);
  EXPECT_THAT(detail(samples, "no_gpu_column"), HasSubstr("taken as samples of one GPU, over the time to the next"));
  const std::string same = below_times([](int, int) { return 8120; });
  EXPECT_EQ(read_log(same).tracks.size(), 6u);
  EXPECT_THAT(detail(read_log(same), "no_gpu_column"), HasSubstr("(of one GPU, --log-interval says how far apart)"));
  ImportOptions options;
  options.interval = 10 * kSecond;
  const Recording told = read_log(same, options);
  ASSERT_EQ(told.tracks.size(), 1u) << "what is said works";
  EXPECT_EQ(told.tracks[0].at.size(), 120u);
  EXPECT_THAT(detail(told, "no_gpu_column"), HasSubstr("as far apart as --log-interval says"));
}

TEST(RowCourse, RowsOfAMinuteAreSpreadWhereTheirReadingsGoOn) {
  std::string text = "timestamp,gpu_util,gpu_mem_mb\n";
  for (int row = 2; row < 122; ++row)  // the first minute has four
    text += fmt::format("2025-11-05 21:{:02},{},{}\n", 13 + row / 6, 40 + row * 29 % 50, 7000 + 3 * row);
  const Recording r = read_log(text);
  ASSERT_EQ(r.tracks.size(), 1u);
  EXPECT_EQ(r.tracks[0].at.size(), 120u);
  EXPECT_THAT(detail(r, "shared_minute"), HasSubstr("rows of one minute are spread over it"));
}

}  // namespace
}  // namespace headroom
