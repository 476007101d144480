// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace headroom::tasks {

// The words of a command line as a POSIX shell splits them, where nothing but quotes and blanks is special:
// kInvalidInput for a quote that is not closed. Nothing is expanded.
[[nodiscard]] Result<std::vector<std::string>> split_words(std::string_view line);
// The words, if running them directly does what `sh -c line` does; absent when it takes a shell.
[[nodiscard]] std::optional<std::vector<std::string>> words_without_shell(std::string_view line);

}  // namespace headroom::tasks
