// SPDX-License-Identifier: Apache-2.0
#include "diagnose/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "analyze/testing.h"
#include "base/fd.h"
#include "base/testing.h"
#include "diagnose/testing.h"
#include "model/losses.h"

namespace headroom {
namespace {

using testing::cell;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RecordingBuilder;
using ::testing::StartsWith;

const Finding* find_set(const Explanation& e, Cause candidate) {
  for (const Finding& finding : e.findings)
    if (may_be(finding, candidate)) return &finding;
  return nullptr;
}

std::string all_evidence(const Finding& finding) {
  std::string text;
  for (const auto& line : finding.evidence) text += line + "\n";
  return text;
}

// Attributes of the process with this pid, as it was started.
void set_attr(Recording& recording, const std::string& pid, const std::string& name, const std::string& value) {
  for (Source& source : recording.sources)
    if (source.kind == SourceKind::kProcess && source.attrs["pid"] == pid) source.attrs[name] = value;
}

TEST(Explain, ALowLogNamesCandidatesAndABound) {
  const Explanation e = explain(log_of(300, 3, [](double t) { return std::fmod(t, 7) / 30; }));
  const Finding* set = find_set(e, Cause::kBatchTooSmall);
  ASSERT_NE(set, nullptr);
  EXPECT_GT(set->candidates.size(), 4u);
  EXPECT_FALSE(set->cause);
  ASSERT_TRUE(e.bound);
  EXPECT_GT(e.bound->speedup_high, 10) << "a reading every 3 s of what changes within them";
  EXPECT_LT(e.bound->speedup_high, 12.5);
  EXPECT_FALSE(e.bound->condition.empty());
}

TEST(Explain, RecurringIdlePhasesAreNoAlarm) {
  const Explanation e = explain(log_of(1260, 1, [](double t) {
    const double in_epoch = std::fmod(t - 0.001, 420);
    return in_epoch < 300 ? 1.0 : in_epoch < 360 ? 0.30 : 0.0;
  }));
  const Finding* phases = find_set(e, Cause::kValidation);
  ASSERT_NE(phases, nullptr);
  EXPECT_THAT(all_evidence(*phases), HasSubstr("every 7:00"));
  EXPECT_EQ(find_set(e, Cause::kInputTooFewWorkers), nullptr);
  ASSERT_TRUE(e.bound);
  EXPECT_NEAR(e.bound->speedup_high, 1.32, 0.01);
  EXPECT_EQ(find_single(e, Cause::kHealthy), nullptr);
}

TEST(Explain, AFullGpuIsHealthy) {
  const Explanation e = explain(RecordingBuilder(60)
                                    .gpu(0, [](double) { return 0.97; })
                                    .process(100, 1, 0, 60, 0.9)
                                    .context(100, 0, 0, 60)
                                    .build());
  EXPECT_NE(find_single(e, Cause::kHealthy), nullptr);
}

TEST(Explain, AMeanOfGpusThatFaredDifferentlyNamesThem) {
  const auto headline = [](std::vector<double> shares) {
    RecordingBuilder builder(60);
    for (std::size_t i = 0; i < shares.size(); ++i)
      builder.gpu(static_cast<int>(i), [share = shares[i]](double) { return share; });
    for (std::size_t i = 0; i < shares.size(); ++i)
      builder.process(100 + static_cast<int>(i), 1, 0, 60, 0.9)
          .context(100 + static_cast<int>(i), static_cast<int>(i), 0, 60);
    return explain(builder.build()).headline;
  };
  EXPECT_THAT(headline({0.95, 0.05}), HasSubstr("computed for 50 % of 1:00 on average (GPU 0 95 %, GPU 1 5.0 %)."));
  EXPECT_THAT(headline({0.9, 0.9, 0.9, 0.9, 0.9, 0.3}), HasSubstr(" on average (from 30 % on GPU 5 to 90 % on GPU "));
  EXPECT_THAT(headline({0.8, 0.85}), Not(HasSubstr("on average")));
}

TEST(Explain, AFindingThatIsOfOneGpuAmongSeveralNamesIt) {
  const auto first = [](double util0, double util1) {
    RecordingBuilder builder(60);
    builder.gpu(0, [=](double) { return util0; }).gpu(1, [=](double) { return util1; });
    builder.sleeping_in(WaitChannel::kSleep);
    for (const int gpu : {0, 1}) builder.process(100 + gpu, 1, 0, 60, 0).context(100 + gpu, gpu, 0, 60);
    return explain(builder.build()).findings.front();
  };
  const Finding one = first(1, 0.3);
  EXPECT_THAT(one.title, StartsWith("GPU 1 was idle"));
  const Finding both = first(0.5, 0.3);
  EXPECT_THAT(both.title, Not(HasSubstr("GPU 1")));
  EXPECT_THAT(both.evidence, Not(Contains(HasSubstr("of this time is GPU"))));
  RecordingBuilder nearly(60);
  nearly.gpu(0, [](double) { return 0.99; }).gpu(1, [](double) { return 0.3; }).sleeping_in(WaitChannel::kSleep);
  for (const int gpu : {0, 1}) nearly.process(100 + gpu, 1, 0, 60, 0).context(100 + gpu, gpu, 0, 60);
  EXPECT_THAT(explain(nearly.build()).findings.front().evidence, Contains("99 % of this time is GPU 1's"));
}

TEST(Explain, AStartUpIsProvisionalWhileItsReadingsComeIn) {
  const auto startup = [](double length, const std::string& stop_reason) {
    RecordingBuilder builder(length);
    builder.gpu(0, [](double t) { return t < 2.5 ? 0.0 : 0.9; }).process(100, 1, 0, length, 0.9);
    builder.context(100, 0, 2, length);
    builder.meta().stop_reason = stop_reason;
    const Explanation e = explain(builder.build());
    const auto found = std::find_if(e.findings.begin(), e.findings.end(),
                                    [](const Finding& f) { return f.title.starts_with("Start-up"); });
    return found == e.findings.end() ? std::vector<std::string>{"none"} : found->evidence;
  };
  const auto provisional =
      Contains("provisional: readings still to come may place the first kernel up to 1.0 s earlier");
  EXPECT_THAT(startup(5, ""), provisional);
  EXPECT_THAT(startup(5, "job_ended"), Not(provisional));
  EXPECT_THAT(startup(20, ""), Not(provisional)) << "they are there";
  EXPECT_THAT(startup(20, ""), Not(Contains("none")));
}

TEST(Explain, AJobThatHasRunNoKernelYetIsSaidToBeStarting) {
  const auto explained = [](const std::string& stop_reason) {
    RecordingBuilder builder(20);
    builder.gpu(0, [](double) { return 0.0; }).process(100, 1, 0, 20, 0.9).context(100, 0, 4, 20);
    builder.meta().stop_reason = stop_reason;
    return explain(builder.build());
  };
  const Explanation now = explained("");
  EXPECT_EQ(now.findings.front().title, "Start-up so far: no kernel has run yet");
  EXPECT_THAT(now.headline, HasSubstr("waited 100 % for the start-up"));
  const Explanation ended = explained("job_ended");
  EXPECT_EQ(ended.findings.front().title, "The job held GPU 0 and never ran a kernel on it");
}

TEST(Explain, AJobThatSleepsAndNeverComputesWaitsForNoCode) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.0; }).sleeping_in(WaitChannel::kPoll);
  builder.process(100, 1, 0, 60, 0.01).context(100, 0, 1, 60).stacks(100, 0, 60, {"fetch (/u/train.py:5)"});
  const Explanation e = explain(builder.build());
  ASSERT_THAT(e.findings.front().title, HasSubstr("never ran a kernel on it: it slept or waited"));
  EXPECT_TRUE(e.findings.front().mostly_waits);
  EXPECT_THAT(e.headline, Not(HasSubstr("code of the job")));
}

