// SPDX-License-Identifier: Apache-2.0
#include "python/walker.h"

#include <gmock/gmock.h>

#include "python/python_image.h"

namespace headroom::python {
namespace {

using testing::ElementsAre;
using Stack = ThreadLook::Stack;
using Result = ProcessLook::Result;

std::vector<std::string> texts(const StackWalker& walker, const ThreadLook& thread) {
  std::vector<std::string> all;
  for (const CodeId id : thread.frames) all.push_back(walker.codes().text(id));
  return all;
}

class Walk : public testing::TestWithParam<int> {
 protected:
  [[nodiscard]] static Layout layout() { return GetParam() == 14 ? layout_314() : *known_layout(GetParam()); }
  PythonImage image_{layout()};
  ProcessLook look_;
};
INSTANTIATE_TEST_SUITE_P(Versions, Walk, testing::Values(8, 9, 10, 11, 12, 14));

TEST_P(Walk, FramesLeadFromTheInnermostToTheOutermost) {
  const Address main = image_.frame(image_.code("main", 3), 0);
  const Address forward = image_.frame(image_.code("Net.forward", 31), main);
  image_.thread(forward, 7);
  StackWalker walker(image_.memory, image_.target);
  for (int i = 0; i < 3; ++i) {
    walker.look(look_);
    ASSERT_EQ(look_.result, Result::kRead);
    ASSERT_EQ(look_.threads.size(), 1U);
    EXPECT_EQ(look_.threads[0].thread_id, 7U);
    EXPECT_EQ(look_.threads[0].same, i > 0);
    EXPECT_THAT(texts(walker, look_.threads[0]), ElementsAre("main (t.py:3)", "Net.forward (t.py:31)"));
  }
}

TEST_P(Walk, AStackThatStandsStillCostsOneSystemCall) {
  image_.thread(image_.frame(image_.code("f"), image_.frame(image_.code("g"), 0)), 1);
  image_.thread(image_.frame(image_.code("h"), 0), 2);
  StackWalker walker(image_.memory, image_.target);
  walker.look(look_);
  const std::size_t before = walker.system_calls();
  walker.look(look_);
  EXPECT_EQ(walker.system_calls(), before + 1);
}

TEST_P(Walk, TheOldestThreadComesFirstAndTheHolderOfTheGilIsTold) {
  const Address code = image_.code("f");
  const Address first = image_.thread(image_.frame(code, 0), 1);
  image_.thread(image_.frame(code, 0), 2);
  image_.thread(0, 3);
  if (image_.gil != 0) {
    image_.put(image_.gil + image_.target.layout.gil_holder, first);
    image_.put(image_.gil + image_.target.layout.gil_locked, 1);
  } else {
    image_.put(image_.target.runtime + image_.target.layout.gil_current, first);
  }
  StackWalker walker(image_.memory, image_.target);
  walker.look(look_);
  ASSERT_EQ(look_.threads.size(), 3U);
  EXPECT_EQ(look_.threads[0].thread_id, 1U);
  EXPECT_EQ(look_.threads[0].gil, Gil::kHeld);
  EXPECT_EQ(look_.threads[1].gil, Gil::kNotHeld);
  EXPECT_EQ(look_.threads[2].stack, Stack::kEmpty);
  if (image_.gil == 0) return;
  image_.put(image_.gil + image_.target.layout.gil_locked, 0);  // given back: the last holder holds it no more
  walker.look(look_);
  EXPECT_EQ(look_.threads[0].gil, Gil::kNotHeld);
}

TEST_P(Walk, MoreThreadsThanAreReadAreCounted) {
  for (std::size_t i = 0; i < kMostThreads + 5; ++i) image_.thread(image_.frame(image_.code("f"), 0), i + 1);
  StackWalker walker(image_.memory, image_.target);
  walker.look(look_);
  EXPECT_EQ(look_.threads.size(), kMostThreads);
  EXPECT_EQ(look_.left_out, 5U);
  EXPECT_EQ(look_.threads[0].thread_id, 1U);
}

TEST_P(Walk, ASubInterpreterIsSeenAndNotTakenForTheMainOne) {
  image_.thread(image_.frame(image_.code("f"), 0), 1);
  image_.put(image_.target.runtime + image_.target.layout.interpreters, image_.room(8192));
  StackWalker walker(image_.memory, image_.target);
  walker.look(look_);
  EXPECT_TRUE(look_.more_interpreters);
  ASSERT_EQ(look_.threads.size(), 1U);
  EXPECT_THAT(texts(walker, look_.threads[0]), ElementsAre("f (t.py:1)"));
}

TEST_P(Walk, HostileMemoryIsRejected) {
  const Layout& layout = image_.target.layout;
  const Address code = image_.code("f");
  const Address loop = image_.frame(code, 0);
  image_.put(loop + layout.previous, loop);  // a circle
  image_.thread(loop, 1);
  const Address a = image_.frame(code, 0), b = image_.frame(code, a);
  image_.put(a + layout.previous, b);
  image_.thread(b, 2);
  image_.thread(image_.frame(code, 0x7fff12345678), 3);              // a wild pointer
  image_.thread(image_.frame(code, 0xffff888000000000), 4);          // the kernel's half
  image_.thread(image_.frame(code, 0x10001), 5);                     // not aligned
  image_.thread(image_.frame(image_.text("no code object"), 0), 6);  // the type is not PyCode_Type
  image_.thread(image_.frame(0, 0), 7);                              // no code object
  const Address endless = image_.code("name");                       // a name of 2^62 characters
  const Address name = image_.text("name");
  image_.put(name + kTextLengthOffset, std::uint64_t{1} << 62);
  image_.put(endless + layout.name, name);
  image_.thread(image_.frame(endless, 0), 8);
  image_.thread(image_.frame(code, 0), 9);
  if (layout.owner != Layout::kNone) image_.thread(image_.frame(code, 0, 77), 10);
  StackWalker walker(image_.memory, image_.target);
  walker.look(look_);
  ASSERT_EQ(look_.result, Result::kRead);
  for (const ThreadLook& thread : look_.threads)
    EXPECT_EQ(thread.stack, thread.thread_id == 9 ? Stack::kRead : Stack::kRejected) << thread.thread_id;
}

TEST_P(Walk, AListOfThreadsThatMakesNoSenseIsRejected) {
  const Layout& layout = image_.target.layout;
  const Address thread = image_.thread(image_.frame(image_.code("f"), 0), 1);
  StackWalker walker(image_.memory, image_.target);
  image_.put(thread + layout.next, Address{0x7fff12345678});
  walker.look(look_);
  EXPECT_EQ(look_.result, Result::kRejected);
  EXPECT_THAT(look_.threads, testing::IsEmpty());
  image_.put(thread + layout.next, thread);  // a circle: bounded
  walker.look(look_);
  EXPECT_EQ(look_.threads.size(), kMostThreads);
  image_.put(image_.interpreter + layout.threads, Address{0});
  walker.look(look_);
  EXPECT_EQ(look_.result, Result::kNoInterpreter);
  image_.put(image_.target.runtime + layout.interpreters + 8, Address{0});
  walker.look(look_);
  EXPECT_EQ(look_.result, Result::kNoInterpreter);
}

TEST_P(Walk, ADeepStackIsCutAtTheInnermostFrames) {
  const Address code = image_.code("deeper");
  Address top = image_.frame(image_.code("main"), 0);
  for (std::size_t i = 0; i < kMostFrames; ++i) top = image_.frame(code, top);
  image_.thread(top, 1);
  StackWalker walker(image_.memory, image_.target);
  walker.look(look_);
  ASSERT_EQ(look_.threads[0].stack, Stack::kRead);
  EXPECT_TRUE(look_.threads[0].cut);
  EXPECT_EQ(look_.threads[0].frames.size(), kMostFrames);
}

TEST_P(Walk, ACodeObjectThatTookAnothersPlaceIsNotTakenForIt) {
  const Address code = image_.code("before");
  const Address thread = image_.thread(image_.frame(code, 0), 1);
  StackWalker walker(image_.memory, image_.target);
  walker.look(look_);
  EXPECT_THAT(texts(walker, look_.threads[0]), ElementsAre("before (t.py:1)"));
  image_.put(code + image_.target.layout.name, image_.text("after"));
  for (std::size_t i = 0; i < CodeTable::kTrusted; ++i) {
    image_.set_top(thread, image_.frame(code, 0));
    walker.look(look_);
  }
  EXPECT_THAT(texts(walker, look_.threads[0]), ElementsAre("after (t.py:1)"));
}

TEST_P(Walk, ALineThatCannotBeToldIsNoLine) {
  const Layout& layout = image_.target.layout;
  const Address code = image_.code("f", 7);
  const auto text_with = [&](std::string_view table, std::uint64_t pairs) {
    image_.set_lines(code, table, pairs);
    CodeTable codes(layout, image_.target.code_type);
    Snapshot snapshot(image_.memory);
    snapshot.take({});
    EXPECT_TRUE(codes.check(snapshot, code));
    const bool pointer = layout.instructions != Layout::kNone;
    return codes.text(codes.running(snapshot, code, pointer ? code + layout.instructions : 0).value());
  };
  using namespace std::string_view_literals;
  if (layout.minor > 10) {
    EXPECT_EQ(text_with("\xD8\0\0"sv, 1), "f (t.py:8)");
    EXPECT_EQ(text_with("\xD8\0\0"sv, 2), "f (t.py)") << "a table of other code";
    EXPECT_EQ(text_with("\xF8"sv, 1), "f (t.py)") << "an instruction of no line";
  }
  EXPECT_EQ(text_with("\1"sv, 1), "f (t.py)") << "no table";
  image_.put(code + layout.line_table, Address{0});
  CodeTable codes(layout, image_.target.code_type);
  Snapshot snapshot(image_.memory);
  snapshot.take({});
  EXPECT_EQ(codes.text(codes.running(snapshot, code, 0).value()), "f (t.py)");
}

TEST(Lines, OfAllTablesTogetherAreBounded) {
  PythonImage image(*known_layout(9));
  constexpr std::size_t kParts = std::size_t{1} << 17;  // the longest table, where every pair is a line of its own
  std::string table;
  for (std::size_t i = 0; i < kParts; ++i) table += "\2\1";
  CodeTable codes(image.target.layout, image.target.code_type);
  constexpr std::size_t kRead = CodeTable::kMostLineParts / (kParts + 1);
  for (std::size_t i = 0; i <= kRead; ++i) {
    const Address code = image.code("f" + std::to_string(i), 1);
    image.set_lines(code, table, 1);
    Snapshot snapshot(image.memory);
    snapshot.take({});
    EXPECT_EQ(codes.text(codes.running(snapshot, code, 2).value()),
              "f" + std::to_string(i) + (i < kRead ? " (t.py:2)" : " (t.py)"));
  }
}

// Changes before every reading but those of single things: a process that goes on.
class MovingMemory final : public Memory {
 public:
  MovingMemory(PythonImage& image, Address thread, std::vector<Address> tops)
      : image_(image), thread_(thread), tops_(std::move(tops)) {}
  std::size_t read(std::span<const Region> regions, std::byte* into) override {
    image_.set_top(thread_, tops_[reads_++ % tops_.size()]);
    return image_.memory.read(regions, into);
  }

