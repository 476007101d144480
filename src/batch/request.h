// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace headroom::batch {

// The environment that a batch runs in: told, not looked up.
struct Surroundings {
  std::function<std::optional<std::string>(const char* name)> variable;
  std::string nvml_library;
  bool virtual_gpus = false;  // below `headroom sim`: the driver's process numbers are this machine's
  std::string shelf;          // folder in which what tasks taught is kept; "": nowhere
};

// What a person asked of a batch, in the words of its command line; docs/batch.md says what they mean.
struct Request {
  std::vector<std::string> words;         // TASKS
  std::vector<std::string> after_dashes;  // a command with its ":::"
  std::string command, folder, gpus, pin = "uuid", second_pin = "refuse", grace, timeout;
  std::vector<std::string> metrics, parameters, phases;
  std::vector<std::string> only, rerun;  // names or patterns of tasks
  int slots = 0, per_gpu = 0, retries = -1, max_failures = 0;
  bool shell = false, no_pack = false, fresh = false, stop_misplaced = false, trust_folder = false;
  Surroundings surroundings;
};

}  // namespace headroom::batch
