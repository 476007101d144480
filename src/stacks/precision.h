// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string>

// What frames tell of the precision in which a job computes.
namespace headroom::stacks {

struct PrecisionSeen {
  std::string mixed;      // a frame that runs in mixed precision alone, for people; "": none
  bool autocast = false;  // frames of torch.autocast, which may have been switched off (enabled=False)
};
// `texts`: frames as recordings keep them. What importing those modules runs tells nothing.
[[nodiscard]] PrecisionSeen precision_seen(std::span<const std::string> texts);

}  // namespace headroom::stacks
