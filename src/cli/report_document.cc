// SPDX-License-Identifier: Apache-2.0
#include "cli/report_document.h"

#include "analyze/stack_profile.h"
#include "cli/predictions.h"
#include "export/stacks.h"
#include "plan/plan.h"
#include "view/view.h"

namespace headroom::cli {

namespace {

// Frames that are too narrow are left out until it is small enough to send around.
Result<std::string> flame_graph(const std::vector<stacks::WeightedStack>& profile) {
  constexpr std::size_t kLargest = 80'000;
  std::string svg;
  for (double narrowest = 1; narrowest < 1200; narrowest *= 2) {
    svg.clear();
    HR_TRYV(write_flame_graph(profile, {.embedded = true, .narrowest = narrowest},
                              [&](std::string_view block) -> Result<void> {
                                svg += block;
                                return {};
                              }));
    if (svg.size() <= kLargest) break;
  }
  return svg;
}

}  // namespace

Result<void> with_document(const Recording& recording, const ExplainOptions& explaining, const std::string& name,
                           const std::string& stretch,
                           const std::function<Result<void>(const report::Document&)>& write) {
  std::vector<stacks::WeightedStack> profile;
  const Explanation explanation = explain(recording, explaining, [&](const Analysis& analysis) {
    if (!recording.all(SourceKind::kPythonThread).empty()) profile = stack_profile(recording, analysis);
  });
  std::erase_if(profile, [](const stacks::WeightedStack& stack) { return stack.idle <= 0; });
  PlanRequest request;
  HR_TRY(const compare::Outcomes past, past_predictions());
  request.history = compare::cause_histories(past.list);
  request.loader = loader_of(recording);
  const Plan plan = headroom::plan(explanation, request);
  const view::View view = view::view_of(recording, explanation);
  report::Document document{explanation, view, plan, name, "", {}, stretch};
  if (!profile.empty()) {
    constexpr std::size_t kFunctions = 30;
    HR_TRY(document.flame_graph, flame_graph(profile));
    document.functions = innermost_functions(profile, {}, kFunctions);
  }
  return write(document);
}

}  // namespace headroom::cli
