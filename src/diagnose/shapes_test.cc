// SPDX-License-Identifier: Apache-2.0
// Programs of other shapes than a loop with a loader: environments, prompts, copies, programs without Python.
#include <gmock/gmock.h>

#include <cmath>

#include "diagnose/explain.h"
#include "diagnose/testing.h"
#include "model/named_causes.h"

namespace headroom {
namespace {

using ::testing::AllOf;
using testing::cell;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RecordingBuilder;

const Frames kWaits{"train (/u/train.py:1)", "_wait (/x/headroom_sim.py:1)"};

// Each second: kernels for 0.7 of it, then the main thread at `frames`.
Recording loop(const Frames& frames, double cpu, std::vector<Cell> extra = {}) {
  RecordingBuilder builder(60);
  builder.machine(2, 1).gpu(0, [](double) { return 0.7; });
  builder.sleeping_in(WaitChannel::kFutex).process({7, 1, 0, 60, cpu, true, std::move(extra)});
  builder.context(7, 0, 0, 60);
  for (int i = 0; i < 60; ++i) {
    builder.stacks(7, i, i + 0.7, kWaits);
    builder.stacks(7, i + 0.7, i + 1, frames);
  }
  return builder.build();
}

TEST(Shapes, WhatTheGpuWaitsForIsALoaderOnlyWhereStacksShowOne) {
  const auto title = [](const Frames& waits, const Frames& worker) {
    RecordingBuilder builder(60);
    builder.machine(2, 2).gpu(0, [](double) { return 0.4; }).process(7, 1, 0, 60, 0.1).context(7, 0, 0, 60);
    builder.process({20, 7, 0, 60, 0.4, true, {cell(Metric::kRunDelay, 500'000'000)}});
    builder.stacks(7, 0, 60, waits).stacks(20, 0, 60, worker);
    return explain(builder.build()).findings.front().title;
  };
  const Frames physics{"worker (/u/env.py:1)", "physics (/u/env.py:7)"};
  EXPECT_EQ(title(kReceives, physics), "The job's worker processes wait for CPU cores: physics (env.py)");
  const std::string torch = "/x/site-packages/torch/utils/data/";
  EXPECT_EQ(title({"train (/u/train.py:1)", "_try_get_data (" + torch + "dataloader.py:1)"}, physics),
            "The data loader's workers wait for CPU cores: physics (env.py)");
}

// The worker's wait for a core bounds the first finding; the second, which may be that, too, does not count it again.
TEST(Shapes, WhatATimeIsToldToBeIsNotCountedForAnotherCause) {
  RecordingBuilder builder(60);
  builder.machine(2, 2).gpu(0, [](double) { return 0.3; });
  builder.process({7, 1, 0, 60, 0.02, true, {cell(Metric::kRunDelay, 120'000'000)}}).context(7, 0, 0, 60);
  builder.process({20, 7, 0, 60, 0.3, true, {cell(Metric::kRunDelay, 600'000'000)}});
  for (int i = 0; i < 60; ++i) builder.stacks(7, i, i + 0.5, kWaits).stacks(7, i + 0.5, i + 1, kReceives);
  builder.stacks(20, 0, 60, {"produce (/u/train.py:9)"});
  const Explanation e = explain(builder.build());
  ASSERT_EQ(e.findings.front().cause, Cause::kCpuOversubscribed) << everything(e);
  const Finding* sync = find(e, Cause::kSyncPoints);
  ASSERT_TRUE(sync && sync->gain) << everything(e);
  EXPECT_LT(sync->gain->high, 1.7) << sync->bound;
}

TEST(Shapes, WhoMayUseOneOfManyCoresIsToldSo) {
  const auto advice = [](const std::string& cpus) {
    RecordingBuilder builder(60);
    builder.machine(8, 1).gpu(0, [](double) { return 0.4; }).process(7, 1, 0, 60, 0.1).context(7, 0, 0, 60);
    builder.process({20, 7, 0, 60, 0.4, true, {cell(Metric::kRunDelay, 500'000'000)}});
    Recording recording = builder.build();
    for (Source& source : recording.sources)
      if (source.kind == SourceKind::kProcess) source.attrs["cpus_allowed"] = cpus;
    return explain(recording).findings.front().advice;
  };
  EXPECT_THAT(advice("3"), HasSubstr("more of this machine's 8 cores (the job's affinity or quota lets it use 1)"));
  EXPECT_THAT(advice("0-7"), HasSubstr("more cores (8 usable here)"));
}

TEST(Shapes, WhoTakesBatchesLateForWantOfACoreHasNoSlowLoader) {
  const auto causes = [](std::int64_t delay) {
    RecordingBuilder builder(60);
    builder.machine(2, 2).gpu(0, [](double) { return 0.8; });
    builder.process({7, 1, 0, 60, 0.05, true, {cell(Metric::kRunDelay, delay)}}).context(7, 0, 0, 60);
    builder.sleeping_in(WaitChannel::kPipe).process(20, 7, 0, 60, 0.05);
    builder.stacks(7, 0, 60,
                   {"train (/u/train.py:1)", "_try_get_data (/x/site-packages/torch/utils/data/dataloader.py:1)"});
    return explain(builder.build()).findings.front().candidates;
  };
  EXPECT_THAT(causes(0), AllOf(Contains(Cause::kBurstyInput), Not(Contains(Cause::kCpuOversubscribed))));
  EXPECT_THAT(causes(300'000'000), Contains(Cause::kCpuOversubscribed));
}

TEST(Shapes, EnvironmentsHaveNoTransforms) {
  const auto advice = [](const Frames& waits) {
    RecordingBuilder builder(60);
    builder.machine(8, 1).gpu(0, [](double) { return 0.4; }).process(7, 1, 0, 60, 0.1).context(7, 0, 0, 60);
    builder.process(20, 7, 0, 60, 0.98).stacks(7, 0, 60, waits);
    return explain(builder.build()).findings.front().advice;
  };
  EXPECT_THAT(advice(kReceives), AllOf(HasSubstr("more worker processes"), HasSubstr("cheaper code in them"),
                                       Not(HasSubstr("persistent"))));
  EXPECT_THAT(advice({"train (/u/train.py:1)", "_try_get_data (/x/site-packages/torch/utils/data/dataloader.py:1)"}),
              AllOf(HasSubstr("more loader workers"), HasSubstr("persistent"), HasSubstr("cheaper transforms")));
}

// 0.2 cores are little of a whole core, and most of the 0.3 that it loads.
TEST(Shapes, WhoLoadsOnTheCpuIsNotSaidToWait) {
  const std::string pandas = "/usr/lib/python3/dist-packages/pandas/io/parsers/readers.py";
  const Frames reads{"train (/u/train.py:1)", "load_table (/u/train.py:8)", "read_csv (" + pandas + ":1)"};
  const auto advice = [&](double cpu) {
    const Explanation e = explain(loop(reads, cpu));
    const Finding* found = find(e, Cause::kInputInMainProcess);
    return found ? found->advice : "";
  };
  EXPECT_THAT(advice(0.2), HasSubstr("as many as cores are free"));
  EXPECT_THAT(advice(0.01), HasSubstr("they need hardly a core"));
}

TEST(Shapes, ALittleThatIsWrittenBetweenStepsIsNeitherALogNorACheckpoint) {
  const Frames own{"train (/u/train.py:1)", "mix (/u/train.py:9)"};
  const auto causes = [&](std::int64_t bytes) {
    return possible_causes(
        explain(loop(own, 0.25, {cell(Metric::kWriteBytes, bytes), cell(Metric::kReadBytes, 0)})).findings.front());
  };
  EXPECT_THAT(causes(3'400'000), AllOf(Not(Contains(Cause::kLoggingUpload)), Not(Contains(Cause::kCheckpointSync)),
                                       Contains(Cause::kInputInMainProcess)));
}

TEST(Shapes, ACopyIsNoWaitForALockOfSomebody) {
  const auto first = [](std::int64_t copied) {
    Recording recording = loop({"train (/u/train.py:1)", "ModelEma.update (/u/train.py:8)"}, 0.01);
    for (std::size_t i = 0; i < recording.sources.size(); ++i)
      if (recording.sources[i].kind == SourceKind::kGpu) {
        Column column{Metric::kPcieRx, {}, {}};
        for (const Nanos at : recording.tracks[i].at)
          column.values.push_back(
              static_cast<std::int64_t>(static_cast<double>(copied) * seconds(at - recording.meta.start)));
        recording.tracks[i].columns.push_back(std::move(column));
      }
    return explain(recording).findings.front();
  };
  const Finding lock = first(0), copy = first(1'500'000'000);
  EXPECT_THAT(lock.title, HasSubstr("waits on a lock"));
  EXPECT_THAT(lock.advice, HasSubstr("has that lock"));
  EXPECT_THAT(copy.title, Not(HasSubstr("lock")));
  EXPECT_THAT(copy.advice, HasSubstr("pinned memory"));
  EXPECT_TRUE(is_likeliest(copy, Cause::kPageableCopies));
}

TEST(Shapes, ThreadsOfAProgramWithoutPythonHaveNoInterpreterToWaitFor) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.6; }).sleeping_in(WaitChannel::kFutex, 0.6).process(7, 1, 0, 60, 0.01);
  Recording recording = builder.context(7, 0, 0, 60).build();
  const Finding native = explain(recording).findings.front();
  EXPECT_THAT(native.candidates, AllOf(Not(Contains(Cause::kGilContention)), Contains(Cause::kInputTooFewWorkers)))
      << native.title;
  recording.meta.missing_tiers = {{'Y', "not asked for"}};
  EXPECT_THAT(explain(recording).findings.front().candidates, Contains(Cause::kGilContention)) << "it may be Python";
}

