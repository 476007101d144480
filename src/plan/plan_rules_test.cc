// SPDX-License-Identifier: Apache-2.0
// What holds for every plan of every recording.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "analyze/testing_profile.h"
#include "analyze/testing_random.h"
#include "base/human.h"
#include "model/observations.h"
#include "plan/plan.h"
#include "plan/rank.h"
#include "plan/step_model.h"
#include "plan/testing.h"

namespace headroom {
namespace {

using planning::Change;
using planning::simulate;
using planning::step_model;
using planning::StepModel;
using testing::explained;
using testing::option;

// None for the start stands above those for what costs more, unless somebody asked.
void expect_no_start_first(const Explanation& e, const Plan& p, const PlanRequest& request) {
  std::map<std::size_t, bool> starts;  // by finding: all options are for the start
  for (const Option& one : p.options) {
    if (!one.finding || one.id == "observe") continue;
    const bool start = one.cause == Cause::kStartupLoad || one.cause == Cause::kCompileWarmup ||
                       one.cause == Cause::kEnvironmentInstall;
    starts.emplace(*one.finding, true).first->second &= start;
  }
  const bool asked = request.batch || request.workers || request.tasks;
  const auto cost = [&](const Option& one) {
    const Finding& finding = e.findings[*one.finding];
    const Cause first = finding.cause ? *finding.cause : finding.candidates.front();
    return first == Cause::kMoreGpusThanUseful ? 0 : finding.cost();  // that costs the job nothing
  };
  for (auto one = p.options.begin(); one != p.options.end() && !asked; ++one)
    for (auto later = std::next(one); later != p.options.end(); ++later)
      if (one->finding && one->id != "observe" && starts.at(*one->finding) && later->finding &&
          later->id != "observe" && !starts.at(*later->finding)) {
        ASSERT_LE(cost(*later), cost(*one)) << one->id << ", " << later->id;
      }
}

void expect_the_rules(const Explanation& e, const Plan& p) {
  std::set<std::string> ids;
  std::set<std::pair<std::optional<std::size_t>, std::string>> done;
  for (const Option& one : p.options) {
    SCOPED_TRACE(one.id);
    ASSERT_TRUE(done.insert({one.finding, one.apply}).second) << "said twice: " << one.apply;
    ASSERT_TRUE(ids.insert(one.id).second);
    ASSERT_NE(one.title, "");
    ASSERT_NE(one.apply, "");
    ASSERT_NE(one.verify, "");
    ASSERT_NE(one.undo, "");
    ASSERT_EQ(one.apply.find('{'), std::string::npos) << one.apply;
    if (!one.promises) continue;
    ASSERT_GE(one.gain.low, 1);
    ASSERT_GE(one.gain.high, one.gain.low);
    ASSERT_NE(one.gain.words(), "");
    const bool spreads = one.id == "one_gpu_per_process";
    if (spreads) {
      ASSERT_LE(one.gain.high, static_cast<double>(e.ledger.devices.size()) + 1e-9);
    }
    if (one.finding && !spreads && one.id != "larger_batch") {
      const Finding& finding = e.findings[*one.finding];
      ASSERT_TRUE(finding.gain);
      if (one.gain.words().find(" as well") != std::string::npos) {
        ASSERT_TRUE(e.bound);
        ASSERT_LE(one.gain.high, e.bound->speedup_high + 1e-6) << "of several findings together";
      } else if (one.gain.words().find("its high end has the kernels") == std::string::npos) {
        ASSERT_LE(one.gain.high, finding.gain->high + 1e-6) << "never above the finding's own";
      }
      if (!finding.cause) {
        ASSERT_EQ(one.gain.low, 1) << "a set promises nothing";
      }
    }
  }
  double last = 1;
  for (const OptionsTogether& step : p.after) {
    double product = 1;
    for (const std::string& id : step.options) product *= option(p, id)->gain.high;
    ASSERT_GE(step.gain.high, last - 1e-9) << "more options are never worse";
    if (e.bound) {
      ASSERT_LE(step.gain.high, std::max(e.bound->speedup_high, product) + 1e-6);
      const bool fewer_kernels = std::any_of(step.options.begin(), step.options.end(), [&](const std::string& id) {
        return id == "one_gpu_per_process" || option(p, id)->gain.high > e.bound->speedup_high + 1e-6;
      });
      if (!fewer_kernels) {
        ASSERT_LE(step.gain.high, e.bound->speedup_high + 1e-6) << "not below the kernels";
      }
    }
    std::set<std::size_t> sets;
    for (const std::string& id : step.options)
      if (!option(p, id)->candidates.empty()) {
        ASSERT_TRUE(sets.insert(option(p, id)->finding.value()).second) << id << ": one change of a set at most";
      }
    last = step.gain.high;
    for (const std::string& id : step.options) ASSERT_GE(step.gain.high, option(p, id)->gain.high - 1e-9);
  }
}

// What is told together begins with the first and goes on in the order of the options, one more each time.
void expect_their_order(const Plan& p) {
  const auto before = [&](const std::string& x, const std::string& y) { return option(p, x) < option(p, y); };
  for (std::size_t i = 0; i < p.after.size(); ++i) {
    const std::vector<std::string>& ids = p.after[i].options;
    ASSERT_EQ(ids.size(), i + 1);
    ASSERT_TRUE(std::is_sorted(ids.begin(), ids.end(), before)) << ::testing::PrintToString(ids);
  }
}

TEST(Plan, HoldsItsRulesOverRandomRecordingsAndBatches) {
  std::size_t options = 0, combined = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(::testing::Message() << "seed " << seed);
    std::mt19937 random(seed);
    const Recording recording = testing::random_recording_or_batch(random);
    const Explanation e = explained(recording);
    PlanRequest request;
    if (seed % 3 == 1) request.batch = {32, 128};
    if (seed % 3 == 2) request.workers = 8;
    if (seed % 6 == 5) request.tasks = 4;
    const Plan p = plan(e, request);
    expect_the_rules(e, p);
    expect_their_order(p);
    expect_no_start_first(e, p, request);
    if (HasFatalFailure()) return;
    options += p.options.size();
    combined += p.after.size();
  }
  EXPECT_GT(options, 300U);
  EXPECT_GT(combined, 100U);
}

// Any set of changes: one more never makes the simulated time longer, and none makes it shorter than it can be.
TEST(Plan, OneMoreChangeNeverMakesTheTimeLonger) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const Explanation e = explained(testing::random_recording_or_batch(random));
    const StepModel model = step_model(e);
    double claimed = 0;
    for (const auto& part : model.parts) claimed += part.seconds;
    ASSERT_LE(claimed, model.seconds + 1e-6);
    std::vector<Change> changes;
    double before = simulate(model, changes);
    ASSERT_NEAR(before, model.seconds, 1e-9 * std::max(1.0, model.seconds)) << "seed " << seed;
    for (int i = 0; i < 6; ++i) {
      Change change{.mechanism = static_cast<Mechanism>(random() % 4)};
      if (!model.findings.empty() && random() % 4 != 0) change.finding = random() % model.findings.size();
      change.share = static_cast<double>(random() % 11) / 10;
      if (change.mechanism == Mechanism::kLoads) change.workers = 1 + static_cast<double>(random() % 8);
      if (change.mechanism == Mechanism::kEnlarges) change.factor = 1 + static_cast<double>(random() % 4);
      changes.push_back(change);
      const double now = simulate(model, changes);
      ASSERT_LE(now, before + 1e-6) << "seed " << seed << " change " << i;
      ASSERT_GE(now, 0);
      before = now;
    }
  }
}

}  // namespace
}  // namespace headroom
