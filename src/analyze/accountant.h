// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "analyze/evidence.h"
#include "analyze/ledger.h"
#include "analyze/stats.h"
#include "analyze/uses.h"
#include "analyze/utilisation.h"

namespace headroom {

// From the first to the last kernel of each process of the job, on each device.
using KernelTimes = std::map<SourceId, std::vector<std::pair<SourceId, Window>>>;

// What the time of all devices is accounted by.
struct AccountedJob {
  const Recording& recording;
  const JobView& job;
  const Thresholds& limits;
  std::span<const std::unique_ptr<Evidence>> evidence;
  Places& places;
};

// Accounts for the time of one device: docs/ledger.md has the rules. Used once, by device_times(): of all devices the
// kernels are found before the time of any is divided.
class DeviceAccountant {
 public:
  DeviceAccountant(const AccountedJob& all, SourceId gpu);
  void add_kernels(KernelTimes& of_processes) const;
  // A process that computes on one device neither starts nor ends on another.
  void divide(const KernelTimes& of_processes);
  [[nodiscard]] std::vector<Slice> slices();
  [[nodiscard]] bool used_by_job() const {
    return std::any_of(uses_.begin(), uses_.end(),
                       [](const Use& use) { return use.context.ours && use.claim != Claim::kNeverHeld; });
  }
  [[nodiscard]] bool spun_on() const {
    return std::any_of(uses_.begin(), uses_.end(), [](const Use& use) { return use.context.ours && use.spins; });
  }

 private:
  struct Share {
    const Use* use;  // nullptr: nobody was seen
    double weight;
  };
  void first_sample();
  void move_to(const UtilSample& sample);
  struct Piece {
    Nanos begin = 0, end = 0, busy = 0;  // its busy time is at its end
  };
  enum class Standing : std::uint8_t { kNobody, kThere, kComputing };
  void find_bounds(const UtilSample& sample);
  [[nodiscard]] Standing standing(Nanos begin, Nanos end, const UtilSample& sample) const;
  [[nodiscard]] bool is_stale(const UtilSample& sample) const;
  [[nodiscard]] const std::vector<Piece>& lay_out(const UtilSample& sample);  // until the next call
  void find_kernels();
  void leave_out_the_absent();
  void find_kernels(const Piece& piece);
  void find_cuts();
  [[nodiscard]] bool hung(const Use& use) const;
  [[nodiscard]] bool pauses(const Use& use) const;
  [[nodiscard]] Nanos longest_pause(const Use& use) const;
  [[nodiscard]] bool hardly_ran(const Use& use) const;
  [[nodiscard]] const std::vector<Share>& owners(Nanos begin, Nanos end, Nanos busy);  // until the next call
  void weigh_unmeasured(Nanos begin, Nanos end);
  void leave_to_the_old(Nanos begin, Nanos end, Nanos busy);
  void busy(Nanos begin, Nanos end, Nanos sample_begin);
  void copies(Nanos begin, Nanos end);
  void idle(Nanos begin, Nanos end);
  void idle_piece(Nanos begin, Nanos end);
  [[nodiscard]] Slice free_piece(Nanos begin, Nanos end) const;
  [[nodiscard]] Nanos waits_for_peers(const Use& use, Nanos begin, Nanos end) const;
  void held_piece(Nanos begin, Nanos end, const Use& use, UsePart part);
  [[nodiscard]] Slice kernels_piece(Nanos begin, Nanos end, const Use* owner) const;  // nullptr: nobody was seen
  [[nodiscard]] Slice attempt_piece(Nanos begin, Nanos end, const Use& attempt) const;
  void emit(Slice slice);

  const JobView& job_;
  const Thresholds& limits_;
  std::span<const std::unique_ptr<Evidence>> evidence_;
  Places& places_;
  IdleTime time_;
  std::vector<Use> uses_;  // in order of begin
  Unlisted unlisted_;
  std::vector<std::size_t> around_;  // positions in uses_ of those that touch the sample at hand, in order …
  std::size_t next_ = 0;             // … and of the first that begins after it: ten thousand tasks are not all asked
  std::optional<Nanos> left_at_;     // when the last of those ended that are before it
  std::vector<Nanos> cuts_;          // instants where the account of idle time may change, in order …
  std::size_t next_cut_ = 0;         // … and the first after what was accounted for
  std::vector<Slice> slices_;
  std::vector<Piece> pieces_;
  std::vector<Nanos> bounds_;
  std::vector<Share> shares_;  // kept from call to call: a day has a hundred thousand samples
  std::vector<Nanos> parts_;
  std::vector<HostShare> claims_;
  bool goes_on_ = false;  // somebody still writes the recording, or the job went on when its watch ended
  bool desktop_ = false;  // a desktop draws on it: kernels without an owner are its own, where the job has no context
  bool touched_ = false;
  bool starting_ = false;  // the job goes on and has held no context anywhere so far
  Tiers seen_by_ = "N";    // who told how much of the sample at hand was busy
};

}  // namespace headroom
