// SPDX-License-Identifier: Apache-2.0
//
// GPM: a metric is the difference of two samples that the caller took. Hopper and newer only.
#include <mutex>
#include <set>

#include "sim/nvml/window.h"

using namespace headroom;
using namespace headroom::sim;
using namespace headroom::sim::nvml;

struct nvmlGpmSample_st {
  std::uint32_t device;
  bool taken;
  Nanos at;
  Nanos busy_ns, sm_active_ns, dram_active_ns;
  std::uint64_t pcie_tx_bytes, pcie_rx_bytes;
};

namespace {

constexpr Nanos kRefresh = 100 * kMillisecond;  // samples nearer than this speak of the same refresh

// Samples in being: a pointer that is not among them is refused instead of followed.
struct Samples {
  std::mutex mutex;
  std::set<nvmlGpmSample_t> live;
};
Samples& samples() {
  static auto* const instance = new Samples;
  return *instance;
}
bool is_live(nvmlGpmSample_t sample) { return samples().live.contains(sample); }

struct Metric {
  HeadroomNvmlGpmMetric id;
  const char* short_name;
  const char* long_name;
  const char* unit;
  // Nothing = the model does not know: which pipes a kernel uses is not among its parameters.
  std::optional<double> (*value)(const nvmlGpmSample_st& a, const nvmlGpmSample_st& b);
};

double share(Nanos part, const nvmlGpmSample_st& a, const nvmlGpmSample_st& b) {
  return 100.0 * static_cast<double>(part) / static_cast<double>(b.at - a.at);
}
double mib_per_second(std::uint64_t bytes, const nvmlGpmSample_st& a, const nvmlGpmSample_st& b) {
  return static_cast<double>(bytes) / 1048576.0 / seconds(b.at - a.at);
}

constexpr Metric kMetrics[] = {
    {NVML_GPM_METRIC_GRAPHICS_UTIL, "graphics_util", "Graphics engine activity", "%",
     [](const auto& a, const auto& b) { return std::optional(share(b.busy_ns - a.busy_ns, a, b)); }},
    {NVML_GPM_METRIC_SM_UTIL, "sm_util", "SM activity", "%",
     [](const auto& a, const auto& b) { return std::optional(share(b.sm_active_ns - a.sm_active_ns, a, b)); }},
    {NVML_GPM_METRIC_DRAM_BW_UTIL, "dram_bw_util", "Memory bandwidth in use", "%",
     [](const auto& a, const auto& b) { return std::optional(share(b.dram_active_ns - a.dram_active_ns, a, b)); }},
    {NVML_GPM_METRIC_PCIE_TX_PER_SEC, "pcie_tx", "PCIe bytes sent", "MiB/s",
     [](const auto& a, const auto& b) {
       return std::optional(mib_per_second(b.pcie_tx_bytes - a.pcie_tx_bytes, a, b));
     }},
    {NVML_GPM_METRIC_PCIE_RX_PER_SEC, "pcie_rx", "PCIe bytes received", "MiB/s",
     [](const auto& a, const auto& b) {
       return std::optional(mib_per_second(b.pcie_rx_bytes - a.pcie_rx_bytes, a, b));
     }},
};

void answer(nvmlGpmMetric_t& metric, const nvmlGpmSample_st& a, const nvmlGpmSample_st& b) {
  metric.value = 0;
  metric.metricInfo = {};
  metric.nvmlReturn = metric.metricId == 0 || metric.metricId >= NVML_GPM_METRIC_MAX ? NVML_ERROR_INVALID_ARGUMENT
                                                                                     : NVML_ERROR_NOT_SUPPORTED;
  for (const auto& row : kMetrics) {
    if (row.id != metric.metricId) continue;
    metric.metricInfo = {row.short_name, row.long_name, row.unit};
    if (const auto value = row.value(a, b)) {
      metric.value = *value;
      metric.nvmlReturn = NVML_SUCCESS;
    }
    return;
  }
}

}  // namespace

nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t* out) {
  return on_device(
      __func__, device,
      [&](Call& call) {
        if (out->version != NVML_GPM_SUPPORT_VERSION) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        out->isSupportedDevice = call.info.has_gpm;
        return NVML_SUCCESS;
      },
      out);
}

nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t* out) {
  return on_box(
      __func__,
      [&](const Reader&) {
        const std::lock_guard lock(samples().mutex);
        *out = new nvmlGpmSample_st{};
        samples().live.insert(*out);
        return NVML_SUCCESS;
      },
      out);
}

nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample) {
  return on_box(
      __func__,
      [&](const Reader&) {
        const std::lock_guard lock(samples().mutex);
        if (samples().live.erase(sample) == 0) return NVML_ERROR_INVALID_ARGUMENT;
        delete sample;
        return NVML_SUCCESS;
      },
      sample);
}

nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample) {
  return on_device(
      __func__, device,
      [&](Call& call) {
        if (call.info.has_gpm == 0) return NVML_ERROR_NOT_SUPPORTED;
        const auto& state = call.state();
        const std::lock_guard lock(samples().mutex);
        if (!is_live(sample)) return NVML_ERROR_INVALID_ARGUMENT;
        *sample = {call.index,          true,
                   state.now,           state.busy_ns,
                   state.sm_active_ns,  state.dram_active_ns,
                   state.pcie_tx_bytes, state.pcie_rx_bytes};
        return NVML_SUCCESS;
      },
      sample);
}

nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t* request) {
  return on_box(
      __func__,
      [&](const Reader&) {
        if (request->version != NVML_GPM_METRICS_GET_VERSION) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        const std::lock_guard lock(samples().mutex);
        if (request->numMetrics == 0 || request->numMetrics > NVML_GPM_METRIC_MAX || !is_live(request->sample1) ||
            !is_live(request->sample2)) {
          return NVML_ERROR_INVALID_ARGUMENT;
        }
        const auto& a = *request->sample1;
        const auto& b = *request->sample2;
        if (!a.taken || !b.taken || a.device != b.device) return NVML_ERROR_INVALID_ARGUMENT;
        if (b.at - a.at < kRefresh) return NVML_ERROR_NO_DATA;
        for (unsigned i = 0; i < request->numMetrics; ++i) answer(request->metrics[i], a, b);
        return NVML_SUCCESS;
      },
      request);
}
