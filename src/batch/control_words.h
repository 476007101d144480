// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

// What is said over the control socket, in one line each, but for "ping" and "status".
namespace headroom::batch {

inline constexpr std::string_view kStopRequest = "stop", kStopNowRequest = "stop now";
inline constexpr std::string_view kCancelRequest = "cancel ";  // and names or patterns, as words_text() writes them

inline constexpr std::string_view kAddRequest = "add ";  // and tasks, as tasks_text() writes them

[[nodiscard]] std::string words_text(const std::vector<std::string>& words);
[[nodiscard]] Result<std::vector<std::string>> words_of(std::string_view text);

[[nodiscard]] std::string refusal(const Error& error);
// Of an answer: how many tasks it was about, or why not.
[[nodiscard]] Result<std::int64_t> done_of(std::string_view answer);

}  // namespace headroom::batch
