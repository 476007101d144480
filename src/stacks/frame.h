// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace headroom::stacks {

// A stack, and what the GPU did while it was there: seconds of GPUs, estimated where a reading was partly busy.
struct WeightedStack {
  std::vector<std::string> frames;  // outermost first, as recorded
  double idle = 0, busy = 0;
};

// Frames of Python stacks as recordings keep them: "Net.forward (/home/u/train.py:31)", a function's qualified name,
// its file, and a line of it.

struct Frame {
  std::string_view function;  // "Net.forward"
  std::string_view file;      // "/home/u/train.py"; "" where it is not known
  int line = 0;               // the one that runs, or the function's first (docs/recording-format.md); 0: not known
  bool operator==(const Frame&) const = default;
};

// It stands for frames that are not named: kCutFrames, kOtherCode.
[[nodiscard]] bool is_unnamed(const Frame& frame);

// Views into `text`. A text of another form is a function without a file.
[[nodiscard]] Frame frame_of(std::string_view text);

// What the frame before it calls at the line that runs, by its source: a function written in C, as those in Python have
// frames of their own. "loss.item() (/home/u/train.py:41)"; the file and the line are the caller's.
[[nodiscard]] std::string text_of_call(std::string_view name, std::string_view file, int line);
[[nodiscard]] bool is_call(const Frame& frame);

// The last part of the qualified name, without what it is defined in: "forward".
[[nodiscard]] std::string_view short_name(const Frame& frame);

// The part of a library's path that is the same on other machines: "/lib/python3.11/queue.py"; "": it is no library's.
[[nodiscard]] std::string_view in_library(std::string_view file);

// True for frames of Python itself or of an installed package; what was typed in or given by -c is the user's.
[[nodiscard]] bool is_library(const Frame& frame);

// For people: "Net.forward (train.py)"; an expression that has a frame of its own, as a generator, is its function's.
[[nodiscard]] std::string words(const Frame& frame);

// The precision in which a job computes, as far as frames tell it.
struct PrecisionSeen {
  std::string mixed;      // a frame that runs in mixed precision alone, for people; "": none
  std::string cast;       // one that casts a module to 16 bits, likewise: which module, it does not say
  bool autocast = false;  // frames of torch.autocast, which may have been switched off (enabled=False)
};
// `texts`: frames as recordings keep them. What importing those modules runs tells nothing.
[[nodiscard]] PrecisionSeen precision_seen(std::span<const std::string> texts);

}  // namespace headroom::stacks
