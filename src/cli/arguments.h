// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/verb.h"

namespace headroom::cli {

struct DeclaredVerb;

// A verb's words, parted: its own, and those of a command or after "--".
struct Words {
  std::vector<std::string> own, after;
  std::string lacking;  // an option whose value stands in its own word only (type "=FILE"), and did not; else ""
};
[[nodiscard]] Words part_words(const DeclaredVerb& declared, std::span<char*> arguments);

// For options that take a time: a number and its unit.
[[nodiscard]] CLI::Validator duration_check();

// What is wrong with words that no option and no argument of the verb took; what was probably meant.
[[nodiscard]] Result<void> nothing_left_over(const CLI::App& app);

}  // namespace headroom::cli
