// SPDX-License-Identifier: Apache-2.0
#include "live/slurm_signals.h"

#include <fmt/format.h>

#include "base/fd.h"
#include "model/slurm.h"

namespace headroom {

bool sent_to_whole_step(const Signal& signal, const std::string& root) {
  if (signal.from_kernel || signal.sender <= 0) return false;
  constexpr std::size_t kMostOfTitle = 4096;
  const auto title = read_file(fmt::format("{}/proc/{}/cmdline", root, signal.sender), kMostOfTitle);
  const auto sender = title ? slurmstepd_of(*title) : std::nullopt;
  return sender && sender->step;
}

}  // namespace headroom
