// SPDX-License-Identifier: Apache-2.0
#include "import/log_date.h"

#include <gtest/gtest.h>

#include "import/log_time.h"

namespace headroom {
namespace {

constexpr Nanos kAt = 1738576800 * kSecond;  // 2025-02-03 10:00:00

Nanos local(std::string_view text, DateOrder order = DateOrder::kUnknown) {
  const auto read = parse_worded_time(text, order);
  return read ? read->local : -1;
}

TEST(LogDate, TimesAsProgramsWriteThem) {
  for (const char* text : {"Mon Feb  3 10:00:00 2025",
                           "Mon Feb 03 10:00:00 UTC 2025",
                           "Mon Feb  3 10:00:00 AM CET 2025",
                           "Mon, 03 Feb 2025 10:00:00 +0000",
                           "3 February 2025, 10:00",
                           "Feb 3, 2025 10:00:00 AM",
                           "03-Feb-2025 10:00:00",
                           "20250203-100000",
                           "20250203 10:00:00",
                           "20250203_100000",
                           "20250203100000",
                           "2025-02-03 10:00",
                           "2025-02-03 10:00:00 AM",
                           "2025-2-3 10:00:00",
                           "3.2.2025 10:00:00",
                           "2025/02/03, 10:00:00.000",
                           "3.2.2025 10:0:0.000",
                           "2025年2月3日 10:00:00",
                           "2025年02月03日 星期一 10:00:00 CST",
                           "2025年2月3日 上午10:00:00",
                           "2025年2月3日(月) 10時00分00秒",
                           "2025. 2. 3. 오전 10:00:00",
                           "2025. 02. 03. (월) 10:00:00 KST",
                           "2025년 2월 3일 10:00:00",
                           "2025-02-03-10-00-00",
                           "[03/Feb/2025:10:00:00 +0000]",
                           "3.2.2025 10.00.00",
                           "3.2.2025 klo 10.00",
                           "2025-02-03 10.00.00",
                           "2025-02-03_10-00-00",
                           "Feb 3, 2025 @ 10:00:00.000",
                           "February 3, 2025 at 10:00:00 AM",
                           "3. Februar 2025 um 10:00",
                           "[2025-02-03 10:00]"})
    EXPECT_EQ(local(text), kAt) << text;
  EXPECT_EQ(local("2025. 2. 3. 오후 10:00:00"), kAt + 12 * 3600 * kSecond);
  EXPECT_EQ(parse_worded_time("2025년 2월 3일 10:00:00 KST", DateOrder::kUnknown)->zone, "KST");
  EXPECT_EQ(parse_worded_time("[03/Feb/2025:10:00:00 +0100]", DateOrder::kUnknown)->zone, "+0100");
  EXPECT_EQ(local("2025-02-03 10:00:00 PM"), kAt + 12 * 3600 * kSecond);
  EXPECT_EQ(local("2025-02-03 12:30 AM"), kAt - 10 * 3600 * kSecond + 1800 * kSecond);
  EXPECT_EQ(parse_worded_time("Mon Feb  3 10:00:00 UTC 2025", DateOrder::kUnknown)->zone, "UTC");
  EXPECT_EQ(parse_worded_time("Di 3. Jun 14:02:11 CEST 2025", DateOrder::kUnknown)->zone, "CEST");
  EXPECT_EQ(parse_worded_time("2025-02-03T10:00+05:30", DateOrder::kUnknown)->zone, "+05:30");
}

TEST(LogDate, PointsInATimeOfDayAreBehindADateOnly) {
  EXPECT_EQ(local("10.00.00 3.2.2025"), -1);
  EXPECT_EQ(local("3.2.2025 10.0"), -1);
  EXPECT_EQ(local("3.2.2025 25.00.00"), -1);
  EXPECT_EQ(local("@ 10:00:00"), -1);
  EXPECT_TRUE(is_pointed_time("03/02/2025 9.05.03"));
  EXPECT_FALSE(is_pointed_time("03/02/2025 9.05"));
  EXPECT_FALSE(is_pointed_time("1.2.3 4.5.6"));
  EXPECT_EQ(local("03/02/2025 10.00.00", DateOrder::kDayFirst), kAt);
}

TEST(LogDate, DayAndMonthInTheOrderThatIsTold) {
  EXPECT_EQ(local("03/02/2025 10:00:00", DateOrder::kDayFirst), kAt);
  EXPECT_EQ(local("2/3/2025 10:00:00 AM", DateOrder::kMonthFirst), kAt);
  EXPECT_EQ(local("02-03-25T10:00:00", DateOrder::kMonthFirst), kAt);
  EXPECT_EQ(local("25/02/03 10:00:00", DateOrder::kYearFirst), kAt);
  EXPECT_EQ(local("03/02/2025 10:00:00"), -1);
  EXPECT_EQ(local("02/02/2025 10:00:00"), kAt - 86'400 * kSecond) << "either way";
}

TEST(LogDate, WhatIsNoTimeIsNone) {
  for (const char* text :
       {"", "40", "10:00:00", "2025-02-03", "Feb 2025", "python train.py", "2025-02-30 10:00:00", "25:00:00 2025-02-03",
        "2025-02-03 10:00:00 11:00:00", "2025-02-03 13:00 AM 2", "GPU 3", "P2", "1.2.3 4:5"})
    EXPECT_EQ(local(text), -1) << text;
}

TEST(LogDate, RowsTellTheOrder) {
  const auto order = [](std::vector<const char*> rows) {
    DateOrderFinder finder;
    for (const char* row : rows) EXPECT_TRUE(finder.add(row)) << row;
    return finder.order();
  };
  EXPECT_EQ(order({"02-11-2025 23:59", "02-12-2025 00:00"}), DateOrder::kMonthFirst);
  EXPECT_EQ(order({"02-11-2025 23:59", "03-11-2025 00:00"}), DateOrder::kDayFirst);
  EXPECT_EQ(order({"28/02/2025 23:59", "01/03/2025 00:00"}), DateOrder::kDayFirst);
  EXPECT_EQ(order({"2/13/2025 23:59"}), DateOrder::kMonthFirst);
  EXPECT_EQ(order({"02-11-2025 23:59", "02-11-2025 23:59"}), DateOrder::kUnknown);
  EXPECT_EQ(order({"Wed 11/05/2025  9:30:00.12"}), DateOrder::kMonthFirst) << "the 11th of May was a Sunday";
  EXPECT_EQ(order({"Sun 11/05/2025 09:30:00.12"}), DateOrder::kDayFirst);
  EXPECT_EQ(order({"Fri 11/05/2025 09:30:00.12"}), DateOrder::kUnknown) << "neither was";
  EXPECT_EQ(order({"25/11/30 23:59", "25/12/01 00:00", "25/12/02 00:00"}), DateOrder::kYearFirst);
  EXPECT_EQ(order({"25/11/15 10:00", "25/11/16 10:00"}), DateOrder::kYearFirst);
  EXPECT_EQ(order({"25/11/15 10:00", "26/11/15 10:00"}), DateOrder::kDayFirst);
  EXPECT_EQ(order({"25/11/15 10:00", "25/11/15 10:01"}), DateOrder::kUnknown) << "2025, or 2015";
  EXPECT_EQ(order({"25/11/2015 10:00", "25/11/2015 10:01"}), DateOrder::kDayFirst);
  EXPECT_FALSE(DateOrderFinder().add("2025-02-11 10:00"));
  EXPECT_FALSE(DateOrderFinder().add("11.02.2025 10:00"));
}

TEST(LogDate, BlanksWithoutABreakAreBlanks) {
  EXPECT_EQ(local("2/3/2025, 10:00:00\xe2\x80\xaf"
                  "AM",
                  DateOrder::kMonthFirst),
            kAt);
  EXPECT_EQ(local("3/2/2025, 10:00:00\xc2\xa0"
                  "a.\xc2\xa0m.",
                  DateOrder::kDayFirst),
            kAt);
  EXPECT_EQ(local("3/2/2025 10:00:00\xa0"
                  "AM",
                  DateOrder::kDayFirst),
            kAt);
  EXPECT_EQ(local("2025-02-03_10-00-00"), kAt);
  EXPECT_EQ(local("m. 2025-02-03 10:00:00"), -1);
}

TEST(LogDate, WindowsWritesShortWeekdaysAndCommas) {
  for (const char* text : {"Mo 03.02.2025 10:00:00,25", "lun. 03/02/2025 10:00:00,25", "ma 03-02-2025 10:00:00,25",
                           "seg 03/02/2025 10:00:00,25"})
    EXPECT_EQ(local(text, DateOrder::kDayFirst), kAt + kSecond / 4) << text;
  EXPECT_EQ(local("3.2.2025 10:00:00 25"), -1) << "a reading";
  EXPECT_EQ(local("do 10:00:00,25"), -1);
}

TEST(LogDate, LengthsOfTime) {
  constexpr Nanos kHour = 3600 * kSecond;
  EXPECT_EQ(parse_elapsed("0:00:00.000214"), 214'000);
  EXPECT_EQ(parse_elapsed("2:04:30.5"), 2 * kHour + 270'500 * kMillisecond);
  EXPECT_EQ(parse_elapsed("26:00:00"), 26 * kHour);
  EXPECT_EQ(parse_elapsed("1 day, 2:00:00"), 26 * kHour);
  EXPECT_EQ(parse_elapsed("0 days 00:00:30"), 30 * kSecond);
  EXPECT_EQ(parse_elapsed("2 days"), 48 * kHour);
  EXPECT_FALSE(parse_elapsed("02:30")) << "hours and minutes, or minutes and seconds";
  for (const char* text : {"", "30", "5:30", "-1 day, 2:00:00", "1 day2:00:00", "0:61:00", "a day", "1:2:3"})
    EXPECT_FALSE(parse_elapsed(text)) << text;
}

// date(1) where another language is set.
TEST(WordedTime, MonthsOfOtherLanguages) {
  const auto same = [](std::string_view text, std::string_view month) {
    const auto read = parse_worded_time(text, DateOrder::kUnknown);
    const auto meant = parse_worded_time(fmt::format("2025-{}-03 14:02:11", month), DateOrder::kUnknown);
    ASSERT_TRUE(read && meant) << text;
    EXPECT_EQ(read->local, meant->local) << text;
  };
  same("Mo 3. Mär 14:02:11 CET 2025", "03");
  same("Mo 3. Mrz 14:02:11 CET 2025", "03");
  same("Fr 3. Okt 14:02:11 CEST 2025", "10");
  same("Mi 3. Dez 14:02:11 CET 2025", "12");
  same("lun. 03 févr. 2025 14:02:11 CET", "02");
  same("mar. 3 juin 2025 14:02:11 CEST", "06");
  same("jeu. 3 juil. 2025 14:02:11 CEST", "07");
  same("dim. 03 août 2025 14:02:11 CEST", "08");
  same("vie 3 ene 2025 14:02:11 CET", "01");
  same("mié 3 dic 2025 14:02:11 CET", "12");
  same("gio 3 lug 2025, 14:02:11, CEST", "07");
  same("qua 3 set 2025 14:02:11 -03", "09");
}

TEST(LogTime, MillisecondsMayStandBehindAColonAndZonesHaveNames) {
  TimeReader reader({});
  EXPECT_EQ(reader.read("2025/02/03 10:00:00:440"), kAt + 440 * kMillisecond);
  EXPECT_EQ(reader.read("2025-02-03 10:00:00.440 Europe/Berlin"), kAt + 440 * kMillisecond);
  EXPECT_TRUE(reader.zone_was_named());
  EXPECT_FALSE(reader.read("2025-02-03 10:00:00:"));
  EXPECT_FALSE(reader.read("2025-02-03 10:00:00.2025/02/03 10:00:00.000")) << "two times are no zone";
}

}  // namespace
}  // namespace headroom
