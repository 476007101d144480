// SPDX-License-Identifier: Apache-2.0
#include "marks/ring.h"

#include <gtest/gtest.h>

#include <cstring>

namespace headroom::marks {
namespace {

headroom_marks_header good_header() {
  headroom_marks_header header{};
  std::memcpy(header.magic, HEADROOM_MARKS_MAGIC, sizeof header.magic);
  header.version = HEADROOM_MARKS_VERSION;
  header.header_bytes = HEADROOM_MARKS_HEADER_BYTES;
  header.names_bytes = HEADROOM_MARKS_NAMES_BYTES;
  header.slots = HEADROOM_MARKS_SLOTS;
  header.record_bytes = sizeof(headroom_mark);
  header.pid = 42;
  header.start_ticks = 4711;
  std::memcpy(header.via, "marks", 6);
  return header;
}

Result<RingHead> parse(const headroom_marks_header& header) {
  return parse_ring_head(std::as_bytes(std::span(&header, 1)));
}

TEST(RingHeadTest, AHeaderIsRead) {
  const auto head = parse(good_header());
  ASSERT_TRUE(head.has_value());
  EXPECT_EQ(head->pid, 42);
  EXPECT_EQ(head->start_ticks, 4711);
  EXPECT_EQ(head->via, "marks");
  EXPECT_EQ(head->record_at(2), 4096U + 65536U + 64U);
}

TEST(RingHeadTest, WhatIsNotWrittenYetIsWaitedFor) {
  EXPECT_EQ(parse({}).error().code, Errc::kBusy);
  const headroom_marks_header header = good_header();
  EXPECT_EQ(parse_ring_head(std::as_bytes(std::span(&header, 1)).first(47)).error().code, Errc::kBusy);
}

TEST(RingHeadTest, WhatMakesNoSenseIsNoRing) {
  const auto refused = [](auto change) {
    headroom_marks_header header = good_header();
    change(header);
    const auto head = parse(header);
    return head.has_value() ? Errc{} : head.error().code;
  };
  EXPECT_EQ(refused([](auto& h) { h.magic[0] = 'X'; }), Errc::kInvalidInput);
  EXPECT_EQ(refused([](auto& h) { h.version = 2; }), Errc::kUnsupported);
  EXPECT_EQ(refused([](auto& h) { h.slots = 0; }), Errc::kInvalidInput);
  EXPECT_EQ(refused([](auto& h) { h.slots = UINT32_MAX; }), Errc::kInvalidInput);
  EXPECT_EQ(refused([](auto& h) { h.names_bytes = UINT32_MAX; }), Errc::kInvalidInput);
  EXPECT_EQ(refused([](auto& h) { h.record_bytes = 31; }), Errc::kInvalidInput);
  EXPECT_EQ(refused([](auto& h) { h.header_bytes = 0; }), Errc::kInvalidInput);
  EXPECT_EQ(refused([](auto& h) { h.pid = -1; }), Errc::kInvalidInput);
  EXPECT_EQ(refused([](auto& h) { h.start_ticks = UINT64_MAX; }), Errc::kInvalidInput);
  EXPECT_EQ(refused([](auto& h) { h.via[0] = '/'; }), Errc::kInvalidInput);
  EXPECT_EQ(refused([](auto& h) { std::memset(h.via, 'x', sizeof h.via); }), Errc::kInvalidInput);
}

TEST(RingTextTest, ATextEndsWhereItsLengthOrTheBytesEnd) {
  const auto text = [](std::string_view bytes) { return ring_text(std::as_bytes(std::span(bytes))); };
  using namespace std::string_view_literals;
  EXPECT_EQ(text("\5\0train\3\0abc"sv), "train");
  EXPECT_EQ(text("\xff\xfftrain"sv), "train");
  EXPECT_EQ(text("\0\0train"sv), std::nullopt);
  EXPECT_EQ(text("\5\0"sv), std::nullopt);
  EXPECT_EQ(text("\5"sv), std::nullopt);
  EXPECT_EQ(text(""sv), std::nullopt);
}

// A ring of eight slots, as its writers leave it. Record i is made at i ms.
class Ring : public ::testing::Test {
 protected:
  static constexpr std::uint32_t kSlots = 8;
  static constexpr Nanos kNow = 10 * kSecond;

