// SPDX-License-Identifier: Apache-2.0
#include "report/slurm_words.h"

#include <gmock/gmock.h>

#include "report/json.h"
#include "report/text.h"
#include "report/time_limit.h"

namespace headroom::report {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr SlurmJob kRank{.job = 123, .step = 0, .rank = 0, .tasks = 2};

TEST(SlurmWords, WhereItRanInOneLine) {
  SlurmJob job = kRank;
  EXPECT_EQ(slurm_words(job), "Slurm job 123, step 0, rank 0 of 2");
  job.array_job = 120, job.array_task = 3, job.node = "n1", job.partition = "gpu", job.restarts = 2;
  EXPECT_EQ(slurm_words(job),
            "Slurm job 123 (array 120, task 3), step 0, node n1, rank 0 of 2, partition gpu, restart 2");
  EXPECT_EQ(slurm_words(SlurmJob{.job = 7, .node = "n\n1"}), "Slurm job 7, node n\\x0a1");
  EXPECT_EQ(slurm_words(std::nullopt), "");
}

TEST(SlurmWords, TheRankOfATrace) {
  EXPECT_EQ(rank_words({{"rank", "1"}, {"world_size", "4"}}), "Rank 1 of 4");
  EXPECT_EQ(rank_words({{"rank", "0"}, {"world_size", "1"}}), "") << "there are no others";
  EXPECT_EQ(rank_words({{"rank", "3"}}), "");
}

// A job that runs, half of its hour over, in a step of Slurm.
Explanation running(std::int64_t left_of_limit_seconds) {
  Explanation e;
  e.meta.start = 1000 * kSecond;
  e.meta.start_realtime = 1'764'360'000 * kSecond;
  e.ledger.begin = e.meta.start;
  e.ledger.end = e.meta.end = 2800 * kSecond;
  keep_job_variables({{"OMP_NUM_THREADS", "3"},
                      {"SLURM_JOB_END_TIME", std::to_string(1'764'361'800 + left_of_limit_seconds)},
                      {"SLURM_JOB_ID", "7"}},
                     e.meta);
  e.progress = Progress{};
  e.progress->step = Progress::At{120, 267, false};
  e.progress->left = Progress::Left{1200, 1800, Progress::Unit::kSteps, false};
  return e;
}

TEST(SlurmWords, TheyAreSaidOnceInText) {
  const std::string text = to_text(running(100), {.full = true});
  EXPECT_THAT(text, HasSubstr("Slurm job 7.\n"));
  EXPECT_THAT(text, HasSubstr("Environment: OMP_NUM_THREADS=3."));
  EXPECT_THAT(to_json(running(100)), HasSubstr("\"job_id\": 7"));
}

TEST(TimeLimit, WhatIsLeftFitsOrDoesNot) {
  EXPECT_THAT(progress_of(running(1800)), HasSubstr("; these steps fit: Slurm ends the job in 30:00"));
  EXPECT_THAT(progress_of(running(1799)), HasSubstr("; these steps may not fit: "));
  EXPECT_THAT(progress_of(running(1200)), HasSubstr("; these steps may not fit: "));
  EXPECT_THAT(progress_of(running(600)),
              HasSubstr("; these steps do not fit, by 10 to 20 min: Slurm ends the job in 10:00"));
  EXPECT_EQ(time_limit(running(600))->left_seconds, 600);
}

TEST(TimeLimit, PausesThatWereNotSeenComeOnTop) {
  Explanation e = running(600);
  e.progress->left->without_pauses = true;
  EXPECT_THAT(progress_of(e), HasSubstr("; these steps do not fit, by at least 10:00: "));
  e = running(1800);
  e.progress->left->without_pauses = true;
  EXPECT_FALSE(time_limit(e));
  e = running(1500);
  e.progress->left->without_pauses = true;
  EXPECT_EQ(time_limit(e)->fits, TimeLimit::Fits::kMayNot);
}

TEST(TimeLimit, NothingIsSaidOfWhatIsNotKnown) {
  EXPECT_FALSE(time_limit(running(0)));
  Explanation e = running(600);
  e.progress->left.reset();
  EXPECT_FALSE(time_limit(e));
  EXPECT_THAT(progress_of(e), Not(HasSubstr("Slurm")));
  e = running(600);
  e.meta.stop_reason = "job_ended";
  EXPECT_FALSE(time_limit(e));
  e = running(600);
  e.meta.extra.clear();
  EXPECT_FALSE(time_limit(e));
}

}  // namespace
}  // namespace headroom::report
