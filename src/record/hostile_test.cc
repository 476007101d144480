// SPDX-License-Identifier: Apache-2.0
// Files that somebody else made, and what others may see of ours.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>
#include <filesystem>

#include "base/fd.h"
#include "base/ids.h"
#include "base/sqlite.h"
#include "base/strings.h"
#include "model/events.h"
#include "record/open.h"
#include "record/reader.h"
#include "record/shelf.h"
#include "record/writer.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

class HostileFileTest : public ::testing::Test {
 protected:
  HostileFileTest() {
    std::string name = (fs::temp_directory_path() / "headroom-hostile-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~HostileFileTest() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string file(const std::string& name = "a.hrec") const { return (folder_ / name).string(); }

  [[nodiscard]] std::string record(const std::string& name = "a.hrec", WriterOptions options = {}) const {
    MemorySink sink;
    RecordingMeta meta;
    meta.command = {"python3", "train.py", "--token", "hf_private", "--lr", "1"};
    meta.end = 400 * kSecond;
    meta.interval = kSecond;
    sink.set_meta(meta);
    sink.add_event({1, std::nullopt, "job_start", kNoSource, {{"argv", "sh -c 'API_KEY=hf_private x'"}}});
    sink.add_source({SourceKind::kProcess, "7/1", kNoSource, {{"cmdline", "x --password=hf_private"}}});
    const SourceId gpu = sink.add_source({SourceKind::kGpu, "GPU-1", kNoSource, {}});
    for (int i = 0; i < 400; ++i)
      sink.add_row(gpu, i * kSecond, std::array{Cell{Metric::kPower, i * i * 7919 % 100'000, std::nullopt}});
    options.chunk_rows = 20;
    options.when_full = WriterOptions::WhenFull::kWait;
    auto writer = Writer::create(file(name), options);
    EXPECT_TRUE(writer);
    replay(sink.recording(), **writer);
    EXPECT_TRUE((*writer)->close());
    return file(name);
  }
  static void change(const std::string& path, const std::string& sql) {
    auto database = Database::open(path, Access::kReadWrite);
    ASSERT_TRUE(database);
    const auto done = database->execute(sql.c_str());
    ASSERT_TRUE(done) << done.error().what;
  }
  static mode_t mode(const std::string& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 0777 : 0;
  }
  static std::string ticks(int pid) {
    const std::string stat = *read_file(fmt::format("/proc/{}/stat", pid));
    return std::string(split(stat.substr(stat.rfind(')') + 2), ' ')[19]);
  }
  fs::path folder_;
};

TEST_F(HostileFileTest, WhatIsComputedInsteadOfStoredIsReadByNobody) {
  const auto refused = [&](const std::string& sql) {
    static int number = 0;
    const std::string path = record(fmt::format("{}.hrec", ++number));
    change(path, sql);
    EXPECT_FALSE(OpenedFile::open(path)) << sql;
    EXPECT_FALSE(read_recording(path)) << sql;
    EXPECT_FALSE(summarize(path)) << sql;
  };
  for (const char* table : {"meta", "source", "series", "chunk", "tail", "event", "loss"})
    refused(fmt::format("ALTER TABLE {0} RENAME TO other; CREATE VIEW {1} AS SELECT * FROM other", table,
                        table[0] == 'm' ? "META" : table));
  refused("CREATE VIEW batch_meta AS WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM c) SELECT x FROM c");
  refused("ALTER TABLE event ADD COLUMN more AS (hex(zeroblob(30000000)))");
  refused("DROP TABLE loss; CREATE VIRTUAL TABLE loss USING fts5(what, count, severity, detail, places)");
}

TEST_F(HostileFileTest, AStatementHasAnEnd) {
  auto database = Database::open(":memory:", Access::kReadWrite);
  database->limit_steps(1'000'000);
  const auto counted =
      database->number("WITH RECURSIVE c(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM c) SELECT count(*) FROM c");
  ASSERT_FALSE(counted);
  EXPECT_EQ(counted.error().code, Errc::kCorrupt);
}

TEST_F(HostileFileTest, FactsAsDeepAsAFileCanHoldThemAreNone) {
  const std::string path = record();
  change(path, fmt::format("UPDATE meta SET value='{0}{1}' WHERE key='command'; UPDATE source SET attrs='{0}{1}'",
                           std::string(100'000, '['), std::string(100'000, ']')));
  const auto recording = read_recording(path);
  ASSERT_TRUE(recording) << recording.error().what;
  EXPECT_TRUE(recording->meta.command.empty());
  EXPECT_TRUE(summarize(path));
}

TEST_F(HostileFileTest, ASmallFileMayNotClaimManyValues) {
  const std::string path = record();
  change(path, "DROP INDEX chunk_source; UPDATE chunk SET n=60000");
  EXPECT_TRUE(read_recording(path)) << "columns that do not hold them";
  EXPECT_FALSE(read_recording(path, {.max_values = 60'000}));
  std::string sql = "DELETE FROM source; BEGIN;";
  for (int i = 0; i < 4'100; ++i)
    sql += fmt::format("INSERT INTO source VALUES({}, 'gpu', 'GPU-{}', NULL, NULL);", i, i);
  change(path, sql + "COMMIT");
  EXPECT_EQ(read_recording(path).error().what, path + ": it holds more than 4096 GPUs");
}

TEST_F(HostileFileTest, OfACutFileTheRestIsReadAndTheLossSaid) {
  const std::string path = record();
  const auto whole = fs::file_size(path);
  int readable = 0;
  for (auto size = whole - 1; size > 1024; size -= 700) {
    fs::resize_file(path, size);
    const auto part = read_recording(path);
    if (!part) {
      EXPECT_FALSE(part.error().hint.empty()) << part.error().what;
      continue;
    }
    ++readable;
    EXPECT_EQ(summarize(path)->state, FileState::kCut);
    const auto cut = std::find_if(part->losses.begin(), part->losses.end(),
                                  [](const Loss& loss) { return loss.what == "damaged_file"; });
    ASSERT_NE(cut, part->losses.end()) << size;
    EXPECT_EQ(cut->detail.find("the file was cut: its last "), 0U) << cut->detail;
    EXPECT_TRUE(
        std::any_of(part->tracks.begin(), part->tracks.end(), [](const Track& track) { return !track.at.empty(); }))
        << size << ": a report on nothing";
  }
  EXPECT_GT(readable, 3);
}

TEST_F(HostileFileTest, AProcessThatDoesNotWriteAFileIsNotItsRecorder) {
  const std::string path = record();
  change(path, fmt::format("UPDATE meta SET value='recording' WHERE key='state'; "
                           "UPDATE meta SET value='{}/1/{}' WHERE key='owner'",
                           boot_id(), ticks(1)));
  if (::getuid() != 0 && ::chown(path.c_str(), 0, 0) != 0) {
    EXPECT_EQ(summarize(path)->state, FileState::kInterrupted) << "the owner is another";
    return;
  }
  EXPECT_EQ(summarize(path)->state, FileState::kInterrupted) << "it has another file open";
  EXPECT_TRUE(Shelf(folder_.string()).remove("a.hrec"));
}

TEST_F(HostileFileTest, NobodyElseReadsWhatWeWrite) {
  const ::mode_t before = ::umask(0);
  const std::string path = record();
  EXPECT_EQ(mode(path), 0600U);
  EXPECT_TRUE(copy_recording(path, file("copy.hrec")));
  EXPECT_EQ(mode(file("copy.hrec")), 0600U);
  EXPECT_TRUE(read_recording(file("copy.hrec")));
  const auto live = Writer::create(file("live.hrec"));
  EXPECT_TRUE((*live)->flush());
  EXPECT_EQ(mode(file("live.hrec-wal")), 0600U);
  const Shelf shelf(file("state/headroom"));
  EXPECT_TRUE(shelf.new_path({"x"}, 0));
  EXPECT_EQ(mode(shelf.directory()), 0700U);
  ::umask(before);
}

TEST_F(HostileFileTest, SecretsDoNotReachTheFile) {
  const std::string path = record();
  const std::string hidden = *read_file(path);
  EXPECT_EQ(hidden.find("hf_private"), std::string::npos);
  EXPECT_EQ(read_recording(path)->meta.command,
            (std::vector<std::string>{"python3", "train.py", "--token", "***", "--lr", "1"}));
  WriterOptions keep;
  keep.keep_secrets = true;
  EXPECT_EQ(read_recording(record("kept.hrec", keep))->meta.command[3], "hf_private");
}

TEST_F(HostileFileTest, ParametersUnderASecretNameDoNotReachTheFile) {
  const std::string path = file("parameters.hrec");
  auto writer = Writer::create(path, {});
  ASSERT_TRUE(writer.has_value());
  for (const auto& [name, value] : {std::pair("hub_token", "hf_private"), {"max_tokens", "512"}, {"lr", "0.1"}})
    (*writer)->add_event(to_event(events::Parameter{name, value}, kSecond));
  ASSERT_TRUE((*writer)->close().has_value());
  std::vector<std::string> values;
  const auto recording = read_recording(path);
  ASSERT_TRUE(recording.has_value());
  for (const Event& event : recording->events) values.push_back(of_event<events::Parameter>(event)->value);
  EXPECT_EQ(values, (std::vector<std::string>{"***", "512", "0.1"}));
}

}  // namespace
}  // namespace headroom
