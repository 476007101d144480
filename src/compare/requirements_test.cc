// SPDX-License-Identifier: Apache-2.0
#include "compare/requirements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headroom::compare {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Requirement read(std::string_view text) {
  const auto requirement = parse_requirement(text);
  EXPECT_TRUE(requirement) << text << ": " << requirement.error().what;
  return requirement.value_or(Requirement{});
}

std::string refused(std::string_view text) {
  const auto requirement = parse_requirement(text);
  EXPECT_FALSE(requirement) << text;
  return requirement ? "" : requirement.error().what + "; " + requirement.error().hint;
}

TEST(Requirements, ALimitIsReadInTheUnitsOfItsFigure) {
  EXPECT_EQ(read("accuracy>=0.97"), (Requirement{"accuracy>=0.97", "accuracy", Sense::kAtLeast, 0.97, "", 1}));
  EXPECT_EQ(read(" val/loss < -1.5e-3 ").limit, -1.5e-3);
  EXPECT_EQ(read(" val/loss < -1.5e-3 ").name, "val/loss");
  EXPECT_EQ(read("busy>40%").limit, 0.4);
  EXPECT_EQ(read("busy>0.4").limit, 0.4);
  EXPECT_EQ(read("peak_memory<22GB").limit, 22e9);
  EXPECT_EQ(read("peak_memory<=20 GiB").limit, 20.0 * (1 << 30));
  EXPECT_EQ(read("duration<1.5h").limit, 5400);
  EXPECT_EQ(read("mean_power<300W").limit, 300);
  EXPECT_EQ(read("peak_temperature<80C").limit, 80);
  EXPECT_EQ(read("failed_tasks<=0").sense, Sense::kAtMost);
}

TEST(Requirements, WhatIsWrongIsSaidWithWhatIsKnown) {
  EXPECT_THAT(refused("busy"), HasSubstr("no limit"));
  EXPECT_THAT(refused("busy>="), HasSubstr("no number"));
  EXPECT_THAT(refused("busy>=nan"), HasSubstr("no number"));
  EXPECT_THAT(refused("busy>=inf"), HasSubstr("no number"));
  EXPECT_THAT(refused("busy=>0.4"), HasSubstr("one of <, <=, > and >="));
  EXPECT_THAT(refused(">=0.4"), HasSubstr("no figure is named"));
  EXPECT_THAT(refused("busy>=40GB"), HasSubstr("such as 0.4 or 40%"));
  EXPECT_THAT(refused("busy>=40"), AllOf(HasSubstr("a share, from 0 to 1"), HasSubstr("40%")));
  EXPECT_THAT(refused("mean_utilization<140%"), HasSubstr("a share, from 0 to 1"));
  EXPECT_THAT(refused("peak_memory<22"), HasSubstr("such as 22GB"));
  EXPECT_THAT(refused("duration<5"), HasSubstr("such as 90s"));
  EXPECT_THAT(refused("steps_per_second>3s"), HasSubstr("without a unit"));
  EXPECT_THAT(refused("peak_memroy<22GB"), HasSubstr("known are busy, mean_utilization, mean_memory, peak_memory"));
  EXPECT_THAT(refused("accuracy>=97%"), HasSubstr("there is no figure 'accuracy' with a unit"));
}

TEST(Requirements, TheFigureFurthestBeyondTheLimitDecides) {
  const std::vector<Figure> figures{{"busy", "GPU 0", 0.9, ""}, {"busy", "GPU 1", 0.3, ""}, {"busy", "GPU 2", 0.5, ""}};
  const JudgedRequirement low = judged(read("busy>=0.4"), figures);
  EXPECT_EQ(low.kept, false);
  EXPECT_EQ(low.of, "GPU 1");
  const JudgedRequirement high = judged(read("busy<0.95"), figures);
  EXPECT_EQ(high.kept, true);
  EXPECT_EQ(high.of, "GPU 0");
  EXPECT_EQ(judged(read("busy>=0.3"), figures).kept, true) << "the limit itself keeps \"at least\"";
  EXPECT_EQ(judged(read("busy>0.3"), figures).kept, false);
}

