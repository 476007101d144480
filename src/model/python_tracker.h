// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <string_view>

namespace headroom {

// What tells, in a command line, a process that multiprocessing starts beside its workers to clear away what these
// leave behind: it does nothing for the job. "" in that of any other.
[[nodiscard]] inline std::string_view python_tracker_in(std::string_view cmdline) {
  constexpr std::array<std::string_view, 2> kTrackers{"from multiprocessing.resource_tracker import",
                                                      "from multiprocessing.semaphore_tracker import"};
  for (const std::string_view tracker : kTrackers)
    if (cmdline.find(tracker) != std::string_view::npos) return tracker;
  return "";
}

}  // namespace headroom
