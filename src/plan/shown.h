// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

namespace headroom::planning {

// What a recording shows of a fix itself, beside the time that its cause takes: for those of which it shows that they
// do save something. "" for all others: that validation, imports or host code can be done in less time is seen in no
// recording of it.
[[nodiscard]] std::string_view shown_of(std::string_view fix);

}  // namespace headroom::planning
