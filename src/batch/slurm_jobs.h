// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"

// Slurm, as its own programs show it: squeue's columns (never its JSON, which differs from version to version) and
// what sbatch prints. Pure but for the last part.
namespace headroom::batch {

// What `headroom batch --on slurm` asks for: an array of jobs, each a worker of a shared batch.
struct SlurmOrder {
  std::string name;                  // of the jobs: by it they are found again
  std::string partition;             // "": the site's default
  std::size_t jobs = 1;              // of the array
  std::vector<std::string> options;  // of sbatch, as a person wrote them: after ours, so that theirs win
  std::string script, log;           // files; %A and %a in the log's are the array and the element
};
[[nodiscard]] std::vector<std::string> sbatch_words(const SlurmOrder& order);
// `command`: the worker's words. It replaces the shell, so that signals for the script reach it.
[[nodiscard]] std::string slurm_script(const std::vector<std::string>& command);
// "4711" of "4711;cluster"; nothing where it is no answer of sbatch --parsable.
[[nodiscard]] std::optional<std::int64_t> submitted_id(std::string_view out);

struct SlurmElement {
  std::string id;  // "4711_2", of those that wait "4711_[1-3]"
  std::string state, reason, node;
  std::size_t count = 1;  // elements of the array
};
inline constexpr std::string_view kSqueueFormat = "%i|%T|%r|%N";
// Lines that squeue would not write are left out.
[[nodiscard]] std::vector<SlurmElement> parse_squeue(std::string_view text);
// Whether a job in this state may still have processes, or gets some again.
[[nodiscard]] bool is_there(std::string_view state);
// How many elements "4711_[0,3-7:2%2]" stands for; 1 of what is no array.
[[nodiscard]] std::size_t elements_of(std::string_view id);
// The job of a worker: 4711 of "n1.j4711.r1".
[[nodiscard]] std::optional<std::int64_t> job_of_worker(std::string_view name);
// "2 of 4 jobs run, 2 wait (Resources)"
[[nodiscard]] std::string slurm_words(const std::vector<SlurmElement>& elements);

// --- the programs themselves ---
// kNotFound: it is not here. kBusy: it gives no answer in time. kIo: it says no, with its words.
[[nodiscard]] Result<std::string> ask_slurm(std::vector<std::string> words, Nanos patience = 60 * kSecond);

// What was asked of Slurm for a batch, kept in its folder, one line for each thing: first that somebody is about to
// submit, then under which number Slurm has it.
struct SlurmRecord {
  std::string name;
  std::int64_t intended_seconds = 0;  // Unix time
  std::optional<std::int64_t> id;
  bool refused = false;  // Slurm said no
};
[[nodiscard]] std::vector<SlurmRecord> parse_records(std::string_view text);
[[nodiscard]] std::string intended_line(std::string_view name, std::int64_t at_seconds);
[[nodiscard]] std::string submitted_line(std::string_view name, std::int64_t id);
[[nodiscard]] std::string refused_line(std::string_view name, std::int64_t at_seconds);

}  // namespace headroom::batch
