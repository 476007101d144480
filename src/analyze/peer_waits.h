// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/job.h"
#include "analyze/stack_evidence.h"
#include "model/thresholds.h"

// Processes of a job that wait for one another: ranks of a distributed training, say. Who waits has nothing on its
// stack of what it waits for; the stacks of the others at the same instants have.
namespace headroom {

struct PeerWait {
  SourceId process = kNoSource;  // which holds a device, and waits
  std::uint32_t kind = 0;        // of its stacks: index into StackView::kinds
  std::string where;             // that kind's
  // Its stacks say that it waits for other processes; else only what another one was at in the same instants tells it.
  bool told = false;
  // The process of the job with a device of its own that was most often at work at these looks, and the share of them;
  // kNoSource where none ever was, or nobody looked.
  SourceId peer = kNoSource;
  std::int64_t peer_pid = 0;
  std::optional<std::int64_t> peer_rank;
  double at_work = 0, looks = 0;        // the latter: how many these are
  std::string peer_at;                  // what that one was at most often, by its stacks
  bool peer_waits_for_kernels = false;  // which was waiting for its kernels

  bool operator==(const PeerWait&) const = default;
};

// Each kind of stack at which a process waited, or may have waited, for another one. Nothing for a batch, whose tasks
// are jobs of their own.
[[nodiscard]] std::vector<PeerWait> peer_waits(const StackView& stacks, const JobView& job, const Thresholds& limits);

// Sets StackView::for_peers.
void for_peers(const std::vector<PeerWait>& waits, StackView& stacks);

}  // namespace headroom
