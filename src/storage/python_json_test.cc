// SPDX-License-Identifier: Apache-2.0
#include "storage/python_json.h"

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

}  // namespace
}  // namespace headroom
