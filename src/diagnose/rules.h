// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "analyze/job.h"
#include "analyze/ledger.h"
#include "diagnose/explain.h"
#include "model/explanation.h"

namespace headroom::diagnose {

// All that a rule may look at. The explanation so far holds ledger, statistics, phases and losses.
struct Case {
  const Recording& recording;
  const JobView& job;
  const std::vector<DeviceTime>& times;
  const Explanation& so_far;
  const ExplainOptions& options;

  [[nodiscard]] const Ledger& ledger() const { return so_far.ledger; }
  [[nodiscard]] double share(Nanos ns) const {
    return ledger().budget() > 0 ? static_cast<double>(ns) / static_cast<double>(ledger().budget()) : 0;
  }
  [[nodiscard]] const MetricStats* stats(std::size_t device, Metric metric) const;
  [[nodiscard]] std::string device_name(std::size_t device) const;  // "GPU 0"
  [[nodiscard]] std::string when(Nanos at) const;                   // clock time, or time since the start
};

// A part of the budget worth a finding of its own.
inline constexpr double kMaterial = 0.05;

using Rule = std::vector<Finding> (*)(const Case&);

// rules_idle.cc
[[nodiscard]] std::vector<Finding> idle_inseparable(const Case&);  // tier N alone: four causes look the same
[[nodiscard]] std::vector<Finding> idle_phases(const Case&);       // idle time that recurs in phases
[[nodiscard]] std::vector<Finding> idle_input(const Case&);
[[nodiscard]] std::vector<Finding> idle_host_code(const Case&);
[[nodiscard]] std::vector<Finding> idle_unknown(const Case&);  // tier P, and still nothing to see
[[nodiscard]] std::vector<Finding> idle_checkpoint(const Case&);
[[nodiscard]] std::vector<Finding> startup(const Case&);
[[nodiscard]] std::vector<Finding> unreleased(const Case&);
// rules_placement.cc
[[nodiscard]] std::vector<Finding> never_uses_gpu(const Case&);
[[nodiscard]] std::vector<Finding> idle_peers(const Case&);
[[nodiscard]] std::vector<Finding> pinning(const Case&);
[[nodiscard]] std::vector<Finding> foreign_tenant(const Case&);
// rules_device.cc
[[nodiscard]] std::vector<Finding> sensor_outlier(const Case&);
[[nodiscard]] std::vector<Finding> throttling(const Case&);
[[nodiscard]] std::vector<Finding> busy_but_inefficient(const Case&);
// rules_recording.cc
[[nodiscard]] std::vector<Finding> mostly_something_else(const Case&);
[[nodiscard]] std::vector<Finding> losses(const Case&);

// rules_batch.cc, rules_packing.cc: of a batch only
[[nodiscard]] std::vector<Finding> tail_imbalance(const Case&);
[[nodiscard]] std::vector<Finding> tasks_waited(const Case&);
[[nodiscard]] std::vector<Finding> discarded_work(const Case&);
[[nodiscard]] std::vector<Finding> trial_churn(const Case&);  // speaks instead of `startup` where there are many starts
[[nodiscard]] std::vector<Finding> under_packing(const Case&);

// Idle time of a device in phases that pause its work: all but its busiest phase; 0 where it has no phases.
[[nodiscard]] Nanos idle_in_pauses(const Case& c, std::size_t device);

// The speed-up if `removed` of the budget's time vanished and nothing else changed, as "1.32x".
[[nodiscard]] std::string removal_bound(const Case& c, Nanos removed);

}  // namespace headroom::diagnose