TEST(Explain, AJobThatGoesOnIsNeverSaidNeverToHaveHeldAGpu) {
  RecordingBuilder builder(20);
  builder.gpu(0, [](double) { return 0.0; }).process(100, 1, 0, 20, 0.01);
  builder.meta().stop_reason = "";
  const Explanation now = explain(builder.build());
  EXPECT_EQ(now.ledger.total(Account::kStartup), 20 * kSecond);
  EXPECT_THAT(now.headline, HasSubstr("waited 100 % for the start-up"));
  ASSERT_FALSE(now.findings.empty());
  EXPECT_EQ(now.findings.front().title, "Start-up so far: no kernel has run yet");
  EXPECT_EQ(now.findings.front().confidence, Confidence::kLow);
  EXPECT_THAT(all_evidence(now.findings.front()), HasSubstr("has held a compute context so far"));
  for (const HealthCheck& check : now.health) EXPECT_NE(check.good, Answer::kNo) << check.evidence;
}

TEST(Explain, OfARecordingThatIsBeingWrittenNothingMayHaveBeenReadYet) {
  Recording recording;
  recording.meta.origin = "batch";
  recording.meta.start = recording.meta.end = kSecond;
  EXPECT_EQ(explain(recording).headline, "So far: Nothing has been read yet.");
  recording.meta.stop_reason = "job_ended";
  EXPECT_THAT(explain(recording).headline, StartsWith("No GPU was recorded"));
}

TEST(Explain, AJobWithoutAGpuHasATimeWhileItRuns) {
  RecordingBuilder builder(20);
  builder.process(100, 1, 0, 20, 0.5);
  builder.meta().stop_reason = "";
  EXPECT_EQ(explain(builder.build()).headline, "So far: No GPU was recorded in 20.0 s.");
}

TEST(Explain, StepsAreAtLeastSoManyWhereSomeOfWhatCountsThemWasLost) {
  const auto headline = [](LossKind lost) {
    RecordingBuilder builder(60);
    builder.gpu(0, [](double) { return 0.5; }).process(100, 1, 0, 60, 0.9).context(100, 0, 0, 60);
    builder.marks(100, "marks", {}, {{5, 0}, {55, 500}});
    builder.sink().add_loss(make_loss(lost, 1, ""));
    return explain(builder.build()).headline;
  };
  EXPECT_THAT(headline(LossKind::kMarkLost),
              HasSubstr("From its first step to its last the job did at least 10 steps per second"));
  EXPECT_THAT(headline(LossKind::kOutputLost),
              HasSubstr("From its first step to its last the job did 10 steps per second"))
      << "marks count them";
}

