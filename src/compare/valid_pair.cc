// SPDX-License-Identifier: Apache-2.0
#include "compare/valid_pair.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/human.h"
#include "base/strings.h"
#include "base/visible.h"

namespace headroom::compare {

namespace {

bool of_many_tasks(const Side& side) {
  return std::any_of(side.samples.begin(), side.samples.end(),
                     [&](const Sample& sample) { return sample.task != side.samples.front().task; });
}

bool same_runs(const Side& a, const Side& b) {
  return !a.samples.empty() &&
         std::equal(a.samples.begin(), a.samples.end(), b.samples.begin(), b.samples.end(),
                    [](const Sample& x, const Sample& y) { return x.begin == y.begin && x.end == y.end; });
}

// By itself, so that another run of the same command would, too. What somebody stopped may succeed.
bool failed(const Sample& sample) { return sample.outcome == "failed" || sample.outcome.starts_with("exit_code_"); }

bool only_failed(const Side& side) {
  return !side.samples.empty() && std::all_of(side.samples.begin(), side.samples.end(), failed);
}

// Of its environment what differs from the other's: "-u NCCL_DEBUG OMP_NUM_THREADS=2 ".
std::string variables_words(const Side& side, const Side& other) {
  if (side.samples.empty() || other.samples.empty()) return "";
  const auto &own = side.samples.front().variables, &others = other.samples.front().variables;
  if (!own || !others) return "";
  std::string taken, set;
  for (const auto& other_one : *others)
    if (std::none_of(own->begin(), own->end(), [&](const auto& one) { return one.first == other_one.first; }))
      taken += fmt::format("-u {} ", typed_word(other_one.first));
  for (const auto& one : *own)
    if (std::find(others->begin(), others->end(), one) == others->end())
      set += typed_word(fmt::format("{}={}", one.first, one.second)) + " ";
  return taken + set;
}

// "-C FOLDER " of env, where it has to be: of one command in one folder two copies.
std::string folder_words(const std::string& folder, const char* name, bool alike, const std::string& here) {
  if (alike) return fmt::format("-C FOLDER_OF_{} ", name);
  return folder.empty() || folder == here ? "" : fmt::format("-C {} ", typed_word(folder));
}

std::string with_env(const std::string& words, std::string command) {
  return words.empty() ? command : fmt::format("env {}{}", words, command);
}

constexpr const char* kTwoCopies =
    "A and B ran one command in one folder. FOLDER_OF_A: a copy of its code as A ran it, FOLDER_OF_B: as B did "
    "(git worktree makes one)";

// What the commands say differently is meant to differ; of anything else ab has to be told, and then of all.
std::vector<std::string> parameters_to_name(const Comparison& result) {
  const auto& all = result.parameters;
  std::vector<std::string> names;
  if (std::all_of(all.begin(), all.end(), [](const ComparedParameter& one) { return one.intended; })) return names;
  for (const ComparedParameter& one : all) names.push_back(one.name);
  return names;
}

std::string changed_words(const std::vector<std::string>& names) {
  std::string words;
  for (const std::string& name : names) words += typed_word("--changed=" + name) + " ";
  return words;
}

void pair_of_commands(const Side& a, const Side& b, const std::string& here, Comparison& result) {
  if (only_failed(a) || only_failed(b)) return;
  const bool alike = !a.command.empty() && a.command == b.command && a.folder == b.folder &&
                     variables_words(a, b).empty() && variables_words(b, a).empty();
  const auto of = [&](const Side& side, const char* name) {
    if (side.command.empty()) return fmt::format("CMD_{}", name);
    return with_env(folder_words(side.folder, name, alike, here) + variables_words(side, &side == &a ? b : a),
                    side.command);
  };
  const std::string box = a.virtual_gpus.empty() || a.virtual_gpus != b.virtual_gpus ? "" : a.virtual_gpus + " -- ";
  result.valid_command = fmt::format("{}headroom ab {}-- {} --- {}", box, changed_words(parameters_to_name(result)),
                                     of(a, "A"), of(b, "B"));
  if (alike)
    result.valid_note = kTwoCopies;
  else if (!a.samples.empty() && !b.samples.empty() && a.samples[0].task != b.samples[0].task)
    result.valid_note = "Valid where both do the same work: of programs that differ ab takes that from who asks";
}

using Keys = std::set<std::string>;

Keys tasks_named(const Side& side) {
  Keys keys;
  for (const BatchTask& task : side.batch->tasks) keys.insert(task.key);
  return keys;
}

// Tasks each of whose runs failed.
Keys tasks_failed(const Side& side) {
  Keys some, not_all;
  for (const Sample& sample : side.samples) (failed(sample) ? some : not_all).insert(sample.task);
  Keys all;
  std::set_difference(some.begin(), some.end(), not_all.begin(), not_all.end(), std::inserter(all, all.end()));
  return all;
}

// Which GPUs a pair of batches runs on: what both had, where that were several; where one did the same tasks with
// fewer, that is what is compared, and each has its own. By default ab gives each run the first of the machine.
struct PairsGpus {
  std::vector<std::string> all;  // empty: the first
  bool own = false;
};

PairsGpus gpus_of(const Side& a, const Side& b, bool same_tasks) {
  const auto &of_a = a.hardware.uuids, &of_b = b.hardware.uuids;
  if (of_a == of_b) return {.all = of_a.size() > 1 ? of_a : std::vector<std::string>{}};
  const auto& more = of_a.size() > of_b.size() ? of_a : of_b;
  const auto& fewer = of_a.size() > of_b.size() ? of_b : of_a;
  const bool within = same_tasks && !fewer.empty() && fewer.size() < more.size() &&
                      std::all_of(fewer.begin(), fewer.end(), [&](const std::string& uuid) {
                        return std::find(more.begin(), more.end(), uuid) != more.end();
                      });
  return within ? PairsGpus{more, true} : PairsGpus{};
}

// The batch's command for those of its tasks; in a folder of its own, over again each time.
std::string batch_command(const BatchAsked& asked, const std::string& gpus, const char* name, const Keys& tasks) {
  std::string only;
  std::size_t chosen = 0;
  for (const BatchTask& task : asked.tasks) {
    if (!tasks.contains(task.key)) continue;
    only += fmt::format(" {}", typed_word("--only=" + task.name));
    ++chosen;
  }
  if (asked.all_of_it && chosen == asked.tasks.size()) only.clear();
  std::string command =
      fmt::format("headroom batch --fresh --quiet --no-record --folder=ab-{}.batch{}{}", name, gpus, only);
  if (asked.from_stdin) command += fmt::format(" TASKS_OF_{}", name);
  return asked.words.empty() ? command : command + " " + asked.words;
}

std::string note_of_batches(const Side& a, const Side& b, bool alike, std::size_t left_out, const Comparison& result) {
  std::vector<std::string> notes;
  const auto says = [&](CompareReason reason) {
    return std::any_of(result.reasons.begin(), result.reasons.end(),
                       [&](const ComparedReason& one) { return one.reason == reason && one.refuses; });
  };
  if (alike) notes.emplace_back(kTwoCopies);
  for (const auto& [name, side] : {std::pair("A", &a), std::pair("B", &b)})
    if (side->batch->from_stdin)
      notes.push_back(fmt::format("TASKS_OF_{0}: a file with the lines that {0} had on standard input", name));
  if (left_out > 0)
    notes.push_back(fmt::format("{} of both {} left out, as {} failed", count_of(left_out, "task"),
                                left_out == 1 ? "is" : "are", left_out == 1 ? "it" : "they"));
  if (says(CompareReason::kDifferentWork)) notes.emplace_back("Valid once a task does the same work in both");
  if (says(CompareReason::kConcurrencyDiffersOrUnknown))
    notes.emplace_back("Unless how many run at once is what you compare, give both the same --per-gpu");
  return join(notes, ". ");
}

// A command of one task speaks for no batch: the batches themselves take turns, with what both can do.
void pair_of_batches(const Side& a, const Side& b, const std::string& here, Comparison& result) {
  if (!a.batch || !b.batch) return;
  Keys common;
  const Keys of_a = tasks_named(a), of_b = tasks_named(b), bad_a = tasks_failed(a), bad_b = tasks_failed(b);
  std::size_t left_out = 0;
  for (const std::string& key : of_a) {
    if (!of_b.contains(key)) continue;
    if (bad_a.contains(key) || bad_b.contains(key))
      ++left_out;
    else
      common.insert(key);
  }
  if (common.empty()) return;
  const bool other_work = std::any_of(result.reasons.begin(), result.reasons.end(), [](const ComparedReason& one) {
    return one.reason == CompareReason::kDifferentWork && one.refuses;
  });
  const PairsGpus gpus = gpus_of(a, b, of_a == of_b && !other_work);
  const bool alike = !gpus.own && !a.batch->from_stdin && !b.batch->from_stdin && a.batch->words == b.batch->words &&
                     a.batch->folder == b.batch->folder;
  const auto of = [&](const Side& side, const char* name) {
    const std::string own = gpus.own ? fmt::format(" --gpus={}", join(side.hardware.uuids, ",")) : "";
    return with_env(folder_words(side.batch->folder, name, alike, here), batch_command(*side.batch, own, name, common));
  };
  const std::string which = gpus.all.empty() ? "" : fmt::format("--gpus={} ", join(gpus.all, ","));
  std::vector<std::string> changed = parameters_to_name(result);
  if (!changed.empty()) changed.emplace_back("folder");  // each has its own, and ab compares the commands
  result.valid_command =
      fmt::format("headroom ab {}{}-- {} --- {}", which, changed_words(changed), of(a, "A"), of(b, "B"));
  result.valid_note = note_of_batches(a, b, alike, left_out, result);
}

}  // namespace

void name_valid_pair(const Side& a, const Side& b, const CompareRequest& request, Comparison& result) {
  if (!request.mended.empty()) return;  // ab runs both on one GPU, beside whoever is there and at its clocks
  if (same_runs(a, b)) return;
  of_many_tasks(a) || of_many_tasks(b) ? pair_of_batches(a, b, request.here, result)
                                       : pair_of_commands(a, b, request.here, result);
  if (result.valid_command.empty() || parameters_to_name(result).empty()) return;
  if (!result.valid_note.empty()) result.valid_note += ". ";
  result.valid_note += "--changed says that all of these are meant to differ; give both the same where they are not";
}

}  // namespace headroom::compare
