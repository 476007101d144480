// SPDX-License-Identifier: Apache-2.0
#include "diagnose/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "analyze/testing.h"
#include "base/fd.h"

namespace headroom {
namespace {

using testing::cell;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RecordingBuilder;

const Finding* find(const Explanation& e, Cause cause) {
  for (const Finding& finding : e.findings)
    if (finding.cause == cause) return &finding;
  return nullptr;
}

const Finding* find_set(const Explanation& e, Cause candidate) {
  for (const Finding& finding : e.findings)
    if (std::find(finding.candidates.begin(), finding.candidates.end(), candidate) != finding.candidates.end())
      return &finding;
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

// A log without any process: only a GPU's own readings.
Recording log_of(double length, double interval, const std::function<double(double)>& util) {
  RecordingBuilder builder(length, interval);
  Device device;
  device.uuid = "GPU-0";
  const SourceId id = builder.sink().add_source({SourceKind::kGpu, "GPU-0", kNoSource, to_attrs(device)});
  builder.meta().origin = "import:dmon";
  builder.meta().tiers = "N";
  for (double t = interval; t <= length + 1e-9; t += interval)
    builder.sink().add_row(id, RecordingBuilder::at(t),
                           std::array{cell(Metric::kGpuUtil, from_unit(Metric::kGpuUtil, util(t)))});
  return builder.build();
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

TEST(Explain, TheBatchBoundIsTheSmallerOfFactorAndUtilisation) {
  const Recording recording = log_of(300, 3, [](double) { return 0.114; });
  ExplainOptions options;
  options.batch = {32, 128};
  options.remaining = 70 * 3600 * kSecond;
  const Explanation e = explain(recording, options);
  ASSERT_EQ(e.projections.size(), 1u);
  EXPECT_NEAR(e.projections[0].low_seconds / 3600, 17.5, 0.01);
  EXPECT_NEAR(e.projections[0].high_seconds / 3600, 70, 0.01);
  options.batch = {32, 3200};
  EXPECT_NEAR(explain(recording, options).projections[0].low_seconds / 3600, 70 * 0.114, 0.1);
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
  EXPECT_EQ(find(e, Cause::kHealthy), nullptr);
}

TEST(Explain, AFullGpuIsHealthy) {
  const Explanation e = explain(RecordingBuilder(60)
                                    .gpu(0, [](double) { return 0.97; })
                                    .process(100, 1, 0, 60, 0.9)
                                    .context(100, 0, 0, 60)
                                    .build());
  EXPECT_NE(find(e, Cause::kHealthy), nullptr);
}

TEST(Explain, AJobThatNeverTouchesTheGpuIsToldSo) {
  Recording recording = RecordingBuilder(30).gpu(0, [](double) { return 0.0; }).process(100, 1, 0, 30, 0.99).build();
  const Explanation e = explain(recording);
  const Finding* never = find(e, Cause::kJobNeverUsesGpu);
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
  const Finding* wrong = find(e, Cause::kWrongGpuAssignment);
  ASSERT_NE(wrong, nullptr);
  EXPECT_EQ(wrong->cost(), 30 * kSecond);
  EXPECT_THAT(all_evidence(*wrong), HasSubstr("none of them had CUDA_VISIBLE_DEVICES"));
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
  const Finding* wrong = find(bad, Cause::kWrongGpuAssignment);
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
  const Finding* wrong = find(e, Cause::kWrongGpuAssignment);
  ASSERT_NE(wrong, nullptr);
  EXPECT_THAT(wrong->title, HasSubstr("numbers these GPUs otherwise"));
  for (Source& source : recording.sources)
    if (source.kind == SourceKind::kProcess) source.attrs["cuda_device_order"] = "PCI_BUS_ID";
  EXPECT_THAT(find(explain(recording), Cause::kWrongGpuAssignment)->title, HasSubstr("does not show"));
}

TEST(Explain, ForeignKernelsAreATenantAndTheDesktopIsNot) {
  const auto build = [](ContextKind kind) {
    return RecordingBuilder(30)
        .gpu(0, [](double) { return 1.0; })
        .process(100, 1, 0, 30, 0.5)
        .process(900, 1, 0, 30, 0.5, false)
        .context(100, 0, 0, 30, 0.5)
        .context(900, 0, 0, 30, 0.5, kind)
        .build();
  };
  EXPECT_NE(find(explain(build(ContextKind::kCompute)), Cause::kForeignTenant), nullptr);
  EXPECT_EQ(find(explain(build(ContextKind::kGraphics)), Cause::kForeignTenant), nullptr);
}

TEST(Explain, InputNamesWorkersOrCoresOrStorage) {
  const auto build = [](std::vector<Cell> worker) {
    return RecordingBuilder(60)
        .gpu(0, [](double) { return 0.3; })
        .process(100, 1, 0, 60, 0.1)
        .process(101, 100, 0, 60, 0.7, true, worker)
        .context(100, 0, 0, 60)
        .build();
  };
  EXPECT_NE(find(explain(build({})), Cause::kInputTooFewWorkers), nullptr);
  EXPECT_NE(find(explain(build({cell(Metric::kRunDelay, 300'000'000)})), Cause::kCpuOversubscribed), nullptr);
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
  EXPECT_NE(find(explain(build(kReasonHwThermal, 1200)), Cause::kThrottling), nullptr);
  EXPECT_EQ(find(explain(build(kReasonSwPowerCap, 1900)), Cause::kThrottling), nullptr);
  EXPECT_EQ(find(explain(build(kReasonGpuIdle, 1200)), Cause::kThrottling), nullptr);
}

TEST(Explain, ALogLongerThanItsJobIsMostlySomethingElse) {
  ExplainOptions options;
  options.job_duration = 29'800 * kMillisecond;
  const Explanation e = explain(log_of(394, 5, [](double) { return 0.28; }), options);
  const Finding* mostly = find(e, Cause::kMonitoringMostlyElse);
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
    for (const auto& entry : std::filesystem::directory_iterator(HEADROOM_SOURCE_DIR "/src/" + std::string(layer))) {
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

TEST(Explain, AShortRunIsNotToldToBeRecordedAsItWas) {
  RecordingBuilder builder(0.9, 0.5);
  builder.gpu(0, [](double) { return 0.5; }).process(100, 1, 0.1, 0.9, 0.1).context(100, 0, 0.1, 0.9);
  const SourceId gpu = *builder.sink().recording().find(SourceKind::kGpu, "GPU-0");
  const SourceId ring = builder.sink().add_source({SourceKind::kGpuUtilRing, "GPU-0", gpu, {}});
  for (int i = 1; i <= 9; ++i)
    builder.sink().add_row(ring, RecordingBuilder::at(0.1 * i),
                           std::array{cell(Metric::kGpuUtil, from_unit(Metric::kGpuUtil, 0.5))});
  const Explanation e = explain(builder.build());  // no process was looked at twice
  ASSERT_FALSE(e.findings.empty());
  EXPECT_THAT(e.findings[0].advice, HasSubstr("-i 100ms"));
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
    EXPECT_THAT(found->evidence[0], HasSubstr(cpu > 0 ? "it used 0.9" : "it hardly used the CPU"));
    EXPECT_THAT(e.headline, HasSubstr("stood without a process of the job"));
  }
}

}  // namespace
}  // namespace headroom
