// SPDX-License-Identifier: Apache-2.0
#include "base/sqlite.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace headroom {
namespace {

namespace fs = std::filesystem;

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}

// A database, a file that has nothing to do with it, and a hot rollback journal that names it as its super-journal:
// what SQLite would delete once it has rolled back.
class HotJournal : public ::testing::Test {
 protected:
  HotJournal() {
    std::string folder = (fs::temp_directory_path() / "headroom-sqlite-XXXXXX").string();
    folder_ = ::mkdtemp(folder.data());
    {
      auto database = Database::open(path(), Access::kReadWrite);
      EXPECT_TRUE(database && database->execute("CREATE TABLE t (a); INSERT INTO t VALUES (7)"));
    }
    std::ofstream(victim()) << "kept";
    leave_journal();
  }
  ~HotJournal() override { fs::remove_all(folder_); }

  void leave_journal() const {
    const std::uint32_t page = 4096, pages = static_cast<std::uint32_t>(fs::file_size(path())) / page;
    const std::string magic("\xd9\xd5\x05\xf9\x20\xa1\x63\xd7", 8), name = victim();
    std::string journal =
        magic + big_endian(0) + big_endian(0) + big_endian(pages) + big_endian(512) + big_endian(page);
    journal.resize(512);
    std::uint32_t sum = 0;
    for (const char c : name) sum += static_cast<std::uint32_t>(static_cast<signed char>(c));
    journal += big_endian(0x40000000U / page + 1) + name + big_endian(static_cast<std::uint32_t>(name.size()));
    journal += big_endian(sum) + magic;
    std::ofstream(path() + "-journal", std::ios::binary) << journal;
  }

  [[nodiscard]] std::string path() const { return folder_ + "/some.db"; }
  [[nodiscard]] std::string victim() const { return folder_ + "/victim"; }

  std::string folder_;
};

TEST_F(HotJournal, ThatNamesAnotherFileIsRefusedWithTheReason) {
  for (const Access access : {Access::kReadOnly, Access::kReadWrite}) {
    const auto database = Database::open(path(), access);
    ASSERT_FALSE(database);
    EXPECT_NE(database.error().what.find("names another file"), std::string::npos) << database.error().what;
  }
  EXPECT_TRUE(fs::exists(victim()));
}

// As where it is put there after the look at it.
TEST_F(HotJournal, DeletesNothingThoughItIsOpened) {
  for (const char* vfs : {"headroom", static_cast<const char*>(nullptr)}) {
    leave_journal();
    sqlite3* connection = nullptr;
    ASSERT_EQ(sqlite3_open_v2(path().c_str(), &connection, SQLITE_OPEN_READWRITE, vfs), SQLITE_OK);
    (void)sqlite3_exec(connection, "SELECT count(*) FROM t", nullptr, nullptr, nullptr);
    sqlite3_close(connection);
    EXPECT_EQ(fs::exists(victim()), vfs != nullptr)
        << "without our own access to files it goes: else this shows nothing";
  }
}

TEST_F(HotJournal, OfOneFileIsUndoneAsEver) {
  fs::resize_file(path() + "-journal", 512);  // no name at its end
  auto database = Database::open(path(), Access::kReadWrite);
  ASSERT_TRUE(database) << database.error().what;
  EXPECT_EQ(database->number("SELECT a FROM t").value_or(0), 7);
  EXPECT_FALSE(fs::exists(path() + "-journal"));
}

TEST_F(HotJournal, WhatIsNoFileBesideADatabaseIsNotOpened) {
  for (const char* suffix : {"-journal", "-wal", "-shm"}) {
    const std::string beside = path() + suffix;
    fs::remove(path() + "-journal");
    ASSERT_EQ(::mkfifo(beside.c_str(), S_IRUSR | S_IWUSR), 0);
    EXPECT_FALSE(Database::open(path(), Access::kReadOnly)) << suffix;
    fs::remove(beside);
    fs::create_symlink("/dev/zero", beside);
    EXPECT_FALSE(Database::open(path(), Access::kReadWrite)) << suffix;
    fs::remove(beside);
  }
  // A link to a database is one; what lies beside the database counts, not what lies beside the link.
  const std::string link = folder_ + "/link.db";
  fs::create_symlink("some.db", link);
  EXPECT_TRUE(Database::open(link, Access::kReadOnly));
  ASSERT_EQ(::mkfifo((path() + "-wal").c_str(), S_IRUSR | S_IWUSR), 0);
  EXPECT_FALSE(Database::open(link, Access::kReadOnly));
}

}  // namespace
}  // namespace headroom
