// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "model/explanation.h"
#include "model/plan.h"
#include "view/view.h"

// The document of `headroom report`: everything that is known of a recording, to hand on. Both forms are written from
// the same tables and points (report/facts.h), so that they say the same.
namespace headroom::report {

struct Document {
  const Explanation& explanation;
  const view::View& view;
  const Plan& plan;
  std::string recording;    // how the next commands name it, as a shell takes it
  std::string flame_graph;  // an SVG element without a style of its own, of class "flame"; "": there are no stacks
  std::vector<std::pair<std::string, double>> functions;  // where the GPU was idle: seconds of each, the longest first
  // " --from 10s --to 20s", as commands have it, of a part of the recording; "": all of it.
  std::string stretch = {};
};

// One file without a script or anything to load; its content policy allows its own style and nothing else. Text from
// outside is escaped. The same document gives the same bytes.
[[nodiscard]] std::string to_html(const Document& document);

// For a pull request: GitHub's Markdown, without HTML of ours; its first line (beginning.h) is shown nowhere. Text from
// outside cannot become markup, links or mentions.
[[nodiscard]] std::string to_markdown(const Document& document);

}  // namespace headroom::report