 private:
  PythonImage& image_;
  Address thread_;
  std::vector<Address> tops_;
  std::size_t reads_ = 0;
};

TEST_P(Walk, OfAStackThatMovesWhatBothCopiesShowIsKept) {
  const Address main = image_.frame(image_.code("main"), 0), loop = image_.frame(image_.code("loop"), main);
  const Address f = image_.frame(image_.code("f"), loop), g = image_.frame(image_.code("g"), loop);
  const Address thread = image_.thread(f, 1);
  MovingMemory memory(image_, thread, {f, g, loop});
  StackWalker walker(memory, image_.target);
  for (int i = 0; i < 20; ++i) {
    walker.look(look_);
    ASSERT_EQ(look_.threads[0].stack, Stack::kRead);
    const auto stack = texts(walker, look_.threads[0]);
    ASSERT_GE(stack.size(), 2U);
    EXPECT_EQ(stack[0] + stack[1], "main (t.py:1)loop (t.py:1)");
    EXPECT_LE(stack.size(), 3U);
  }
}

TEST_P(Walk, StacksWithoutACommonRootAreRejected) {
  std::vector<Address> roots;
  constexpr int kRoots = 97;
  for (int i = 0; i < kRoots; ++i) roots.push_back(image_.frame(image_.code("a"), 0));
  const Address thread = image_.thread(roots[0], 1);
  MovingMemory memory(image_, thread, roots);
  StackWalker walker(memory, image_.target);
  for (int i = 0; i < 20; ++i) {
    walker.look(look_);
    ASSERT_EQ(look_.threads.size(), 1U);
    EXPECT_EQ(look_.threads[0].stack, Stack::kRejected);
  }
}

// A frame whose code is another one whenever it is copied: what lies above it was called by nobody knows whom.
class ChangingMemory final : public Memory {
 public:
  ChangingMemory(PythonImage& image, Address frame, std::vector<Address> codes)
      : image_(image), frame_(frame), codes_(std::move(codes)) {}
  std::size_t read(std::span<const Region> regions, std::byte* into) override {
    std::size_t done = 0;
    for (const Region& region : regions) {
      image_.put(frame_ + image_.target.layout.code, codes_[copies_++ % codes_.size()]);
      if (image_.memory.read({&region, 1}, into + done) < region.size) return done;
      done += region.size;
    }
    return done;
  }

