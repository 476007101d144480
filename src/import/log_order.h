// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "import/log_builder.h"

namespace headroom {

// The middle one of the positive distances between consecutive instants; 0 where there is none.
[[nodiscard]] Nanos median_spacing(const PackedNumbers& at);

// Whether each instant is later than the one before it.
[[nodiscard]] bool grows(const PackedNumbers& at);

// Columns that end early are made as long as the others, so that rows can be moved and compared.
void fill_columns(GpuLog& gpu);
[[nodiscard]] bool rows_equal(const GpuLog& gpu, std::size_t a, std::size_t b);

// Makes gpu.at strictly growing. In this order:
//   - a step back of up to two intervals: rows written out of order, sorted;
//   - a larger one onto times that no other row has: runs appended in another order, sorted;
//   - a larger one onto times that are taken: the clock was set back. The rows from there on are moved forward, so that
//     they follow the row before at the usual distance: durations hold, the time of day does not;
//   - rows at one instant: of a log in whole seconds spread evenly over their second (it was sampled more often than it
//     tells), else the last one is kept; equal rows of two copies of one log are kept once.
// Counts each in data.losses, and adds clock_step events.
void put_in_order(LogData& data, std::size_t gpu);

// More than a year without a row of any GPU is a clock that was set, say from 1970 when a network was there: the rows
// before are moved up to those after. Rows must be in order.
void close_leaps(LogData& data);

}  // namespace headroom
