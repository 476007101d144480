// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <mutex>

#include "sim/core/client.h"
#include "sim/headroom_sim.h"

// The C interface keeps one Client per process, as a driver does. It is made by the first call and never destroyed: at
// exit the kernel drops the locks, and the contexts end as those of a process that just dies.
namespace headroom::sim {

namespace {

struct Driver {
  std::once_flag once;
  Client* client = nullptr;
  int error = HEADROOM_SIM_NOT_INITIALIZED;
};

Driver& driver() {
  static Driver* the_driver = new Driver;
  return *the_driver;
}

// No exception may reach a C caller; the only one possible is a lack of host memory.
template <class F>
int with_client(F f) noexcept {
  try {
    Driver& d = driver();
    std::call_once(d.once, [&] { d.client = Client::attach(environment_of_process(), &d.error).release(); });
    return d.client == nullptr ? d.error : f(*d.client);
  } catch (const std::exception&) {
    return HEADROOM_SIM_OUT_OF_MEMORY;
  }
}

int put(const char* text, char* out, size_t size) {
  if (out == nullptr || size == 0) return HEADROOM_SIM_INVALID_VALUE;
  const size_t length = std::min(std::strlen(text), size - 1);
  std::memcpy(out, text, length);
  out[length] = '\0';
  return HEADROOM_SIM_OK;
}

struct ErrorText {
  int code;
  const char* name;
  const char* text;
};
constexpr std::array kErrors{
    ErrorText{HEADROOM_SIM_OK, "success", "no error"},
    ErrorText{HEADROOM_SIM_INVALID_VALUE, "invalid value", "an argument is out of range"},
    ErrorText{HEADROOM_SIM_OUT_OF_MEMORY, "out of memory", "the device has not enough free memory"},
    ErrorText{HEADROOM_SIM_NOT_INITIALIZED, "not initialized",
              "this process was forked from one that uses the device; start it by exec"},
    ErrorText{HEADROOM_SIM_NO_DEVICE, "no device", "no device is visible: see CUDA_VISIBLE_DEVICES"},
    ErrorText{HEADROOM_SIM_INVALID_DEVICE, "invalid device", "there is no device with this ordinal"},
    ErrorText{HEADROOM_SIM_NOT_READY, "not ready", "the work is not done yet"},
    ErrorText{HEADROOM_SIM_CONTEXT_DESTROYED, "context is destroyed", "the context of this process was taken away"},
    ErrorText{HEADROOM_SIM_DEVICE_LOST, "device lost", "the device fell off the bus; the context is of no more use"},
    ErrorText{HEADROOM_SIM_NO_BOX, "no virtual GPUs",
              "HEADROOM_SIM names no box of virtual GPUs: start the program by `headroom sim -- CMD`"},
    ErrorText{HEADROOM_SIM_INTERRUPTED, "interrupted", "a signal arrived while waiting: call again"},
    ErrorText{HEADROOM_SIM_NO_SLOT, "too many processes", "64 processes already have a context on this device"},
};

const ErrorText& error_text(int error) {
  static constexpr ErrorText kOther{-1000, "error", "an error of the fault script"};
  const auto* found = std::find_if(kErrors.begin(), kErrors.end(), [&](const ErrorText& e) { return e.code == error; });
  return found == kErrors.end() ? kOther : *found;
}

}  // namespace

}  // namespace headroom::sim

#define HEADROOM_SIM_EXPORT __attribute__((visibility("default")))

using headroom::sim::Client;
using headroom::sim::DeviceInfo;
using headroom::sim::with_client;

