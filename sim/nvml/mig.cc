// SPDX-License-Identifier: Apache-2.0
//
// MIG. A described device may have it enabled, as an administrator may leave it: there are no instances in the model,
// so what the whole device no longer tells nobody tells.
#include "sim/nvml/entry.h"

using namespace headroom::sim;
using namespace headroom::sim::nvml;

namespace {

constexpr unsigned kMostInstances = 7;

template <class Out>
nvmlReturn_t refused(const char* function, nvmlDevice_t device, Out* out, nvmlReturn_t answer) {
  return on_device(
      function, device, [&](Call&) { return answer; }, out);
}

}  // namespace

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
        *out = call.mig_enabled() ? kMostInstances : 0;
        return NVML_SUCCESS;
      },
      out);
}

nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned* out) {
  return on_device(
      __func__, device,
      [&](Call&) {
        *out = 0;
        return NVML_SUCCESS;
      },
      out);
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned index, nvmlDevice_t* out) {
  return on_device(
      __func__, device,
      [&](Call& call) {
        if (call.info.mig_capable == 0) return NVML_ERROR_NOT_SUPPORTED;
        return index < kMostInstances ? NVML_ERROR_NOT_FOUND : NVML_ERROR_INVALID_ARGUMENT;
      },
      out);
}

nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned* out) {
  return refused(__func__, device, out, NVML_ERROR_NOT_SUPPORTED);
}
nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned* out) {
  return refused(__func__, device, out, NVML_ERROR_NOT_SUPPORTED);
}
nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t mig, nvmlDevice_t* out) {
  return refused(__func__, mig, out, NVML_ERROR_INVALID_ARGUMENT);
}
