// SPDX-License-Identifier: Apache-2.0
#include "screen/accounts.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/human.h"

namespace headroom::screen {

namespace {

using view::Share;

constexpr std::size_t kEighths = 8;
constexpr double kLeastSaid = 0.0005;                                   // what rounds to 0.1 %
constexpr std::array kRising{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};   // from below
constexpr std::array kGrowing{"▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"};  // from the left

bool in_blocks(const Canvas& canvas) { return canvas.look().colour && canvas.look().utf8; }
Colour ink_of(const Canvas& canvas, Account account) {
  const AccountLook& look = look_of(account);
  return canvas.look().palette ? look.own : look.ink;
}
std::size_t units_of(const Canvas& canvas) { return in_blocks(canvas) ? kEighths : 1; }

struct Piece {
  Account account;
  std::size_t units;
};

// The `units` of cell number `i` in what was given out, in order, into `pieces`: a screen has thousands of cells.
void find_pieces(std::span<const Share> shares, const std::vector<std::size_t>& high, std::size_t i, std::size_t units,
                 std::vector<Piece>& pieces) {
  pieces.clear();
  std::size_t begin = 0;
  for (std::size_t s = 0; s < shares.size(); begin += high[s++]) {
    const std::size_t from = std::max(begin, i * units), to = std::min(begin + high[s], (i + 1) * units);
    if (to > from) pieces.push_back({shares[s].account, to - from});
  }
}

// One cell: its first account before the largest of the others.
void put_cell(Canvas& canvas, std::size_t row, std::size_t column, const std::vector<Piece>& pieces,
              const std::array<const char*, kEighths>& blocks) {
  if (pieces.empty()) return;
  const Account first = pieces.front().account;
  Style style{.ink = ink_of(canvas, first)};
  if (!in_blocks(canvas)) {
    canvas.put_cell(row, column, std::string_view(&look_of(first).letter, 1), style);
    return;
  }
  if (pieces.size() > 1) {
    const auto larger = [](const Piece& a, const Piece& b) { return a.units < b.units; };
    style.ground = ink_of(canvas, std::max_element(pieces.begin() + 1, pieces.end(), larger)->account);
  }
  canvas.put_cell(row, column, pieces.size() > 1 ? blocks[pieces.front().units - 1] : blocks.back(), style);
}

}  // namespace

void put_bar(Canvas& canvas, std::size_t row, std::size_t column, std::size_t columns, std::span<const Share> shares) {
  const std::size_t units = units_of(canvas);
  const auto high = view::heights(shares, columns * units);
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < columns; ++i) {
    find_pieces(shares, high, i, units, pieces);
    put_cell(canvas, row, column + i, pieces, kGrowing);
  }
}

void put_strip(Canvas& canvas, std::size_t row, std::size_t column, std::size_t rows, const view::Strip& strip) {
  const std::size_t units = units_of(canvas);
  std::vector<Piece> pieces;
  for (std::size_t bin = 0; bin < strip.bins.size(); ++bin) {
    if (strip.bins[bin].empty()) continue;  // no time of what is drawn
    const auto high = view::heights(strip.bins[bin], rows * units);
    for (std::size_t i = 0; i < rows; ++i) {
      find_pieces(strip.bins[bin], high, i, units, pieces);
      put_cell(canvas, row + rows - 1 - i, column + bin, pieces, kRising);
    }
  }
}

void put_legend(Canvas& canvas, std::size_t row, std::span<const Share> shares, std::string_view unexplained) {
  std::vector<Share> all(shares.begin(), shares.end());
  std::stable_sort(all.begin(), all.end(), [](const Share& a, const Share& b) { return a.ns > b.ns; });
  Nanos whole = 0;
  for (const Share& share : all) whole += share.ns;
  const std::size_t width = canvas.size().columns;
  std::size_t column = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double part = static_cast<double>(all[i].ns) / static_cast<double>(std::max<Nanos>(1, whole));
    const std::string percent = part >= kLeastSaid ? human_percent(part) : "< 0.1 %";
    const std::string_view label = all[i].account == Account::kUnexplained ? unexplained : info(all[i].account).label;
    const std::string words = fmt::format("{} {}", label, percent);
    const std::string more = fmt::format("and {} more", all.size() - i);
    const std::size_t kept = i + 1 < all.size() ? more.size() + 2 : 0;  // room to count the others
    if (column + 2 + words.size() + kept > width) {
      canvas.put(row, column, more, kFaint);
      return;
    }
    const Account account = all[i].account;
    canvas.put(row, column, in_blocks(canvas) ? "█" : std::string(1, look_of(account).letter),
               {.ink = ink_of(canvas, account)});
    column = canvas.put(row, column + 2, words) + 2;
  }
}

}  // namespace headroom::screen
