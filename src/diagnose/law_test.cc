// SPDX-License-Identifier: Apache-2.0
// The law of model/finding.h, over random recordings, batches and windows.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "analyze/testing_random.h"
#include "diagnose/claims.h"
#include "diagnose/explain.h"
#include "model/losses.h"
#include "model/parts.h"

namespace headroom {
namespace {

using diagnose::common;
using diagnose::times_of;
using diagnose::without;
using testing::RecordingBuilder;

// A claim is a part of one slice of the same account, and of the window.
void expect_in_the_ledger(const Explanation& e, const Finding& finding) {
  Nanos last = 0;
  std::size_t device = 0;
  for (const ClaimedPiece& piece : finding.claims) {
    ASSERT_LT(piece.begin, piece.end);
    ASSERT_GE(piece.begin, e.ledger.begin);
    ASSERT_LE(piece.end, e.ledger.end);
    ASSERT_GE(std::pair(piece.device, piece.begin), std::pair(device, last)) << "in order, without overlap";
    device = piece.device;
    last = piece.end;
    Nanos covered = 0;
    for (const Slice& slice : e.slices[device])
      if (slice.account == piece.account)
        covered += std::max<Nanos>(0, std::min(slice.end, piece.end) - std::max(slice.begin, piece.begin));
    ASSERT_EQ(covered, piece.end - piece.begin) << finding.title;
  }
}

// What the catalogue lets its causes claim: each piece by some candidate, and no candidate without a piece.
void expect_the_accounts_of_the_catalogue(const Finding& finding) {
  std::vector<Cause> causes = finding.candidates;
  if (finding.cause) causes.push_back(*finding.cause);
  for (const ClaimedPiece& piece : finding.claims)
    EXPECT_TRUE(std::any_of(causes.begin(), causes.end(), [&](Cause c) { return info(c).accounts.has(piece.account); }))
        << info(causes.front()).id << " claims " << info(piece.account).cause;
  for (const Cause cause : causes)
    EXPECT_TRUE(finding.claims.empty() ||
                std::any_of(finding.claims.begin(), finding.claims.end(),
                            [&](const ClaimedPiece& piece) { return info(cause).accounts.has(piece.account); }))
        << info(cause).id << " may claim none of this, such as " << info(finding.claims.front().account).cause;
}

void expect_the_law(const Explanation& e) {
  for (std::size_t i = 0; i < e.findings.size(); ++i) {
    const Finding& finding = e.findings[i];
    SCOPED_TRACE(finding.title);
    expect_in_the_ledger(e, finding);
    expect_the_accounts_of_the_catalogue(finding);
    ASSERT_GE(finding.cost(), 0);
    ASSERT_LE(finding.cost(), e.ledger.budget());
    if (finding.gain) {
      ASSERT_GE(finding.gain->low, 1);
      ASSERT_GE(finding.gain->high, finding.gain->low);
      ASSERT_TRUE(std::isfinite(finding.gain->high));
    }
    if (finding.part_of) {
      ASSERT_LT(*finding.part_of, i) << "a part stands behind its whole";
      const Finding& whole = e.findings[*finding.part_of];
      ASSERT_FALSE(whole.part_of);
      ASSERT_EQ(length(common(finding.claims, whole.claims)), finding.cost());
    }
    for (std::size_t j = 0; j < i; ++j)
      if (e.findings[j].part_of == finding.part_of) {
        ASSERT_EQ(length(common(finding.claims, e.findings[j].claims)), 0) << e.findings[j].title;
      }
  }
}

// Everything else that a report says of the window, too.
void expect_of_the_window(const Recording& recording, const Explanation& e) {
  Nanos total = 0;
  for (const LedgerEntry& entry : e.ledger.entries) total += entry.ns;
  ASSERT_EQ(total, e.ledger.budget());
  for (const Phase& phase : e.phases) ASSERT_LE(phase.total, e.ledger.span());
  for (const DeviceStats& device : e.devices)
    for (const MetricStats& stats : device.metrics)
      ASSERT_LE(stats.samples, e.ledger.span() / recording.meta.interval + 2);
  if (e.pipeline) {
    ASSERT_EQ(e.pipeline->gpu_part + e.pipeline->rest, e.ledger.span());
  }
}

TEST(Law, HoldsOverRandomRecordingsBatchesAndWindows) {
  std::size_t with_findings = 0, parts = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const Recording recording = testing::random_recording_or_batch(random);
    for (int i = 0; i < 4; ++i) {
      SCOPED_TRACE(::testing::Message() << "seed " << seed << " window " << i);
      ExplainOptions options;
      const Nanos span = recording.meta.end - recording.meta.start;
      Nanos from = static_cast<Nanos>(random()) % span, to = static_cast<Nanos>(random()) % span;
      if (i > 0) options.window = std::minmax(from, to);
      const Explanation e = explain(recording, options);
      expect_the_law(e);
      expect_of_the_window(recording, e);
      if (HasFatalFailure()) return;
      for (const Finding& finding : e.findings) {
        with_findings += finding.cost() > 0 ? 1U : 0U;
        parts += finding.part_of ? 1U : 0U;
      }
    }
  }
  EXPECT_GT(with_findings, 1000U) << "else it was held to nothing";
  EXPECT_GT(parts, 20U);
}

// Up to three recordings, of machines of their own or one after the other on the same.
Recording several_of(std::mt19937& random) {
  std::vector<Recording> parts;
  Nanos realtime = 1'790'000'000 * kSecond;
  for (std::size_t i = 0; i <= random() % 3; ++i) {
    Recording part = testing::random_recording_or_batch(random);
    const bool same = i > 0 && random() % 4 == 0;
    realtime += same ? parts.back().meta.end - parts.back().meta.start : static_cast<Nanos>(random() % 20) * kSecond;
    part.meta.host = same ? parts.back().meta.host : fmt::format("node{}", i);
    part.meta.boot_id = part.meta.host;
    part.meta.id = fmt::format("{}", i);
    part.meta.start_realtime = realtime;
    if (random() % 2 == 0) part.meta.command = {"train"};
    parts.push_back(std::move(part));
  }
  return merged(std::move(parts));
}

TEST(Law, HoldsOfSeveralRecordingsTogether) {
  std::size_t with_findings = 0;
  for (unsigned seed = 0; seed < 150; ++seed) {
    std::mt19937 random(seed);
    const Recording recording = several_of(random);
    for (int i = 0; i < 3; ++i) {
      SCOPED_TRACE(::testing::Message() << "seed " << seed << " window " << i);
      ExplainOptions options;
      const Nanos span = recording.meta.end - recording.meta.start;
      Nanos from = static_cast<Nanos>(random()) % span, to = static_cast<Nanos>(random()) % span;
      if (i > 0) options.window = std::minmax(from, to);
      const Explanation e = explain(recording, options);
      expect_the_law(e);
      Nanos total = 0;
      for (const LedgerEntry& entry : e.ledger.entries) total += entry.ns;
      ASSERT_EQ(total, e.ledger.budget());
      if (HasFatalFailure()) return;
      with_findings += e.findings.empty() ? 0U : 1U;
    }
  }
  EXPECT_GT(with_findings, 200U) << "else it was held to nothing";
}

TEST(Claims, WhatIsCommonAndWhatIsLeftAreTheWhole) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    const auto some = [&] {
      Claims claims;
      for (std::size_t device = 0; device < 3; ++device)
        for (Nanos at = 0; at < 100;) {
          const Nanos begin = at + static_cast<Nanos>(random() % 20),
                      end = begin + 1 + static_cast<Nanos>(random() % 20);
          claims.push_back({device, begin, end, Account::kInput, -1});
          at = end;
        }
      return claims;
    };
    const Claims one = some(), other = some();
    ASSERT_EQ(length(common(one, other)), length(common(other, one)));
    ASSERT_EQ(length(common(one, other)) + length(without(one, other)), length(one));
    ASSERT_EQ(length(common(without(one, other), other)), 0);
    const std::vector<Window> times = times_of(one);
    for (std::size_t i = 1; i < times.size(); ++i) ASSERT_LT(times[i - 1].end, times[i].begin);
    for (Nanos at = 1; at < 140; ++at) {
      const auto holds = [&](const auto& time) { return time.begin < at && at <= time.end; };
      ASSERT_EQ(std::any_of(times.begin(), times.end(), holds), std::any_of(one.begin(), one.end(), holds));
    }
  }
}

