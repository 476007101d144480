// SPDX-License-Identifier: Apache-2.0
// Jobs that ended for want of a GPU's memory.
#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "diagnose/idle_parts.h"
#include "diagnose/restarts.h"
#include "diagnose/rules.h"
#include "model/observations.h"

namespace headroom::diagnose {

namespace {

// What the memory of a GPU was when the job failed: full, or growing so fast that it may have been.
struct FullMemory {
  std::string words;
  bool grew = false;
};
std::optional<FullMemory> full_at_the_end(const Analysis& a) {
  std::optional<FullMemory> full;
  double fullest = 0;
  for (std::size_t device = 0; device < a.gpus.size(); ++device) {
    const auto& end = a.gpus[device].memory_end;
    if (!end || end->total <= 0 || a.ledger.busy(device) == 0) continue;
    const double later = end->used + end->grown * seconds(std::max<Nanos>(0, a.window.end - end->at));
    const double least = a.limits[Threshold::kOutOfMemory] * end->total;
    if (later < least || later / end->total <= fullest) continue;
    fullest = later / end->total;
    full = FullMemory{fmt::format("{}: {} of {} in use {} before it failed", a.device_name(device),
                                  human_bytes(static_cast<std::int64_t>(end->used)),
                                  human_bytes(static_cast<std::int64_t>(end->total)),
                                  human_duration(std::max<Nanos>(0, a.window.end - end->at))),
                      end->used < least};
    if (full->grew)
      full->words += fmt::format(", and {} more each second", human_bytes(static_cast<std::int64_t>(end->grown)));
  }
  return full;
}

// It said so itself.
// What takes more and more is kept, and less of it in each step is only full later.
void say_that_it_grew(const Analysis& a, bool said, Finding& finding) {
  const auto grows = std::find_if(a.gpus.begin(), a.gpus.end(),
                                  [](const GpuAnalysis& gpu) { return gpu.memory_end && gpu.memory_end->pace > 0; });
  if (grows == a.gpus.end()) return;
  if (!said)
    finding.evidence.push_back(fmt::format("its memory grew until then, by {} a second at the end",
                                           human_bytes(static_cast<std::int64_t>(grows->memory_end->pace))));
  finding.advice += words_for(
      a.meta, {"; see what it keeps of each step: losses or outputs in a list keep their graphs (.item(), .detach())",
               "; see what it keeps of each step"});
}

Finding told_out_of_memory(const Analysis& a, const std::optional<FullMemory>& at_the_end, std::string memory) {
  Finding finding;
  finding.cause = Cause::kMemoryLimited;
  finding.tiers = "NL";
  finding.confidence = Confidence::kHigh;
  finding.title = "The job failed because a GPU's memory did not suffice";
  finding.evidence = {fmt::format("its output says at {}: {}", a.when(a.out_of_memory->last), a.out_of_memory->words),
                      fmt::format("the job ended with exit code {}", *a.meta.exit_code)};
  if (!memory.empty()) finding.evidence.push_back(std::move(memory));
  finding.advice = "a smaller batch, or a part of the model at a time; what else is on the GPU needs memory, too";
  say_that_it_grew(a, at_the_end && at_the_end->grew, finding);
  finding.bound = "not a matter of speed";
  return finding;
}

}  // namespace

bool last_words_of_memory(const Analysis& a) {
  constexpr Nanos kLastWords = 10 * kSecond;
  return a.out_of_memory && a.window.end - a.out_of_memory->last <= kLastWords;
}

namespace {

// Of the GPUs that computed the one whose memory was fullest when it was read; "" where it was not.
struct Fullest {
  double share = 0;
  std::string words;
};
Fullest fullest_memory(const Analysis& a) {
  Fullest fullest;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const MetricStats* used = a.stats_of(device, Metric::kMemoryUsed);
    const auto total = a.devices[device].device.memory_total_bytes;
    if (!used || used->samples == 0 || !total || *total <= 0 || a.ledger.busy(device) == 0) continue;
    const double share = used->max / static_cast<double>(*total);
    if (share <= fullest.share) continue;
    fullest = {share, fmt::format("{}: {} of {} in use at most when it was read", a.device_name(device),
                                  human_bytes(static_cast<std::int64_t>(used->max)), human_bytes(*total))};
  }
  return fullest;
}

// Processes in turn, each of which ran out of memory (`tries`), filled it, or may have.
void say_again_and_again(const Analysis& a, const std::vector<const ContextUse*>& row, const Claims& tries, bool full,
                         Finding& finding) {
  finding.confidence = Confidence::kMedium;
  finding.title =
      fmt::format("At least {} processes one after the other filled the GPU's memory, and the job failed", row.size());
  // Each start but the first was one more try.
  finding.claims = !tries.empty() ? tries : claim(a, [&](std::size_t device, const Slice& slice) {
    return slice.account == Account::kStartup && a.devices[device].source == row.front()->device &&
           slice.begin >= row.front()->end;
  });
  if (!tries.empty()) {
    finding.title = fmt::format(
        "At least {} processes one after the other ran out of the GPU's memory, and the job failed", row.size());
    finding.tiers |= "L";
    finding.evidence.push_back(fmt::format("its output says {} times that memory did not suffice, last at {}: {}",
                                           a.out_of_memory->lines, a.when(a.out_of_memory->last),
                                           a.out_of_memory->words));
  }
  finding.advice = "give up after the first, or start the next with a smaller batch";
  finding.bound = "none at equal work: the job failed, and what it takes with memory enough is not known";
  if (full) {
    finding.cause = Cause::kOomRestartLoop;
    if (!a.job.batch.present)  // there is no task file
      finding.remedy = Remedy{.fix = "reserve_memory",
                              .title = "Start with what fits, not after a failure",
                              .why_safe = "a smaller batch changes what a step is",
                              .undo = "as it was",
                              .safety = Safety::kModerate};
    return;
  }
  finding.candidates = {Cause::kOomRestartLoop, Cause::kTrialChurn};
  finding.confidence = Confidence::kLow;
  finding.title = fmt::format("At least {} processes used the GPU one after the other, and the job failed", row.size());
  finding.evidence.push_back("memory is read now and then: what is full for a moment only is not seen");
  finding.advice = "look for \"out of memory\" in its output: each may be a new try after a failure";
}

}  // namespace

