// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "cli/verbs.h"
#include "model/figure.h"
#include "model/requirement.h"

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

// --from and --to: a part of a recording, by offsets from its start; "" is as far as it goes.
struct WindowOptions {
  std::string from, to;
};
void declare_window(CLI::App& app, WindowOptions& options, const std::string& what);  // the help of --from
// Of a recording that is `span` long; nothing where neither was given. kInvalidInput: no time is left.
[[nodiscard]] Result<std::optional<std::pair<Nanos, Nanos>>> window_of(const WindowOptions& options, Nanos span);

// An error for words that no option and no argument of the verb took, with what was probably meant.
[[nodiscard]] Result<void> nothing_left_over(const CLI::App& app);

// --require of run, batch, compare and verify.
void declare_require(CLI::App& app, std::vector<std::string>& given, const char* what);
[[nodiscard]] Result<std::vector<Requirement>> read_requirements(const std::vector<std::string>& given);
// The verdict on recordings that exist; kInvalidInput where a figure is neither known nor written by the job.
[[nodiscard]] Result<std::vector<JudgedRequirement>> judged_of(const std::vector<Requirement>& requirements,
                                                               const std::vector<Figure>& figures);

// How far east of UTC a clock on the wall is that shows `shown` (nanoseconds since 1970, as if that were UTC). `zone`:
// "UTC", "local" (this machine's), "+09:00", or a name of the zone database, "Asia/Tokyo".
[[nodiscard]] Result<Nanos> offset_of_zone(const std::string& zone, Nanos shown);

}  // namespace headroom::cli
