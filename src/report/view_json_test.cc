// SPDX-License-Identifier: Apache-2.0
#include "report/view_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace headroom::report {
namespace {

TEST(ViewJson, SaysWhatStandsAndSinceWhenInTheRecording) {
  using Json = nlohmann::json;
  Explanation explanation;
  explanation.meta.start = 100 * kSecond;
  const StandingFinding hang{
      .key = "hang", .title = "Nothing moves", .advice = "look at it", .alarm = true, .since = 142 * kSecond};
  EXPECT_EQ(Json::parse(view_json(explanation, {}, std::nullopt, {hang})).at("now"),
            Json::parse(R"([{"key": "hang", "title": "Nothing moves", "advice": "look at it", "alarm": true,
                             "since_ns": 42000000000}])"));
  EXPECT_EQ(Json::parse(view_json(explanation, {}, std::nullopt, {})).at("now"), Json::array());
}

}  // namespace
}  // namespace headroom::report
