// SPDX-License-Identifier: Apache-2.0
#include "stacks/families_file.h"

#include <gtest/gtest.h>

namespace headroom::stacks {
namespace {

std::string error_of(std::string_view text) {
  const auto rules = families_from_toml(text, "f.toml");
  return rules ? "" : rules.error().what;
}

TEST(FamiliesFile, RulesAreReadInTheirOrder) {
  const auto rules = families_from_toml(
      "[[rule]]\nfamily = \"loader_fetch\"\nfile = \"mydata/\"\nfunction = \"next_*\"\n"
      "[[rule]]\nfamily = \"graph\"\nfunction = \"build\"\n",
      "f.toml");
  ASSERT_TRUE(rules) << rules.error().what;
  ASSERT_EQ(rules->size(), 2U);
  EXPECT_EQ((*rules)[0].family, Family::kLoaderFetch);
  EXPECT_EQ((*rules)[0].file, "mydata/");
  EXPECT_EQ((*rules)[0].function, "next_*");
  EXPECT_EQ((*rules)[1].family, Family::kGraph);
  EXPECT_TRUE(families_from_toml("", "f.toml")->empty());
}

TEST(FamiliesFile, ErrorsNameThePlace) {
  EXPECT_EQ(error_of("[[rule]]\nfamily = \"loading\"\nfile = \"x\"\n").substr(0, 11), "f.toml:2:10");
  EXPECT_NE(error_of("[[rule]]\nfamily = \"graph\"\n").find("leave every stack open"), std::string::npos);
  EXPECT_NE(error_of("[[rule]]\nfamily = \"graph\"\nfunction = \"*\"\n").find("leave every stack open"),
            std::string::npos);
  EXPECT_NE(error_of("[[rule]]\nfile = \"x\"\n").find("'family'"), std::string::npos);
  EXPECT_NE(error_of("[[rules]]\n").find("'rules'"), std::string::npos);
  EXPECT_FALSE(error_of("[[rule]").empty());
}

}  // namespace
}  // namespace headroom::stacks
