// SPDX-License-Identifier: Apache-2.0
#include "sample/sampler.h"

#include <gmock/gmock.h>

namespace headroom {
namespace {

using testing::ElementsAre;

class FakeClock final : public SampleClock {
 public:
  Nanos now = 1000 * kSecond, suspended = 0, offset = 1'700'000'000 * kSecond;
  Nanos boottime() override { return now; }
  Nanos monotonic() override { return now - suspended; }
  Nanos realtime() override { return now + offset; }
  void wait_until(Nanos until) override { now = std::max(now, until); }
  void interrupt() override {}
};

// Notes when it was read; may take its time.
class FakeReader final : public Reader {
 public:
  FakeReader(std::vector<Nanos>& reads, FakeClock& clock, Nanos takes = 0)
      : reads_(reads), clock_(clock), takes_(takes) {}
  void read(Nanos at, RecordingSink& sink) override {
    reads_.push_back(at);
    const std::array cells{Cell{.metric = Metric::kHostLoad1, .value = 1}};
    sink.add_row(sink.add_source({.kind = SourceKind::kHost, .key = "host"}), at, cells);
    clock_.now += takes_;
  }

 private:
  std::vector<Nanos>& reads_;
  FakeClock& clock_;
  Nanos takes_;
};

struct SamplerTest : testing::Test {
  FakeClock clock;
  MemorySink sink;
  std::vector<Nanos> reads;
  Sampler sampler{clock, sink, {.interval = kSecond, .cost = [this] {
                                  return OwnCost{.cpu = clock.now / 1000, .rss_bytes = 4096};
                                }}};

  void run(int ticks) {
    for (int i = 0; i < ticks; ++i) {
      clock.wait_until(sampler.next());
      sampler.tick();
    }
  }
  std::int64_t lost(std::string_view what) const {
    for (const auto& loss : sink.recording().losses)
      if (loss.what == what) return loss.count;
    return 0;
  }
};

TEST_F(SamplerTest, TicksAreAbsoluteHoweverLongAReadTakes) {
  sampler.add(std::make_unique<FakeReader>(reads, clock, 300 * kMillisecond));
  run(4);
  EXPECT_THAT(reads, ElementsAre(1000 * kSecond, 1001 * kSecond, 1002 * kSecond, 1003 * kSecond));
  EXPECT_TRUE(sink.recording().losses.empty());
}

class IdleReader final : public Reader {
 public:
  explicit IdleReader(std::vector<Nanos>& reads) : reads_(reads) {}
  void read(Nanos at, RecordingSink&) override { reads_.push_back(at); }
  [[nodiscard]] Nanos idle_until() const override { return reads_.empty() ? 0 : reads_.front() + 2500 * kMillisecond; }

 private:
  std::vector<Nanos>& reads_;
};

TEST_F(SamplerTest, ATickWithNothingToReadIsLeftOutAndMissesNothing) {
  Sampler own(clock, sink, {.interval = kSecond, .is_main = false});
  own.add(std::make_unique<IdleReader>(reads));
  for (int i = 0; i < 3; ++i) clock.wait_until(own.next()), own.tick();
  EXPECT_THAT(reads, ElementsAre(1000 * kSecond, 1003 * kSecond, 1004 * kSecond));
  EXPECT_TRUE(sink.recording().losses.empty());
}

TEST_F(SamplerTest, OneReaderAtWorkIsAskedAtEveryTick) {
  std::vector<Nanos> of_idle;
  Sampler own(clock, sink, {.interval = kSecond, .is_main = false});
  own.add(std::make_unique<IdleReader>(of_idle));
  own.add(std::make_unique<FakeReader>(reads, clock));
  for (int i = 0; i < 3; ++i) clock.wait_until(own.next()), own.tick();
  EXPECT_THAT(reads, ElementsAre(1000 * kSecond, 1001 * kSecond, 1002 * kSecond));
}

TEST_F(SamplerTest, InstantsAreRoundedToMicrosecondsAndGrow) {
  sampler.add(std::make_unique<FakeReader>(reads, clock));
  clock.now += 1499;
  sampler.tick();
  sampler.tick();
  EXPECT_THAT(reads, ElementsAre(1000 * kSecond + 1000, 1000 * kSecond + 2000));
}

TEST_F(SamplerTest, ALateTickIsCountedAndDoesNotShiftTheNext) {
  sampler.add(std::make_unique<FakeReader>(reads, clock));
  run(1);
  clock.now += 1600 * kMillisecond;
  run(2);
  EXPECT_THAT(reads, ElementsAre(1000 * kSecond, 1001 * kSecond + 600 * kMillisecond, 1002 * kSecond));
  EXPECT_EQ(lost("late_tick"), 1);
  EXPECT_EQ(lost("missed_tick"), 0);
  EXPECT_THAT(sink.recording().losses[0].detail, testing::HasSubstr("0.600 s late for a look every 1.000 s"));
}

TEST_F(SamplerTest, MissedTicksAreCountedNotCaughtUpWith) {
  sampler.add(std::make_unique<FakeReader>(reads, clock));
  run(1);
  clock.now += 3200 * kMillisecond;
  run(2);
  EXPECT_EQ(reads.size(), 3U);
  EXPECT_EQ(reads.back(), 1004 * kSecond);
  EXPECT_EQ(lost("missed_tick"), 2);
  EXPECT_TRUE(sink.recording().events.empty());
}

TEST_F(SamplerTest, ALongHoleIsAGapWithItsReason) {
  run(2);
  clock.now += 60 * kSecond;
  clock.suspended += 59 * kSecond;
  run(1);
  clock.now += 10 * kSecond;
  run(1);
  const auto& events = sink.recording().events;
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].kind, "gap");
  EXPECT_EQ(events[0].at, 1001 * kSecond);
  EXPECT_EQ(events[0].end, 1061 * kSecond);
  EXPECT_EQ(events[0].attrs.at("reason"), "suspended");
  EXPECT_EQ(events[1].attrs.at("reason"), "late");
}

