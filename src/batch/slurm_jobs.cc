// SPDX-License-Identifier: Apache-2.0
#include "batch/slurm_jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/human.h"
#include "base/run_program.h"
#include "base/strings.h"
#include "base/visible.h"

namespace headroom::batch {

std::vector<std::string> sbatch_words(const SlurmOrder& order) {
  std::vector<std::string> words{"sbatch",
                                 "--parsable",
                                 "--job-name=" + order.name,
                                 "--comment=headroom/1",
                                 fmt::format("--array=0-{}", std::max<std::size_t>(1, order.jobs) - 1),
                                 "--nodes=1",
                                 "--requeue",
                                 "--open-mode=append",
                                 "--signal=B:USR1@120",
                                 "--output=" + order.log};
  if (!order.partition.empty()) words.push_back("--partition=" + order.partition);
  words.insert(words.end(), order.options.begin(), order.options.end());
  words.push_back(order.script);
  return words;
}

std::string slurm_script(const std::vector<std::string>& command) {
  std::string line;
  for (const std::string& word : command) line += " " + shell_quote(word);
  return "#!/bin/sh\n# A worker of a batch; written by headroom batch --on slurm.\nexec" + line + "\n";
}

std::optional<std::int64_t> submitted_id(std::string_view out) {
  const std::string_view line = trim(out.substr(0, out.find('\n')));
  return parse_number<std::int64_t>(line.substr(0, line.find(';')));
}

std::size_t elements_of(std::string_view id) {
  const std::size_t open = id.find('[');
  if (open == std::string_view::npos) return 1;
  constexpr std::size_t kMost = 10'000'000;  // Slurm's own limit is below
  std::string_view list = id.substr(open + 1);
  list = list.substr(0, list.find_first_of("]%"));
  std::size_t count = 0;
  for (auto part : split(list, ',')) {
    const std::size_t colon = part.find(':'), dash = part.find('-');
    const auto step = colon == std::string_view::npos ? std::size_t{1}
                                                      : parse_number<std::size_t>(part.substr(colon + 1)).value_or(1);
    part = part.substr(0, colon);
    const auto first = parse_number<std::size_t>(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : parse_number<std::size_t>(part.substr(dash + 1));
    if (!first || !last || *last < *first || *last > kMost || step == 0) continue;
    count += (*last - *first) / step + 1;
  }
  return std::max<std::size_t>(1, std::min(count, kMost));
}

std::vector<SlurmElement> parse_squeue(std::string_view text) {
  std::vector<SlurmElement> elements;
  for (const auto line : split(text, '\n')) {
    const auto fields = split(line, '|');
    if (fields.size() != 4 || fields[0].empty() || fields[0][0] < '0' || fields[0][0] > '9') continue;
    elements.push_back({.id = std::string(fields[0]),
                        .state = std::string(fields[1]),
                        .reason = std::string(fields[2]),
                        .node = std::string(fields[3]),
                        .count = elements_of(fields[0])});
  }
  return elements;
}

bool is_there(std::string_view state) {
  constexpr std::array kOver{"BOOT_FAIL", "CANCELLED",     "COMPLETED", "DEADLINE", "FAILED",
                             "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED",  "TIMEOUT"};
  return std::find(kOver.begin(), kOver.end(), state) == kOver.end();
}

std::optional<std::int64_t> job_of_worker(std::string_view name) {
  for (const auto part : split(name, '.'))
    if (part.starts_with('j') && part != split(name, '.').front())
      if (const auto job = parse_number<std::int64_t>(part.substr(1))) return job;
  return std::nullopt;
}

std::string slurm_words(const std::vector<SlurmElement>& elements) {
  std::size_t all = 0, run = 0;
  std::map<std::string, std::size_t> others;
  for (const SlurmElement& element : elements) {
    all += element.count;
    if (element.state == "RUNNING")
      run += element.count;
    else if (element.state == "PENDING")
      others[fmt::format("wait ({})", element.reason)] += element.count;
    else
      others[fmt::format("are {}", lower(element.state))] += element.count;
  }
  std::string text = fmt::format("{} of {} run", run, count_of(all, "job"));
  for (const auto& [words, count] : others) text += fmt::format(", {} {}", count, words);
  return text;
}

Result<std::string> ask_slurm(std::vector<std::string> words, Nanos patience) {
  const std::string program = words.front();
  HR_TRY(ProgramAnswer answer, run_program({.argv = std::move(words), .set_env = {"LC_ALL=C"}}, patience));
  if (answer.status == ExitStatus{}) return std::move(answer.out);
  std::string said(trim(answer.error.empty() ? answer.out : answer.error));
  std::replace(said.begin(), said.end(), '\n', ' ');
  return fail(Errc::kIo, said.empty() ? fmt::format("{} ended with {}", program, answer.status.as_code())
                                      : fmt::format("{} says: {}", program, said));
}

std::vector<SlurmRecord> parse_records(std::string_view text) {
  std::vector<SlurmRecord> records;
  for (const auto line : split(text, '\n')) {
    const auto words = split(line, ' ');
    if (words.size() != 3) continue;
    const auto number = parse_number<std::int64_t>(words[2]);
    if (!number) continue;
    if (words[0] == "intends")
      records.push_back({.name = std::string(words[1]), .intended_seconds = *number, .id = {}});
    if (words[0] != "submitted" && words[0] != "refused") continue;
    const auto known =
        std::find_if(records.rbegin(), records.rend(), [&](const auto& one) { return one.name == words[1]; });
    if (known == records.rend()) continue;
    if (words[0] == "refused")
      known->refused = true;
    else
      known->id = *number;
  }
  return records;
}

std::string intended_line(std::string_view name, std::int64_t at_seconds) {
  return fmt::format("intends {} {}\n", name, at_seconds);
}
std::string refused_line(std::string_view name, std::int64_t at_seconds) {
  return fmt::format("refused {} {}\n", name, at_seconds);
}
std::string submitted_line(std::string_view name, std::int64_t id) {
  return fmt::format("submitted {} {}\n", name, id);
}

}  // namespace headroom::batch