TEST(Explain, ARecordingThatGoesOnSaysSo) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.5; }).process(100, 1, 0, 60, 0.9).context(100, 0, 0, 60);
  builder.meta().stop_reason = "";
  EXPECT_THAT(explain(builder.build()).headline, StartsWith("So far: The GPU computed"));
}

TEST(Explain, AJobThatNeverTouchesTheGpuIsToldSo) {
  Recording recording = RecordingBuilder(30).gpu(0, [](double) { return 0.0; }).process(100, 1, 0, 30, 0.99).build();
  const Explanation e = explain(recording);
  const Finding* never = find_single(e, Cause::kJobNeverUsesGpu);
  ASSERT_NE(never, nullptr);
  EXPECT_THAT(all_evidence(*never), HasSubstr("was not set"));
  EXPECT_EQ(e.ledger.total(Account::kNotUsed), 30 * kSecond);
  EXPECT_THAT(e.headline, HasSubstr("never used a GPU"));
}

TEST(Explain, ProcessesCrowdedOnOneGpuWithoutAMask) {
  const Recording recording = RecordingBuilder(30)
                                  .gpu(0, [](double) { return 0.8; })
                                  .gpu(1, [](double) { return 0.0; })
                                  .process(100, 1, 0, 30, 0.5)
                                  .process(101, 1, 0, 30, 0.5)
                                  .context(100, 0, 0, 30)
                                  .context(101, 0, 0, 30)
                                  .build();
  const Explanation e = explain(recording);
  const Finding* wrong = find_single(e, Cause::kWrongGpuAssignment);
  ASSERT_NE(wrong, nullptr);
  ASSERT_TRUE(e.bound);
  EXPECT_THAT(e.bound->condition, ::testing::HasSubstr("may gain more, as it changes where that work is"));
  EXPECT_EQ(wrong->cost(), 30 * kSecond);
  EXPECT_THAT(all_evidence(*wrong), HasSubstr("none of them had CUDA_VISIBLE_DEVICES"));
}

// A number that arguments do not tell lies beyond the mask: the workers for GPU 1 fail, and only those for GPU 0
// remain.
TEST(Explain, WorkersThatFailUnderTheirMaskDidNotGoToTheOtherGpu) {
  Recording recording = RecordingBuilder(30)
                            .gpu(0, [](double) { return 0.8; })
                            .gpu(1, [](double) { return 0.0; })
                            .process(90, 1, 0, 30, 0.01)
                            .process(100, 90, 0, 15, 0.5)
                            .process(101, 90, 0, 2, 0.5)
                            .process(102, 90, 14, 30, 0.5)
                            .context(100, 0, 0, 15)
                            .context(102, 0, 14, 30)
                            .build();
  for (const char* pid : {"100", "102"}) set_attr(recording, pid, "cuda_visible_devices", "0");
  set_attr(recording, "101", "cuda_visible_devices", "1");
  const auto wrong = [&] {
    std::vector<std::string> titles;
    for (const Finding& finding : explain(recording).findings)
      if (finding.cause == Cause::kWrongGpuAssignment) titles.push_back(finding.title);
    return titles;
  };
  EXPECT_THAT(wrong(), Not(Contains(HasSubstr("ended before")))) << "it may have been for the CPU";
  set_attr(recording, "101", "exit_code", "1");
  EXPECT_THAT(wrong(), Contains("Workers for GPU 1 ended before they held a context"));
  const Explanation e = explain(recording);
  const auto failed = std::find_if(e.findings.begin(), e.findings.end(), [](const Finding& finding) {
    return finding.title == "Workers for GPU 1 ended before they held a context";
  });
  ASSERT_NE(failed, e.findings.end());
  EXPECT_EQ(failed->confidence, Confidence::kMedium);
  EXPECT_THAT(all_evidence(*failed), HasSubstr("1 process with CUDA_VISIBLE_DEVICES=1 ended with exit code 1"));
  set_attr(recording, "102", "cuda_visible_devices", "1");  // another one with this mask held a GPU
  EXPECT_THAT(wrong(), Not(Contains(HasSubstr("ended before"))));
  set_attr(recording, "102", "cuda_visible_devices", "1");
  set_attr(recording, "100", "cuda_visible_devices", "1");
  set_attr(recording, "101", "cuda_visible_devices", "0");
  EXPECT_THAT(wrong(), Not(Contains(HasSubstr("ended before")))) << "number 0 is within a mask of GPU 0";
}

