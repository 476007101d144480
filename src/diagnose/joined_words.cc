// SPDX-License-Identifier: Apache-2.0
#include "diagnose/joined_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/human.h"
#include "base/strings.h"
#include "base/visible.h"
#include "model/damage.h"
#include "model/slurm.h"

namespace headroom::diagnose {

namespace {

using Sums = std::array<Nanos, kAccounts.size()>;

std::vector<Sums> sums_by_device(const Ledger& ledger) {
  std::vector<Sums> sums(ledger.devices.size(), Sums{});
  for (const LedgerEntry& entry : ledger.entries)
    sums[entry.device][static_cast<std::size_t>(entry.account)] += entry.ns;
  return sums;
}

std::size_t machines_in(const std::vector<std::string>& names) {
  return std::set<std::string>(names.begin(), names.end()).size();
}

// "512 GPUs on 64 machines"
std::string gpus_words(const Ledger& ledger) {
  std::vector<std::string> hosts;
  for (const Device& device : ledger.devices) hosts.push_back(device.host);
  const std::size_t machines = machines_in(hosts);
  return fmt::format("{}{}", count_of(ledger.devices.size(), "GPU"),
                     machines > 1 ? fmt::format(" on {} machines", machines) : "");
}

// "On node07 the job failed: exit code 1. "
std::string failed_parts(const Explanation& e) {
  std::vector<const ExplainedRecording*> failed;
  for (const ExplainedRecording& part : e.parts)
    if (part.exit_code.value_or(0) != 0) failed.push_back(&part);
  if (failed.empty()) return "";
  const std::string first = fmt::format("{}: exit code {}", visible(failed[0]->name), *failed[0]->exit_code);
  if (failed.size() == 1)
    return fmt::format("What was recorded on {} failed with exit code {}. ", visible(failed[0]->name),
                       *failed[0]->exit_code);
  return fmt::format("{} of {} recorded commands failed ({}). ", failed.size(), e.parts.size(), first);
}

Nanos of(const Sums& sums, Account account) { return sums[static_cast<std::size_t>(account)]; }

// Of the time of which there are readings: a machine whose recording ends early computed no less for that.
double computing_share(const Sums& sums, Nanos whole) {
  const Nanos read = whole - of(sums, Account::kUnobserved);
  return read > 0 ? static_cast<double>(of(sums, Account::kUseful)) / static_cast<double>(read) : 0;
}

// ", node07 GPU 3 the least (12 %), node01 GPU 0 the most (93 %)"; of those that were read.
std::string extremes_words(const Ledger& ledger, const std::vector<Sums>& sums) {
  constexpr double kAlike = 0.03;
  std::vector<std::size_t> read;
  for (std::size_t device = 0; device < sums.size(); ++device)
    if (of(sums[device], Account::kUnobserved) < ledger.span()) read.push_back(device);
  if (read.size() < 2) return "";
  const auto share = [&](std::size_t device) { return computing_share(sums[device], ledger.span()); };
  const auto [least, most] =
      std::minmax_element(read.begin(), read.end(), [&](auto x, auto y) { return share(x) < share(y); });
  if (share(*most) - share(*least) < kAlike) return ", each about as much";
  const auto name = [&](std::size_t device) { return visible(gpu_name(ledger.devices[device])); };
  return fmt::format(", {} the least ({}), {} the most ({})", name(*least), human_percent(share(*least)), name(*most),
                     human_percent(share(*most)));
}

Sums sum_of(const std::vector<Sums>& sums) {
  Sums all{};
  for (const Sums& one : sums)
    for (std::size_t i = 0; i < all.size(); ++i) all[i] += one[i];
  return all;
}

// What is not said elsewhere of the rest: the account that most of it went to.
std::string rest_words(Sums all, Nanos budget, double material) {
  const double unread = static_cast<double>(of(all, Account::kUnobserved)) / static_cast<double>(budget);
  for (const Account account : {Account::kUseful, Account::kUnobserved}) all[static_cast<std::size_t>(account)] = 0;
  const auto most = std::max_element(all.begin(), all.end());
  const double share = static_cast<double>(*most) / static_cast<double>(budget);
  const AccountInfo& account = kAccounts[static_cast<std::size_t>(most - all.begin())];
  return (share < material ? "" : fmt::format(" Most of the rest is {}: {}.", account.label, human_percent(share))) +
         (unread < material ? "" : fmt::format(" No reading tells of {} of their time.", human_percent(unread)));
}

std::string list_of(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 4;
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < std::min(kShown, names.size()); ++i) shown.push_back(visible(names[i]));
  return join(shown, ", ") + (names.size() > kShown ? fmt::format(" and {} more", names.size() - kShown) : "");
}

std::string which_they_are(const Explanation& e, const std::vector<PartName>& names) {
  std::vector<std::string> machines;
  for (const PartName& name : names)
    if (std::find(machines.begin(), machines.end(), name.machine) == machines.end()) machines.push_back(name.machine);
  std::sort(machines.begin(), machines.end());
  return fmt::format("{} of {} ({}), {} from the first instant to the last", count_of(e.parts.size(), "recording"),
                     count_of(machines.size(), "machine"), list_of(machines), human_duration(e.ledger.span()));
}

std::string clocks_words(const Explanation& e, const std::vector<PartName>& names) {
  if (of_one_machine(names)) return "they are placed by the wall clock of their machine at the begin of each";
  Nanos first = e.parts.front().begin, last = first;
  for (const ExplainedRecording& part : e.parts) first = std::min(first, part.begin), last = std::max(last, part.begin);
  return fmt::format(
      "the wall clocks of the machines are taken as they are: how far apart they were is not known. By these the "
      "recordings begin {}",
      first == last ? "at one instant" : fmt::format("within {} of one another", human_duration(last - first)));
}

std::string why_it_ended(const std::string& stop_reason) {
  if (stop_reason == "recovered") return ": its recorder died or could not write, or went on after this";
  if (stop_reason == "disk_full") return ": the disk was full";
  if (stop_reason.empty()) return ": it is still being written";
  return "";
}

// Whose rows end clearly before those of the last.
std::vector<std::string> early_ends(const Explanation& e, Nanos interval) {
  constexpr Nanos kPart = 100, kIntervals = 3, kShown = 3;
  const Nanos clearly = std::max(e.ledger.span() / kPart, kIntervals * interval);
  std::vector<const ExplainedRecording*> early;
  for (const ExplainedRecording& part : e.parts)
    if (e.ledger.end - part.end > clearly) early.push_back(&part);
  std::stable_sort(early.begin(), early.end(), [](const auto* x, const auto* y) { return x->end < y->end; });
  std::vector<std::string> sentences;
  for (std::size_t i = 0; i < std::min<std::size_t>(kShown, early.size()); ++i)
    sentences.push_back(fmt::format("the rows of {} end {} before the last of all{}", visible(early[i]->name),
                                    human_duration(e.ledger.end - early[i]->end), why_it_ended(early[i]->stop_reason)));
  if (early.size() > kShown) sentences.push_back(fmt::format("those of {} more end early, too", early.size() - kShown));
  return sentences;
}

std::string job_words(const RecordingMeta& meta) {
  if (const auto job = slurm_job(meta))
    return fmt::format("Slurm job {}{}", job->job, job->step ? fmt::format(", step {}", *job->step) : "");
  return meta.command.empty() ? "a recording without a command" : typed_line(meta.command);
}

// They may be put together all the same: to say how a node was used, for one.
std::string jobs_words(const std::vector<ExplainedPart>& parts, const std::vector<PartName>& names) {
  std::map<std::string, std::vector<std::size_t>> jobs;
  for (std::size_t i = 0; i < parts.size(); ++i) jobs[job_key(parts[i].meta)].push_back(i);
  if (jobs.size() == 1) return slurm_job(parts.front().meta) ? "all of " + job_words(parts.front().meta) : "";
  constexpr std::size_t kShown = 3;
  std::vector<std::string> words;
  for (const auto& [key, of] : jobs) {
    if (words.size() == kShown) break;
    words.push_back(fmt::format("{} ({}{})", job_words(parts[of.front()].meta), visible(names[of.front()].part),
                                of.size() > 1 ? fmt::format(" and {} more", of.size() - 1) : ""));
  }
  if (jobs.size() > kShown) words.push_back(fmt::format("{} more", jobs.size() - kShown));
  return fmt::format("these are of {} jobs: {}", jobs.size(), join(words, "; "));
}

}  // namespace

