// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "batch/request.h"
#include "cli/cli11.h"
#include "cli/hooks.h"
#include "cli/job_marks.h"
#include "cli/live_parts.h"

// What `headroom batch` was asked for, from its command line and back to one.
namespace headroom::cli {

struct BatchCommand {
  batch::Request batch;
  LiveOptions live;
  MarksChoice marks;
  Hooks hooks;
  std::vector<std::string> require;
  bool shared = false;             // several workers, each with a command like this one, have one folder
  std::string worker;              // the name of this one; "": of the machine and its job of Slurm
  Nanos silent = 180 * kSecond;    // a worker that was not heard of for so long is over
  std::string on;                  // "slurm", "slurm:PARTITION"; "": this machine
  std::vector<std::string> slurm;  // options of sbatch, several in a text
  int jobs = 0;                    // of Slurm
  Nanos poll = 30 * kSecond;       // between looks at them
  bool dry_run = false, json = false, follow = false, no_record = false;
};

void declare_batch_options(CLI::App& app, BatchCommand& command);

// The command line with all that was said in it; `-` stands for standard input. Without --on-end and --on-finding:
// where somebody is told is nothing for recordings and journals, and often holds a secret.
[[nodiscard]] std::vector<std::string> command_words(const BatchCommand& command);
// For people: the command that goes on with the batch, as a shell reads it. Without what belongs to this run only.
[[nodiscard]] std::string resume_line(BatchCommand command);
// What it ends with where the tasks came from standard input.
inline constexpr std::string_view kSameLines = "  # and the same lines on standard input";

}  // namespace headroom::cli
