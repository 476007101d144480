// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "sim/core/store.h"
#include "sim/headroom_sim.h"

// The write side: what one process does on the devices of its box. One Client per process, because record locks are
// per process. All functions return the codes of headroom_sim.h.
namespace headroom::sim {

struct Environment {
  const char* directory = nullptr;  // HEADROOM_SIM
  const char* mask = nullptr;       // CUDA_VISIBLE_DEVICES
  const char* order = nullptr;      // CUDA_DEVICE_ORDER
};
[[nodiscard]] Environment environment_of_process();

class Client {
 public:
  // Null and `*error` on failure.
  static std::unique_ptr<Client> attach(const Environment& environment, int* error);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  [[nodiscard]] int device_count() const { return static_cast<int>(ordinals_.size()); }
  int device_info(int ordinal, const DeviceInfo** info, int* pci_index = nullptr);

  int create_context(int ordinal, ContextKind kind);
  int destroy_context(int ordinal);
  int allocate(int ordinal, std::uint64_t bytes, std::uint64_t* address);
  int release(int ordinal, std::uint64_t address);
  int memory_info(int ordinal, std::uint64_t* free_bytes, std::uint64_t* total_bytes);
  int launch(int ordinal, Nanos duration, std::uint32_t share_permille);
  int copy(int ordinal, std::uint64_t bytes, bool to_device, bool pinned, bool async);
  int synchronize(int ordinal);
  int record(int ordinal, Nanos* ticket);
  int query(int ordinal, Nanos ticket);
  // Not later than `deadline` (CLOCK_MONOTONIC): then HEADROOM_SIM_NOT_READY.
  int wait_for(int ordinal, Nanos ticket, Nanos deadline = INT64_MAX);
  int stats(int ordinal, headroom_sim_stats* out);

 private:
  struct Attached;  // this process on one device
  Client() = default;

  int enter(const char* call, int ordinal, std::uint32_t* device);
  int enter_context(const char* call, int ordinal, Attached** attached);
  int check(const Attached& attached, const Image& image) const;
  int take_slot(Attached& attached);
  int enqueue(Attached& attached, const contention::Work& work, std::uint64_t to_bytes, std::uint64_t from_bytes);
  int wait_until(Attached& attached, Nanos ticket, Nanos deadline);
  int look(Attached& attached);
  bool sweep(Attached& attached);
  [[nodiscard]] bool slot_is_free(std::uint32_t device, std::uint32_t slot) const;
  void tell_supervisor() const;

  Store store_;
  std::string directory_;
  std::vector<std::uint32_t> ordinals_;
  std::vector<std::unique_ptr<Attached>> attached_;  // by device, in PCI order
  int alive_fd_ = -1;
  pid_t owner_ = 0;
};

}  // namespace headroom::sim