// A recording whose only idle time waits for a loader, on a box with this many GPUs of which it was given all.
Recording waits_for_input(int gpus) {
  RecordingBuilder builder(100);
  builder.gpu(0, [](double) { return 0.25; });
  for (int gpu = 1; gpu < gpus; ++gpu) builder.gpu(gpu, [](double) { return 0.0; });
  builder.process(100, 1, 0, 100, 0.05).context(100, 0, 0, 100).process(101, 100, 0, 100, 0.9);
  return builder.build();
}

TEST(Law, AGpuThatWasNeverUsedDoesNotDiluteTheGain) {
  const auto gain = [](int gpus) {
    const Explanation e = explain(waits_for_input(gpus));
    for (const Finding& finding : e.findings)
      if (finding.cause == Cause::kInputTooFewWorkers) return finding.gain.value_or(Gain{}).high;
    return 0.0;
  };
  EXPECT_NEAR(gain(1), 4, 0.3);
  EXPECT_EQ(gain(1), gain(2));
  EXPECT_EQ(gain(1), gain(8));
}

TEST(Law, TwoGpusThatWaitInTurnCanGainTheirTimesTogether) {
  // Each computes while the other waits for the same loader: without the wait both would be done in half the time.
  const Explanation e = explain(RecordingBuilder(100)
                                    .gpu(0, [](double t) { return std::fmod(t, 2) < 1 ? 1.0 : 0.0; })
                                    .gpu(1, [](double t) { return std::fmod(t, 2) < 1 ? 0.0 : 1.0; })
                                    .process(100, 1, 0, 100, 0.05)
                                    .context(100, 0, 0, 100)
                                    .context(100, 1, 0, 100)
                                    .process(101, 100, 0, 100, 0.9)
                                    .build());
  ASSERT_TRUE(e.bound);
  for (const Finding& finding : e.findings)
    if (finding.cause == Cause::kInputTooFewWorkers) {
      ASSERT_TRUE(finding.gain);
      EXPECT_NEAR(finding.gain->high, e.bound->speedup_high, 0.05);
    }
}

