// SPDX-License-Identifier: Apache-2.0
#include "model/slurm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/strings.h"

namespace headroom {

namespace {

constexpr std::int64_t kMostOfNumber = 0xffff'ffff;  // Slurm's numbers have 32 bits
constexpr std::int64_t kFirstSpecial = 0xffff'fff0;  // of them the last are no steps: batch scripts, interactive shells
constexpr std::int64_t kMostSeconds = 9'000'000'000;  // in nanoseconds they fit 64 bits

struct Number {
  std::string_view name;
  std::optional<std::int64_t> SlurmJob::*member;
  std::int64_t most = kMostOfNumber;
};
// Of two rows with one member the later one wins: what is said of a step is nearer than what is said of its job.
constexpr std::array kNumbers{
    Number{"SLURM_ARRAY_JOB_ID", &SlurmJob::array_job},
    Number{"SLURM_ARRAY_TASK_ID", &SlurmJob::array_task},
    Number{"SLURM_STEP_ID", &SlurmJob::step, kFirstSpecial},
    Number{"SLURM_PROCID", &SlurmJob::rank},
    Number{"SLURM_LOCALID", &SlurmJob::local_rank},
    Number{"SLURM_NODEID", &SlurmJob::node_index},
    Number{"SLURM_JOB_NUM_NODES", &SlurmJob::nodes},
    Number{"SLURM_STEP_NUM_NODES", &SlurmJob::nodes},
    Number{"SLURM_NTASKS", &SlurmJob::tasks},
    Number{"SLURM_STEP_NUM_TASKS", &SlurmJob::tasks},
    Number{"SLURM_RESTART_COUNT", &SlurmJob::restarts},
    Number{"SLURM_JOB_START_TIME", &SlurmJob::start_seconds, kMostSeconds},
    Number{"SLURM_JOB_END_TIME", &SlurmJob::end_seconds, kMostSeconds},
};

struct Text {
  std::string_view name;
  std::string SlurmJob::*member;
};
constexpr std::array kTexts{
    Text{"SLURMD_NODENAME", &SlurmJob::node},       Text{"SLURM_JOB_PARTITION", &SlurmJob::partition},
    Text{"SLURM_JOB_NAME", &SlurmJob::name},        Text{"SLURM_JOB_ACCOUNT", &SlurmJob::account},
    Text{"SLURM_CLUSTER_NAME", &SlurmJob::cluster},
};
constexpr std::string_view kJob = "SLURM_JOB_ID";

std::optional<std::int64_t> number_of(std::string_view text, std::int64_t most) {
  const auto value = parse_number<std::int64_t>(text);
  return value && *value >= 0 && *value < most ? value : std::nullopt;
}

std::string step_name(const SlurmJob& job) {
  return job.step ? fmt::format("slurm-{}.{}", job.job, *job.step) : fmt::format("slurm-{}", job.job);
}

std::string plain(const std::string& name) {
  constexpr std::size_t kLongest = 64;
  std::string safe = name.substr(0, kLongest);
  for (char& c : safe)
    if (!is_digit(c) && !(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && c != '-' && c != '_') c = '_';
  return safe;
}

}  // namespace

bool is_slurm_variable(std::string_view name) {
  const auto has_name = [&](const auto& row) { return row.name == name; };
  return name == kJob || std::any_of(kNumbers.begin(), kNumbers.end(), has_name) ||
         std::any_of(kTexts.begin(), kTexts.end(), has_name);
}

std::optional<SlurmJob> slurm_job(const JobVariables& variables) {
  const auto said = [&](std::string_view name) -> const std::string* {
    const auto found =
        std::find_if(variables.begin(), variables.end(), [&](const auto& variable) { return variable.first == name; });
    return found == variables.end() ? nullptr : &found->second;
  };
  const std::string* const number = said(kJob);
  const auto id = number == nullptr ? std::nullopt : number_of(*number, kMostOfNumber);
  if (!id || *id == 0) return std::nullopt;
  SlurmJob job{.job = *id};
  for (const auto& [name, member, most] : kNumbers)
    if (const std::string* const text = said(name))
      if (const auto value = number_of(*text, most)) job.*member = value;
  for (const auto& [name, member] : kTexts)
    if (const std::string* const text = said(name)) job.*member = *text;
  if (!job.array_job || !job.array_task) job.array_job = job.array_task = std::nullopt;
  if (!job.step) job.rank = job.local_rank = std::nullopt;  // a batch script is called rank 0
  return job;
}

std::optional<SlurmJob> slurm_job(const RecordingMeta& meta) {
  const auto variables = job_variables(meta);
  return variables ? slurm_job(*variables) : std::nullopt;
}

std::optional<Slurmstepd> slurmstepd_of(std::string_view cmdline) {
  constexpr std::string_view kBegin = "slurmstepd: [";
  cmdline = cmdline.substr(0, cmdline.find('\0'));
  if (!cmdline.starts_with(kBegin) || !cmdline.ends_with(']')) return std::nullopt;
  const std::string_view name = cmdline.substr(kBegin.size(), cmdline.size() - kBegin.size() - 1);
  const auto dot = name.find('.');
  const auto job = number_of(name.substr(0, dot), kMostOfNumber);
  if (!job || dot == std::string_view::npos) return std::nullopt;
  return Slurmstepd{.job = *job, .step = number_of(name.substr(dot + 1), kFirstSpecial)};
}

void leave_out_other_steps(const std::optional<Slurmstepd>& above, JobVariables& variables) {
  if (!above) return;
  const auto job = slurm_job(variables);
  if (!job || (job->job == above->job && job->step == above->step)) return;
  std::erase_if(variables, [](const auto& variable) { return variable.first.starts_with("SLURM_STEP_"); });
}

bool is_one_of_many(const SlurmJob& job) { return job.step && job.rank && job.tasks.value_or(1) > 1; }

std::string slurm_file_name(const SlurmJob& job) {
  std::string name = step_name(job);
  if (!job.node.empty()) name += "-" + plain(job.node);
  if (is_one_of_many(job) && *job.tasks > job.nodes.value_or(0))
    name += fmt::format("-{}", job.local_rank.value_or(*job.rank));
  return name;
}

std::string slurm_step_pattern(const SlurmJob& job) { return step_name(job) + "-*.hrec"; }

}  // namespace headroom