// Workers of a pool that each start a process with a mask, of which those for one GPU are gone before anybody saw how.
struct Pool {
  explicit Pool(int dying) {
    RecordingBuilder builder(30);
    builder.gpu(0, [dying](double) { return dying == 0 ? 0.0 : 0.8; });
    builder.gpu(1, [dying](double) { return dying == 1 ? 0.0 : 0.8; });
    builder.process(90, 1, 0, 30, 0.01).process(91, 90, 0, 30, 0.01).process(92, 90, 0, 30, 0.01);
    for (int i = 0; i < 3; ++i) {
      builder.process(100 + i, 91, 1 + i * 9, 9 + i * 9, 0.5).context(100 + i, 1 - dying, 1 + i * 9, 9 + i * 9);
      builder.process(200 + i, 92, 1 + i * 9, 1.5 + i * 9, 0.5);
    }
    recording = builder.build();
    for (const char* pid : {"100", "101", "102", "200", "201", "202"}) {
      set_attr(recording, pid, "cuda_visible_devices", (pid[0] == '2') == (dying == 1) ? "1" : "0");
      set_attr(recording, pid, "cmdline", std::string("python3 worker.py window-") + pid);
    }
  }
  Recording recording;
};

TEST(Explain, WorkersThatAreGoneUnderOneMaskAreNoListOfOneGpu) {
  const Explanation e = explain(Pool(1).recording);
  const Finding* gone = find_single(e, Cause::kWrongGpuAssignment);
  ASSERT_NE(gone, nullptr);
  EXPECT_EQ(gone->title, "Workers for GPU 1 ended before the driver saw one of them");
  EXPECT_EQ(gone->confidence, Confidence::kLow);
  EXPECT_THAT(all_evidence(*gone), HasSubstr("3 processes with CUDA_VISIBLE_DEVICES=1 ended within"));
  EXPECT_THAT(all_evidence(*gone), HasSubstr("3 like them with other masks held one"));
  Pool one(1);
  for (const char* pid : {"201", "202"}) set_attr(one.recording, pid, "exit_code", "0");
  for (const Finding& finding : explain(one.recording).findings)
    EXPECT_THAT(finding.title, Not(HasSubstr("Workers for"))) << "some ended well";
}

// `held` workers with mask 0 that held a GPU, one that was too short to be seen on it, and four with mask 1 that never
// were.
TEST(Explain, AWorkerThatWasTooShortToBeSeenIsNoProofThatAMaskHasNoPartInIt) {
  const auto gone = [](int held) {
    RecordingBuilder builder(30);
    builder.gpu(0, [](double) { return 0.8; }).gpu(1, [](double) { return 0.0; }).process(90, 1, 0, 30, 0.01);
    std::map<std::string, std::string> masks{{"300", "0"}};
    builder.process(300, 90, 1, 1.2, 0.5);
    for (int i = 0; i < held; ++i) {
      builder.process(100 + i, 90, 1 + 4 * i, 4 + 4 * i, 0.5).context(100 + i, 0, 1 + 4 * i, 4 + 4 * i);
      masks[std::to_string(100 + i)] = "0";
    }
    for (int i = 0; i < 4; ++i) {
      builder.process(200 + i, 90, 1 + 5 * i, 1.4 + 5 * i, 0.5);
      masks[std::to_string(200 + i)] = "1";
    }
    Recording recording = builder.build();
    for (const auto& [pid, mask] : masks) {
      set_attr(recording, pid, "cuda_visible_devices", mask);
      set_attr(recording, pid, "cmdline", "python3 worker.py");
    }
    const Explanation e = explain(recording);
    const auto found = std::find_if(e.findings.begin(), e.findings.end(), [](const Finding& finding) {
      return finding.title == "Workers for GPU 1 ended before the driver saw one of them";
    });
    return found == e.findings.end() ? std::string() : all_evidence(*found);
  };
  EXPECT_THAT(gone(6), HasSubstr("6 like them with other masks held one, and of 1 no context was seen either"));
  EXPECT_EQ(gone(2), "") << "it may be chance";
}

TEST(Explain, AnIdleGpuWhoseWorkersAreGoneSaysSo) {
  const Explanation e = explain(Pool(0).recording);
  const Finding* idle = find_single(e, Cause::kWrongGpuAssignment);
  ASSERT_NE(idle, nullptr);
  EXPECT_EQ(idle->title, "GPU 0 did nothing while GPU 1 worked") << "number 0 is within a mask of GPU 0";
  EXPECT_EQ(idle->confidence, Confidence::kLow);
  EXPECT_THAT(all_evidence(*idle), HasSubstr("3 processes with CUDA_VISIBLE_DEVICES=0 ended within"));
  EXPECT_THAT(idle->advice, HasSubstr("what those workers printed"));
}

TEST(Explain, AJobThatTellsItsStepsIsNotStartingUp) {
  RecordingBuilder builder(20);
  builder.gpu(0, [](double) { return 0.0; }).process(100, 1, 0, 20, 0.5).process({7, 1, 0, 20, 0.1, false});
  builder.context(7, 0, 0, 20, 0).marks(100, "output", {}, {{1, 0}, {19, 90}});
  builder.meta().stop_reason = "";
  EXPECT_THAT(explain(builder.build()).headline,
              HasSubstr("So far: The job says how far it is, and was seen on no GPU"));
}

