// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "stacks/families.h"

namespace headroom::stacks {

namespace {

LoopPart part_of(std::string_view name) {
  // Names of a whole step alone: a scheduler has a step(), too, once per epoch.
  constexpr std::array<std::string_view, 8> kSteps{"train_step",      "training_step",  "train_batch",
                                                   "training_batch",  "train_on_batch", "train_one_step",
                                                   "train_minibatch", "one_step"};
  constexpr std::array<std::string_view, 4> kEnds{"epoch_end", "end_of_epoch", "end_epoch", "after_epoch"};
  const auto has = [&](std::string_view word) { return name.find(word) != std::string_view::npos; };
  if (std::find(kSteps.begin(), kSteps.end(), name) != kSteps.end()) return LoopPart::kStep;
  return std::any_of(kEnds.begin(), kEnds.end(), has) ? LoopPart::kEpochEnd : LoopPart::kUnknown;
}

}  // namespace

NamedPart named_part(std::span<const Frame> frames) {
  for (std::size_t i = frames.size(); i-- > 0;) {
    if (is_unnamed(frames[i]) || is_library(frames[i]) || is_call(frames[i])) continue;
    if (const LoopPart part = part_of(short_name(frames[i])); part != LoopPart::kUnknown)
      return {part, words(frames[i])};
  }
  return {};
}

}  // namespace headroom::stacks
