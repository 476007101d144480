// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "diagnose/named_code.h"
#include "diagnose/rules.h"
#include "diagnose/work_during.h"

namespace headroom::diagnose {

namespace {

std::int64_t holder(const Analysis& a, const ClaimedPiece& piece) {
  const auto& slices = a.devices[piece.device].slices;
  const auto first = std::upper_bound(slices.begin(), slices.end(), piece.begin,
                                      [](Nanos at, const Slice& slice) { return at < slice.end; });
  return first == slices.end() ? 0 : first->pid;
}

// Stretches after a last kernel, until the device is let go or used again; checkpoints may lie in them, and are no part
// of what is claimed.
std::vector<ClaimedPiece> tails_of(const Analysis& a, Nanos lasting) {
  std::vector<ClaimedPiece> tails;
  for (const ClaimedPiece& piece : claim_accounts(a, {Account::kTeardown, Account::kHung, Account::kCheckpoint})) {
    if (tails.empty() || tails.back().device != piece.device || tails.back().end != piece.begin) {
      tails.push_back(piece);
      continue;
    }
    tails.back().end = piece.end;
    if (piece.account != Account::kCheckpoint) tails.back().account = piece.account;
  }
  std::erase_if(tails, [&](const ClaimedPiece& tail) {
    return tail.end - tail.begin < lasting || tail.account == Account::kCheckpoint;
  });
  return tails;
}

}  // namespace

std::vector<Finding> unreleased(const Analysis& a) {
  // Of a recording that is too short for a hang to be told, most of it is long.
  Nanos lasting = a.limits.time(Threshold::kHeldLong);
  if (a.window.length() < a.limits.time(Threshold::kHangShortest)) lasting = std::min(lasting, a.window.length() / 2);
  Finding finding;
  // Many short ones are the ends of processes, not a device kept.
  // Code of the job that stacks name is no end of a process.
  if (!code_in(a, claim_accounts(a, {Account::kTeardown})).empty()) lasting = std::min(lasting, kSecond);
  // Without readings of its processes nothing but its length tells such an end from a usual one.
  constexpr Nanos kMuch = 5;  // a fifth of the time
  if (!a.job.has_host) lasting = std::min(lasting, std::max(kSecond, a.window.length() / kMuch));
  const std::vector<ClaimedPiece> tails = tails_of(a, lasting);
  finding.claims = common(claim_accounts(a, {Account::kTeardown, Account::kHung}), tails);
  if (!a.material(finding.cost())) return {};
  const HostSummary& s = a.host;
  finding.tiers = a.job.has_host ? "NP" : "N";
  finding.title = "The GPU was held after its last kernel";
  const bool hung = std::any_of(finding.claims.begin(), finding.claims.end(),
                                [](const ClaimedPiece& piece) { return piece.account == Account::kHung; });
  const auto child = hung ? std::nullopt : children_at_work(a, finding.claims);
  const bool waits =
      s.owners == 0 || s.waiting_in({WaitChannel::kFutex, WaitChannel::kPoll}) > a.limits[Threshold::kHeldQuiet];
  // What hangs does not end by itself, and well.
  const bool ended = !a.job.batch.present && a.window.end >= a.meta.end && a.meta.exit_code == 0;
  const bool quiet = hung || (waits && !child && !ended);
  if (quiet)
    finding.candidates = {Cause::kUnreleasedAfterWork, Cause::kHang};
  else
    finding.cause = Cause::kUnreleasedAfterWork;
  if (waits && !child && !quiet)
    finding.told_apart_from.push_back("a hang: the job then ended by itself, with exit code 0");
  if (hung) {
    std::reverse(finding.candidates.begin(), finding.candidates.end());
    finding.title = "Nothing of the job moved after its last kernel";
  }
  if (child) {
    const bool waited = waits_for_child(a, host_during(a.job, a.devices, finding.claims), finding.claims);
    if (child->workers < 2)
      finding.title = fmt::format("The GPU was held after its last kernel, while {}process {}{}",
                                  waited ? "its process waited for " : "", child->busiest.pid,
                                  waited ? "" : ", a child of its process, worked");
    else
      finding.title = fmt::format("The GPU was held after its last kernel, while {}programs that it {}",
                                  waited ? "its process waited for " : "", waited ? "started" : "had started worked");
    finding.evidence.push_back(child_sentence(*child));
    finding.told_apart_from.push_back("a hang: what it had started was at work");
  }
  for (const ClaimedPiece& piece : tails)
    finding.evidence.push_back(fmt::format("{}: no kernel from {} on, for {}, while process {} held its context",
                                           a.device_name(piece.device), a.when(piece.begin),
                                           human_duration(piece.end - piece.begin), holder(a, piece)));
  const bool sure = std::any_of(tails.begin(), tails.end(), [&](const ClaimedPiece& piece) {
    return piece.end - piece.begin >= a.limits.time(Threshold::kHeldLong);
  });
  if (!sure) finding.confidence = Confidence::kLow;
  // A process that works may well validate what it trained.
  if (quiet) finding.told_apart_from.push_back("validation or a pause: no kernel came afterwards");
  finding.would_overturn = "record for longer: if kernels come back, it was a pause";
  finding.advice = "end the process, or free the device, before uploads and post-processing";
  if (child) finding.advice = "free the device before that process starts, or start it while the GPU still computes";
  if (hung)
    finding.advice =
        fmt::format("py-spy dump --pid {} first: it names what each thread waits for; then end the process",
                    holder(a, finding.claims.front()));
  finding.bound = "the time in which it was held comes back";
  return only(std::move(finding));
}

}  // namespace headroom::diagnose