TEST(Explain, AnOrdinalOutsideTheMaskContradictsIt) {
  Recording recording = RecordingBuilder(30)
                            .gpu(0, [](double) { return 0.0; })
                            .gpu(1, [](double) { return 0.8; })
                            .process(100, 1, 0, 30, 0.5)
                            .context(100, 1, 0, 30)
                            .build();
  set_attr(recording, "100", "cuda_visible_devices", "1");
  set_attr(recording, "100", "cmdline", "python3 train.py --gpu-device-id 1");
  const Explanation bad = explain(recording);
  const Finding* wrong = find_single(bad, Cause::kWrongGpuAssignment);
  ASSERT_NE(wrong, nullptr);
  EXPECT_THAT(wrong->title, HasSubstr("contradicts"));
  set_attr(recording, "100", "cmdline", "python3 train.py --gpu-device-id 0");
  const Explanation good = explain(recording);
  for (const Finding& finding : good.findings) EXPECT_THAT(finding.title, Not(HasSubstr("contradicts")));
}

TEST(Explain, FastestFirstIsToldFromALateMask) {
  Recording recording = RecordingBuilder(30)
                            .gpu(0, [](double) { return 0.0; })
                            .gpu(1, [](double) { return 0.8; })
                            .process(100, 1, 0, 30, 0.5)
                            .context(100, 1, 0, 30)
                            .build();
  set_attr(recording, "100", "cuda_visible_devices", "0");
  for (Source& source : recording.sources)
    if (source.kind == SourceKind::kGpu) {
      source.attrs["cuda_cores"] = source.key == "GPU-0" ? "2560" : "10752";
      source.attrs["sm_clock_max_mhz"] = "1500";
    }
  const Explanation e = explain(recording);
  const Finding* wrong = find_single(e, Cause::kWrongGpuAssignment);
  ASSERT_NE(wrong, nullptr);
  EXPECT_THAT(wrong->title, HasSubstr("numbers these GPUs otherwise"));
  for (Source& source : recording.sources)
    if (source.kind == SourceKind::kProcess) source.attrs["cuda_device_order"] = "PCI_BUS_ID";
  EXPECT_THAT(find_single(explain(recording), Cause::kWrongGpuAssignment)->title, HasSubstr("does not show"));
}

TEST(Explain, ForeignKernelsAreATenantAndTheDesktopIsNot) {
  const auto build = [](ContextKind kind) {
    return RecordingBuilder(30)
        .gpu(0, [](double) { return 1.0; })
        .process(100, 1, 0, 30, 0.5)
        .process({900, 1, 0, 30, 0.5, false})
        .context(100, 0, 0, 30, 0.5)
        .context({900, 0, 0, 30, 0.5, kind})
        .build();
  };
  EXPECT_NE(find_single(explain(build(ContextKind::kCompute)), Cause::kForeignTenant), nullptr);
  EXPECT_EQ(find_single(explain(build(ContextKind::kGraphics)), Cause::kForeignTenant), nullptr);
}

TEST(Explain, InputNamesWorkersOrCoresOrStorage) {
  const auto build = [](const std::vector<Cell>& worker) {
    return RecordingBuilder(60)
        .gpu(0, [](double) { return 0.3; })
        .process(100, 1, 0, 60, 0.1)
        .process({101, 100, 0, 60, 0.7, true, worker})
        .context(100, 0, 0, 60)
        .build();
  };
  EXPECT_NE(find_single(explain(build({})), Cause::kInputTooFewWorkers), nullptr);
  EXPECT_NE(find_single(explain(build({cell(Metric::kRunDelay, 300'000'000)})), Cause::kCpuOversubscribed), nullptr);
}

TEST(Explain, HeldAfterTheLastKernelIsUnreleased) {
  const Explanation e = explain(RecordingBuilder(100)
                                    .gpu(0, [](double t) { return t <= 50 ? 0.9 : 0.0; })
                                    .process(100, 1, 0, 100, 0.01)
                                    .context(100, 0, 0, 100)
                                    .build());
  EXPECT_EQ(e.ledger.total(Account::kTeardown), 50 * kSecond);
  EXPECT_NE(find_set(e, Cause::kUnreleasedAfterWork), nullptr);
}

TEST(Explain, ThrottlingNeedsALastingReasonAndLostClocks) {
  const auto build = [](std::int64_t reasons, std::int64_t clock) {
    RecordingBuilder builder(60);
    Device device;
    device.uuid = "GPU-0";
    device.sm_clock_max_mhz = 1980;
    const SourceId id = builder.sink().add_source({SourceKind::kGpu, "GPU-0", kNoSource, to_attrs(device)});
    for (int i = 1; i <= 60; ++i)
      builder.sink().add_row(id, RecordingBuilder::at(i),
                             std::array{cell(Metric::kGpuUtil, 9900), cell(Metric::kEventReasons, reasons),
                                        cell(Metric::kSmClock, clock)});
    return builder.build();
  };
  EXPECT_NE(find_single(explain(build(kReasonHwThermal, 1200)), Cause::kThrottling), nullptr);
  EXPECT_EQ(find_single(explain(build(kReasonSwPowerCap, 1900)), Cause::kThrottling), nullptr);
  EXPECT_EQ(find_single(explain(build(kReasonGpuIdle, 1200)), Cause::kThrottling), nullptr);
  EXPECT_NE(find_single(explain(build(kReasonSwThermal, 1850)), Cause::kThrottling), nullptr)
      << "heat is no usual limit";
  EXPECT_EQ(find_single(explain(build(kReasonSwThermal | kReasonSwPowerCap, 1850)), Cause::kThrottling), nullptr);
}