std::string job_key(const RecordingMeta& meta) {
  if (const auto job = slurm_job(meta)) return fmt::format("slurm {} {}", job->job, job->step.value_or(-1));
  return "command " + shell_join(meta.command);
}

bool are_one_job(const std::vector<ExplainedPart>& parts) {
  Nanos first_end = 0, last_begin = 0, begin = 0, end = 0;
  for (const ExplainedPart& part : parts) {
    if (part.meta.command.empty() || job_key(part.meta) != job_key(parts.front().meta)) return false;
    const Nanos from = part.meta.start_realtime, to = part.meta.end + to_unix_time(part.meta);
    const bool is_first = &part == &parts.front();
    first_end = is_first ? to : std::min(first_end, to), end = is_first ? to : std::max(end, to);
    last_begin = is_first ? from : std::max(last_begin, from), begin = is_first ? from : std::min(begin, from);
  }
  return parts.size() > 1 && 2 * (first_end - last_begin) >= end - begin;  // for most of the time at once
}

std::string joined_sentence(const Explanation& e, const std::vector<ExplainedPart>& parts, const Thresholds& limits) {
  const std::string before = failed_parts(e);
  const Ledger& ledger = e.ledger;
  if (ledger.devices.empty() || ledger.span() <= 0)
    return before + fmt::format("No GPU was recorded in {}.", count_of(parts.size(), "recording"));
  const std::vector<Sums> sums = sums_by_device(ledger);
  const Sums all = sum_of(sums);
  const double material = limits[Threshold::kMaterial];
  const bool all_read =
      of(all, Account::kUnobserved) < static_cast<Nanos>(material * static_cast<double>(ledger.budget()));
  return before + fmt::format("{} computed for {} of {}{}{}.{}", gpus_words(ledger),
                              human_percent(computing_share(all, ledger.budget())),
                              all_read ? human_duration(ledger.span()) : "the time that was read",
                              ledger.devices.size() > 1 ? " on average" : "", extremes_words(ledger, sums),
                              rest_words(all, ledger.budget(), material));
}

std::vector<std::string> about_parts(const Explanation& e, const std::vector<ExplainedPart>& parts,
                                     const std::vector<PartName>& names) {
  if (e.parts.empty()) return {};
  std::vector<std::string> sentences{which_they_are(e, names), clocks_words(e, names)};
  for (std::string& words : early_ends(e, e.meta.interval)) sentences.push_back(std::move(words));
  if (std::string words = jobs_words(parts, names); !words.empty()) sentences.push_back(std::move(words));
  return sentences;
}

}  // namespace headroom::diagnose
