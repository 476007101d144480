// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/job.h"
#include "model/ledger.h"
#include "model/recording.h"
#include "model/thresholds.h"

namespace headroom {

// The time of each device, cut into slices that each have one account (docs/ledger.md has the rules). The slices of a
// device cover [meta.start, meta.end) without gap or overlap; where they are cut does not depend on any window, so the
// ledgers of two neighbouring windows add up to the ledger of both.
struct DeviceTime {
  SourceId source = kNoSource;
  Device device;
  bool used = false;   // a process of the job held a compute context on it
  bool spins = false;  // the main thread of one uses the CPU while its kernels run
  std::vector<Slice> slices;
};

// Names of functions and phases, once each.
class Places {
 public:
  [[nodiscard]] std::int32_t index_of(std::string_view name);  // -1 for ""
  [[nodiscard]] std::vector<std::string> names() && { return std::move(names_); }

 private:
  std::map<std::string, std::int32_t, std::less<>> index_;
  std::vector<std::string> names_;
};

class Evidence;

// The devices of the budget, in order of index: those the job was given or ever held; all where there is no job.
struct DeviceTimes {
  std::vector<DeviceTime> devices;
  std::vector<std::string> places;  // what Slice::where names
};
[[nodiscard]] DeviceTimes device_times(const Recording& recording, const JobView& job, const Thresholds& limits,
                                       std::span<const std::unique_ptr<Evidence>> evidence);

// Leaves what lies in [begin, end).
void clip(std::vector<Slice>& slices, Nanos begin, Nanos end);

// Sums the slices over [begin, end) (clipped to the recording's span). Budget and sum are equal to the nanosecond.
[[nodiscard]] Ledger ledger(const std::vector<DeviceTime>& devices, Nanos begin, Nanos end);

}  // namespace headroom
