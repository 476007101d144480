// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

#include "base/result.h"
#include "model/probe.h"

// The JSON of `headroom probe` (headroom.probe/1), as far as a plan needs it: the parameter, the times of its values,
// the fastest, the line of a batch size. What is not needed is not looked at.
namespace headroom::planning {

// kInvalidInput: it is no probe, nothing in it was measured, or a time is none; kUnsupported: of a newer version.
[[nodiscard]] Result<ProbeReport> read_probe(std::string_view json);

}  // namespace headroom::planning
