// SPDX-License-Identifier: Apache-2.0
#include "stacks/precision.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "stacks/frame.h"

namespace headroom::stacks {

namespace {

struct Place {
  std::string_view file, function;  // the end of its path, and its short name; "": any but the module's own code
};
// PyTorch's GradScaler when it is in effect, Lightning's plugin, and what Accelerate wraps around a model.
constexpr std::array kMixed{Place{"amp/grad_scaler.py", "_maybe_opt_step"},
                            Place{"amp/grad_scaler.py", "_unscale_grads_"}, Place{"plugins/precision/amp.py", ""},
                            Place{"accelerate/utils/operations.py", "convert_to_fp32"}};
constexpr std::array kAutocast{Place{"amp/autocast_mode.py", "decorate_autocast"},
                               Place{"amp/autocast_mode.py", "__init__"}, Place{"amp/autocast_mode.py", "__enter__"},
                               Place{"amp/autocast_mode.py", "__exit__"}};

bool is_at(const Frame& frame, std::span<const Place> places) {
  return std::any_of(places.begin(), places.end(), [&](const Place& place) {
    if (!frame.file.ends_with(place.file)) return false;
    return place.function.empty() ? short_name(frame) != "<module>" : short_name(frame) == place.function;
  });
}

}  // namespace

PrecisionSeen precision_seen(std::span<const std::string> texts) {
  PrecisionSeen seen;
  for (const std::string& text : texts) {
    if (text.find("amp") == std::string::npos && text.find("accelerate") == std::string::npos) continue;  // nearly all
    const Frame frame = frame_of(text);
    if (seen.mixed.empty() && is_at(frame, kMixed)) seen.mixed = words(frame);
    seen.autocast = seen.autocast || is_at(frame, kAutocast);
  }
  return seen;
}

}  // namespace headroom::stacks
