// SPDX-License-Identifier: Apache-2.0
#include "cli/require.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>

#include "compare/requirements.h"

namespace headroom::cli {

void declare_require(CLI::App& app, std::vector<std::string>& given, const char* what) {
  app.add_option("--require", given, what)->type_name("FIGURE<LIMIT")->allow_extra_args(false);
}

Result<std::vector<Requirement>> read_requirements(const std::vector<std::string>& given) {
  std::vector<Requirement> requirements;
  for (const std::string& text : given) {
    HR_TRY(requirements.emplace_back(), compare::parse_requirement(text));
  }
  return requirements;
}

Result<std::vector<JudgedRequirement>> judged_of(const std::vector<Requirement>& requirements,
                                                 const std::vector<Figure>& figures) {
  std::vector<JudgedRequirement> answers = compare::judged(requirements, figures);
  for (const JudgedRequirement& answer : answers)
    if (figure_info(answer.requirement.name) == nullptr &&
        std::none_of(figures.begin(), figures.end(),
                     [&](const Figure& figure) { return figure.name == answer.requirement.name; }))
      return fail(Errc::kInvalidInput, fmt::format("--require '{}': {}", answer.requirement.text, answer.why_not),
                  fmt::format("known besides are {}", compare::known_figures()));
  return answers;
}

}  // namespace headroom::cli
