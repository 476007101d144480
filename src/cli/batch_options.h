// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "cli/live_parts.h"

// What `headroom batch` was asked for, from its command line and back to one.
namespace headroom::cli {

struct BatchCommand {
  LiveOptions live;
  std::vector<std::string> words;  // TASKS
  std::string command, folder, gpus, pin = "uuid", second_pin = "refuse", grace, timeout;
  std::vector<std::string> metrics, parameters;
  int slots = 0, per_gpu = 0, retries = -1, max_failures = 0;
  bool shell = false, no_pack = false, dry_run = false, fresh = false, json = false, follow = false,
       stop_misplaced = false, no_record = false;
};

void declare_batch_options(CLI::App& app, BatchCommand& command);

// The command line with all that was said in it; `-` stands for standard input.
[[nodiscard]] std::vector<std::string> command_words(const BatchCommand& command,
                                                     const std::vector<std::string>& after_dashes);
// For people: the command that goes on with the batch, as a shell reads it. Without what belongs to this run only.
[[nodiscard]] std::string resume_line(BatchCommand command, const std::vector<std::string>& after_dashes);

}  // namespace headroom::cli
