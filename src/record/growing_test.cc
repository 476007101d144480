// SPDX-License-Identifier: Apache-2.0
#include "record/growing.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "base/fd.h"
#include "base/sqlite.h"
#include "record/random_recording.h"
#include "record/reader.h"
#include "record/writer.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

// Hands on to a writer, and calls back every few calls.
class Interrupted final : public RecordingSink {
 public:
  Interrupted(Writer& writer, std::function<void()> look) : writer_(writer), look_(std::move(look)) {}
  SourceId add_source(const Source& source) override { return after(writer_.add_source(source)); }
  void add_row(SourceId source, Nanos at, std::span<const Cell> cells) override {
    writer_.add_row(source, at, cells);
    look_();
  }
  TextId intern(std::string_view text) override { return after(writer_.intern(text)); }
  ListId intern_list(std::span<const TextId> texts) override { return after(writer_.intern_list(texts)); }
  void add_list_row(SourceId source, const ListRow& row) override {
    writer_.add_list_row(source, row);
    look_();
  }
  void add_event(const Event& event) override {
    writer_.add_event(event);
    look_();
  }
  void add_loss(const Loss& loss) override {
    writer_.add_loss(loss);
    look_();
  }
  void set_meta(const RecordingMeta& meta) override { writer_.set_meta(meta); }

 private:
  template <class Id>
  Id after(Id id) {
    look_();
    return id;
  }
  Writer& writer_;
  std::function<void()> look_;
};

class GrowingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) /
              (std::string("growing_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string file(const std::string& name) const { return (folder_ / name).string(); }

  // What there is now, read both ways.
  static void expect_the_same(GrowingRecording& growing, const std::string& path, const std::string& when) {
    const auto anew = read_recording(path);
    const auto on = growing.read_on();
    ASSERT_EQ(anew.has_value(), on.has_value()) << when << (on ? "" : on.error().what);
    if (anew) {
      ASSERT_EQ(in_order(growing.recording()), in_order(*anew)) << when;
    }
  }
  static Recording in_order(Recording recording) {
    for (Track& track : recording.tracks)
      std::sort(track.columns.begin(), track.columns.end(),
                [](const Column& x, const Column& y) { return x.metric < y.metric; });
    return recording;
  }
  static void change(const std::string& path, const char* sql) {
    auto database = Database::open(path, Access::kReadWrite);
    ASSERT_TRUE(database);
    const auto done = database->execute(sql);
    ASSERT_TRUE(done) << done.error().what;
  }
  // Three seconds of one GPU, so many rows.
  static std::unique_ptr<Writer> begun(const std::string& path, int rows, const char* id = "0123456789abcdef") {
    WriterOptions options;
    options.chunk_rows = 10;
    auto writer = Writer::create(path, options);
    EXPECT_TRUE(writer);
    (*writer)->set_meta({.id = id, .origin = "record", .start = 0, .end = 0, .interval = 1});
    (void)(*writer)->add_source({SourceKind::kGpu, "GPU-1", kNoSource, {}});
    add(**writer, 0, rows);
    return std::move(*writer);
  }
  static void add(Writer& writer, int from, int to) {
    for (int i = from; i < to; ++i) {
      const Cell cell{Metric::kPower, 100 + i, std::nullopt};
      writer.add_row(0, i, std::span(&cell, 1));
      if (i % 7 == 0) {
        EXPECT_TRUE(writer.flush());
      }
    }
    EXPECT_TRUE(writer.flush());
  }
  fs::path folder_;
};

TEST_F(GrowingTest, AtEveryPrefixItIsWhatAWholeReadGives) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    testing::RandomRecording random(seed);
    const Recording original = random.make(60);
    const std::string path = file(fmt::format("{}.hrec", seed));
    WriterOptions options;
    options.chunk_rows = 1 + random.below(20);
    options.process_chunk_rows = 1 + random.below(20);
    options.when_full = WriterOptions::WhenFull::kWait;
    auto writer = Writer::create(path, options);
    ASSERT_TRUE(writer);
    GrowingRecording growing(path);
    std::size_t calls = 0, next = 0;
    Interrupted sink(**writer, [&] {
      if (HasFatalFailure() || ++calls < next) return;
      next = calls + random.below(40);
      ASSERT_TRUE((*writer)->flush());
      expect_the_same(growing, path, fmt::format("seed {}, {} calls", seed, calls));
    });
    replay(original, sink);
    ASSERT_FALSE(HasFatalFailure());
    ASSERT_TRUE((*writer)->close());
    expect_the_same(growing, path, fmt::format("seed {}, closed", seed));
    EXPECT_EQ(growing.recording().meta.stop_reason, original.meta.stop_reason);
  }
}

TEST_F(GrowingTest, ColumnsThatAreLeftOutStayOut) {
  const std::string path = file("out.hrec");
  const auto writer = begun(path, 25);
  const std::array out{Metric::kPower};
  GrowingRecording growing(path, out);
  ASSERT_TRUE(growing.read_on());
  add(*writer, 25, 50);
  ASSERT_TRUE(growing.read_on());
  EXPECT_EQ(growing.recording().tracks[0].at.size(), 50U);
  EXPECT_EQ(growing.recording().tracks[0].find(Metric::kPower), nullptr);
}

