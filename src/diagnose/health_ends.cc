// SPDX-License-Identifier: Apache-2.0
#include "diagnose/health_ends.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/human.h"
#include "diagnose/host_memory.h"
#include "model/job_variables.h"
#include "model/notes.h"

namespace headroom::diagnose {

bool read_its_output(const RecordingMeta& meta) {
  return meta.tiers.find('L') != std::string::npos ||
         std::any_of(meta.missing_tiers.begin(), meta.missing_tiers.end(),
                     [](const MissingTier& one) { return one.tier == 'L' && one.why == kOutputToldNothing; });
}

HealthCheck no_out_of_memory(const Analysis& a) {
  constexpr const char* kCheck = "no_out_of_memory";
  if (a.job.batch.present) {
    const auto ran_out =
        std::count_if(a.job.batch.attempts.begin(), a.job.batch.attempts.end(), [](const auto& attempt) {
          return attempt.outcome == AttemptOutcome::kGpuOutOfMemory ||
                 attempt.outcome == AttemptOutcome::kHostOutOfMemory;
        });
    if (ran_out > 0)
      return {kCheck, Answer::kNo, count_of(static_cast<std::int64_t>(ran_out), "attempt") + " ran out of memory"};
    return {kCheck, Answer::kYes, "no attempt ran out of memory"};
  }
  if (a.out_of_memory)
    return {kCheck, Answer::kNo,
            fmt::format("its output says at {}: {}", a.when(a.out_of_memory->last), a.out_of_memory->words)};
  if (const auto kill = host_kill(a)) return {kCheck, kill->sure ? Answer::kNo : Answer::kUnknown, kill->words};
  if (a.window.end >= a.meta.end && a.meta.exit_code == 0) return {kCheck, Answer::kYes, "none that ended the job"};
  return {kCheck, Answer::kUnknown,
          read_its_output(a.meta) ? "neither the end of the job nor a line of its output says that it failed so"
                                  : "its output was not read"};
}

namespace {

// How the last attempt of each task of a batch went.
HealthCheck tasks_ended(const Analysis& a) {
  std::map<std::int32_t, bool> well;  // by task
  for (const NeverStarted& attempt : a.job.batch.never_started)
    if (attempt.at >= a.window.begin && attempt.at <= a.window.end) well[attempt.task] = false;
  for (const TaskAttempt& attempt : a.job.batch.attempts)
    if (attempt.outcome == AttemptOutcome::kInterrupted)
      well.erase(attempt.task);  // it runs again
    else if (!attempt.running && attempt.end <= a.window.end)
      well[attempt.task] = attempt.counted();
  if (well.empty()) return {"ended_well", Answer::kUnknown, "no task ended in the window"};
  const auto bad = std::count_if(well.begin(), well.end(), [](const auto& task) { return !task.second; });
  if (bad == 0) return {"ended_well", Answer::kYes, "every task that ended succeeded"};
  return {"ended_well", Answer::kNo, fmt::format("{} of {} tasks that ended did not succeed", bad, well.size())};
}

// What a job prints before it fails is what tells why: "; its output was not read: not asked for (--output-lines)".
std::string output_unread(const RecordingMeta& meta) {
  if (read_its_output(meta)) return "";
  for (const MissingTier& missing : meta.missing_tiers)
    if (missing.tier == 'L') return "; its output was not read: " + missing.why;
  return "";
}

}  // namespace

HealthCheck ended_well(const Analysis& a) {
  if (a.job.batch.present) return tasks_ended(a);
  if (a.goes_on) return {"ended_well", Answer::kUnknown, "the recording goes on"};
  if (a.window.end < a.meta.end) return {"ended_well", Answer::kUnknown, "the window ends before the job"};
  const auto code = a.meta.exit_code;
  if (!code && a.meta.stop_reason == "job_ended")
    return {"ended_well", Answer::kUnknown, "the job ended; with which exit code, who only watches it is not told"};
  if (!code) return {"ended_well", Answer::kUnknown, "the end of the job was not recorded"};
  if (*code == 0) return {"ended_well", Answer::kYes, "exit code 0"};
  if (const auto signal = a.signal())
    return {"ended_well", Answer::kNo,
            a.returned
                ? fmt::format("exit code {}, with which shells say that signal {} ended what they ran", *code, *signal)
                : fmt::format("ended by signal {}", *signal)};
  return {"ended_well", Answer::kNo, fmt::format("exit code {}{}", *code, output_unread(a.meta))};
}

}  // namespace headroom::diagnose