TEST(Requirements, WhatWasNotMeasuredIsNotKnownUnlessAnotherBreaksIt) {
  const std::vector<Figure> figures{{"accuracy", "task a", 0.98, ""}, {"accuracy", "task b", std::nullopt, "none"}};
  const JudgedRequirement unknown = judged(read("accuracy>=0.97"), figures);
  EXPECT_EQ(unknown.kept, std::nullopt);
  EXPECT_EQ(unknown.why_not, "task b: none");
  EXPECT_EQ(judged(read("accuracy>=0.99"), figures).kept, false);
  EXPECT_FALSE(all_kept({unknown}));
  EXPECT_TRUE(all_kept({}));
  EXPECT_EQ(judged(read("loss<1"), figures).why_not, "no metric of this name was recorded, but accuracy");
  EXPECT_EQ(judged(read("loss<1"), {}).why_not, "no metric of the job was recorded");
  EXPECT_EQ(judged(read("busy>0"), {}).why_not, "no GPU of the job was recorded");
  EXPECT_EQ(judged(read("failed_tasks<=0"), {}).why_not, "it is no batch");
}

Explanation explanation() {
  Explanation e;
  e.ledger = {.begin = 0, .end = 10 * kSecond, .devices = {{.index = 0}, {.index = 1}, {.index = 2}}};
  const auto put = [&](std::size_t device, Account account, Nanos ns) {
    LedgerEntry entry;
    entry.device = device, entry.account = account, entry.ns = ns;
    e.ledger.entries.push_back(entry);
  };
  put(0, Account::kUseful, 3 * kSecond), put(0, Account::kForeign, kSecond), put(0, Account::kInput, kSecond);
  put(0, Account::kUnobserved, 5 * kSecond);
  put(1, Account::kForeign, 4 * kSecond), put(1, Account::kNotUsed, 6 * kSecond);
  put(2, Account::kUnobserved, 10 * kSecond);
  MetricStats memory;
  memory.metric = Metric::kMemoryUsed, memory.mean = 1e9, memory.max = 2e9, memory.samples = 10;
  e.devices = {{0, {memory}}, {1, {memory}}};
  e.said.metrics = {{.name = "accuracy", .last = 0.98}};
  return e;
}

std::optional<double> value(const std::vector<Figure>& figures, std::string_view name, std::string_view of = "") {
  for (const Figure& figure : figures)
    if (figure.name == name && figure.of == of) return figure.value;
  return std::nullopt;
}
bool has(const std::vector<Figure>& figures, std::string_view of) {
  return std::any_of(figures.begin(), figures.end(), [&](const Figure& figure) { return figure.of == of; });
}

TEST(Figures, AreOfTheGpusThatTheJobHadAndOfObservedTime) {
  const auto figures = figures_of(explanation());
  EXPECT_EQ(value(figures, "busy", "GPU 0"), 0.6) << "of the five seconds that were looked at, without others' kernels";
  EXPECT_FALSE(has(figures, "GPU 1")) << "only others ran kernels there";
  EXPECT_TRUE(has(figures, "GPU 2"));
  EXPECT_EQ(value(figures, "busy", "GPU 2"), std::nullopt);
  EXPECT_EQ(value(figures, "peak_memory", "GPU 0"), 2e9);
  EXPECT_EQ(value(figures, "mean_memory", "GPU 0"), 1e9);
  EXPECT_EQ(value(figures, "mean_power", "GPU 0"), std::nullopt);
  EXPECT_EQ(value(figures, "duration"), 10);
  EXPECT_EQ(value(figures, "accuracy"), 0.98);
  const JudgedRequirement busy = judged(read("busy>=0.5"), figures);
  EXPECT_EQ(busy.kept, std::nullopt);
  EXPECT_EQ(busy.why_not, "GPU 2: no reading says what the GPU did");
}

