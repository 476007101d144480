// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <string_view>

namespace headroom {

// Parameters, options and variables that say in which precision a job computes: in small letters, with "_".
inline constexpr std::array<std::string_view, 9> kPrecisionNames{
    "precision", "amp", "use_amp", "dtype", "autocast", "mixed_precision", "accelerate_mixed_precision",
    "fp16",      "bf16"};

}  // namespace headroom
