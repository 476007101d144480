// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/result.h"

namespace headroom::python {

using Address = std::uint64_t;
inline constexpr std::size_t kPage = 4096;

// A piece of another process's memory.
struct Region {
  Address at = 0;
  std::size_t size = 0;
  bool operator==(const Region&) const = default;
};

// The memory of another process. Tests put bytes of their own in its place.
class Memory {
 public:
  Memory() = default;
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  virtual ~Memory() = default;

  // Copies the regions one after another to `into`, and stops at the first that is not there as a whole: how many bytes
  // were copied. The process goes on meanwhile: what is copied later is younger.
  virtual std::size_t read(std::span<const Region> regions, std::byte* into) = 0;
};

// process_vm_readv(2): the process is neither stopped nor traced.
class ProcessMemory final : public Memory {
 public:
  explicit ProcessMemory(pid_t pid) : pid_(pid) {}
  std::size_t read(std::span<const Region> regions, std::byte* into) override;
  // errno of the last read that failed since this was asked; 0: none did.
  [[nodiscard]] int take_error() { return std::exchange(error_, 0); }

 private:
  pid_t pid_;
  int error_ = 0;
};

// What was copied of a process in one go, and what turned out to be needed beyond it.
class Snapshot {
 public:
  explicit Snapshot(Memory& memory) : memory_(memory) {}

  // Forgets what it has, then copies `regions` in their order, in as few system calls as it takes; what is not there is
  // left out. Of what is copied twice the later copy counts.
  void take(std::span<const Region> regions);
  // The bytes from `at` on, which are copied now where they are missing; nullptr if they are not there. They live until
  // the next call of a function that is not const.
  [[nodiscard]] const std::byte* need(Address at, std::size_t size);
  // The same bytes as they were at first, if take() copied them twice.
  [[nodiscard]] const std::byte* earlier(Address at, std::size_t size) const;
  [[nodiscard]] bool grown() const { return pieces_.size() > taken_; }  // need() had to copy something

  [[nodiscard]] std::size_t system_calls() const { return system_calls_; }

 private:
  struct Piece {
    Region region;
    std::size_t offset = 0;  // in bytes_
    [[nodiscard]] bool holds(Address at, std::size_t size) const {
      return at >= region.at && size <= region.size && at - region.at <= region.size - size;
    }
  };
  [[nodiscard]] std::optional<std::size_t> find(Address at, std::size_t size) const;
  void add(std::span<const Region> regions);

  Memory& memory_;
  std::vector<Piece> pieces_;
  std::size_t taken_ = 0;  // of pieces_, by take()
  std::vector<std::byte> bytes_;
  std::size_t used_ = 0;
  std::size_t system_calls_ = 0;
};

// Sorts and joins regions of which little lies in between: a region costs more than some hundred bytes.
void join(std::vector<Region>& regions);

// A number at `offset` of copied bytes, as this machine stores it.
template <class T>
[[nodiscard]] T number_at(const std::byte* bytes, std::size_t offset) {
  T value{};
  __builtin_memcpy(&value, bytes + offset, sizeof value);
  return value;
}

}  // namespace headroom::python
