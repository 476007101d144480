// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "model/ledger.h"
#include "report/layout.h"

namespace headroom::report {

// "GPU 3", "GPUs 0 to 3, 6, 9": by the indices of these devices of the ledger, in order.
[[nodiscard]] std::string gpu_names(const Ledger& ledger, const std::vector<std::size_t>& devices);

// Devices of one model whose accounts are within a few points of each other.
[[nodiscard]] std::vector<std::vector<std::size_t>> alike(const Ledger& ledger);

// The accounts of each device, those alike together: a bar for each account where that takes at most three
// quarters of `lines` lines; else accounts under a hundredth are one row; else a sentence for each.
[[nodiscard]] std::string bars(const Ledger& ledger, const TextOptions& options, std::size_t lines);

// A sentence for each group of devices, with the shares alone: where the length of all is assumed, its parts are, too.
[[nodiscard]] std::string share_sentences(const Ledger& ledger, const TextOptions& options, std::size_t lines);

// Times of one column: all in the form of its longest, "0:05" beside "4:26".
[[nodiscard]] std::string column_duration(Nanos ns, Nanos longest);

}  // namespace headroom::report
