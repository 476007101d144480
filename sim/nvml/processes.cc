// SPDX-License-Identifier: Apache-2.0
//
// Who is on the device: process lists in their three layouts, utilisation per process, accounting.
#include <algorithm>
#include <numeric>
#include <vector>

#include "sim/nvml/window.h"

using namespace headroom;
using namespace headroom::sim;
using namespace headroom::sim::nvml;

namespace {

constexpr unsigned kGarbage = 0xffffffffU;  // what a broken driver puts into utilisation rows

nvmlProcessInfo_v1_t& fill(nvmlProcessInfo_v1_t& row, const ContextRow& context) {
  return row = {context.pid, context.memory_bytes};
}
template <class Row>
Row& fill(Row& row, const ContextRow& context) {
  return row = {context.pid, context.memory_bytes, kNoInstance, kNoInstance};
}

constexpr std::uint32_t kForeignPids = 1U << 22U;  // from here on no Linux has a process

// What the box lets the driver tell of the contexts on the device.
std::vector<ContextRow> listed(Call& call) {
  const ProcessList list = call.box.box().process_list;
  if (list == ProcessList::kNone || list == ProcessList::kUnsupported) return {};
  auto rows = call.state().contexts;
  if (list == ProcessList::kHostPids)
    for (auto& row : rows) row.pid += kForeignPids;
  return rows;
}

bool lists_processes(const Call& call) { return call.box.box().process_list != ProcessList::kUnsupported; }

std::vector<ContextRow> contexts_of(Call& call, ContextKind kind) {
  auto rows = listed(call);
  std::erase_if(rows, [&](const ContextRow& row) { return row.kind != kind; });
  return rows;
}

// The size protocol of every list: `count` holds the room on entry and the number of rows afterwards.
template <class Row>
nvmlReturn_t running(const char* function, nvmlDevice_t device, unsigned* count, Row* rows, ContextKind kind) {
  return on_device(
      function, device,
      [&](Call& call) {
        if (!lists_processes(call)) return NVML_ERROR_NOT_SUPPORTED;
        const auto contexts = contexts_of(call, kind);
        const auto needed = static_cast<unsigned>(contexts.size());
        const bool fits = *count >= needed && (rows != nullptr || needed == 0);
        *count = needed;
        if (!fits) return NVML_ERROR_INSUFFICIENT_SIZE;
        for (unsigned i = 0; i < needed; ++i) fill(rows[i], contexts[i]);
        return NVML_SUCCESS;
      },
      count);
}

// Nothing here runs as a client of an MPS server: sharing in the model needs none.
nvmlReturn_t no_mps_clients(const char* function, nvmlDevice_t device, unsigned* count) {
  return on_device(
      function, device,
      [&](Call& call) {
        if (!lists_processes(call)) return NVML_ERROR_NOT_SUPPORTED;
        *count = 0;
        return NVML_SUCCESS;
      },
      count);
}

struct Share {
  unsigned pid, sm, memory;
  ull timestamp;
};

// What each slot's present context did between two edges, weighted by SM share when the kernels overlapped
// (space sharing): then their resident times add up to more than the device's busy time.
std::vector<Nanos> service_between(const std::vector<ContextRow>& contexts, const Bin& first, const Bin& last) {
  Nanos kernels = 0;
  std::vector<Nanos> plain, weighted;
  for (const auto& context : contexts) {
    const auto& from = first.slots[context.slot];
    const auto& to = last.slots[context.slot];
    plain.push_back(std::max<Nanos>(0, to.kernel_ns - std::max(from.kernel_ns, context.slot_kernel_base_ns)));
    weighted.push_back(std::max<Nanos>(0, to.sm_ns - std::max(from.sm_ns, context.slot_sm_base_ns)));
    kernels += plain.back();
  }
  const auto tolerance = (last.at - first.at) / 1000;
  return kernels > last.busy_ns - first.busy_ns + tolerance ? weighted : plain;
}

// Rows that cannot be true, as drivers have been seen to give: impossible shares, dead pids, old stamps.
void spoil(std::vector<Share>& shares, ull timestamp) {
  for (auto& share : shares) share.sm = share.memory = kGarbage;
  for (const unsigned pid : {1U << 22, (1U << 22) + 1, 0U}) shares.push_back({pid, kGarbage, kGarbage, timestamp});
  shares.push_back({(1U << 22) + 2, 2'147'483'632U, 0, 1});
}

// One row per process that ran anything between the last edge seen by the caller and the newest edge; their shares
// sum to at most 100 because it is the running sum that is rounded.
std::vector<Share> shares_since(Call& call, ull last_seen) {
  const auto& state = call.state();
  const auto period = std::max<std::int64_t>(1, call.info.util_window_bins);
  const auto newest = call.box.bin_of(state.now) / period * period;
  const auto oldest = std::max<std::int64_t>({0, edge_seen(call, last_seen), newest - kHistoryBins + kBinsPerSecond});
  const auto first = call.box.bins(call.index, oldest, oldest, state.now);
  const auto last = call.box.bins(call.index, newest, newest, state.now);
  std::vector<Share> shares;
  if (oldest < newest && !first.empty() && !last.empty()) {
    const auto length = last.front().at - first.front().at;
    const auto memory = last.front().dram_active_ns - first.front().dram_active_ns;
    const auto contexts = listed(call);
    const auto service = service_between(contexts, first.front(), last.front());
    const auto stamp = call.box.timestamp_us(last.front().at);
    const auto total = std::max<Nanos>(1, std::accumulate(service.begin(), service.end(), Nanos{0}));
    const auto memory_up_to = [&](Nanos sum) {  // the device's memory activity, shared out as its service is
      return percent(
          static_cast<Nanos>(static_cast<double>(memory) * static_cast<double>(sum) / static_cast<double>(total)),
          length);
    };
    Nanos sum = 0;
    for (std::size_t i = 0; i < service.size(); ++i) {
      if (service[i] == 0) continue;
      const auto before = sum;
      sum += service[i];
      shares.push_back({contexts[i].pid, percent(sum, length) - percent(before, length),
                        memory_up_to(sum) - memory_up_to(before), stamp});
    }
  }
  if (state.garbage_rows) spoil(shares, call.box.timestamp_us(state.now));
  return shares;
}

}  // namespace

#define LIST_OF(function, row, kind)                                       \
  nvmlReturn_t function(nvmlDevice_t device, unsigned* count, row* rows) { \
    return running(#function, device, count, rows, ContextKind::kind);     \
  }
LIST_OF(nvmlDeviceGetComputeRunningProcesses, nvmlProcessInfo_v1_t, kCompute)
LIST_OF(nvmlDeviceGetComputeRunningProcesses_v2, nvmlProcessInfo_v2_t, kCompute)
LIST_OF(nvmlDeviceGetComputeRunningProcesses_v3, nvmlProcessInfo_t, kCompute)
LIST_OF(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t, kGraphics)
LIST_OF(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_v2_t, kGraphics)
LIST_OF(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t, kGraphics)

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses(nvmlDevice_t device, unsigned* count, nvmlProcessInfo_v1_t*) {
  return no_mps_clients(__func__, device, count);
}
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v2(nvmlDevice_t device, unsigned* count, nvmlProcessInfo_v2_t*) {
  return no_mps_clients(__func__, device, count);
}
nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(nvmlDevice_t device, unsigned* count, nvmlProcessInfo_t*) {
  return no_mps_clients(__func__, device, count);
}

// `mode`: 0 compute, 1 graphics, 2 MPS.
nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device, nvmlProcessDetailList_t* list) {
  return on_device(
      __func__, device,
      [&](Call& call) {
        if (list->version != nvmlProcessDetailList_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        if (list->mode > 2) return NVML_ERROR_INVALID_ARGUMENT;
        if (!lists_processes(call)) return NVML_ERROR_NOT_SUPPORTED;
        std::vector<ContextRow> contexts;
        if (list->mode < 2)
          contexts = contexts_of(call, list->mode == 0 ? ContextKind::kCompute : ContextKind::kGraphics);
        const auto needed = static_cast<unsigned>(contexts.size());
        const bool fits = list->numProcArrayEntries >= needed && (list->procArray != nullptr || needed == 0);
        list->numProcArrayEntries = needed;
        if (!fits) return NVML_ERROR_INSUFFICIENT_SIZE;
        for (unsigned i = 0; i < needed; ++i) {
          list->procArray[i] = {contexts[i].pid, contexts[i].memory_bytes, kNoInstance, kNoInstance, 0};
        }
        return NVML_SUCCESS;
      },
      list);
}

// A null buffer is a question for the size, answered by INSUFFICIENT_SIZE: bindings take any other code for an error.
nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t* rows, unsigned* count,
                                             ull last_seen) {
  return on_device(
      __func__, device,
      [&](Call& call) {
        if (call.mig_enabled() || !lists_processes(call)) return NVML_ERROR_NOT_SUPPORTED;
        const auto shares = shares_since(call, last_seen);
        const auto needed = static_cast<unsigned>(shares.size());
        if (rows == nullptr || *count < needed) {
          *count = std::max(1U, needed);
          return NVML_ERROR_INSUFFICIENT_SIZE;
        }
        *count = needed;
        for (unsigned i = 0; i < needed; ++i) {
          rows[i] = {shares[i].pid, shares[i].timestamp, shares[i].sm, shares[i].memory, 0, 0};
        }
        return needed == 0 ? NVML_ERROR_NOT_FOUND : NVML_SUCCESS;
      },
      count);
}

nvmlReturn_t nvmlDeviceGetProcessesUtilizationInfo(nvmlDevice_t device, nvmlProcessesUtilizationInfo_t* info) {
  return on_device(
      __func__, device,
      [&](Call& call) {
        if (info->version != nvmlProcessesUtilizationInfo_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        if (call.mig_enabled() || !lists_processes(call)) return NVML_ERROR_NOT_SUPPORTED;
        const auto shares = shares_since(call, info->lastSeenTimeStamp);
        const auto needed = static_cast<unsigned>(shares.size());
        if (info->procUtilArray == nullptr || info->processSamplesCount < needed) {
          info->processSamplesCount = std::max(1U, needed);
          return NVML_ERROR_INSUFFICIENT_SIZE;
        }
        info->processSamplesCount = needed;
        for (unsigned i = 0; i < needed; ++i) {
          info->procUtilArray[i] = {shares[i].timestamp, shares[i].pid, shares[i].sm, shares[i].memory, 0, 0, 0, 0};
        }
        return needed == 0 ? NVML_ERROR_NOT_FOUND : NVML_SUCCESS;
      },
      info);
}

// Accounting is off on every virtual device, as it is on a box where root never turned it on.
nvmlReturn_t nvmlDeviceGetAccountingMode(nvmlDevice_t device, nvmlEnableState_t* out) {
  return on_device(
      __func__, device,
      [&](Call&) {
        *out = NVML_FEATURE_DISABLED;
        return NVML_SUCCESS;
      },
      out);
}
nvmlReturn_t nvmlDeviceGetAccountingStats(nvmlDevice_t device, unsigned, nvmlAccountingStats_t* out) {
  return on_device(
      __func__, device, [](Call&) { return NVML_ERROR_NOT_SUPPORTED; }, out);
}
nvmlReturn_t nvmlDeviceGetAccountingPids(nvmlDevice_t device, unsigned* count, unsigned*) {
  return on_device(
      __func__, device, [](Call&) { return NVML_ERROR_NOT_SUPPORTED; }, count);
}
nvmlReturn_t nvmlDeviceGetAccountingBufferSize(nvmlDevice_t device, unsigned* out) {
  return on_device(
      __func__, device,
      [&](Call&) {
        *out = 4000;
        return NVML_SUCCESS;
      },
      out);
}
