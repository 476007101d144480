// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "analyze/analysis.h"

// The part of the checklist that is about how a job or the tasks of a batch ended.
namespace headroom::diagnose {

// Whether somebody read what the job printed, whatever it told.
[[nodiscard]] bool read_its_output(const RecordingMeta& meta);
[[nodiscard]] HealthCheck no_out_of_memory(const Analysis& a);
[[nodiscard]] HealthCheck ended_well(const Analysis& a);

}  // namespace headroom::diagnose
