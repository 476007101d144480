// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "analyze/evidence.h"
#include "analyze/process_evidence.h"
#include "analyze/stack_view.h"
#include "stacks/families.h"

namespace headroom {

// Of the time of each kind (by stacks::Busy) the share in which the device was idle, if those kinds in which no kernel
// can run were idle first: around a reading, a second to both sides. The few stacks of one reading would say by chance
// that there was less of a kind than idle time, and the rest would always go to the next.
[[nodiscard]] std::array<double, 4> idle_by_busy(const StackView& view, std::span<const ListRow> looks,
                                                 const IdleTime& device, const UtilSample& reading);

// Tier Y. Before the first kernel and after the last it names what the process was at. Between kernels it names the
// account, too, where its families tell, and leaves that to /proc where they do not. A reading in which the device was
// idle for a part of the time does not say which part: the stacks of that reading are taken for it in the order in
// which they tell that no kernel runs (stacks::Busy), and of equals the same share of each. That is an estimate.
class Stacks final : public Evidence {
 public:
  // `view` is looked into.
  Stacks(const StackView& view, const Thresholds& limits) : view_(view), counters_(limits) {}
  void claim(const IdleStretch& stretch, std::vector<HostShare>& parts) const override;
  // Begins anew, too: the next device may lie where the last one lay.
  void cut(const Use& use, std::vector<Nanos>& cuts) const override;

 private:
  struct Share {
    std::uint32_t kind = 0;
    double weight = 0;
  };
  // What a reading's looks say of the time in which it was idle: asked for by each of its stretches, one after another.
  struct Mixture {
    const IdleTime* device = nullptr;
    const UtilSample* reading = nullptr;
    SourceId process = kNoSource;
    Nanos begin = 0, end = 0;
    std::vector<Share> shares;
  };
  // Which stacks of a process can have been what wrote to storage, by kind; both are empty where nothing tells.
  struct Writers {
    SourceId process = kNoSource;
    std::vector<bool> cannot;
    std::vector<bool> go_with_it;  // seen while it writes and hardly ever else, and mostly without the interpreter
  };
  // Whether stacks show where a process waits: then another one that is no wait is none for its helpers.
  struct Waiter {
    SourceId process = kNoSource;
    bool named = false;
  };
  class Counted;  // what the counters of /proc say of a stretch
  [[nodiscard]] bool may_write(std::uint32_t kind, const IdleStretch& stretch, bool named) const;
  void find_writers(const IdleStretch& stretch) const;
  [[nodiscard]] bool may_wait_for_helpers(const stacks::StackKind& kind, SourceId process) const;
  [[nodiscard]] const std::vector<Share>& mixture_of(const IdleStretch& stretch, std::span<const ListRow> looks,
                                                     const UtilSample& reading) const;
  [[nodiscard]] HostClaim claim_of(std::uint32_t number, const IdleStretch& stretch, bool sure, bool may_write,
                                   Counted& counted) const;
  void find_shares(std::span<const ListRow> looks, const std::array<double, 4>& idle_of,
                   std::vector<Share>& shares) const;
  void add(const IdleStretch& stretch, const std::vector<Share>& shares, bool sure, std::vector<HostShare>& out) const;

  const StackView& view_;
  ProcessCounters counters_;
  mutable Mixture last_;
  mutable std::vector<std::uint32_t> place_of_kind_;  // among the shares at hand, where it is one of them
  mutable Writers writers_;
  mutable Waiter waiter_;
};

}  // namespace headroom
