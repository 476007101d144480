// SPDX-License-Identifier: Apache-2.0
#include "report/layout.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace headroom::report {

TextOptions clamped(TextOptions options) {
  options.width = std::clamp<std::size_t>(options.width, 60, 160);
  return options;
}

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string pad_right(std::string_view text, std::size_t width) {
  const std::size_t have = display_width(text);
  if (have <= width) return std::string(text) + std::string(width - have, ' ');
  std::string cut;
  std::size_t columns = 0;
  for (const char c : text) {
    const bool starts = (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    if (starts && ++columns == width) break;
    cut += c;
  }
  return cut + "~";
}

std::string pad_left(std::string_view text, std::size_t width) {
  const std::size_t have = display_width(text);
  return std::string(have < width ? width - have : 0, ' ') + std::string(text);
}

std::string wrap(std::string_view text, std::size_t width, std::string_view first, std::string_view rest) {
  std::string out, line(first);
  bool empty = true;
  while (!text.empty()) {
    const auto blank = text.find(' ');
    const auto word = text.substr(0, blank);
    text.remove_prefix(blank == std::string_view::npos ? text.size() : blank + 1);
    if (word.empty()) continue;
    if (!empty && display_width(line) + 1 + display_width(word) > width) {
      out += line + "\n";
      line = rest;
      empty = true;
    }
    if (!empty) line += ' ';
    line += word;
    empty = false;
  }
  if (!empty) out += line + "\n";
  return out;
}

std::string bar(double share, std::size_t cells, bool utf8) {
  const double length = std::clamp(share, 0.0, 1.0) * static_cast<double>(cells);
  const auto whole = static_cast<std::size_t>(length);
  std::string text;
  if (!utf8) {
    const auto rounded = static_cast<std::size_t>(std::lround(length));
    text = std::string(share > 0 ? std::max<std::size_t>(1, rounded) : rounded, '#');
    return pad_right(text, cells);
  }
  constexpr std::array kEighths{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
  for (std::size_t i = 0; i < whole; ++i) text += "█";
  auto eighths = static_cast<std::size_t>((length - static_cast<double>(whole)) * 8);
  if (share > 0 && whole == 0) eighths = std::max<std::size_t>(1, eighths);
  if (whole < cells) text += kEighths[eighths];
  return pad_right(text, cells);
}

std::string bold(std::string_view text, const TextOptions& options) {
  if (!options.colour) return std::string(text);
  return "\033[1m" + std::string(text) + "\033[0m";
}

}  // namespace headroom::report
