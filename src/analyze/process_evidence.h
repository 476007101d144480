// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "analyze/evidence.h"

namespace headroom {

// Tier P: what /proc counted of the process that owns the context, and of its helpers. It cannot tell one part of a
// start-up from another, so it speaks between kernels only; after the last one, of a model's state that is written.
class ProcessCounters final : public Evidence {
 public:
  explicit ProcessCounters(const Thresholds& limits) : limits_(limits) {}
  void claim(const IdleStretch& stretch, std::vector<HostShare>& parts) const override;
  [[nodiscard]] std::optional<HostClaim> claim_whole(const IdleStretch& stretch, bool with_helpers = true,
                                                     bool may_write = true) const;
  // Whether rule 1 (docs/ledger.md) holds for this one of the owner's activities.
  [[nodiscard]] bool writes(const std::vector<Activity>& owner, const Activity& activity) const;
  void cut(const Use& use, std::vector<Nanos>& cuts) const override;

 private:
  Thresholds limits_;
};

// Tier P, and asked first: time in which the process was stopped (Ctrl-Z, SIGSTOP, a scheduler that suspends jobs). It
// was at nothing then, whatever its stacks show. A look that found it stopped speaks for the time around it in which no
// kernel ran.
class StoppedTime final : public Evidence {
 public:
  [[nodiscard]] static bool is_in(const JobView& job);  // else there is nothing to ask it
  void claim(const IdleStretch& stretch, std::vector<HostShare>& parts) const override;
  void cut(const Use& use, std::vector<Nanos>& cuts) const override;

 private:
  static constexpr char kStoppedState = 'T';  // of /proc/PID/stat
};

// The activity whose interval holds `at`, or nullptr.
[[nodiscard]] const Activity* activity_at(const std::vector<Activity>& list, Nanos at);

// A main thread that looks again and again whether its kernels are done uses a core while they run, and none while it
// waits for something else: in each interval it ran for as long as they did, and longer where they ran longer.
[[nodiscard]] bool spins(const Use& use, const IdleTime& device, const Thresholds& limits);

}  // namespace headroom
