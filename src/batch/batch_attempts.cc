// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>

#include "base/regular_file.h"
#include "batch/batch.h"
#include "batch/events.h"
#include "batch/placed_task.h"

// An attempt from the planner's wish to its last line in the journal.
namespace headroom::batch {

namespace {
constexpr std::size_t kTail = 64 * 1024;  // of the output, for the words of an OOM
}

void Batch::act(const scheduler::StartAttempt& start) {
  BookedAttempt attempt = placed_task(start, options_);
  attempt.facts.start = parts_.clock.realtime();
  parts_.executor.describe(spec(start.task), attempt.facts);
  book_.prepare(std::move(attempt));
  starts_.add(start.attempt);
}

void Batch::on(const AttemptRuns& runs) {
  BookedAttempt* attempt = book_.under_way(runs.attempt);
  if (attempt == nullptr) return;
  attempt->stage = Stage::kRunning;
  attempt->start = runs.at;
  attempt->facts.pid = runs.pid;
  starts_.started();
  statistics_.attempt_runs(attempt->facts, runs.at);
  if (runs.pid != 0 && !std::exchange(told_.tree, true)) parts_.recorder.follow_tree_of(runs.pid);
  if (!attempt->gpus.empty()) watch_.started_on_gpu(runs.at);
  parts_.recorder.add_event(start_event(spec(attempt->facts.task), attempt->facts, attempt->start));
  if (options_.on_running) {
    Attempt copy = attempt->facts;
    copy.log_path = parts_.executor.readable_log(attempt->facts);
    options_.on_running(spec(copy.task), copy);
  }
  feed(scheduler::AttemptStarted{.attempt = runs.attempt});
}

void Batch::on(const AttemptIdentified& identified) {
  book_.identified(identified.attempt, identified.pid, identified.process_start);
}

void Batch::on(const AttemptNotStarted& failed) {
  if (failed.passes) starts_.refused(failed.reason);
  never_ran(
      failed.attempt,
      {.ran = EndEvidence::Ran::kCouldNotStart, .not_started_reason = failed.reason, .reason_passes = failed.passes});
}

void Batch::never_ran(AttemptId id, EndEvidence evidence) {
  BookedAttempt* attempt = book_.under_way(id);
  if (attempt == nullptr) return;
  evidence.stop_reason = attempt->evidence.stop_reason;
  attempt->evidence = std::move(evidence);
  attempt->stage = Stage::kEnded;
  attempt->facts.end = parts_.clock.realtime();
  conclude(*attempt);
}

void Batch::on(const AttemptExited& exited) {
  BookedAttempt* attempt = book_.under_way(exited.attempt);
  if (attempt == nullptr) return;
  Attempt& facts = attempt->facts;
  const Sightings& seen = attempt->seen;
  attempt->stage = Stage::kEnded;
  attempt->end = exited.at;
  statistics_.attempt_left(facts, exited.at);
  facts.end = parts_.clock.realtime();
  facts.exit_code = exited.status.as_code();
  facts.cpu_time = exited.cpu_time;
  if (exited.peak_host_bytes)
    facts.peak_host_bytes = std::max(*exited.peak_host_bytes, facts.peak_host_bytes.value_or(0));
  if (seen.gpu_seconds_estimate) facts.gpu_time = static_cast<Nanos>(*seen.gpu_seconds_estimate * 1e9);
  facts.seen_gpu_uuids.assign(seen.gpus.begin(), seen.gpus.end());
  facts.proof = watch_.proof_of(*attempt, exited.at);
  if (!attempt->gpus.empty() && facts.pid != 0) watch_.ended_on_gpu(facts.pid, exited.at);
  complete_evidence(*attempt, exited);
  starts_.ended();
  if (options_.on_exit) options_.on_exit(spec(facts.task), facts);
  if (has_to_read(*attempt))
    parts_.executor.read_output(facts.id, reading_of(*attempt));
  else
    settle_end(*attempt);
}

bool Batch::has_to_read(const BookedAttempt& attempt) const {
  const TaskSpec& task = spec(attempt.facts.task);
  return !task.resolved.empty() || (!task.outputs.empty() && attempt.facts.exit_code == 0) ||
         parts_.executor.has_printed(attempt.facts);
}

// Everything that is read of an attempt that has ended.
ReadOutput Batch::reading_of(const BookedAttempt& attempt) const {
  const EndEvidence& evidence = attempt.evidence;
  const bool succeeded = evidence.status.as_code() == 0;
  const bool why = !succeeded && !evidence.stop_reason && !evidence.stopped_as_misplaced;
  Attempt copy = attempt.facts;
  copy.log_path = parts_.executor.readable_log(attempt.facts);
  return [task = spec(attempt.facts.task), attempt = std::move(copy), why, succeeded, inspect = options_.inspect_log,
          count = options_.count_steps, missing = options_.missing_outputs]() mutable {
    OutputFacts facts{.ended = true};
    if (why) facts.tail = read_regular_tail(attempt.log_path, kTail);
    if (count) facts.steps = count(attempt);
    if (inspect) inspect(task, attempt);
    if (missing && succeeded) facts.missing_outputs = missing(task);
    facts.metrics = std::move(attempt.metrics);
    facts.parameters_resolved = std::move(attempt.parameters_resolved);
    return facts;
  };
}

// For the next look: this one does not wait for a file.
void Batch::read_steps(BookedAttempt& attempt) {
  if (std::exchange(attempt.seen.reading_steps, true)) return;
  Attempt copy = attempt.facts;
  copy.log_path = parts_.executor.readable_log(attempt.facts);
  parts_.executor.read_output(attempt.facts.id, [copy = std::move(copy), count = options_.count_steps] {
    return OutputFacts{.steps = count(copy)};
  });
}

void Batch::on(const OutputRead& read) {
  BookedAttempt* attempt = book_.find(read.attempt);
  if (attempt == nullptr) return;
  if (read.given_up) messages_.problem(words::output_not_read(spec(attempt->facts.task).name));
  if (attempt->stage != Stage::kEnded) {  // once given up, its steps are not asked for again
    attempt->seen.steps = read.facts.steps;
    attempt->seen.reading_steps = read.given_up;
    return;
  }
  if (attempt->output_read || (!read.facts.ended && !read.given_up)) return;  // its steps when it still ran
  Attempt& facts = attempt->facts;
  facts.steps = read.facts.steps;
  facts.metrics = read.facts.metrics;
  facts.parameters_resolved = read.facts.parameters_resolved;
  attempt->evidence.output_tail = read.facts.tail;
  if (!read.facts.missing_outputs.empty()) attempt->evidence.missing_output = read.facts.missing_outputs.front();
  settle_end(*attempt);
}

// All that will ever be known of it is.
void Batch::settle_end(BookedAttempt& booked) {
  BookedAttempt* const attempt = &booked;
  attempt->output_read = true;
  const Attempt& facts = booked.facts;
  const Verdict verdict = verdict_of(attempt->evidence);
  if (verdict.for_want_of_disk)
    messages_.problem(fmt::format("{}: {}; it runs again once there is room", spec(facts.task).name, verdict.reason));
  // A task that fails on a GPU may have failed because of it: whether the driver has lost it shows at the next look.
  // Until then its place stays taken, or a dead GPU would eat the queue.
  if (verdict.outcome == AttemptOutcome::kFailed && !attempt->gpus.empty() && watch_.looks_at_gpus())
    unsettled_.push_back({.attempt = facts.id, .ended = attempt->end});
  else
    conclude(*attempt);
}

void Batch::complete_evidence(BookedAttempt& attempt, const AttemptExited& exited) const {
  EndEvidence& evidence = attempt.evidence;
  evidence.status = exited.status;
  evidence.oom_kills = exited.oom_kills;
  if (exited.oom_killed_at) evidence.oom_kill_meanwhile = *exited.oom_killed_at >= attempt.start;
  evidence.oom_kills_of_machine = exited.oom_kills_of_machine;
  if (exited.status.as_code() == 0 || evidence.stop_reason || evidence.stopped_as_misplaced) return;
  const Room room = parts_.executor.room();
  evidence.disk_full = room == Room::kTooFewBytes || room == Room::kTooFewFiles;
  if (attempt.gpus.empty()) return;
  const BatchGpu& first = gpu(attempt.gpus.front());
  if (const GpuSnapshot* now = watch_.gpu(first.uuid)) evidence.gpu_used_bytes = now->used_bytes;
  if (first.memory_bytes > 0) evidence.gpu_memory_bytes = first.memory_bytes;
}

// Tells the planner how it ended; its last line in the journal follows from the planner's answer.
void Batch::conclude(BookedAttempt& attempt) {
  Attempt& facts = attempt.facts;
  attempt.evidence.gpu_lost = std::any_of(attempt.gpus.begin(), attempt.gpus.end(),
                                          [&](scheduler::GpuIndex index) { return !planner_.gpu(index).usable; });
  Verdict verdict = verdict_of(attempt.evidence);
  facts.reason = std::move(verdict.reason);
  scheduler::AttemptEnded event{.attempt = facts.id,
                                .outcome = verdict.outcome,
                                .peak_gpu_bytes = facts.peak_gpu_bytes,
                                .peak_host_bytes = facts.peak_host_bytes,
                                .gpu_time = facts.gpu_time,
                                .cpu_time = facts.cpu_time,
                                .reason = facts.reason};
  if (attempt.seen.first_kernel) event.startup = *attempt.seen.first_kernel - attempt.start;
  if (options_.took_alone && !attempt.gpus.empty())
    event.took_alone = options_.took_alone(spec(facts.task), gpu(attempt.gpus.front()).model);
  feed(event);
}

void Batch::conclude_unsettled(Nanos ended_before) {
  for (const Unsettled& one : std::exchange(unsettled_, {}))
    if (one.ended >= ended_before)
      unsettled_.push_back(one);
    else if (BookedAttempt* attempt = book_.find(one.attempt))
      conclude(*attempt);
}

void Batch::act(const scheduler::StopAttempt& stop) {
  BookedAttempt* attempt = book_.under_way(stop.attempt);
  if (attempt == nullptr) return;
  attempt->evidence.stop_reason = stop.reason;
  if (attempt->stage != Stage::kPrepared) parts_.executor.stop(stop.attempt, StopHow::kGently);
}

void Batch::act(const scheduler::CloseAttempt& closed) {
  const auto attempt = book_.close(closed.attempt, closed.outcome);
  if (!attempt) return;
  const Attempt& facts = attempt->facts;
  const TaskSpec& task = spec(facts.task);
  statistics_.attempt_closed(task, *attempt);
  if (attempt->end != 0 || closed.outcome == AttemptOutcome::kNotStarted)
    parts_.recorder.add_event(end_event(task, facts, attempt->end != 0 ? attempt->end : parts_.clock.boottime()));
  if (closed.outcome != AttemptOutcome::kSucceeded) return;
  const double took = seconds(attempt->end - attempt->start);
  const bool slowed = !closed.alone.whole && closed.alone.done_seconds > 0;
  const double stretch = slowed ? std::max(1.0, took / closed.alone.done_seconds) : 1;
  eta_.ended(facts.task, static_cast<Nanos>(took / stretch * 1e9));
  if (!options_.learn) return;
  const std::string model = attempt->gpus.empty() ? "" : gpu(attempt->gpus.front()).model;
  options_.learn(task, facts, model, stretch, closed);
}

void Batch::act(const scheduler::RequeueTask& requeue) {
  statistics_.runs_again(requeue.after);
  messages_.runs_again(spec(requeue.task).name, {.after = requeue.after,
                                                 .wait = requeue.at - parts_.clock.boottime(),
                                                 .reserved_gpu_bytes = requeue.reserved_gpu_bytes,
                                                 .alone = requeue.alone});
}

void Batch::act(const scheduler::EndTask& end) {
  const TaskSpec& task = spec(end.task);
  const bool told = end.task < options_.fingerprints.size();
  book_.end_task(end.task, end.state, end.reason, told ? options_.fingerprints[end.task] : "");
  messages_.ended(task, end.state, end.reason);
  if (options_.on_task_end) options_.on_task_end(task, end.state);
  if (end.state != TaskState::kSucceeded) eta_.ended(end.task, std::nullopt);
  if (end.state != TaskState::kFailed) return;
  statistics_.task_failed(task.name);
  const std::size_t failed = statistics_.failed().size();
  if (options_.max_failures == 0 || failed != static_cast<std::size_t>(options_.max_failures) || ending_.draining)
    return;
  messages_.problem(words::too_many_failures(failed));
  drain();
}

void Batch::act(const scheduler::QuarantineGpu& quarantined) {
  const BatchGpu& bad = gpu(quarantined.gpu);
  messages_.problem(fmt::format("GPU {} gets no more tasks: {}", bad.index, quarantined.reason));
  statistics_.quarantined(bad.uuid);
}

}  // namespace headroom::batch
