// SPDX-License-Identifier: Apache-2.0
#include "stacks/frame.h"

#include <fmt/format.h>

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

// "/lib/python3.11/", "/lib64/python3/"
bool of_the_standard_library(std::string_view file) {
  for (auto at = file.find("/python3"); at != std::string_view::npos; at = file.find("/python3", at + 1)) {
    const auto before = file.substr(0, at);
    if (before.ends_with("/lib") || before.ends_with("/lib64")) return true;
  }
  return false;
}

}  // namespace

bool is_library(const Frame& frame) {
  return frame.file.starts_with("<frozen ") || frame.file.find("/site-packages/") != std::string_view::npos ||
         frame.file.find("/dist-packages/") != std::string_view::npos || of_the_standard_library(frame.file) ||
         frame.file == "<__array_function__ internals>" ||  // numpy's wrappers, made when it is imported
         frame.file.ends_with("/headroom_sim.py");          // our own virtual driver, wherever sim has put it
}

std::string words(const Frame& frame) {
  if (frame.file.empty()) return std::string(frame.function);
  return fmt::format("{} ({})", frame.function, frame.file.substr(frame.file.rfind('/') + 1));
}

}  // namespace headroom::stacks
