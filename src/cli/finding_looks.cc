// SPDX-License-Identifier: Apache-2.0
#include "cli/finding_looks.h"

#include <CLI/CLI.hpp>
#include <array>

#include "base/duration.h"
#include "base/strings.h"

namespace headroom::cli {

void declare_finding_looks(CLI::App& app, FindingLooks& looks) {
  app.add_option_function<std::string>(
         "--finding-looks",
         [&looks](const std::string& text) {
           report::LiveRule& rule = looks.rule;
           const std::array<Nanos*, 4> values{&looks.every, &rule.evidence, &rule.cost, &rule.standstill};
           const auto parts = split(text, ',');
           for (std::size_t i = 0; i < parts.size() && i < values.size(); ++i) {
             const auto value = parse_duration(parts[i]);
             if (!value) throw CLI::ValidationError("--finding-looks", value.error().what);
             *values[i] = *value;
           }
           rule.held = looks.every;
         })
      ->group("");
}

std::optional<Explanation> explain_last_minutes(const Recording& recording, ExplainOptions options) {
  constexpr Nanos kRecent = 600 * kSecond;
  const Nanos length = recording.meta.end - recording.meta.start;
  if (length <= kRecent) return std::nullopt;
  options.window = {length - kRecent, length};
  return explain(recording, options);
}

}  // namespace headroom::cli
