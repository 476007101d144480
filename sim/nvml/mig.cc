// SPDX-License-Identifier: Apache-2.0
//
// MIG. A described device may have it enabled, and be cut into instances, which can be counted and named. Nothing runs
// on an instance: an instance's handle answers for the whole device, which tells no utilisation.
#include "sim/nvml/entry.h"

using namespace headroom::sim;
using namespace headroom::sim::nvml;

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned* current, unsigned* pending) {
  return on_device(
      __func__, device,
      [&](Call& call) {
        if (call.info.mig_capable == 0) return NVML_ERROR_NOT_SUPPORTED;
        *current = *pending = call.mig_enabled() ? 1 : 0;
        return NVML_SUCCESS;
      },
      current, pending);
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned* out) {
  return on_device(
      __func__, device,
      [&](Call& call) {
        *out = call.mig_enabled() ? kMostMigInstances : 0;
        return NVML_SUCCESS;
      },
      out);
}

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned* out) {
  return on_device(
      __func__, device,
      [&](Call&) {
        *out = instance_of(device) ? 1 : 0;
        return NVML_SUCCESS;
      },
      out);
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned index, nvmlDevice_t* out) {
  return on_device(
      __func__, device,
      [&](Call& call) {
        if (call.info.mig_capable == 0) return NVML_ERROR_NOT_SUPPORTED;
        if (index >= kMostMigInstances) return NVML_ERROR_INVALID_ARGUMENT;
        if (!call.mig_enabled() || index >= call.info.mig_instances) return NVML_ERROR_NOT_FOUND;
        *out = instance_handle(call.index, index);
        return NVML_SUCCESS;
      },
      out);
}

// The whole device has none of these numbers.
nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned* out) {
  return on_device(
      __func__, device, [&](Call&) { return give(out, instance_of(device)); }, out);
}
nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned* out) {
  return on_device(
      __func__, device, [&](Call&) { return give(out, instance_of(device) ? std::optional(0U) : std::nullopt); }, out);
}
nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig, nvmlDevice_t* out) {
  return on_device(
      __func__, mig,
      [&](Call& call) {
        if (!instance_of(mig)) return NVML_ERROR_INVALID_ARGUMENT;
        *out = handle_of(call.index);
        return NVML_SUCCESS;
      },
      out);
}