  void write(std::uint64_t index, Nanos at = 0) {
    slots_[index % kSlots] = {.sequence = index + 1,
                              .at = at != 0 ? at : static_cast<Nanos>(index) * kMillisecond,
                              .value = static_cast<double>(index),
                              .name = 0,
                              .kind_and_thread = HEADROOM_MARK_STEP << 24};
  }
  void write_all(std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t i = from; i < to; ++i) write(i);
  }
  // What a look gives: the numbers of the records.
  std::vector<int> look(bool ended = false, Nanos now = kNow) {
    std::vector<headroom_mark> window;
    for (std::uint32_t i = 0; i < kSlots; ++i) window.push_back(slots_[(cursor_.slot() + i) % kSlots]);
    RingMarks taken;
    cursor_.take(window, now, ended, taken);
    lost_ += taken.lost;
    bad_ += taken.bad;
    std::vector<int> numbers;
    for (const headroom_mark& mark : taken.marks) numbers.push_back(static_cast<int>(mark.value));
    return numbers;
  }

  headroom_mark slots_[kSlots]{};
  RingCursor cursor_{kSlots};
  std::int64_t lost_ = 0, bad_ = 0;
};

using Numbers = std::vector<int>;

TEST_F(Ring, EveryRecordIsTakenOnce) {
  EXPECT_EQ(look(), Numbers{});
  write_all(0, 3);
  EXPECT_EQ(look(), (Numbers{0, 1, 2}));
  EXPECT_EQ(look(), Numbers{});
  write_all(3, 10);
  EXPECT_EQ(look(), (Numbers{3, 4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(look(true), Numbers{});
  EXPECT_EQ(lost_, 0);
  EXPECT_EQ(bad_, 0);
}

TEST_F(Ring, WhatWasWrittenOverIsCountedAndTheRestTaken) {
  write_all(0, 4);
  look();
  write_all(4, 22);  // two laps and more
  Numbers all = look();
  for (const int more : look()) all.push_back(more);
  EXPECT_EQ(all, (Numbers{14, 15, 16, 17, 18, 19, 20, 21}));
  EXPECT_EQ(lost_, 10);
  write(22);
  EXPECT_EQ(look(), Numbers{22});
}

TEST_F(Ring, ASlotThatIsBeingWrittenIsWaitedFor) {
  write_all(0, 5);
  slots_[2].sequence = 0;
  EXPECT_EQ(look(false, kSecond), (Numbers{0, 1}));
  EXPECT_EQ(look(false, kSecond), Numbers{});
  write(2);
  EXPECT_EQ(look(false, kSecond), (Numbers{2, 3, 4}));
  EXPECT_EQ(lost_, 0);
}

TEST_F(Ring, ASlotThatIsNeverWrittenDoesNotStopTheOthers) {
  write_all(0, 6);
  slots_[2].sequence = slots_[3].sequence = 0;
  EXPECT_EQ(look(false, kSecond), (Numbers{0, 1}));
  EXPECT_EQ(look(false, 4 * kMillisecond + kSlotPatience), (Numbers{4, 5}));
  EXPECT_EQ(lost_, 2);
}

TEST_F(Ring, AtTheEndNothingIsWaitedFor) {
  write_all(0, 5);
  slots_[0].sequence = 0;
  EXPECT_EQ(look(true, kMillisecond), (Numbers{1, 2, 3, 4}));
  EXPECT_EQ(lost_, 1);
}

TEST_F(Ring, AnOldRecordInASlotOfTheNextLapIsNotTakenAgain) {
  write_all(0, 8);
  EXPECT_EQ(look().size(), 8U);
  EXPECT_EQ(look(true), Numbers{});
  write(9);  // 8 was given away, and is not written
  EXPECT_EQ(look(false, kMillisecond), Numbers{});
  EXPECT_EQ(look(true), Numbers{9});
  EXPECT_EQ(lost_, 1);
}

TEST_F(Ring, GarbageIsCountedAndMovesNothingFar) {
  write_all(0, 3);
  slots_[1].kind_and_thread = 0xff000000;
  slots_[2].sequence = 1000;  // no record of that slot
  slots_[3].sequence = UINT64_MAX - 4;
  write(4);
  EXPECT_EQ(look(), (Numbers{0, 4}));
  EXPECT_EQ(bad_, 3);
  EXPECT_EQ(lost_, 0);
}

TEST_F(Ring, WhatIsLostStaysAFiniteNumber) {
  for (int i = 0; i < 100'000; ++i) {
    const std::uint64_t next = static_cast<std::uint64_t>(i) << 38;
    write(next + cursor_.slot() % kSlots, kMillisecond);
    look();
  }
  EXPECT_LE(lost_, std::int64_t{1} << 48);
  EXPECT_GT(lost_, 0);
}

}  // namespace
}  // namespace headroom::marks
