// SPDX-License-Identifier: Apache-2.0
#include "base/database_copy.h"

#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "base/sqlite.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

class DatabaseCopyTest : public ::testing::Test {
 protected:
  DatabaseCopyTest() {
    std::string folder = (fs::temp_directory_path() / "headroom-copies-XXXXXX").string();
    folder_ = ::mkdtemp(folder.data());
    fs::create_directory(folder_ / "tmp");
    if (const char* before = ::getenv("TMPDIR")) before_ = before;
    ::setenv("TMPDIR", (folder_ / "tmp").c_str(), 1);
    auto database = Database::open(path(), Access::kReadWrite);
    EXPECT_TRUE(database && database->execute("CREATE TABLE t (a); INSERT INTO t VALUES (7)"));
  }
  ~DatabaseCopyTest() override {
    if (before_)
      ::setenv("TMPDIR", before_->c_str(), 1);
    else
      ::unsetenv("TMPDIR");
    fs::remove_all(folder_);
  }
  [[nodiscard]] std::string path() const { return folder_ / "a.db"; }
  [[nodiscard]] std::size_t left() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_ / "tmp"), fs::directory_iterator()));
  }
  // As a process that is killed.
  void copy_and_die() const {
    const pid_t owner = ::fork();
    if (owner == 0) {
      const auto copy = DatabaseCopy::make(path());
      ::_exit(copy ? 0 : 1);  // no destructor
    }
    int status = 1;
    ::waitpid(owner, &status, 0);
    EXPECT_EQ(status, 0);
  }

  fs::path folder_;
  std::optional<std::string> before_;
};

TEST_F(DatabaseCopyTest, IsWholeAndPrivateAndGoesWithItsOwner) {
  {
    const auto copy = DatabaseCopy::make(path());
    ASSERT_TRUE(copy) << copy.error().what;
    auto database = Database::open(copy->path(), Access::kReadWrite);
    ASSERT_TRUE(database);
    EXPECT_EQ(database->number("SELECT a FROM t").value_or(0), 7);
    EXPECT_EQ(fs::status(fs::path(copy->path()).parent_path()).permissions(), fs::perms::owner_all);
    DatabaseCopy::remove_stale();
    EXPECT_EQ(left(), 1U) << "its owner lives";
  }
  EXPECT_EQ(left(), 0U);
}

TEST_F(DatabaseCopyTest, WhatAKilledOwnerLeftGoesWithTheNextCopy) {
  copy_and_die();
  ASSERT_EQ(left(), 1U);
  fs::create_directory(folder_ / "tmp/headroom-copy.new-abc");  // may be about to be locked
  fs::create_directory(folder_ / "tmp/headroom-copies-abc");    // no name of ours
  (void)DatabaseCopy::make(path());
  EXPECT_EQ(left(), 2U);
}

TEST_F(DatabaseCopyTest, WhatIsTooLargeIsNotCopiedAndTheErrorSaysHowToGoOn) {
  fs::resize_file(path(), std::uintmax_t{30} << 30);  // without taking that room
  const auto copy = DatabaseCopy::make(path());
  ASSERT_FALSE(copy);
  EXPECT_EQ(copy.error().code, Errc::kNoSpace);
  EXPECT_THAT(copy.error().what, ::testing::HasSubstr("30.0 GiB"));
  EXPECT_THAT(copy.error().hint, ::testing::HasSubstr("wal_checkpoint"));
  EXPECT_EQ(left(), 0U);
  fs::resize_file(path(), 8192);
  std::ofstream(path() + "-wal") << "x";
  fs::resize_file(path() + "-wal", std::uintmax_t{1} << 40);  // two sizes do not add up to a small one
  EXPECT_EQ(DatabaseCopy::make(path()).error().code, Errc::kNoSpace);
}

TEST_F(DatabaseCopyTest, WithoutAFolderForItThereIsAReason) {
  ::setenv("TMPDIR", "/no/such/place", 1);
  const auto copy = DatabaseCopy::make(path());
  ASSERT_FALSE(copy);
  EXPECT_THAT(copy.error().hint, ::testing::HasSubstr("TMPDIR"));
}

}  // namespace
}  // namespace headroom
