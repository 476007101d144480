// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>

#include "base/result.h"
#include "model/job_variables.h"
#include "record/shelf.h"

// The only place that reads the environment: what libraries need of it they are given.
namespace headroom::cli {

// A variable; nothing, too, in a program that runs with other rights than its caller's (secure_getenv(3)).
[[nodiscard]] std::optional<std::string> environment(const char* name);

[[nodiscard]] std::string host_name();  // as the kernel says it
// What a recording keeps of it, without secrets (model/job_variables.h): a job has it from this process.
[[nodiscard]] JobVariables variables_of_job();
// Of a batch only where in Slurm it runs: its tasks have variables of their own.
[[nodiscard]] JobVariables variables_of_batch();

// In RecordingMeta::extra: the `headroom sim` command that made the virtual GPUs, as a shell takes it.
inline constexpr std::string_view kVirtualGpus = "virtual GPUs";

[[nodiscard]] std::string nvml_library();          // $HEADROOM_NVML, else as the loader finds the driver's
[[nodiscard]] bool on_virtual_gpus();              // below `headroom sim`
[[nodiscard]] std::string file_of_virtual_gpus();  // that their users hold open; "" elsewhere
[[nodiscard]] bool foreign_pids();                 // the driver's process numbers are those of another pid namespace
[[nodiscard]] Result<Shelf> users_shelf();         // where recordings lie unless told otherwise
[[nodiscard]] Result<std::string> users_state_folder();  // where the rest is kept; it may not be there yet

}  // namespace headroom::cli
