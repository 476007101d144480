// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/time.h"
#include "model/absent.h"

namespace headroom::host {

// What is read once in a period is due a little before it is over: ticks jitter, and one that comes 1 ms early must not
// double the period.
constexpr Nanos due_after(Nanos at, Nanos period) { return at + period - period / 16; }

// A folder that is kept open, and one buffer for the small files under it: reading costs no allocation once the buffer
// has grown to the largest file. What read() returns lives until the next call.
class ProcDir {
 public:
  // A folder that cannot be opened makes every read kNotSupported.
  explicit ProcDir(const std::string& path);

  // The whole file at `relative`. kGone: it or its process does not exist (any more); kNoPermission; kNotSupported: the
  // kernel has it but not switched on; kError.
  [[nodiscard]] Reading<std::string_view> read(const char* relative);
  // The same for a file that stays open between reads; opens it first where `fd` is empty, and keeps it in `fd`, unless
  // it is one of the last descriptors that the process may have.
  [[nodiscard]] Reading<std::string_view> read_kept(Fd& fd, const char* relative);
  // The entries of the folder `relative` ("." for itself) whose names are numbers, in the kernel's order; they live
  // until the next call of this function.
  [[nodiscard]] Reading<std::span<const std::int64_t>> list_numbers(const char* relative);
  // What the link at `relative` points to; nothing where it cannot be read. Lives until the next call of read().
  [[nodiscard]] std::optional<std::string_view> read_link(const char* relative);
  [[nodiscard]] bool exists(const char* relative) const;
  [[nodiscard]] bool open() const { return static_cast<bool>(folder_); }

 private:
  [[nodiscard]] Reading<std::string_view> read_all(int fd);
  Fd folder_;
  std::vector<char> buffer_;
  std::vector<std::int64_t> numbers_;
};

[[nodiscard]] Absent absent_of_errno(int error);

}  // namespace headroom::host
