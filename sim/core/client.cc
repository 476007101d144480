// SPDX-License-Identifier: Apache-2.0
#include "sim/core/client.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdlib>

#include "sim/core/faults.h"
#include "sim/core/transaction.h"
#include "sim/core/visible.h"

namespace headroom::sim {

namespace {

constexpr Nanos kLongestSleep = 50 * kMillisecond;  // bounds how late a change nobody announced is noticed
constexpr Nanos kSweepPeriod = 20 * kMillisecond;
constexpr Nanos kLongestLaunch = 3600 * kSecond;
constexpr std::uint64_t kGranularity = 2 << 20;  // allocations take whole 2 MiB pages

struct flock lock_of(short type, std::int64_t byte) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  lock.l_start = byte;
  lock.l_len = 1;
  return lock;
}

std::uint64_t capacity(const Header& header, std::uint32_t device) {
  return header.devices[device].memory_total_bytes - header.devices[device].memory_reserved_bytes;
}

std::int64_t lock_byte(std::uint32_t device, std::uint32_t slot) {
  return static_cast<std::int64_t>(device) * static_cast<std::int64_t>(kSlots) + slot;
}

}  // namespace

Environment environment_of_process() {
  return {std::getenv("HEADROOM_SIM"), std::getenv("CUDA_VISIBLE_DEVICES"), std::getenv("CUDA_DEVICE_ORDER")};
}

struct Client::Attached {
  std::uint32_t device = 0;
  bool active = false;
  std::uint32_t slot = 0;
  Writer writer;
  std::uint32_t generation = 0;
  ContextKind kind = ContextKind::kCompute;
  Nanos submitted_base = 0;  // of the slot when the context was created
  Nanos last_sweep = 0;
  std::map<std::uint64_t, std::uint64_t> allocations;  // address -> bytes
  std::uint64_t next_address = 0x7f0000000000;
  std::mutex mutex;  // threads of this process share the slot and its buffers
};

std::unique_ptr<Client> Client::attach(const Environment& environment, int* error) {
  *error = HEADROOM_SIM_NO_BOX;
  if (environment.directory == nullptr || *environment.directory == '\0') return nullptr;
  std::unique_ptr<Client> client(new Client);
  client->directory_ = environment.directory;
  OpenError reason{};
  client->store_ = Store::open(client->directory_, Access::kWrite, &reason);
  if (!client->store_) return nullptr;
  // Opened once and kept: closing any descriptor of this file would drop all locks of the process.
  client->alive_fd_ = ::open((client->directory_ + "/alive").c_str(), O_RDWR | O_CLOEXEC);
  if (client->alive_fd_ < 0) return nullptr;
  const Header& header = client->store_.header();
  client->ordinals_ = visible_devices(environment.mask, environment.order, header.devices, header.box.device_count);
  client->attached_.resize(header.box.device_count);
  for (std::uint32_t i = 0; i < header.box.device_count; ++i) {
    client->attached_[i] = std::make_unique<Attached>();
    client->attached_[i]->device = i;
  }
  client->owner_ = ::getpid();
  *error = HEADROOM_SIM_OK;
  return client;
}

Client::~Client() {
  if (alive_fd_ < 0) return;
  if (::getpid() == owner_) {
    for (int i = 0; i < device_count(); ++i) destroy_context(i);
  }
  ::close(alive_fd_);
}

// Every call passes here: is this process the one that attached, is the ordinal valid, does the script have a say?
int Client::enter(const char* call, int ordinal, std::uint32_t* device) {
  if (::getpid() != owner_) return HEADROOM_SIM_NOT_INITIALIZED;
  if (ordinals_.empty()) return HEADROOM_SIM_NO_DEVICE;
  if (ordinal < 0 || ordinal >= device_count()) return HEADROOM_SIM_INVALID_DEVICE;
  *device = ordinals_[static_cast<std::size_t>(ordinal)];
  const Header& header = store_.header();
  if (header.fault_count == 0) return HEADROOM_SIM_OK;
  Image image{};
  load(store_.area(*device), image);
  const CallFault fault =
      call_fault(header, store_.counters(), {call, static_cast<int>(*device)}, image.first_context, clock_now());
  if (fault.delay_ns > 0) sleep_for(fault.delay_ns);
  return fault.error;
}

