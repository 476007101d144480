// SPDX-License-Identifier: Apache-2.0
#include "plan/shown.h"

#include <algorithm>
#include <array>
#include <utility>

namespace headroom::planning {

namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kShown{{
    {"install_before", "installers were seen at work in that time"},
    {"start_loader_workers", "that code ran in the training process, and cores were idle"},
    {"more_loader_workers", "what loads hardly rested, and cores were idle"},
    {"validate_less", "what does not run takes no time"},
    {"more_tasks_per_gpu", "kernels, memory and cores of the tasks were measured"},
    {"reserve_memory", "the attempts that ran out of memory were timed"},
}};

}  // namespace

std::string_view shown_of(std::string_view fix) {
  const auto row = std::find_if(kShown.begin(), kShown.end(), [&](const auto& one) { return one.first == fix; });
  return row == kShown.end() ? std::string_view() : row->second;
}

}  // namespace headroom::planning
