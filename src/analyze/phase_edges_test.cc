// SPDX-License-Identifier: Apache-2.0
#include "analyze/phase_edges.h"

#include <gmock/gmock.h>

#include "analyze/testing.h"

namespace headroom {
namespace {

using testing::RecordingBuilder;

constexpr std::int64_t kJobPid = 100;

// Ten seconds of training at 100 % and ten of metrics at none, in turn, with a reading a second; each begins and ends
// in the middle of a reading, as it were.
Recording turns(const std::string& via, double shift = 0.5) {
  RecordingBuilder builder(60);
  std::vector<std::pair<double, std::string>> phases;
  for (int turn = 0; turn < 6; ++turn) phases.emplace_back(turn * 10 + shift, turn % 2 == 0 ? "train" : "metrics");
  builder
      .gpu(0,
           [=](double t) {
             const double into = std::fmod(t - shift, 20);  // the reading is of (t-1, t]
             if (t < shift) return 0.0;
             if (into < 1) return into;
             return into <= 10 ? 1.0 : into < 11 ? 11 - into : 0.0;
           })
      .process(kJobPid, 1, 0, 60, 0.9)
      .context(kJobPid, 0, 0, 60);
  return builder.marks(kJobPid, via, phases).build();
}

Nanos busy_in(const Analysis& a, const std::string& name) {
  Nanos busy = 0;
  for (const Slice& slice : a.devices[0].slices)
    if (slice.named >= 0 && a.phases[static_cast<std::size_t>(slice.named)].name == name && is_busy(slice.account))
      busy += slice.end - slice.begin;
  return busy;
}

TEST(PhaseEdges, KernelsOfTheReadingInWhichTheyEndWereBefore) {
  const Analysis a = analyze(turns("marks"));
  EXPECT_EQ(busy_in(a, "metrics"), 0);
  EXPECT_EQ(busy_in(a, "train"), a.ledger.busy());
  for (const Phase& phase : a.phases)
    if (!phase.named_by.empty()) {
      EXPECT_EQ(phase.gpu_util_ratio, phase.name == "train" ? 1 : 0) << phase.name;
    }
}

TEST(PhaseEdges, WhatIsNoExactWordMovesNothing) {
  const Analysis a = analyze(turns("output"));
  EXPECT_GT(busy_in(a, "metrics"), kSecond);
}

TEST(PhaseEdges, TheSlicesCoverTheTimeAndHoldWhatTheyHeld) {
  for (const double shift : {0.1, 0.3, 0.5, 0.77}) {
    const Analysis marked = analyze(turns("marks", shift)), said = analyze(turns("output", shift));
    Nanos at = marked.window.begin;
    for (const Slice& slice : marked.devices[0].slices) {
      EXPECT_EQ(slice.begin, at);
      EXPECT_LT(slice.begin, slice.end);
      at = slice.end;
    }
    EXPECT_EQ(at, marked.window.end);
    for (const AccountInfo& account : kAccounts)
      EXPECT_EQ(marked.ledger.total(account.id), said.ledger.total(account.id)) << account.label;
  }
}

}  // namespace
}  // namespace headroom
