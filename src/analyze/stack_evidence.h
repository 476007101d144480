// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "analyze/evidence.h"
#include "analyze/process_evidence.h"
#include "stacks/families.h"

namespace headroom {

// What another thread was at while the main thread was at something itself: one that has the interpreter before others.
struct BesideMain {
  std::uint32_t kind = UINT32_MAX;  // index into StackView::kinds, or kNobody
  bool has_interpreter = false;
  static constexpr std::uint32_t kNobody = UINT32_MAX;
};

// What a process was at, look by look: of its threads the one that tells most. Rows of one thread are looked at where
// they lie: of a day they are many millions.
class ProcessLooks {
 public:
  explicit ProcessLooks(std::span<const ListRow> of_one_thread) : recorded_(of_one_thread) {}
  ProcessLooks(std::vector<ListRow> chosen, std::vector<BesideMain> beside)
      : chosen_(std::move(chosen)), beside_(std::move(beside)) {}
  // In order of time, one for each instant.
  [[nodiscard]] std::span<const ListRow> all() const {
    return chosen_.empty() ? recorded_ : std::span<const ListRow>(chosen_);
  }
  [[nodiscard]] bool of_one_thread() const { return chosen_.empty(); }  // it never had another one
  [[nodiscard]] bool has_beside() const { return !beside_.empty(); }
  [[nodiscard]] BesideMain beside(const ListRow& look) const {  // `look` is one of all()
    return beside_.empty() ? BesideMain{} : beside_[static_cast<std::size_t>(&look - chosen_.data())];
  }

 private:
  std::span<const ListRow> recorded_;
  std::vector<ListRow> chosen_;     // where there are several threads
  std::vector<BesideMain> beside_;  // by position in chosen_; empty: there never was anybody
};

// The Python stacks of a recording (tier Y), into which it looks.
struct StackView {
  std::vector<stacks::StackKind> kinds;
  // Of several threads at something while the main thread waits nothing tells for which: a look at that instant has a
  // list beyond those of the recording, which stands for these of the recording.
  std::vector<std::vector<ListId>> several;  // by list, less the recording's
  std::vector<std::uint32_t> kind_of_list;   // index into `kinds`, for lists that are in looks
  std::vector<stacks::Busy> busy_of_list;    // likewise of their kinds
  std::vector<std::int32_t> line_of_list;    // likewise, that ran of what they name; 0: not known
  std::vector<double> count;                 // of the looks at all processes, by kind
  // Of a function of the user's: the looks at it, but those of waits for kernels, by who of his had called it.
  std::map<std::string, std::map<std::string, double>> callers;
  std::map<SourceId, ProcessLooks> looks;  // by process
  // Which processes waited for another one of the job at stacks of which kind: what their names leave open, set by
  // for_peers() of peer_waits.h.
  std::set<std::pair<SourceId, std::uint32_t>> for_peers;

  [[nodiscard]] std::uint32_t number_of(const ListRow& look) const { return kind_of_list[look.list]; }
  [[nodiscard]] const stacks::StackKind& kind_of(const ListRow& look) const { return kinds[number_of(look)]; }
};
[[nodiscard]] StackView stack_view(const Recording& recording, const stacks::Families& families);

// How many are not later than `at`. Looks come at a steady pace, so that an instant says about where.
[[nodiscard]] std::size_t count_until(std::span<const ListRow> looks, Nanos at);
// Those in (begin, end].
[[nodiscard]] std::span<const ListRow> looks_within(std::span<const ListRow> looks, Nanos begin, Nanos end);

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
  class Counted;  // what the counters of /proc say of a stretch
  [[nodiscard]] bool may_write(std::uint32_t kind, const IdleStretch& stretch, bool named) const;
  void find_writers(const IdleStretch& stretch) const;
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
};

}  // namespace headroom
