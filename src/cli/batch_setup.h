// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "batch/batch.h"
#include "cli/batch_options.h"
#include "device/nvml_reader.h"
#include "tasks/task_list.h"

// The parts of `headroom batch` that are wired together before anything starts.
namespace headroom::cli {

// Tasks from a file, standard input or a command line with ":::"; identities are set.
[[nodiscard]] Result<tasks::TaskSet> read_tasks(const BatchCommand& command,
                                                const std::vector<std::string>& after_dashes);

// Where the journal and the logs are: beside the task file, or named by the tasks. Absolute.
[[nodiscard]] std::string folder_of(const BatchCommand& command, const tasks::TaskSet& set);

// Makes the folder and locks it; waits while the guardian of a batch that died still stops its tasks. With --fresh what
// was there is moved aside.
[[nodiscard]] Result<Fd> take_folder(const std::string& folder, bool fresh);

struct GpuChoice {
  std::vector<BatchGpu> gpus;
  std::unique_ptr<NvmlReader> reader;  // null: none is read
  batch::PinBy pin = batch::PinBy::kUuid;
  std::string driver_version;
  std::string note;  // what people must know, e.g. that there is no driver; "" for nothing
};
[[nodiscard]] Result<GpuChoice> choose_gpus(const BatchCommand& command, host::TreeReader& tree);

// Tasks run on slots. kInvalidInput: one names its GPU, which would be filled in with nothing.
[[nodiscard]] Result<void> leave_gpus_alone(std::vector<TaskSpec>& tasks, const std::string& why);

}  // namespace headroom::cli