// Kernels for 7 of each 10 s, while what was typed runs; nothing of Python runs at the prompt.
Explanation typed(const std::string& command) {
  RecordingBuilder builder(100);
  builder.gpu(0, [](double t) { return std::fmod(t - 0.01, 10) < 7 ? 1.0 : 0.0; });
  builder.sleeping_in(WaitChannel::kPipe).process(100, 1, 0, 100, 0.01).context(100, 0, 0, 100);
  for (int i = 0; i < 100; i += 10) builder.stacks(100, i, i + 7, kWaits);
  builder.meta().tiers = "NPY";
  Recording recording = builder.build();
  for (Source& source : recording.sources)
    if (source.kind == SourceKind::kProcess) source.attrs["cmdline"] = command;
  return explain(recording);
}

TEST(Shapes, APromptIsNoSynchronisation) {
  for (const char* command : {"/usr/bin/python3 -i -q", "python3.12 -qi", "ipython3", "python3 -m IPython"}) {
    const Explanation e = typed(command);
    EXPECT_LT(seconds(e.ledger.total(Account::kSync)), 3) << everything(e);
    EXPECT_EQ(e.findings.front().cause, Cause::kInteractiveHoldingGpu) << command << ": " << everything(e);
    EXPECT_THAT(e.findings.front().title, HasSubstr("at the prompt of an interactive interpreter"));
  }
  for (const char* command : {"python3 train.py -i", "python3 -c 'i'", "python3", "python3 -m train -i", "python3 --i"})
    EXPECT_NE(typed(command).findings.front().cause, Cause::kInteractiveHoldingGpu) << command;
}

