// SPDX-License-Identifier: Apache-2.0
#include "report/live_findings.h"

#include <fmt/format.h>
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

Explanation after(Nanos span, std::vector<Finding> findings, std::vector<Slice> slices = {}) {
  Explanation explanation;
  explanation.ledger.end = span;
  explanation.ledger.devices = {{.uuid = "GPU-a"}};
  explanation.slices = {std::move(slices)};
  explanation.findings = std::move(findings);
  return explanation;
}

// The positions of the findings that are told.
std::vector<std::size_t> look(LiveFindings& live, const Explanation& explanation) {
  std::vector<std::size_t> told;
  for (const auto& one : live.look(explanation, explanation).fresh) told.push_back(one.finding);
  return told;
}

constexpr Nanos kMinute = 60 * kSecond;

TEST(LiveFindings, AreToldOnceAndWhenTheyHeldTwice) {
  LiveFindings live({});
  const auto idle = [](Nanos span) { return after(span, {finding(Cause::kMoreGpusThanUseful, 2 * kMinute)}); };
  EXPECT_THAT(look(live, idle(3 * kMinute)), IsEmpty());
  EXPECT_THAT(look(live, idle(4 * kMinute)), ElementsAre(0));
  EXPECT_THAT(look(live, idle(5 * kMinute)), IsEmpty());
}

TEST(LiveFindings, ALostGpuIsToldOnceAndOnceAsOver) {
  LiveFindings live({});
  const auto at = [&](Nanos end, Nanos lost_until, Nanos from = 10 * kSecond) {
    Finding lost{.cause = Cause::kDeviceLost, .title = "lost", .claims = {{.begin = from, .end = lost_until}}};
    Slice gone{.begin = from, .end = lost_until, .account = Account::kUnobserved};
    Slice back{.begin = lost_until, .end = end, .account = Account::kUseful};
    const Explanation e = after(end, {lost}, lost_until < end ? std::vector{gone, back} : std::vector{gone});
    const auto news = live.look(e, e);
    return std::pair(news.fresh.size(), news.over.size());
  };
  EXPECT_EQ(at(20 * kSecond, 20 * kSecond), std::pair(std::size_t{1}, std::size_t{0}));
  EXPECT_EQ(at(30 * kSecond, 25 * kSecond), std::pair(std::size_t{0}, std::size_t{1}));
  for (Nanos end = 40 * kSecond; end < 100 * kSecond; end += 10 * kSecond)
    EXPECT_EQ(at(end, 25 * kSecond), std::pair(std::size_t{0}, std::size_t{0}));
  for (Nanos from = 12 * kSecond; from < 25 * kSecond; from += 4 * kSecond)  // what is kept begins within it
    EXPECT_EQ(at(100 * kSecond + from, 25 * kSecond, from), std::pair(std::size_t{0}, std::size_t{0}));
  EXPECT_EQ(at(150 * kSecond, 150 * kSecond, 140 * kSecond), std::pair(std::size_t{1}, std::size_t{0})) << "another";
}

TEST(LiveFindings, AYoungRecordingSaysNothing) {
  LiveFindings live({});
  for (int i = 0; i < 3; ++i)
    EXPECT_THAT(look(live, after(119 * kSecond, {finding(Cause::kMoreGpusThanUseful, kMinute)})), IsEmpty());
  // What held in it does not count as a look either.
  EXPECT_THAT(look(live, after(120 * kSecond, {finding(Cause::kMoreGpusThanUseful, kMinute)})), IsEmpty());
}

TEST(LiveFindings, WhatIsUnsureOrCostsLittleWaitsForTheEnd) {
  LiveFindings live({});
  const Explanation small = after(60 * kMinute, {finding(Cause::kMoreGpusThanUseful, kMinute),  // less than a twentieth
                                                 finding(Cause::kBurstyInput, 59 * kSecond),
                                                 finding(Cause::kHostGraphBuilding, 30 * kMinute, Confidence::kLow)});
  for (int i = 0; i < 3; ++i) EXPECT_THAT(look(live, small), IsEmpty());
}

