// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "exposition/counted.h"
#include "model/batch.h"
#include "model/explanation.h"

namespace headroom::exposition {

// What is told of a GPU at one instant.
struct Gpu {
  Device device;
  std::optional<std::array<Nanos, kAccounts.size()>> accounts;  // where its time went; absent: not in the ledger
  std::vector<std::pair<Metric, std::int64_t>> readings;        // stored values, as they are now
  std::optional<std::uint64_t> last_xid;                        // the last error that the driver reported
  std::int64_t tasks = 0;                                       // of a batch, that run on it
  Nanos useful = 0, discarded = 0;                              // kernels of a batch's tasks that have ended
};

struct FindingCost {
  std::string cause;  // of a set: its candidates, with commas between
  Confidence confidence = Confidence::kMedium;
  bool part = false;        // of another finding, which claims the same time and more
  std::vector<Nanos> cost;  // by position in Snapshot::gpus; empty: it costs no device time
};

// Everything that is exposed, whether it comes from a file or from a recording that goes on.
struct Snapshot {
  std::string recording, origin, writer, host;
  Nanos elapsed = 0;       // that is counted: what every GPU's accounts sum to
  Nanos end_realtime = 0;  // Unix time of the last instant that is spoken about
  std::vector<Gpu> gpus;   // in order of index
  std::vector<FindingCost> findings;
  std::vector<std::pair<TaskState, std::int64_t>> tasks;  // of a batch; empty: it is none
  std::optional<std::int64_t> tasks_waiting;              // of a batch: they want a GPU and none is free
  std::optional<std::int64_t> recorder_cpu_ns, recorder_rss_bytes;
  std::vector<Loss> losses;
};

// `explanation` is that of the whole recording, `counted` what has been counted of it by now. Tasks are those that were
// started, by their last attempt.
[[nodiscard]] Snapshot snapshot_of(const Recording& recording, const Explanation& explanation, const Counted& counted);
// The same where nothing was told before.
[[nodiscard]] Snapshot snapshot_of(const Recording& recording, const Explanation& explanation);

}  // namespace headroom::exposition
