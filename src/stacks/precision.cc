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
// PyTorch's GradScaler when it is in effect, a module that is cast as a whole, Lightning's plugins, what Accelerate
// wraps around a model, and the optimizers of DeepSpeed and Apex that keep a copy in 32 bits.
constexpr std::array kMixed{Place{"amp/grad_scaler.py", "_maybe_opt_step"},
                            Place{"amp/grad_scaler.py", "_unscale_grads_"},
                            Place{"torch/nn/modules/module.py", "bfloat16"},
                            Place{"torch/nn/modules/module.py", "half"},
                            Place{"plugins/precision/amp.py", ""},
                            Place{"plugins/precision/half.py", ""},
                            Place{"accelerate/utils/operations.py", "convert_to_fp32"},
                            Place{"deepspeed/runtime/bf16_optimizer.py", ""},
                            Place{"deepspeed/runtime/fp16/fused_optimizer.py", ""},
                            Place{"deepspeed/runtime/fp16/unfused_optimizer.py", ""},
                            Place{"apex/amp/scaler.py", "unscale"}};
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
  constexpr std::array<std::string_view, 5> kWords{"amp", "accelerate", "precision/", "16", "half"};  // of all places
  PrecisionSeen seen;
  for (const std::string& text : texts) {
    if (std::none_of(kWords.begin(), kWords.end(),
                     [&](std::string_view word) { return text.find(word) != std::string::npos; }))
      continue;  // nearly all
    const Frame frame = frame_of(text);
    if (seen.mixed.empty() && is_at(frame, kMixed)) seen.mixed = words(frame);
    seen.autocast = seen.autocast || is_at(frame, kAutocast);
  }
  return seen;
}

}  // namespace headroom::stacks