TEST_F(GrowingTest, WhatIsForgottenStaysSoUntilAllIsReadAnew) {
  for (unsigned seed = 0; seed < 6; ++seed) {
    testing::RandomRecording random(seed);
    const Recording original = random.make(60);
    const std::string path = file(fmt::format("forgets{}.hrec", seed));
    WriterOptions options;
    options.chunk_rows = 1 + random.below(20);
    options.when_full = WriterOptions::WhenFull::kWait;
    auto writer = Writer::create(path, options);
    ASSERT_TRUE(writer);
    GrowingRecording growing(path);
    std::size_t calls = 0;
    Interrupted sink(**writer, [&] {
      if (HasFatalFailure() || ++calls % 17 != 0) return;
      ASSERT_TRUE((*writer)->flush());
      ASSERT_TRUE(growing.read_on());
      const Recording before = growing.recording();
      const Nanos instant = before.meta.start + (before.meta.end - before.meta.start) / 3;
      growing.forget_before(instant);
      Recording whole = *read_recording(path);
      forget_before(whole, instant);
      Recording kept = growing.recording();
      whole.losses.clear();  // rows that the writer has not written yet are missing: said in other words
      kept.losses.clear();
      ASSERT_EQ(in_order(kept), in_order(whole)) << "seed " << seed;
    });
    replay(original, sink);
    ASSERT_FALSE(HasFatalFailure());
    ASSERT_TRUE((*writer)->close());
    growing.remember();
    expect_the_same(growing, path, fmt::format("seed {}, remembered", seed));
    EXPECT_EQ(growing.begin(), growing.recording().meta.start);
  }
}

TEST_F(GrowingTest, WhatChangesIsReadAgain) {
  const std::string path = file("changes.hrec");
  const auto writer = begun(path, 25);
  GrowingRecording growing(path);
  ASSERT_TRUE(growing.read_on());
  (void)writer->add_source({SourceKind::kGpu, "GPU-1", kNoSource, {{"name", "told later"}}});
  (void)writer->add_source({SourceKind::kHost, "host", kNoSource, {}});
  writer->add_event({.at = 12, .kind = "late"});
  ASSERT_TRUE(writer->flush());
  writer->add_event({.at = 3, .kind = "earlier"});
  ASSERT_TRUE(growing.read_on());
  expect_the_same(growing, path, "one event");
  writer->set_meta({.id = "0123456789abcdef", .origin = "run", .end = 99, .interval = 1});
  ASSERT_TRUE(writer->flush());
  expect_the_same(growing, path, "two events");
  EXPECT_EQ(growing.recording().sources[0].attrs.at("name"), "told later");
  EXPECT_EQ(growing.recording().events[0].kind, "earlier");
  EXPECT_EQ(growing.recording().meta.origin, "run");
}

TEST_F(GrowingTest, AnotherRecordingInItsPlaceIsNotTakenForIt) {
  const std::string path = file("one.hrec");
  const auto writer = begun(path, 25);
  GrowingRecording growing(path);
  ASSERT_TRUE(growing.read_on());
  const Recording before = growing.recording();
  fs::remove(path + "-wal");
  fs::remove(path);
  const auto other = begun(path, 5, "fedcba9876543210");
  const auto again = growing.read_on();
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Errc::kNotFound);
  EXPECT_EQ(growing.recording(), before);
  fs::remove(path);
  EXPECT_FALSE(growing.read_on());
  EXPECT_EQ(growing.recording(), before);
}

TEST_F(GrowingTest, AnOlderCopyOverItIsReadAnew) {
  const std::string path = file("live.hrec"), looked_at = file("looked_at.hrec");
  const auto writer = begun(path, 3);
  std::vector<std::string> copies;
  for (int rows = 3; rows < 60; rows += 7) {
    copies.push_back(file(fmt::format("{}.hrec", rows)));
    ASSERT_TRUE(copy_recording(path, copies.back()));
    add(*writer, rows, rows + 7);
  }
  const auto put = [&](const std::string& copy) {
    const auto bytes = read_file(copy);
    ASSERT_TRUE(bytes);
    ASSERT_TRUE(write_file(looked_at, *bytes));
  };
  for (const std::string& later : copies)
    for (const std::string& earlier : copies) {
      put(later);
      GrowingRecording growing(looked_at);
      ASSERT_TRUE(growing.read_on());
      put(earlier);
      expect_the_same(growing, looked_at, later + " then " + earlier);
    }
}

TEST_F(GrowingTest, CutDamagedAndRecoveredFilesAreReadAsAlways) {
  const std::string path = file("whole.hrec"), part = file("part.hrec");
  {
    const auto writer = begun(path, 200);
    ASSERT_TRUE(writer->close());
  }
  const auto size = fs::file_size(path);
  fs::copy_file(path, part);
  GrowingRecording growing(part);
  ASSERT_TRUE(growing.read_on());
  for (auto left = size; left > 2000; left -= 1500) {
    fs::resize_file(part, left);
    const auto anew = read_recording(part);
    EXPECT_EQ(growing.read_on().has_value(), anew.has_value()) << left;
    if (anew) {
      EXPECT_EQ(in_order(growing.recording()), in_order(*anew)) << left;
    }
  }
  fs::copy_file(path, part, fs::copy_options::overwrite_existing);
  expect_the_same(growing, part, "whole again");
  change(part, "UPDATE chunk SET body=substr(body, 1, 9) || x'ff' || substr(body, 11) WHERE id=3");
  GrowingRecording damaged(part);
  for (int look = 0; look < 3; ++look) expect_the_same(damaged, part, "damaged");
  EXPECT_EQ(std::count_if(damaged.recording().losses.begin(), damaged.recording().losses.end(),
                          [](const Loss& loss) { return loss.what == "damaged_chunk" && loss.count == 1; }),
            1);
  fs::copy_file(path, part, fs::copy_options::overwrite_existing);
  ASSERT_TRUE(growing.read_on());
  change(part,
         "UPDATE meta SET value='recording' WHERE key='state'; UPDATE meta SET value='boot/1/1' WHERE key='owner'");
  expect_the_same(growing, part, "its writer is gone");
  EXPECT_EQ(growing.recording().meta.stop_reason, "recovered");
}

}  // namespace
}  // namespace headroom
