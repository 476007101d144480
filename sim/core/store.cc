// SPDX-License-Identifier: Apache-2.0
#include "sim/core/store.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

namespace headroom::sim {

namespace {

// Everything shared is copied as 64-bit atomics: readers may meet a buffer that is being rewritten, and notice. The
// order (free on x86) keeps the check of a buffer's sequence outside of the copy, at both ends.
void load_words(void* to, const void* from, std::size_t bytes) {
  auto* out = static_cast<char*>(to);
  const auto* in = static_cast<const std::uint64_t*>(from);
  for (std::size_t i = 0; i < bytes / 8; ++i) {
    const std::uint64_t word = __atomic_load_n(in + i, __ATOMIC_ACQUIRE);
    std::memcpy(out + i * 8, &word, 8);
  }
}

void store_words(void* to, const void* from, std::size_t bytes) {
  auto* out = static_cast<std::uint64_t*>(to);
  const auto* in = static_cast<const char*>(from);
  for (std::size_t i = 0; i < bytes / 8; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, in + i * 8, 8);
    __atomic_store_n(out + i, word, __ATOMIC_RELEASE);
  }
}

constexpr std::size_t kHeadBytes = offsetof(Image, contexts);
constexpr std::size_t kQueueHeadBytes = offsetof(contention::Device, streams);

// An image with the streams and contexts of used slots only.
template <class Copy>
void copy_image(Image& to, const Image& from, Copy copy) {
  copy(&to, &from, kHeadBytes);
  copy(&to.queue, &from.queue, kQueueHeadBytes);
  const std::uint64_t used = __atomic_load_n(&from.used, __ATOMIC_RELAXED);
  for (std::uint64_t set = used; set != 0; set &= set - 1) {
    const auto slot = static_cast<std::size_t>(std::countr_zero(set));
    copy(&to.contexts[slot], &from.contexts[slot], sizeof(Context));
    copy(&to.queue.streams[slot], &from.queue.streams[slot], sizeof(contention::Stream));
  }
}

long futex(const std::uint32_t* word, int operation, std::uint32_t value, const timespec* until) {
  return ::syscall(SYS_futex, word, operation, value, until, nullptr, FUTEX_BITSET_MATCH_ANY);
}

void* map(const std::string& path, Access access, std::size_t* size) {
  const int fd = ::open(path.c_str(), (access == Access::kRead ? O_RDONLY : O_RDWR) | O_CLOEXEC);
  if (fd < 0) return nullptr;
  struct stat st {};
  void* base = MAP_FAILED;
  if (::fstat(fd, &st) == 0 && st.st_size > 0) {
    *size = static_cast<std::size_t>(st.st_size);
    base = ::mmap(nullptr, *size, access == Access::kRead ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  }
  ::close(fd);
  return base == MAP_FAILED ? nullptr : base;
}

constexpr std::size_t kCountersBytes = kMaxFaults * sizeof(std::uint64_t);

}  // namespace

Store Store::open(const std::string& directory, Access access, OpenError* error) {
  Store store;
  *error = OpenError::kNoModel;
  store.base_ = map(directory + "/model", access, &store.size_);
  if (store.base_ == nullptr) return {};
  *error = OpenError::kWrongVersion;
  if (store.size_ < sizeof(Header)) return {};
  const Header& header = store.header();
  if (header.magic != kMagic || header.version != kLayoutVersion || header.size != store.size_) return {};
  if (header.box.device_count > kMaxDevices || store.size_ != model_size(header.box.device_count)) return {};
  if (header.fault_count > kMaxFaults) return {};
  std::size_t size = 0;
  void* counters = map(directory + "/counters", Access::kWrite, &size);
  if (counters != nullptr && size == kCountersBytes)
    store.counters_ = static_cast<std::uint64_t*>(counters);
  else if (counters != nullptr)
    ::munmap(counters, size);
  *error = OpenError::kNone;
  return store;
}

Store::~Store() {
  if (base_ != nullptr) ::munmap(base_, size_);
  if (counters_ != nullptr) ::munmap(counters_, kCountersBytes);
}

Store::Store(Store&& other) noexcept
    : base_(std::exchange(other.base_, nullptr)),
      size_(other.size_),
      counters_(std::exchange(other.counters_, nullptr)) {}

Store& Store::operator=(Store&& other) noexcept {
  std::swap(base_, other.base_);
  std::swap(size_, other.size_);
  std::swap(counters_, other.counters_);
  return *this;
}

DeviceArea& Store::area(std::uint32_t device) const {
  return *reinterpret_cast<DeviceArea*>(static_cast<char*>(base_) + kAreasOffset + device * sizeof(DeviceArea));
}

std::uint64_t load(const DeviceArea& area, Image& out) {
  for (;;) {
    const std::uint64_t seen = __atomic_load_n(&area.current, __ATOMIC_ACQUIRE);
    const Buffer& buffer = area.buffers[(seen & 0xffff) % kBuffers];
    if (__atomic_load_n(&buffer.sequence, __ATOMIC_ACQUIRE) != seen) continue;
    copy_image(out, buffer.image, load_words);
    if (__atomic_load_n(&buffer.sequence, __ATOMIC_RELAXED) == seen) return seen;
  }
}

bool commit(DeviceArea& area, std::uint32_t writer, std::uint64_t seen, const Image& image) {
  const auto in_use = static_cast<std::uint32_t>(seen & 0xffff);
  const std::uint32_t index = 2 * writer == in_use ? in_use + 1 : 2 * writer;
  Buffer& buffer = area.buffers[index];
  const std::uint64_t next = ((seen >> 16) + 1) << 16 | index;
  __atomic_store_n(&buffer.sequence, 0, __ATOMIC_RELAXED);
  copy_image(buffer.image, image, store_words);
  __atomic_store_n(&buffer.sequence, next, __ATOMIC_RELEASE);
  std::uint64_t expected = seen;
  return __atomic_compare_exchange_n(&area.current, &expected, next, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

void flush(DeviceArea& area, const BinSink& sink) {
  for (std::size_t i = 0; i < sink.count; ++i)
    store_words(&area.ring[sink.out[i].index % kHistoryBins], &sink.out[i], sizeof(BinRecord));
}

bool read_bin(const DeviceArea& area, std::int64_t index, BinRecord& out) {
  load_words(&out, &area.ring[index % kHistoryBins], sizeof(BinRecord));
  return out.index == index && is_sealed(out);
}

std::uint32_t epoch(const DeviceArea& area) { return __atomic_load_n(&area.epoch, __ATOMIC_ACQUIRE); }

void wake_all(DeviceArea& area) {
  __atomic_add_fetch(&area.epoch, 1, __ATOMIC_ACQ_REL);
  futex(&area.epoch, FUTEX_WAKE_BITSET, INT32_MAX, nullptr);
}

Woken wait(const DeviceArea& area, std::uint32_t seen, Nanos until) {
  // The default timer slack would make every wait 50 us late. It is the thread's own and goes to its children: put
  // back.
  const int slack = ::prctl(PR_GET_TIMERSLACK);
  ::prctl(PR_SET_TIMERSLACK, 1UL);
  const timespec at{.tv_sec = until / kSecond, .tv_nsec = until % kSecond};
  const long result = futex(&area.epoch, FUTEX_WAIT_BITSET, seen, &at);
  const int reason = errno;
  ::prctl(PR_SET_TIMERSLACK, static_cast<unsigned long>(slack > 0 ? slack : 0));
  if (result == 0 || reason == EAGAIN) return Woken::kEpoch;
  return reason == EINTR ? Woken::kSignal : Woken::kTime;
}

Nanos clock_now() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

void sleep_for(Nanos duration) {
  const Nanos until = clock_now() + duration;
  const timespec at{.tv_sec = until / kSecond, .tv_nsec = until % kSecond};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) == EINTR) {
  }
}

}  // namespace headroom::sim
