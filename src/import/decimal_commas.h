// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "import/log_reader.h"

namespace headroom {

// Which commas of a log are decimal points: where cells stand between semicolons or tabs, each between digits; where
// they stand between commas with a blank, as those of its header do, one without a blank may be; between commas alone
// those within quotes are, where one of them can be nothing else, and each second one, where all numbers have one and
// their decimals cannot be whole numbers. Where they are, and no number has a point that could be a decimal one, points
// group digits: "11.264" beside "73,8".
class DecimalCommas {
 public:
  static constexpr std::size_t kHead = std::size_t{1} << 16;
  // By the header, which is within the first lines.
  explicit DecimalCommas(std::string_view head);
  // The line with points for them, until the next one; of a log where they are everywhere.
  [[nodiscard]] std::string_view pointed(std::string_view line);
  // The same for a row that has so many cells otherwise: if it has as many as the header then, and if all commas within
  // cells can be nothing but decimal points.
  [[nodiscard]] std::string_view pointed_row(std::string_view line, std::size_t cells);
  // The first number that had one, "73,8"; empty: none had. A part of a second behind a comma is no such number.
  [[nodiscard]] const std::string& first() const { return first_; }

 private:
  void look_for_groups(LineCursor& lines, char separator);
  void look_for_quoted(std::string_view rows);
  void look_for_pairs(const std::vector<std::string_view>& names, std::string_view rows);
  [[nodiscard]] std::string_view pointed_pairs(std::string_view line);
  [[nodiscard]] std::string_view without_group_points(std::string_view line);
  [[nodiscard]] std::string_view with_points(std::string_view line);

  bool everywhere_ = false;
  bool quoted_ = false;                                          // commas within quotes are decimal points
  std::vector<bool> pairs_;                                      // by column: it is two cells of a row
  std::size_t cells_ = std::numeric_limits<std::size_t>::max();  // of the header, where a row may have some
  std::vector<std::size_t> places_;                              // in the line
  std::string changed_, ungrouped_, first_;
  char grouped_cells_ = 0;  // what stands between cells, where points group digits
};

}  // namespace headroom
