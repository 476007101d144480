// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/rules.h"

namespace headroom::diagnose {

// What the processes that hold a context on a device of the budget, and their helpers, did on average.
struct HostSummary {
  std::size_t drivers = 0, helpers = 0;
  double driver_cpu = 0, driver_delay = 0, driver_io = 0;    // means over drivers, shares of time
  double helper_cpu = 0, helper_delay = 0, helper_disk = 0;  // sum of cores; mean run delay; share of looks in D
  double read_rate = 0, write_rate = 0;                      // all of them, bytes per second
  std::array<double, 12> waits{};                            // share of looks at the drivers, by WaitChannel
};

[[nodiscard]] HostSummary host_summary(const Case& c);

// Share of the looks at the drivers in which the main thread slept in one of these.
[[nodiscard]] double waits(const HostSummary& s, std::initializer_list<WaitChannel> channels);

// Cores the job may use: cpuset and quota applied; 0 where that is not recorded.
[[nodiscard]] double usable_cores(const Recording& recording);

// Cores that the whole machine kept busy on average; nothing where that is not recorded.
[[nodiscard]] std::optional<double> busy_cores(const Recording& recording);

// Evidence lines.
[[nodiscard]] std::string driver_sentence(const HostSummary& s);
[[nodiscard]] std::string helper_sentence(const HostSummary& s);
[[nodiscard]] std::string storage_sentence(const HostSummary& s);

}  // namespace headroom::diagnose
