// SPDX-License-Identifier: Apache-2.0
// What code of the job's own is for that its GPU waits for: by when it runs, and by what it waits for itself.
#include <gmock/gmock.h>

#include <cmath>

#include "analyze/testing.h"
#include "diagnose/explain.h"
#include "model/named_causes.h"

namespace headroom {
namespace {

using testing::cell;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RecordingBuilder;
using ::testing::UnorderedElementsAre;

constexpr double kStart = 6, kEpoch = 18, kWork = 12;

// Epochs of 12 s with kernels and 6 s in a function of the job; before the first kernel, and after the last one, it is
// at the functions that are named.
Finding between_epochs(const std::string& before, const std::string& after, std::int64_t writes = 0,
                       const std::string& name = "mix") {
  const std::string mix = name + " (/u/train.py:9)";
  const double end = kStart + 3 * kEpoch;  // the last pause has no kernel behind it
  RecordingBuilder builder(static_cast<int>(end));
  const auto works = [](double t) { return t > kStart && std::fmod(t - kStart - 0.001, kEpoch) < kWork; };
  builder.gpu(0, [&](double t) { return works(t) ? 1.0 : 0.0; });
  builder.process({7, 1, 0, end, 0.98, true, {cell(Metric::kWriteBytes, writes)}}).context(7, 0, 0, end);
  for (int t = 0; t < static_cast<int>(end); ++t) {
    const bool ends = t >= static_cast<int>(end - (kEpoch - kWork));
    const std::string at = works(t + 1) ? "_wait (/x/headroom_sim.py:1)" : t < kStart ? before : ends ? after : mix;
    builder.stacks(7, t, t + 1, {"train (/u/train.py:1)", at});
  }
  const Explanation e = explain(builder.build());
  for (const Finding& finding : e.findings)
    if (finding.title.find(name + " (train.py)") != std::string::npos &&
        finding.title.find("pauses") != std::string::npos)
      return finding;
  ADD_FAILURE() << e.headline;
  return {};
}

TEST(Rhythm, CodeThatRanBeforeTheFirstKernelPrepares) {
  const Finding finding = between_epochs("mix (/u/train.py:9)", "end (/u/train.py:20)");
  EXPECT_THAT(finding.candidates, UnorderedElementsAre(Cause::kDuplicatePreprocessing, Cause::kInputInMainProcess,
                                                       Cause::kHostGraphBuilding));
  EXPECT_EQ(finding.candidates.front(), Cause::kDuplicatePreprocessing);
  EXPECT_THAT(finding.speaks_for.front(), HasSubstr("the same code ran before the first kernel"));
  EXPECT_THAT(finding.evidence, Contains(HasSubstr("before the first kernel, too")));
  EXPECT_THAT(finding.advice, HasSubstr("prepare it once"));
}

TEST(Rhythm, CodeThatRanAfterTheLastKernelEndsEpochs) {
  const Finding finding = between_epochs("begin (/u/train.py:20)", "mix (/u/train.py:9)");
  EXPECT_EQ(finding.cause, Cause::kEpochEndHostWork);
  EXPECT_THAT(finding.less_likely, ElementsAre(Cause::kValidation));
  EXPECT_THAT(finding.evidence, Contains(HasSubstr("after the last kernel, too")));
  const Finding writes = between_epochs("begin (/u/train.py:20)", "mix (/u/train.py:9)", 10'000);
  EXPECT_THAT(possible_causes(writes), ElementsAre(Cause::kEpochEndHostWork, Cause::kCheckpointSync));
}

TEST(Rhythm, OtherCodeMayBeWhatPausesAreFor) {
  const Finding finding = between_epochs("begin (/u/train.py:20)", "end (/u/train.py:30)");
  EXPECT_THAT(finding.candidates, Not(Contains(Cause::kValidation))) << "its name speaks of none";
  EXPECT_THAT(finding.candidates, Contains(Cause::kDuplicatePreprocessing));
  const Finding sampling = between_epochs("begin (/u/train.py:20)", "end (/u/train.py:30)", 0, "draw_samples");
  EXPECT_THAT(sampling.candidates, Contains(Cause::kValidation));
  EXPECT_THAT(finding.candidates, Not(Contains(Cause::kCheckpointSync)));
  EXPECT_THAT(finding.told_apart_from, Contains("saving: nothing was written to storage"));
}

// Four pauses of half a second in 40 s: in readings a second apart there is never none.
TEST(Rhythm, PausesThatReadingsDoNotShowAreToldByStacks) {
  RecordingBuilder builder(40);
  builder.gpu(0, [](double t) { return std::fmod(t, 10) < 1 ? 0.5 : 0.98; });
  builder.process(7, 1, 0, 40, 0.3).context(7, 0, 0, 40);
  for (int t = 0; t < 40; ++t) {
    const bool pauses = t % 10 == 9;
    builder.stacks(7, t, t + (pauses ? 0.5 : 1), {"train (/u/train.py:1)", "_wait (/x/headroom_sim.py:1)"});
    if (pauses) builder.stacks(7, t + 0.5, t + 1, {"train (/u/train.py:1)", "plot (/u/train.py:9)"});
  }
  const Explanation e = explain(builder.build());
  ASSERT_FALSE(e.findings.empty());
  EXPECT_THAT(e.findings.front().title, HasSubstr("pauses for code of the training process: plot (train.py)"));
  EXPECT_THAT(e.findings.front().candidates, Contains(Cause::kEpochEndHostWork));
}

TEST(Waits, WhoWantsACoreForMostOfTheTimeIsNotBlamedForItsCode) {
  const auto candidates = [](double idle) {
    RecordingBuilder builder(60);
    builder.gpu(0, [&](double) { return 1 - idle; }).sleeping_in(WaitChannel::kPoll, 1.8).machine(2, 2);
    builder.process({7, 1, 0, 60, 0.1, true, {cell(Metric::kRunDelay, static_cast<std::int64_t>(0.8 * idle * 1e9))}});
    builder.context(7, 0, 0, 60).stacks(7, 0, 60, {"train (/u/train.py:1)", "work (/u/train.py:9)"});
    return explain(builder.build()).findings.front().candidates;
  };
  EXPECT_THAT(candidates(0.6), ElementsAre(Cause::kCpuOversubscribed, Cause::kGilContention));
  EXPECT_THAT(candidates(0.3), Contains(Cause::kHostGraphBuilding)) << "it may be what comes behind waits for kernels";
}

// Each second: kernels, then asleep for 0.3 s, which is no long pause.
Finding asleep(WaitChannel wait, const std::vector<std::string>& frames, std::int64_t children = 0) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.7; }).sleeping_in(wait);
  builder.process({7, 1, 0, 60, 0.01, true, {cell(Metric::kChildrenCpu, children)}}).context(7, 0, 0, 60);
  for (int i = 0; i < 60; ++i) {
    builder.stacks(7, i, i + 0.7, {"train (/u/train.py:1)", "_wait (/x/headroom_sim.py:1)"});
    builder.stacks(7, i + 0.7, i + 1, frames);
  }
  return explain(builder.build()).findings.front();
}

