// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string_view>

#include "sim/nvml/functions.h"
#include "sim/read.h"

struct nvmlDevice_st {
  std::uint32_t index;
  std::optional<std::uint32_t> instance;  // of a device that is cut into instances
};

// What every exported function goes through: is the library initialised, is the handle one of ours, does the fault
// script want something of this call, is the device lost. Bodies only see calls that pass.
namespace headroom::sim::nvml {

inline constexpr unsigned kNoInstance = 0xffffffffU;  // gpuInstanceId and computeInstanceId of a device without MIG

// Between the first nvmlInit and the last nvmlShutdown.
[[nodiscard]] nvmlReturn_t attach();
[[nodiscard]] nvmlReturn_t detach();
// The box, or null when the library is not initialised. Kept alive by the holder across a concurrent nvmlShutdown.
[[nodiscard]] std::shared_ptr<const Reader> attached();

// Handles are addresses in a table that lives as long as the process: one stays valid over shutdown and init.
[[nodiscard]] nvmlDevice_t handle_of(std::uint32_t index);
[[nodiscard]] nvmlDevice_t instance_handle(std::uint32_t index, std::uint32_t instance);
[[nodiscard]] inline std::optional<std::uint32_t> instance_of(nvmlDevice_t handle) { return handle->instance; }
// Of the device, or of the device that the instance is part of.
[[nodiscard]] std::optional<std::uint32_t> index_of(const Reader& box, const void* handle);

// Sleeps as a blocking driver call would, through signals.
void sleep_for(Nanos duration);

// The fault script's word on this call; NVML_SUCCESS = go on. `device` < 0: the call names none.
[[nodiscard]] nvmlReturn_t fault_of(const Reader& box, const char* function, int device);

// Copies with the closing zero byte, or NVML_ERROR_INSUFFICIENT_SIZE and nothing.
[[nodiscard]] nvmlReturn_t copy_text(std::string_view text, char* out, unsigned length);

// One call about one device.
class Call {
 public:
  Call(const Reader& reader, std::uint32_t position) : box(reader), info(reader.device(position)), index(position) {}

  const Reader& box;
  const DeviceInfo& info;
  const std::uint32_t index;

  // The device now; taken once per call.
  [[nodiscard]] const Snapshot& state() {
    if (!state_) state_ = box.snapshot(index, Reader::now());
    return *state_;
  }
  // The instant readings speak of: now, or earlier while a fault freezes them.
  [[nodiscard]] Nanos at() { return state().now; }
  // Partitioned devices have no readings of the whole device's engines.
  [[nodiscard]] bool mig_enabled() const;

 private:
  std::optional<Snapshot> state_;
};

// A call about the library, or about the device that is being looked for (`device` < 0: none).
template <class Body, class... Out>
nvmlReturn_t on_box_for(const char* function, int device, Body&& body, const Out*... out) noexcept {
  try {
    const auto box = attached();
    if (!box) return NVML_ERROR_UNINITIALIZED;
    if (const auto fault = fault_of(*box, function, device); fault != NVML_SUCCESS) return fault;
    if ((!out || ...)) return NVML_ERROR_INVALID_ARGUMENT;
    return body(*box);
  } catch (const std::bad_alloc&) {
    return NVML_ERROR_MEMORY;
  }
}

template <class Body, class... Out>
nvmlReturn_t on_box(const char* function, Body&& body, const Out*... out) noexcept {
  return on_box_for(function, -1, body, out...);
}

template <class Body, class... Out>
nvmlReturn_t on_device(const char* function, nvmlDevice_t device, Body&& body, const Out*... out) noexcept {
  try {
    const auto box = attached();
    if (!box) return NVML_ERROR_UNINITIALIZED;
    const auto index = index_of(*box, device);
    if (!index) return NVML_ERROR_INVALID_ARGUMENT;
    if (const auto fault = fault_of(*box, function, static_cast<int>(*index)); fault != NVML_SUCCESS) return fault;
    if (box->is_lost(*index, Reader::now())) return NVML_ERROR_GPU_IS_LOST;
    if ((!out || ...)) return NVML_ERROR_INVALID_ARGUMENT;
    Call call(*box, *index);
    return body(call);
  } catch (const std::bad_alloc&) {
    return NVML_ERROR_MEMORY;
  }
}

// The commonest body: one number out of the description or the state; empty = the device has none.
template <class Out, class Value>
nvmlReturn_t give(Out* out, const std::optional<Value>& value) {
  if (!value) return NVML_ERROR_NOT_SUPPORTED;
  *out = static_cast<Out>(*value);
  return NVML_SUCCESS;
}

}  // namespace headroom::sim::nvml