TEST(Law, LostReadingsMakeWhatRestsOnThemLessSure) {
  Recording recording = waits_for_input(1);
  const Explanation before = explain(recording);
  recording.losses.push_back(make_loss(LossKind::kMissedTick, 50, "",
                                       LossPlace{RecordingBuilder::at(10), RecordingBuilder::at(90), kNoSource}));
  const Explanation after = explain(recording);
  const auto of = [](const Explanation& e) {
    return *std::find_if(e.findings.begin(), e.findings.end(),
                         [](const Finding& f) { return f.cause == Cause::kInputTooFewWorkers; });
  };
  EXPECT_EQ(of(before).confidence, Confidence::kMedium);
  EXPECT_EQ(of(after).confidence, Confidence::kLow);
  EXPECT_THAT(of(after).evidence.back(), ::testing::HasSubstr("readings were lost in 8"));
  for (const AccountInfo& account : kAccounts)
    EXPECT_EQ(before.ledger.total(account.id), after.ledger.total(account.id)) << account.label;
  for (const Slice& slice : after.slices[0])
    if (slice.account == Account::kInput && slice.begin >= RecordingBuilder::at(10) &&
        slice.end <= RecordingBuilder::at(90)) {
      EXPECT_NE(slice.confidence, Confidence::kHigh);
    }
}

}  // namespace
}  // namespace headroom
