// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/ledger.h"
#include "analyze/stack_evidence.h"
#include "model/explanation.h"

// Phases that have a name: by marks in the job's code, NVTX ranges, its output, or what its stacks say it was at; the
// first of these that a process has speaks for it. A name says when, never what the device waited for: that is for the
// evidence about the host (evidence.h). Only where that leaves it open does a phase that is called validation,
// checkpoint or loading tell the account.
namespace headroom {

// A stretch of a process's time in one phase.
struct NamedStretch {
  Nanos begin = 0, end = 0;
  std::int32_t name = -1;     // index into NamedPhases::names
  std::int64_t nth = 0;       // for the how many-th time the phase begins there, or goes on; 0: nobody counts
  Nanos lead = 0, trail = 0;  // of it: outside of the looks that tell it
  bool operator==(const NamedStretch&) const = default;
};

// The phases of one process. Time in no stretch has no name.
struct PhaseTrack {
  std::string via;                      // "marks", "nvtx", "output", "stacks", "table"
  std::vector<NamedStretch> stretches;  // in order of time, without overlap
};

// Of which phase a piece of a device's time was is known as finely as its utilisation is read. What is shorter than one
// and a half of its readings belongs to the phase around it in `tracks`, and is as it was said in `fine`.
struct NamedPhases {
  std::vector<std::string> names;        // "epoch/validate": the outermost first. Numbers that differ are "N"
  std::vector<PhaseTrack> tracks, fine;  // of the same processes
  std::map<std::int64_t, std::vector<std::size_t>> of_pid;  // tracks, by the pid of a slice, in order of time
  // Of those of which another one that held a device had ended when they began: until then the job's output told what
  // that one was at.
  std::map<std::int64_t, Nanos> after_another;

  struct Said {
    const NamedStretch* stretch = nullptr;  // none: no name
    std::string_view via;
    Nanos until = INT64_MAX;  // the answer is the same
  };
  [[nodiscard]] Said at(std::int64_t pid, Nanos when) const;
  // Of a device on which no kernel ran and nobody was seen, no phases are told.
  [[nodiscard]] bool tells_of(const DeviceTime& device) const;
};

// Those of the processes that hold a device: their own, else those of the nearest process above them.
[[nodiscard]] NamedPhases named_phases(const Recording& recording, const JobView& job, const StackView& stacks);

// What a phase of this name waits for, if nothing else says it: by the innermost of its names that says anything.
// Training within an evaluation is training.
[[nodiscard]] std::optional<Account> account_told_by(std::string_view name);

// Cuts the slices where the phase of their process changes, and marks each part (Slice::named: index into names).
void mark_phases(const NamedPhases& named, std::vector<DeviceTime>& devices);

// Describes the phases that the slices are marked with and adds them to `phases`; the slices' marks then are indexes
// into that. After them those that are too short to be found in slices: of these the share of kernels is not known, and
// their time is part of the others'. The slices are those of the window.
void describe_phases(const Recording& recording, const NamedPhases& named, std::vector<DeviceTime>& devices,
                     const Thresholds& limits, std::vector<Phase>& phases);

}  // namespace headroom
