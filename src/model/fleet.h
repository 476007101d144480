// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_table.h"
#include "base/time.h"
#include "model/catalogue.h"
#include "model/ledger.h"

// The answer of `headroom fleet`: who held GPUs, where that time went, and what of it could come back. GPU time is in
// nanoseconds of one GPU. Mirrors the schema headroom.fleet/1 (docs/json.md).
namespace headroom {

enum class FleetBy : std::uint8_t { kUser, kProject, kJob, kCommand, kHost, kGpu };
struct FleetByInfo {
  FleetBy id;
  std::string_view name;  // of --by, and in JSON
};
inline constexpr std::array kFleetBys{
    FleetByInfo{FleetBy::kUser, "user"}, FleetByInfo{FleetBy::kProject, "project"},
    FleetByInfo{FleetBy::kJob, "job"},   FleetByInfo{FleetBy::kCommand, "command"},
    FleetByInfo{FleetBy::kHost, "host"}, FleetByInfo{FleetBy::kGpu, "gpu"},
};
static_assert(in_order_of_ids(kFleetBys));
[[nodiscard]] constexpr std::string_view name(FleetBy by) { return kFleetBys[static_cast<std::size_t>(by)].name; }

// Whose a job was; "" where that is not recorded. By FleetBy.
using FleetNames = std::array<std::string, kFleetBys.size()>;

using AccountTimes = std::array<Nanos, kAccounts.size()>;  // by Account
[[nodiscard]] constexpr Nanos sum_of(const AccountTimes& times) {
  Nanos sum = 0;
  for (const Nanos ns : times) sum += ns;
  return sum;
}
[[nodiscard]] constexpr Nanos busy_of(const AccountTimes& times) {
  Nanos sum = 0;
  for (std::size_t i = 0; i < times.size(); ++i) sum += is_busy(kAccounts[i].id) ? times[i] : 0;
  return sum;
}

// What one cause took of a job.
struct FleetLoss {
  std::optional<Cause> cause;  // absent: the evidence leaves several
  std::string title;           // of the finding
  Nanos cost = 0;              // claimed, of the time that counts
  Nanos at_most = 0;           // of the GPU time, what could come back by this alone; 0 where no cause is told
  std::size_t jobs = 1;
  bool operator==(const FleetLoss&) const = default;
};

// A recorded job, explained.
struct FleetJob {
  std::string path;
  FleetNames names;
  std::string tiers;  // the evidence that it has
  Nanos start = 0;    // Unix time; 0 where an import knew no date
  Nanos span = 0;
  std::size_t gpus = 0;               // that count: the job had them, and they were not others' alone
  AccountTimes accounts{};            // of GPU time that the job held and nothing else counts
  Nanos foreign = 0;                  // of these GPUs, kernels of others: not the job's, and counted nowhere here
  Nanos elsewhere = 0;                // counted with another recording, which has the same GPU at the same time
  std::string counted_with;           // the path of that one, or of the one with the most of it
  bool overlap_unknown = false;       // its GPUs have no UUID, or it has no date: other files may hold the same time
  Nanos back_low = 0, back_high = 0;  // GPU time that could come back, by findings whose cause is told
  Nanos undecided = 0;                // claimed by findings that leave several causes
  std::vector<FleetLoss> losses;      // what could bring most back first
  [[nodiscard]] Nanos held() const { return sum_of(accounts); }
};

// Jobs of one name.
struct FleetGroup {
  std::string name;  // "" where it is not recorded
  std::size_t jobs = 0;
  AccountTimes accounts{};
  Nanos back_low = 0, back_high = 0;
  Nanos undecided = 0;
  std::vector<FleetLoss> losses;  // by cause, what could bring most back first; undecided ones together, last
  std::string look_at;            // the recording of the job of which most could come back
  [[nodiscard]] Nanos held() const { return sum_of(accounts); }
};

// A file, or a part of its time, that is not counted.
struct FleetLeftOut {
  std::string path;
  std::string why;
  bool operator==(const FleetLeftOut&) const = default;
};

// A job of which only the averages of its whole time are known (Jobstats' summaries).
struct AveragedJob {
  std::string id;
  FleetNames names;
  Nanos span = 0;
  std::size_t gpus = 0;
  Nanos held = 0;                      // span * gpus
  Nanos measured = 0;                  // of `held`: of GPUs with a mean utilisation
  Nanos utilised = 0;                  // that mean times the time of each, 0 to `measured`
  Nanos zero = 0;                      // held by GPUs whose mean is 0: no sample saw a kernel
  std::optional<double> memory_ratio;  // the most of a GPU's memory that was used on any of them
  // By which jobs are chosen to be looked at closer. No loss: what a mean leaves need not be to be had.
  [[nodiscard]] Nanos without_kernels() const { return measured - utilised; }
  bool operator==(const AveragedJob&) const = default;
};

struct AveragedGroup {
  std::string name;
  std::size_t jobs = 0;
  Nanos held = 0, measured = 0, utilised = 0, zero = 0;
  Nanos low = 0;  // held by jobs whose mean is at most kLowMean, those at 0 among them
  [[nodiscard]] Nanos without_kernels() const { return measured - utilised; }
};
inline constexpr double kLowMean = 0.25;

// What the rows of `sacct` were.
struct AveragedCounts {
  std::size_t jobs = 0;  // with a summary and GPUs
  std::size_t without_gpus = 0;
  std::size_t too_short = 0;     // "JS1:Short"
  std::size_t no_summary = 0;    // "JS1:None", or nothing; of jobs: their steps have none
  std::size_t unreadable = 0;    // damaged summaries and rows
  std::string first_unreadable;  // where, and why
};

struct FleetAverages {
  AveragedCounts counts;
  std::vector<AveragedGroup> groups;  // most time without kernels first
  AveragedGroup others;               // the sum of those that are not listed
  std::size_t not_listed = 0;
  AveragedGroup total;
  std::vector<AveragedJob> look_at;  // the jobs that most deserve a recording, by the same order
};

struct Fleet {
  FleetBy by = FleetBy::kUser;
  std::optional<Nanos> since, until;  // Unix time
  std::size_t files = 0;              // that were looked at
  std::vector<FleetJob> jobs;         // in the order of `groups`, then as they are there
  std::vector<FleetGroup> groups;     // what could bring most back first
  FleetGroup others;                  // the sum of those that are not listed, without losses
  std::size_t not_listed = 0;         // so many groups
  FleetGroup total;
  std::vector<FleetLeftOut> left_out;
  std::vector<FleetLeftOut> unreadable;
  std::optional<FleetAverages> averages;
};

}  // namespace headroom
