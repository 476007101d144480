// SPDX-License-Identifier: Apache-2.0
#include "analyze/idle_cause.h"

#include <algorithm>

namespace headroom {

namespace {

double on_cpu(const Activity& owner) { return owner.main_cpu.value_or(std::min(1.0, owner.cpu)); }

double running(const Activity& owner) { return std::min(1.0, on_cpu(owner) + owner.run_delay); }

}  // namespace

std::optional<double> writing_share(const Activity& owner, const Thresholds& limits) {
  const double rate = owner.write_bytes_per_second.value_or(0);
  if (rate < limits[Threshold::kWriting]) return std::nullopt;
  const double ran = running(owner);
  return 1.0 - ran + std::min(ran, rate / limits[Threshold::kWritingPace]);
}

IdleCause idle_cause(const Activity& owner, const HelperWork& helpers, double idle_share, const Thresholds& limits,
                     bool after_writing) {
  if (idle_share <= 0) return {};
  const double covers = limits[Threshold::kCovers] * idle_share;
  const double run = running(owner);
  const bool could_sleep = 1.0 - run >= covers, could_run = run >= covers;
  const Confidence sure = could_sleep && could_run ? Confidence::kMedium : Confidence::kHigh;
  // Whoever wants a core may have wanted it to go on waiting.
  const bool could_wait = 1.0 - on_cpu(owner) >= covers;
  const bool in_disk = owner.state == 'D' || owner.wait == WaitChannel::kDisk;
  if (owner.write_bytes_per_second.value_or(0) >= limits[Threshold::kWriting] || (after_writing && in_disk))
    return {Account::kCheckpoint, Confidence::kLow};
  if (owner.io_delay && *owner.io_delay >= limits[Threshold::kIoWaits] * idle_share)
    return {Account::kInput, Confidence::kMedium};
  // Nobody waits for the end of a loader's worker.
  const bool helpers_work =
      owner.wait != WaitChannel::kChild && (helpers.cpu >= limits[Threshold::kHelpersAtWork] ||
                                            helpers.read_bytes_per_second >= limits[Threshold::kReading]);
  if (helpers_work && could_sleep) return {Account::kInput, sure};
  const bool reads = owner.read_bytes_per_second.value_or(0) >= limits[Threshold::kReading];
  if (reads && could_wait && (in_disk || on_cpu(owner) < covers)) return {Account::kInput, Confidence::kMedium};
  if (could_run) return {Account::kHostCode, could_wait ? Confidence::kMedium : sure};
  if (owner.wait == WaitChannel::kNetworkFs || helpers.waits_for_data) return {Account::kInput, Confidence::kLow};
  const double others = owner.cpu - owner.main_cpu.value_or(owner.cpu);
  if (others >= limits[Threshold::kOtherThreads]) return {Account::kHostCode, Confidence::kLow};
  if (reads) return {Account::kInput, Confidence::kLow};
  return {Account::kUnexplained, Confidence::kLow};
}

}  // namespace headroom
