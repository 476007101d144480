// SPDX-License-Identifier: Apache-2.0
#include "batch/ledger_figures.h"

#include <gmock/gmock.h>

#include <numeric>

namespace headroom::batch {
namespace {

using ::testing::ElementsAre;

// Two devices for 10 s: task "a" fails and runs again, "b" runs on the other; a stranger computes for a second.
Explanation recorded() {
  Explanation e;
  e.ledger.begin = 100 * kSecond, e.ledger.end = 110 * kSecond;
  e.ledger.tasks = {"a", "b"};
  for (const char* uuid : {"GPU-0", "GPU-1"}) {
    e.ledger.devices.emplace_back();
    e.ledger.devices.back().uuid = uuid;
  }
  const auto slice = [](Nanos begin, Nanos end, Account account, std::int32_t task) {
    Slice made;
    made.begin = begin * kSecond, made.end = end * kSecond, made.account = account, made.task = task;
    return made;
  };
  e.slices = {{slice(100, 102, Account::kDiscarded, 0), slice(102, 103, Account::kStartup, 0),
               slice(103, 107, Account::kUseful, 0), slice(107, 108, Account::kForeign, -1),
               slice(108, 110, Account::kNoTask, -1)},
              {slice(100, 103, Account::kUseful, 1), slice(103, 110, Account::kNoTask, -1)}};
  for (std::size_t device = 0; device < e.slices.size(); ++device)
    for (const Slice& one : e.slices[device]) {
      LedgerEntry entry;
      entry.account = one.account, entry.device = device, entry.task = one.task, entry.ns = one.end - one.begin;
      e.ledger.entries.push_back(entry);
    }
  return e;
}

const std::vector<AttemptSpan> kAttempts{
    {.attempt = 1, .task = "a", .start = 99 * kSecond, .end = 102 * kSecond},
    {.attempt = 2, .task = "b", .start = 99 * kSecond, .end = 103 * kSecond},
    {.attempt = 3, .task = "a", .start = 102 * kSecond, .end = 107 * kSecond},
};

TEST(LedgerFigures, KernelsGoToTheAttemptThatRanThem) {
  EXPECT_THAT(
      gpu_times(recorded(), kAttempts),
      ElementsAre(AttemptGpuTime{1, 2 * kSecond}, AttemptGpuTime{2, 3 * kSecond}, AttemptGpuTime{3, 4 * kSecond}));
}

TEST(LedgerFigures, DevicesAttemptsAndLedgerAgree) {
  const Explanation e = recorded();
  BatchSummary summary;
  summary.devices = {{.uuid = "GPU-0"}, {.uuid = "GPU-1"}, {.uuid = "GPU-2"}};
  put_device_use(e, summary);
  EXPECT_DOUBLE_EQ(*summary.devices[0].busy_ratio, 0.7);
  EXPECT_DOUBLE_EQ(*summary.devices[1].busy_ratio, 0.3);
  EXPECT_FALSE(summary.devices[2].busy_ratio);
  const auto times = gpu_times(e, kAttempts);
  const Nanos attempts = std::accumulate(times.begin(), times.end(), Nanos{0},
                                         [](Nanos sum, const AttemptGpuTime& one) { return sum + one.gpu_time; });
  EXPECT_EQ(attempts + e.ledger.total(Account::kForeign), e.ledger.busy());
  const double devices = *summary.devices[0].busy_ratio + *summary.devices[1].busy_ratio;
  EXPECT_NEAR(devices * static_cast<double>(e.ledger.span()), static_cast<double>(e.ledger.busy()), 1);
}

TEST(LedgerFigures, WhatTheLedgerDoesNotConfirmIsZeroIfItWasSeenAndAbsentIfNot) {
  Explanation e = recorded();
  e.slices[1].front().account = Account::kUnobserved;
  std::vector<AttemptSpan> attempts = kAttempts;
  EXPECT_THAT(gpu_times(e, attempts), ElementsAre(AttemptGpuTime{1, 2 * kSecond}, AttemptGpuTime{3, 4 * kSecond}));
  attempts[1].kernels_seen = true;
  EXPECT_THAT(gpu_times(e, attempts),
              ElementsAre(AttemptGpuTime{1, 2 * kSecond}, AttemptGpuTime{2, 0}, AttemptGpuTime{3, 4 * kSecond}));
}

}  // namespace
}  // namespace headroom::batch