TEST(Waits, WhoSleepsOnAConnectionWaitsForWhatIsBeyondIt) {
  const std::vector<std::string> ask{"train (/u/train.py:1)", "ask (/u/train.py:9)"};
  EXPECT_THAT(asleep(WaitChannel::kSocket, ask).candidates, ElementsAre(Cause::kLoggingUpload, Cause::kSlowStorage));
  EXPECT_THAT(asleep(WaitChannel::kPoll, ask).candidates, Contains(Cause::kBurstyInput)) << "it may be anything";
}

TEST(Waits, AProgramInEachStepNeitherValidatesNorSaves) {
  const std::vector<std::string> decode{"train (/u/train.py:1)", "decode (/u/train.py:9)",
                                        "run (/usr/lib/python3.11/subprocess.py:1)",
                                        "wait (/usr/lib/python3.11/subprocess.py:9)"};
  const Finding works = asleep(WaitChannel::kChild, decode, 400'000'000);
  EXPECT_THAT(works.candidates, ElementsAre(Cause::kInputInMainProcess, Cause::kLoggingUpload));
  EXPECT_THAT(asleep(WaitChannel::kChild, decode).candidates, Contains(Cause::kSlowStorage))
      << "a program that does not run waits itself";
}

}  // namespace
}  // namespace headroom
