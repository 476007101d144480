// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/catalogue.h"
#include "model/explanation.h"
#include "model/plan.h"
#include "plan/fill.h"

namespace headroom::planning {

// What the catalogue advises against a cause, as this job has it: with what its finding names, and without what it has
// not. `finding` may be null: somebody asked about it.
void fit_to_the_job(const Explanation& e, const Fix& fix, const Finding* finding, const Numbers& known, Option& option);

// The same of a validation in which hardly a kernel runs, for what otherwise enlarges its batches.
void validates_on_the_cpu(const RecordingMeta& meta, Option& option);

}  // namespace headroom::planning
