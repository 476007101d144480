// SPDX-License-Identifier: Apache-2.0
#include "sim/nvml/entry.h"

#include <time.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace headroom::sim::nvml {

namespace {

constexpr std::uint32_t kMaxDevices = 64;

struct Library {
  std::mutex mutex;
  unsigned users = 0;  // nvmlInit calls not yet matched by nvmlShutdown
  std::shared_ptr<const Reader> box;
};

// Never destroyed: clients call in from their own exit handlers.
Library& library() {
  static auto* const instance = new Library;
  return *instance;
}

constexpr std::uint32_t kPerDevice = 1 + kMostMigInstances;

// Each device, followed by its instances.
std::array<nvmlDevice_st, kMaxDevices * kPerDevice> make_handles() {
  std::array<nvmlDevice_st, kMaxDevices * kPerDevice> handles{};
  for (std::uint32_t i = 0; i < handles.size(); ++i) {
    handles[i].index = i / kPerDevice;
    if (i % kPerDevice > 0) handles[i].instance = i % kPerDevice - 1;
  }
  return handles;
}
std::array<nvmlDevice_st, kMaxDevices* kPerDevice> g_handles = make_handles();

}  // namespace

nvmlReturn_t attach() {
  auto& lib = library();
  const std::lock_guard lock(lib.mutex);
  if (lib.users == 0) {
    OpenError error{};
    auto box = Reader::open(nullptr, &error);
    if (!box) {
      return error == OpenError::kWrongVersion ? NVML_ERROR_LIB_RM_VERSION_MISMATCH : NVML_ERROR_DRIVER_NOT_LOADED;
    }
    lib.box = std::move(box);
  }
  ++lib.users;
  return NVML_SUCCESS;
}

nvmlReturn_t detach() {
  auto& lib = library();
  const std::lock_guard lock(lib.mutex);
  if (lib.users == 0) return NVML_ERROR_UNINITIALIZED;
  if (--lib.users == 0) lib.box.reset();
  return NVML_SUCCESS;
}

std::shared_ptr<const Reader> attached() {
  auto& lib = library();
  const std::lock_guard lock(lib.mutex);
  return lib.box;
}

nvmlDevice_t handle_of(std::uint32_t index) { return &g_handles.at(std::size_t{index} * kPerDevice); }

nvmlDevice_t instance_handle(std::uint32_t index, std::uint32_t instance) {
  return &g_handles.at(std::size_t{index} * kPerDevice + 1 + instance);
}

std::optional<std::uint32_t> index_of(const Reader& box, const void* handle) {
  const auto handles = std::min(box.device_count(), kMaxDevices) * kPerDevice;
  for (std::uint32_t i = 0; i < handles; ++i) {
    if (handle == &g_handles[i]) return i / kPerDevice;
  }
  return std::nullopt;
}

void sleep_for(Nanos duration) {
  if (duration <= 0) return;
  timespec left{duration / kSecond, duration % kSecond};
  while (::clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR) {
  }
}

nvmlReturn_t fault_of(const Reader& box, const char* function, int device) {
  if (box.symbol_missing(function)) return NVML_ERROR_FUNCTION_NOT_FOUND;
  const auto fault = box.call_fault(function, device, Reader::now());
  sleep_for(fault.delay_ns);
  return static_cast<nvmlReturn_t>(fault.error);
}

nvmlReturn_t copy_text(std::string_view text, char* out, unsigned length) {
  if (text.size() >= length) return NVML_ERROR_INSUFFICIENT_SIZE;
  std::memcpy(out, text.data(), text.size());
  out[text.size()] = '\0';
  return NVML_SUCCESS;
}

bool Call::mig_enabled() const { return info.mig_capable != 0 && info.mig_enabled != 0; }

}  // namespace headroom::sim::nvml
