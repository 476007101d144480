// SPDX-License-Identifier: Apache-2.0
#include "cli/slurm_run.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/filesystem.h"
#include "base/visible.h"
#include "cli/output.h"

namespace headroom::cli {

std::string named_in_slurm(const std::string& output, const std::optional<SlurmJob>& job) {
  std::error_code ignored;
  if (!job || output.empty() || !(output.ends_with('/') || std::filesystem::is_directory(output, ignored)))
    return output;
  return (std::filesystem::path(output) / (slurm_file_name(*job) + ".hrec")).string();
}

bool prints_report(const std::optional<SlurmJob>& job) { return !job || !is_one_of_many(*job) || job->rank == 0; }

void say_where_others_are(const SlurmJob& job, const std::string& recording) {
  const std::string in_folder = slurm_file_name(job) + ".hrec";
  const bool named = recording.ends_with("/" + in_folder);
  const std::string all =
      named ? recording.substr(0, recording.size() - in_folder.size()) + slurm_step_pattern(job) : "";
  say(fmt::format("this is rank 0 of {}: the other ranks print no report", *job.tasks),
      named ? fmt::format("their recordings: {}", visible(all))
            : "headroom recordings lists theirs; -o FOLDER/ names each by its job and node");
}

void say_how_rank_ended(const SlurmJob& job, int code, const std::string& recording) {
  say(fmt::format("rank {} of {} ended with exit code {}", *job.rank, *job.tasks, code),
      fmt::format("headroom why {}", typed_word(recording)));
}

}  // namespace headroom::cli
