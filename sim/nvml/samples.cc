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
constexpr std::size_t kPowerLead = kBinsPerSecond;
constexpr std::size_t kDepth = 120;  // samples a ring holds at most; also the answer to a query for the size

using Value = unsigned (*)(const Bin& before, const Bin& after);

// One sample per kUtilBins edges, from the one the caller has seen (or as far back as the history reaches).
std::vector<nvmlSample_t> utilisation(Call& call, ull last_seen, Value value) {
  std::vector<nvmlSample_t> samples;
  const auto newest = call.box.bin_of(call.at()) / kUtilBins * kUtilBins;
  const auto oldest = std::max<std::int64_t>(0, newest - kHistoryBins + 2 * kUtilBins);
  auto before = std::vector<Bin>{};
  for (auto edge = std::max(edge_seen(call, last_seen) / kUtilBins * kUtilBins, oldest); edge <= newest;
       edge += kUtilBins) {
    auto bin = call.box.bins(call.index, edge, edge, call.at());
    if (bin.empty()) continue;
    if (!before.empty()) {
      samples.push_back({call.box.timestamp_us(bin.front().at), {.ullVal = value(before.front(), bin.front())}});
    }
    before = std::move(bin);
  }
  return samples;
}

// Bins from the one the caller has seen to the newest, preceded by a second that tells whether the device was active.
std::vector<Bin> power_history(Call& call, ull last_seen) {
  const auto newest = call.box.bin_of(call.at());
  const auto first = std::max(edge_seen(call, last_seen), newest - kHistoryBins + kBinsPerSecond + 2) - kBinsPerSecond;
  return call.box.bins(call.index, std::max<std::int64_t>(0, first), newest, call.at());
}

std::vector<nvmlSample_t> power(Call& call, ull last_seen) {
  std::vector<nvmlSample_t> samples;
  const auto bins = power_history(call, last_seen);
  for (std::size_t i = 1; i < bins.size(); ++i) {
    const auto& second_ago = bins[i < kPowerLead ? 0 : i - kPowerLead];
    const bool active = bins[i].busy_ns > second_ago.busy_ns;
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
// NOLINTNEXTLINE(readability-function-size): the parameters are NVML's
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
