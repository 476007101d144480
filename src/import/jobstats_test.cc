// SPDX-License-Identifier: Apache-2.0
#include "import/jobstats.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace headroom {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Two hours on two GPUs, at 31.5 % and at 0, and 60 s without one (made by tests/fuzz/jobstats_fuzz/small.txt's rules:
// base64 of gzipped JSON).
const std::string kTwoGpus =
    "JS1:H4sIAAAAAAACA12P3QrDIAyF3yXXMvyrVl+mlFWKULWserGJ7z7btQWXi0CS84VzMvgwmQ10Bk/2/lxTnXoEMcRxGaJ1BjTD"
    "GD+6a+eMC683aNFLorgUkgkEaTPTfSH4KgTzmoaWy4BBc6q4EpIqUTWkmcsPaj7+MQdyC6Nd7GeMNvhTyMju9pCU0kaR9DRVU9Ly"
    "BYodmM3/AAAA";
const std::string kNoGpu =
    "JS1:H4sIAAAAAAACA6tWystPSS1WsqpWyjMCkckFpUCehY5SSX5JYk58SWZuqpKVsYGBgZ4pTCw3NTe/qFLJyszC3NDSxNzM3NhM"
    "R6m0ODUFLmNoAAO1tagmmRnoKKWDrUhLzClOrQUAK76dwIAAAAA=";
const std::string kHeader = "JobID|User|Account|JobName|ElapsedRaw|AllocTRES|AdminComment\n";

std::vector<SacctRow> rows_of(const std::string& text) {
  std::vector<SacctRow> rows;
  auto bytes = ByteStream::of(text);
  const auto done = read_sacct("sacct.txt", bytes, [&](const SacctRow& row) { rows.push_back(row); });
  EXPECT_TRUE(done) << done.error().what;
  return rows;
}
std::string refused(const std::string& text) {
  auto bytes = ByteStream::of(text);
  const auto done = read_sacct("sacct.txt", bytes, [](const SacctRow&) {});
  if (done) return "";
  EXPECT_THAT(done.error().hint, HasSubstr("sacct -a -X -P"));
  return done.error().what;
}

TEST(Jobstats, ASummaryIsTimeAndMeans) {
  const auto rows = rows_of(kHeader + "101|alice|nlp|train|7200|cpu=8,gres/gpu:a100=2,gres/gpu=2|" + kTwoGpus + "\n");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].kind, SummaryKind::kSummary);
  const AveragedJob& job = rows[0].job;
  EXPECT_THAT(job.names, ElementsAre("alice", "nlp", "101", "train", "", "a100"));
  EXPECT_EQ(job.span, 7200 * kSecond);
  EXPECT_EQ(job.gpus, 2U);
  EXPECT_EQ(job.held, 14400 * kSecond);
  EXPECT_EQ(job.measured, job.held);
  EXPECT_EQ(job.utilised, 2268 * kSecond);
  EXPECT_EQ(job.zero, 7200 * kSecond);
  EXPECT_NEAR(job.memory_ratio.value_or(-1), 0.1, 1e-9);
}

TEST(Jobstats, WhatHasNoMeansIsToldByItsKind) {
  const auto rows =
      rows_of(kHeader + "1|u|a|n|60||" + kNoGpu + "\n2|u|a|n|60||JS1:Short\n3|u|a|n|60||JS1:None\n4|u|a|n|60||\n" +
              "5|u|a|n|60||by hand\n6.batch|||batch|60||\n");
  std::vector<SummaryKind> kinds;
  for (const SacctRow& row : rows) kinds.push_back(row.kind);
  EXPECT_THAT(kinds, ElementsAre(SummaryKind::kWithoutGpus, SummaryKind::kTooShort, SummaryKind::kNoSummary,
                                 SummaryKind::kNoSummary, SummaryKind::kNoSummary))
      << "a step is no job";
}

TEST(Jobstats, ADamagedRowIsNamedByItsLineAndTheRestGoesOn) {
  const std::string cut = kTwoGpus.substr(0, kTwoGpus.size() - 40);
  const auto rows =
      rows_of(kHeader + "1|u|a|n|60||JS1:!!\n2|u|a|x|y|n|60||JS1:None\n3|u|a|n|60||JS1:bm90aGluZw==\n4|u|a|n|60||" +
              cut + "\n5|u|a|n|60||" + kTwoGpus + "\n");
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_EQ(rows[0].problem, "sacct.txt:2: the summary is no base64");
  EXPECT_EQ(rows[1].problem, "sacct.txt:3: 9 fields, where the first line has 7");
  EXPECT_EQ(rows[2].problem, "sacct.txt:4: the summary is not packed by gzip");
  EXPECT_EQ(rows[3].problem, "sacct.txt:5: the summary is cut or damaged");
  EXPECT_EQ(rows[4].kind, SummaryKind::kSummary);
}

TEST(Jobstats, ALineOfAnyLengthIsOneRow) {
  const auto rows =
      rows_of(kHeader + "1|u|a|" + std::string(std::size_t{3} << 20, 'n') + "|60||JS1:None\n2|u|a|n|60||JS1:None");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_THAT(rows[0].problem, HasSubstr("sacct.txt:2: more than 1048576 bytes"));
  EXPECT_EQ(rows[1].kind, SummaryKind::kNoSummary) << "without a line end, too";
}

TEST(Jobstats, WhatIsNoSuchTableIsRefused) {
  EXPECT_THAT(refused("JobID|User\n1|u\n"), HasSubstr("no column AdminComment"));
  EXPECT_THAT(refused("       JobID      User\n------\n"), HasSubstr("with | between them"));
  EXPECT_THAT(refused(""), HasSubstr("nothing stands in it"));
}

}  // namespace
}  // namespace headroom
