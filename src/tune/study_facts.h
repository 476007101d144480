// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/study_report.h"
#include "tune/study_options.h"

namespace headroom::tune {

// Everything of the answer that the trials themselves say; no what-if. Linear in trials and reports (sorting apart).
[[nodiscard]] StudyReport study_facts(const Study& study, const StudyOptions& options);

}  // namespace headroom::tune
