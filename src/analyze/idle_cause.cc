// SPDX-License-Identifier: Apache-2.0
#include "analyze/idle_cause.h"

#include <algorithm>

namespace headroom {

namespace {
constexpr double kCovers = 0.6;          // a thing explains idle time if it lasted this share of it
constexpr double kIoWaits = 0.3;         // of the idle time, blocked on block I/O
constexpr double kHelpersAtWork = 0.05;  // cores; below it loader processes are only waiting themselves
constexpr double kReading = 1e6;         // bytes per second from storage
constexpr double kWriting = 8e6;         // bytes per second to storage: a model state, not a log file
}  // namespace

IdleCause idle_cause(const Activity& driver, double helpers_cpu, double helpers_read_bytes_per_second,
                     double idle_share) {
  if (idle_share <= 0) return {};
  const double running = std::min(1.0, driver.main_cpu.value_or(std::min(1.0, driver.cpu)) + driver.run_delay);
  const double asleep = 1.0 - running;
  const bool could_sleep = asleep >= kCovers * idle_share, could_run = running >= kCovers * idle_share;
  const Confidence sure = could_sleep && could_run ? Confidence::kMedium : Confidence::kHigh;
  if (driver.io_delay >= kIoWaits * idle_share && driver.write_bytes_per_second < kWriting)
    return {Account::kInput, Confidence::kMedium};
  if (driver.write_bytes_per_second >= kWriting) return {Account::kCheckpoint, Confidence::kLow};
  const bool helpers_work = helpers_cpu >= kHelpersAtWork || helpers_read_bytes_per_second >= kReading;
  if (helpers_work && could_sleep) return {Account::kInput, sure};
  if (could_run) return {Account::kHostCode, sure};
  if (driver.read_bytes_per_second >= kReading) return {Account::kInput, Confidence::kLow};
  return {Account::kUnexplained, Confidence::kLow};
}

const Activity* activity_at(const std::vector<Activity>& list, Nanos at) {
  const auto next =
      std::upper_bound(list.begin(), list.end(), at, [](Nanos instant, const Activity& a) { return instant <= a.end; });
  if (next == list.end() || at < next->begin) return nullptr;
  return &*next;
}

}  // namespace headroom
