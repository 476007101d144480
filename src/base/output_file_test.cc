// SPDX-License-Identifier: Apache-2.0
#include "base/output_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

namespace headroom {
namespace {

namespace fs = std::filesystem;

class OutputFileTest : public testing::Test {
 protected:
  ~OutputFileTest() override { fs::remove_all(folder_); }
  [[nodiscard]] std::string at(const std::string& name) const { return folder_ + "/" + name; }
  [[nodiscard]] std::size_t entries() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }
  // What a verb writes that begins with its schema.
  [[nodiscard]] static MayReplace own() {
    return {.writer = "headroom plan", .marks = {R"({"schema":"headroom.plan/)"}};
  }
  void put(const std::string& name, std::string_view text) { ASSERT_TRUE(write_file(at(name), text)); }

 private:
  std::string pattern_ = (fs::temp_directory_path() / "headroom-output-XXXXXX").string();
  const std::string folder_ = ::mkdtemp(pattern_.data());
};

TEST_F(OutputFileTest, AFileIsReplacedWholeWithItsMode) {
  put("a", "old");
  ASSERT_EQ(::chmod(at("a").c_str(), 0600), 0);
  put("a", "new");
  EXPECT_EQ(*read_file(at("a")), "new");
  EXPECT_EQ(fs::status(at("a")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(entries(), 1U);
}

TEST_F(OutputFileTest, WhatIsNotKeptLeavesWhatWasThere) {
  put("a", "old");
  fs::create_symlink("nowhere", at("link"));
  for (const char* name : {"a", "b", "link"}) {
    auto file = OutputFile::open(at(name));
    ASSERT_TRUE(file);
    ASSERT_TRUE(write_all(file->fd(), "half"));
  }
  EXPECT_EQ(*read_file(at("a")), "old");
  EXPECT_EQ(entries(), 2U);
}

TEST_F(OutputFileTest, LinksStayAndTheirTargetIsWritten) {
  put("target", "old");
  fs::create_symlink("target", at("link"));
  fs::create_symlink("not-yet", at("early"));
  put("link", "new");
  put("early", "first");
  EXPECT_TRUE(fs::is_symlink(at("link")) && fs::is_symlink(at("early")));
  EXPECT_EQ(*read_file(at("target")), "new");
  EXPECT_EQ(*read_file(at("not-yet")), "first");
  EXPECT_EQ(entries(), 4U);
}

TEST_F(OutputFileTest, APipeIsWrittenAndStaysOne) {
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  std::string got;
  std::thread reader([&] { got = *read_file(at("pipe")); });
  EXPECT_TRUE(write_file(at("pipe"), "through"));
  reader.join();
  EXPECT_EQ(got, "through");
  EXPECT_TRUE(fs::is_fifo(at("pipe")));
  EXPECT_EQ(entries(), 1U);
}

TEST_F(OutputFileTest, ADeviceStaysOneAndSaysWhatItRefuses) {
  fs::create_symlink("/dev/full", at("full"));
  const auto written = write_file(at("full"), "lost");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Errc::kNoSpace) << written.error().what;
  EXPECT_TRUE(fs::is_character_file("/dev/full"));
  EXPECT_TRUE(write_file("/dev/null", "gone"));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

TEST_F(OutputFileTest, OwnOutputIsWrittenWhereItStands) {
  put("log", "");
  const int before = ::dup(STDOUT_FILENO);
  const Fd log(::open(at("log").c_str(), O_WRONLY));
  ::dup2(log.get(), STDOUT_FILENO);
  const auto first = write_all(STDOUT_FILENO, "first ");
  const auto second = write_file("/dev/stdout", "second ");
  const auto third = write_all(STDOUT_FILENO, "third");
  ::dup2(before, STDOUT_FILENO);
  ::close(before);
  EXPECT_TRUE(first && second && third);
  EXPECT_EQ(*read_file(at("log")), "first second third");
}

TEST_F(OutputFileTest, OnlyWhatBeginsAsItsOwnIsReplaced) {
  put("own", "{\n  \"schema\": \"headroom.plan/1\",\n  \"recording\"");
  put("newer", R"({"schema":"headroom.plan/2"})");
  put("other", "{\n  \"schema\": \"headroom.why/1\"");
  put("longer", R"({"schema":"headroom.plans/1"})");
  put("script", "#!/bin/sh\n# {\"schema\": \"headroom.plan/1\"\n");
  put("empty", "");
  fs::create_symlink("script", at("link"));
  EXPECT_TRUE(can_write(at("own"), own()));
  EXPECT_TRUE(can_write(at("newer"), own()));
  for (const char* name : {"other", "longer", "script", "empty", "link"}) {
    const auto can = can_write(at(name), own());
    ASSERT_FALSE(can) << name;
    EXPECT_EQ(can.error().code, Errc::kInvalidInput);
    EXPECT_EQ(can.error().what, at(name) + " exists and was not written by headroom plan");
    EXPECT_NE(can.error().hint.find("--force"), std::string::npos);
    EXPECT_TRUE(can_write(at(name), {.writer = "headroom plan", .marks = {}, .all = true})) << name;
  }
}

TEST_F(OutputFileTest, WhatCarriesNoMarkIsReplacedByForceOnly) {
  put("a.csv", "at_ns,time\n");
  const auto can = can_write(at("a.csv"), {.writer = "headroom export", .marks = {}});
  ASSERT_FALSE(can);
  EXPECT_EQ(can.error().what, at("a.csv") + " exists, and nothing in such a file says who wrote it");
}

TEST_F(OutputFileTest, AFullDiskLeavesWhatWasThere) {
  put("a", "old");
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto handler = ::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 100, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  const auto over = write_file(at("a"), std::string(1000, 'x')), fresh = write_file(at("b"), std::string(1000, 'x'));
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  ::signal(SIGXFSZ, handler);
  EXPECT_FALSE(over || fresh);
  EXPECT_EQ(*read_file(at("a")), "old");
  EXPECT_EQ(entries(), 1U);
}

TEST_F(OutputFileTest, AFileThatIsOpenAlreadyIsWrittenWhereItStands) {
  const Fd log(::open(at("log").c_str(), O_WRONLY | O_CREAT, 0600));
  ASSERT_TRUE(write_all(log.get(), "first "));
  const std::string name = fmt::format("/dev/fd/{}", log.get());
  EXPECT_TRUE(can_write(name, own()));
  EXPECT_TRUE(write_file(name, "second"));
  EXPECT_EQ(*read_file(at("log")), "first second");
}

TEST_F(OutputFileTest, ARecordingIsNotReplaced) {
  std::ofstream(at("a.hrec")) << std::string_view("SQLite format 3\0and more", 24);
  fs::create_symlink("a.hrec", at("last"));
  for (const char* name : {"a.hrec", "last"}) {
    for (const bool force : {false, true}) {
      const auto can = can_write(at(name), {.writer = "headroom plan", .marks = {"SQLite"}, .all = force});
      ASSERT_FALSE(can);
      EXPECT_EQ(can.error().code, Errc::kInvalidInput);
    }
  }
  EXPECT_EQ(entries(), 2U);
}

TEST_F(OutputFileTest, WhereNothingCanBeWrittenIsKnownBefore) {
  put("a", "");
  EXPECT_TRUE(can_write(at("a"), {.writer = "x", .marks = {}, .all = true}));
  EXPECT_TRUE(can_write(at("new"), own()));
  EXPECT_TRUE(can_write("/dev/null", own()));
  for (const std::string& path : {at("none/x"), at("a/x"), at("")}) {
    const auto can = can_write(path, {.writer = "x", .marks = {}, .all = true});
    ASSERT_FALSE(can) << path;
    EXPECT_EQ(can.error().code, Errc::kInvalidInput);
    EXPECT_FALSE(OutputFile::open(path)) << path;
  }
}

}  // namespace
}  // namespace headroom