TEST(LiveFindings, OneThatComesAndGoesIsNotTold) {
  LiveFindings live({});
  for (int i = 0; i < 3; ++i) {
    EXPECT_THAT(look(live, after(4 * kMinute, {finding(Cause::kMoreGpusThanUseful, kMinute)})), IsEmpty());
    EXPECT_THAT(look(live, after(4 * kMinute, {})), IsEmpty());
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

// A GPU that computed from 5 s on until `from`, and is held without a kernel since then.
Explanation held(Nanos from, Nanos now, bool asleep = true, std::vector<Slice> before = {}) {
  Finding finding{.cause = Cause::kUnreleasedAfterWork, .title = "held", .confidence = Confidence::kMedium};
  finding.claims = {{.begin = from, .end = now, .account = Account::kTeardown}};
  finding.asleep = asleep;
  std::vector<Slice> slices = std::move(before);
  const Nanos busy_from = slices.empty() ? 5 * kSecond : slices.back().end;
  slices.push_back({.begin = busy_from, .end = from, .account = Account::kUseful});
  slices.push_back({.begin = from, .end = now, .account = Account::kTeardown});
  return after(now, {std::move(finding)}, std::move(slices));
}

TEST(LiveFindings, AStandstillIsToldAfterAMinuteWhateverItsShareIs) {
  for (const Nanos from : {25 * kSecond, 600 * kMinute}) {
    LiveFindings live({});
    EXPECT_THAT(look(live, held(from, from + 55 * kSecond)), IsEmpty());
    EXPECT_THAT(look(live, held(from, from + 65 * kSecond)), ElementsAre(0));
    EXPECT_THAT(look(live, held(from, from + 75 * kSecond)), IsEmpty()) << "once";
  }
}

TEST(LiveFindings, AStandstillThatTheLastMinutesAloneShowIsTold) {
  LiveFindings live({});
  const Explanation recent = held(600 * kMinute, 602 * kMinute);
  Explanation whole = recent;
  whole.findings.clear();
  const auto news = live.look(whole, recent);
  ASSERT_EQ(news.fresh.size(), 1U);
  EXPECT_EQ(news.fresh[0].explanation, &recent);
  EXPECT_TRUE(news.fresh[0].alarm);
}

TEST(LiveFindings, AnAlarmStaysWhereItsWorkIsNoLongerKept) {
  LiveFindings live({});
  ASSERT_THAT(look(live, held(25 * kSecond, 90 * kSecond)), ElementsAre(0));
  Explanation later = held(25 * kSecond, 20 * kMinute);
  later.ledger.begin = 10 * kMinute;
  later.slices[0] = {{.begin = 10 * kMinute, .end = 20 * kMinute, .account = Account::kTeardown}};
  EXPECT_THAT(live.look(later, later).over, IsEmpty());
  ASSERT_EQ(live.now().size(), 1U);
  EXPECT_EQ(live.now()[0].since, 25 * kSecond);
}

TEST(LiveFindings, PausesAsUsualAndWorkOnTheCpuAreNoAlarm) {
  LiveFindings live({});
  EXPECT_THAT(look(live, held(25 * kSecond, 200 * kSecond, false)), IsEmpty()) << "it validates, or saves";
  EXPECT_THAT(look(live, held(25 * kSecond, 330 * kSecond, false)), ElementsAre(0)) << "for five minutes";
  const std::vector<Slice> paused{{.begin = 0, .end = kMinute, .account = Account::kUseful},
                                  {.begin = kMinute, .end = 3 * kMinute, .account = Account::kHostCode}};
  LiveFindings other({});
  EXPECT_THAT(look(other, held(10 * kMinute, 13 * kMinute, true, paused)), IsEmpty())
      << "it paused for two minutes before";
  EXPECT_THAT(look(other, held(10 * kMinute, 14 * kMinute, true, paused)), ElementsAre(0));
}

TEST(LiveFindings, TheEndOfAStandstillIsToldAndTheNextOneAgain) {
  LiveFindings live({});
  const Explanation first = held(25 * kSecond, 2 * kMinute);
  ASSERT_THAT(look(live, first), ElementsAre(0));
  Explanation unread = first;  // the last readings lie a moment back
  unread.ledger.end += 3 * kSecond;
  unread.slices[0].push_back({.begin = 2 * kMinute, .end = unread.ledger.end, .account = Account::kUnobserved});
  EXPECT_THAT(live.look(unread, unread).over, IsEmpty());
  Explanation back = first;
  back.findings.clear();
  back.slices[0].push_back({.begin = 2 * kMinute, .end = 3 * kMinute, .account = Account::kUseful});
  back.ledger.end = 3 * kMinute;
  EXPECT_THAT(live.look(back, back).over, ElementsAre("unreleased_after_work"));
  EXPECT_THAT(live.look(back, back).over, IsEmpty());
  EXPECT_THAT(look(live, held(4 * kMinute, 20 * kMinute, true, back.slices[0])), ElementsAre(0));
}

// What stands, as "key since seconds".
std::vector<std::string> now(const LiveFindings& live) {
  std::vector<std::string> now;
  for (const StandingFinding& one : live.now()) now.push_back(fmt::format("{} {}", one.key, one.since / kSecond));
  return now;
}

TEST(LiveFindings, AnAlarmStandsFromTheLastWorkUntilItIsOver) {
  LiveFindings live({});
  (void)look(live, held(25 * kSecond, 80 * kSecond));
  EXPECT_THAT(now(live), IsEmpty()) << "not told yet";
  (void)look(live, held(25 * kSecond, 2 * kMinute));
  EXPECT_THAT(now(live), ElementsAre("unreleased_after_work 25"));
  EXPECT_TRUE(live.now()[0].alarm);
  Explanation unseen = held(25 * kSecond, 3 * kMinute);
  unseen.findings.clear();
  (void)look(live, unseen);
  EXPECT_THAT(now(live), ElementsAre("unreleased_after_work 25")) << "nothing worked since";
  Explanation renamed = held(25 * kSecond, 4 * kMinute);
  renamed.findings[0].title = "held by two";
  (void)look(live, renamed);
  EXPECT_EQ(live.now()[0].title, "held by two");
  unseen.slices[0].push_back({.begin = 3 * kMinute, .end = 5 * kMinute, .account = Account::kUseful});
  unseen.ledger.end = 5 * kMinute;
  (void)look(live, unseen);
  EXPECT_THAT(now(live), IsEmpty());
}

TEST(LiveFindings, WhatCostsTimeStandsWhileItIsFoundAndGoesOn) {
  LiveFindings live({});
  const auto idle = [](Nanos span, Nanos until) { return after(span, {finding(Cause::kMoreGpusThanUseful, until)}); };
  const std::string key(info(Cause::kMoreGpusThanUseful).id);
  (void)look(live, idle(3 * kMinute, 2 * kMinute));
  EXPECT_THAT(now(live), IsEmpty()) << "not told yet";
  (void)look(live, idle(4 * kMinute, 2 * kMinute));
  EXPECT_THAT(now(live), ElementsAre(key + " 180"));
  EXPECT_FALSE(live.now()[0].alarm);
  (void)look(live, after(5 * kMinute, {}));
  EXPECT_THAT(now(live), IsEmpty());
  (void)look(live, idle(6 * kMinute, 3 * kMinute));
  EXPECT_THAT(now(live), ElementsAre(key + " 360")) << "again";
  Explanation recent = after(16 * kMinute, {});
  recent.ledger.begin = 6 * kMinute;
  (void)live.look(idle(16 * kMinute, 6 * kMinute), recent);
  EXPECT_THAT(now(live), IsEmpty()) << "it costs nothing in the last minutes";
}

TEST(LiveFindings, WhatStandsIsInTheOrderInWhichItWasTold) {
  LiveFindings live({});
  const auto both = [](Nanos now) {
    Explanation explanation = held(4 * kMinute, now);
    explanation.findings.push_back(finding(Cause::kMoreGpusThanUseful, 4 * kMinute));
    return explanation;
  };
  for (const Nanos at : {240 * kSecond, 280 * kSecond, 310 * kSecond}) (void)look(live, both(at));
  EXPECT_THAT(now(live),
              ElementsAre(std::string(info(Cause::kMoreGpusThanUseful).id) + " 240", "unreleased_after_work 240"));
}

TEST(LiveFindings, AStandstillThatWasToldAsACostRingsAgain) {
  LiveFindings live({});
  ASSERT_THAT(look(live, held(25 * kSecond, 3 * kMinute)), ElementsAre(0));
  const auto past = [](Nanos now) {  // it worked again from three minutes on
    Explanation explanation = held(25 * kSecond, 3 * kMinute);
    explanation.slices[0].push_back({.begin = 3 * kMinute, .end = now, .account = Account::kUseful});
    explanation.ledger.end = now;
    return explanation;
  };
  EXPECT_THAT(look(live, past(4 * kMinute)), IsEmpty());
  EXPECT_THAT(look(live, past(5 * kMinute)), ElementsAre(0)) << "as what it cost";
  EXPECT_THAT(now(live), IsEmpty()) << "and it is over";
  EXPECT_THAT(look(live, held(5 * kMinute, 20 * kMinute, true, past(4 * kMinute).slices[0])), ElementsAre(0));
  EXPECT_THAT(now(live), ElementsAre("unreleased_after_work 300"));
}

TEST(LiveFindings, AStandstillThatGetsAnotherNameIsTheSame) {
  LiveFindings live({});
  ASSERT_THAT(look(live, held(25 * kSecond, 2 * kMinute)), ElementsAre(0));
  Explanation hung = held(25 * kSecond, 3 * kMinute);
  hung.findings[0].cause.reset();
  hung.findings[0].candidates = {Cause::kHang, Cause::kUnreleasedAfterWork};
  const auto news = live.look(hung, hung);
  EXPECT_THAT(news.fresh, IsEmpty());
  EXPECT_THAT(news.over, IsEmpty());
}

TEST(LiveFindings, ALostGpuIsToldAtOnce) {
  LiveFindings live({});
  EXPECT_THAT(look(live, after(12 * kSecond, {finding(Cause::kDeviceLost, kSecond)})), ElementsAre(0));
}

TEST(LiveFindings, ABatchWhoseFirstTasksAllFailIsToldUntilOneSucceeds) {
  LiveFindings live({});
  const auto batch = [](std::int64_t failed, Nanos at) {
    Explanation explanation = after(at, {finding(Cause::kWastedTrials, 10 * kSecond)});
    explanation.batch = BatchTimes{.attempts = 38, .not_succeeded = 4, .failed_before_any_success = failed};
    return explanation;
  };
  EXPECT_THAT(look(live, batch(3, 15 * kSecond)), IsEmpty());
  EXPECT_THAT(look(live, batch(4, 20 * kSecond)), ElementsAre(0));
  const Explanation well = batch(0, 30 * kSecond);
  const auto news = live.look(well, well);
  EXPECT_THAT(news.fresh, IsEmpty());
  EXPECT_THAT(news.over, ElementsAre("wasted_trials"));
}

TEST(LiveFindings, AnAlarmIsOverAtTheEndAndNotWithdrawn) {
  const ToldFinding told{.key = "hang", .finding = "{}", .alarm = true};
  ToldFinding over = told;
  over.over = true;
  EXPECT_THAT(left_to_tell({told}, after(kMinute, {})).over, ElementsAre(told));
  EXPECT_THAT(left_to_tell({told}, after(kMinute, {})).withdrawn, IsEmpty());
  EXPECT_THAT(left_to_tell({over}, after(kMinute, {})).over, IsEmpty());
}

}  // namespace
}  // namespace headroom::report
