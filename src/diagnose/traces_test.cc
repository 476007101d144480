// SPDX-License-Identifier: Apache-2.0
// What is found in traces of profilers, and in step times of ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "analyze/testing_profile.h"
#include "diagnose/explain.h"
#include "diagnose/testing.h"
#include "model/losses.h"

namespace headroom {
namespace {

using testing::Profile;
using testing::ranks;

TEST(Traces, FindingsRestOnTheTraceAloneAndNeverOnStacksOrTheDriver) {
  const Profile profile{.device = {{0, {"kernel"}}, {20, {}}, {60, {"kernel"}}, {80, {"pageable copy to the GPU"}}},
                        .thread = {{0, {"aten::mm"}},
                                   {10, {}},
                                   {20, {"aten::item", "cudaStreamSynchronize"}},
                                   {40, {}},
                                   {50, {"cudaLaunchKernel"}},
                                   {60, {}}},
                        .kernels = 1};
  const Explanation e = explain(profile.build());
  ASSERT_FALSE(e.findings.empty());
  for (const Finding& finding : e.findings) {
    EXPECT_EQ(finding.tiers, Tiers("C")) << finding.title;
    for (const std::string& line : finding.evidence) {
      EXPECT_EQ(line.find("stacks"), std::string::npos) << line;
      EXPECT_EQ(line.find("core"), std::string::npos) << line;
    }
  }
  const Finding* sync = find_single(e, Cause::kSyncPoints);
  ASSERT_TRUE(sync);
  EXPECT_EQ(sync->cost(), 20 * kMicrosecond);
  const Finding* copies = find_single(e, Cause::kPageableCopies);
  ASSERT_TRUE(copies);
  EXPECT_EQ(copies->cost(), 20 * kMicrosecond);
}

TEST(Traces, TheIteratorOfTensorflowIsInputWithAndWithoutLaunches) {
  for (const bool launches : {true, false}) {
    Profile profile;
    for (Nanos at = 0; at < 400; at += 100) {
      profile.device.push_back({at + 60, {"kernel"}});
      profile.device.push_back({at + 100, {}});
      profile.thread.push_back({at, {"IteratorGetNext"}});
      profile.thread.push_back({at + 55, launches ? Frames{"cuLaunchKernel"} : Frames{}});
      profile.thread.push_back({at + 60, {}});
    }
    profile.device.insert(profile.device.begin(), {0, {"kernel"}});
    profile.device.insert(profile.device.begin() + 1, {1, {}});
    profile.kernels = 5, profile.length = 400;
    const Explanation e = explain(profile.build());
    const Finding* input = find(e, Cause::kInputTooFewWorkers);
    ASSERT_NE(input, nullptr) << everything(e);
    EXPECT_NE(input->title.find("tf.data"), std::string::npos) << input->title;
  }
}

TEST(Traces, ShortKernelsWithGapsAreLaunchBoundAndLongOnesAreNot) {
  for (const int kernels : {1, 20}) {
    Profile profile;
    profile.kernels = kernels;
    for (Nanos at = 0; at < 100; at += 50) {
      profile.device.push_back({at, {"kernel"}});
      profile.device.push_back({at + 20, {}});
      profile.thread.push_back({at, {"aten::add"}});
      profile.thread.push_back({at + 49, {"aten::add", "cudaLaunchKernel"}});
    }
    EXPECT_EQ(find_single(explain(profile.build()), Cause::kLaunchBound) != nullptr, kernels == 20);
  }
}

TEST(Traces, OfKernelsOfSomeMicrosecondsNothingIsSaidOfALaunchThatNobodyMeasured) {
  Profile profile;
  profile.kernels = 3;  // of 20 us
  for (Nanos at = 0; at < 100; at += 50) {
    profile.device.push_back({at, {"kernel"}});
    profile.device.push_back({at + 20, {}});
    profile.thread.push_back({at, {"aten::add"}});
    profile.thread.push_back({at + 20, {"aten::add", "cudaLaunchKernel"}});
  }
  const Explanation e = explain(profile.build());
  const Finding* launches = find_single(e, Cause::kLaunchBound);
  ASSERT_TRUE(launches);
  EXPECT_EQ(launches->title.find("The GPU waits for its launches: kernels are about as short as the launch of one"), 0U)
      << launches->title;
}

TEST(Traces, OperatorsThatTakeLongerThanTheirKernelsAreLaunchBound) {
  ExplainOptions options;
  options.limits.set(Threshold::kShortKernel, 1e-6);
  for (const Nanos kernel : {2, 6}) {  // us, of ten
    Profile profile;
    profile.kernels = 1;
    for (Nanos at = 0; at < 100; at += 10) {
      profile.device.push_back({at, {"kernel"}});
      profile.device.push_back({at + kernel, {}});
      profile.thread.push_back({at, {"aten::linear"}});
      profile.thread.push_back({at + 9, {"aten::linear", "cudaLaunchKernel"}});
    }
    const Explanation e = explain(profile.build(), options);
    EXPECT_EQ(find_single(e, Cause::kLaunchBound) != nullptr, kernel == 2);
    EXPECT_EQ(find(e, Cause::kInputInMainProcess) != nullptr, kernel == 6);
  }
}

TEST(Traces, OneLongCallIsNoPattern) {
  Profile profile{.device = {{0, {"kernel"}}, {5, {}}, {85, {"kernel"}}, {90, {}}, {95, {"kernel"}}},
                  .thread = {{0, {"aten::mm"}},
                             {84, {"aten::mm", "cudaLaunchKernel"}},
                             {86, {"aten::mm"}},
                             {94, {"aten::mm", "cudaLaunchKernel"}}},
                  .kernels = 1};
  const Explanation e = explain(profile.build());
  const Finding* once = find(e, Cause::kCompileWarmup);
  ASSERT_TRUE(once);
  EXPECT_NE(once->title.find("waits once"), std::string::npos);
  EXPECT_EQ(find(e, Cause::kLaunchBound), nullptr);
}

TEST(Traces, WhoLoadsIsToldByTheNamesOfTheLoader) {
  const auto waits_in = [](const std::string& name) {
    const Profile profile{.device = {{0, {"kernel"}}, {20, {}}, {80, {"kernel"}}},
                          .thread = {{0, {"cudaLaunchKernel"}}, {1, {name}}, {79, {"cudaLaunchKernel"}}},
                          .kernels = 1};
    return explain(profile.build());
  };
  for (const char* itself :
       {"enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "__getitem__ (data.py:7)"}) {
    const Explanation e = waits_in(itself);
    const Finding* finding = find_single(e, Cause::kInputInMainProcess);
    ASSERT_TRUE(finding) << itself;
    EXPECT_EQ(finding->title.find("The GPU waits while the training process loads its data itself: "), 0U);
  }
  const Explanation workers = waits_in("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__");
  ASSERT_TRUE(find(workers, Cause::kInputTooFewWorkers));
  EXPECT_EQ(find(workers, Cause::kInputInMainProcess), nullptr);
  EXPECT_TRUE(find(waits_in("enumerate(DataLoader)#next"), Cause::kInputInMainProcess));
}

TEST(Traces, HowOftenALoaderIsWaitedForIsTold) {
  Profile profile{.device = {}, .thread = {}, .kernels = 1, .length = 500};
  for (Nanos at = 0; at < 500; at += 100) {
    profile.device.push_back({at, {"kernel"}});
    profile.device.push_back({at + 60, {}});
    profile.thread.push_back({at, {"enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"}});
    profile.thread.push_back({at + 98, {"cudaLaunchKernel"}});
  }
  const Explanation e = explain(profile.build());
  const Finding* input = find(e, Cause::kInputTooFewWorkers);
  ASSERT_TRUE(input) << e.headline;
  EXPECT_NE(std::find_if(input->evidence.begin(), input->evidence.end(),
                         [](const std::string& line) {
                           return line.find("times, as a rule 38 us at a time, every 100 us") != line.npos;
                         }),
            input->evidence.end())
      << (input->evidence.empty() ? "" : input->evidence.back());
}

TEST(Traces, TheCallWithinAnOperatorIsNamedWhereItIsTheLongPart) {
  const Profile profile{.device = {{0, {"kernel"}}, {50, {}}, {9'900, {"kernel"}}},
                        .thread = {{0, {"aten::mm", "cudaLaunchKernel"}},
                                   {10, {"triton_poi_fused_7"}},
                                   {60, {"triton_poi_fused_7", "cuModuleLoadData"}},
                                   {9'890, {"aten::mm", "cudaLaunchKernel"}}},
                        .kernels = 1,
                        .length = 10'000};
  EXPECT_NE(everything(explain(profile.build())).find("cuModuleLoadData in triton_poi_fused_7"), std::string::npos)
      << everything(explain(profile.build()));
}

TEST(Traces, HowOftenAStateIsSavedIsTold) {
  Profile profile{.device = {}, .thread = {}, .kernels = 1, .length = 400'000};
  for (Nanos at = 0; at < 400'000; at += 100'000) {
    profile.device.push_back({at, {"kernel"}});
    profile.device.push_back({at + 60'000, {}});
    profile.thread.push_back({at, {}});
    profile.thread.push_back({at + 60'000, {"fit (trainer.py:120)", "save_checkpoint (trainer.py:311)"}});
    profile.thread.push_back({at + 99'990, {"cudaLaunchKernel"}});
  }
  const Explanation e = explain(profile.build());
  ASSERT_TRUE(find(e, Cause::kCheckpointSync)) << everything(e);
  EXPECT_NE(everything(e).find("4 times, as a rule 40 ms at a time, every 100 ms"), std::string::npos) << everything(e);
}

TEST(Traces, OneLongCallMayLaunchAKernelMeanwhile) {
  const Profile profile{.device = {{0, {"kernel"}}, {5, {}}, {45, {"kernel"}}, {46, {}}, {90, {"kernel"}}, {95, {}}},
                        .thread = {{0, {"aten::addmm"}},
                                   {44, {"aten::addmm", "cudaLaunchKernel"}},
                                   {45, {"aten::addmm"}},
                                   {89, {"aten::mm", "cudaLaunchKernel"}}},
                        .kernels = 1};
  const Explanation e = explain(profile.build());
  ASSERT_TRUE(find(e, Cause::kCompileWarmup));
  EXPECT_NE(find(e, Cause::kCompileWarmup)->title.find("waits once"), std::string::npos);
}

TEST(Traces, CopiesWithinTheGpuHaveNothingToDoWithTheHostsMemory) {
  const Profile profile{.device = {{0, {"kernel"}}, {40, {"copy between GPU memories"}}, {80, {"kernel"}}},
                        .thread = {{0, {"aten::cat"}}},
                        .kernels = 1};
  const Explanation e = explain(profile.build());
  ASSERT_FALSE(e.findings.empty());
  EXPECT_NE(e.findings[0].title.find("copies within its memory"), std::string::npos) << e.findings[0].title;
  EXPECT_EQ(e.findings[0].advice.find("pin"), std::string::npos);
}

// Kernels for 30 of 100 us, then a copy, launched so.
Explanation of_copies(const std::string& copy, const std::vector<std::string>& launch, bool python = true) {
  Profile profile{.device = {}, .thread = {}, .kernels = 1, .length = 500};
  for (Nanos at = 0; at < 500; at += 100) {
    profile.device.push_back({at, {"kernel"}});
    profile.device.push_back({at + 30, {copy}});
    profile.thread.push_back({at, {"cudaLaunchKernel"}});
    profile.thread.push_back({at + 2, {launch.front()}});
    profile.thread.push_back({at + 3, launch});
    profile.thread.push_back({at + 5, {}});
  }
  if (launch.size() > 1) profile.launched_by[copy] = launch.front();
  Recording recording = profile.build();
  if (!python) recording.meta.extra["python"] = "no sign of it";
  return explain(recording);
}

TEST(Traces, CopiesHideBehindNoMoreKernelsThanThereAre) {
  for (const char* copy : {"pageable copy to the GPU", "copy to the host", "copy between GPUs"}) {
    const Explanation e = of_copies(copy, {"aten::contiguous", "cudaMemcpyAsync"});
    ASSERT_FALSE(e.findings.empty());
    const Finding& finding = e.findings[0];
    ASSERT_TRUE(finding.gain);
    EXPECT_NEAR(finding.gain->high, 100.0 / 70, 0.01) << "the copies still take 70 of 100";
    EXPECT_EQ(finding.bound, "1.43x at most, if copies overlapped with the kernels; 3.3x if there were none") << copy;
    EXPECT_FALSE(names(finding, Cause::kLaunchBound)) << copy;
  }
  const Explanation within = of_copies("copy between GPU memories", {"aten::contiguous", "cudaMemcpyAsync"});
  EXPECT_EQ(within.findings.at(0).bound,
            "3.3x at most, if there were no such copies; 1.43x if they overlapped with the kernels");
  EXPECT_FALSE(names(within.findings.at(0), Cause::kLaunchBound));
}

TEST(Traces, CopiesAreToldByWhereTheyGoAndByTheOperatorAroundThem) {
  const auto says = [](const Finding& finding, std::string_view what) {
    return std::any_of(finding.evidence.begin(), finding.evidence.end(),
                       [&](const std::string& line) { return line.find(what) != line.npos; });
  };
  const Explanation within = of_copies("copy between GPU memories", {"aten::contiguous", "cudaMemcpyAsync"});
  const Finding* found = find_single(within, Cause::kDeviceCopies);
  ASSERT_TRUE(found);
  EXPECT_TRUE(says(*found, "aten::contiguous launches these copies"));
  EXPECT_NE(found->advice.find("contiguous()"), std::string::npos);
  const Explanation bare = of_copies("copy between GPU memories", {"cudaMemcpyAsync"}, false);
  ASSERT_TRUE(find_single(bare, Cause::kDeviceCopies));
  EXPECT_EQ(find_single(bare, Cause::kDeviceCopies)->advice.find("contiguous()"), std::string::npos);
  EXPECT_FALSE(says(*find_single(bare, Cause::kDeviceCopies), "launches these"));
  const Explanation peers = of_copies("copy between GPUs", {"aten::copy_", "cudaMemcpyPeerAsync"});
  found = find_single(peers, Cause::kExposedCommunication);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->title.find("The GPU copies to or from another GPU"), 0U) << found->title;
  const Explanation fetched = of_copies("copy to the host", {"aten::cpu", "cudaMemcpyAsync"});
  found = find_single(fetched, Cause::kSyncPoints);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->title.find("The GPU copies to the host"), 0U) << found->title;
  EXPECT_EQ(found->advice.find("fetch results less often, or later"), 0U) << found->advice;
}

TEST(Traces, WhatPassesOnceIsNoFactorOfTheJob) {
  const Profile in_the_middle{.device = {{0, {"kernel"}}, {5, {}}, {85, {"kernel"}}},
                              .thread = {{0, {"aten::mm"}}, {84, {"aten::mm", "cudaLaunchKernel"}}},
                              .kernels = 1};
  const Profile before_the_first{.device = {{0, {}}, {80, {"kernel"}}},
                                 .thread = {{0, {"aten::mm"}}, {79, {"aten::mm", "cudaLaunchKernel"}}},
                                 .kernels = 1};
  for (const Profile* profile : {&in_the_middle, &before_the_first}) {
    const Explanation e = explain(profile->build());
    const Finding* once = find(e, Cause::kCompileWarmup);
    ASSERT_TRUE(once);
    EXPECT_FALSE(once->gain) << once->bound;
    ASSERT_TRUE(e.bound);
    EXPECT_NE(e.bound->condition.find("0 us of that time pass once in this trace"), std::string::npos)
        << e.bound->condition;
    EXPECT_EQ(once->bound,
              "no factor for the job, as it is once in this trace; in the rest of it the GPU computed for 100 % of the "
              "time");
  }
}

TEST(Traces, WhatIsLoggedFromTheProgramIsLoggingAndNoInput) {
  const Profile profile{.device = {{0, {"kernel"}}, {10, {}}, {98, {"kernel"}}},
                        .thread = {{0, {"cudaLaunchKernel"}},
                                   {1, {"<module> (main.py:12)", "log (/site-packages/wandb/sdk/wandb_run.py:1730)"}},
                                   {97, {"cudaLaunchKernel"}}},
                        .kernels = 1};
  const Explanation e = explain(profile.build());
  const Finding* logs = find_single(e, Cause::kLoggingUpload);
  ASSERT_TRUE(logs);
  EXPECT_NE(logs->title.find(": log (wandb_run.py), called from <module> (main.py)"), std::string::npos) << logs->title;
  EXPECT_EQ(find(e, Cause::kInputInMainProcess), nullptr);
  EXPECT_NE(logs->bound.find("; 7.7x if it took no time"), std::string::npos) << logs->bound;
}

TEST(Traces, WhereNoLoaderIsInTheTraceItIsNotToldToHaveWorkers) {
  for (const bool loader : {false, true}) {
    std::vector<std::string> frames{"<module> (main.py:12)"};
    if (loader) frames.emplace_back("__next__ (/site-packages/torch/utils/data/dataloader.py:701)");
    frames.emplace_back("__getitem__ (data.py:7)");
    const Profile profile{.device = {{0, {"kernel"}}, {20, {}}, {80, {"kernel"}}},
                          .thread = {{0, {"cudaLaunchKernel"}}, {1, frames}, {79, {"cudaLaunchKernel"}}},
                          .kernels = 1};
    const Explanation e = explain(profile.build());
    const Finding* input = find_single(e, Cause::kInputInMainProcess);
    ASSERT_TRUE(input);
    EXPECT_EQ(input->advice.find("num_workers=1") != std::string::npos, loader) << input->advice;
  }
}

TEST(Traces, OfAProgramWithoutASignOfPythonNothingIsSaidOfPython) {
  for (const bool python : {true, false}) {
    Profile profile{.device = {}, .thread = {}, .kernels = 1, .length = 3'000};
    for (Nanos at = 0; at < 3'000; at += 1'000) {
      profile.device.push_back({at, {"kernel"}});
      profile.device.push_back({at + 300, {}});
      profile.thread.push_back({at, {"cudaLaunchKernel"}});
      profile.thread.push_back({at + 5, {}});
    }
    Recording recording = profile.build();
    if (!python) recording.meta.extra["python"] = "no sign of it";
    const Explanation e = explain(recording);
    ASSERT_FALSE(e.findings.empty());
    EXPECT_EQ(e.findings[0].advice.find("Python") != std::string::npos, python) << e.findings[0].advice;
    EXPECT_EQ(e.findings[0].advice.find("NVTX ranges") != std::string::npos, !python);
    EXPECT_EQ(names(e.findings[0], Cause::kInputTooFewWorkers), python);
  }
}

TEST(Traces, MarkedRangesTellWhereTheTimeLiesThatNoCallExplains) {
  const auto marked = [](Nanos first) {
    Profile profile{.device = {}, .thread = {}, .kernels = 1, .length = 3'000};
    for (Nanos at = first; at < 3'000; at += 500) {
      profile.device.push_back({at + 300, {"kernel"}});
      profile.device.push_back({at + 500, {}});
      profile.thread.push_back({at + 295, {"cudaLaunchKernel"}});
      profile.thread.push_back({at + 299, {}});
    }
    profile.device.insert(profile.device.begin(), {{0, {"kernel"}}, {5, {}}});
    profile.thread.insert(profile.thread.begin(), {{0, {"cudaLaunchKernel"}}, {4, {}}});
    Recording recording = profile.build();
    const SourceId process = recording.all(SourceKind::kProcess).front();
    recording.sources.push_back({SourceKind::kMarks, "7/0/1/trace", process, {{"via", "trace"}}});
    recording.tracks.emplace_back();
    const auto list = [&](const char* name) {
      recording.texts.emplace_back(name);
      recording.lists.push_back({static_cast<TextId>(recording.texts.size() - 1)});
      return static_cast<ListId>(recording.lists.size() - 1);
    };
    const ListId data = list("stage one"), work = list("forward");
    for (Nanos at = first; at < 3'000; at += 500) {
      recording.tracks.back().lists.push_back({at * kMicrosecond, data, 0});
      recording.tracks.back().lists.push_back({(at + 290) * kMicrosecond, work, 0});
    }
    return explain(recording);
  };
  const Explanation loads = marked(0);
  EXPECT_NE(loads.headline.find("most of it in stage one"), std::string::npos) << everything(loads);
  EXPECT_NE(everything(loads).find("The GPU waits in stage one while the thread"), std::string::npos);
  const std::string starts = everything(marked(1'500));
  EXPECT_NE(starts.find("Before the first marked range of the trace"), std::string::npos) << starts;
}

TEST(Traces, GpusThatTakeTurnsAreToldBeforeTheSynchronisation) {
  Profile profile{.device = {}, .thread = {}, .second_device = {{0, {}}}, .kernels = 1, .length = 300};
  for (Nanos at = 0; at < 300; at += 100) {
    profile.device.push_back({at, {"kernel"}});
    profile.device.push_back({at + 30, {"copy between GPU memories"}});
    profile.device.push_back({at + 65, {}});
    profile.second_device.push_back({at + 65, {"kernel"}});
    profile.second_device.push_back({at + 98, {}});
    profile.thread.push_back({at, {"cudaLaunchKernel"}});
    profile.thread.push_back({at + 1, {"cudaStreamSynchronize"}});
    profile.thread.push_back({at + 99, {}});
  }
  const Explanation e = explain(profile.build());
  ASSERT_GE(e.findings.size(), 2u);
  EXPECT_NE(e.findings[0].title.find("they take turns"), std::string::npos) << e.findings[0].title;
  EXPECT_EQ(e.findings[0].tiers, Tiers("C"));
  EXPECT_NE(e.findings[1].title.find("copies to or from another one, or within its memory"), std::string::npos)
      << e.findings[1].title;
  for (const Finding& finding : e.findings) {
    EXPECT_EQ(std::count(finding.candidates.begin(), finding.candidates.end(), Cause::kLaunchBound), 0);
    for (const std::string& line : finding.evidence) EXPECT_EQ(line.find("stacks"), std::string::npos) << line;
  }
}

TEST(Traces, MemoryThatIsPinnedOnceIsNothingThatIsCompiled) {
  const Profile profile{.device = {{0, {"kernel"}}, {5, {}}, {90, {"kernel"}}, {95, {}}},
                        .thread = {{0, {"cudaLaunchKernel"}}, {5, {"aten::pin_memory"}}, {89, {"cudaLaunchKernel"}}},
                        .kernels = 1};
  const Explanation e = explain(profile.build());
  EXPECT_EQ(find(e, Cause::kCompileWarmup), nullptr);
  EXPECT_EQ(e.findings.at(0).title, "The GPU waits once while memory of the host is pinned: aten::pin_memory");
}

TEST(Traces, WhatPythonFunctionsSayIsSaidByTheTrace) {
  const Profile profile{
      .device = {{0, {"kernel"}}, {20, {}}, {80, {"kernel"}}},
      .thread = {{0, {"cudaLaunchKernel"}}, {1, {"validate (train.py:7)"}}, {79, {"cudaLaunchKernel"}}},
      .kernels = 1};
  Recording recording = profile.build();
  recording.losses = {make_loss(LossKind::kUnreadableEvent, 1, "first: an event without a time")};
  const Explanation e = explain(recording);
  ASSERT_GE(e.findings.size(), 2u);
  EXPECT_EQ(find(e, Cause::kRecordingLosses)->would_overturn.find("other steps"), std::string::npos);
  for (const Finding& finding : e.findings) {
    EXPECT_TRUE(finding.tiers.has("C") && !finding.tiers.has("N")) << finding.title;
    for (const std::string& line : finding.evidence) EXPECT_EQ(line.find("stacks"), std::string::npos) << line;
  }
}

TEST(Traces, OperatorsThatWereNotTracedAreNotDenied) {
  const Profile profile{.device = {{0, {"kernel"}}, {20, {}}, {60, {"kernel"}}},
                        .thread = {{0, {"cudaLaunchKernel"}}, {1, {}}, {59, {"cudaLaunchKernel"}}, {60, {}}},
                        .kernels = 1};
  Recording recording = profile.build();
  const auto says = [&] { return explain(recording).findings.at(0).title.find("no operator") != std::string::npos; };
  EXPECT_TRUE(says());
  recording.meta.extra["operators"] = "not traced";
  EXPECT_FALSE(says());
  recording.meta.extra["calls"] = "not traced";
  EXPECT_NE(explain(recording).findings.at(0).advice.find("ProfilerActivity.CPU"), std::string::npos);
  EXPECT_NE(explain(recording).findings.at(0).title.find("what the host did meanwhile is not told by this trace"),
            std::string::npos);
  recording.meta.extra["calls"] = "not read";
  EXPECT_NE(explain(recording).findings.at(0).title.find("what the host did meanwhile is not read from this trace"),
            std::string::npos);
  EXPECT_EQ(explain(recording).findings.at(0).advice.find("ProfilerActivity"), std::string::npos) << "no PyTorch";
  recording.meta.extra.erase("operators");
  EXPECT_EQ(explain(recording).findings.at(0).title, "The GPU waits while no operator runs");
}

TEST(Traces, MicrosecondsFromOneCallToTheNextLoadNothing) {
  const auto with = [](Nanos pause) {
    Profile profile;
    profile.kernels = 40;
    Nanos at = 0;
    for (int kernel = 0; kernel < 40; ++kernel, at += 10 + pause) {
      profile.device.push_back({at, {"kernel"}}), profile.device.push_back({at + 10, {}});
      profile.thread.push_back({at, {"aten::add", "cudaLaunchKernel"}}), profile.thread.push_back({at + 10, {}});
    }
    profile.device.push_back({at, {"kernel"}}), profile.thread.push_back({at, {"aten::add", "cudaLaunchKernel"}});
    profile.length = at + 10;
    return explain(profile.build());
  };
  const Explanation small = with(6), large = with(300);
  EXPECT_EQ(find(small, Cause::kInputTooFewWorkers), nullptr);
  ASSERT_TRUE(find(small, Cause::kHostGraphBuilding));
  EXPECT_NE(find(small, Cause::kHostGraphBuilding)->advice.find("CUDA graphs"), std::string::npos);
  EXPECT_TRUE(find(large, Cause::kInputTooFewWorkers));
}

TEST(Traces, PythonFunctionsNameTheTimeWithoutOperators) {
  const Profile profile{.device = {{0, {"kernel"}}, {10, {}}, {98, {"kernel"}}},
                        .thread = {{0, {"cudaLaunchKernel"}},
                                   {1, {"step (train.py:9)", "decode_and_resize (dataset.py:12)"}},
                                   {97, {"cudaLaunchKernel"}}},
                        .kernels = 1};
  const Explanation e = explain(profile.build());
  const Finding* python = find(e, Cause::kHostGraphBuilding);
  ASSERT_TRUE(python);
  EXPECT_EQ(python->title,
            "The GPU waits for Python code that runs no operator and no CUDA call: decode_and_resize (dataset.py)");
  EXPECT_EQ(python->cost(), 87 * kMicrosecond);
  EXPECT_EQ(python->tiers, Tiers("C"));
}

TEST(Traces, AFewLongStaysInPythonAreNoSlowLaunches) {
  constexpr Nanos kStay = 500, kKernels = 5;
  Profile profile;
  profile.kernels = 2 * kKernels;
  Nanos at = 0;
  for (int step = 0; step < 2; ++step) {
    for (int kernel = 0; kernel < kKernels; ++kernel, at += 20) {
      profile.device.push_back({at, {"kernel"}});
      profile.thread.push_back({at, {"cudaLaunchKernel"}});
    }
    profile.device.push_back({at, {}});
    profile.thread.push_back({at, {"step (train.py:9)", "advance (grammar.py:12)"}});
    at += kStay;
  }
  profile.device.push_back({at, {"kernel"}});
  profile.thread.push_back({at, {"cudaLaunchKernel"}});
  profile.length = at + 10;
  const Explanation e = explain(profile.build());
  ASSERT_TRUE(find(e, Cause::kHostGraphBuilding));
  EXPECT_EQ(find(e, Cause::kLaunchBound), nullptr) << "100 us for each kernel, and none of them waited so";
}

TEST(Traces, CodeThatMeasuresIsNoInput) {
  const auto may_be_input = [](const std::string& place) {
    const Profile profile{
        .device = {{0, {"kernel"}}, {10, {}}, {98, {"kernel"}}},
        .thread = {{0, {"cudaLaunchKernel"}}, {1, {"step (train.py:9)", place}}, {97, {"cudaLaunchKernel"}}},
        .kernels = 1};
    const Explanation e = explain(profile.build());
    return find(e, Cause::kInputInMainProcess) != nullptr;
  };
  EXPECT_TRUE(may_be_input("decode_and_resize (dataset.py:12)"));
  EXPECT_TRUE(may_be_input("retrieval (store.py:12)"));
  EXPECT_FALSE(may_be_input("epoch_metrics (evaluate.py:12)"));
  EXPECT_FALSE(may_be_input("confusion_matrix (train.py:12)"));
}

TEST(Traces, CopiesThatMayBePinnedAreNotToldToBe) {
  for (const char* copy : {"copy to the GPU", "pageable copy to the GPU"}) {
    const Profile profile{.device = {{0, {"kernel"}}, {20, {copy}}, {60, {"kernel"}}},
                          .thread = {{0, {"cudaLaunchKernel"}}, {10, {}}, {59, {"cudaLaunchKernel"}}},
                          .kernels = 1};
    const Explanation e = explain(profile.build());
    ASSERT_FALSE(e.findings.empty());
    const Finding& finding = e.findings.front();
    EXPECT_EQ(finding.advice.find("pin_memory=True") != std::string::npos, std::string(copy) != "copy to the GPU")
        << finding.advice;
  }
}

TEST(Traces, OfMemoryThatIsPinnedAlreadyNobodyIsToldToPinIt) {
  const Profile profile{
      .device = {{0, {"kernel"}}, {20, {"copy to the host"}}, {50, {"copy to the GPU"}}, {60, {"kernel"}}},
      .thread = {{0, {"cudaLaunchKernel"}}, {10, {}}, {59, {"cudaLaunchKernel"}}},
      .kernels = 1};
  Recording recording = profile.build();
  EXPECT_THAT(everything(explain(recording)), ::testing::HasSubstr("into pinned memory"));
  recording.meta.extra["host_copies"] = "pinned";
  const std::string text = everything(explain(recording));
  EXPECT_THAT(text, ::testing::Not(::testing::HasSubstr("into pinned memory")));
  EXPECT_THAT(text, ::testing::HasSubstr("the memory of the host is pinned in all copies from and to it"));
  EXPECT_THAT(text, ::testing::HasSubstr("The GPU copies to the host and from it, and no kernel runs"));
}

// Ten steps of 10 us: kernels for 5, and 4 in this call from step `from` to step `to`.
Explanation with_calls(const std::string& call, int from, int to, bool python = true) {
  Profile profile{.device = {}, .thread = {}, .kernels = 1};
  for (int step = 0; step < 10; ++step) {
    const Nanos at = 10 * step;
    profile.device.push_back({at, {"kernel"}});
    profile.device.push_back({at + 5, {}});
    profile.thread.push_back({at, {"aten::empty"}});
    if (step >= from && step < to) profile.thread.push_back({at + 5, {"aten::empty", call}});
    profile.thread.push_back({at + 9, {"aten::mm", "cudaLaunchKernel"}});
  }
  Recording recording = profile.build();
  if (!python) recording.meta.extra["python"] = "no sign of it";
  return explain(recording);
}

TEST(Traces, MemoryThatIsAllocatedToTheEndIsChurnAndThatOfTheFirstStepsIsNot) {
  const Explanation e = with_calls("cudaMalloc", 0, 10);
  const Finding* churn = find(e, Cause::kAllocatorChurn);
  ASSERT_TRUE(churn);
  EXPECT_EQ(churn->cost(), 40 * kMicrosecond);
  EXPECT_EQ(churn->evidence, std::vector<std::string>{"by the trace: cudaMalloc 100 % of this time"});
  ASSERT_TRUE(churn->gain);
  EXPECT_GE(churn->gain->high, 100.0 / 60 * 0.99);
  EXPECT_FALSE(find(with_calls("cudaMalloc", 0, 4), Cause::kAllocatorChurn)) << "an allocator takes it and keeps it";
  EXPECT_FALSE(find(with_calls("cudaMallocAsync", 0, 10), Cause::kAllocatorChurn)) << "of a pool";
  EXPECT_NE(churn->advice.find("torch.cuda.empty_cache()"), std::string::npos);
  const Explanation other = with_calls("cudaMalloc", 0, 10, false);
  const Finding* of_other = find(other, Cause::kAllocatorChurn);
  ASSERT_TRUE(of_other);
  EXPECT_EQ(of_other->advice.find("torch"), std::string::npos) << "a program without a sign of Python";
}

TEST(Traces, CommunicationThatNoOtherKernelHidesIsExposed) {
  const Profile profile{.device = {{0, {"kernel"}},
                                   {30, {"kernel", "communication kernel"}},
                                   {60, {"communication kernel"}},
                                   {80, {"kernel"}}},
                        .thread = {},
                        .kernels = 1};
  const Explanation e = explain(profile.build());
  const Finding* exposed = find_single(e, Cause::kExposedCommunication);
  ASSERT_TRUE(exposed);
  EXPECT_EQ(exposed->cost(), 20 * kMicrosecond);
}

TEST(Traces, LaunchesThatTakeLongerThanTheirKernelsBindThoughTheseAreNotShort) {
  Profile profile;
  profile.kernels = 1;  // of 12 us
  for (Nanos at = 0; at < 100; at += 20) {
    profile.device.push_back({at, {"kernel"}});
    profile.device.push_back({at + 12, {}});
    profile.thread.push_back({at, {}});
    profile.thread.push_back({at + 5, {"cudaLaunchKernel"}});
  }
  const Explanation e = explain(profile.build());
  const Finding* launches = find_single(e, Cause::kLaunchBound);
  ASSERT_TRUE(launches) << e.headline;
  EXPECT_NE(launches->title.find("the thread is still in the calls that make them"), std::string::npos)
      << launches->title;
  EXPECT_TRUE(launches->told_apart_from.empty());
}

TEST(Ranks, TheSlowOneIsNamedAndItsPeersAreNot) {
  std::vector<std::vector<double>> steps(5, std::vector<double>(100, 10));
  for (std::size_t step = 40; step < 60; ++step) steps[3][step] = 14;
  const Explanation e = explain(ranks(steps));
  const Finding* slow = find_single(e, Cause::kStraggler);
  ASSERT_TRUE(slow);
  EXPECT_EQ(slow->title, "Worker 3 is slower than its 4 peers: steps 41 to 60 took it 1.40 times their median");
  EXPECT_EQ(slow->tiers, Tiers("L"));
  EXPECT_TRUE(slow->claims.empty());
  ASSERT_TRUE(slow->gain);
  EXPECT_NEAR(slow->gain->high, (80 * 10.0 + 20 * 14.0) / 1000, 1e-6);
}

TEST(Ranks, WhatGainsNothingOffersNoChange) {
  std::vector<std::vector<double>> steps(5, std::vector<double>(2100, 10));
  for (std::size_t step = 40; step < 60; ++step) steps[3][step] = 14;
  const Explanation e = explain(ranks(steps));
  const Finding* slow = find(e, Cause::kStraggler);
  ASSERT_TRUE(slow && slow->gain);
  EXPECT_LT(slow->gain->high, 1.01);
  EXPECT_EQ(slow->advice, "");
  EXPECT_EQ(slow->bound.find("not worth a change: 1.00x at most"), 0U) << slow->bound;
}

TEST(Ranks, EqualOnesAndTwoOfThemNameNobody) {
  EXPECT_FALSE(find_single(explain(ranks(std::vector<std::vector<double>>(5, std::vector<double>(100, 10)))),
                           Cause::kStraggler));
  std::vector<std::vector<double>> two(2, std::vector<double>(100, 10));
  two[1].assign(100, 20);
  EXPECT_FALSE(find_single(explain(ranks(two)), Cause::kStraggler)) << "of two, who is slow?";
  std::vector<std::vector<double>> short_ones(5, std::vector<double>(10, 10));
  short_ones[1].assign(10, 20);
  EXPECT_FALSE(find_single(explain(ranks(short_ones)), Cause::kStraggler)) << "too few steps";
}

}  // namespace
}  // namespace headroom
