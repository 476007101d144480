// SPDX-License-Identifier: Apache-2.0
//
// Clients look symbols up by name and give up when one is missing, so what is not modelled is exported all the same
// and answers NVML_ERROR_NOT_SUPPORTED. The arguments are not looked at, whatever they are: the callee of this ABI
// owns none of them. Only a lost device is told apart, by the first one.
#include "sim/nvml/entry.h"

using namespace headroom::sim;
using namespace headroom::sim::nvml;

namespace {

nvmlReturn_t unsupported(const char* function, const void* first) noexcept {
  const auto box = attached();
  if (!box) return NVML_ERROR_UNINITIALIZED;
  const auto index = index_of(*box, first);
  if (const auto fault = fault_of(*box, function, index ? static_cast<int>(*index) : -1); fault != NVML_SUCCESS) {
    return fault;
  }
  return index && box->is_lost(*index, Reader::now()) ? NVML_ERROR_GPU_IS_LOST : NVML_ERROR_NOT_SUPPORTED;
}

}  // namespace

#define X(function) \
  HEADROOM_NVML_EXPORT nvmlReturn_t function(const void* device) { return unsupported(#function, device); }
#define Y(function) \
  HEADROOM_NVML_EXPORT nvmlReturn_t function() { return unsupported(#function, nullptr); }
#include "sim/nvml/unsupported.inc"
