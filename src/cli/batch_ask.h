// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <optional>

namespace headroom::cli {

// Adds `status`, `cancel` and `show`. What is returned answers, once the command line is parsed, with the exit code if
// one of them was asked for.
[[nodiscard]] std::function<std::optional<int>()> declare_batch_questions(CLI::App& app);

}  // namespace headroom::cli