TEST(Explain, ALogLongerThanItsJobIsMostlySomethingElse) {
  ExplainOptions options;
  options.job_duration = 29'800 * kMillisecond;
  const Explanation e = explain(log_of(394, 5, [](double) { return 0.28; }), options);
  const Finding* mostly = find_single(e, Cause::kMonitoringMostlyElse);
  ASSERT_NE(mostly, nullptr);
  EXPECT_THAT(all_evidence(*mostly), HasSubstr("most of it was something else"));
}

TEST(Explain, NoGpuAtAllStillAnswers) {
  const Explanation e = explain(RecordingBuilder(10).process(100, 1, 0, 10, 0.5).build());
  EXPECT_THAT(e.headline, HasSubstr("No GPU"));
  EXPECT_EQ(e.ledger.budget(), 0);
}

// 18 minutes of which 6 train windows on a GPU: 15 with twice the speed, never under 12.
TEST(Explain, ThePartWithoutAGpuBoundsTheWholePipeline) {
  RecordingBuilder builder(1080);
  builder.gpu(0, [](double t) { return t > 300 && t <= 660 ? 0.3 : 0.0; });
  builder.process(100, 1, 0, 1080, 0.9);
  for (int window = 0; window < 36; ++window) {
    builder.process(200 + window, 100, 300 + 10 * window, 310 + 10 * window, 0.9);
    builder.context(200 + window, 0, 302 + 10 * window, 310 + 10 * window);
  }
  const Explanation e = explain(builder.build());
  ASSERT_TRUE(e.pipeline);
  EXPECT_NEAR(seconds(e.pipeline->gpu_part), 360, 5);
  EXPECT_NEAR(seconds(e.pipeline->rest), 720, 5);
}

TEST(Explain, FindingsComeMostLostFirst) {
  const Explanation e = explain(RecordingBuilder(100)
                                    .gpu(0, [](double t) { return t < 30 ? 0.0 : 0.5; })
                                    .process(100, 1, 0, 100, 0.95)
                                    .context(100, 0, 5, 100)
                                    .build());
  for (std::size_t i = 1; i < e.findings.size(); ++i) EXPECT_GE(e.findings[i - 1].cost(), e.findings[i].cost());
  EXPECT_GE(e.findings.size(), 2u);
}

// What is read lazily must not be read at all: every metric that analysis or diagnosis names is one that it gets.
TEST(Explain, NoSourceNamesAMetricThatIsLeftOut) {
  std::string sources;
  for (const char* layer : {"analyze", "diagnose", "view"})
    for (const auto& entry : std::filesystem::directory_iterator(in_checkout("src/" + std::string(layer)))) {
      const std::string name = entry.path().filename().string();
      if (name.find("test") == std::string::npos && name != "CMakeLists.txt")
        sources += read_file(entry.path()).value();
    }
  const auto begin = sources.find("kNotExplained{");
  ASSERT_NE(begin, std::string::npos);
  sources.erase(begin, sources.find("};", begin) - begin);
  EXPECT_THAT(sources, HasSubstr("Metric::kGpuUtil"));
  EXPECT_THAT(sources, Not(HasSubstr(".columns"))) << "metrics are asked for by name only";
  const auto is_named = [&](std::string_view metric) {
    for (auto at = sources.find(metric); at != std::string::npos; at = sources.find(metric, at + 1))
      if (std::isalnum(static_cast<unsigned char>(sources[at + metric.size()])) == 0) return true;
    return false;
  };
#define HEADROOM_METRIC_ROW(id, name, unit, kind, exp10, help) {Metric::id, "Metric::" #id},
  const std::pair<Metric, std::string_view> all[] = {HEADROOM_METRICS(HEADROOM_METRIC_ROW)};
#undef HEADROOM_METRIC_ROW
  const auto out = metrics_not_explained();
  for (const auto& [metric, named] : all)
    if (std::find(out.begin(), out.end(), metric) != out.end()) {
      EXPECT_FALSE(is_named(named)) << named;
    }
}

