// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cli/verb.h"

// One function per verb, each in its own file; verbs.cc holds the table.
namespace headroom::cli {

Action declare_ab(VerbInput input);
Action declare_batch(VerbInput input);
Action declare_compare(VerbInput input);
Action declare_complete(VerbInput input);
Action declare_completion(VerbInput input);
Action declare_devices(VerbInput input);
Action declare_doctor(VerbInput input);
Action declare_export(VerbInput input);
Action declare_fleet(VerbInput input);
Action declare_import(VerbInput input);
Action declare_manual(VerbInput input);
Action declare_plan(VerbInput input);
Action declare_probe(VerbInput input);
Action declare_record(VerbInput input);
Action declare_recordings(VerbInput input);
Action declare_report(VerbInput input);
Action declare_run(VerbInput input);
Action declare_serve(VerbInput input);
Action declare_sim(VerbInput input);
Action declare_sim_job(VerbInput input);
Action declare_stacks(VerbInput input);
Action declare_study(VerbInput input);
Action declare_top(VerbInput input);
Action declare_verify(VerbInput input);
Action declare_why(VerbInput input);

}  // namespace headroom::cli