// A failed job whose processes filled the memory of a GPU: in turn, it was started again and again. In turn alone, it
// may have been.
std::vector<Finding> out_of_memory(const Analysis& a) {
  if (!failed(a)) return {};
  const Fullest fullest = fullest_memory(a);
  const auto row = in_turn(a);
  const bool again = many_in_turn(a, row) || ran_out_again(a);
  const auto at_the_end = full_at_the_end(a);
  const std::string memory = at_the_end ? at_the_end->words : fullest.words;
  if (last_words_of_memory(a) && !again) return only(told_out_of_memory(a, at_the_end, memory));
  const Claims tries = tries_again(a);
  const bool full = fullest.share >= a.limits[Threshold::kOutOfMemory] || at_the_end || !tries.empty();
  if (memory.empty() || (!full && !again)) return {};
  Finding finding;
  finding.tiers = a.job.has_host ? "NP" : "N";
  finding.evidence = {memory, fmt::format("the job ended with exit code {}", *a.meta.exit_code)};
  finding.would_overturn = info(Cause::kOomRestartLoop).overturn;
  if (again) {
    say_again_and_again(a, row, tries, full, finding);
    return only(std::move(finding));
  }
  finding.cause = Cause::kMemoryLimited;
  finding.confidence = Confidence::kLow;
  finding.title = at_the_end && !at_the_end->grew ? "GPU memory was full, or nearly so, when the job failed"
                  : at_the_end                    ? "GPU memory was filling up when the job failed"
                                                  : "GPU memory had been nearly full before the job failed";
  const bool read = a.meta.tiers.find('L') != std::string::npos;
  finding.advice = fmt::format("look for \"out of memory\" in its output{}; a smaller batch",
                               read ? "" : " (headroom run --output-lines does)");
  say_that_it_grew(a, at_the_end && at_the_end->grew, finding);
  finding.bound = "not a matter of speed";
  return only(std::move(finding));
}

}  // namespace headroom::diagnose
