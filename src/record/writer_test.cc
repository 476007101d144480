// SPDX-License-Identifier: Apache-2.0
#include "record/writer.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <random>
#include <thread>

#include "base/sqlite.h"
#include "record/random_recording.h"
#include "record/reader.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

class WriterTest : public ::testing::Test {
 protected:
  WriterTest() {
    std::string name = (fs::temp_directory_path() / "headroom-writer-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~WriterTest() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string file(const std::string& name = "a.hrec") const { return (folder_ / name).string(); }

  static std::unique_ptr<Writer> create(const std::string& path, WriterOptions options = {}) {
    auto writer = Writer::create(path, options);
    EXPECT_TRUE(writer) << (writer ? "" : writer.error().what);
    return writer ? std::move(*writer) : nullptr;
  }
  static Recording read(const std::string& path) {
    auto recording = read_recording(path);
    EXPECT_TRUE(recording) << (recording ? "" : recording.error().what);
    return recording ? std::move(*recording) : Recording{};
  }
  static std::int64_t number(const std::string& path, const char* sql) {
    auto database = Database::open(path, Access::kReadOnly);
    EXPECT_TRUE(database);
    return database->number(sql).value_or(-1);
  }

  fs::path folder_;
};

Cell power(std::int64_t value) { return {Metric::kPower, value, std::nullopt}; }

TEST_F(WriterTest, RandomRecordingsComeBackWhole) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    const Recording original = testing::RandomRecording(seed).make();
    const std::string path = file(fmt::format("{}.hrec", seed));
    WriterOptions options;
    options.chunk_rows = 1 + seed % 100;
    options.process_chunk_rows = 16;
    options.flush_bytes = 1 + seed * 97;
    options.when_full = WriterOptions::WhenFull::kWait;
    const auto writer = create(path, options);
    replay(original, *writer);
    ASSERT_TRUE(writer->flush());
    EXPECT_EQ(read(path).tracks, original.tracks) << "while it is open, seed " << seed;
    ASSERT_TRUE(writer->close());
    ASSERT_EQ(read(path), original) << "seed " << seed;
    EXPECT_FALSE(fs::exists(path + "-wal"));
    EXPECT_FALSE(fs::exists(path + "-shm"));
  }
}

TEST_F(WriterTest, RowsMoveFromTheTailToChunks) {
  WriterOptions options;
  options.chunk_rows = 10;
  const auto writer = create(file(), options);
  const SourceId gpu = writer->add_source({SourceKind::kGpu, "GPU-1", kNoSource, {}});
  const SourceId slow = writer->add_source({SourceKind::kHost, "host", kNoSource, {}});
  for (int i = 0; i < 25; ++i) {
    writer->add_row(gpu, i * kSecond, std::array{power(i)});
    if (i % 10 == 0) writer->add_row(slow, i * kSecond, std::array{power(i)});
    ASSERT_TRUE(writer->flush());
    const Recording now = read(file());
    ASSERT_EQ(now.tracks[0].at.size(), static_cast<std::size_t>(i + 1)) << "never twice, never hidden";
    ASSERT_EQ(now.tracks[0].columns[0].values.back(), i);
    ASSERT_TRUE(now.losses.empty());
  }
  EXPECT_EQ(number(file(), "SELECT count(*) FROM chunk"), 2);
  ASSERT_TRUE(writer->close());
  EXPECT_EQ(number(file(), "SELECT count(*) FROM tail"), 0);
  EXPECT_EQ(number(file(), "SELECT count(*) FROM chunk"), 4);
}

TEST_F(WriterTest, FactsOfASourceAreMerged) {
  const auto writer = create(file());
  const SourceId gpu = writer->add_source({SourceKind::kGpu, "GPU-1", kNoSource, {{"index", "0"}, {"name", "old"}}});
  ASSERT_TRUE(writer->flush());
  EXPECT_EQ(writer->add_source({SourceKind::kGpu, "GPU-1", kNoSource, {{"name", "new"}, {"given", "true"}}}), gpu);
  ASSERT_TRUE(writer->close());
  EXPECT_EQ(read(file()).sources[0].attrs, (Attrs{{"index", "0"}, {"name", "new"}, {"given", "true"}}));
}

// T13: two recorders on one file; and nobody's recording is overwritten.
TEST_F(WriterTest, AFileThatExistsIsRefused) {
  const auto first = create(file());
  const auto second = Writer::create(file());
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::kBusy);
  ASSERT_TRUE(first->close());
  EXPECT_FALSE(Writer::create(file()));
}

