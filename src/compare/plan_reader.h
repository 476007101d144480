// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

#include "base/result.h"
#include "model/plan.h"

namespace headroom::compare {

// The JSON of `headroom plan` (headroom.plan/1), as far as verification needs it: of the recording its path, of an
// option its id, title, safety, cause, gain and sizes. Causes and classes of a newer version are none.
// kInvalidInput: it is no plan, an option has no id, or a gain is no interval; kUnsupported: of a newer version.
[[nodiscard]] Result<Plan> read_plan(std::string_view json);

}  // namespace headroom::compare
