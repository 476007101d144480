// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "model/study_report.h"

// The document of a study, to hand on: what `headroom study --full` says, drawn. As of a recording (document.h), both
// forms are written from the same tables and points.
namespace headroom::report {

struct StudyDocument {
  const StudyReport& report;
  const Study& study;  // whose curves are drawn
  std::string name;    // how the next commands name it
};
[[nodiscard]] std::string to_html(const StudyDocument& document);
[[nodiscard]] std::string to_markdown(const StudyDocument& document);

}  // namespace headroom::report
