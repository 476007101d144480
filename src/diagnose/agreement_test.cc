// SPDX-License-Identifier: Apache-2.0
// No two lines of one report contradict each other: headline, ledger, readings, findings and health of random
// recordings, on machines that say more and less.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "analyze/testing_random.h"
#include "base/human.h"
#include "diagnose/explain.h"
#include "diagnose/testing.h"

namespace headroom {
namespace {

bool any_names(const Explanation& e, Cause cause) {
  return std::any_of(e.findings.begin(), e.findings.end(), [&](const Finding& f) { return names(f, cause); });
}

Nanos of_job(const Ledger& ledger) { return ledger.busy() - ledger.total(Account::kForeign); }
Nanos observed(const Ledger& ledger, std::size_t device) {
  return ledger.span() - ledger.total(Account::kUnobserved, device);
}

// The share in the headline is the ledger's, of all devices or of those that the job used.
void expect_headline(const Explanation& e) {
  std::smatch said;
  if (!std::regex_search(
          e.headline, said,
          std::regex("(computed|busy) for (?:about |at least )?([0-9.e-]+ %)( of the [^;]* that readings "
                     "cover)?")))
    return;
  // Where no kernel counts, they are named as what they are.
  const bool for_nothing = std::regex_search(e.headline, std::regex(", (all|none of it) for "));
  ASSERT_EQ(for_nothing, e.ledger.total(Account::kUseful) == 0 &&
                             e.ledger.total(Account::kDiscarded) + e.ledger.total(Account::kUnderWay) > 0);
  std::vector<std::string> shares;
  for (unsigned subset = 1; subset < 1U << e.ledger.devices.size(); ++subset) {
    Nanos useful = 0, time = 0;
    for (std::size_t device = 0; device < e.ledger.devices.size(); ++device) {
      if ((subset >> device & 1U) == 0) continue;
      useful += e.ledger.total(Account::kUseful, device);
      if (for_nothing)
        useful += e.ledger.total(Account::kDiscarded, device) + e.ledger.total(Account::kUnderWay, device);
      time += said[3].matched ? observed(e.ledger, device) : e.ledger.span();
    }
    shares.push_back(human_percent(static_cast<double>(useful) / static_cast<double>(time)));
  }
  ASSERT_THAT(shares, ::testing::Contains(said[2].str())) << e.headline;
}

void expect_readings(const Explanation& e) {
  for (const DeviceStats& device : e.devices)
    for (const MetricStats& stats : device.metrics)
      if (stats.metric == Metric::kGpuUtil && stats.samples > 0 && observed(e.ledger, device.device) > 0) {
        ASSERT_NEAR(
            stats.mean,
            static_cast<double>(e.ledger.busy(device.device)) / static_cast<double>(observed(e.ledger, device.device)),
            1e-9);
      }
}

void expect_health(const Explanation& e) {
  const bool on_gpu = check(e, "runs_on_gpu").good == Answer::kYes;
  if (on_gpu) {
    ASSERT_GT(of_job(e.ledger), 0) << check(e, "runs_on_gpu").evidence;
    ASSERT_FALSE(any_names(e, Cause::kJobNeverUsesGpu) && !e.batch && e.findings.front().candidates.empty());
  }
  if (any_names(e, Cause::kHealthy)) {
    for (const Finding& finding : e.findings)
      ASSERT_TRUE(finding.cause == Cause::kHealthy || finding.cause == Cause::kRecordingLosses ||
                  finding.cause == Cause::kSensorOutlier)
          << finding.title;
    for (const char* name : {"runs_on_gpu", "clocks", "ended_well"})
      ASSERT_NE(check(e, name).good, Answer::kNo) << name;
  }
  for (const Finding& finding : e.findings) {
    if (finding.cause == Cause::kJobNeverUsesGpu) {
      ASSERT_LE(e.ledger.total(Account::kUseful), e.ledger.span() / 50);
      ASSERT_FALSE(finding.gain);
    }
    for (const std::string& denial : finding.told_apart_from)
      if (denial.starts_with("a hang")) {
        ASSERT_FALSE(any_names(e, Cause::kHang)) << denial;
      }
  }
}

// A gain that removes only idle time is within the bound of the whole.
void expect_gains(const Explanation& e) {
  for (const Finding& finding : e.findings) {
    const bool idle_only = std::none_of(finding.claims.begin(), finding.claims.end(),
                                        [](const ClaimedPiece& piece) { return is_busy(piece.account); });
    if (finding.gain && e.bound && idle_only && finding.cause != Cause::kUnderPacking &&
        finding.cause != Cause::kTrialChurn && finding.cause != Cause::kOneProcessImbalance &&
        !names(finding, Cause::kStraggler)) {  // these may share kernels out anew
      ASSERT_LE(finding.gain->high, e.bound->speedup_high + 1e-9) << finding.title;
    }
    for (const ClaimedPiece& piece : finding.claims)
      ASSERT_LE(piece.end - piece.begin, e.ledger.total(piece.account, piece.device));
  }
}

// What was never read is not said to be zero, and not said to be a gap where the rest was read.
void expect_no_zero_for_absent(const Explanation& e) {
  for (std::size_t device = 0; device < e.ledger.devices.size(); ++device)
    if (e.ledger.span() > 0 && observed(e.ledger, device) > 0) return;
  if (e.ledger.budget() == 0) return;
  ASSERT_THAT(e.headline, ::testing::Not(::testing::HasSubstr("for 0 %")));
  ASSERT_THAT(check(e, "runs_on_gpu").evidence, ::testing::Not(::testing::HasSubstr("no kernel ran")));
  ASSERT_FALSE(any_names(e, Cause::kJobNeverUsesGpu) && check(e, "runs_on_gpu").good == Answer::kYes);
}

TEST(Agreement, NoTwoLinesOfAReportContradictEachOther) {
  std::size_t unknown_owners = 0, unreported = 0, healthy = 0, never = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    std::mt19937 random(seed);
    const Recording recording = seed % 4 == 0 ? testing::random_batch(random) : testing::random_machine(random);
    for (int i = 0; i < 2; ++i) {
      SCOPED_TRACE(::testing::Message() << "seed " << seed << " window " << i);
      ExplainOptions options;
      const Nanos span = recording.meta.end - recording.meta.start;
      const Nanos from = static_cast<Nanos>(random()) % span, to = static_cast<Nanos>(random()) % span;
      if (i > 0) options.window = std::minmax(from, to);
      const Explanation e = explain(recording, options);
      if (e.ledger.span() == 0) continue;
      expect_headline(e);
      expect_readings(e);
      expect_health(e);
      expect_gains(e);
      expect_no_zero_for_absent(e);
      if (HasFatalFailure()) {
        ADD_FAILURE() << e.headline;
        return;
      }
      unknown_owners += any_names(e, Cause::kOwnersUnknown) ? 1U : 0U;
      unreported += any_names(e, Cause::kUtilisationNotReported) ? 1U : 0U;
      healthy += any_names(e, Cause::kHealthy) ? 1U : 0U;
      never += any_names(e, Cause::kJobNeverUsesGpu) ? 1U : 0U;
    }
  }
  EXPECT_GT(unknown_owners, 20U) << "else it was held to nothing";
  EXPECT_GT(unreported, 20U);
  EXPECT_GT(never, 0U);
}

}  // namespace
}  // namespace headroom
