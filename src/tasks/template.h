// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

// Texts with placeholders: {symbol} is a parameter, {gpu} is known only when the task starts, {{ is a brace.
//
// A text goes through two fillings. When the batch is read, parameters are filled in: the result still has the
// placeholders of the place, and every brace that is meant as a brace is doubled in it. When an attempt starts,
// fill_place() fills in the rest. TaskSpec::argv and the values of TaskSpec::environment are in the form between.
namespace headroom::tasks {

using Parameters = std::vector<std::pair<std::string, std::string>>;

enum class Braces {
  kStrict,    // every brace is a placeholder's or doubled
  kShell,     // likewise, but "${" up to its "}" is the shell's
  kParallel,  // as GNU parallel: braces that hold no name stay as they are
  kVerbatim,  // only placeholders of the place count, all other braces stay as they are
};

struct Piece {
  std::string text;  // a placeholder's name, without braces; or literal text
  bool placeholder = false;
  bool operator==(const Piece&) const = default;
};
using Pieces = std::vector<Piece>;

// kInvalidInput: a brace that fits nowhere.
[[nodiscard]] Result<Pieces> parse_template(std::string_view text, Braces braces = Braces::kStrict);

// gpu, gpu_index, gpu_uuid, slot.
[[nodiscard]] bool is_place_name(std::string_view name);
[[nodiscard]] bool has_placeholder(const Pieces& pieces, std::string_view name);

struct Filling {
  std::function<std::optional<std::string>(std::string_view)> value;  // of a placeholder; absent: there is none
  std::vector<std::string_view> known;                                // for suggestions
};
[[nodiscard]] Filling filling_of(const Parameters& parameters, const std::string* task = nullptr);

enum class Form {
  kText,   // plain text; placeholders of the place are an error
  kWord,   // the form between, see above
  kShell,  // the form between; values are quoted so that the shell reads them back unchanged
};
// kInvalidInput: an unknown placeholder; or, for kShell, a value that cannot be quoted where it stands.
[[nodiscard]] Result<std::string> fill(const Pieces& pieces, const Filling& filling, Form form);

// Where an attempt runs. GPUs in the order in which the task sees them.
struct Place {
  std::vector<int> gpu_index;         // {gpu_index}: on the box, as nvidia-smi numbers
  std::vector<std::string> gpu_uuid;  // {gpu_uuid}
  int slot = 0;                       // {slot}
};
// {gpu} is the ordinal inside the task: "0", or "0,1,…".
[[nodiscard]] std::string fill_place(std::string_view text, const Place& place);
[[nodiscard]] bool uses_gpu(std::string_view text);  // {gpu}, {gpu_index} or {gpu_uuid} is in the text (form between)
[[nodiscard]] std::string double_braces(std::string_view text);

// The words of a command line as a POSIX shell splits them, where nothing but quotes and blanks is special:
// kInvalidInput for a quote that is not closed. Nothing is expanded.
[[nodiscard]] Result<std::vector<std::string>> split_words(std::string_view line);
// The words, if running them directly does what `sh -c line` does; absent when it takes a shell.
[[nodiscard]] std::optional<std::vector<std::string>> words_without_shell(std::string_view line);

}  // namespace headroom::tasks
