// SPDX-License-Identifier: Apache-2.0
// A stand-in for the NVML of a very old driver, for tests: only the unversioned entry points, one GPU.
#include <cstring>

extern "C" {
int nvmlInit() { return 0; }
int nvmlDeviceGetCount(unsigned* count) {
  *count = 1;
  return 0;
}
int nvmlDeviceGetHandleByIndex(unsigned, void** device) {
  static int gpu;
  *device = &gpu;
  return 0;
}
int nvmlDeviceGetUUID(void*, char* out, unsigned size) {
  std::strncpy(out, "GPU-01d00000-0000-0000-0000-000000000000", size);
  return 0;
}
int nvmlDeviceGetUtilizationRates(void*, unsigned* out) {
  out[0] = 7;
  out[1] = 3;
  return 0;
}
int nvmlDeviceGetComputeRunningProcesses(void*, unsigned* count, void* out) {
  struct Row {
    unsigned pid;
    unsigned long long memory;
  };
  *count = 1;
  *static_cast<Row*>(out) = {4242, 1048576};
  return 0;
}
}
