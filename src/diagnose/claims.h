// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyze/analysis.h"
#include "model/finding.h"

namespace headroom::diagnose {

// Appends a piece; one that goes on where the last ended, with the same account, lengthens it.
void add_piece(Claims& claims, const ClaimedPiece& piece);

// The slices of one device that wanted(slice) takes, behind the others.
template <class Wanted>
void claim_on(const Analysis& a, std::size_t device, const Wanted& wanted, Claims& claims) {
  for (const Slice& slice : a.devices[device].slices)
    if (wanted(slice)) add_piece(claims, {device, slice.begin, slice.end, slice.account, slice.where});
}

// The slices of the ledger that wanted(device, slice) takes.
template <class Wanted>
[[nodiscard]] Claims claim(const Analysis& a, const Wanted& wanted) {
  Claims claims;
  std::size_t most = 0;  // growing would touch more memory than room that stays empty
  for (const DeviceTime& device : a.devices) most += device.slices.size();
  claims.reserve(most);
  for (std::size_t device = 0; device < a.devices.size(); ++device)
    claim_on(
        a, device, [&](const Slice& slice) { return wanted(device, slice); }, claims);
  return claims;
}

// All time in these accounts, but for what attempts held that did not succeed: that is discarded_work's.
[[nodiscard]] Claims claim_accounts(const Analysis& a, std::initializer_list<Account> accounts);

[[nodiscard]] Claims common(const Claims& one, const Claims& other);
[[nodiscard]] Claims without(const Claims& claims, const Claims& taken);
[[nodiscard]] Claims united(const Claims& one, const Claims& other);

// Holds the findings to the law of model/finding.h. What claims time that a costlier one claims becomes part of that
// one if at least half of it lies there, and loses the rest; else it loses what both claim. What is then no longer
// material is left out, and what is left says of which part of its time it speaks. Returns GPUs that were lost, what
// puts the rest in doubt, then most lost device-time first, a GPU that may be spare last, parts behind their whole.
[[nodiscard]] std::vector<Finding> keep_the_law(const Analysis& a, std::vector<Finding> findings);

// What is left of its claims is less than its sentences were made for: that of which they are about `before` it says.
void say_of_which(Finding& finding, Nanos before);

// gains.cc: what could be gained if claimed time vanished.

// At equal work: the busiest device cannot finish earlier than its kernels take. Nothing where no kernel ran.
[[nodiscard]] std::optional<Bound> bound_of(const Analysis& a);

// How much faster the same work could be done if the claimed time vanished and nothing else changed. Of a job: its
// devices may all wait for one another, so each instant that is claimed on any of them could go, and no device that the
// claims are not about makes that less. Of a batch: tasks can go to any GPU, so it is a share of the budget. Never more
// than bound_of(). Nothing where this recording does not bound it.
[[nodiscard]] std::optional<double> removal(const Analysis& a, const Claims& claims);

// The account of most of it; of what is empty unexplained.
[[nodiscard]] Account main_account(const Claims& claims);

// Of the pieces that are so.
template <class IsSo>
[[nodiscard]] Nanos length_of(const Claims& claims, const IsSo& is_so) {
  Nanos sum = 0;
  for (const ClaimedPiece& piece : claims)
    if (is_so(piece)) sum += piece.end - piece.begin;
  return sum;
}
[[nodiscard]] inline Nanos length_on(std::size_t device, const Claims& claims) {
  return length_of(claims, [&](const ClaimedPiece& piece) { return piece.device == device; });
}

// As a share; of nothing none.
[[nodiscard]] inline double as_share(Nanos part, Nanos whole) {
  return static_cast<double>(part) / static_cast<double>(std::max<Nanos>(1, whole));
}

// Whether the part is at least half of the whole: the threshold of all that is said to be most of something.
[[nodiscard]] bool is_most(const Analysis& a, Nanos part, Nanos whole);

// The devices that it is on, in order.
[[nodiscard]] std::vector<std::size_t> devices_of(const Claims& claims);

// When any of it was, in order, on whichever device.
[[nodiscard]] std::vector<Window> times_of(const Claims& claims);

// How much of the time from their first piece to their last the claims are, over their devices.
[[nodiscard]] double part_claimed(const Claims& claims);

// Claims may be millions of pieces: they are moved, not copied.
[[nodiscard]] inline std::vector<Finding> only(Finding finding) {
  std::vector<Finding> findings;
  findings.push_back(std::move(finding));
  return findings;
}

// When the last GPU that was used fell quiet for good, where readings alone tell of the job: it may have ended then,
// and what it could gain is counted until then. Else the end of the window.
[[nodiscard]] Nanos end_of_work(const Analysis& a);
// The same of a job that has these devices to itself.
[[nodiscard]] Nanos end_of_work(const Analysis& a, const std::vector<std::size_t>& devices);

// ", counted over the 22:00 until the GPU fell quiet"; empty where end_of_work() is the end.
[[nodiscard]] std::string until_words(const Analysis& a);
[[nodiscard]] std::string until_words(const Analysis& a, const std::vector<std::size_t>& devices);

// Where readings alone tell of the job, or jobs: the GPUs that were used and, until they fell quiet for good, clearly
// had fewer kernels than the busiest; where some had half as many, those with two thirds and fewer. Whether one job
// uses all GPUs such readings do not tell.
[[nodiscard]] std::vector<std::size_t> with_more_room(const Analysis& a);

// removal() for a job that has these devices to itself.
[[nodiscard]] double removal_for(const Analysis& a, const Claims& claims, const std::vector<std::size_t>& devices);

[[nodiscard]] std::string bound_words(const Gain& gain);  // "1.32x at most, CONDITION"
// What it gains is open: "not bounded by this recording".
void not_bounded(std::string_view by, Finding& finding);
// Sets gain and bound ...
void bound_by(Gain gain, Finding& finding);
// ... of a finding whose claimed time could vanish.
void gains_by_removal(const Analysis& a, Finding& finding, std::string condition);
// As `gain` says, of other time than the finding's claims.
void gains_by_removal(const Analysis& a, const Claims& claims, Finding& finding, Gain gain);

// Of a gain by which the claimed time hides behind kernels: no more of it than there are kernels on its device. Says
// beside it what it were, WHEN the claimed time was gone altogether: "; 2.8x if they were gone".
void hides_behind_kernels(const Analysis& a, Finding& finding, std::string_view when);

// Of a process that waits for somebody who asks when it pleases: no change of the job makes that earlier.
void gains_nothing_while_nobody_asks(Finding& finding);
// A bound of the job's speed-up without what such findings claim, which stays.
[[nodiscard]] double speedup_while_asked(const Analysis& a, const std::vector<Finding>& findings, double speedup);

// Time that passes once: no factor of the job, which goes on as the rest of the time does.
void gains_once(const Analysis& a, Finding& finding);

// At most as much faster as the busiest of these GPUs has more kernels than they have on average; nothing where the
// finding has a larger gain already.
void gains_by_spreading(const Analysis& a, const std::set<std::size_t>& devices, Finding& finding);

// From the first kernel of the job on a device to the last one; empty where it had none.
[[nodiscard]] Window time_of_kernels(const DeviceTime& device);

}  // namespace headroom::diagnose
