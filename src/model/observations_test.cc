// SPDX-License-Identifier: Apache-2.0
#include "model/observations.h"

#include <gtest/gtest.h>

namespace headroom {
namespace {

bool says(std::string_view text, std::string_view word) { return text.find(word) != std::string_view::npos; }

// Stacks are told not to be wanted, where there are none.
std::string_view observed(Cause cause, const std::string& tiers) {
  RecordingMeta meta;
  meta.origin = "run";
  meta.tiers = tiers;
  if (tiers.find('Y') == std::string::npos) meta.missing_tiers = {{'Y', "not wanted (--stacks 0)"}};
  return next_observation(cause, meta);
}

TEST(Observations, ReadingsAloneAreToldToRecordTheJob) {
  for (const CauseInfo& row : all_causes()) EXPECT_EQ(observed(row.cause, "N"), row.observe.words) << row.id;
}

TEST(Observations, AProgramWithoutPythonIsNotToldToLookAtItsStacksInPython) {
  RecordingMeta meta;
  meta.origin = "run";
  meta.tiers = "NP";
  EXPECT_TRUE(without_python(meta)) << "stacks were asked for, and nothing kept them away";
  for (const CauseInfo& row : all_causes()) {
    SCOPED_TRACE(row.id);
    EXPECT_FALSE(says(next_observation(row.cause, meta), "stacks --pid"));
    EXPECT_FALSE(says(next_observation(row.cause, meta), "headroom run"));
    EXPECT_FALSE(says(next_observation(row.cause, meta), "headroom stacks"));
  }
  EXPECT_TRUE(says(next_observation(Cause::kHostGraphBuilding, meta), "gdb"));
  meta.origin = "import:csv";
  EXPECT_FALSE(without_python(meta)) << "nobody looked";
}

TEST(Observations, WhatARecordingHoldsIsNotAskedForAgain) {
  for (const CauseInfo& row : all_causes()) {
    SCOPED_TRACE(row.id);
    EXPECT_FALSE(says(observed(row.cause, "NP"), "headroom run ("));
    EXPECT_FALSE(says(observed(row.cause, "NPY"), "stacks --pid"));
    EXPECT_FALSE(says(observed(row.cause, "NPY"), "headroom run ("));
  }
  EXPECT_TRUE(says(observed(Cause::kGilContention, "NP"), "stacks --pid")) << "nobody read its stacks";
}

TEST(Observations, FewerThreadsAreNoLookWhereOthersHaveTheCores) {
  RecordingMeta meta;
  meta.origin = "run";
  meta.tiers = "NP";
  Finding finding;
  EXPECT_TRUE(says(step_of_observation(Cause::kCpuOversubscribed, finding, meta), "OMP_NUM_THREADS=1"));
  finding.no_threads_to_save = true;
  EXPECT_FALSE(says(step_of_observation(Cause::kCpuOversubscribed, finding, meta), "OMP_NUM_THREADS=1"));
}

TEST(Observations, EachIsMadeByAnInstruction) {
  for (const std::string_view tiers : {"N", "NP", "NPY", "NS"})
    for (const bool over : {false, true})
      for (const CauseInfo& row : all_causes()) {
        if (row.number.empty()) continue;  // no candidate of a set
        RecordingMeta meta;
        meta.origin = "run";
        meta.tiers = tiers;
        if (over) meta.stop_reason = "job_ended";
        const std::string step = step_of_observation(row.cause, Finding{}, meta);
        SCOPED_TRACE(step);
        EXPECT_NE(step, next_observation(row.cause, meta)) << row.id << " has no instruction";
        EXPECT_FALSE(says(step, "{stacks}"));
        if (says(step, "stacks --pid") && without_python(meta)) ADD_FAILURE() << "there is no Python";
      }
}

TEST(Observations, AProcessThatIsGoneIsNotLookedAt) {
  RecordingMeta meta;
  meta.origin = "run";
  meta.tiers = "NPY";
  EXPECT_FALSE(job_is_over(meta));
  EXPECT_EQ(next_observation(Cause::kUnreleasedAfterWork, meta), "what the process does now");
  EXPECT_TRUE(step_of_observation(Cause::kHang, Finding{}, meta).starts_with("headroom stacks --pid PID"));
  meta.stop_reason = "job_ended";
  EXPECT_EQ(next_observation(Cause::kUnreleasedAfterWork, meta), "the end of the job's log");
  EXPECT_TRUE(
      step_of_observation(Cause::kHang, Finding{}, meta).starts_with("in the next run, headroom stacks --pid PID"));
  meta.origin = "record";
  meta.stop_reason = "duration";
  EXPECT_FALSE(job_is_over(meta)) << "only the recording has ended";
}

}  // namespace
}  // namespace headroom
