// SPDX-License-Identifier: Apache-2.0
#include "batch/control_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/strings.h"

namespace headroom::batch {

using nlohmann::json;

std::string words_text(const std::vector<std::string>& words) { return ascii_json_text(json(words)); }

Result<std::vector<std::string>> words_of(std::string_view text) {
  const json words = parse_json<json>(text);
  const bool texts =
      words.is_array() && std::all_of(words.begin(), words.end(), [](const json& word) { return word.is_string(); });
  if (!texts) return fail(Errc::kInvalidInput, "not understood: the batch may be of another version of headroom");
  return words.get<std::vector<std::string>>();
}

std::string refusal(const Error& error) { return fmt::format("error {}\n{}\n", error.what, error.hint); }

Result<std::int64_t> done_of(std::string_view answer) {
  const auto lines = split(answer, '\n');
  std::string_view first = lines.front();
  if (first.starts_with("ok ")) return parse_number<std::int64_t>(first.substr(3)).value_or(0);
  if (first.starts_with("error ")) first.remove_prefix(6);
  return fail(Errc::kNotFound, first.empty() ? "the batch gave no answer" : std::string(first),
              lines.size() > 1 ? std::string(lines[1]) : "");
}

}  // namespace headroom::batch
