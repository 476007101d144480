// SPDX-License-Identifier: Apache-2.0
#include "report/notice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace headroom::report {
namespace {

using Json = nlohmann::json;

Explanation with_findings(std::vector<std::string> titles) {
  Explanation explanation;
  explanation.headline = "It waited.";
  explanation.ledger.end = 10 * kSecond;
  explanation.ledger.devices = {{.uuid = "GPU-a"}};
  for (std::string& title : titles)
    explanation.findings.push_back(
        {.cause = Cause::kHang, .title = std::move(title), .claims = {{0, 0, 5 * kSecond, Account::kHung}}});
  return explanation;
}

Json parsed(const std::string& text) {
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1) << "one line";
  EXPECT_TRUE(text.ends_with('\n'));
  return Json::parse(text);
}

TEST(Notice, OfAnEndHasTheFirstFinding) {
  const Explanation explanation = with_findings({"hung", "hung again"});
  const Json told = parsed(to_json({.verb = "run", .recording = "a.hrec", .signal = 9, .duration = 7}, &explanation));
  EXPECT_EQ(told["headline"], "It waited.");
  EXPECT_EQ(told["top_finding"]["title"], "hung");
  EXPECT_EQ(told["top_finding"]["device_seconds"], 5.0);
  EXPECT_EQ(told["signal"], 9);
  EXPECT_TRUE(told["exit_code"].is_null());
  EXPECT_EQ(told["duration_ns"], 7);
  EXPECT_TRUE(told["tasks"].is_null());
}

TEST(Notice, WithoutARecordingNothingIsMadeUp) {
  const Json told = parsed(to_json({.verb = "batch", .exit_code = 1, .tasks = {{.total = 2, .failed = 2}}}, nullptr));
  for (const char* name : {"recording", "headline", "top_finding", "signal", "stop_reason"})
    EXPECT_TRUE(told[name].is_null()) << name;
  EXPECT_EQ(told["tasks"]["failed"], 2);
}

TEST(Notice, OfAFindingIsThatFinding) {
  const Explanation explanation = with_findings({"hung", "hung again"});
  const Json told = parsed(finding_notice({.verb = "record", .recording = "a.hrec"}, explanation, 1, Told::kLive));
  EXPECT_EQ(told["finding"]["title"], "hung again");
  EXPECT_EQ(told["finding"]["id"], 2);
  EXPECT_EQ(told["live"], true);
  EXPECT_EQ(told["withdrawn"], false);
}

TEST(Notice, OfAWithdrawnFindingIsTheFindingAsItWasTold) {
  const Explanation explanation = with_findings({"hung", "hung again"});
  const Json told = parsed(withdrawn_notice({.verb = "run"}, finding_text(explanation, 1)));
  EXPECT_EQ(told["finding"]["title"], "hung again");
  EXPECT_EQ(told["live"], false);
  EXPECT_EQ(told["withdrawn"], true);
}

TEST(Notice, IsOneLineAndJsonWhateverACommandHolds) {
  const Json told = parsed(to_json({.verb = "run", .command = {"a\nb", "\xff\x1b\""}}, nullptr));
  EXPECT_EQ(told["command"][0], "a\nb");
}

}  // namespace
}  // namespace headroom::report
