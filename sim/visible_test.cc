// SPDX-License-Identifier: Apache-2.0
#include "sim/core/visible.h"

#include <gtest/gtest.h>

#include <string>

#include "sim/box/presets.h"

namespace headroom::sim {
namespace {

using Ordinals = std::vector<std::uint32_t>;

Ordinals see(const char* mask, const char* order = "PCI_BUS_ID", std::string_view gpus = "4xA6000") {
  const auto plan = plan_of_names(gpus);
  return visible_devices(mask, order, plan->devices.data(), static_cast<std::uint32_t>(plan->devices.size()));
}

std::string uuid(std::size_t index) { return plan_of_names("4xA6000")->devices[index].uuid; }

TEST(VisibleDevices, UnsetIsAllAndEmptyIsNone) {
  EXPECT_EQ(see(nullptr), (Ordinals{0, 1, 2, 3}));
  EXPECT_EQ(see(""), Ordinals{});
  EXPECT_EQ(see("  "), Ordinals{});
}

TEST(VisibleDevices, TheOrderOfTheListIsTheOrderOfTheOrdinals) { EXPECT_EQ(see("2,0"), (Ordinals{2, 0})); }

TEST(VisibleDevices, TheFirstInvalidEntryEndsTheList) {
  EXPECT_EQ(see("0,2,-1,1"), (Ordinals{0, 2}));
  EXPECT_EQ(see("-1"), Ordinals{});
  EXPECT_EQ(see("1,7,0"), Ordinals{1});
  EXPECT_EQ(see("0,gpu,1"), Ordinals{0});
  EXPECT_EQ(see("gpu,1"), Ordinals{});
  EXPECT_EQ(see("0,,1"), Ordinals{0});
  EXPECT_EQ(see("NoDevFiles"), Ordinals{});
}

TEST(VisibleDevices, NumbersAreReadAsFarAsTheyGo) {
  EXPECT_EQ(see("1gpu2,2ampere"), (Ordinals{1, 2}));
  EXPECT_EQ(see(" 1 , 3 "), (Ordinals{1, 3}));
  EXPECT_EQ(see("+3,-0"), (Ordinals{3, 0}));
}

TEST(VisibleDevices, ARepeatedEntryEmptiesTheList) {
  EXPECT_EQ(see("0,1,0"), Ordinals{});
  EXPECT_EQ(see((uuid(1) + "," + uuid(1)).c_str()), Ordinals{});
}

TEST(VisibleDevices, UuidsMayBeShortenedWhileUnique) {
  EXPECT_EQ(see(uuid(2).c_str()), Ordinals{2});
  EXPECT_EQ(see((uuid(3).substr(0, 14) + "," + uuid(0)).c_str()), (Ordinals{3, 0}));
  EXPECT_EQ(see("GPU-"), Ordinals{}) << "fits all four";
  EXPECT_EQ(see("GPU-00000000"), Ordinals{});
  EXPECT_EQ(see((uuid(1) + ",GPU-nosuch," + uuid(2)).c_str()), Ordinals{1});
}

TEST(VisibleDevices, TheFirstEntryFixesTheKind) {
  EXPECT_EQ(see((uuid(1) + ",2").c_str()), Ordinals{1});
  EXPECT_EQ(see(("2," + uuid(1)).c_str()), Ordinals{2});
  EXPECT_EQ(see("MIG-1234,0"), Ordinals{});
}

TEST(VisibleDevices, FastestFirstUnlessPciOrderIsAskedFor) {
  EXPECT_EQ(see(nullptr, nullptr, "1xT4,1xA6000"), (Ordinals{1, 0})) << "CUDA 0 is NVML 1";
  EXPECT_EQ(see("0", nullptr, "1xT4,1xA6000"), Ordinals{1}) << "an index counts in CUDA's order";
  EXPECT_EQ(see("0", "PCI_BUS_ID", "1xT4,1xA6000"), Ordinals{0});
  EXPECT_EQ(see("0", "PCI_BUS_I", "1xT4,1xA6000"), Ordinals{1}) << "a misspelt order is no order";
  EXPECT_EQ(see(nullptr, "FASTEST_FIRST", "2xT4,1xA6000"), (Ordinals{2, 0, 1}));
}

}  // namespace
}  // namespace headroom::sim
