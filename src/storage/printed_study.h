// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

namespace headroom {

// What Optuna printed of a study, "[I 2025-03-10 10:00:00,101] A new study created in memory …", is not the study.
[[nodiscard]] bool is_printed_by_optuna(std::string_view beginning);

// What such lines tell of it: "48 trials completed, 12 were pruned and 10 failed; the best value it names is 0.3135, of
// trial 37". "": they tell of no trial that ended, or of several studies.
[[nodiscard]] std::string told_by_optuna(std::string_view printed);

}  // namespace headroom
