// SPDX-License-Identifier: Apache-2.0
#include "report/live_findings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace headroom::report {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Finding finding(Cause cause, Nanos cost, Confidence confidence = Confidence::kHigh) {
  Finding one{.cause = cause, .title = "t", .confidence = confidence};
  if (cost > 0) one.claims.push_back({.end = cost});
  return one;
}

Explanation after(Nanos span, std::vector<Finding> findings) {
  Explanation explanation;
  explanation.ledger.end = span;
  explanation.ledger.devices.resize(1);
  explanation.findings = std::move(findings);
  return explanation;
}

constexpr Nanos kMinute = 60 * kSecond;

TEST(LiveFindings, AreToldOnceAndWhenTheyHeldTwice) {
  LiveFindings live({});
  const auto hung = [](Nanos span) { return after(span, {finding(Cause::kHang, 2 * kMinute)}); };
  EXPECT_THAT(live.look(hung(3 * kMinute)), IsEmpty());
  EXPECT_THAT(live.look(hung(4 * kMinute)), ElementsAre(0));
  EXPECT_THAT(live.look(hung(5 * kMinute)), IsEmpty());
}

TEST(LiveFindings, AYoungRecordingSaysNothing) {
  LiveFindings live({});
  for (int i = 0; i < 3; ++i) EXPECT_THAT(live.look(after(119 * kSecond, {finding(Cause::kHang, kMinute)})), IsEmpty());
  // What held in it does not count as a look either.
  EXPECT_THAT(live.look(after(120 * kSecond, {finding(Cause::kHang, kMinute)})), IsEmpty());
}

TEST(LiveFindings, WhatIsUnsureOrCostsLittleWaitsForTheEnd) {
  LiveFindings live({});
  const Explanation small = after(60 * kMinute, {finding(Cause::kHang, kMinute),  // less than a twentieth
                                                 finding(Cause::kBurstyInput, 59 * kSecond),
                                                 finding(Cause::kHostGraphBuilding, 30 * kMinute, Confidence::kLow)});
  for (int i = 0; i < 3; ++i) EXPECT_THAT(live.look(small), IsEmpty());
}

TEST(LiveFindings, OneThatComesAndGoesIsNotTold) {
  LiveFindings live({});
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(live.look(after(4 * kMinute, {finding(Cause::kHang, kMinute)})), IsEmpty());
    EXPECT_THAT(live.look(after(4 * kMinute, {})), IsEmpty());
  }
}

TEST(LiveFindings, TheEndTellsWhatIsNewAndWithdrawsWhatIsGone) {
  const std::vector<ToldFinding> told{{"hang", "{}"}, {"gone", "{\"title\":1}"}};
  const Explanation end = after(kMinute, {finding(Cause::kHang, kSecond), finding(Cause::kHang, kSecond),
                                          finding(Cause::kHostGraphBuilding, kSecond)});
  EXPECT_THAT(finding_keys(end), ElementsAre("hang", "hang#2", std::string(info(Cause::kHostGraphBuilding).id)));
  const LeftToTell left = left_to_tell(told, end);
  EXPECT_THAT(left.fresh, ElementsAre(1, 2));
  EXPECT_THAT(left.withdrawn, ElementsAre(told[1]));
}

TEST(LiveFindings, ASetIsTheSameInAnyOrder) {
  Finding a, b;
  a.candidates = {Cause::kHang, Cause::kHostGraphBuilding};
  b.candidates = {Cause::kHostGraphBuilding, Cause::kHang};
  EXPECT_EQ(finding_keys(after(1, {a})), finding_keys(after(1, {b})));
}

}  // namespace
}  // namespace headroom::report
