// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "base/result.h"
#include "batch/place.h"
#include "batch/request.h"
#include "batch/say.h"
#include "tasks/task_list.h"

// A batch's folder: its journal, logs, lock and control socket.
namespace headroom::batch {

// Where it is or will be: beside the task file, or named by the tasks. Absolute.
[[nodiscard]] std::string folder_of(const Request& request, const tasks::TaskSet& set);

// Makes the folder and locks it; waits while the guardian of a batch that died still stops its tasks. With `fresh` what
// was there is moved aside.
[[nodiscard]] Result<Place> take_folder(const std::string& folder, const Request& request, const Say& say);

// Says which other batches run beside `folder` or elsewhere on this machine: they share its GPUs and cores (`shared`),
// and know of each other only what the driver and the kernel say.
void warn_of_others(const std::string& folder, std::string_view shared, const Say& say);
// Folders in `parent` in which a batch runs.
[[nodiscard]] std::vector<std::string> running_in(const std::string& parent);

// The batch's folder itself, that of a task file, or the latest one in a folder.
[[nodiscard]] Result<std::string> find_folder(const std::string& given);

}  // namespace headroom::batch
