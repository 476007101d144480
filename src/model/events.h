// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/batch.h"
#include "model/recording.h"

namespace headroom {

// Every kind of event that this program writes, in one table; docs/losses.md is made from it by tools/losses_doc.py.
// A struct below holds what is told with each.
enum class EventKind : std::uint8_t {
  kJobStart,
  kJobEnd,
  kDeviceLost,
  kDeviceBack,
  kXid,
  kClockStep,
  kProcessStart,
  kProcessEnd,
  kGap,
  kDiskLow,
  kNote,
  kRepeatedHeader,
  kQueue,
  kAttemptStart,
  kAttemptEnd,
  kMetricValue,
  kParameter,
  kProgress,
};

struct EventKindInfo {
  EventKind id;
  std::string_view name;  // stored in recordings
  bool durable;  // worth a flush of its own. Not attempts: they come by the thousand, in a journal of their own
  std::string_view help;  // for people
};

// clang-format off
inline constexpr std::array kEventKinds{
    EventKindInfo{EventKind::kJobStart, "job_start", true, "the command was started"},
    EventKindInfo{EventKind::kJobEnd, "job_end", true, "the command ended"},
    EventKindInfo{EventKind::kDeviceLost, "device_lost", true, "a GPU fell off the bus"},
    EventKindInfo{EventKind::kDeviceBack, "device_back", true, "a GPU that was lost answers again"},
    EventKindInfo{EventKind::kXid, "xid", false, "the driver reported an error of a GPU"},
    EventKindInfo{EventKind::kClockStep, "clock_step", false, "the wall clock was set"},
    EventKindInfo{EventKind::kProcessStart, "process_start", false, "a process of the job appeared"},
    EventKindInfo{EventKind::kProcessEnd, "process_end", false, "a process of the job ended"},
    EventKindInfo{EventKind::kGap, "gap", false, "nobody looked for three intervals or more"},
    EventKindInfo{EventKind::kDiskLow, "disk_low", true, "recording stops: the disk is almost full"},
    EventKindInfo{EventKind::kNote, "note", false, "something to know, in words"},
    EventKindInfo{EventKind::kRepeatedHeader, "repeated_header", false, "the header of a log stands there again: another run begins"},
    EventKindInfo{EventKind::kQueue, "queue", false, "tasks of a batch that are ready and want a GPU: from now on so many"},
    EventKindInfo{EventKind::kAttemptStart, "attempt_start", false, "a batch started a task"},
    EventKindInfo{EventKind::kAttemptEnd, "attempt_end", false, "a task that a batch had started ended"},
    EventKindInfo{EventKind::kMetricValue, "metric_value", false, "the job said what one of its metrics is: a loss, a score"},
    EventKindInfo{EventKind::kParameter, "parameter", false, "the job said what one of its parameters is"},
    EventKindInfo{EventKind::kProgress, "progress", false, "the job said how far it is: in epoch 3 of 5, at step 120 of 267"},
};
// clang-format on

[[nodiscard]] constexpr const EventKindInfo& info(EventKind kind) {
  return kEventKinds[static_cast<std::size_t>(kind)];
}
// Nothing for a kind of a newer program.
[[nodiscard]] std::optional<EventKind> event_kind_of(std::string_view name);

// What is told with an event. Each attribute is named once, in `visit`, which writes and reads it. Plain members are
// always written; reading, an attribute that is missing or malformed leaves its member as it is.
namespace events {

struct JobStart {
  static constexpr EventKind kKind = EventKind::kJobStart;
  std::string argv;  // as a shell takes it
  std::int64_t pid = 0;
  static void visit(auto& self, auto&& attribute) {
    attribute("argv", self.argv);
    attribute("pid", self.pid);
  }
};

struct JobEnd {  // one of the two
  static constexpr EventKind kKind = EventKind::kJobEnd;
  std::optional<std::int64_t> exit_code, signal;
  static void visit(auto& self, auto&& attribute) {
    attribute("exit_code", self.exit_code);
    attribute("signal", self.signal);
  }
};

struct DeviceLost {
  static constexpr EventKind kKind = EventKind::kDeviceLost;
  std::optional<std::int64_t> index;
  std::optional<std::string> text;   // the driver's word, or the message of a log
  std::optional<std::int64_t> line;  // of the log
  static void visit(auto& self, auto&& attribute) {
    attribute("index", self.index);
    attribute("text", self.text);
    attribute("line", self.line);
  }
};

struct DeviceBack {
  static constexpr EventKind kKind = EventKind::kDeviceBack;
  std::int64_t index = 0;
  static void visit(auto& self, auto&& attribute) { attribute("index", self.index); }
};

struct Xid {
  static constexpr EventKind kKind = EventKind::kXid;
  std::uint64_t code = 0;
  static void visit(auto& self, auto&& attribute) { attribute("code", self.code); }
};

struct ClockStep {
  static constexpr EventKind kKind = EventKind::kClockStep;
  Nanos delta = 0;
  std::optional<std::int64_t> line;  // of a log
  static void visit(auto& self, auto&& attribute) {
    attribute("delta_ns", self.delta);
    attribute("line", self.line);
  }
};

struct ProcessStart {
  static constexpr EventKind kKind = EventKind::kProcessStart;
  std::int64_t pid = 0;
  std::string comm;
  static void visit(auto& self, auto&& attribute) {
    attribute("pid", self.pid);
    attribute("comm", self.comm);
  }
};

struct ProcessEnd {
  static constexpr EventKind kKind = EventKind::kProcessEnd;
  std::int64_t pid = 0;
  std::optional<std::int64_t> exit_code;
  static void visit(auto& self, auto&& attribute) {
    attribute("pid", self.pid);
    attribute("exit_code", self.exit_code);
  }
};

struct Gap {
  static constexpr EventKind kKind = EventKind::kGap;
  std::string reason;                // "suspended", "late", or words
  std::optional<std::int64_t> line;  // of a log
  static void visit(auto& self, auto&& attribute) {
    attribute("reason", self.reason);
    attribute("line", self.line);
  }
};

struct DiskLow {
  static constexpr EventKind kKind = EventKind::kDiskLow;
  std::int64_t free_bytes = 0;
  static void visit(auto& self, auto&& attribute) { attribute("free_bytes", self.free_bytes); }
};

struct Note {
  static constexpr EventKind kKind = EventKind::kNote;
  std::string text;
  std::optional<std::int64_t> line;  // of a log
  static void visit(auto& self, auto&& attribute) {
    attribute("text", self.text);
    attribute("line", self.line);
  }
};

struct RepeatedHeader {
  static constexpr EventKind kKind = EventKind::kRepeatedHeader;
  std::int64_t line = 0;
  static void visit(auto& self, auto&& attribute) { attribute("line", self.line); }
};

struct QueueLength {
  static constexpr EventKind kKind = EventKind::kQueue;
  std::int64_t waiting = 0;
  static void visit(auto& self, auto&& attribute) { attribute("waiting", self.waiting); }
};

struct AttemptStart {
  static constexpr EventKind kKind = EventKind::kAttemptStart;
  std::string task, group;
  AttemptId attempt = 0;
  std::int64_t number = 1;
  std::int64_t pid = 0;
  std::vector<std::string> gpus;  // UUIDs
  std::optional<std::int64_t> slot;
  static void visit(auto& self, auto&& attribute) {
    attribute("task", self.task);
    attribute("group", self.group);
    attribute("attempt", self.attempt);
    attribute("number", self.number);
    attribute("pid", self.pid);
    attribute("gpus", self.gpus);
    attribute("slot", self.slot);
  }
};

struct AttemptEnd {
  static constexpr EventKind kKind = EventKind::kAttemptEnd;
  AttemptStart start;
  std::optional<AttemptOutcome> outcome;
  std::optional<PlacementProof> proof;
  std::optional<std::int64_t> exit_code;
  std::optional<Nanos> gpu_time, cpu_time;
  std::optional<std::int64_t> peak_gpu_bytes;
  std::optional<double> steps;
  std::optional<std::string> reason;  // why it ended so, in words; of one that did not succeed
  static void visit(auto& self, auto&& attribute) {
    AttemptStart::visit(self.start, attribute);
    attribute("outcome", self.outcome);
    attribute("proof", self.proof);
    attribute("exit_code", self.exit_code);
    attribute("gpu_time_ns", self.gpu_time);
    attribute("cpu_time_ns", self.cpu_time);
    attribute("peak_gpu_bytes", self.peak_gpu_bytes);
    attribute("steps", self.steps);
    attribute("reason", self.reason);
  }
};

struct MetricValue {
  static constexpr EventKind kKind = EventKind::kMetricValue;
  std::string name;
  double value = 0;
  static void visit(auto& self, auto&& attribute) {
    attribute("name", self.name);
    attribute("value", self.value);
  }
};

struct Parameter {
  static constexpr EventKind kKind = EventKind::kParameter;
  std::string name, value;
  static void visit(auto& self, auto&& attribute) {
    attribute("name", self.name);
    attribute("value", self.value);
  }
};

struct Progress {
  static constexpr EventKind kKind = EventKind::kProgress;
  std::string unit;                 // "fold", "epoch", "step"
  std::int64_t number = 0, of = 0;  // of 0: the job did not say of how many
  // "begun": number `number` began; "within": it had begun some time before; "done": it ended; "counted": so many are
  // done
  std::string state;
  std::optional<std::int64_t> steps;     // of a step: how many this source had counted by then
  std::optional<std::int64_t> in_epoch;  // of a step: 1 where they are known to be those of one epoch
  static void visit(auto& self, auto&& attribute) {
    attribute("unit", self.unit);
    attribute("number", self.number);
    attribute("of", self.of);
    attribute("state", self.state);
    attribute("steps", self.steps);
    attribute("in_epoch", self.in_epoch);
  }
};

}  // namespace events

namespace event_text {
[[nodiscard]] std::string write(const std::string& value);
[[nodiscard]] std::string write(std::int64_t value);
[[nodiscard]] std::string write(std::uint64_t value);
[[nodiscard]] std::string write(double value);
[[nodiscard]] std::string write(const std::vector<std::string>& value);
[[nodiscard]] std::string write(AttemptOutcome value);
[[nodiscard]] std::string write(PlacementProof value);
[[nodiscard]] bool read(const std::string& text, std::string& value);
[[nodiscard]] bool read(const std::string& text, std::int64_t& value);
[[nodiscard]] bool read(const std::string& text, std::uint64_t& value);
[[nodiscard]] bool read(const std::string& text, double& value);
[[nodiscard]] bool read(const std::string& text, std::vector<std::string>& value);
[[nodiscard]] bool read(const std::string& text, AttemptOutcome& value);
[[nodiscard]] bool read(const std::string& text, PlacementProof& value);
template <class T>
void put(Attrs& attrs, const char* name, const T& value) {
  attrs[name] = write(value);
}
template <class T>
void put(Attrs& attrs, const char* name, const std::optional<T>& value) {
  if (value) attrs[name] = write(*value);
}
template <class T>
void take(const std::string& text, T& value) {
  if (T fresh{}; read(text, fresh)) value = std::move(fresh);
}
template <class T>
void take(const std::string& text, std::optional<T>& value) {
  if (T fresh{}; read(text, fresh)) value = std::move(fresh);
}
}  // namespace event_text

template <class T>
[[nodiscard]] Event to_event(const T& told, Nanos at, SourceId source = kNoSource,
                             std::optional<Nanos> end = std::nullopt) {
  Event event{at, end, std::string(info(T::kKind).name), source, {}};
  T::visit(told, [&](const char* name, const auto& value) { event_text::put(event.attrs, name, value); });
  return event;
}

template <class T>
[[nodiscard]] bool is(const Event& event) {
  return event.kind == info(T::kKind).name;
}

// Nothing if the event is of another kind.
template <class T>
[[nodiscard]] std::optional<T> of_event(const Event& event) {
  if (!is<T>(event)) return std::nullopt;
  T told;
  T::visit(told, [&](const char* name, auto& value) {
    if (const auto found = event.attrs.find(name); found != event.attrs.end()) event_text::take(found->second, value);
  });
  return told;
}

}  // namespace headroom
