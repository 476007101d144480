// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <set>

#include "model/recording.h"

namespace headroom {

// Each of these processes with its number in a distributed job. None of those that share one at a time: what their
// launcher numbered was not them, but what started them.
[[nodiscard]] std::map<SourceId, std::int64_t> ranks_of(const Recording& recording,
                                                        const std::set<SourceId>& processes);

// Of the processes that count steps.
[[nodiscard]] std::map<SourceId, std::int64_t> counting_ranks(const Recording& recording);

}  // namespace headroom
