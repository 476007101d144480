// SPDX-License-Identifier: Apache-2.0
#include "report/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/strings.h"

namespace headroom::report {
namespace {

using testing::HasSubstr;

std::vector<DoctorCheck> checks() {
  return {{"driver", CheckStatus::kOk, "NVIDIA driver 550.54.15", ""},
          {"mig", CheckStatus::kAbsent, "no GPU can be seen here", ""},
          {"gpm", CheckStatus::kAbsent, "no GPU can be seen here", ""},
          {"yama", CheckStatus::kWarn,
           "Yama lets nobody look into processes, whatever they are, however long that sentence is",
           "sudo sysctl kernel.yama.ptrace_scope=1"},
          {"recordings", CheckStatus::kFail, "recordings cannot be written", "--output FILE"}};
}

TEST(DoctorText, WhatFailsComesFirstWithItsFix) {
  const std::string text = to_text(checks(), {});
  EXPECT_THAT(text, HasSubstr("1 of 5 checks failed"));
  EXPECT_LT(text.find("fail  recordings"), text.find("warn  yama"));
  EXPECT_LT(text.find("warn  yama"), text.find("ok    driver"));
  EXPECT_THAT(text, HasSubstr("try: --output FILE"));
  EXPECT_THAT(text, HasSubstr("no GPU can be seen here (mig, gpm)")) << "one line for the same reason";
}

TEST(DoctorText, FitsTheWidth) {
  for (const std::size_t width : {60U, 80U, 160U}) {
    const std::string text = to_text(checks(), {.width = width});
    for (const auto line : split(text, '\n')) EXPECT_LE(display_width(line), width) << line;
  }
}

TEST(DoctorJson, HoldsEveryCheck) {
  const auto json = nlohmann::json::parse(to_json(checks()));
  EXPECT_EQ(json["schema"], "headroom.doctor/1");
  ASSERT_EQ(json["checks"].size(), 5U);
  EXPECT_EQ(json["checks"][3]["status"], "warn");
  EXPECT_EQ(json["checks"][3]["fix"], "sudo sysctl kernel.yama.ptrace_scope=1");
  EXPECT_TRUE(json["checks"][0]["fix"].is_null());
}

}  // namespace
}  // namespace headroom::report
