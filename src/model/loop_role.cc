// SPDX-License-Identifier: Apache-2.0
#include "model/loop_role.h"

#include <array>

namespace headroom {

std::string_view name_of(LoopPart part) {
  constexpr std::array<std::string_view, 7> kNames{"",           "loading", "step",     "logging",
                                                   "evaluation", "saving",  "epoch_end"};
  return kNames[static_cast<std::size_t>(part)];
}

std::string_view name_of(Recurs recurs) {
  constexpr std::array<std::string_view, 5> kNames{"", "throughout", "at_times", "each_epoch", "once"};
  return kNames[static_cast<std::size_t>(recurs)];
}

}  // namespace headroom
