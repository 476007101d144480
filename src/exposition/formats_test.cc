// SPDX-License-Identifier: Apache-2.0
#include "exposition/formats.h"

#include <gtest/gtest.h>

#include <limits>

namespace headroom::exposition {
namespace {

const std::vector<Family> kFamilies{
    {.name = "headroom_gpu_seconds_total",
     .type = FamilyType::kCounter,
     .unit = "seconds",
     .help = "where time went",
     .samples = {{.labels = {{"gpu", "0"}, {"cause", "input"}}, .value = 1'500'000'000, .decimals = 9},
                 {.labels = {{"gpu", "1"}, {"cause", "input"}}, .value = 1, .decimals = 9}}},
    {.name = "headroom_findings", .help = "how many", .samples = {{.value = 3}}},
    {.name = "headroom_gpu_info",
     .type = FamilyType::kInfo,
     .help = "what it is",
     .samples = {{.labels = {{"name", "A100"}}, .value = 1}}}};

TEST(Formats, OpenMetricsNamesFamiliesWithoutTheirSuffixAndEnds) {
  EXPECT_EQ(to_openmetrics(kFamilies),
            "# TYPE headroom_gpu_seconds counter\n"
            "# UNIT headroom_gpu_seconds seconds\n"
            "# HELP headroom_gpu_seconds where time went\n"
            "headroom_gpu_seconds_total{gpu=\"0\",cause=\"input\"} 1.5\n"
            "headroom_gpu_seconds_total{gpu=\"1\",cause=\"input\"} 0.000000001\n"
            "# TYPE headroom_findings gauge\n"
            "# HELP headroom_findings how many\n"
            "headroom_findings 3\n"
            "# TYPE headroom_gpu info\n"
            "# HELP headroom_gpu what it is\n"
            "headroom_gpu_info{name=\"A100\"} 1\n"
            "# EOF\n");
}

TEST(Formats, PrometheusTextNamesFamiliesAsTheirSamplesAndHasNoInfo) {
  EXPECT_EQ(to_prometheus(kFamilies),
            "# HELP headroom_gpu_seconds_total where time went\n"
            "# TYPE headroom_gpu_seconds_total counter\n"
            "headroom_gpu_seconds_total{gpu=\"0\",cause=\"input\"} 1.5\n"
            "headroom_gpu_seconds_total{gpu=\"1\",cause=\"input\"} 0.000000001\n"
            "# HELP headroom_findings how many\n"
            "# TYPE headroom_findings gauge\n"
            "headroom_findings 3\n"
            "# HELP headroom_gpu_info what it is\n"
            "# TYPE headroom_gpu_info gauge\n"
            "headroom_gpu_info{name=\"A100\"} 1\n");
}

std::string line_with(const std::string& value) {
  const std::vector<Family> one{{.name = "a", .help = "b", .samples = {{.labels = {{"l", value}}, .value = 1}}}};
  const std::string text = to_openmetrics(one);
  EXPECT_TRUE(to_prometheus(one).ends_with(text.substr(text.find("a{"), text.find("# EOF") - text.find("a{"))));
  return text.substr(text.find("a{"));
}

TEST(Formats, LabelsKeepToTheirLine) {
  EXPECT_EQ(line_with("a\\b\"c\nd"), "a{l=\"a\\\\b\\\"c\\nd\"} 1\n# EOF\n");
  EXPECT_EQ(line_with("Grüße"), "a{l=\"Grüße\"} 1\n# EOF\n");
}

TEST(Formats, WhatIsNoUtf8AndWhatMovesACursorIsSpelledOut) {
  EXPECT_EQ(line_with("\xff\x1b[2J\r"), "a{l=\"\\\\xff\\\\x1b[2J\\\\x0d\"} 1\n# EOF\n");
}

TEST(Formats, HelpEscapesQuotesInOpenMetricsOnly) {
  const std::vector<Family> one{{.name = "a", .help = "say \"b\"\nc", .samples = {{.value = 1}}}};
  EXPECT_NE(to_openmetrics(one).find("# HELP a say \\\"b\\\"\\nc\n"), std::string::npos);
  EXPECT_NE(to_prometheus(one).find("# HELP a say \"b\"\\nc\n"), std::string::npos);
}

TEST(Formats, NumbersAreExact) {
  const std::vector<Family> one{
      {.name = "a",
       .help = "b",
       .samples = {{.labels = {{"x", "1"}}, .value = std::numeric_limits<std::int64_t>::max(), .decimals = 9},
                   {.labels = {{"x", "2"}}, .value = -5, .decimals = 3}}}};
  EXPECT_NE(to_prometheus(one).find(" 9223372036.854775807\n"), std::string::npos);
  EXPECT_NE(to_prometheus(one).find(" -0.005\n"), std::string::npos);
}

TEST(Formats, NothingIsStillAnAnswer) {
  EXPECT_EQ(to_openmetrics({}), "# EOF\n");
  EXPECT_EQ(to_prometheus({}), "");
}

}  // namespace
}  // namespace headroom::exposition
