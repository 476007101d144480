// SPDX-License-Identifier: Apache-2.0
#include "base/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

namespace headroom {
namespace {

std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST(Json, KnowsHowDeepATextIsNested) {
  EXPECT_FALSE(json_is_deeper(nested(kDeepestJson)));
  EXPECT_TRUE(json_is_deeper(nested(kDeepestJson + 1)));
  EXPECT_TRUE(json_is_deeper(std::string(100'000, '[')));
  EXPECT_FALSE(json_is_deeper(R"({"a": [1, 2], "b": [[]]})", 3));
  EXPECT_TRUE(json_is_deeper(R"({"a": [1, 2], "b": [[]]})", 2));
}

TEST(Json, BracketsInStringsAreNoNesting) {
  EXPECT_FALSE(json_is_deeper(R"(["[[[[", "\"[[[[", "\\"])", 1));
  EXPECT_TRUE(json_is_deeper(R"(["\\", [1]])", 1));
}

TEST(Json, ParsesWhatIsNotTooDeep) {
  EXPECT_EQ(parse_json<nlohmann::json>(R"({"a": [1]})")["a"][0], 1);
  EXPECT_TRUE(parse_json<nlohmann::json>(R"({"a": )").is_discarded());
  EXPECT_FALSE(parse_json<nlohmann::ordered_json>(nested(kDeepestJson)).is_discarded());
  EXPECT_TRUE(parse_json<nlohmann::ordered_json>(nested(200'000)).is_discarded());
}

TEST(Json, TextHasOneLineOrOneALevelAndNoBytesThatAreNoUtf8) {
  const nlohmann::ordered_json json{{"b", "\xff"}, {"a", "\u00e9"}};
  EXPECT_EQ(json_text(json), "{\"b\":\"\ufffd\",\"a\":\"\u00e9\"}");
  EXPECT_EQ(json_text(nlohmann::json{{"b", 1}, {"a", 2}}, 1), "{\n \"a\": 2,\n \"b\": 1\n}");
  EXPECT_EQ(ascii_json_text(json), R"({"b":"\ufffd","a":"\u00e9"})");
}

}  // namespace
}  // namespace headroom
