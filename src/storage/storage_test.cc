// SPDX-License-Identifier: Apache-2.0
#include "storage/storage.h"

#include <gtest/gtest.h>

#include "base/fd.h"
#include "storage/find_storage.h"
#include "storage/testing.h"

namespace headroom {
namespace {

TEST(StorageName, AsOptunaTakesThem) {
  EXPECT_EQ(parse_storage_name("study.db")->path, "study.db");
  EXPECT_EQ(parse_storage_name("sqlite:///study.db")->path, "study.db");
  EXPECT_EQ(parse_storage_name("sqlite:////data/study.db?timeout=9")->path, "/data/study.db");
  EXPECT_EQ(parse_storage_name("SQLite+pysqlite:///file:x.db?uri=true")->path, "x.db");
  EXPECT_EQ(parse_storage_name("postgresql+psycopg2://u@h/d")->engine, StorageEngine::kPostgresql);
  for (const char* name : {"", "sqlite://", "sqlite:///", "sqlite:///:memory:"})
    EXPECT_EQ(parse_storage_name(name).error().code, Errc::kInvalidInput) << name;
  for (const char* name : {"mysql://u:secret@h/d", "redis://h", "grpc://h"}) {
    const auto error = parse_storage_name(name).error();
    EXPECT_EQ(error.code, Errc::kUnsupported);
    EXPECT_EQ(error.what.find("secret"), std::string::npos);
  }
}

TEST(FileKind, IsToldByTheFirstBytes) {
  EXPECT_EQ(file_kind(""), FileKind::kEmpty);
  EXPECT_EQ(file_kind(R"({"op_code":0,"worker_id":"x"})"), FileKind::kJournal);
  EXPECT_EQ(file_kind(R"({"worker_id":"x","op_code":0})"), FileKind::kJournal);
  EXPECT_EQ(file_kind(R"({"trials": []})"), FileKind::kOther);
  EXPECT_EQ(file_kind(std::string("SQLite format 3\0", 16)), FileKind::kSqlite);
  EXPECT_EQ(file_kind_name("\x1f\x8b\x08"), "a gzip archive");
  EXPECT_EQ(file_kind_name("\x80\x04\x95"), "a Python pickle");
  EXPECT_EQ(file_kind_name("lr: 0.1\n"), "a text file");
  EXPECT_EQ(file_kind_name(std::string("\0\1\2", 3)), "a file of a kind that is not known here");
}

TEST(ReadStorage, FilesThatAreNoneAreNamed) {
  const testing::Folder folder;
  const auto error = [&folder](const std::string& name) {
    const auto content = read_storage({.name = folder.file(name)});
    EXPECT_FALSE(content) << name;
    EXPECT_FALSE(content.error().hint.empty()) << name;
    return content ? Error{} : content.error();
  };
  ASSERT_TRUE(write_file(folder.file("text"), "lr 0.1\n"));
  ASSERT_TRUE(write_file(folder.file("empty"), ""));
  ASSERT_TRUE(write_file(folder.file("cut.db"), std::string("SQLite format 3\0 and no more", 28)));
  EXPECT_EQ(error("missing").code, Errc::kNotFound);
  EXPECT_EQ(error("").code, Errc::kInvalidInput);
  EXPECT_EQ(error("text").code, Errc::kInvalidInput);
  EXPECT_EQ(error("empty").code, Errc::kInvalidInput);
  (void)error("cut.db");
  ASSERT_TRUE(write_file(folder.file("tune.log"),
                         "[I 2025-03-10 10:00:00,101] A new study created in memory with name: no-name-1f2e\n"));
  EXPECT_NE(error("tune.log").what.find("it is what Optuna printed"), std::string::npos);
  EXPECT_EQ(error("tune.log").hint.find("keep the next one"), 0U);
  ASSERT_TRUE(write_file(folder.file("kept.log"),
                         "[I 2025-03-10 10:00:00,101] A new study created in RDB with name: resnet\n"
                         "[I 2025-03-10 10:00:30,101] Trial 0 pruned. \n"));
  EXPECT_NE(error("kept.log").what.find("(1 trial was pruned)"), std::string::npos) << error("kept.log").what;
  EXPECT_EQ(error("kept.log").hint.find("name the file"), 0U) << "there is one";
  ASSERT_TRUE(write_file(folder.file("trials.csv"), ",number,value,datetime_start,datetime_complete,duration,state\n"));
  EXPECT_NE(error("trials.csv").what.find("trials_dataframe()"), std::string::npos);
  ASSERT_TRUE(write_file(folder.file("trace.json"), "{\n \"schemaVersion\": 1,\n \"traceEvents\": []}\n"));
  EXPECT_NE(error("trace.json").what.find("a profiler's trace"), std::string::npos);
  EXPECT_EQ(error("trace.json").hint.find("headroom why "), 0U);
  for (const char* log :
       {"Date, GPU Load [%]\n", "# gpu pid type sm mem command\n", "{\"system.gpu.0.powerWatts\": 98}\n",
        "#Date       Time        gpu    pwr  gtemp     sm\n#YYYYMMDD   HH:MM:SS    Idx      W      C      %\n"}) {
    ASSERT_TRUE(write_file(folder.file("log"), log));
    EXPECT_EQ(error("log").hint.find("headroom why "), 0U) << log;
  }
  ASSERT_TRUE(write_file(folder.file("trace.json.gz"), "\x1f\x8b\x08 and more"));
  EXPECT_NE(error("trace.json.gz").hint.find("headroom why "), std::string::npos);
  ASSERT_TRUE(write_file(folder.file("progress.csv"), "loss,training_iteration,trial_id\n0.5,1,ab\n"));
  EXPECT_NE(error("progress.csv").what.find("Ray Tune"), std::string::npos);
}

}  // namespace
}  // namespace headroom
