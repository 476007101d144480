// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace headroom {

[[nodiscard]] bool is_all_ascii(std::string_view text);

// A date as East Asia, web servers and file names have it, with the signs and words of others; nothing where it has
// them.
[[nodiscard]] std::optional<std::string> with_usual_signs(std::string_view date);

}  // namespace headroom
