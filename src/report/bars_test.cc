// SPDX-License-Identifier: Apache-2.0
#include "report/bars.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/strings.h"
#include "report/layout.h"

namespace headroom::report {
namespace {

using testing::HasSubstr;
using testing::Not;

// Devices of one model; each computes for its share in percent and is idle for the rest.
Ledger ledger_of(const std::vector<int>& computing) {
  Ledger ledger;
  ledger.end = 100 * kSecond;
  for (std::size_t i = 0; i < computing.size(); ++i) {
    Device device;
    device.index = static_cast<int>(i);
    device.name = "NVIDIA A100";
    ledger.devices.push_back(device);
    const auto add = [&](Account account, int share) {
      LedgerEntry entry;
      entry.account = account;
      entry.device = i;
      entry.ns = share * kSecond;
      if (share > 0) ledger.entries.push_back(entry);
    };
    add(Account::kUseful, computing[i]);
    add(Account::kUnexplained, 100 - computing[i]);
  }
  return ledger;
}

TEST(Bars, GpusWithinAFewPointsAreOne) {
  const Ledger ledger = ledger_of({56, 57, 58, 20});
  EXPECT_EQ(alike(ledger), (std::vector<std::vector<std::size_t>>{{0, 1, 2}, {3}}));
  const std::string text = bars(ledger, {}, 100);
  EXPECT_THAT(text, HasSubstr("GPUs 0 to 2  NVIDIA A100"));
  EXPECT_THAT(text, HasSubstr("3 x 1:40 = 100 %"));
  EXPECT_THAT(text, HasSubstr("57.0 %       2:51\n"));
  EXPECT_THAT(text, HasSubstr("GPU 3  NVIDIA A100"));
}

TEST(Bars, NamesOfGpus) {
  const Ledger ledger = ledger_of({1, 1, 1, 1, 1, 1, 1});
  EXPECT_EQ(gpu_names(ledger, {4}), "GPU 4");
  EXPECT_EQ(gpu_names(ledger, {0, 1}), "GPUs 0 and 1");
  EXPECT_EQ(gpu_names(ledger, {0, 1, 2, 4}), "GPUs 0 to 2 and 4");
  EXPECT_EQ(gpu_names(ledger, {0, 2, 4, 5, 6}), "GPUs 0, 2, 4 to 6");
}

TEST(Bars, FewLinesForManyGpus) {
  const Ledger ledger = ledger_of({0, 10, 20, 30, 40, 50, 60, 70, 80, 90});
  const TextOptions options;
  for (const std::size_t lines : {100U, 20U, 8U, 4U}) {
    const std::string text = bars(ledger, options, lines);
    EXPECT_LE(lines_in(text), lines);
    for (const auto line : split(text, '\n')) EXPECT_LE(display_width(line), options.width);
  }
  EXPECT_THAT(bars(ledger, options, 4), HasSubstr("GPUs 3 to 9 NVIDIA A100: computing 60.0 %, unexplained 40.0 %"));
}

TEST(Bars, SharesWithoutATimeWhereNoneIsKnown) {
  EXPECT_EQ(share_sentences(ledger_of({65}), {}, 100), "GPU 0 NVIDIA A100: computing 65.0 %, unexplained 35.0 %\n");
}

TEST(Bars, EveryWidth) {
  for (const std::size_t width : {40U, 60U, 80U, 160U}) {
    TextOptions options;
    options.width = width;
    const std::string text = bars(ledger_of({56, 3}), options, 100);
    for (const auto line : split(text, '\n')) EXPECT_LE(display_width(line), width) << line;
  }
}

TEST(Bars, OneFormForTheTimesOfAColumn) {
  EXPECT_EQ(column_duration(14 * kMillisecond, 132 * kSecond), "< 0:01");
  EXPECT_EQ(column_duration(5 * kSecond, 132 * kSecond), "0:05");
  EXPECT_EQ(column_duration(5 * kSecond, 64 * 3600 * kSecond), "0:00:05");
  EXPECT_EQ(column_duration(64 * 3600 * kSecond, 64 * 3600 * kSecond), "64:00:00");
  EXPECT_EQ(column_duration(367 * kMicrosecond, 5 * kSecond), "< 0.1 s");
  EXPECT_EQ(column_duration(308 * kMillisecond, 9 * kSecond), "0.3 s");
  EXPECT_EQ(column_duration(308 * kMillisecond, 400 * kMillisecond), "308 ms");
}

}  // namespace
}  // namespace headroom::report
