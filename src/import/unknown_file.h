// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace headroom {

// Of a file that no reader takes: what it seems to be, by its beginning, and what gives a recording or a log in its
// place. `name` is for messages and has the ending that some kinds are told by.
[[nodiscard]] Error unknown_file(const std::string& name, std::string_view text);

// Of a table with these columns, of which none is known as a reading of a GPU.
[[nodiscard]] Error unknown_table(const std::string& name, const std::vector<std::string_view>& names);

// A header of a table that is known, and no log of GPUs: of processes, or what nsys stats makes of a report.
[[nodiscard]] bool is_other_table(const std::vector<std::string_view>& cells);

// What a scheduler prints of a whole job: its lines with readings are no log.
[[nodiscard]] bool are_means_of_a_job(std::string_view head);

// What a line means with which nvidia-smi says why it has no readings, and what to do; nothing of another line.
struct FailedTool {
  std::string_view words, means, next;
};
[[nodiscard]] const FailedTool* failed_tool(std::string_view line);

}  // namespace headroom
