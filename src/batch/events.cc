// SPDX-License-Identifier: Apache-2.0
#include "batch/events.h"

#include <fmt/format.h>

#include "base/strings.h"

namespace headroom::batch {

namespace {

Attrs attrs_of(const TaskSpec& task, const Attempt& attempt) {
  Attrs attrs{{"task", task.name},
              {"group", task.group},
              {"attempt", fmt::format("{}", attempt.id)},
              {"number", fmt::format("{}", attempt.number)},
              {"pid", fmt::format("{}", attempt.pid)},
              {"gpus", join(attempt.gpu_uuids, ",")}};
  if (attempt.gpu_uuids.empty()) attrs["slot"] = fmt::format("{}", attempt.slot);
  return attrs;
}

template <class T>
void put(Attrs& attrs, const char* name, const std::optional<T>& value) {
  if (value) attrs[name] = fmt::format("{}", *value);
}

}  // namespace

Event start_event(const TaskSpec& task, const Attempt& attempt, Nanos at) {
  return {.at = at, .kind = "attempt_start", .attrs = attrs_of(task, attempt)};
}

Event end_event(const TaskSpec& task, const Attempt& attempt, Nanos at) {
  Event event{.at = at, .kind = "attempt_end", .attrs = attrs_of(task, attempt)};
  if (attempt.outcome) event.attrs["outcome"] = info(*attempt.outcome).name;
  event.attrs["proof"] = name(attempt.proof);
  put(event.attrs, "exit_code", attempt.exit_code);
  put(event.attrs, "gpu_time_ns", attempt.gpu_time);
  put(event.attrs, "cpu_time_ns", attempt.cpu_time);
  put(event.attrs, "peak_gpu_bytes", attempt.peak_gpu_bytes);
  put(event.attrs, "steps", attempt.steps);
  return event;
}

Event queue_event(std::int64_t waiting, Nanos at) {
  return {.at = at, .kind = "queue", .attrs = {{"waiting", fmt::format("{}", waiting)}}};
}

}  // namespace headroom::batch
