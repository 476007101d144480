// SPDX-License-Identifier: Apache-2.0
//
// The driver's ring buffers: utilisation at 6 Hz, power at 48 Hz while the device works and 1 Hz while it does not.
#include <vector>

#include "sim/nvml/window.h"

using namespace headroom;
using namespace headroom::sim;
using namespace headroom::sim::nvml;

namespace {

constexpr std::int64_t kUtilBins = kBinsPerSecond / 6;
constexpr std::size_t kDepth = 120;  // samples a ring holds at most; also the answer to a query for the size

// Bins from the one the caller has seen (or as far back as the history reaches) to the newest, preceded by `lead`.
std::vector<Bin> history(Call& call, ull last_seen, std::int64_t lead) {
  const auto newest = call.box.bin_of(call.at());
  const auto reach = newest - kHistoryBins + lead + 2;
  const auto first = std::max(edge_seen(call, last_seen), reach) - lead;
  return call.box.bins(call.index, std::max<std::int64_t>(0, first), newest, call.at());
}

using Value = unsigned (*)(const Bin& before, const Bin& after);

std::vector<nvmlSample_t> utilisation(Call& call, ull last_seen, Value value) {
  std::vector<nvmlSample_t> samples;
  const Bin* before = nullptr;
  const auto bins = history(call, last_seen, kUtilBins);
  for (const auto& bin : bins) {
    if (bin.index % kUtilBins != 0) continue;
    if (before != nullptr) samples.push_back({call.box.timestamp_us(bin.at), {.ullVal = value(*before, bin)}});
    before = &bin;
  }
  return samples;
}

std::vector<nvmlSample_t> power(Call& call, ull last_seen) {
  std::vector<nvmlSample_t> samples;
  const auto bins = history(call, last_seen, kBinsPerSecond);
  for (std::size_t i = 1; i < bins.size(); ++i) {
    const auto& back =
        bins[i < static_cast<std::size_t>(kBinsPerSecond) ? 0 : i - static_cast<std::size_t>(kBinsPerSecond)];
    const bool active = bins[i].busy_ns > back.busy_ns;
    if (!active && bins[i].index % kBinsPerSecond != 0) continue;
    samples.push_back({call.box.timestamp_us(bins[i].at), {.ullVal = bins[i].power_mw}});
  }
  return samples;
}

// Nothing = the device has no such ring.
std::optional<std::vector<nvmlSample_t>> ring(Call& call, nvmlSamplingType_t type, ull last_seen) {
  switch (type) {
    case NVML_TOTAL_POWER_SAMPLES:
      if (call.info.has_power_samples == 0) return std::nullopt;
      return power(call, last_seen);
    case NVML_GPU_UTILIZATION_SAMPLES:
      if (call.mig_enabled()) return std::nullopt;
      return utilisation(call, last_seen, [](const Bin& before, const Bin& after) {
        return percent(after.busy_ns - before.busy_ns, after.at - before.at);
      });
    case NVML_MEMORY_UTILIZATION_SAMPLES:
      if (call.mig_enabled()) return std::nullopt;
      return utilisation(call, last_seen, [](const Bin& before, const Bin& after) {
        return percent(after.dram_active_ns - before.dram_active_ns, after.at - before.at);
      });
    case NVML_ENC_UTILIZATION_SAMPLES:
    case NVML_DEC_UTILIZATION_SAMPLES:
      if (call.mig_enabled()) return std::nullopt;
      return utilisation(call, last_seen, [](const Bin&, const Bin&) { return 0U; });
    default:
      return std::nullopt;
  }
}

}  // namespace

// Without a buffer: how many samples a buffer may have to hold. With one: those newer than `last_seen`, oldest first;
// if they do not fit, the oldest of them, so that a caller who comes back with the last stamp loses none.
nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t device, nvmlSamplingType_t type, ull last_seen,
                                  nvmlValueType_t* value_type, unsigned* count, nvmlSample_t* samples) {
  return on_device(
      __func__, device,
      [&](Call& call) {
        if (type < NVML_TOTAL_POWER_SAMPLES || type > NVML_MODULE_POWER_SAMPLES) return NVML_ERROR_INVALID_ARGUMENT;
        auto found = ring(call, type, last_seen);
        if (!found) return NVML_ERROR_NOT_SUPPORTED;
        *value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
        if (samples == nullptr) {
          *count = static_cast<unsigned>(kDepth);
          return NVML_SUCCESS;
        }
        if (*count == 0) return NVML_ERROR_INVALID_ARGUMENT;
        std::erase_if(*found, [&](const nvmlSample_t& sample) { return sample.timeStamp <= last_seen; });
        if (found->size() > kDepth) found->erase(found->begin(), found->end() - kDepth);
        if (found->empty()) return NVML_ERROR_NOT_FOUND;
        *count = std::min(*count, static_cast<unsigned>(found->size()));
        std::copy_n(found->begin(), *count, samples);
        return NVML_SUCCESS;
      },
      value_type, count);
}