TEST_F(SamplerTest, ASteppedClockIsAnEventAndASlewedOneIsNot) {
  run(2);
  clock.offset += 400'000;  // NTP slewing
  run(1);
  EXPECT_TRUE(sink.recording().events.empty());
  clock.offset -= 3600 * kSecond;
  run(2);
  ASSERT_EQ(sink.recording().events.size(), 1U);
  EXPECT_EQ(sink.recording().events[0].kind, "clock_step");
  EXPECT_EQ(sink.recording().events[0].attrs.at("delta_ns"), "-3600000000000");
}

TEST_F(SamplerTest, CostIsRecordedFirstLastAndRarelyBetween) {
  run(25);
  sampler.finish();
  const auto id = sink.recording().find(SourceKind::kRecorder, "recorder");
  ASSERT_TRUE(id);
  const Track& track = sink.recording().tracks[static_cast<std::size_t>(*id)];
  EXPECT_EQ(track.at.size(), 4U);  // 0 s, 10 s, 20 s and the end
  EXPECT_EQ(track.find(Metric::kRecorderRss)->values.back(), 4096);
}

TEST_F(SamplerTest, AReaderMayComeLateAndIsReadAtOnce) {
  run(2);
  clock.now += 200 * kMillisecond;
  sampler.add(std::make_unique<FakeReader>(reads, clock));
  run(1);
  EXPECT_THAT(reads, ElementsAre(1001 * kSecond + 200 * kMillisecond, 1002 * kSecond));
}

TEST_F(SamplerTest, AReaderThatComesJustBeforeATickWaitsForIt) {
  run(2);
  clock.now += 900 * kMillisecond;
  sampler.add(std::make_unique<FakeReader>(reads, clock));
  run(1);
  EXPECT_THAT(reads, ElementsAre(1002 * kSecond));
}

TEST_F(SamplerTest, FinishLooksOnceMore) {
  sampler.add(std::make_unique<FakeReader>(reads, clock));
  run(1);
  clock.now += 10 * kMillisecond;
  sampler.finish();
  EXPECT_THAT(reads, ElementsAre(1000 * kSecond, 1000 * kSecond + 10 * kMillisecond));
}

TEST(OwnCost, IsReadFromThisProcess) {
  const OwnCost cost = own_cost();
  EXPECT_GT(cost.cpu, 0);
  ASSERT_TRUE(cost.rss_bytes);
  EXPECT_GT(*cost.rss_bytes, 1 << 20);
}

TEST(SystemClock, AnInterruptBeforeTheWaitEndsIt) {
  auto clock = SystemClock::create();
  ASSERT_TRUE(clock);
  (*clock)->interrupt();
  (*clock)->wait_until((*clock)->boottime() + 3600 * kSecond);
  (*clock)->wait_until((*clock)->boottime());  // an instant that has passed does not wait either
}

TEST_F(SamplerTest, WhatIsLateIsSaidWithItsTimeAndForWhom) {
  Sampler own(clock, sink, {.interval = 20 * kMillisecond, .key = "recorder/Y", .is_main = false});
  own.tick();
  run(1);
  clock.now += 1700 * kMillisecond;
  run(1);
  own.tick();
  const auto& losses = sink.recording().losses;
  ASSERT_EQ(losses.size(), 2U);
  EXPECT_THAT(losses[0].places, ElementsAre(LossPlace{1000 * kSecond, 1001 * kSecond + 700 * kMillisecond, kNoSource}));
  const auto recorder = sink.recording().find(SourceKind::kRecorder, "recorder/Y");
  ASSERT_TRUE(recorder);
  EXPECT_EQ(losses[1].what, "missed_tick");
  EXPECT_THAT(losses[1].places, ElementsAre(LossPlace{1000 * kSecond, 1001 * kSecond + 700 * kMillisecond, *recorder}));
  EXPECT_TRUE(sink.recording().tracks[static_cast<std::size_t>(*recorder)].at.empty());  // costs are told once
}

}  // namespace
}  // namespace headroom
