// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "model/probe.h"
#include "report/layout.h"

namespace headroom::report {

// The answer of `headroom probe`: the fastest value in a sentence, a table of all, and what a larger batch may gain.
[[nodiscard]] std::string to_text(const ProbeReport& report, const TextOptions& options);
// "20.5 ms": three digits.
[[nodiscard]] std::string unit_time_words(double seconds);
// "headroom.probe/1"
[[nodiscard]] std::string to_json(const ProbeReport& report);

}  // namespace headroom::report