TEST(Figures, OfAStudyAreItsBestValueAndItsFailedTrials) {
  StudyReport report{.directions = {Direction::kMaximize}};
  report.states = {{.state = TrialState::kComplete, .count = 5}, {.state = TrialState::kFail, .count = 2}};
  report.best = {{.trial = 1, .value = 0.5}, {.trial = 4, .value = 0.98}};
  const auto of = [&](std::string_view text) { return judged(read(text), figures_of_study(report, {"accuracy"})); };
  EXPECT_EQ(of("value>=0.97").kept, true);
  EXPECT_EQ(of("accuracy>=0.99").kept, false);
  EXPECT_EQ(of("accuracy>=0.99").value, 0.98);
  EXPECT_EQ(of("accuracy>=0.99").of, "trial 4");
  EXPECT_EQ(of("failed_trials<=1").value, 2);
  EXPECT_EQ(of("peak_memory<22GB").kept, std::nullopt);
  EXPECT_THAT(of("f1>0").why_not, HasSubstr("no metric of this name was recorded, but accuracy, value"));
  report.best.clear();
  EXPECT_EQ(of("value>=0.97").kept, std::nullopt);
  EXPECT_EQ(of("value>=0.97").why_not, "no trial has completed with a value");
}

TEST(Figures, ASpeedupHasToBeReachedByAllOfItsInterval) {
  Comparison two{.unit = "task", .ratio = Ratio{.value = 0.6, .low = 0.5, .high = 0.8}};
  const auto of = [&](std::string_view text) { return judged(read(text), with_speedup({}, two)); };
  EXPECT_EQ(of("speedup>=1.2").kept, true);
  EXPECT_EQ(of("speedup>=1.4").kept, false);
  EXPECT_EQ(of("speedup>=1.4").value, 1.25);
  EXPECT_EQ(of("speedup>=1.4").of, "the slow end of its 95 % interval");
  EXPECT_EQ(of("speedup<1.5").value, 2);
  two.reasons = {{CompareReason::kDifferentWork, "different work", false}};
  EXPECT_EQ(of("speedup>=1.2").kept, true) << "per task it is no matter";
  two.unit = "step";
  EXPECT_EQ(of("speedup>=1.2").kept, std::nullopt);
  two.ratio.reset();
  EXPECT_EQ(of("speedup>=1.2").why_not, "these two cannot be compared");
  EXPECT_EQ(of("f1>0").why_not, "no metric of the job was recorded");
  EXPECT_EQ(judged(read("speedup>=3"), with_speedup({{"speedup", "", 4, ""}}, two)).kept, true) << "the job's own";
}

TEST(Figures, ThatFewReadingsDoNotTellAreNotKnown) {
  Explanation e = explanation();
  e.devices[0].metrics[0].samples = 2;
  EXPECT_EQ(judged(read("peak_memory<1KiB"), figures_of(e)).why_not, "GPU 0: there are only 2 readings of it");
  e.devices[0].metrics[0].samples = 3, e.devices[0].metrics[0].max = 0;
  EXPECT_EQ(judged(read("peak_memory<1KiB"), figures_of(e)).why_not, "GPU 0: no reading lies where memory was held");
}

TEST(Figures, OfTasksAreThoseOfTheirLastAttempts) {
  const std::vector<Sample> attempts{{.task = "a", .outcome = "failed", .metrics = {{"acc", 0.1}}},
                                     {.task = "a", .metrics = {{"acc", 0.9}}},
                                     {.task = "b"},
                                     {.task = "c", .outcome = "failed", .metrics = {{"acc", 0.2}}}};
  const auto figures = figures_of_tasks(attempts);
  EXPECT_EQ(value(figures, "failed_tasks"), 1);
  EXPECT_EQ(value(figures, "acc", "task a"), 0.9);
  EXPECT_TRUE(has(figures, "task b"));
  EXPECT_FALSE(has(figures, "task c")) << "it failed, which is told otherwise";
}

TEST(Figures, OfABatchLeaveTheMetricsToItsTasks) {
  Explanation e = explanation();
  e.meta.origin = "batch";
  EXPECT_EQ(value(figures_of(e), "accuracy"), std::nullopt);
}

}  // namespace
}  // namespace headroom::compare
