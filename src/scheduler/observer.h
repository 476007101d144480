// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <optional>

#include "scheduler/machine.h"

// What readings and ends of attempts teach: memory, utilisation, progress, other users, how tasks share a GPU.
namespace headroom::scheduler {

class Observer {
 public:
  Observer(const PlannerSetup& setup, Machine& machine, Learned& learned)
      : setup_(setup), machine_(machine), learned_(learned) {}

  // `queued`: tasks wait, so it matters what a GPU would take.
  void take(const Readings& readings, bool queued);
  void ended(const RunningAttempt& attempt, const AttemptEnded& event, AttemptOutcome outcome, const AloneTime& alone);

 private:
  using ById = std::map<AttemptId, const AttemptReading*>;
  void read_gpu(const GpuReading& reading);
  void read_attempt(const AttemptReading& reading);
  void observe_gpu(Gpu& gpu, const ById& readings, double host_busy_ratio, bool queued);
  void learn_speed(RunningAttempt& attempt, GroupStats& learned, const AttemptReading& reading, double dt,
                   std::optional<double> steps);
  void learn_memory(RunningAttempt& attempt, GroupStats& learned, const AttemptReading& reading) const;
  void learn_length(const RunningAttempt& attempt, GroupStats& learned, const AloneTime& alone,
                    std::optional<Nanos> took_alone) const;
  void learn_from_glimpse(const RunningAttempt& attempt, GroupStats& learned, const AttemptEnded& event) const;
  void learn_from_whole(const RunningAttempt& attempt, GroupStats& learned, const AttemptEnded& event) const;
  void note_progress(RunningAttempt& attempt, const AttemptReading& reading, bool moved) const;

  const PlannerSetup& setup_;
  Machine& machine_;
  Learned& learned_;
};

}  // namespace headroom::scheduler
