// SPDX-License-Identifier: Apache-2.0
// What must hold when the recorder dies, its disk fills up, or others look at its file: in processes of their own.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <functional>
#include <random>
#include <thread>

#include "base/fd.h"
#include "base/sqlite.h"
#include "record/reader.h"
#include "record/shelf.h"
#include "record/writer.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kStep = 7;  // row i of the test's recordings holds kStep * i

class CrashTest : public ::testing::Test {
 protected:
  CrashTest() {
    std::string name = (fs::temp_directory_path() / "headroom-crash-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
    fs::permissions(folder_, fs::perms(0755));
  }
  ~CrashTest() override {
    std::error_code ignored;
    fs::permissions(folder_, fs::perms(0755), ignored);
    fs::remove_all(folder_, ignored);
  }
  [[nodiscard]] std::string file(const std::string& name = "a.hrec") const { return (folder_ / name).string(); }
  fs::path folder_;
};

// Runs `body` in a child; its exit code, or 128 + signal.
int in_child(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Records without end, chunk size 16, and tells `acknowledged` after each flush how many rows are safe.
[[noreturn]] void record_for_ever(const std::string& path, int acknowledged) {
  WriterOptions options;
  options.chunk_rows = 16;
  auto writer = Writer::create(path, options);
  if (!writer) ::_exit(3);
  const SourceId gpu = (*writer)->add_source({SourceKind::kGpu, "GPU-1", kNoSource, {}});
  for (std::int64_t i = 0;; ++i) {
    (*writer)->add_row(gpu, i, std::array{Cell{Metric::kPower, kStep * i, std::nullopt}});
    if (i % 3 != 0) continue;
    if (!(*writer)->flush()) ::_exit(4);
    const std::int64_t rows = i + 1;
    (void)!::write(acknowledged, &rows, sizeof rows);
  }
}

void expect_prefix(const std::string& path, std::size_t at_least) {
  const auto recording = read_recording(path);
  ASSERT_TRUE(recording) << recording.error().what;
  EXPECT_TRUE(recording->losses.empty()) << recording->losses[0].what << ": " << recording->losses[0].detail;
  if (at_least == 0) return;
  ASSERT_EQ(recording->tracks.size(), 1U);
  const Track& track = recording->tracks[0];
  ASSERT_GE(track.at.size(), at_least) << "an acknowledged flush is missing";
  for (std::size_t i = 0; i < track.at.size(); ++i) {
    ASSERT_EQ(track.at[i], static_cast<Nanos>(i));
    ASSERT_EQ(track.columns[0].values[i], kStep * static_cast<std::int64_t>(i));
  }
}

// Starts a recorder, kills it after `time`, and returns the rows it had acknowledged; -1 if it had not begun.
enum class KillAfter { kStart, kFirstFlush };
std::int64_t record_and_kill(const std::string& path, std::chrono::microseconds time,
                             KillAfter after = KillAfter::kStart) {
  std::array<int, 2> pipe{};
  EXPECT_EQ(::pipe2(pipe.data(), O_CLOEXEC), 0);
  const pid_t child = ::fork();
  if (child == 0) record_for_ever(path, pipe[1]);
  ::close(pipe[1]);
  std::int64_t rows = -1, next = 0;
  if (after == KillAfter::kFirstFlush && ::read(pipe[0], &next, sizeof next) == sizeof next) rows = next;
  std::this_thread::sleep_for(time);
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "it ended by itself with " << WEXITSTATUS(status);
  while (::read(pipe[0], &next, sizeof next) == sizeof next) rows = next;
  ::close(pipe[0]);
  return rows;
}

TEST_F(CrashTest, KilledAtAnyMomentTheFileOpensAndHasEveryAcknowledgedRow) {
  std::mt19937 random(7);
  int begun = 0;
  for (int kill = 0; kill < 100; ++kill) {
    const std::string path = file(fmt::format("{}.hrec", kill));
    const auto after = kill % 4 == 0 ? KillAfter::kStart : KillAfter::kFirstFlush;
    const std::int64_t rows = record_and_kill(path, std::chrono::microseconds(random() % 40'000), after);
    if (rows < 0) {  // killed before the first flush: there may be no file, or one without a commit
      const auto early = read_recording(path);
      if (early) continue;
      const Errc code = early.error().code;
      EXPECT_TRUE(code == Errc::kCorrupt || code == Errc::kNotFound || code == Errc::kInvalidInput)
          << early.error().what;
      continue;
    }
    ++begun;
    ASSERT_NO_FATAL_FAILURE(expect_prefix(path, static_cast<std::size_t>(rows))) << "kill " << kill;
    const auto summary = summarize(path);
    ASSERT_TRUE(summary);
    EXPECT_EQ(summary->state, FileState::kInterrupted);
    EXPECT_EQ(summary->meta.stop_reason, "recovered");
    EXPECT_EQ(read_recording(path)->meta.stop_reason, "recovered");
  }
  EXPECT_GE(begun, 75);
}

// T8: looking at a crashed file changes nothing of it; tidying, which is asked for, makes it one plain file.
TEST_F(CrashTest, ReadingLeavesTheLogAndTidyMergesIt) {
  std::int64_t rows = -1;
  for (int i = 0; rows < 0 && i < 20; ++i)
    rows = record_and_kill(file(fmt::format("{}.hrec", i)), std::chrono::milliseconds(20), KillAfter::kFirstFlush);
  ASSERT_GT(rows, 0);
  std::string path;
  for (const auto& entry : fs::directory_iterator(folder_))
    if (entry.path().string().ends_with("-wal") && fs::file_size(entry.path()) > 0) path = entry.path().string();
  path.resize(path.size() - 4);
  const auto log = read_file(path + "-wal");
  expect_prefix(path, static_cast<std::size_t>(rows));
  EXPECT_EQ(read_file(path + "-wal"), log);
  ASSERT_TRUE(tidy(path));
  EXPECT_FALSE(fs::exists(path + "-wal"));
  EXPECT_FALSE(fs::exists(path + "-shm"));
  expect_prefix(path, static_cast<std::size_t>(rows));
}

// T4, T5, T6: as another user, in a directory that may not be written to, with and without what SQLite would like
// there.
TEST_F(CrashTest, ReadableInADirectoryThatMayNotBeWritten) {
  if (::geteuid() != 0) GTEST_SKIP() << "not possible here: becoming another user needs root";
  const std::string crashed = file("crashed.hrec");
  std::int64_t rows = -1;
  for (int i = 0; rows < 0 && i < 20; ++i) {
    fs::remove(crashed);
    rows = record_and_kill(crashed, std::chrono::milliseconds(20), KillAfter::kFirstFlush);
  }
  ASSERT_GT(rows, 0);
  const auto closed = Writer::create(file("closed.hrec"));
  (*closed)->add_row((*closed)->add_source({SourceKind::kGpu, "GPU-1", kNoSource, {}}), 0,
                     std::array{Cell{Metric::kPower, 0, std::nullopt}});
  ASSERT_TRUE((*closed)->close());
  for (const auto& entry : fs::directory_iterator(folder_)) fs::permissions(entry, fs::perms(0644));  // by their owner
  fs::permissions(folder_, fs::perms(0555));
  const auto as_other = [&](const std::string& path, std::int64_t at_least) {
    return in_child([&] {
      if (::setresuid(65534, 65534, 65534) != 0) return 9;
      const auto recording = read_recording(path);
      if (!recording) return std::fprintf(stderr, "%s\n", recording.error().what.c_str()), 1;
      return std::ssize(recording->tracks.at(0).at) >= at_least && recording->losses.empty() ? 0 : 2;
    });
  };
  EXPECT_EQ(as_other(file("closed.hrec"), 1), 0) << "T5: a closed file";
  EXPECT_EQ(as_other(crashed, rows), 0) << "T4: log and shared memory are there";
  fs::remove(crashed + "-shm");
  EXPECT_EQ(as_other(crashed, rows), 0) << "T4, T6: the shared memory is missing, the log must not be ignored";
  fs::permissions(folder_, fs::perms(0755));
  ASSERT_TRUE(tidy(crashed));
  // A file closed in WAL mode, as a reader at the wrong moment leaves it (T7).
  {
    auto database = Database::open(crashed, Access::kReadWrite);
    ASSERT_TRUE(database) << database.error().what;
    ASSERT_TRUE(database->execute("PRAGMA journal_mode=WAL"));
  }
  ASSERT_FALSE(fs::exists(crashed + "-wal"));
  fs::permissions(folder_, fs::perms(0555));
  EXPECT_EQ(as_other(crashed, rows), 0) << "T5: WAL mode without a log";
  fs::permissions(crashed, fs::perms(0600));
  EXPECT_EQ(as_other(crashed, rows), 1) << "not readable at all";
}

TEST_F(CrashTest, ReadersBesideARecorderSeeAConsistentPrefix) {
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe2(pipe.data(), O_CLOEXEC | O_NONBLOCK), 0);
  const pid_t child = ::fork();
  if (child == 0) record_for_ever(file(), pipe[1]);
  std::int64_t safe = 0, next = 0, seen = 0, reads = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (std::chrono::steady_clock::now() < end && !HasFatalFailure()) {
    while (::read(pipe[0], &next, sizeof next) == sizeof next) safe = next;
    if (safe == 0) continue;
    expect_prefix(file(), static_cast<std::size_t>(std::max(safe, seen)));
    seen = safe;
    // T3: a copy that is made through SQLite is whole, unlike cp's.
    if (++reads % 40 != 0) continue;
    const std::string copy = file(fmt::format("copy{}.hrec", reads));
    const auto copied = copy_recording(file(), copy);
    ASSERT_TRUE(copied) << copied.error().what;
    expect_prefix(copy, static_cast<std::size_t>(safe));
    EXPECT_FALSE(fs::exists(copy + "-wal"));
  }
  EXPECT_EQ(summarize(file())->state, FileState::kRecording);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(pipe[0]), ::close(pipe[1]);
  EXPECT_GT(reads, 5);
}

// Records until it cannot go on; 0 if it ended with one message, kept running, and left what was acknowledged.
int record_until_stopped(const std::string& path, WriterOptions options, WriterState expected) {
  auto writer = Writer::create(path, options);
  if (!writer) return std::fprintf(stderr, "%s\n", writer.error().what.c_str()), 10;
  const SourceId gpu = (*writer)->add_source({SourceKind::kGpu, "GPU-1", kNoSource, {}});
  std::mt19937_64 noise(1);
  std::size_t safe = 0;
  for (std::int64_t i = 0; i < 2'000'000 && (*writer)->status().state == WriterState::kRecording; ++i) {
    (*writer)->add_row(gpu, i,
                       std::array{Cell{Metric::kPower, kStep * i, std::nullopt},
                                  Cell{Metric::kEnergy, static_cast<std::int64_t>(noise()), std::nullopt}});
    if (i % 200 == 0 && (*writer)->flush()) safe = static_cast<std::size_t>(i) + 1;
  }
  const WriterStatus status = (*writer)->status();
  if (status.state != expected || status.message.empty())
    return std::fprintf(stderr, "%s\n", status.message.c_str()), 11;
  (*writer)->add_row(gpu, 3'000'000, std::array{Cell{Metric::kPower, 1, std::nullopt}});  // harmless, and counted
  if ((*writer)->status().rows_dropped < 1) return 12;
  RecordingMeta meta;
  meta.host = "told after the stop";
  (*writer)->set_meta(meta);
  (void)(*writer)->close();
  const auto recording = read_recording(path);
  if (!recording || recording->tracks[0].at.size() < safe || safe == 0) return 13;
  for (std::size_t i = 0; i < recording->tracks[0].at.size(); ++i)
    if (recording->tracks[0].columns[0].values[i] != kStep * static_cast<std::int64_t>(i)) return 14;
  // On a disk that is full to the last byte nothing can be noted any more: there the file reads as "recovered" later.
  const bool room_for_a_note = expected == WriterState::kDiskFull && options.min_free_bytes > 0;
  if (room_for_a_note && recording->meta.stop_reason != "disk_full") return 15;
  return room_for_a_note && recording->meta.host != meta.host ? 16 : 0;
}

// As root of a user namespace of its own, where files must have an owner that is mapped.
bool in_user_namespace() {
  const auto user = ::geteuid();
  const auto group = ::getegid();
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
  const auto put = [](const char* path, const std::string& text) {
    const Fd fd(::open(path, O_WRONLY | O_CLOEXEC));
    return fd && write_all(fd.get(), text).has_value();
  };
  return put("/proc/self/setgroups", "deny") && put("/proc/self/uid_map", fmt::format("0 {} 1", user)) &&
         put("/proc/self/gid_map", fmt::format("0 {} 1", group));
}

class FullDiskTest : public CrashTest {
 protected:
  // A tmpfs in a mount namespace of the child's own; 77 where that is not allowed.
  int on_tmpfs(const char* size, const std::function<int()>& body) {
    return in_child([&] {
      if (::unshare(CLONE_NEWNS) != 0 && !in_user_namespace()) return 77;
      if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 77;
      if (::mount("tmpfs", folder_.c_str(), "tmpfs", 0, size) != 0) return 77;
      return body();
    });
  }
};

TEST_F(FullDiskTest, TooLittleRoomEndsTheRecordingBeforeTheDiskIsFull) {
  const int code = on_tmpfs("size=20m", [&] { return record_until_stopped(file(), {}, WriterState::kDiskFull); });
  if (code == 77) GTEST_SKIP() << "not possible here: a tmpfs of our own needs root or user namespaces, and no chroot";
  EXPECT_EQ(code, 0);
}

TEST_F(FullDiskTest, AFullDiskLosesNothingThatWasAcknowledged) {
  WriterOptions options;
  options.min_free_bytes = 0;  // as if someone else took the last bytes between our look and our write
  for (const char* size : {"size=200k", "size=600k", "size=1500k", "size=2m"}) {
    const int code = on_tmpfs(size, [&] { return record_until_stopped(file(), options, WriterState::kDiskFull); });
    if (code == 77)
      GTEST_SKIP() << "not possible here: a tmpfs of our own needs root or user namespaces, and no chroot";
    EXPECT_EQ(code, 0) << size;
  }
}

TEST_F(CrashTest, AFailingDiskStopsWithOneMessage) {
  const int code = in_child([&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{300'000, 300'000};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 9;
    return record_until_stopped(file(), {}, WriterState::kFailed);
  });
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace headroom
