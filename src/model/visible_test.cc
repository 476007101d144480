// SPDX-License-Identifier: Apache-2.0
#include "model/visible.h"

#include <gtest/gtest.h>

namespace headroom {
namespace {

using Ordinals = std::vector<std::size_t>;

std::vector<Device> four() {
  std::vector<Device> devices(4);
  for (int i = 0; i < 4; ++i) {
    devices[static_cast<std::size_t>(i)].index = i;
    devices[static_cast<std::size_t>(i)].uuid = std::string("GPU-") + "abcd"[i] + (i < 2 ? "1" : "2") + "-x";
  }
  return devices;
}

Ordinals seen(const std::optional<std::string>& mask) { return visible_devices(four(), mask, std::nullopt).ordinals; }

TEST(Visible, UnsetIsAllAndEmptyIsNone) {
  EXPECT_EQ(seen(std::nullopt), (Ordinals{0, 1, 2, 3}));
  EXPECT_EQ(seen(""), Ordinals{});
  EXPECT_EQ(seen("  "), Ordinals{});
}

TEST(Visible, ListedOrderIsTheOrdinals) { EXPECT_EQ(seen("2,0"), (Ordinals{2, 0})); }

TEST(Visible, AnInvalidEntryHidesWhatFollows) {
  EXPECT_EQ(seen("0,2,-1,1"), (Ordinals{0, 2}));
  EXPECT_EQ(seen("0,9,1"), (Ordinals{0}));
  EXPECT_EQ(visible_devices(four(), "0,9,1", std::nullopt).stopped_at, "9");
  EXPECT_EQ(seen("none"), Ordinals{});
}

TEST(Visible, OddNumbersAsStrtoul) {
  EXPECT_EQ(seen("1gpu2,2ampere"), (Ordinals{1, 2}));
  EXPECT_EQ(seen(" 3 , +1, -0"), (Ordinals{3, 1, 0}));
}

TEST(Visible, ARepeatedEntryEmptiesTheList) { EXPECT_EQ(seen("0,1,0"), Ordinals{}); }

TEST(Visible, UuidsMayBeCutWhileUnique) {
  EXPECT_EQ(seen("GPU-c2-x,GPU-a1"), (Ordinals{2, 0}));
  EXPECT_EQ(seen("GPU-"), Ordinals{});
  EXPECT_EQ(seen("GPU-a1,1"), (Ordinals{0}));
  EXPECT_EQ(seen("1,GPU-a1"), (Ordinals{1}));
}

TEST(Visible, FastestFirstUnlessToldByBus) {
  auto devices = four();
  devices.resize(2);
  devices[0].cuda_cores = 2560;
  devices[1].cuda_cores = 10752;
  devices[0].sm_clock_max_mhz = devices[1].sm_clock_max_mhz = 1500;
  EXPECT_EQ(cuda_order(devices, std::nullopt), (Ordinals{1, 0}));
  EXPECT_EQ(cuda_order(devices, "PCI_BUS_ID"), (Ordinals{0, 1}));
  EXPECT_EQ(visible_devices(devices, "0", std::nullopt).ordinals, (Ordinals{1}));
  devices[1].cuda_cores.reset();  // an old driver: bus order is all we know
  EXPECT_EQ(cuda_order(devices, std::nullopt), (Ordinals{0, 1}));
}

}  // namespace
}  // namespace headroom
