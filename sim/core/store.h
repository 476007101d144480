// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "sim/core/image.h"

// The model file as memory: snapshots, commits, history, waiting. See layout.h for why this is safe.
namespace headroom::sim {

enum class Access { kRead, kWrite };

// Owns the mapping of `model` (and of `counters`, where it may be written).
class Store {
 public:
  // `error` says why the result is empty.
  Store() = default;
  static Store open(const std::string& directory, Access access, OpenError* error);
  ~Store();
  Store(Store&& other) noexcept;
  Store& operator=(Store&& other) noexcept;
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  [[nodiscard]] explicit operator bool() const { return base_ != nullptr; }
  [[nodiscard]] const Header& header() const { return *static_cast<const Header*>(base_); }
  [[nodiscard]] DeviceArea& area(std::uint32_t device) const;
  [[nodiscard]] std::uint64_t* counters() const { return counters_; }

 private:
  void* base_ = nullptr;
  std::size_t size_ = 0;
  std::uint64_t* counters_ = nullptr;
};

// Copies the current image; returns the value of `current` that it belongs to. Slots that were never used must be zero
// in `out` (a fresh Image, or one that held an earlier state of the same device).
std::uint64_t load(const DeviceArea& area, Image& out);

// Publishes the image in a buffer of `writer`, if `current` is still `seen`. One thread per writer at a time.
[[nodiscard]] bool commit(DeviceArea& area, std::uint32_t writer, std::uint64_t seen, const Image& image);

// Bins are written after the commit that made them true; writing them again changes nothing.
void flush(DeviceArea& area, const BinSink& sink);
[[nodiscard]] bool read_bin(const DeviceArea& area, std::int64_t index, BinRecord& out);

[[nodiscard]] std::uint32_t epoch(const DeviceArea& area);
// Something other than an arrival changed: everybody looks again.
void wake_all(DeviceArea& area);
enum class Woken { kTime, kEpoch, kSignal };
// Sleeps until `until` (CLOCK_MONOTONIC) or until the epoch is no longer `seen`.
Woken wait(const DeviceArea& area, std::uint32_t seen, Nanos until);

[[nodiscard]] Nanos clock_now();  // CLOCK_MONOTONIC
void sleep_for(Nanos duration);

}  // namespace headroom::sim
