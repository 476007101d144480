// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>

#include "model/ledger.h"
#include "report/layout.h"

namespace headroom::report {

// A line with `title` and `total`, and one row per account of a device, or of all of them together.
[[nodiscard]] std::string account_rows(const Ledger& ledger, std::optional<std::size_t> device,
                                       const std::string& title, const std::string& total, const TextOptions& options);

}  // namespace headroom::report
