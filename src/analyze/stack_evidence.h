// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "analyze/evidence.h"
#include "analyze/process_evidence.h"
#include "stacks/families.h"

namespace headroom {

// What a process was at, look by look: of its threads the one that tells most.
struct StackLook {
  Nanos at = 0;
  std::uint32_t kind = 0;  // index into StackView::kinds
  ListId list = kNoList;
  // While the main thread is at something itself: another thread that is, too; before others one that has the
  // interpreter.
  std::optional<std::uint32_t> beside;
  bool beside_has_interpreter = false;
};

// The Python stacks of a recording (tier Y).
struct StackView {
  std::vector<stacks::StackKind> kinds;
  std::map<SourceId, std::vector<StackLook>> looks;  // by process, in order of time
  // Which processes waited for another one of the job at stacks of which kind: what their names leave open, set by
  // for_peers() of peer_waits.h.
  std::set<std::pair<SourceId, std::uint32_t>> for_peers;
};
[[nodiscard]] StackView stack_view(const Recording& recording, const stacks::Families& families);

// The first one later than `at`, or their end. Looks come at a steady pace, so that an instant says about where.
[[nodiscard]] std::vector<StackLook>::const_iterator first_after(const std::vector<StackLook>& looks, Nanos at);
// Those in (begin, end].
[[nodiscard]] std::span<const StackLook> looks_within(const std::vector<StackLook>& looks, Nanos begin, Nanos end);

// Of the time of each kind (by stacks::Busy) the share in which the device was idle, if those kinds in which no kernel
// can run were idle first: around a reading, a second to both sides. The few stacks of one reading would say by chance
// that there was less of a kind than idle time, and the rest would always go to the next.
[[nodiscard]] std::array<double, 4> idle_by_busy(const StackView& view, const std::vector<StackLook>& looks,
                                                 const IdleTime& device, const UtilSample& reading);

// Tier Y. Before the first kernel and after the last it names what the process was at. Between kernels it names the
// account, too, where its families tell, and leaves that to /proc where they do not. A reading in which the device was
// idle for a part of the time does not say which part: the stacks of that reading are taken for it in the order in
// which they tell that no kernel runs (stacks::Busy), and of equals the same share of each. That is an estimate.
class Stacks final : public Evidence {
 public:
  // `view` is looked into.
  Stacks(const StackView& view, const Thresholds& limits) : view_(view), counters_(limits) {}
  [[nodiscard]] std::vector<HostShare> claim(const IdleStretch& stretch) const override;
  void cut(const Use&, std::vector<Nanos>&) const override {}

 private:
  struct Share {
    std::uint32_t kind = 0;
    double weight = 0;
  };
  [[nodiscard]] HostClaim claim_of(std::uint32_t number, const IdleStretch& stretch, bool sure) const;
  [[nodiscard]] std::vector<Share> shares_of(std::span<const StackLook> looks,
                                             const std::array<double, 4>& idle_of) const;
  void add(const IdleStretch& stretch, const std::vector<Share>& shares, bool sure, std::vector<HostShare>& out) const;

  const StackView& view_;
  ProcessCounters counters_;
};

}  // namespace headroom
