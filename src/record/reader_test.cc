// SPDX-License-Identifier: Apache-2.0
#include "record/reader.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>

#include "base/fd.h"
#include "base/filesystem.h"
#include "base/sqlite.h"
#include "base/varint.h"
#include "record/codec.h"
#include "record/random_recording.h"
#include "record/shelf.h"
#include "record/writer.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

class ReaderTest : public ::testing::Test {
 protected:
  ReaderTest() {
    std::string name = (fs::temp_directory_path() / "headroom-reader-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~ReaderTest() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string file(const std::string& name = "a.hrec") const { return (folder_ / name).string(); }

  // Two GPUs, 40 rows each in chunks of 10, two metrics, an event and a loss.
  [[nodiscard]] std::string record(const std::string& name = "a.hrec") const {
    WriterOptions options;
    options.chunk_rows = 10;
    auto writer = Writer::create(file(name), options);
    EXPECT_TRUE(writer);
    RecordingMeta meta;
    meta.writer = "headroom 9.9.9";
    meta.command = {"python3", "train.py"};
    meta.start_realtime = 1'700'000'000 * kSecond;
    meta.end = 50;
    (*writer)->set_meta(meta);
    for (const char* key : {"GPU-1", "GPU-2"}) {
      const SourceId gpu = (*writer)->add_source({SourceKind::kGpu, key, kNoSource, {{"index", "0"}}});
      for (int i = 0; i < 40; ++i)
        (*writer)->add_row(gpu, i,
                           std::array{Cell{Metric::kPower, i * i, std::nullopt}, Cell{Metric::kFan, 5, std::nullopt}});
    }
    (*writer)->add_event({7, std::nullopt, "a_kind_of_tomorrow", 0, {{"a", "b"}}});
    (*writer)->add_loss({"late_tick", 3, Severity::kNotice, "x"});
    EXPECT_TRUE((*writer)->close());
    return file(name);
  }
  static void change(const std::string& path, const char* sql) {
    auto database = Database::open(path, Access::kReadWrite);
    ASSERT_TRUE(database);
    const auto done = database->execute(sql);
    ASSERT_TRUE(done) << done.error().what;
  }
  static const Loss* loss(const Recording& recording, std::string_view what) {
    for (const auto& loss : recording.losses)
      if (loss.what == what) return &loss;
    return nullptr;
  }
  fs::path folder_;
};

TEST_F(ReaderTest, ANewerMajorIsRefusedByName) {
  const std::string path = record();
  change(path, "PRAGMA user_version=2");
  const auto read = read_recording(path);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Errc::kUnsupported);
  EXPECT_NE(read.error().what.find("headroom 9.9.9"), std::string::npos) << read.error().what;
  change(path, "INSERT INTO meta VALUES('min_reader', 1)");
  EXPECT_TRUE(read_recording(path)) << "unless it says that we may";
}

TEST_F(ReaderTest, AdditionsOfANewerMinorAreSkippedAndCounted) {
  const std::string path = record();
  const Recording before = *read_recording(path);
  change(path,
         "CREATE TABLE hologram(x); ALTER TABLE chunk ADD COLUMN colour TEXT; ALTER TABLE meta ADD COLUMN more TEXT;"
         "INSERT INTO source VALUES(7, 'quantum', 'q', NULL, NULL);"
         "UPDATE series SET name='warp_factor' WHERE name='fan_ratio';"
         "INSERT INTO chunk(source, row0, t0, t1, n, fmt, head, body) VALUES(1, 40, 40, 49, 10, 9, x'00', x'00')");
  const auto after = read_recording(path);
  ASSERT_TRUE(after) << after.error().what;
  EXPECT_EQ(after->tracks[0].find(Metric::kPower)->values, before.tracks[0].find(Metric::kPower)->values);
  EXPECT_EQ(after->tracks[0].find(Metric::kFan), nullptr);
  EXPECT_EQ(after->sources, before.sources);
  for (const char* what : {"unknown_table", "unknown_source", "unknown_metric", "unknown_chunk_format"})
    EXPECT_NE(loss(*after, what), nullptr) << what;
}

TEST_F(ReaderTest, TheCopyOfABatchsJournalIsNoLoss) {
  const std::string path = record();
  change(path,
         "CREATE TABLE batch_meta(x); CREATE TABLE batch_run(x); CREATE TABLE batch_task(x); CREATE TABLE "
         "batch_attempt(x)");
  const auto recording = read_recording(path);
  ASSERT_TRUE(recording) << recording.error().what;
  EXPECT_EQ(loss(*recording, "unknown_table"), nullptr);
}

TEST_F(ReaderTest, AnotherPowerOfTenIsConverted) {
  const std::string path = record();
  change(path, "UPDATE series SET exp10=1 WHERE name='power_watts'");  // we keep 3
  EXPECT_EQ(read_recording(path)->tracks[0].find(Metric::kPower)->values[3], 900);
  change(path, "UPDATE series SET unit='horses' WHERE name='power_watts'");
  EXPECT_EQ(read_recording(path)->tracks[0].find(Metric::kPower), nullptr) << "another unit is another metric";
}

TEST_F(ReaderTest, AnUnknownCodecCostsItsColumnOnly) {
  const std::string path = record();
  auto database = Database::open(path, Access::kReadWrite);
  auto row = database->prepare("SELECT head, body FROM chunk WHERE source=0 AND row0=0");
  ASSERT_TRUE(row->step().value_or(false));
  std::string head(row->bytes(0));
  const std::string body(row->bytes(1));
  ByteReader reader(head);
  (void)reader.u32(), (void)reader.varint(), (void)reader.varint();  // checksum, size, columns
  (void)reader.varint(), (void)reader.varint(), (void)reader.varint(), (void)reader.varint();  // time, power's series
  head[head.size() - reader.left()] = 9;
  std::string fixed;
  put_u32(fixed, checksum(std::string_view(head).substr(4), body));
  fixed += head.substr(4);
  row->reset();
  auto update = database->prepare("UPDATE chunk SET head=?1 WHERE source=0 AND row0=0");
  update->bind_blob(1, fixed);
  ASSERT_TRUE(update->run());
  const auto after = read_recording(path);
  ASSERT_NE(loss(*after, "unknown_codec"), nullptr);
  EXPECT_EQ(after->tracks[0].at.size(), 40U);
  EXPECT_EQ(after->tracks[0].find(Metric::kPower)->at(3).error(), Absent::kNotSampled);
  EXPECT_EQ(after->tracks[0].find(Metric::kPower)->at(11), 121);
  EXPECT_EQ(after->tracks[0].find(Metric::kFan)->at(3), 5);
}

// T12: SQLite does not notice a flipped bit in a blob; we do, and lose that chunk only.
TEST_F(ReaderTest, ADamagedChunkIsLeftOutAndCounted) {
  const std::string path = record();
  change(path, "UPDATE chunk SET body=substr(body, 1, 9) || x'ff' || substr(body, 11) WHERE source=0 AND row0=10");
  const auto after = read_recording(path);
  ASSERT_TRUE(after);
  ASSERT_NE(loss(*after, "damaged_chunk"), nullptr);
  EXPECT_EQ(loss(*after, "missing_rows")->count, 10);
  EXPECT_EQ(after->tracks[0].at.size(), 30U);
  EXPECT_EQ(after->tracks[0].at[10], 20);
  EXPECT_EQ(after->tracks[1].at.size(), 40U);
}

TEST_F(ReaderTest, TheSameRowsTwiceAreReadOnce) {
  const std::string path = record();
  change(path,
         "DROP INDEX chunk_source; INSERT INTO chunk(source, row0, t0, t1, n, fmt, head, body) "
         "SELECT source, row0, t0, t1, n, fmt, head, body FROM chunk WHERE source=0");
  EXPECT_EQ(read_recording(path)->tracks[0].at.size(), 40U);
}

TEST_F(ReaderTest, OtherFilesAreRefusedWithTheirName) {
  EXPECT_EQ(read_recording(file("none")).error().code, Errc::kNotFound);
  ASSERT_TRUE(write_file(file("text"), std::string(5000, 'x')));
  EXPECT_EQ(read_recording(file("text")).error().code, Errc::kInvalidInput);
  ASSERT_TRUE(write_file(file("empty"), ""));
  EXPECT_NE(read_recording(file("empty")).error().what.find("empty"), std::string::npos);
  EXPECT_EQ(read_recording(folder_.string()).error().code, Errc::kInvalidInput);
  change(file("other.db"), "CREATE TABLE t(x)");
  EXPECT_EQ(read_recording(file("other.db")).error().code, Errc::kInvalidInput);
  const std::string path = record();
  change(path, "ALTER TABLE chunk RENAME TO c; CREATE VIEW chunk AS SELECT * FROM c");
  EXPECT_EQ(read_recording(path).error().code, Errc::kCorrupt) << "a view could run anything";
  EXPECT_FALSE(read_recording(record("big.hrec"), {.max_values = 50}));
}

TEST_F(ReaderTest, DatabasesOfOthersAreRefusedWithWhatToDo) {
  const auto hint = [&](const char* name, const char* tables) {
    change(file(name), tables);
    return read_recording(file(name)).error().hint;
  };
  EXPECT_NE(hint("optuna.db", "CREATE TABLE studies(a); CREATE TABLE trials(a)").find("headroom study"),
            std::string::npos);
  EXPECT_NE(hint("mlflow.db", "CREATE TABLE experiments(a); CREATE TABLE runs(a); CREATE TABLE metrics(a)")
                .find("FROM metrics WHERE key LIKE 'system/gpu%'"),
            std::string::npos);
  EXPECT_EQ(hint("some.db", "CREATE TABLE runs(a)"), "");
  EXPECT_NE(hint("own.db", "CREATE TABLE jobs(a); CREATE TABLE gpu_usage(time, utilization)")
                .find("own.db \"SELECT * FROM gpu_usage\" > gpu.csv"),
            std::string::npos);
  EXPECT_EQ(hint("odd.db", "CREATE TABLE \"gpu; DROP\"(time, utilization)"), "") << "no name to type";
}

TEST_F(ReaderTest, CutAnywhereItNeverCrashesAndNeverInvents) {
  const std::string path = record();
  const Recording whole = *read_recording(path);
  int readable = 0;
  constexpr std::uintmax_t kBetween = 13;  // bytes: another place in each of SQLite's pages
  for (auto size = fs::file_size(path); size >= kBetween;) {
    size -= kBetween;
    fs::resize_file(path, size);
    const auto part = read_recording(path);
    if (!part) continue;
    ++readable;
    for (std::size_t i = 0; i < part->tracks.size(); ++i) {
      ASSERT_LE(part->tracks[i].at.size(), whole.tracks[i].at.size());
      const bool less = part->tracks[i].at.size() < whole.tracks[i].at.size();
      ASSERT_TRUE(!less || !part->losses.empty()) << "said nothing at " << size;
    }
  }
  EXPECT_GT(readable, 0);
}

TEST(NetworkFilesystem, IsKnownByItsNumber) {
  EXPECT_EQ(network_filesystem_name(0x6969), "nfs");
  EXPECT_EQ(network_filesystem_name(0xff534d42), "cifs");
  EXPECT_EQ(network_filesystem_name(0xef53), "") << "ext4";
  EXPECT_EQ(network_filesystem_name(0x01021994), "") << "tmpfs";
}

TEST_F(ReaderTest, TheShelfListsFindsAndPrunes) {
  EXPECT_EQ(Shelf::of_user("/x", "/home/u")->directory(), "/x/headroom");
  EXPECT_EQ(Shelf::of_user("relative", "/home/u")->directory(), "/home/u/.local/state/headroom");
  EXPECT_EQ(Shelf::of_user(std::nullopt, std::nullopt).error().code, Errc::kNotFound);
  const Shelf shelf((folder_ / "shelf").string());
  EXPECT_TRUE(shelf.names().empty());
  const Nanos t0 = 1'700'000'000 * kSecond;
  std::vector<std::string> paths;
  for (int i = 0; i < 3; ++i) {
    const auto path = shelf.new_path({"/usr/bin/python3", "-u", "dir/train it.py"}, t0 + i / 2 * kSecond);
    ASSERT_TRUE(path);
    paths.push_back(*path);
    fs::rename(record(fmt::format("{}.hrec", i)), *path);
  }
  EXPECT_EQ(fs::path(paths[0]).filename(), "20231114T221320Z-train_it.py.hrec");
  EXPECT_EQ(fs::path(paths[1]).filename(), "20231114T221320Z-train_it.py-2.hrec");
  EXPECT_EQ(shelf.names().front(), fs::path(paths[2]).filename());
  const auto entries = shelf.list();
  ASSERT_EQ(entries.size(), 3U);
  EXPECT_EQ(entries[0].path, paths[2]);
  EXPECT_EQ(entries[2].path, paths[0]) << "within a second, what was written last is newer";
  EXPECT_EQ(entries[0].summary->devices, 2);
  const auto live_path = shelf.new_path({}, t0 - kSecond);
  const auto live = Writer::create(*live_path);
  ASSERT_TRUE((*live)->flush());
  const Nanos now = realtime_now();
  EXPECT_EQ(shelf.prune({.keep = 1}, now, DryRun::kYes).removed.size(), 2U);
  EXPECT_EQ(shelf.list().size(), 4U);
  EXPECT_FALSE(shelf.remove(fs::path(*live_path).filename().string()));
  const auto report = shelf.prune({.max_bytes = 1}, now);
  EXPECT_EQ(report.removed.size(), 3U);
  ASSERT_EQ(report.kept.size(), 1U) << "what is being recorded stays";
  EXPECT_EQ(report.kept[0].path, *live_path);
  EXPECT_EQ(shelf.prune({.max_age = 3600 * kSecond}, now + 7200 * kSecond).removed.size(), 0U);
  ASSERT_TRUE((*live)->close());
  EXPECT_EQ(shelf.prune({.max_age = 3600 * kSecond}, now + 7200 * kSecond).removed.size(), 1U);
  EXPECT_FALSE(shelf.remove("none.hrec"));
}

TEST_F(ReaderTest, MetricsThatAreLeftOutAreAsIfNeverSampled) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    Recording original = testing::RandomRecording(seed).make();
    const std::string path = file(fmt::format("out{}.hrec", seed));
    WriterOptions options;
    options.chunk_rows = 1 + seed;
    options.when_full = WriterOptions::WhenFull::kWait;
    auto writer = Writer::create(path, options);
    ASSERT_TRUE(writer);
    replay(original, **writer);
    ASSERT_TRUE(seed % 2 == 0 ? (*writer)->close() : (*writer)->flush());  // chunks alone, and a tail
    std::vector<Metric> out;
    for (const auto& track : original.tracks)
      for (std::size_t i = seed % 2; i < track.columns.size(); i += 2) out.push_back(track.columns[i].metric);
    for (auto& track : original.tracks)
      std::erase_if(track.columns, [&](const Column& column) {
        return std::find(out.begin(), out.end(), column.metric) != out.end();
      });
    const auto recording = read_recording(path, {.leave_out = out});
    ASSERT_TRUE(recording) << recording.error().what;
    EXPECT_EQ(recording->tracks, original.tracks) << "seed " << seed;
    EXPECT_EQ(recording->losses, original.losses);
  }
}

TEST_F(ReaderTest, ARecordingOfABatchIsCalledAfterWhatItRuns) {
  const auto name = [this](const std::vector<std::string>& command) {
    const std::string path = *Shelf(folder_.string()).new_path(command, 0);
    return path.substr(path.find('Z', path.rfind('/')) + 2);  // the folder's random name may have a Z, too
  };
  EXPECT_EQ(name({"headroom", "batch", "--gpus=0", "runs/sweep.toml"}), "sweep.toml.hrec");
  EXPECT_EQ(name({"headroom", "batch", "--", "python3", "train.py", "{lr}"}), "train.py.hrec");
  EXPECT_EQ(name({"headroom", "batch", "--command=python3 fit.py {1}", "-"}), "fit.py.hrec");
  EXPECT_EQ(name({"headroom", "batch", "-"}), "batch.hrec");
}

}  // namespace
}  // namespace headroom
