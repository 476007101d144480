// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace headroom {

// The names of a table's columns, with those in nvidia-smi's words that the header does not tell and the rows below it
// do, where the header has a reading of a GPU: a column of times (dates with a time of day, or Unix times that do not
// fall), where no other is one; the numbers of the GPUs, where no other column names them, or, where rows share their
// times, whatever tells those of one time apart; the hosts, where rows share their times and their GPUs; and what
// GPUtil calls load. `rows`: those at hand, of which the first few hundred are looked at. `made` keeps the names that
// are made up for it.
[[nodiscard]] std::vector<std::string_view> told_by_rows(std::vector<std::string_view> names, std::string_view rows,
                                                         char separator, std::deque<std::string>& made);

// The column that may tell rows of one time apart and is called otherwise, "rank" for one: "" where none does.
[[nodiscard]] std::string_view may_tell_apart(const std::vector<std::string_view>& names, std::string_view rows,
                                              char separator);

// What to give to --columns where columns are called by nothing but the number of a GPU and no cell has a unit: "GPU 0=
// gpu0_util,GPU 1=gpu1_util"; "" where none is called so.
[[nodiscard]] std::string numbered_columns_hint(const std::vector<std::string_view>& names);

// How many rows stand below each line that is a time, in a log whose rows have none: as many below each of them, ten
// and more of them, are one of each GPU. 1 where that is not so. `rows`: those at hand.
[[nodiscard]] std::size_t rows_below_a_time(std::string_view rows, std::size_t cells, char separator);

// What told_by_rows() calls a column of numbers that are those of hosts.
inline constexpr std::string_view kHostNumber = "host number";

// What told_by_rows() calls a column "epoch" whose numbers are those of epochs, and no times.
inline constexpr std::string_view kEpochNumber = "epoch number";

// What told_by_rows() calls a column of memory in use whose numbers are too small for MiB, where no unit is named.
inline constexpr std::string_view kMemoryOfNoUnit = "memory in use, in percent or GB";

// "|---|---:|", which parts the header of a table in Markdown from its rows.
[[nodiscard]] bool is_rule(std::string_view line);

// A date with a time of day, or one whose order of day and month other rows tell.
[[nodiscard]] bool is_time(std::string_view cell);

// A line with a date and a time of day in it is a row, and no header, whatever else it has.
[[nodiscard]] bool is_row(const std::vector<std::string_view>& cells);

}  // namespace headroom