 private:
  PythonImage& image_;
  Address frame_;
  std::vector<Address> codes_;
  std::size_t copies_ = 0;
};

TEST_P(Walk, AFrameAboveOneThatChangedIsNotTakenForItsCallee) {
  const Address caller = image_.frame(image_.code("caller"), image_.frame(image_.code("main"), 0));
  image_.thread(image_.frame(image_.code("leaf"), caller), 1);
  std::vector<Address> codes;
  constexpr int kCodes = 97;
  for (int i = 0; i < kCodes; ++i) codes.push_back(image_.code("caller" + std::to_string(i)));
  ChangingMemory memory(image_, caller, codes);
  StackWalker walker(memory, image_.target);
  for (int i = 0; i < 20; ++i) {
    walker.look(look_);
    ASSERT_EQ(look_.threads.size(), 1U);
    EXPECT_EQ(look_.threads[0].stack, Stack::kRejected);
  }
}

TEST_P(Walk, AFrameThatRunsItselfDidNotCallTheOneAboveIt) {
  const Layout& layout = image_.target.layout;
  if (layout.stack_top == Layout::kNone) return;
  const Address main = image_.frame(image_.code("main"), 0), f = image_.frame(image_.code("f"), main);
  const Address thread = image_.thread(f, 1);
  image_.put(main + layout.stack_top, std::int32_t{-1});
  StackWalker walker(image_.memory, image_.target);
  walker.look(look_);
  EXPECT_EQ(look_.threads[0].stack, Stack::kRejected);
  image_.put(main + layout.stack_top, std::int32_t{2});
  walker.look(look_);
  EXPECT_EQ(look_.threads[0].stack, Stack::kRead);
  // C that it runs may call Python.
  image_.put(main + layout.stack_top, std::int32_t{-1});
  const Address g = layout.entry == Layout::kNone ? image_.frame(image_.code("g"), image_.frame(0, main, 3))
                                                  : image_.frame(image_.code("g"), main);
  if (layout.entry != Layout::kNone) image_.put(g + layout.entry, std::uint8_t{1});
  image_.set_top(thread, g);
  walker.look(look_);
  ASSERT_EQ(look_.threads[0].stack, Stack::kRead);
  EXPECT_THAT(texts(walker, look_.threads[0]), ElementsAre("main (t.py:1)", "g (t.py:1)"));
}

TEST_P(Walk, AGeneratorThatWasJustLeftIsNoStack) {
  const Address code = image_.code("numbers");
  constexpr std::uint32_t kGenerator = 0x20;
  image_.put(code + image_.target.layout.flags, kGenerator);
  image_.thread(image_.frame(code, 0), 1);
  image_.thread(image_.frame(code, image_.frame(image_.code("consume"), 0)), 2);
  StackWalker walker(image_.memory, image_.target);
  walker.look(look_);
  EXPECT_EQ(look_.threads[0].stack, Stack::kRejected);
  EXPECT_EQ(look_.threads[1].stack, Stack::kRead);
}

TEST(Layouts, AreKnownUpTo312AndPublishedAfter) {
  for (int minor = 8; minor <= 12; ++minor) EXPECT_TRUE(known_layout(minor)) << minor;
  EXPECT_FALSE(known_layout(7));
  EXPECT_FALSE(known_layout(13));
  EXPECT_EQ(minor_of_version(0x030b07f0), 11);
  EXPECT_FALSE(minor_of_version(0x020712f0));
  EXPECT_FALSE(minor_of_version(0x55550000030b07f0));
}

TEST(Layouts, WhatIsPublishedIsCheckedBeforeItIsUsed) {
  std::vector<std::byte> head(kDebugOffsetsBytes);
  EXPECT_EQ(published_layout(head).error().code, Errc::kNotFound);
  EXPECT_EQ(published_layout(std::span(head).first(8)).error().code, Errc::kNotFound);
  std::memcpy(head.data(), "xdebugpy", 8);
  EXPECT_EQ(published_layout(head).error().code, Errc::kCorrupt);
  const auto put = [&](std::size_t word, std::uint64_t value) { std::memcpy(head.data() + 8 * word, &value, 8); };
  put(1, 0x030f00f0);
  EXPECT_EQ(published_layout(head).error().code, Errc::kUnsupported);
  put(1, 0x030e0af0);
  EXPECT_EQ(published_layout(head).error().code, Errc::kCorrupt);  // every offset is 0
  put(2, 1);
  EXPECT_THAT(published_layout(head).error().what, testing::HasSubstr("free-threaded"));
}

}  // namespace
}  // namespace headroom::python
