// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <vector>

#include "import/log_builder.h"

namespace headroom {

// Counts the rows that GPUs, in this order, have fewer than their log has room for. `nominal`: the interval was given,
// and is not the rows' own.
void count_missing(LogData& data, const std::vector<std::size_t>& order, Nanos interval, bool nominal);

// Spaces of more than three intervals between the rows of a GPU: nobody looked. The row after one speaks about the
// interval before it only.
void find_gaps(LogData& data, std::size_t gpu, Nanos interval);

}  // namespace headroom
