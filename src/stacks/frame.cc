// SPDX-License-Identifier: Apache-2.0
#include "stacks/frame.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <string_view>

#include "base/strings.h"
#include "model/places.h"

namespace headroom::stacks {

Frame frame_of(std::string_view text) {
  const auto open = text.rfind(" (");
  if (open == std::string_view::npos || !text.ends_with(')')) return {.function = text};
  Frame frame{.function = text.substr(0, open), .file = text.substr(open + 2, text.size() - open - 3)};
  if (const auto colon = frame.file.rfind(':'); colon != std::string_view::npos)
    if (const auto line = parse_number<int>(frame.file.substr(colon + 1)))
      frame.line = *line, frame.file = frame.file.substr(0, colon);
  return frame;
}

bool is_unnamed(const Frame& frame) {
  return frame.file.empty() && (frame.function == kCutFrames || frame.function == kOtherCode);
}

std::string text_of_call(std::string_view name, std::string_view file, int line) {
  return fmt::format("{}() ({}:{})", name, file, line);
}

bool is_call(const Frame& frame) { return frame.function.ends_with("()"); }

std::string_view short_name(const Frame& frame) {
  return frame.function.substr(frame.function.rfind('.') + 1);  // npos + 1 is 0
}

namespace {

constexpr std::array<std::string_view, 5> kLibraries{
    "/lib/python3", "/lib64/python3", "/site-packages/", "/dist-packages/",
    "/headroom_sim.py"};  // our own virtual driver, wherever sim has put it

}  // namespace

std::string_view in_library(std::string_view file) {
  std::size_t first = file.size();
  for (const std::string_view library : kLibraries)
    first = file.starts_with(library.substr(1)) ? 0 : std::min(first, file.find(library));  // of a relative path, too
  return file.substr(first);
}

bool is_library(const Frame& frame) {
  return frame.file.starts_with("<frozen ") || !in_library(frame.file).empty() ||
         frame.file == "<__array_function__ internals>";  // numpy's wrappers, made when it is imported
}

std::string words(const Frame& frame) {
  constexpr std::array<std::string_view, 4> kParts{".<genexpr>", ".<listcomp>", ".<dictcomp>", ".<setcomp>"};
  std::string_view function = frame.function;
  const auto drop = [&](std::string_view end) {
    if (function.size() <= end.size() || !function.ends_with(end)) return false;
    function.remove_suffix(end.size());
    return true;
  };
  while (std::any_of(kParts.begin(), kParts.end(), drop)) drop(".<locals>");  // one may be within another
  if (frame.file.empty()) return std::string(function);
  return fmt::format("{} ({})", function, frame.file.substr(frame.file.rfind('/') + 1));
}

namespace {

struct Place {
  std::string_view file, function;  // the end of its path, and its short name; "": any but the module's own code
};
// PyTorch's GradScaler when it is in effect, Lightning's plugins, what Accelerate wraps around a model, and the
// optimizers of DeepSpeed and Apex that keep a copy in 32 bits.
constexpr std::array kMixed{Place{"amp/grad_scaler.py", "_maybe_opt_step"},
                            Place{"amp/grad_scaler.py", "_unscale_grads_"},
                            Place{"plugins/precision/amp.py", ""},
                            Place{"plugins/precision/half.py", ""},
                            Place{"accelerate/utils/operations.py", "convert_to_fp32"},
                            Place{"deepspeed/runtime/bf16_optimizer.py", ""},
                            Place{"deepspeed/runtime/fp16/fused_optimizer.py", ""},
                            Place{"deepspeed/runtime/fp16/unfused_optimizer.py", ""},
                            Place{"apex/amp/scaler.py", "unscale"}};
// A module that is cast as a whole: the one that trains, or a copy that is saved.
constexpr std::array kCast{Place{"torch/nn/modules/module.py", "bfloat16"},
                           Place{"torch/nn/modules/module.py", "half"}};
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
    if (seen.cast.empty() && is_at(frame, kCast)) seen.cast = words(frame);
    seen.autocast = seen.autocast || is_at(frame, kAutocast);
  }
  return seen;
}

}  // namespace headroom::stacks
