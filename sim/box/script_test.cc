// SPDX-License-Identifier: Apache-2.0
#include "sim/box/script.h"

#include <gmock/gmock.h>

#include "sim/box/presets.h"

namespace headroom::sim {
namespace {

using ::testing::HasSubstr;

std::vector<Fault> good(std::string_view text) {
  const auto faults = parse_faults(text, "faults.toml", *plan_of_names("2xA6000"));
  EXPECT_TRUE(faults) << (faults ? "" : faults.error().what);
  return faults.value_or(std::vector<Fault>{});
}

std::string bad(std::string_view text) {
  const auto faults = parse_faults(text, "faults.toml", *plan_of_names("2xA6000"));
  if (faults) return "accepted";
  EXPECT_EQ(faults.error().code, Errc::kInvalidInput);
  EXPECT_FALSE(faults.error().hint.empty()) << faults.error().what;
  return faults.error().what;
}

constexpr std::string_view kEveryKind = R"(
    [[fault]]
    kind = "lost"
    device = 1
    at = 2.5
    for = 1
    [[fault]]
    kind = "error"
    call = "nvmlDeviceGetPowerUsage"
    code = 999
    nth = 3
    [[fault]]
    kind = "slow"
    call = "nvmlInit*"
    delay_ms = 3000
    [[fault]]
    kind = "stale"
    hold = 5
    memory = true
    [[fault]]
    kind = "garbage"
    [[fault]]
    kind = "power"
    add_w = 60
    [[fault]]
    kind = "power_reading"
    watts = 590
    [[fault]]
    kind = "throttle"
    rate = 0.5
    reason = "hw_thermal"
    at = "first-context"
    after = 2
    [[fault]]
    kind = "oom"
    mib = 1000
    [[fault]]
    kind = "clock_back"
    by = 3600
    [[fault]]
    kind = "xid"
    code = 31
    device = "*"
    [[fault]]
    kind = "missing"
    symbols = ["nvmlDeviceGetMemoryInfo_v2", "nvmlGpmSampleGet"]
  )";

TEST(FaultScript, ReadsEveryKind) {
  const auto faults = good(kEveryKind);
  ASSERT_EQ(faults.size(), 13u);
  EXPECT_EQ(faults[0].device, 1);
  EXPECT_EQ(faults[0].at, 2500 * kMillisecond);
  EXPECT_EQ(faults[0].duration, kSecond);
  EXPECT_EQ(faults[1].nth, 3u);
  EXPECT_EQ(faults[2].delay, 3 * kSecond);
  EXPECT_EQ(faults[3].keep_memory, 1u);
  EXPECT_EQ(faults[6].milliwatts, 590'000);
  EXPECT_EQ(faults[7].at_first_context, 1u);
  EXPECT_EQ(faults[7].at, 2 * kSecond);
  EXPECT_EQ(faults[7].rate_permille, 500u);
  EXPECT_EQ(faults[10].device, -1);
  EXPECT_STREQ(faults[12].call, "nvmlGpmSampleGet");
  EXPECT_EQ(faults[12].duration, kForEver);
}

TEST(FaultScript, ErrorsNameFileLineAndColumn) {
  EXPECT_THAT(bad("[[fault]]\nkind = \"lsot\"\n"), HasSubstr("faults.toml:2:8: 'kind' in [[fault]] is 'lsot'"));
  EXPECT_THAT(bad("[[fault]]\nkind = \"lost\"\nforever = 3\n"), HasSubstr("faults.toml:3:1: unknown key 'forever'"));
  EXPECT_THAT(bad("[[fault]]\nkind = \"slow\"\ncall = \"x\"\n"),
              HasSubstr("faults.toml:1: 'delay_ms' in [[fault]] is missing"));
  EXPECT_THAT(bad("[[fault]]\nkind = \"lost\"\nat = -1\n"), HasSubstr("faults.toml:3:6: 'at' in [[fault]] is -1"));
  EXPECT_THAT(bad("[[fault]]\nkind = \"lost\"\ndevice = 2\n"),
              HasSubstr("'device' in [[fault]] names no device of this box"));
  EXPECT_THAT(bad("[[fault]]\nkind = lost\n"), HasSubstr("faults.toml:2"));
  EXPECT_THAT(bad("fault = [3]\n"), HasSubstr("faults.toml:1:10: 'fault' has an element that is a whole number"));
  EXPECT_THAT(bad("[[fault]]\nkind = \"throttle\"\nrate = 2\n"), HasSubstr("'rate' in [[fault]] is 2"));
  EXPECT_THAT(bad("durée = 1\n"), HasSubstr("faults.toml:1:"));  // letters that toml++ 3.3 did not expect
}

TEST(FaultScript, ASingleFaultNeedsNoList) { EXPECT_EQ(good("[fault]\nkind = \"lost\"\n").size(), 1u); }

TEST(FaultScript, AnEmptyScriptIsNoFault) { EXPECT_TRUE(good("").empty()); }

TEST(Presets, NamesAndCounts) {
  const auto plan = plan_of_names("2xa6000, RTX4050");
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->devices.size(), 3u);
  EXPECT_STREQ(plan->devices[1].pci_bus_id, "00000000:02:00.0");
  EXPECT_STRNE(plan->devices[0].uuid, plan->devices[1].uuid);
  EXPECT_EQ(plan->devices[2].memory_total_bytes >> 20, 6141u);
  EXPECT_EQ(plan->devices[2].power_limit_mw, 55'000u);
  EXPECT_FALSE(plan_of_names("2xA600"));
  EXPECT_THAT(plan_of_names("2xA600").error().hint, HasSubstr("A6000"));
  EXPECT_FALSE(plan_of_names("17xT4"));
  EXPECT_FALSE(plan_of_names("0xT4"));
  EXPECT_FALSE(plan_of_names(""));
}

TEST(Presets, AFullDeviceStaysBelowItsLimit) {
  for (const Preset& preset : presets()) {
    const DeviceInfo& info = preset.info;
    EXPECT_LE(info.power_idle_mw + info.power_held_mw + info.power_busy_mw + info.power_sm_mw, info.power_limit_mw);
    EXPECT_LT(info.memory_reserved_bytes + info.context_bytes, info.memory_total_bytes);
    EXPECT_EQ(info.has_gpm, info.compute_major >= 9 ? 1u : 0u);
  }
}

TEST(Presets, ADescriptionChangesAPreset) {
  const auto plan = plan_of_toml(R"(
    driver_version = "470.57.02"
    cuda_version = 11.4
    [[gpu]]
    preset = "A6000"
    count = 2
    memory_mib = 10000
    power_limit_w = 250
    gpm = true
    name = "NVIDIA Test"
  )",
                                 "box.toml");
  ASSERT_TRUE(plan) << plan.error().what;
  ASSERT_EQ(plan->devices.size(), 2u);
  EXPECT_EQ(plan->devices[1].memory_total_bytes, 10000ull << 20);
  EXPECT_EQ(plan->devices[1].power_limit_mw, 250'000u);
  EXPECT_STREQ(plan->devices[0].name, "NVIDIA Test");
  EXPECT_EQ(plan->cuda_driver_version, 11040);
  EXPECT_THAT(plan_of_toml("[[gpu]]\npreset=\"A6000\"\nmemory=3\n", "box.toml").error().what,
              HasSubstr("box.toml:3:1"));
  EXPECT_THAT(plan_of_toml("[[gpu]]\npreset=\"B9\"\n", "box.toml").error().what, HasSubstr("box.toml:2:8"));
  EXPECT_THAT(plan_of_toml("[[gpu]]\npreset=\"T4\"\nmemory_mib=100\n", "box.toml").error().what,
              HasSubstr("leaves no memory"));
}

}  // namespace
}  // namespace headroom::sim
