// SPDX-License-Identifier: Apache-2.0
#include "plan/measured.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/probe_reader.h"

namespace headroom::planning {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kProbe =
    R"({"schema":"headroom.probe/1","parameter":"num_workers","complete_rounds":3,"best":"4",
  "values":[{"value":"0","seconds":{"value":0.2,"low":0.19,"high":0.21},"to_best":{"value":2,"low":1.95,"high":2.05}},
            {"value":"2","seconds":{"value":0.15,"low":0.14,"high":0.16},"to_best":{"value":1.5,"low":1.45,"high":1.55}},
            {"value":"4","seconds":{"value":0.1,"low":0.09,"high":0.11},"to_best":null},
            {"value":"8","seconds":null,"to_best":null,"failed":"out of memory"}],
  "batch_line":null,"more":[1]})";

TEST(ReadProbe, WhatAPlanNeeds) {
  const ProbeReport probe = read_probe(kProbe).value();
  EXPECT_EQ(probe.complete, 3);
  ASSERT_EQ(probe.values.size(), 4U);
  EXPECT_EQ(probe.best, 2U);
  EXPECT_EQ(probe.values[0].to_best, (ProbedTime{2, 1.95, 2.05}));
  EXPECT_FALSE(probe.values[3].level);
  EXPECT_EQ(varied(probe), Varied::kWorkers);
}

TEST(ReadProbe, WhatIsNoProbeIsSaidToBeNone) {
  const auto what = [](std::string_view text) { return read_probe(text).error().what; };
  EXPECT_EQ(what("{"), "it is no JSON");
  EXPECT_EQ(what("[]"), "it is no answer of headroom probe");
  EXPECT_EQ(what(R"({"schema":"headroom.plan/1"})"), "it is no answer of headroom probe");
  EXPECT_THAT(what(R"({"schema":"headroom.probe/2"})"), HasSubstr("newer version"));
  EXPECT_EQ(what(R"({"schema":"headroom.probe/1","values":[]})"), "it measured none of the values");
  EXPECT_THAT(what(R"({"schema":"headroom.probe/1","values":[{"value":"2","seconds":{"value":1,"low":2,"high":3}}]})"),
              HasSubstr("the value 2"));
}

TEST(MeasuredChange, OverTheFastestIsFreeOfWhatTheRoundsShare) {
  const ProbeReport probe = read_probe(kProbe).value();
  const auto to_fastest = measured_change(probe, 0, 4);
  EXPECT_EQ(to_fastest->low, 1.95);
  EXPECT_EQ(to_fastest->high, 2.05);
  const auto to_another = measured_change(probe, 0, 2);
  EXPECT_NEAR(to_another->low, 0.19 / 0.16, 1e-9);
  EXPECT_NEAR(to_another->high, 0.21 / 0.14, 1e-9);
  const auto back = measured_change(probe, 4, 0);
  EXPECT_EQ(back->high, 1) << "no gain";
  EXPECT_FALSE(measured_change(probe, 0, 8)) << "it failed";
  EXPECT_FALSE(measured_change(probe, 0, 3)) << "it did not run";
}

TEST(Fit, DoesWhatWasMeasuredAsFarAsTheRecordingAllows) {
  StepModel model{.seconds = 100, .least = 20, .kernels = 20, .outside = 20};
  model.parts = {{0b01, 50, false, true}, {0b10, 20, true, false}};
  model.findings = {{.seconds = 50, .most = 50}, {.seconds = 20, .most = 20, .outside = true}};
  Candidate one{.change = {.finding = 0}};
  fit(model, {1.6, 2}, one);
  EXPECT_NEAR(simulate(model, std::array{one.change}), 20 + 80 / 2.0, 1e-6) << "the loop is twice as fast";
  EXPECT_NEAR(one.least * 40, 80 - 80 / 1.6, 1e-6) << "and at least 1.6 times";
  Candidate far{.change = {.finding = 0}};
  fit(model, {4, 8}, far);
  EXPECT_NEAR(simulate(model, std::array{far.change}), 50, 1e-6) << "more than waited cannot be saved";
  EXPECT_EQ(far.least, 1);
}

}  // namespace
}  // namespace headroom::planning
