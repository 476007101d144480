// SPDX-License-Identifier: Apache-2.0
#include "report/layout.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/visible.h"

namespace headroom::report {

TextOptions clamped(TextOptions options) {
  options.width = std::clamp<std::size_t>(options.width, kNarrowest, kWidest);
  return options;
}

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::size_t lines_in(std::string_view text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

std::string pad_right(std::string_view field, std::size_t width) {
  const std::string text = visible(field);
  const std::size_t have = display_width(text);
  if (have <= width) return text + std::string(width - have, ' ');
  std::string cut;
  std::size_t columns = 0;
  for (const char c : text) {
    const bool starts = (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    if (starts && ++columns == width) break;
    cut += c;
  }
  return cut + "~";
}

std::string pad_left(std::string_view field, std::size_t width) {
  const std::string text = visible(field);
  const std::size_t have = display_width(text);
  return std::string(have < width ? width - have : 0, ' ') + text;
}

namespace {

// "48.0 GiB", "0.8 %" and "GPU 1" stand on one line.
bool belong_together(std::string_view word, std::string_view rest) {
  constexpr std::array kUnits{"%", "B", "KiB", "MiB", "GiB", "W", "C", "MHz", "ms", "s", "h"};
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  if (word.empty() || rest.empty()) return false;
  if (word == "GPU" || word == "GPUs") return digit(rest.front());
  const auto unit = rest.substr(0, rest.find_first_of(" ,;:.)"));
  return digit(word.back()) && std::find(kUnits.begin(), kUnits.end(), unit) != kUnits.end();
}

// The first word of `text`, and what belongs to it.
std::string_view first_word(std::string_view text) {
  auto blank = text.find(' ');
  auto begin = text.substr(0, 0);
  while (blank != std::string_view::npos) {
    const auto last = text.substr(begin.size(), blank - begin.size());
    if (!belong_together(last, text.substr(blank + 1))) break;
    begin = text.substr(0, blank + 1);
    blank = text.find(' ', blank + 1);
  }
  return text.substr(0, blank);
}

}  // namespace

std::string wrap(std::string_view words, std::size_t width, std::string_view first, std::string_view rest) {
  const std::string shown = visible(words);
  std::string_view text = shown;
  std::string out, line(first);
  bool empty = true;
  while (!text.empty()) {
    const auto word = first_word(text);
    text.remove_prefix(std::min(text.size(), word.size() + 1));
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
  if (!options.colour || text.empty()) return std::string(text);
  const bool line = text.ends_with('\n');
  return "\033[1m" + std::string(text.substr(0, text.size() - (line ? 1 : 0))) + "\033[0m" + (line ? "\n" : "");
}

}  // namespace headroom::report
