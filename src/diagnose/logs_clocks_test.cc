// SPDX-License-Identifier: Apache-2.0
// Logs of GPUs alone: clocks, power and heat.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "analyze/testing.h"
#include "base/human.h"
#include "diagnose/explain.h"
#include "diagnose/testing.h"
#include "model/losses.h"

namespace headroom {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(LogClocks, ACapBelowTheLimitOnACoolGpuIsNotToldToCoolOrToRaiseIt) {
  const auto advice = [](double watts, double heat) {
    Recording recording = log_of_gpus({[=](double) { return LogRow{1.0, 0.4, watts, 12e9}; }}, 120);
    recording.sources[0].attrs["sm_clock_max_mhz"] = "1410";
    recording.sources[0].attrs["power_limit_watts"] = "400";
    Track& track = recording.tracks[0];
    const auto all = [&](Metric metric, double value) {
      track.columns.push_back({metric, std::vector<std::int64_t>(track.at.size(), from_unit(metric, value)), {}});
    };
    all(Metric::kEventReasons, static_cast<double>(kReasonSwPowerCap)), all(Metric::kSmClock, 800),
        all(Metric::kTemperature, heat);
    const Explanation e = explain(recording);
    const Finding* finding = find(e, Cause::kThrottling);
    return finding ? finding->advice : "nothing";
  };
  EXPECT_THAT(advice(240, 61), HasSubstr("something else caps its power"));
  EXPECT_THAT(advice(395, 61), HasSubstr("a higher power limit"));
  EXPECT_THAT(advice(240, 90), HasSubstr("cooling"));
}

TEST(LogClocks, UnderACapOfPowerWhatWasDrawnStandsBesideTheClocks) {
  Recording recording = log_of_gpus({[](double) { return LogRow{0.99, 0.4, 219.0, 12e9}; }}, 300);
  recording.sources[0].attrs["power_limit_watts"] = "220";
  recording.sources[0].attrs["sm_clock_max_mhz"] = "1980";
  Track& track = recording.tracks[0];
  const auto all = [&](Metric metric, double value) {
    track.columns.push_back({metric, std::vector<std::int64_t>(track.at.size(), from_unit(metric, value)), {}});
  };
  all(Metric::kEventReasons, static_cast<double>(kReasonSwPowerCap)), all(Metric::kSmClock, 1290);
  const Explanation e = explain(recording);
  const Finding* finding = find(e, Cause::kThrottling);
  ASSERT_NE(finding, nullptr) << everything(e);
  EXPECT_THAT(finding->evidence, Contains("SM clock 1290 MHz then, of 1980 MHz, at 219 of 220 W"));
}

TEST(LogClocks, ACapThatCameLaterIsJudgedByThePowerThen) {
  const auto gpu = [](bool capped) {
    return [=](double t) { return LogRow{1.0, 0.4, capped && t > 60 ? 214.0 : 340.0, 12e9}; };
  };
  Recording recording = log_of_gpus({gpu(false), gpu(true)}, 300);
  for (const std::size_t i : {0U, 1U}) {
    recording.sources[i].attrs["sm_clock_max_mhz"] = "1900";
    recording.sources[i].attrs["power_limit_watts"] = "350";
    Track& track = recording.tracks[i];
    Column reasons{Metric::kEventReasons, {}, {}}, clock{Metric::kSmClock, {}, {}};
    for (std::size_t row = 0; row < track.at.size(); ++row) {
      const bool capped = i == 0 || row > 60;
      reasons.values.push_back(capped ? kReasonSwPowerCap : 0);
      clock.values.push_back(from_unit(Metric::kSmClock, !capped ? 1890 : i == 0 ? 1590 : 1290));
    }
    track.columns.push_back(reasons), track.columns.push_back(clock);
    track.columns.push_back({Metric::kTemperature, std::vector<std::int64_t>(track.at.size(), 66), {}});
  }
  const std::string text = everything(explain(recording));
  EXPECT_THAT(text, HasSubstr("GPU 0 runs below its clocks (power cap)"));
  EXPECT_THAT(text, HasSubstr("GPU 1 runs below its clocks (power cap)"));
  EXPECT_THAT(text, HasSubstr("214 W then, of a limit of 350 W: neither that nor heat explains the clocks"));
  EXPECT_THAT(text, HasSubstr("a higher power limit (nvidia-smi -pl, as root), where its maximum is higher"));
}

TEST(LogClocks, GpusOfOneFindingWithOtherFiguresAreNotTheSame) {
  const auto text = [](double second) {
    const auto gpu = [](double) { return LogRow{0.98, 0.4, 395, 9e9}; };
    Recording recording = log_of_gpus({gpu, gpu}, 300);
    for (const std::size_t i : {0U, 1U}) {
      recording.sources[i].attrs["sm_clock_max_mhz"] = "1410";
      Track& track = recording.tracks[i];
      const auto all = [&](Metric metric, double value) {
        track.columns.push_back({metric, std::vector<std::int64_t>(track.at.size(), from_unit(metric, value)), {}});
      };
      all(Metric::kEventReasons, static_cast<double>(kReasonSwPowerCap)), all(Metric::kTemperature, 47);
      all(Metric::kSmClock, i == 0 ? 960 : second);
    }
    return everything(explain(recording));
  };
  EXPECT_THAT(text(960), HasSubstr("the same of GPU 1"));
  EXPECT_THAT(text(800), HasSubstr("likewise GPU 1, with other figures"));
  EXPECT_THAT(text(800), Not(HasSubstr("the same of")));
}

TEST(LogClocks, ClocksThatFallWithHeatAreFoundWithoutReasons) {
  const auto with = [](double clock, double heat) {
    Recording recording = log_of_gpus({[](double) { return working(0.98); }}, 600);
    Track& track = recording.tracks[0];
    Column clocks{Metric::kSmClock, {}, {}}, temperature{Metric::kTemperature, {}, {}};
    for (std::size_t row = 0; row < track.at.size(); ++row) {
      clocks.values.push_back(from_unit(Metric::kSmClock, row < 200 ? 1700 : clock));
      temperature.values.push_back(from_unit(Metric::kTemperature, row < 200 ? 60 : heat));
    }
    track.columns.push_back(clocks), track.columns.push_back(temperature);
    return explain(recording);
  };
  const Explanation hot = with(900, 92);
  const Finding* finding = find(hot, Cause::kThrottling);
  ASSERT_NE(finding, nullptr) << hot.headline;
  EXPECT_THAT(finding->title, HasSubstr("while it is hot"));
  EXPECT_THAT(finding->evidence, Contains(HasSubstr(", 1700 MHz before, with kernels running; the recording")));
  EXPECT_THAT(finding->advice, Not(HasSubstr("power limit"))) << "it would become hotter";
  EXPECT_EQ(find(hot, Cause::kHealthy), nullptr);
  EXPECT_EQ(find(with(900, 60), Cause::kThrottling), nullptr) << "cool: somebody set them, or the work changed";
  EXPECT_EQ(find(with(1650, 92), Cause::kThrottling), nullptr);
}

TEST(LogClocks, AClockThatSinksLittleByLittleIsNoStep) {
  Recording recording = log_of_gpus({[](double) { return working(0.98); }}, 600);
  Track& track = recording.tracks[0];
  Column clocks{Metric::kSmClock, {}, {}}, temperature{Metric::kTemperature, {}, {}};
  for (std::size_t row = 0; row < track.at.size(); ++row) {
    const double fallen = std::clamp((static_cast<double>(row) - 20) / 300, 0.0, 1.0);
    clocks.values.push_back(from_unit(Metric::kSmClock, 2100 - 900 * fallen));
    temperature.values.push_back(from_unit(Metric::kTemperature, 66 + 26 * fallen));
  }
  track.columns.push_back(clocks), track.columns.push_back(temperature);
  const Explanation e = explain(recording);
  const Finding* finding = find(e, Cause::kThrottling);
  ASSERT_NE(finding, nullptr) << everything(e);
  EXPECT_THAT(finding->evidence, Contains(HasSubstr("its SM clock sank from 2100 MHz to 1200 MHz between")));
  ASSERT_TRUE(finding->gain);
  EXPECT_NEAR(finding->gain->high, 1.45, 0.06) << "2100 MHz of 1440 MHz on average";
}

TEST(LogClocks, ClocksThatFallWithThePowerAreNotHealthy) {
  const auto with = [](double clock, double power, double heat, int period = 1000) {
    Recording recording = log_of_gpus({[=](double t) {
                                        return LogRow{0.98, 0.4, std::fmod(t, period) < 200 ? 231 : power, 9e9};
                                      }},
                                      600);
    Track& track = recording.tracks[0];
    Column clocks{Metric::kSmClock, {}, {}}, temperature{Metric::kTemperature, {}, {}};
    for (std::size_t row = 0; row < track.at.size(); ++row) {
      const bool fast = std::fmod(static_cast<double>(row), period) < 200;
      clocks.values.push_back(from_unit(Metric::kSmClock, fast ? 1695 : clock));
      temperature.values.push_back(from_unit(Metric::kTemperature, fast ? 66 : heat));
    }
    track.columns.push_back(clocks), track.columns.push_back(temperature);
    return explain(recording);
  };
  const Explanation e = with(435, 74, 49);
  const Finding* finding = find(e, Cause::kThrottling);
  ASSERT_NE(finding, nullptr) << everything(e);
  EXPECT_THAT(finding->title, HasSubstr("(why was not logged)"));
  EXPECT_THAT(finding->evidence, Contains(HasSubstr("SM clock 435 MHz with far less power for 6:3")));
  EXPECT_THAT(finding->advice, AllOf(HasSubstr("clocks_event_reasons.active"), Not(HasSubstr("cooling"))));
  EXPECT_EQ(find(e, Cause::kHealthy), nullptr);
  EXPECT_EQ(find(with(1400, 200, 60), Cause::kThrottling), nullptr) << "clocks vary";
  EXPECT_EQ(find(with(900, 240, 60), Cause::kThrottling), nullptr) << "more power is drawn";
}

TEST(LogClocks, AClockFarBelowTheMaximumIsFoundWithoutReasonsAndBesideThem) {
  const auto log = [](double clock, std::optional<double> reasons) {
    Recording recording = log_of_gpus({[](double) { return working(0.98); }}, 300);
    recording.sources[0].attrs["sm_clock_max_mhz"] = "1980";
    Track& track = recording.tracks[0];
    const auto all = [&](Metric metric, double value) {
      track.columns.push_back({metric, std::vector<std::int64_t>(track.at.size(), from_unit(metric, value)), {}});
    };
    all(Metric::kSmClock, clock), all(Metric::kTemperature, 55);
    if (reasons) all(Metric::kEventReasons, *reasons);
    return explain(recording);
  };
  const Explanation unsaid = log(990, {});
  const Finding* finding = find(unsaid, Cause::kThrottling);
  ASSERT_NE(finding, nullptr) << unsaid.headline;
  EXPECT_THAT(finding->title, HasSubstr("(why was not logged)"));
  EXPECT_THAT(finding->evidence, Contains(HasSubstr("SM clock 990 MHz then, of 1980 MHz")));
  EXPECT_EQ(find(unsaid, Cause::kHealthy), nullptr);
  const Explanation denied = log(990, 0);
  const Finding* set = find(denied, Cause::kThrottling);
  ASSERT_NE(set, nullptr) << denied.headline;
  EXPECT_THAT(set->title, HasSubstr("the driver names no limit"));
  EXPECT_THAT(set->advice, HasSubstr("nvidia-smi -rgc"));
  EXPECT_THAT(everything(denied), Not(HasSubstr("not logged")));
  EXPECT_THAT(everything(denied), Not(HasSubstr("was not asked")));
  EXPECT_EQ(find(log(1600, {}), Cause::kThrottling), nullptr) << "boards stay below a maximum that they never reach";
  const Explanation cap = log(990, static_cast<double>(kReasonSwPowerCap));
  EXPECT_THAT(find(cap, Cause::kThrottling)->title, HasSubstr("(power cap)"));
}

TEST(LogClocks, ALimitIsToldWhereNoHighestClockTellsWhatItCosts) {
  const auto log = [](std::int64_t reasons) {
    Recording recording = log_of_gpus({[](double) { return working(0.98); }}, 300);
    Track& track = recording.tracks[0];
    for (const auto& [metric, value] :
         {std::pair{Metric::kSmClock, 1200.0}, std::pair{Metric::kEventReasons, static_cast<double>(reasons)}})
      track.columns.push_back({metric, std::vector<std::int64_t>(track.at.size(), from_unit(metric, value)), {}});
    return explain(recording);
  };
  const Explanation hot = log(kReasonSwThermal);
  const Finding* finding = find(hot, Cause::kThrottling);
  ASSERT_NE(finding, nullptr) << hot.headline;
  EXPECT_THAT(finding->title, HasSubstr("runs under a limit of its clocks (thermal (driver))"));
  EXPECT_EQ(find(hot, Cause::kHealthy), nullptr);
  EXPECT_THAT(everything(hot), Not(HasSubstr("no lasting limit")));
  EXPECT_EQ(find(log(kReasonSwPowerCap), Cause::kThrottling), nullptr) << "a busy board draws what it may";
}

TEST(LogClocks, TheClockWithoutTheLimitTellsWhatItCostsWhereNoHighestIsRecorded) {
  const auto text = [](double clock_else) {
    const auto braked = [](double t) { return t > 200; };
    Recording recording = log_of_gpus({[&](double t) {
                                        return LogRow{0.99, 0.4, braked(t) ? 302.0 : 640.0, 9e9};
                                      }},
                                      300);
    recording = with(std::move(recording), SourceKind::kGpu, 0, Metric::kSmClock,
                     [&](double t) { return braked(t) ? 996 : clock_else; });
    recording = with(std::move(recording), SourceKind::kGpu, 0, Metric::kEventReasons,
                     [&](double t) { return braked(t) ? static_cast<double>(kReasonHwPowerBrake) : 0; });
    return everything(explain(recording));
  };
  EXPECT_THAT(text(1965), HasSubstr("GPU 0 runs below its clocks (power brake)"));
  EXPECT_THAT(text(1965), HasSubstr("SM clock 996 MHz under it for 1:39, from"));
  EXPECT_THAT(text(1965), HasSubstr("1965 MHz else, with kernels running; it drew 302 W then, 640 W else"));
  EXPECT_THAT(text(1965), Not(HasSubstr("is not known")));
  EXPECT_THAT(text(990), HasSubstr("by how much the clocks are lower is not known")) << "it did less then";
}

TEST(LogClocks, ALogOfAnotherMakersGpuIsNotToldToAskNvidiaSmi) {
  for (const bool power_alone : {true, false}) {
    Recording recording = log_of_gpus({[=](double) {
                                        return power_alone ? LogRow{{}, {}, 200, 12e9} : working(0.98);
                                      }},
                                      300);
    recording.meta.extra["vendor"] = "amd";
    recording.sources[0].attrs["sm_clock_max_mhz"] = "2100";
    Track& track = recording.tracks[0];
    track.columns.push_back({Metric::kSmClock, std::vector<std::int64_t>(track.at.size(), 900), {}});
    const std::string text = everything(explain(recording));
    EXPECT_THAT(text, HasSubstr("amd-smi"));
    EXPECT_THAT(text, Not(HasSubstr("nvidia-smi")));
  }
}

TEST(LogClocks, ABrakeOfPowerIsNotCooledAndOneOfSeveralGpusHasAGainOfItsOwn) {
  Recording recording = log_of_gpus({[](double) {
                                       return LogRow{0.98, 0.4, 281, 9e9};
                                     },
                                     [](double) {
                                       return LogRow{0.98, 0.4, 141, 9e9};
                                     }},
                                    300);
  for (const std::size_t gpu : {0U, 1U}) {
    recording.sources[gpu].attrs["sm_clock_max_mhz"] = "1410";
    Track& track = recording.tracks[gpu];
    const auto all = [&](Metric metric, double value) {
      track.columns.push_back({metric, std::vector<std::int64_t>(track.at.size(), from_unit(metric, value)), {}});
    };
    all(Metric::kEventReasons, gpu == 1 ? static_cast<double>(kReasonHwPowerBrake) : 0.0);
    all(Metric::kSmClock, gpu == 1 ? 795 : 1395), all(Metric::kTemperature, 44);
  }
  const Explanation e = explain(recording);
  const Finding* finding = find(e, Cause::kThrottling);
  ASSERT_NE(finding, nullptr);
  EXPECT_THAT(finding->advice, AllOf(HasSubstr("power supply"), Not(HasSubstr("cooling")), Not(HasSubstr("-pl"))));
  EXPECT_THAT(finding->bound, HasSubstr("1.74x at most, if all kernels of that time depend on the clock"));
}

TEST(LogClocks, ACapFarBelowThePowerLimitIsToldWithoutAHighestClock) {
  const auto with = [](double watts) {
    Recording recording = log_of_gpus({[=](double) { return LogRow{0.98, 0.4, watts, 9e9}; }}, 300);
    recording.sources[0].attrs["power_limit_watts"] = "300";
    Track& track = recording.tracks[0];
    const auto all = [&](Metric metric, double value) {
      track.columns.push_back({metric, std::vector<std::int64_t>(track.at.size(), from_unit(metric, value)), {}});
    };
    all(Metric::kEventReasons, static_cast<double>(kReasonSwPowerCap));
    all(Metric::kSmClock, 1100), all(Metric::kTemperature, 52);
    return explain(recording);
  };
  const Explanation below = with(172);
  const Finding* finding = find(below, Cause::kThrottling);
  ASSERT_NE(finding, nullptr) << everything(below);
  EXPECT_THAT(finding->evidence, Contains(HasSubstr("172 W then, of a limit of 300 W")));
  EXPECT_EQ(find(below, Cause::kHealthy), nullptr);
  EXPECT_EQ(find(with(298), Cause::kThrottling), nullptr) << "as busy parts do";
}

TEST(LogClocks, OneSlowGpuOfEightIsTold) {
  const auto gpu = [](double) { return LogRow{0.98, 0.4, 330, 9e9}; };
  Recording recording = log_of_gpus(std::vector<std::function<LogRow(double)>>(8, gpu), 300);
  for (std::size_t i = 0; i < 8; ++i) {
    recording.sources[i].attrs["sm_clock_max_mhz"] = "1410";
    Track& track = recording.tracks[i];
    const auto all = [&](Metric metric, double value) {
      track.columns.push_back({metric, std::vector<std::int64_t>(track.at.size(), from_unit(metric, value)), {}});
    };
    const bool capped = i == 2;
    all(Metric::kEventReasons, capped ? static_cast<double>(kReasonSwPowerCap) : 0.0);
    all(Metric::kSmClock, capped ? 960 : 1410), all(Metric::kTemperature, 47);
  }
  const Explanation e = explain(recording);
  const Finding* finding = find(e, Cause::kThrottling);
  ASSERT_NE(finding, nullptr);
  EXPECT_THAT(finding->title, HasSubstr("GPU 2"));
  EXPECT_THAT(finding->bound, HasSubstr("1.45x at most")) << "the others may wait for it in kernels";
}

}  // namespace
}  // namespace headroom
