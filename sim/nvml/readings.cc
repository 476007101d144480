// SPDX-License-Identifier: Apache-2.0
//
// What a device reads now: one value each.
#include "sim/nvml/window.h"

using namespace headroom;
using namespace headroom::sim;
using namespace headroom::sim::nvml;

namespace headroom::sim::nvml {

std::optional<Window> utilisation_window(Call& call) {
  const auto period = std::max<std::int64_t>(1, call.info.util_window_bins);
  const auto edge = call.box.bin_of(call.at()) / period * period;
  const auto last = call.box.bins(call.index, edge, edge, call.at());
  const auto first = call.box.bins(call.index, edge - period, edge - period, call.at());
  if (last.empty() || first.empty()) return std::nullopt;
  return Window{first.front(), last.front()};
}

std::int64_t edge_seen(Call& call, ull last_seen) {
  if (last_seen == 0) return 0;
  if (last_seen >= call.box.timestamp_us(call.at())) return call.box.bin_of(call.at());
  // One more microsecond, because a stamp is an edge's instant rounded down.
  return std::max<std::int64_t>(0, call.box.bin_of(call.box.instant_of(last_seen + 1)));
}

}  // namespace headroom::sim::nvml

namespace {

using Maybe = std::optional<std::uint64_t>;
constexpr Nanos kPcieWindow = 20 * kMillisecond;  // nvmlDeviceGetPcieThroughput counts, and blocks, this long

template <class Out, class Body>
nvmlReturn_t number(const char* function, nvmlDevice_t device, Out* out, Body value) {
  return on_device(
      function, device, [&](Call& call) { return give(out, Maybe(value(call))); }, out);
}

std::uint64_t celsius(Call& call) {
  return static_cast<std::uint64_t>(std::max(0, call.state().temperature_mc + 500) / 1000);
}

Maybe clock_now(Call& call, nvmlClockType_t type) {
  switch (type) {
    case NVML_CLOCK_GRAPHICS:
    case NVML_CLOCK_SM:
      return call.state().sm_clock_mhz;
    case NVML_CLOCK_MEM:
      return call.state().memory_clock_mhz;
    case NVML_CLOCK_VIDEO:
      return std::uint64_t{call.state().sm_clock_mhz} * 9 / 10;
  }
  return std::nullopt;
}

// The model has no video engines: they are there and idle. MIG leaves them out, as it does all utilisation.
nvmlReturn_t idle_engine(const char* function, nvmlDevice_t device, unsigned* out, unsigned* period_us) {
  return on_device(
      function, device,
      [&](Call& call) {
        if (call.mig_enabled()) return NVML_ERROR_NOT_SUPPORTED;
        *out = 0;
        *period_us = 166'667;
        return NVML_SUCCESS;
      },
      out, period_us);
}

nvmlReturn_t ecc_count(const char* function, nvmlDevice_t device, int error, int counter, ull* out) {
  return on_device(
      function, device,
      [&](Call& call) {
        if (error < 0 || error > 1 || counter < 0 || counter > 1) return NVML_ERROR_INVALID_ARGUMENT;
        if (call.info.has_ecc == 0 || call.info.ecc_enabled == 0) return NVML_ERROR_NOT_SUPPORTED;
        *out = 0;  // the model's memory does not fail
        return NVML_SUCCESS;
      },
      out);
}

// Laptop and passive boards steer their fans elsewhere, or have none.
Maybe fan_speed(Call& call, unsigned fan) {
  return fan < call.info.fan_count ? Maybe(call.state().fan_percent) : std::nullopt;
}

}  // namespace

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned* out) {
  return number(__func__, device, out, [](Call& call) { return call.state().power_mw; });
}
nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned* out) {
  return on_device(
      __func__, device, [&](Call& call) { return give(out, fan_speed(call, 0)); }, out);
}
nvmlReturn_t nvmlDeviceGetFanSpeed_v2(nvmlDevice_t device, unsigned fan, unsigned* out) {
  return on_device(
      __func__, device, [&](Call& call) { return give(out, fan_speed(call, fan)); }, out);
}
// An idle link falls back to its slowest rate.
nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device, unsigned* out) {
  return number(__func__, device, out,
                [](Call& call) { return call.state().pstate >= 5 ? 1U : call.info.pcie_gen_max; });
}
nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device, unsigned* out) {
  return number(__func__, device, out, [](Call& call) { return call.info.pcie_width_max; });
}
nvmlReturn_t nvmlDeviceGetPcieReplayCounter(nvmlDevice_t device, unsigned* out) {
  return number(__func__, device, out, [](Call&) { return 0U; });
}

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t* out) {
  return on_device(
      __func__, device,
      [&](Call& call) {
        if (call.mig_enabled()) return NVML_ERROR_NOT_SUPPORTED;
        *out = {};
        if (const auto window = utilisation_window(call)) {
          out->gpu = percent(window->last.busy_ns - window->first.busy_ns, window->length());
          out->memory = percent(window->last.dram_active_ns - window->first.dram_active_ns, window->length());
        }
        return NVML_SUCCESS;
      },
      out);
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* out) {
  return on_device(
      __func__, device,
      [&](Call& call) {
        const auto& state = call.state();
        *out = {call.info.memory_total_bytes, state.memory_free_bytes,
                state.memory_used_bytes + state.memory_reserved_bytes};
        return NVML_SUCCESS;
      },
      out);
}
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* out) {
  return on_device(
      __func__, device,
      [&](Call& call) {
        if (out->version != nvmlMemory_v2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        const auto& state = call.state();
        *out = {nvmlMemory_v2, call.info.memory_total_bytes, state.memory_reserved_bytes, state.memory_free_bytes,
                state.memory_used_bytes};
        return NVML_SUCCESS;
      },
      out);
}
nvmlReturn_t nvmlDeviceGetBAR1MemoryInfo(nvmlDevice_t device, nvmlBAR1Memory_t* out) {
  return on_device(
      __func__, device,
      [&](Call& call) {
        if (call.info.bar1_bytes == 0) return NVML_ERROR_NOT_SUPPORTED;
        const auto used = std::min<std::uint64_t>(call.info.bar1_bytes, (call.state().contexts.size() + 1) << 20);
        *out = {call.info.bar1_bytes, call.info.bar1_bytes - used, used};
        return NVML_SUCCESS;
      },
      out);
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor, unsigned* out) {
  return on_device(
      __func__, device,
      [&](Call& call) {
        return sensor == NVML_TEMPERATURE_GPU ? give(out, Maybe(celsius(call))) : NVML_ERROR_INVALID_ARGUMENT;
      },
      out);
}
nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_t* out) {
  return on_device(
      __func__, device,
      [&](Call& call) {
        if (out->version != nvmlTemperature_v1) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
        if (out->sensorType != NVML_TEMPERATURE_GPU) return NVML_ERROR_INVALID_ARGUMENT;
        out->temperature = static_cast<int>(celsius(call));
        return NVML_SUCCESS;
      },
      out);
}