// No process is looked at twice.
Explanation short_run(double interval) {
  RecordingBuilder builder(0.9, 0.5);
  builder.meta().interval = RecordingBuilder::ns(interval);
  builder.gpu(0, [](double) { return 0.5; }).process(100, 1, 0.1, 0.9, 0.1).context(100, 0, 0.1, 0.9);
  const SourceId gpu = *builder.sink().recording().find(SourceKind::kGpu, "GPU-0");
  const SourceId ring = builder.sink().add_source({SourceKind::kGpuUtilRing, "GPU-0", gpu, {}});
  for (int i = 1; i <= 9; ++i)
    builder.sink().add_row(ring, RecordingBuilder::at(0.1 * i),
                           std::array{cell(Metric::kGpuUtil, from_unit(Metric::kGpuUtil, 0.5))});
  return explain(builder.build());
}

TEST(Explain, AShortRunIsNotToldToBeRecordedAsItWas) {
  const Explanation e = short_run(0.5), often = short_run(0.1);
  ASSERT_FALSE(e.findings.empty());
  EXPECT_THAT(e.findings[0].advice, HasSubstr("-i 100ms"));
  ASSERT_FALSE(often.findings.empty());
  EXPECT_THAT(often.findings[0].advice, Not(HasSubstr("-i 100ms")));
  EXPECT_THAT(often.findings[0].advice, HasSubstr("longer run"));
}

TEST(Explain, StepsOfAScriptThatUseNoGpuAreNamed) {
  const auto told = [](double cpu) {
    RecordingBuilder builder(30, 0.5);
    builder.gpu(0, [](double t) { return t > 10 && t <= 20 ? 0.95 : 0.0; });
    builder.process(90, 1, 0, 30, 0).process(91, 90, 0, 9.5, cpu).process(92, 90, 10, 20, 0.9).context(92, 0, 10.5, 20);
    return explain(builder.process(93, 90, 20.5, 30, cpu).build());
  };
  for (const double cpu : {1.0, 0.0}) {
    const Explanation e = told(cpu);
    const auto found = std::find_if(e.findings.begin(), e.findings.end(), [](const Finding& finding) {
      return finding.title == "The job went on while none of its processes was on the GPU";
    });
    ASSERT_NE(found, e.findings.end());
    EXPECT_NEAR(seconds(found->cost()), 20, 1.1);
    EXPECT_THAT(found->evidence[1], HasSubstr(cpu > 0 ? "it used 0.9" : "it hardly used the CPU"));
    EXPECT_EQ(found->cause, Cause::kStepsWithoutGpu);
    EXPECT_THAT(found->evidence[0],
                HasSubstr("2 programs of the job ran that were not seen on a GPU, the longest for 9.5 s: process 9"));
    EXPECT_THAT(e.headline, HasSubstr("stood without a process of the job"));
  }
}

// Two processes with a GPU each, of which one is done after 10 s of 40, or which come one after the other.
TEST(Explain, AGpuThatStandsFreeWhileTheJobUsesAnotherIsNoStepWithoutGpu) {
  const auto told = [](double begin, double end) {
    RecordingBuilder builder(40, 0.5);
    builder.gpu(0, [](double t) { return t <= 10 ? 1.0 : 0.0; });
    builder.gpu(1, [=](double t) { return t > begin && t <= end ? 1.0 : 0.0; });
    builder.process(90, 1, 0, 40, 0).process(91, 90, 0, 10, 0.9).context(91, 0, 0, 10);
    return explain(builder.process(92, 90, begin, end, 0.9).context(92, 1, begin, end).build());
  };
  const auto free = [](const Explanation& e) {
    return std::find_if(e.findings.begin(), e.findings.end(),
                        [](const Finding& f) { return f.title.find("stood free while") != std::string::npos; });
  };
  const Explanation uneven = told(0, 40), in_turn = told(10, 20);
  ASSERT_NE(free(uneven), uneven.findings.end()) << uneven.headline;
  EXPECT_EQ(free(uneven)->title, "GPU 0 stood free while another GPU of the job was in use");
  EXPECT_NEAR(seconds(free(uneven)->cost()), 30, 1.1);
  EXPECT_NEAR(free(uneven)->gain->high, 40 / 25.0, 0.05) << "50 s of kernels on two GPUs";
  EXPECT_THAT(uneven.findings.front().title, Not(HasSubstr("went on")));
  ASSERT_NE(free(in_turn), in_turn.findings.end()) << in_turn.headline;
  EXPECT_NEAR(seconds(free(in_turn)->cost()), 20, 1.1);
  EXPECT_NEAR(free(in_turn)->gain->high, 40 / 30.0, 0.05) << "10 s of 40 are saved";
  EXPECT_THAT(in_turn.findings.front().title, HasSubstr("went on")) << "afterwards both are free";
}

// Kernels for 10 s on one GPU, then for 10 s on the other one; or on both at once, for longer on one of them.
TEST(Explain, AProcessThatComputesOnOneGpuNeitherStartsNorEndsOnAnother) {
  const auto told = [](double until, double from) {
    RecordingBuilder builder(20);
    builder.gpu(0, [=](double t) { return t <= until ? 1.0 : 0.0; });
    builder.gpu(1, [=](double t) { return t > from ? 1.0 : 0.0; });
    builder.process(100, 1, 0, 20, 0.1).context(100, 0, 0, 20).context(100, 1, 0, 20);
    return explain(builder.stacks(100, 0, 20, {"train (/u/train.py:1)", "_wait (/x/headroom_sim.py:1)"}).build());
  };
  const Explanation in_turn = told(10, 10), at_once = told(20, 5);
  for (const Account account : {Account::kStartup, Account::kTeardown}) EXPECT_EQ(in_turn.ledger.total(account), 0);
  EXPECT_THAT(in_turn.findings.front().title, HasSubstr("take turns"));
  EXPECT_THAT(in_turn.findings.front().advice, HasSubstr("or fewer GPUs"));
  EXPECT_THAT(at_once.findings.front().advice, Not(HasSubstr("fewer"))) << "one would take 35 s";
}

