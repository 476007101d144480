// SPDX-License-Identifier: Apache-2.0
#include "record/lists.h"

#include <gmock/gmock.h>

#include <array>
#include <filesystem>
#include <iostream>
#include <random>

#include "base/fd.h"
#include "base/filesystem.h"
#include "base/sqlite.h"
#include "base/testing.h"
#include "base/varint.h"
#include "record/codec.h"
#include "record/reader.h"
#include "record/writer.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ListsTest : public ::testing::Test {
 protected:
  ListsTest() {
    std::string name = (fs::temp_directory_path() / "headroom-lists-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~ListsTest() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string file(const std::string& name = "a.hrec") const { return (folder_ / name).string(); }

  static void change(const std::string& path, const char* sql) {
    auto database = Database::open(path, Access::kReadWrite);
    ASSERT_TRUE(database);
    const auto done = database->execute(sql);
    ASSERT_TRUE(done) << done.error().what;
  }
  static Recording read(const std::string& path) {
    auto recording = read_recording(path);
    EXPECT_TRUE(recording) << (recording ? "" : recording.error().what);
    return recording ? std::move(*recording) : Recording();
  }
  // A process with 3 rows, 40 list rows of two stacks in two flushes, and a mark with a number.
  [[nodiscard]] std::string record(const std::string& name = "a.hrec") const {
    auto writer = Writer::create(file(name));
    EXPECT_TRUE(writer);
    const SourceId process = (*writer)->add_source({SourceKind::kProcess, "7/1", kNoSource, {}});
    for (int i = 0; i < 3; ++i)
      (*writer)->add_row(process, i * kSecond, std::array{Cell{Metric::kRss, i, std::nullopt}});
    const TextId main = (*writer)->intern("main (train.py)"), step = (*writer)->intern("step (train.py)");
    const std::array frames{main, step};
    for (int i = 0; i < 40; ++i) {
      const bool deep = i % 3 == 0;
      const ListId stack = (*writer)->intern_list(std::span(frames).first(deep ? std::size_t{2} : std::size_t{1}));
      (*writer)->add_list_row(process, {i * 50 * kMillisecond, stack, 0});
      if (i == 20) {
        EXPECT_TRUE((*writer)->flush());
      }
    }
    const TextId epoch = (*writer)->intern("epoch");
    (*writer)->add_list_row(process, {3 * kSecond, (*writer)->intern_list(std::array{epoch}), -4});
    EXPECT_TRUE((*writer)->close());
    return file(name);
  }
  fs::path folder_;
};

TEST_F(ListsTest, WhatIsWrittenIsRead) {
  const Recording recording = read(record());
  EXPECT_THAT(recording.losses, IsEmpty());
  EXPECT_THAT(recording.texts, ElementsAre("main (train.py)", "step (train.py)", "epoch"));
  ASSERT_THAT(recording.lists, ElementsAre(ElementsAre(0U, 1U), ElementsAre(0U), ElementsAre(2U)));
  const auto& rows = recording.tracks.at(0).lists;
  ASSERT_EQ(rows.size(), 41U);
  for (int i = 0; i < 40; ++i)
    EXPECT_EQ(rows[static_cast<std::size_t>(i)], (ListRow{i * 50 * kMillisecond, i % 3 == 0 ? 0U : 1U, 0}));
  EXPECT_EQ(rows[40], (ListRow{3 * kSecond, 2, -4}));
  EXPECT_EQ(recording.tracks[0].at.size(), 3U);
}

TEST_F(ListsTest, AFileWithoutListsHasNoTablesOfTheirs) {
  auto writer = Writer::create(file());
  ASSERT_TRUE((*writer)->close());
  auto database = Database::open(file(), Access::kReadOnly);
  ASSERT_TRUE(database);
  EXPECT_EQ(database->number("SELECT count(*) FROM sqlite_schema WHERE name IN ('text', 'list', 'list_rows')"), 0);
}

// What minor version 0 wrote, byte for byte.
TEST_F(ListsTest, ARecordingOfTheFirstMinorVersionIsRead) {
  const std::string old = in_checkout("tests/recordings/minor0.hrec");
  fs::copy_file(old, file());  // SQLite may want to write beside it
  const Recording recording = read(file());
  EXPECT_EQ(recording.meta.id, "0123456789abcdef");
  ASSERT_EQ(recording.sources.size(), 2U);
  EXPECT_THAT(recording.tracks[0].at, ElementsAre(2 * kSecond, 3 * kSecond));
  EXPECT_EQ(recording.tracks[0].find(Metric::kPower)->values[1], 591'500);
  EXPECT_EQ(recording.tracks[0].find(Metric::kFan)->at(0).error(), Absent::kNotSupported);
  EXPECT_THAT(recording.events,
              ElementsAre(Event{1'500'000'000, {}, "job_start", 0, {{"pid", "7"}}},
                          Event{2'500'000'000, {}, "of_a_newer_program", kNoSource, {{"what", "this"}}}));
  EXPECT_THAT(recording.losses, ElementsAre(Loss{"late_tick", 2, Severity::kNotice, "at 12 s"},
                                            Loss{"of_a_newer_program", 1, Severity::kDataLoss, "x"}));
}

// A reader of minor version 0 knows neither the tables nor the column: as if they had names of a later version still.
TEST_F(ListsTest, AnOlderReaderSkipsAndCountsWhatItDoesNotKnow) {
  const std::string path = record();
  const Recording whole = read(path);
  change(path,
         "ALTER TABLE text RENAME TO text_of_tomorrow; ALTER TABLE list RENAME TO list_of_tomorrow;"
         "ALTER TABLE list_rows RENAME TO rows_of_tomorrow; ALTER TABLE loss RENAME COLUMN places TO ranges");
  const Recording part = read(path);
  EXPECT_EQ(part.tracks.at(0).at, whole.tracks.at(0).at);
  EXPECT_EQ(part.tracks[0].columns, whole.tracks[0].columns);
  EXPECT_THAT(part.tracks[0].lists, IsEmpty());
  ASSERT_EQ(part.losses.size(), 1U);
  EXPECT_EQ(part.losses[0].what, "unknown_table");
  EXPECT_EQ(part.losses[0].count, 3);
}

TEST_F(ListsTest, ADamagedPartCostsItselfAndSaysSo) {
  const auto lost = [&](const char* sql, std::string_view what) {
    const std::string path = record(std::to_string(std::hash<std::string>()(sql)) + ".hrec");
    change(path, sql);
    const Recording recording = read(path);
    EXPECT_EQ(recording.tracks.at(0).at.size(), 3U) << sql;
    std::int64_t count = 0;
    for (const Loss& loss : recording.losses)
      if (loss.what == what) count = loss.count;
    EXPECT_GT(count, 0) << sql;
    return recording.tracks[0].lists.size();
  };
  EXPECT_EQ(lost("UPDATE list_rows SET body=x'00112233' WHERE id=1", "damaged_chunk"), 20U);
  EXPECT_EQ(lost("UPDATE list_rows SET fmt=9 WHERE id=1", "damaged_chunk"), 20U);
  EXPECT_EQ(lost("UPDATE list_rows SET n=n+1 WHERE id=1", "damaged_chunk"), 20U);
  EXPECT_EQ(lost("UPDATE list SET body=x'' WHERE id=0", "missing_rows"), 1U) << "rows of lists that are not there";
  EXPECT_EQ(lost("DELETE FROM text WHERE id=1", "missing_rows"), 27U) << "the deep stacks";
  EXPECT_EQ(lost("UPDATE list_rows SET source=99 WHERE id=2", "unknown_source"), 21U);
}

// Numbers of lists may have gaps, where some could not be read, and need not begin at 0.
TEST_F(ListsTest, ListsAreFoundByWhateverNumbersTheyHave) {
  const std::string path = record();
  const Recording whole = read(path);
  std::vector<ListRow> rows = whole.tracks.at(0).lists;
  change(path, "DELETE FROM list WHERE id=0");
  EXPECT_THAT(read(path).tracks.at(0).lists, ElementsAre(ListRow{3 * kSecond, 0, -4})) << "the others are gone";
  const std::string far = record("far.hrec");
  change(far, "UPDATE list SET id=id+1000000007 WHERE id>0");
  rows.pop_back();
  EXPECT_EQ(read(far).tracks.at(0).lists, rows);
}

TEST_F(ListsTest, RowsThatCannotBeKeptAreCounted) {
  auto writer = Writer::create(file());
  const SourceId process = (*writer)->add_source({SourceKind::kProcess, "7/1", kNoSource, {}});
  const ListId list = (*writer)->intern_list({});
  (*writer)->add_list_row(process, {20, list, 0});
  (*writer)->add_list_row(process, {10, list, 0});
  (*writer)->add_list_row(process, {30, kNoList, 0});
  ASSERT_TRUE((*writer)->close());
  const Recording recording = read(file());
  EXPECT_THAT(recording.tracks.at(0).lists, ElementsAre(ListRow{20, 0, 0}));
  ASSERT_EQ(recording.losses.size(), 2U);
  EXPECT_EQ(recording.losses[0].what, "row_out_of_order");
  EXPECT_EQ(recording.losses[1].what, "row_not_recorded");
  EXPECT_THAT(recording.losses[1].places, ElementsAre(LossPlace{30, 30, process}));
}

TEST_F(ListsTest, CutAnywhereTheyNeverCrashAndNeverInvent) {
  const std::string path = record();
  const Recording whole = read(path);
  // Whole pages: SQLite fills a part of one with zeros, and a leaf of zeros may pass for an empty table.
  for (auto size = fs::file_size(path); size > 0; size -= 1024) {
    fs::resize_file(path, size);
    const auto part = read_recording(path);
    if (!part || part->tracks.empty()) continue;
    const bool less = part->tracks[0].lists.size() < whole.tracks[0].lists.size();
    ASSERT_LE(part->tracks[0].lists.size(), whole.tracks[0].lists.size());
    ASSERT_TRUE(!less || !part->losses.empty()) << "said nothing at " << size;
  }
}

TEST(ListBodies, AreNotTrusted) {
  std::mt19937 random(3);
  std::vector<StoredListRow> rows;
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes(random() % 40, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random() % (round % 2 == 0 ? 4 : 256));
    std::string body;
    put_u32(body, checksum(bytes));
    body += bytes;
    (void)decode_lists(body, random() % 20);
    (void)decode_list_rows(body, random() % 20, rows);
  }
  EXPECT_FALSE(decode_lists("", 0));
  EXPECT_FALSE(decode_list_rows("", UINT64_MAX, rows));
}

TEST(ListBodies, ARowsNumberHas32Bits) {
  const auto row_with = [](std::int64_t number) {
    std::string bytes;
    put_varint(bytes, 1);
    put_signed(bytes, 7 * kSecond);
    put_signed(bytes, 0);
    put_varint(bytes, 3 * 2 + 1);
    put_signed(bytes, number);
    std::string body;
    put_u32(body, checksum(bytes));
    return body + bytes;
  };
  std::vector<StoredListRow> rows;
  for (const std::int64_t good : {std::int64_t{INT32_MIN}, std::int64_t{INT32_MAX}}) {
    ASSERT_TRUE(decode_list_rows(row_with(good), 1, rows));
    EXPECT_EQ(rows.at(0).value, good);
  }
  for (const std::int64_t bad : {std::int64_t{INT32_MIN} - 1, std::int64_t{INT32_MAX} + 1, INT64_MAX})
    EXPECT_FALSE(decode_list_rows(row_with(bad), 1, rows)) << bad;
}

// 20 frames at 50 Hz, half a millisecond of jitter: 300 stacks, most of them seldom. docs/recording-format.md quotes
// it.
TEST_F(ListsTest, AStackThatRepeatsTakesTwelveBytes) {
  constexpr int kRows = 30'000, kFlush = 100;
  std::mt19937 random(1);
  auto writer = Writer::create(file());
  const SourceId process = (*writer)->add_source({SourceKind::kProcess, "7/1", kNoSource, {}});
  ASSERT_TRUE((*writer)->flush());
  std::vector<std::vector<TextId>> stacks(300);
  std::vector<TextId> frames;
  for (int i = 0; i < 400; ++i)
    frames.push_back((*writer)->intern("package.module_" + std::to_string(i / 20) + ".function_" + std::to_string(i) +
                                       " (/usr/lib/python3/dist-packages/package/module_" + std::to_string(i / 20) +
                                       ".py)"));
  for (std::size_t i = 0; i < stacks.size(); ++i)
    for (std::size_t depth = 0; depth < 20; ++depth)
      stacks[i].push_back(depth < 12 ? frames[depth + i / 60] : frames[random() % frames.size()]);
  std::geometric_distribution<std::size_t> often(0.02);
  for (int i = 0; i < kRows; ++i) {
    const Nanos at = i * 20 * kMillisecond + static_cast<Nanos>(random() % 500) * kMicrosecond;
    (*writer)->add_list_row(process, {at, (*writer)->intern_list(stacks[often(random) % stacks.size()]), 0});
    if (i % kFlush == 0) {
      ASSERT_TRUE((*writer)->flush());
    }
  }
  ASSERT_TRUE((*writer)->close());
  auto empty = Writer::create(file("empty.hrec"));
  ASSERT_TRUE((*empty)->close());
  const auto bytes = static_cast<double>(fs::file_size(file()) - fs::file_size(file("empty.hrec")));
  std::cout << bytes / kRows << " bytes per stack of 20 frames, dictionary included\n";
  EXPECT_LE(bytes / kRows, 12.0);
  EXPECT_EQ(read(file()).tracks.at(0).lists.size(), std::size_t{kRows});
}

}  // namespace
}  // namespace headroom