TEST(Shapes, WhatIsTypedBeforeTheFirstKernelIsNoStartUp) {
  RecordingBuilder builder(40);
  builder.gpu(0, [](double t) { return t > 20 ? 1.0 : 0.0; }).sleeping_in(WaitChannel::kTerminal);
  builder.process(100, 1, 0, 40, 0.01).context(100, 0, 20, 40);
  builder.stacks(100, 0, 5, {"<module> (/x/site-packages/torch/__init__.py:1)"}).stacks(100, 20, 40, kWaits);
  const Explanation e = explain(builder.build());
  const Finding* waits = find(e, Cause::kInteractiveHoldingGpu);
  ASSERT_NE(waits, nullptr) << everything(e);
  EXPECT_THAT(waits->title, HasSubstr("for somebody at a terminal"));
  EXPECT_NEAR(seconds(waits->cost()), 15, 1.1);
  const Finding* starts = find(e, Cause::kStartupLoad);
  ASSERT_NE(starts, nullptr);
  EXPECT_NEAR(seconds(starts->cost()), 5, 1.1);
}

TEST(Shapes, WhoSleptAllAlongWithoutAKernelMayHang) {
  const auto first = [](double cpu) {
    return explain(RecordingBuilder(60)
                       .gpu(0, [](double) { return 0.0; })
                       .process(100, 1, 0, 60, cpu)
                       .context(100, 0, 1, 60)
                       .build())
        .findings.front();
  };
  EXPECT_EQ(first(0.9).cause, Cause::kJobNeverUsesGpu);
  const Finding slept = first(0.001);
  EXPECT_FALSE(slept.cause);
  EXPECT_THAT(slept.candidates, ElementsAre(Cause::kHang, Cause::kStartupLoad, Cause::kJobNeverUsesGpu));
  EXPECT_THAT(slept.advice, HasSubstr("see what it waits for"));
}

// The last look at it is 1 s before its end, of which the last fifth is as long.
TEST(Shapes, WhatAShortJobDidAtItsEndIsNotKnownByALookBefore) {
  const auto progress = [](double length) {
    RecordingBuilder builder(length);
    builder.gpu(0, [](double t) { return t <= 1 ? 0.9 : 0.0; })
        .process(100, 1, 0, length, 0)
        .context(100, 0, 0, length);
    return check(explain(builder.build()), "progress").good;
  };
  EXPECT_EQ(progress(4.9), Answer::kUnknown);
  EXPECT_EQ(progress(60), Answer::kNo);
}

TEST(Shapes, AJobThatFailedMayHaveBeenOnItsWayToTheGpu) {
  const auto first = [](int exit_code) {
    RecordingBuilder builder(60);
    builder.gpu(0, [](double) { return 0.0; }).process(100, 1, 0, 60, 0.9).process({200, 1, 0, 60, 0.1, false});
    builder.context(200, 0, 0, 60).meta().exit_code = exit_code;
    return explain(builder.build()).findings.front();
  };
  EXPECT_THAT(first(0).told_apart_from, Contains(HasSubstr("a slow start")));
  const Finding failed = first(1);
  EXPECT_EQ(failed.title, "The job never used a GPU before it failed");
  EXPECT_THAT(failed.told_apart_from, Not(Contains(HasSubstr("a slow start"))));
  EXPECT_THAT(failed.advice, HasSubstr("see in its output why it failed"));
}

}  // namespace
}  // namespace headroom
