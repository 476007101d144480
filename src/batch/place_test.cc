// SPDX-License-Identifier: Apache-2.0
#include "batch/place.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace headroom::batch {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

struct BatchPlace : ::testing::Test {
  const std::string root = [] {
    std::string name = (fs::temp_directory_path() / "headroom-place-XXXXXX").string();
    return std::string(::mkdtemp(name.data()));
  }();
  const std::string folder = root + "/a/x.batch";
  ~BatchPlace() override { fs::remove_all(root); }

  static mode_t mode_of(const std::string& path) {
    struct stat info {};
    EXPECT_EQ(::lstat(path.c_str(), &info), 0) << path;
    return info.st_mode & 07777U;
  }
  void refused(const char* why) {
    const auto place = open_place(folder, Trust::kOwn);
    ASSERT_FALSE(place);
    EXPECT_EQ(place.error().code, Errc::kNoPermission);
    EXPECT_THAT(place.error().what, HasSubstr(why));
    EXPECT_THAT(place.error().hint, HasSubstr("--trust-folder"));
    EXPECT_TRUE(open_place(folder, Trust::kAnybodys));
  }
};

TEST_F(BatchPlace, IsMadeForItsOwnerAlone) {
  const mode_t before = ::umask(0002);
  auto place = open_place(folder, Trust::kOwn);
  ASSERT_TRUE(place) << place.error().what;
  ASSERT_TRUE(open_log(*place, "1-a.log"));
  ::umask(before);
  EXPECT_EQ(mode_of(folder), 0700U);
  EXPECT_EQ(mode_of(folder + "/logs"), 0700U);
  EXPECT_EQ(mode_of(folder + "/logs/1-a.log"), 0600U);
}

TEST_F(BatchPlace, WhatWasReadableForOthersIsNotAnyMore) {
  ASSERT_TRUE(open_place(folder, Trust::kOwn));
  std::ofstream(folder + "/journal.sqlite") << "x";
  fs::permissions(folder, fs::perms(0755));
  fs::permissions(folder + "/journal.sqlite", fs::perms(0644));
  ASSERT_TRUE(open_place(folder, Trust::kOwn));
  EXPECT_EQ(mode_of(folder), 0700U);
  EXPECT_EQ(mode_of(folder + "/journal.sqlite"), 0600U);
}

TEST_F(BatchPlace, WhatOthersMayWriteToIsRefused) {
  ASSERT_TRUE(open_place(folder, Trust::kOwn));
  fs::permissions(folder, fs::perms(0775));
  refused("may be written by others");
  fs::permissions(folder, fs::perms(0700));
  std::ofstream(folder + "/journal.sqlite") << "x";
  fs::permissions(folder + "/journal.sqlite", fs::perms(0666));
  refused("journal.sqlite may be written by others");
}

TEST_F(BatchPlace, WhatBelongsToAnotherIsRefused) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  ASSERT_TRUE(open_place(folder, Trust::kOwn));
  ASSERT_EQ(::chown((folder + "/logs").c_str(), 65534, 65534), 0);
  refused("logs belongs to another user");
}

TEST_F(BatchPlace, LinksOutOfItAreRefused) {
  ASSERT_TRUE(open_place(folder, Trust::kOwn));
  std::ofstream(root + "/precious") << "x";
  for (const char* name : {"reserve", "lock", "journal.sqlite"}) {
    fs::create_symlink(root + "/precious", folder + "/" + name);
    refused("is a link");
    fs::remove(folder + "/" + name);
  }
  fs::create_hard_link(root + "/precious", folder + "/reserve");
  refused("has another name");
}

TEST_F(BatchPlace, ALogIsNoLinkAndNoPipe) {
  auto place = open_place(folder, Trust::kOwn);
  fs::create_symlink(root + "/precious", folder + "/logs/1-a.log");
  EXPECT_FALSE(open_log(*place, "1-a.log"));
  EXPECT_FALSE(fs::exists(root + "/precious"));
  ASSERT_EQ(::mkfifo((folder + "/logs/2-b.log").c_str(), 0600), 0);
  EXPECT_FALSE(open_log(*place, "2-b.log"));
}

TEST_F(BatchPlace, MayBeMovedWhileItIsOpen) {
  auto place = open_place(folder, Trust::kOwn);
  fs::rename(folder, root + "/moved");
  ASSERT_TRUE(open_log(*place, "1-a.log"));
  EXPECT_TRUE(fs::exists(root + "/moved/logs/1-a.log"));
  EXPECT_EQ(place->folder_now(), fs::canonical(root + "/moved"));
}

TEST_F(BatchPlace, LogsThatWereRemovedAreMadeAgain) {
  auto place = open_place(folder, Trust::kOwn);
  fs::remove_all(folder + "/logs");
  EXPECT_TRUE(open_log(*place, "1-a.log"));
  EXPECT_TRUE(fs::exists(folder + "/logs/1-a.log"));
  EXPECT_FALSE(is_removed(place->directory.get()));
  fs::remove_all(folder);
  EXPECT_TRUE(is_removed(place->directory.get()));
  const auto log = open_log(*place, "2-a.log");
  ASSERT_FALSE(log);
  EXPECT_THAT(log.error().what, HasSubstr("2-a.log"));
}

}  // namespace
}  // namespace headroom::batch