// Who holds memory that the job had no use for costs it nothing.
TEST(Explain, OthersMemoryMattersWhereItIsShort) {
  const auto build = [](double used) {
    RecordingBuilder builder(30);
    builder.gpu(
        0, [](double) { return 1.0; }, used);
    builder.process(100, 1, 0, 30, 0.9).context(100, 0, 0, 30, 1.0);
    return builder.process({900, 1, 0, 30, 0.0, false})
        .context({900, 0, 0, 30, 0.0, ContextKind::kCompute, 5LL << 30})
        .build();
  };
  constexpr double kAll = 48.0 * (1LL << 30);
  EXPECT_EQ(find_single(explain(build(0.5 * kAll)), Cause::kForeignTenant), nullptr);
  const Explanation e = explain(build(0.95 * kAll));
  const Finding* tenant = find_single(e, Cause::kForeignTenant);
  ASSERT_NE(tenant, nullptr);
  EXPECT_THAT(tenant->title, HasSubstr("held memory of its GPUs"));
  const auto memory =
      std::find_if(e.health.begin(), e.health.end(), [](const auto& one) { return one.check == "memory"; });
  ASSERT_NE(memory, e.health.end());
  EXPECT_THAT(memory->evidence, HasSubstr("(processes outside the job held 5120 MiB)"));
}

// What lives beside the training, too, and what starts and ends it, are no steps.
TEST(Explain, AHelperThatLivesOnBetweenTheStepsIsNone) {
  RecordingBuilder builder(30, 0.5);
  builder.gpu(0, [](double t) { return t <= 12 || t > 20 ? 0.95 : 0.0; });
  builder.process(90, 1, 0, 30, 0.5).process(91, 90, 0, 30, 0.5);
  builder.process(92, 90, 0, 12, 0.9).context(92, 0, 0, 12).process(93, 90, 20, 30, 0.9).context(93, 0, 20, 30);
  const Explanation e = explain(builder.build());
  const auto found = std::find_if(e.findings.begin(), e.findings.end(), [](const Finding& finding) {
    return finding.title == "The job went on while none of its processes was on the GPU";
  });
  ASSERT_NE(found, e.findings.end());
  EXPECT_FALSE(found->cause);
  EXPECT_THAT(found->candidates, ::testing::Contains(Cause::kStepsWithoutGpu));
}

// The step was seen at 20 s and found gone at 20.9 s.
TEST(Explain, TimeInWhichAProcessEndedIsClaimedByNoFindingButBoundsOne) {
  const auto told = [](double end) {
    RecordingBuilder builder(30, 1);
    builder.gpu(0, [](double t) { return t <= 20 ? 0.95 : 0.0; });
    builder.process(90, 1, 0, 30, 0).process(92, 90, 0, end, 0.9).context(92, 0, 0, end);
    return explain(builder.process(93, 90, 20.5, 30, 1.0).build());
  };
  const Explanation unsure = told(20.9), sure = told(20);
  for (const Finding& finding : unsure.findings)
    for (const ClaimedPiece& piece : finding.claims)
      EXPECT_TRUE(piece.end <= RecordingBuilder::at(20) || piece.begin >= RecordingBuilder::at(20.9)) << finding.title;
  const auto steps = [](const Explanation& e) {
    return std::find_if(e.findings.begin(), e.findings.end(), [](const Finding& finding) {
      return finding.title == "The job went on while none of its processes was on the GPU";
    });
  };
  ASSERT_NE(steps(unsure), unsure.findings.end());
  ASSERT_NE(steps(sure), sure.findings.end());
  EXPECT_NEAR(seconds(steps(unsure)->cost()), 9.1, 1e-6);
  EXPECT_NEAR(steps(unsure)->gain->high, steps(sure)->gain->high, 1e-6) << "at most all of it";
}

TEST(Explain, OfAJobThatIsWellOnceItHasStartedTheHeadlineSaysSo) {
  const auto headline = [](double busy) {
    RecordingBuilder builder(60);
    builder.gpu(0, [=](double t) { return t <= 20 ? 0.0 : busy; }).process(7, 1, 0, 60, 0.9).context(7, 0, 0, 60);
    return explain(builder.build()).headline;
  };
  EXPECT_THAT(headline(0.97), HasSubstr("From its first kernel to its last it computed for 97 %."));
  EXPECT_THAT(headline(0.7), Not(HasSubstr("From its first kernel")));
}

}  // namespace
}  // namespace headroom