extern "C" {

HEADROOM_SIM_EXPORT int headroom_sim_init(void) {
  return with_client([](Client&) { return HEADROOM_SIM_OK; });
}

HEADROOM_SIM_EXPORT int headroom_sim_device_count(int* count) {
  return with_client([&](Client& client) {
    *count = client.device_count();
    return HEADROOM_SIM_OK;
  });
}

HEADROOM_SIM_EXPORT int headroom_sim_device_uuid(int device, char* text, size_t size) {
  return with_client([&](Client& client) {
    const DeviceInfo* info = nullptr;
    const int error = client.device_info(device, &info);
    return error != 0 ? error : headroom::sim::put(info->uuid, text, size);
  });
}

HEADROOM_SIM_EXPORT int headroom_sim_device_name(int device, char* text, size_t size) {
  return with_client([&](Client& client) {
    const DeviceInfo* info = nullptr;
    const int error = client.device_info(device, &info);
    return error != 0 ? error : headroom::sim::put(info->name, text, size);
  });
}

HEADROOM_SIM_EXPORT int headroom_sim_device_pci_index(int device, int* index) {
  return with_client([&](Client& client) {
    const DeviceInfo* info = nullptr;
    return client.device_info(device, &info, index);
  });
}

HEADROOM_SIM_EXPORT int headroom_sim_context_create(int device, int kind) {
  if (kind != HEADROOM_SIM_COMPUTE && kind != HEADROOM_SIM_GRAPHICS) return HEADROOM_SIM_INVALID_VALUE;
  return with_client(
      [&](Client& client) { return client.create_context(device, static_cast<headroom::sim::ContextKind>(kind)); });
}

HEADROOM_SIM_EXPORT int headroom_sim_context_destroy(int device) {
  return with_client([&](Client& client) { return client.destroy_context(device); });
}

HEADROOM_SIM_EXPORT int headroom_sim_malloc(int device, uint64_t bytes, uint64_t* address) {
  return with_client([&](Client& client) { return client.allocate(device, bytes, address); });
}

HEADROOM_SIM_EXPORT int headroom_sim_free(int device, uint64_t address) {
  return with_client([&](Client& client) { return client.release(device, address); });
}

HEADROOM_SIM_EXPORT int headroom_sim_mem_get_info(int device, uint64_t* free_bytes, uint64_t* total_bytes) {
  return with_client([&](Client& client) { return client.memory_info(device, free_bytes, total_bytes); });
}

HEADROOM_SIM_EXPORT int headroom_sim_launch(int device, int64_t duration_ns, uint32_t sm_permille) {
  return with_client([&](Client& client) { return client.launch(device, duration_ns, sm_permille); });
}

HEADROOM_SIM_EXPORT int headroom_sim_copy(int device, uint64_t bytes, int direction, int host_memory, int async) {
  return with_client([&](Client& client) {
    return client.copy(device, bytes, direction == HEADROOM_SIM_TO_DEVICE, host_memory == HEADROOM_SIM_PINNED,
                       async != 0);
  });
}

HEADROOM_SIM_EXPORT int headroom_sim_synchronize(int device) {
  return with_client([&](Client& client) { return client.synchronize(device); });
}

HEADROOM_SIM_EXPORT int headroom_sim_event_record(int device, int64_t* event) {
  return with_client([&](Client& client) { return client.record(device, event); });
}

HEADROOM_SIM_EXPORT int headroom_sim_event_query(int device, int64_t event) {
  return with_client([&](Client& client) { return client.query(device, event); });
}

HEADROOM_SIM_EXPORT int headroom_sim_event_synchronize(int device, int64_t event) {
  return with_client([&](Client& client) { return client.wait_for(device, event); });
}

HEADROOM_SIM_EXPORT int headroom_sim_event_wait(int device, int64_t event, int64_t limit_ns) {
  return with_client([&](Client& client) {
    return client.wait_for(device, event, headroom::sim::clock_now() + std::max<int64_t>(0, limit_ns));
  });
}

HEADROOM_SIM_EXPORT int headroom_sim_get_stats(int device, headroom_sim_stats* stats) {
  return with_client([&](Client& client) { return client.stats(device, stats); });
}

HEADROOM_SIM_EXPORT const char* headroom_sim_error_name(int error) { return headroom::sim::error_text(error).name; }
HEADROOM_SIM_EXPORT const char* headroom_sim_error_string(int error) { return headroom::sim::error_text(error).text; }

}  // extern "C"
