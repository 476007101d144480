// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "cli/verbs.h"
#include "report/layout.h"

// The description of a verb, from its row and the options it declares: help, manual page and completions are
// written from this.
namespace headroom::cli {

struct OptionText {
  std::vector<std::string> names;    // "-i", "--interval"; of a positional none
  std::string value;                 // "DURATION"; "" for a flag, "=FILE" where it stands in the option's word
  std::vector<std::string> choices;  // the values there are
  std::string what;
  std::string group;
};

struct CommandText {
  std::string name;  // "headroom batch show"
  std::string summary;
  std::vector<std::string> usage;     // whole lines
  std::vector<std::string> examples;  // whole lines
  std::string notes;
  std::vector<OptionText> options, positionals;
  std::vector<CommandText> commands;
  bool takes_command = false;
};

// Without what is hidden.
[[nodiscard]] CommandText text_of(const Verb& verb);
// The command that the words name, as "batch show": the longest beginning of them that there is.
[[nodiscard]] const CommandText& part_of(const CommandText& command, std::span<const std::string> words);

// How an option is written: "-i, --interval DURATION".
[[nodiscard]] std::string written(const OptionText& option);

// The help of one command, for a terminal or a file.
[[nodiscard]] std::string help_text(const CommandText& command, const report::TextOptions& layout);
// The list of verbs.
[[nodiscard]] std::string overview(const report::TextOptions& layout);

inline constexpr std::string_view kExitCodes =
    "0 success, 1 failure, 2 wrong usage, 70 a bug of Headroom's, 130 interrupted; headroom run and headroom sim "
    "return "
    "their command's own";

[[nodiscard]] std::string manual_page();  // headroom(1), in roff

}  // namespace headroom::cli
