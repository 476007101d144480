// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace headroom::report {

// Fields from outside are made visible (base/visible.h) where they are padded and wrapped.

inline constexpr std::size_t kNarrowest = 40, kWidest = 160;  // columns

// How a text report is laid out. The width is clamped to 40..160.
struct TextOptions {
  std::size_t width = 80;
  bool colour = false;    // ANSI; only supports what the words say
  bool utf8 = true;       // block characters in bars; else '#'
  bool full = false;      // all that is known, however long
  std::string recording;  // how the next commands name the recording; "": by its path
  std::string reading;    // options that it takes to read it, such as " --log-interval 30s"
};
[[nodiscard]] TextOptions clamped(TextOptions options);

// Columns a string takes: UTF-8 characters are counted as one each.
[[nodiscard]] std::size_t display_width(std::string_view text);
[[nodiscard]] std::size_t lines_in(std::string_view text);
[[nodiscard]] std::string pad_right(std::string_view text, std::size_t width);  // cut with "…" if longer
[[nodiscard]] std::string pad_left(std::string_view text, std::size_t width);

// Words of `text` on lines of at most `width` columns; the first begins with `first`, the others with `rest`.
// Ends with a newline; "" for an empty text. A word longer than a line keeps a line of its own.
[[nodiscard]] std::string wrap(std::string_view text, std::size_t width, std::string_view first, std::string_view rest);

// A bar of `share` of `cells` columns, padded with blanks to `cells`.
[[nodiscard]] std::string bar(double share, std::size_t cells, bool utf8);

[[nodiscard]] std::string bold(std::string_view text, const TextOptions& options);

}  // namespace headroom::report
