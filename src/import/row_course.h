// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <vector>

#include "import/log_builder.h"

namespace headroom {

// What rows that share a time, as many at each, are by the course of their readings: samples of one GPU, where a
// reading goes on from row to row as it does from time to time; rows of several, where each keeps its own level; or
// neither is told.
enum class RowsOfOneTime : std::uint8_t { kUnknown, kSamples, kGpus };
// `values` in the order of the log, from the first row of a time on.
[[nodiscard]] RowsOfOneTime course_of(const std::vector<std::int64_t>& values, std::size_t rows_of_a_time);
// By all columns of rows that stand one below the other; the first `skipped` are of a time that has fewer.
[[nodiscard]] RowsOfOneTime course_of(const GpuLog& gpu, std::size_t skipped, std::size_t rows_of_a_time);

// Whether rows are so far apart that as many as share a time fill the time to the next.
[[nodiscard]] bool fills(Nanos interval, std::size_t rows_of_a_time, Nanos spacing);

// Rows that name their GPU by their place below the line with their time: of one GPU each, or samples of one, where
// their course or the interval says so. Tells which.
void settle_rows_below_times(LogData& data, Nanos interval);

}  // namespace headroom