int Client::enter_context(const char* call, int ordinal, Attached** attached) {
  std::uint32_t device = 0;
  if (const int error = enter(call, ordinal, &device); error != 0) return error;
  *attached = attached_[device].get();
  const bool active = [&] {
    const std::lock_guard guard((*attached)->mutex);
    return (*attached)->active;
  }();
  return active ? HEADROOM_SIM_OK : create_context(ordinal, ContextKind::kCompute);
}

// Is the image's context in our slot still ours, and did it live through no loss of the device?
int Client::check(const Attached& attached, const Image& image) const {
  if (!attached.active) return HEADROOM_SIM_CONTEXT_DESTROYED;
  const Context& context = image.contexts[attached.slot];
  if (!is_live(image, attached.slot) || context.generation != attached.generation)
    return HEADROOM_SIM_CONTEXT_DESTROYED;
  const bool broken =
      lost_between(store_.header(), attached.device, image.first_context, context.created, image.queue.t);
  return broken ? HEADROOM_SIM_DEVICE_LOST : HEADROOM_SIM_OK;
}

bool Client::slot_is_free(std::uint32_t device, std::uint32_t slot) const {
  struct flock lock = lock_of(F_WRLCK, lock_byte(device, slot));
  return ::fcntl(alive_fd_, F_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

int Client::take_slot(Attached& attached) {
  for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
    struct flock lock = lock_of(F_WRLCK, lock_byte(attached.device, slot));
    int result = 0;
    do result = ::fcntl(alive_fd_, F_SETLK, &lock);
    while (result != 0 && errno == EINTR);
    if (result == 0) {
      attached.slot = attached.writer.number = slot;
      return HEADROOM_SIM_OK;
    }
    if (errno != EAGAIN && errno != EACCES) return HEADROOM_SIM_NO_BOX;
  }
  return HEADROOM_SIM_NO_SLOT;
}

void Client::tell_supervisor() const {
  const int fd = ::open((directory_ + "/wake").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return;  // nobody listens: everything works without it, only later
  (void)!::write(fd, "c", 1);
  ::close(fd);
}

int Client::create_context(int ordinal, ContextKind kind) {
  std::uint32_t device = 0;
  if (const int error = enter("cudaSetDevice", ordinal, &device); error != 0) return error;
  Attached& attached = *attached_[device];
  const std::lock_guard guard(attached.mutex);
  if (attached.active) return HEADROOM_SIM_OK;
  if (const int error = take_slot(attached); error != 0) return error;
  const Header& header = store_.header();
  const auto create = [&](Image& image) {
    if (lost(header, device, image.first_context, image.queue.t)) return int{HEADROOM_SIM_DEVICE_LOST};
    attached.generation =
        sim::create_context(image, header, device, attached.slot, {static_cast<std::uint32_t>(owner_), kind});
    return memory_used(image, header, device) <= capacity(header, device) ? int{HEADROOM_SIM_OK}
                                                                          : int{HEADROOM_SIM_OUT_OF_MEMORY};
  };
  int error = transact(store_, attached.device, attached.writer, create);
  if (error == HEADROOM_SIM_OUT_OF_MEMORY && sweep(attached))
    error = transact(store_, attached.device, attached.writer, create);
  if (error != 0) {
    struct flock lock = lock_of(F_UNLCK, lock_byte(device, attached.slot));
    ::fcntl(alive_fd_, F_SETLK, &lock);
    return error;
  }
  attached.active = true;
  attached.kind = kind;
  attached.submitted_base = attached.writer.scratch->queue.streams[attached.slot].submitted;
  attached.allocations.clear();
  wake_all(store_.area(device));  // the slot's earlier owner may have died with work queued
  tell_supervisor();
  return HEADROOM_SIM_OK;
}

int Client::destroy_context(int ordinal) {
  if (::getpid() != owner_) return HEADROOM_SIM_NOT_INITIALIZED;
  if (ordinal < 0 || ordinal >= device_count()) return HEADROOM_SIM_INVALID_DEVICE;
  const std::uint32_t device = ordinals_[static_cast<std::size_t>(ordinal)];
  Attached& attached = *attached_[device];
  const std::lock_guard guard(attached.mutex);
  if (!attached.active) return HEADROOM_SIM_OK;
  (void)transact(store_, attached.device, attached.writer, [&](Image& image) {
    const int error = check(attached, image);
    if (error != 0 && error != HEADROOM_SIM_DEVICE_LOST) return error;
    end_context(image, store_.header(), device, attached.slot, End::kDestroyed);
    return int{HEADROOM_SIM_OK};
  });
  attached.active = false;
  struct flock lock = lock_of(F_UNLCK, lock_byte(device, attached.slot));
  ::fcntl(alive_fd_, F_SETLK, &lock);
  wake_all(store_.area(device));
  return HEADROOM_SIM_OK;
}

// Drops contexts whose processes are gone, ours excepted (a process does not see its own locks). True if it found any.
// The caller holds the device's mutex and the slot's lock.
bool Client::sweep(Attached& attached) {
  DeviceArea& area = store_.area(attached.device);
  attached.last_sweep = clock_now();
  load(area, *attached.writer.scratch);
  std::uint64_t dead = 0;
  std::uint32_t generations[kSlots];
  for (std::uint64_t set = attached.writer.scratch->live; set != 0; set &= set - 1) {
    const auto slot = static_cast<std::uint32_t>(std::countr_zero(set));
    if (slot == attached.slot || !slot_is_free(attached.device, slot)) continue;
    dead |= std::uint64_t{1} << slot;
    generations[slot] = attached.writer.scratch->contexts[slot].generation;
  }
  if (dead == 0) return false;
  (void)transact(store_, attached.device, attached.writer, [&](Image& image) {
    for (std::uint64_t set = dead & image.live; set != 0; set &= set - 1) {
      const auto slot = static_cast<std::uint32_t>(std::countr_zero(set));
      if (image.contexts[slot].generation == generations[slot])
        end_context(image, store_.header(), attached.device, slot, End::kDied);
    }
    return int{HEADROOM_SIM_OK};
  });
  wake_all(area);
  return true;
}

int Client::allocate(int ordinal, std::uint64_t bytes, std::uint64_t* address) {
  Attached* attached = nullptr;
  if (const int error = enter_context("cudaMalloc", ordinal, &attached); error != 0) return error;
  const Header& header = store_.header();
  const std::uint64_t limit = capacity(header, attached->device);
  if (bytes > limit) return HEADROOM_SIM_OUT_OF_MEMORY;
  const std::uint64_t rounded = (std::max<std::uint64_t>(1, bytes) + kGranularity - 1) / kGranularity * kGranularity;
  const std::lock_guard guard(attached->mutex);
  const auto grow = [&](Image& image) {
    if (const int error = check(*attached, image); error != 0) return error;
    if (memory_used(image, header, attached->device) + rounded > limit) return int{HEADROOM_SIM_OUT_OF_MEMORY};
    image.contexts[attached->slot].memory_bytes += rounded;
    return int{HEADROOM_SIM_OK};
  };
  int error = transact(store_, attached->device, attached->writer, grow);
  if (error == HEADROOM_SIM_OUT_OF_MEMORY && sweep(*attached))
    error = transact(store_, attached->device, attached->writer, grow);
  if (error != 0) return error;
  *address = attached->next_address;
  attached->next_address += rounded;
  attached->allocations[*address] = rounded;
  return HEADROOM_SIM_OK;
}

int Client::release(int ordinal, std::uint64_t address) {
  Attached* attached = nullptr;
  if (const int error = enter_context("cudaFree", ordinal, &attached); error != 0) return error;
  const std::lock_guard guard(attached->mutex);
  const auto found = attached->allocations.find(address);
  if (found == attached->allocations.end()) return HEADROOM_SIM_INVALID_VALUE;
  const int error = transact(store_, attached->device, attached->writer, [&](Image& image) {
    if (const int why = check(*attached, image); why != 0) return why;
    image.contexts[attached->slot].memory_bytes -= found->second;
    return int{HEADROOM_SIM_OK};
  });
  if (error == 0) attached->allocations.erase(found);
  return error;
}

int Client::memory_info(int ordinal, std::uint64_t* free_bytes, std::uint64_t* total_bytes) {
  Attached* attached = nullptr;
  if (const int error = enter_context("cudaMemGetInfo", ordinal, &attached); error != 0) return error;
  const std::lock_guard guard(attached->mutex);
  Image& image = *attached->writer.scratch;
  load(store_.area(attached->device), image);
  const std::uint64_t limit = capacity(store_.header(), attached->device);
  *free_bytes = limit - std::min(limit, memory_used(image, store_.header(), attached->device));
  *total_bytes = store_.header().devices[attached->device].memory_total_bytes;
  return HEADROOM_SIM_OK;
}

int Client::launch(int ordinal, Nanos duration, std::uint32_t share_permille) {
  Attached* attached = nullptr;
  if (const int error = enter_context("cudaLaunchKernel", ordinal, &attached); error != 0) return error;
  if (duration < 0 || duration > kLongestLaunch || share_permille < 1 || share_permille > 1000)
    return HEADROOM_SIM_INVALID_VALUE;
  return enqueue(*attached, {duration, share_permille, contention::Engine::kKernel}, 0, 0);
}

int Client::copy(int ordinal, std::uint64_t bytes, bool to_device, bool pinned, bool async) {
  Attached* attached = nullptr;
  if (const int error = enter_context("cudaMemcpy", ordinal, &attached); error != 0) return error;
  const DeviceInfo& info = store_.header().devices[attached->device];
  const std::uint64_t speed = pinned ? info.copy_pinned_bytes_per_s : info.copy_pageable_bytes_per_s;
  const double transfer = static_cast<double>(bytes) / static_cast<double>(std::max<std::uint64_t>(1, speed)) * 1e9;
  if (transfer > static_cast<double>(kLongestLaunch)) return HEADROOM_SIM_INVALID_VALUE;
  const Nanos duration = static_cast<Nanos>(info.copy_latency_ns) + static_cast<Nanos>(transfer);
  const contention::Work work{duration, 0, contention::Engine::kCopy};
  const int error = enqueue(*attached, work, to_device ? bytes : 0, to_device ? 0 : bytes);
  if (error != 0 || (async && pinned)) return error;
  int result = 0;
  do result = synchronize(ordinal);  // not given back to the caller when interrupted: he would queue the copy twice
  while (result == HEADROOM_SIM_INTERRUPTED);
  return result;
}

int Client::enqueue(Attached& attached, const contention::Work& work, std::uint64_t to_bytes,
                    std::uint64_t from_bytes) {
  for (;;) {
    Nanos oldest = 0;
    bool full = false;
    {
      const std::lock_guard guard(attached.mutex);
      const int error = transact(store_, attached.device, attached.writer, [&](Image& image) {
        if (const int why = check(attached, image); why != 0) return why;
        const contention::Stream& stream = image.queue.streams[attached.slot];
        full = contention::submit(image.queue, attached.slot, work) < 0;
        oldest = stream.segments[stream.head % contention::kMaxSegments].end;
        if (!full) {
          image.pcie_rx_bytes += to_bytes;
          image.pcie_tx_bytes += from_bytes;
        }
        return int{HEADROOM_SIM_OK};
      });
      if (error != 0 || !full) return error;
    }
    // As with CUDA, a full queue blocks the launch until its oldest work is done.
    if (const int error = wait_until(attached, oldest, INT64_MAX); error != 0 && error != HEADROOM_SIM_INTERRUPTED)
      return error;
  }
}

int Client::synchronize(int ordinal) {
  Nanos ticket = 0;
  if (const int error = record(ordinal, &ticket); error != 0) return error;
  return wait_for(ordinal, ticket);
}

int Client::record(int ordinal, Nanos* ticket) {
  Attached* attached = nullptr;
  if (const int error = enter_context("cudaEventRecord", ordinal, &attached); error != 0) return error;
  const std::lock_guard guard(attached->mutex);
  Image& image = *attached->writer.scratch;
  load(store_.area(attached->device), image);
  *ticket = image.queue.streams[attached->slot].submitted;
  return HEADROOM_SIM_OK;
}

int Client::query(int ordinal, Nanos ticket) {
  Attached* attached = nullptr;
  if (const int error = enter_context("cudaEventQuery", ordinal, &attached); error != 0) return error;
  const std::lock_guard guard(attached->mutex);
  const int error = look(*attached);
  if (error != 0) return error;
  const bool done = attached->writer.scratch->queue.streams[attached->slot].attained >= ticket;
  return done ? HEADROOM_SIM_OK : HEADROOM_SIM_NOT_READY;
}

int Client::wait_for(int ordinal, Nanos ticket, Nanos deadline) {
  Attached* attached = nullptr;
  if (const int error = enter_context("cudaDeviceSynchronize", ordinal, &attached); error != 0) return error;
  return wait_until(*attached, ticket, deadline);
}

// A private look: the scratch image, advanced to now and published nowhere. The caller holds the mutex.
int Client::look(Attached& attached) {
  load(store_.area(attached.device), *attached.writer.scratch);
  BinSink sink{attached.writer.bins.data(), attached.writer.bins.size()};
  while (!advance(*attached.writer.scratch, store_.header(), attached.device, clock_now(), sink)) sink.count = 0;
  return check(attached, *attached.writer.scratch);
}

int Client::wait_until(Attached& attached, Nanos ticket, Nanos deadline) {
  const Header& header = store_.header();
  for (;;) {
    Nanos until = 0;
    std::uint32_t seen = 0;
    {
      const std::lock_guard guard(attached.mutex);
      if (attached.active && clock_now() - attached.last_sweep > kSweepPeriod) sweep(attached);
      seen = epoch(store_.area(attached.device));
      if (const int error = look(attached); error != 0) return error;
      const Image& image = *attached.writer.scratch;
      if (image.queue.streams[attached.slot].attained >= ticket) return HEADROOM_SIM_OK;
      if (image.queue.t >= deadline) return HEADROOM_SIM_NOT_READY;
      const Nanos horizon =
          next_edge(header, attached.device, image.first_context, image.queue.t, image.queue.t + kLongestSleep);
      until = contention::completion(image.queue, policy_at(image, header, attached.device), attached.slot, ticket,
                                     horizon);
    }
    if (wait(store_.area(attached.device), seen, std::min(until, deadline)) == Woken::kSignal)
      return HEADROOM_SIM_INTERRUPTED;
  }
}

int Client::stats(int ordinal, headroom_sim_stats* out) {
  Attached* attached = nullptr;
  if (const int error = enter_context("headroom_sim_get_stats", ordinal, &attached); error != 0) return error;
  const std::lock_guard guard(attached->mutex);
  if (const int error = look(*attached); error != 0) return error;
  const Image& image = *attached->writer.scratch;
  const Context& context = image.contexts[attached->slot];
  const contention::Stream& stream = image.queue.streams[attached->slot];
  *out = {.now_ns = image.queue.t,
          .submitted_ns = stream.submitted - attached->submitted_base,
          .attained_ns = stream.attained - attached->submitted_base,
          .kernel_ns = stream.kernel - context.kernel_base,
          .created_ns = context.created,
          .done_at_ns = stream.done_at,
          .busy_ns = image.queue.busy,
          .memory_bytes = context.memory_bytes};
  return HEADROOM_SIM_OK;
}

int Client::device_info(int ordinal, const DeviceInfo** info, int* pci_index) {
  std::uint32_t device = 0;
  if (const int error = enter("cudaGetDeviceProperties", ordinal, &device); error != 0) return error;
  *info = &store_.header().devices[device];
  if (pci_index != nullptr) *pci_index = static_cast<int>(device);
  return HEADROOM_SIM_OK;
}

}  // namespace headroom::sim
