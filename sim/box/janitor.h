// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>

#include "base/fd.h"
#include "base/result.h"
#include "sim/box/box.h"
#include "sim/core/transaction.h"

namespace headroom::sim {

// Notices at once that a program in the box has died, and frees what it held. Everything works without it, only later.
// Also keeps history flowing while nobody works, and translates pids of other pid namespaces, as a driver does.
class Janitor {
 public:
  [[nodiscard]] static Result<Janitor> start(const Box& box);

  // Becomes readable when there is something to do; then call tidy().
  [[nodiscard]] int fd() const { return epoll_.get(); }
  void tidy();

 private:
  explicit Janitor(const Box& box) : box_(&box) {}
  [[nodiscard]] std::int64_t owner_of(std::uint32_t device, std::uint32_t slot) const;
  void look_at(std::uint32_t device);
  void follow(std::int64_t pid);

  const Box* box_;
  Fd epoll_, wake_, timer_;
  std::map<std::int64_t, Fd> followed_;  // pid -> pidfd
  Writer writer_;
};

}  // namespace headroom::sim
