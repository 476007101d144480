// SPDX-License-Identifier: Apache-2.0
#include "base/ids.h"

#include <sys/random.h>
#include <unistd.h>

#include <cstdint>

#include "base/fd.h"
#include "base/strings.h"
#include "base/time.h"

namespace headroom {

std::string random_id() {
  std::uint64_t bits = 0;
  // Unlike std::random_device this raises no glibc version and cannot throw.
  if (::getrandom(&bits, sizeof bits, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof bits))
    bits = static_cast<std::uint64_t>(realtime_now()) * std::uint64_t{0x9e3779b97f4a7c15} ^
           static_cast<std::uint64_t>(::getpid());
  return fmt::format("{:016x}", bits);
}

std::string boot_id() {
  constexpr std::size_t kLongest = 256;
  const auto id = read_file("/proc/sys/kernel/random/boot_id", kLongest);
  return id ? std::string(trim(*id)) : "";
}

}  // namespace headroom
