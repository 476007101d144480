// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string_view>

namespace headroom::batch {

// How people are told: what happened, and what to do next ("" for nothing).
using Say = std::function<void(std::string_view what, std::string_view next)>;

}  // namespace headroom::batch