nvmlReturn_t nvmlDeviceGetPerformanceState(nvmlDevice_t device, nvmlPstates_t* out) {
  return number(__func__, device, out, [](Call& call) { return call.state().pstate; });
}
nvmlReturn_t nvmlDeviceGetPowerState(nvmlDevice_t device, nvmlPstates_t* out) {
  return number(__func__, device, out, [](Call& call) { return call.state().pstate; });
}
nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, ull* out) {
  return on_device(
      __func__, device,
      [&](Call& call) {
        if (call.info.has_energy_counter == 0) return NVML_ERROR_NOT_SUPPORTED;
        return give(out, Maybe(call.state().energy_uj / 1000));
      },
      out);
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned* out) {
  return on_device(
      __func__, device,
      [&](Call& call) {
        const auto clock = clock_now(call, type);
        return clock ? give(out, clock) : NVML_ERROR_INVALID_ARGUMENT;
      },
      out);
}
// `id`: 0 current, 3 the board's maximum; application clocks (1, 2) cannot be set here.
nvmlReturn_t nvmlDeviceGetClock(nvmlDevice_t device, nvmlClockType_t type, nvmlClockId_t id, unsigned* out) {
  if (id == 0) return nvmlDeviceGetClockInfo(device, type, out);
  if (id == 3) return nvmlDeviceGetMaxClockInfo(device, type, out);
  return on_device(
      __func__, device, [](Call&) { return NVML_ERROR_NOT_SUPPORTED; }, out);
}

nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, ull* out) {
  return number(__func__, device, out, [](Call& call) { return call.state().event_reasons; });
}
nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, ull* out) {
  return number(__func__, device, out, [](Call& call) { return call.state().event_reasons; });
}

nvmlReturn_t nvmlDeviceGetEncoderUtilization(nvmlDevice_t device, unsigned* out, unsigned* period_us) {
  return idle_engine(__func__, device, out, period_us);
}
nvmlReturn_t nvmlDeviceGetDecoderUtilization(nvmlDevice_t device, unsigned* out, unsigned* period_us) {
  return idle_engine(__func__, device, out, period_us);
}
nvmlReturn_t nvmlDeviceGetJpgUtilization(nvmlDevice_t device, unsigned* out, unsigned* period_us) {
  return idle_engine(__func__, device, out, period_us);
}
nvmlReturn_t nvmlDeviceGetOfaUtilization(nvmlDevice_t device, unsigned* out, unsigned* period_us) {
  return idle_engine(__func__, device, out, period_us);
}

// KB/s over a window that starts with the call.
nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, nvmlPcieUtilCounter_t counter, unsigned* out) {
  return on_device(
      __func__, device,
      [&](Call& call) {
        if (counter != NVML_PCIE_UTIL_TX_BYTES && counter != NVML_PCIE_UTIL_RX_BYTES) {
          return NVML_ERROR_INVALID_ARGUMENT;
        }
        const auto& before = call.state();
        sleep_for(kPcieWindow);
        const auto after = call.box.snapshot(call.index, Reader::now());
        const bool tx = counter == NVML_PCIE_UTIL_TX_BYTES;
        const auto bytes = tx ? after.pcie_tx_bytes - before.pcie_tx_bytes : after.pcie_rx_bytes - before.pcie_rx_bytes;
        const auto elapsed = static_cast<std::uint64_t>(std::max<Nanos>(1, after.now - before.now));
        return give(out, Maybe(bytes * 1'000'000 / elapsed));
      },
      out);
}

nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t device, nvmlPerfPolicyType_t policy, nvmlViolationTime_t* out) {
  return on_device(
      __func__, device,
      [&](Call& call) {
        const auto& state = call.state();
        Nanos below = 0;
        switch (static_cast<int>(policy)) {
          case 0:
            below = state.sw_power_cap_ns;
            break;
          case 1:
            below = state.sw_thermal_ns + state.hw_thermal_ns;
            break;
          case 3:
            below = state.power_brake_ns;
            break;
          case 2:
          case 4:
          case 5:
          case 10:
          case 11:
            break;
          default:
            return NVML_ERROR_INVALID_ARGUMENT;
        }
        *out = {call.box.timestamp_us(call.at()), static_cast<ull>(below)};
        return NVML_SUCCESS;
      },
      out);
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t error, nvmlEccCounterType_t counter,
                                         ull* out) {
  return ecc_count(__func__, device, error, counter, out);
}
nvmlReturn_t nvmlDeviceGetMemoryErrorCounter(nvmlDevice_t device, nvmlMemoryErrorType_t error,
                                             nvmlEccCounterType_t counter, nvmlMemoryLocation_t, ull* out) {
  return ecc_count(__func__, device, error, counter, out);
}
nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned* corrected, unsigned* uncorrected,
                                       unsigned* pending, unsigned* failed) {
  return on_device(
      __func__, device,
      [&](Call& call) {
        if (call.info.has_ecc == 0) return NVML_ERROR_NOT_SUPPORTED;
        *corrected = *uncorrected = *pending = *failed = 0;
        return NVML_SUCCESS;
      },
      corrected, uncorrected, pending, failed);
}