TEST_F(WriterTest, AnEventThatMattersIsFlushedAtOnce) {
  WriterOptions options;
  options.flush_interval = 3600 * kSecond;
  const auto writer = create(file(), options);
  writer->add_event({5, std::nullopt, "job_start", kNoSource, {{"pid", "7"}}});
  for (int i = 0; i < 200 && writer->status().flushes == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ASSERT_EQ(writer->status().flushes, 1);
  EXPECT_EQ(read(file()).events.at(0).kind, "job_start");
}

TEST_F(WriterTest, RowsThatGoBackInTimeAreCountedNotWritten) {
  const auto writer = create(file());
  const SourceId gpu = writer->add_source({SourceKind::kGpu, "GPU-1", kNoSource, {}});
  writer->add_row(gpu, 100, std::array{power(1)});
  writer->add_row(gpu, 99, std::array{power(2)});
  ASSERT_TRUE(writer->close());
  const Recording recording = read(file());
  EXPECT_EQ(recording.tracks[0].at, (std::vector<Nanos>{100}));
  ASSERT_EQ(recording.losses.size(), 1U);
  EXPECT_EQ(recording.losses[0].what, "row_out_of_order");
}

TEST_F(WriterTest, TooLittleRoomStopsWithOneMessageAndAReadableFile) {
  WriterOptions options;
  const auto writer = create(file(), options);
  const SourceId gpu = writer->add_source({SourceKind::kGpu, "GPU-1", kNoSource, {}});
  writer->add_row(gpu, 1, std::array{power(1)});
  ASSERT_TRUE(writer->close());
  options.min_free_bytes = ~std::uint64_t{0};
  const auto refused = Writer::create(file("b.hrec"), options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kNoSpace);
  EXPECT_FALSE(fs::exists(file("b.hrec")));
}

// T10: without shared memory the file is the recorder's alone, and says so to others; afterwards anyone can read it.
TEST_F(WriterTest, ExclusiveModeNeedsNoSharedMemory) {
  WriterOptions options;
  options.exclusive = true;
  const auto writer = create(file(), options);
  const SourceId gpu = writer->add_source({SourceKind::kGpu, "GPU-1", kNoSource, {}});
  for (int i = 0; i < 300; ++i) writer->add_row(gpu, i, std::array{power(i)});
  ASSERT_TRUE(writer->flush());
  EXPECT_FALSE(fs::exists(file() + "-shm"));
  const auto locked = read_recording(file());
  ASSERT_FALSE(locked);
  EXPECT_EQ(locked.error().code, Errc::kBusy);
  ASSERT_TRUE(writer->close());
  EXPECT_EQ(read(file()).tracks[0].at.size(), 300U);
}

// T7: a reader that looks while the recording is closed keeps the file in WAL mode; it must stay whole.
TEST_F(WriterTest, ClosingWithAReaderAttached) {
  const auto writer = create(file());
  const SourceId gpu = writer->add_source({SourceKind::kGpu, "GPU-1", kNoSource, {}});
  writer->add_row(gpu, 1, std::array{power(1)});
  ASSERT_TRUE(writer->flush());
  auto reader = Database::open(file(), Access::kReadOnly);
  ASSERT_TRUE(reader);
  ASSERT_TRUE(reader->execute("BEGIN"));
  ASSERT_EQ(reader->number("SELECT count(*) FROM tail").value_or(-1), 1);
  writer->add_row(gpu, 2, std::array{power(2)});
  ASSERT_TRUE(writer->close());
  EXPECT_EQ(reader->number("SELECT count(*) FROM tail").value_or(-1), 1) << "its snapshot stays";
  ASSERT_TRUE(reader->execute("COMMIT"));
  EXPECT_EQ(read(file()).tracks[0].at.size(), 2U);
  EXPECT_EQ(summarize(file())->state, FileState::kClosed);
}

TEST_F(WriterTest, ALongReaderDoesNotStopTheRecording) {
  const auto writer = create(file());
  const SourceId gpu = writer->add_source({SourceKind::kGpu, "GPU-1", kNoSource, {}});
  auto reader = Database::open(file(), Access::kReadOnly);
  ASSERT_TRUE(reader->execute("BEGIN"));
  ASSERT_EQ(reader->number("SELECT count(*) FROM chunk").value_or(-1), 0);
  std::mt19937_64 noise(1);
  constexpr std::int64_t kFlushes = 250, kRows = 400;
  for (std::int64_t i = 0; i < kFlushes * kRows; ++i) {
    writer->add_row(gpu, i, std::array{power(static_cast<std::int64_t>(noise()))});
    const bool due = i % kRows == 0;
    ASSERT_TRUE(!due || writer->flush());
  }
  ASSERT_TRUE(writer->flush());
  EXPECT_GT(writer->status().wal_bytes, 1 << 20) << "T2: the log grows, and the status says by how much";
  ASSERT_TRUE(reader->execute("COMMIT"));
  EXPECT_EQ(read(file()).tracks[0].at.size(), std::size_t{kFlushes * kRows});
}

}  // namespace
}  // namespace headroom
