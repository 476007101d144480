// SPDX-License-Identifier: Apache-2.0
#include "report/devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/strings.h"

namespace headroom::report {
namespace {

using testing::HasSubstr;

DeviceList two_gpus() {
  DeviceList list;
  list.driver_version = "550.54.15";
  DeviceStatus gpu;
  gpu.device = {.uuid = "GPU-1", .index = 0, .name = "NVIDIA RTX A6000", .memory_total_bytes = 51'527'024'640};
  gpu.device.power_limit_watts = 300;
  gpu.readings = {{Metric::kGpuUtil, 1200},
                  {Metric::kMemoryUsed, 167LL << 20},
                  {Metric::kPower, 55'400},
                  {Metric::kTemperature, tl::unexpected(Absent::kNoPermission)}};
  gpu.processes.push_back(
      {.pid = 4242, .name = "python3", .user = "alice", .cmdline = "python3 train.py", .uid = 1000});
  gpu.processes[0].memory_bytes = 1LL << 30;
  gpu.processes.push_back({.pid = 1, .kind = ContextKind::kGraphics});
  list.devices.push_back(gpu);
  DeviceStatus lost;
  lost.device = {.uuid = "GPU-2", .index = 1, .name = "A GPU with a name that is far too long for any table there is"};
  lost.readings = {{Metric::kGpuUtil, tl::unexpected(Absent::kDeviceLost)}};
  list.devices.push_back(lost);
  return list;
}

TEST(DevicesText, ShowsValuesAndWhyThereAreNone) {
  const std::string text = to_text(two_gpus(), {});
  EXPECT_THAT(text, HasSubstr("2 GPUs, driver 550.54.15"));
  EXPECT_THAT(text, HasSubstr("167 MiB / 48.0 GiB"));
  EXPECT_THAT(text, HasSubstr("12 %"));
  EXPECT_THAT(text, HasSubstr("55 / 300 W"));
  EXPECT_THAT(text, HasSubstr("python3 train.py"));
  EXPECT_THAT(text, HasSubstr("(not visible here)"));
  EXPECT_THAT(text, HasSubstr("temperature: no permission"));
  EXPECT_THAT(text, HasSubstr("kernels: the device was lost"));
}

TEST(DevicesText, FitsTheWidth) {
  for (const std::size_t width : {60U, 80U, 100U, 160U}) {
    const std::string text = to_text(two_gpus(), {.width = width});
    for (const auto line : split(text, '\n')) EXPECT_LE(display_width(line), width) << line;
  }
}

TEST(DevicesJson, NullHasItsReasonBesideIt) {
  const auto json = nlohmann::json::parse(to_json(two_gpus()));
  EXPECT_EQ(json["schema"], "headroom.devices/1");
  const auto& gpu = json["devices"][0];
  EXPECT_EQ(gpu["uuid"], "GPU-1");
  EXPECT_EQ(gpu["gpu_util_ratio"], 0.12);
  EXPECT_EQ(gpu["memory_used_bytes"], 167LL << 20);
  EXPECT_TRUE(gpu["temperature_celsius"].is_null());
  EXPECT_EQ(gpu["absent"]["temperature_celsius"], "no_permission");
  EXPECT_EQ(gpu["processes"][0]["pid"], 4242);
  EXPECT_EQ(gpu["processes"][0]["memory_bytes"], 1LL << 30);
  EXPECT_EQ(gpu["processes"][0]["kind"], "compute");
  EXPECT_TRUE(gpu["processes"][1]["name"].is_null());
  EXPECT_EQ(gpu["processes"][1]["absent"]["memory_bytes"], "not_sampled");
  EXPECT_EQ(json["devices"][1]["absent"]["gpu_util_ratio"], "device_lost");
}

}  // namespace
}  // namespace headroom::report
