// SPDX-License-Identifier: Apache-2.0
#include "analyze/idle_cause.h"

#include <algorithm>

namespace headroom {

IdleCause idle_cause(const Activity& owner, const HelperWork& helpers, double idle_share, const Thresholds& limits) {
  if (idle_share <= 0) return {};
  const double covers = limits[Threshold::kCovers] * idle_share;
  const double running = std::min(1.0, owner.main_cpu.value_or(std::min(1.0, owner.cpu)) + owner.run_delay);
  const bool could_sleep = 1.0 - running >= covers, could_run = running >= covers;
  const Confidence sure = could_sleep && could_run ? Confidence::kMedium : Confidence::kHigh;
  const bool writes = owner.write_bytes_per_second >= limits[Threshold::kWriting];
  if (!writes && owner.io_delay && *owner.io_delay >= limits[Threshold::kIoWaits] * idle_share)
    return {Account::kInput, Confidence::kMedium};
  if (writes) return {Account::kCheckpoint, Confidence::kLow};
  const bool helpers_work =
      helpers.cpu >= limits[Threshold::kHelpersAtWork] || helpers.read_bytes_per_second >= limits[Threshold::kReading];
  if (helpers_work && could_sleep) return {Account::kInput, sure};
  if (could_run) return {Account::kHostCode, sure};
  if (owner.read_bytes_per_second >= limits[Threshold::kReading]) return {Account::kInput, Confidence::kLow};
  return {Account::kUnexplained, Confidence::kLow};
}

}  // namespace headroom
