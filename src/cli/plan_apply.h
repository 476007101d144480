// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "base/result.h"
#include "model/plan.h"

namespace headroom::cli {

// Makes those changes of a plan that Headroom itself controls: settings in [defaults] of the task file that the
// recorded batch ran. Shows each as a difference first, and asks on a terminal; elsewhere it needs `yes`.
[[nodiscard]] Result<void> apply_plan(const Plan& plan, bool yes);

}  // namespace headroom::cli
