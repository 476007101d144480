// SPDX-License-Identifier: Apache-2.0
#include "batch/slurm_jobs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headroom::batch {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

TEST(SlurmJobs, WhatAPersonSaysComesLastAndWins) {
  const auto words = sbatch_words({.name = "hr-1-g0",
                                   .partition = "gpu",
                                   .jobs = 4,
                                   .options = {"--nodes=2", "--account=x"},
                                   .script = "job.sh",
                                   .log = "%A_%a.log"});
  EXPECT_THAT(words, Contains("--array=0-3"));
  EXPECT_THAT(words, Contains("--partition=gpu"));
  EXPECT_EQ(words.back(), "job.sh");
  const auto ours = std::find(words.begin(), words.end(), "--nodes=1");
  EXPECT_LT(ours, std::find(words.begin(), words.end(), "--nodes=2"));
}

TEST(SlurmJobs, TheScriptIsTheWorkerWhateverItsWords) {
  const std::string script = slurm_script({"/opt/head room/headroom", "batch", "--shared", "a'b; rm x"});
  EXPECT_THAT(script, HasSubstr("\nexec '/opt/head room/headroom' batch --shared "));
  EXPECT_THAT(script, Not(HasSubstr(" a'b; rm x")));
}

TEST(SlurmJobs, AnAnswerOfSbatch) {
  EXPECT_EQ(submitted_id("4711\n"), 4711);
  EXPECT_EQ(submitted_id("4711;cluster\n"), 4711);
  EXPECT_FALSE(submitted_id("Submitted batch job 4711\n"));
  EXPECT_FALSE(submitted_id(""));
}

TEST(SlurmJobs, ElementsOfAnArray) {
  EXPECT_EQ(elements_of("7"), 1U);
  EXPECT_EQ(elements_of("7_3"), 1U);
  EXPECT_EQ(elements_of("7_[1-7%2]"), 7U);
  EXPECT_EQ(elements_of("7_[0,3-7:2]"), 4U);
  EXPECT_EQ(elements_of("7_[1-"), 1U);
  EXPECT_EQ(elements_of("7_[0-99999999999]"), 1U);
}

TEST(SlurmJobs, TheJobOfAWorkerIsInItsName) {
  EXPECT_EQ(job_of_worker("n1.j4711"), 4711);
  EXPECT_EQ(job_of_worker("gpu.3.j4711.t2.r1"), 4711);
  EXPECT_FALSE(job_of_worker("j4711")) << "a machine";
  EXPECT_FALSE(job_of_worker("n1.jx.r1"));
  EXPECT_TRUE(is_there("RUNNING") && is_there("PENDING") && is_there("COMPLETING") && is_there("SUSPENDED"));
  EXPECT_FALSE(is_there("NODE_FAIL") || is_there("TIMEOUT"));
}

TEST(SlurmJobs, WhatSqueueShows) {
  const auto elements = parse_squeue("7_0|RUNNING|None|n1\n7_[1-3]|PENDING|Resources|\nslurm_load_jobs error\n|||\n");
  ASSERT_THAT(elements, SizeIs(2));
  EXPECT_EQ(elements[0].node, "n1");
  EXPECT_EQ(slurm_words(elements), "1 of 4 jobs run, 3 wait (Resources)");
  EXPECT_THAT(parse_squeue("error: Socket timed out|"), IsEmpty());
}

TEST(SlurmJobs, WhatWasIntendedIsKnownBeforeItsNumberIs) {
  const std::string text =
      intended_line("hr-1-g0", 100) + submitted_line("hr-1-g0", 7) + intended_line("hr-1-g1", 200) + "inten";
  const auto records = parse_records(text);
  ASSERT_THAT(records, SizeIs(2));
  EXPECT_EQ(records[0].id, 7);
  EXPECT_FALSE(records[1].id);
  EXPECT_EQ(records[1].intended_seconds, 200);
  EXPECT_FALSE(records[1].refused);
  EXPECT_TRUE(parse_records(text.substr(0, text.size() - 5) + refused_line("hr-1-g1", 201))[1].refused);
}

TEST(SlurmJobs, WhatAProgramSaysNoWith) {
  const auto no = ask_slurm({"sh", "-c", "echo error: invalid partition >&2; exit 1"});
  ASSERT_FALSE(no);
  EXPECT_EQ(no.error().what, "sh says: error: invalid partition");
  EXPECT_FALSE(ask_slurm({"no-such-program-of-slurm"}));
  EXPECT_EQ(*ask_slurm({"echo", "7"}), "7\n");
  const auto slow = ask_slurm({"sh", "-c", "exec tail -f /dev/null"}, 50 * kMillisecond);
  ASSERT_FALSE(slow);
  EXPECT_EQ(slow.error().code, Errc::kBusy);
}

}  // namespace
}  // namespace headroom::batch
