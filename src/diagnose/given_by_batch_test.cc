// SPDX-License-Identifier: Apache-2.0
// GPUs that tasks of a batch had and on which none was seen.
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>

#include "analyze/testing.h"
#include "diagnose/explain.h"

namespace headroom {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::RecordingBuilder;

// GPU 0 works; GPU 1 does nothing.
Finding idle_gpu(const std::function<void(RecordingBuilder&)>& put) {
  RecordingBuilder builder(30);
  builder.gpu(0, [](double) { return 0.9; }).gpu(1, [](double) { return 0.0; }).queue(0, 0);
  put(builder);
  const Explanation e = explain(builder.build());
  const auto found = std::find_if(e.findings.begin(), e.findings.end(), [](const Finding& finding) {
    return finding.title == "GPU 1 did nothing for the tasks that had it";
  });
  return found == e.findings.end() ? Finding{} : *found;
}

TEST(GivenByBatch, TasksThatUseOneOfTheirGpusAreNotTooShortToBeWatched) {
  const Finding idle = idle_gpu([](RecordingBuilder& batch) {
    batch.process(100, 1, 0, 30, 0.9).context(100, 0, 0, 30).attempt("a", 100, {0, 1}, 0, 30);
  });
  EXPECT_EQ(idle.cause, Cause::kMoreGpusThanUseful);
  EXPECT_EQ(idle.cost(), 30 * kSecond);
  EXPECT_THAT(idle.evidence, ElementsAre("headroom batch put 1 attempt on GPU 1, and the driver saw none of them there",
                                         "each of them had another GPU, too"));
  EXPECT_THAT(idle.advice, HasSubstr("fewer GPUs per task"));
  EXPECT_THAT(idle.told_apart_from, Contains(HasSubstr("headroom batch set each task's before it started")));
}

TEST(GivenByBatch, TasksThatWereNotSeenThereMayHaveBeenTooShort) {
  const Finding idle = idle_gpu([](RecordingBuilder& batch) {
    batch.task("a", 100, {0}, 0, 30);
    batch.process(110, 1, 1, 26, 0.9).attempt("c", 110, {1}, 1, 26);
  });
  EXPECT_EQ(idle.confidence, Confidence::kLow);
  EXPECT_FALSE(idle.cause);
  EXPECT_THAT(idle.evidence,
              ElementsAre("headroom batch put 1 attempt on GPU 1, and the driver saw none of them there: "
                          "not on a GPU, or too short for its lists"));
}

TEST(GivenByBatch, AGpuOnWhichATaskWasSeenIsNoSuch) {
  EXPECT_EQ(
      idle_gpu([](RecordingBuilder& batch) { batch.task("a", 100, {0}, 0, 30).task("b", 101, {1}, 0, 30); }).title, "");
}

}  // namespace
}  // namespace headroom
