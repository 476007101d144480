// SPDX-License-Identifier: Apache-2.0
#include "batch/events.h"

#include "model/events.h"

namespace headroom::batch {

namespace {

events::AttemptStart started(const TaskSpec& task, const Attempt& attempt) {
  events::AttemptStart start{.task = task.name,
                             .group = task.group,
                             .attempt = attempt.id,
                             .number = attempt.number,
                             .pid = attempt.pid,
                             .gpus = attempt.gpu_uuids,
                             .slot = std::nullopt};
  if (attempt.gpu_uuids.empty()) start.slot = attempt.slot;
  return start;
}

}  // namespace

Event start_event(const TaskSpec& task, const Attempt& attempt, Nanos at) {
  return to_event(started(task, attempt), at);
}

Event end_event(const TaskSpec& task, const Attempt& attempt, Nanos at) {
  const auto reason = attempt.reason.empty() ? std::nullopt : std::optional(attempt.reason);
  return to_event(events::AttemptEnd{.start = started(task, attempt),
                                     .outcome = attempt.outcome,
                                     .proof = attempt.proof,
                                     .exit_code = attempt.exit_code,
                                     .gpu_time = attempt.gpu_time,
                                     .cpu_time = attempt.cpu_time,
                                     .peak_gpu_bytes = attempt.peak_gpu_bytes,
                                     .steps = attempt.steps,
                                     .reason = reason},
                  at);
}

Event queue_event(std::int64_t waiting, Nanos at) { return to_event(events::QueueLength{waiting}, at); }

}  // namespace headroom::batch
