// SPDX-License-Identifier: Apache-2.0
#include "storage/optuna_json.h"

#include <gtest/gtest.h>
#include <cmath>

namespace headroom {

namespace {

TEST(PythonJson, BareWordsAreNumbers) {
  const Json list = parse_python_json(R"([NaN, Infinity, -Infinity, -1, {"NaN": "Infinity \" NaN"}])");
  ASSERT_TRUE(list.is_array());
  EXPECT_TRUE(std::isnan(number_of(list[0]).value()));
  EXPECT_EQ(number_of(list[1]), std::numeric_limits<double>::infinity());
  EXPECT_EQ(number_of(list[2]), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(integer_of(list[3]), -1);
  EXPECT_EQ(text_of(member(list[4], "NaN")), "Infinity \" NaN");
  EXPECT_TRUE(std::isnan(number_of(parse_python_json("NaN")).value()));
}

TEST(PythonJson, WhatIsNoneIsDiscarded) {
  for (const char* text : {"", "NaNa", "[NaN", "\"NaN", "nan", "{'a': 1}", "1e999", "\"\\", "[Infinity,]"})
    EXPECT_TRUE(parse_python_json(text).is_discarded()) << text;
  EXPECT_TRUE(parse_python_json(std::string(100, '[') + "NaN" + std::string(100, ']')).is_discarded());
}

TEST(PythonJson, NumbersThatDoNotFitAreNone) {
  EXPECT_EQ(integer_of(parse_python_json("9223372036854775807")), INT64_MAX);
  EXPECT_FALSE(integer_of(parse_python_json("9223372036854775808")));
  EXPECT_FALSE(integer_of(parse_python_json("1.0")));
  EXPECT_FALSE(number_of(parse_python_json("true")));
  EXPECT_TRUE(member(parse_python_json("[1]"), "a").is_null());
}

std::optional<ParameterSpace> parse(std::string_view text) { return parse_distribution("x", text); }

TEST(Distribution, NumbersHaveTheirRangeWhateverTheOrderOfTheKeys) {
  EXPECT_EQ(
      parse(R"({"name": "FloatDistribution", "attributes": {"step": null, "low": 1e-06, "high": 0.1, "log": true}})"),
      (ParameterSpace{.name = "x", .low = 1e-6, .high = 0.1, .log = true}));
  EXPECT_EQ(parse(R"({"attributes": {"high": 9, "log": false, "low": -1, "step": 2}, "name": "IntDistribution"})"),
            (ParameterSpace{.name = "x", .kind = ParameterKind::kInt, .low = -1, .high = 9, .step = 2}));
}

TEST(Distribution, TheClassesBeforeOptuna3AreKnown) {
  EXPECT_EQ(parse(R"({"name": "UniformDistribution", "attributes": {"low": 0, "high": 1}})"),
            (ParameterSpace{.name = "x", .low = 0, .high = 1}));
  EXPECT_EQ(parse(R"({"name": "LogUniformDistribution", "attributes": {"low": 1, "high": 2}})")->log, true);
  EXPECT_EQ(parse(R"({"name": "DiscreteUniformDistribution", "attributes": {"low": 0, "high": 1, "q": 0.5}})")->step,
            0.5);
  const auto integer = parse(R"({"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 7, "step": 3}})");
  EXPECT_TRUE(integer->kind == ParameterKind::kInt && integer->step == 3 && !integer->log);
  EXPECT_TRUE(parse(R"({"name": "IntLogUniformDistribution", "attributes": {"low": 1, "high": 8, "step": 1}})")->log);
}

TEST(Distribution, ChoicesAreTheWordsOfPython) {
  const auto space = parse(
      R"({"name": "CategoricalDistribution", "attributes": {"choices": ["größe", null, true, 1, 0.25, 1.0, NaN, "1"]}})");
  EXPECT_EQ(space->choices, (std::vector<std::string>{"größe", "None", "True", "1", "0.25", "1.0", "nan", "1"}));
  EXPECT_TRUE(is_value_of(*space, 7));
  for (const double wrong : {-1.0, 8.0, 0.5}) EXPECT_FALSE(is_value_of(*space, wrong));
}

TEST(Distribution, WhatIsNoneIsNothing) {
  for (const char* text : {"", "null", "{}", R"({"name": "NormalDistribution", "attributes": {}})",
                           R"({"name": "FloatDistribution", "attributes": {"low": 0}})",
                           R"({"name": "FloatDistribution", "attributes": {"low": NaN, "high": 1}})",
                           R"({"name": "CategoricalDistribution", "attributes": {"choices": []}})"})
    EXPECT_FALSE(parse(text)) << text;
}

TEST(Distribution, AnotherRangeFitsAndAnotherKindOrScaleDoesNot) {
  const ParameterSpace space{.name = "x", .low = 0, .high = 1};
  EXPECT_TRUE(are_compatible(space, {.name = "x", .low = 5, .high = 9, .step = 1}));
  EXPECT_FALSE(are_compatible(space, {.name = "x", .kind = ParameterKind::kInt, .low = 0, .high = 1}));
  EXPECT_FALSE(are_compatible(space, {.name = "x", .low = 0.1, .high = 1, .log = true}));
  const ParameterSpace words{.name = "x", .kind = ParameterKind::kCategorical, .choices = {"a", "b"}};
  EXPECT_FALSE(are_compatible(words, {.name = "x", .kind = ParameterKind::kCategorical, .choices = {"b", "a"}}));
}

}  // namespace

}  // namespace headroom
