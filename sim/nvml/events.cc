// SPDX-License-Identifier: Apache-2.0
//
// Event sets: a client sleeps in nvmlEventSetWait until a device it registered reports an XID error.
#include <algorithm>
#include <deque>
#include <mutex>
#include <set>
#include <vector>

#include "sim/nvml/entry.h"

using namespace headroom;
using namespace headroom::sim;
using namespace headroom::sim::nvml;

struct nvmlEventSet_st {
  std::vector<std::uint32_t> devices;
  Nanos seen;  // XIDs up to here have been looked at, or are older than the set
  std::deque<nvmlEventData_t> waiting;
};

namespace {

constexpr Nanos kLook = 10 * kMillisecond;

struct Sets {
  std::mutex mutex;
  std::set<nvmlEventSet_t> live;
};
Sets& sets() {
  static auto* const instance = new Sets;
  return *instance;
}

// The oldest XID not yet handed out; looks no further than `until`.
std::optional<nvmlEventData_t> next_event(const Reader& box, nvmlEventSet_st& set, Nanos until) {
  for (const auto& xid : box.xids(set.seen, until)) {
    if (std::find(set.devices.begin(), set.devices.end(), xid.device) == set.devices.end()) continue;
    set.waiting.push_back({handle_of(xid.device), nvmlEventTypeXidCriticalError, xid.code, kNoInstance, kNoInstance});
  }
  set.seen = until;
  if (set.waiting.empty()) return std::nullopt;
  const auto oldest = set.waiting.front();
  set.waiting.pop_front();
  return oldest;
}

nvmlReturn_t wait(const char* function, nvmlEventSet_t set, nvmlEventData_t* out, unsigned timeout_ms) {
  return on_box(
      function,
      [&](const Reader& box) {
        const auto deadline = Reader::now() + Nanos{timeout_ms} * kMillisecond;
        for (;;) {
          const auto now = Reader::now();
          {
            const std::lock_guard lock(sets().mutex);
            if (!sets().live.contains(set)) return NVML_ERROR_INVALID_ARGUMENT;
            if (const auto event = next_event(box, *set, now)) {
              *out = *event;
              return NVML_SUCCESS;
            }
          }
          if (now >= deadline) return NVML_ERROR_TIMEOUT;
          sleep_for(std::min(kLook, deadline - now));
        }
      },
      set, out);
}

}  // namespace

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t* out) {
  return on_box(
      __func__,
      [&](const Reader&) {
        const std::lock_guard lock(sets().mutex);
        *out = new nvmlEventSet_st{{}, Reader::now(), {}};
        sets().live.insert(*out);
        return NVML_SUCCESS;
      },
      out);
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
  return on_box(
      __func__,
      [&](const Reader&) {
        const std::lock_guard lock(sets().mutex);
        if (sets().live.erase(set) == 0) return NVML_ERROR_INVALID_ARGUMENT;
        delete set;
        return NVML_SUCCESS;
      },
      set);
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, ull types, nvmlEventSet_t set) {
  return on_device(
      __func__, device,
      [&](Call& call) {
        const std::lock_guard lock(sets().mutex);
        if (!sets().live.contains(set)) return NVML_ERROR_INVALID_ARGUMENT;
        if ((types & ~ull{nvmlEventTypeXidCriticalError}) != 0) return NVML_ERROR_NOT_SUPPORTED;
        if (types != 0) set->devices.push_back(call.index);
        return NVML_SUCCESS;
      },
      set);
}

nvmlReturn_t nvmlEventSetWait(nvmlEventSet_t set, nvmlEventData_t* out, unsigned timeout_ms) {
  return wait(__func__, set, out, timeout_ms);
}
nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t* out, unsigned timeout_ms) {
  return wait(__func__, set, out, timeout_ms);
}

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device, ull* out) {
  return on_device(
      __func__, device,
      [&](Call&) {
        *out = nvmlEventTypeXidCriticalError;
        return NVML_SUCCESS;
      },
      out);
}
