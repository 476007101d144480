// SPDX-License-Identifier: Apache-2.0
#include "marks/marks_reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/fd.h"
#include "base/strings.h"
#include "host/proc_parse.h"
#include "marks/ring.h"
#include "model/events.h"

namespace headroom::marks {
namespace {

std::int64_t start_ticks_of(pid_t pid) {
  const auto text = read_file(fmt::format("/proc/{}/stat", pid));
  return host::parse_pid_stat(*text)->start_ticks;
}

// A process that lives until it is told to die.
class Sleeper {
 public:
  Sleeper() : pid_(::fork()) {
    if (pid_ == 0) {
      ::pause();
      ::_exit(0);
    }
    ticks_ = start_ticks_of(pid_);
  }
  ~Sleeper() { kill(); }
  void kill() {
    if (pid_ == 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] std::int64_t ticks() const { return ticks_; }

 private:
  pid_t pid_;
  std::int64_t ticks_ = 0;
};

// What the library in a process does, at instants of our own.
class RingFile {
 public:
  static constexpr std::uint32_t kSlots = 1024, kNames = 4096;

  RingFile(const std::string& path, pid_t pid, std::int64_t ticks, const char* via = "marks") : path_(path) {
    fd_ = Fd(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    EXPECT_EQ(::ftruncate(fd_.get(), 4096 + kNames + kSlots * sizeof(headroom_mark)), 0);
    headroom_marks_header header{};
    std::memcpy(header.magic, HEADROOM_MARKS_MAGIC, sizeof header.magic);
    header.version = 1;
    header.header_bytes = 4096;
    header.names_bytes = kNames;
    header.slots = kSlots;
    header.record_bytes = sizeof(headroom_mark);
    header.pid = pid;
    header.start_ticks = static_cast<std::uint64_t>(ticks);
    std::memcpy(header.via, via, std::strlen(via) + 1);
    put(&header, sizeof header, 0);
  }
  std::uint32_t name(std::string_view text) {
    const auto length = static_cast<std::uint16_t>(text.size());
    const std::uint32_t number = used_;
    put(&length, sizeof length, 4096 + number);
    put(text.data(), text.size(), 4096 + number + sizeof length);
    used_ += static_cast<std::uint32_t>(text.size() + sizeof length);
    return number;
  }
  void mark(int kind, Nanos ms, std::uint32_t name, double value = 0, std::uint32_t thread = 7) {
    const headroom_mark mark{.sequence = next_ + 1,
                             .at = ms * kMillisecond,
                             .value = value,
                             .name = name,
                             .kind_and_thread = static_cast<std::uint32_t>(kind) << 24 | thread};
    put(&mark, sizeof mark, 4096 + kNames + next_++ % kSlots * sizeof mark);
  }
  void begin(Nanos ms, std::string_view text, std::uint32_t thread = 7) { mark(1, ms, name(text), 0, thread); }
  void end(Nanos ms, std::string_view text, std::uint32_t thread = 7) { mark(2, ms, name(text), 0, thread); }
  void put(const void* bytes, std::size_t size, std::size_t at) {
    EXPECT_EQ(::pwrite(fd_.get(), bytes, size, static_cast<off_t>(at)), static_cast<ssize_t>(size));
  }
  [[nodiscard]] bool there() const { return std::filesystem::exists(path_); }

 private:
  std::string path_;
  Fd fd_;
  std::uint32_t used_ = 0;
  std::uint64_t next_ = 0;
};

class MarksReaderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::string(::testing::TempDir()) + "marks-XXXXXX";
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
    reader_.emplace(MarksOptions{.directory = folder_, .since = kMillisecond});
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path(int n) const { return fmt::format("{}/{}-0123456789abcdef.marks", folder_, n); }
  void look(Nanos ms) { reader_->read(ms * kMillisecond, sink_); }
  void last_look(Nanos ms) {
    reader_->end_with_next_read();
    look(ms);
  }
  // "TID/VIA: 100 epoch, 200 epoch/train"
  std::vector<std::string> tracks() {
    std::vector<std::string> lines;
    const Recording& recording = sink_.recording();
    for (std::size_t i = 0; i < recording.sources.size(); ++i) {
      const Source& source = recording.sources[i];
      if (source.kind != SourceKind::kMarks) continue;
      std::vector<std::string> rows;
      for (const ListRow& row : recording.tracks[i].lists) {
        std::vector<std::string> names;
        for (const TextId id : recording.lists[row.list]) names.push_back(recording.texts[id]);
        rows.push_back(fmt::format("{} {}", row.at / kMillisecond, join(names, "/")));
      }
      lines.push_back(fmt::format("{}/{}: {}", source.attrs.at("tid"), source.attrs.at("via"), join(rows, ", ")));
    }
    return lines;
  }
  std::int64_t lost(std::string_view what) {
    std::int64_t count = 0;
    for (const Loss& loss : sink_.recording().losses)
      if (loss.what == what) count += loss.count;
    return count;
  }

  std::string folder_;
  std::optional<MarksReader> reader_;
  MemorySink sink_;
};

using Lines = std::vector<std::string>;

TEST_F(MarksReaderTest, ThreadsAndWaysHaveTracksOfTheirOwn) {
  const Sleeper job;
  RingFile marks(path(1), job.pid(), job.ticks()), nvtx(path(2), job.pid(), job.ticks(), "nvtx");
  marks.begin(100, "epoch");
  marks.begin(200, "load", 8);
  nvtx.begin(300, "forward");
  marks.end(900, "epoch");
  last_look(1000);
  EXPECT_EQ(tracks(), (Lines{"7/marks: 100 epoch, 900 ", "7/nvtx: 300 forward", "8/marks: 200 load"}));
  const Recording& recording = sink_.recording();
  const std::string process = fmt::format("{}/{}", job.pid(), job.ticks() * (kSecond / ::sysconf(_SC_CLK_TCK)));
  ASSERT_TRUE(recording.find(SourceKind::kProcess, process).has_value());
  const auto track = recording.find(SourceKind::kMarks, process + "/7/marks");
  ASSERT_TRUE(track.has_value());
  EXPECT_EQ(recording.sources[static_cast<std::size_t>(*track)].parent, recording.find(SourceKind::kProcess, process));
}

TEST_F(MarksReaderTest, StepsMetricsAndParametersArrive) {
  const Sleeper job;
  RingFile ring(path(1), job.pid(), job.ticks());
  ring.mark(4, 100, HEADROOM_NO_NAME, 32);
  ring.mark(4, 200, HEADROOM_NO_NAME, 32);
  ring.mark(5, 300, ring.name("val_loss"), 0.25);
  const std::uint32_t text = ring.name("adam");
  ring.mark(6, 400, ring.name("optimizer"), text);
  last_look(1000);
  const Recording& recording = sink_.recording();
  const auto track = recording.all(SourceKind::kMarks);
  ASSERT_EQ(track.size(), 1U);
  const Track& rows = recording.tracks[static_cast<std::size_t>(track[0])];
  EXPECT_EQ(rows.find(Metric::kSteps)->values, std::vector<std::int64_t>{2});
  EXPECT_EQ(rows.find(Metric::kSamples)->values, std::vector<std::int64_t>{64});
  ASSERT_EQ(recording.events.size(), 2U);
  EXPECT_EQ(of_event<events::MetricValue>(recording.events[0])->value, 0.25);
  EXPECT_EQ(of_event<events::Parameter>(recording.events[1])->value, "adam");
}

TEST_F(MarksReaderTest, MarksOfSeveralLooksAreOneTrackInOrder) {
  const Sleeper job;
  RingFile ring(path(1), job.pid(), job.ticks());
  ring.begin(100, "a");
  look(200);
  ring.end(300, "a");
  ring.begin(320, "b");
  look(310);  // b is later than this look: another ring may have something from before
  RingFile second(path(2), job.pid(), job.ticks());
  second.begin(315, "first");
  look(500);
  last_look(1000);
  EXPECT_EQ(tracks(), (Lines{"7/marks: 100 a, 300 , 320 first/b"}));
}

TEST_F(MarksReaderTest, WhatAProcessHadOpenEndsWithItAndItsRingGoes) {
  Sleeper job;
  RingFile ring(path(1), job.pid(), job.ticks());
  ring.begin(100, "train");
  look(200);
  EXPECT_TRUE(ring.there());
  ring.begin(300, "step");
  job.kill();
  look(400);
  EXPECT_FALSE(ring.there());
  last_look(1000);
  EXPECT_EQ(tracks(), (Lines{"7/marks: 100 train, 300 train/step, 400 "}));
}

TEST_F(MarksReaderTest, AProcessThatIsOverBeforeAnybodyLooksIsReadAsWell) {
  Sleeper job;
  RingFile ring(path(1), job.pid(), job.ticks());
  ring.begin(100, "all of it");
  ring.mark(4, 250, HEADROOM_NO_NAME, 1);
  job.kill();
  look(300);
  EXPECT_FALSE(ring.there());
  EXPECT_EQ(tracks(), (Lines{"7/marks: 100 all of it, 300 "}));
}

TEST_F(MarksReaderTest, WhatWasWrittenOverIsCounted) {
  const Sleeper job;
  RingFile ring(path(1), job.pid(), job.ticks());
  for (int i = 0; i < 3000; ++i) ring.mark(4, 100 + i, HEADROOM_NO_NAME, 1);
  last_look(5000);
  EXPECT_EQ(lost("mark_lost"), 3000 - static_cast<std::int64_t>(RingFile::kSlots));
}

TEST_F(MarksReaderTest, RangesOfNvtxNeedNotNest) {
  const Sleeper job;
  RingFile ring(path(1), job.pid(), job.ticks(), "nvtx");
  ring.begin(100, "a");
  ring.begin(200, "b");
  ring.end(300, "a");
  ring.end(400, "b");
  last_look(1000);
  EXPECT_EQ(tracks(), (Lines{"7/nvtx: 100 a, 200 a/b, 300 b, 400 "}));
}

TEST_F(MarksReaderTest, WhatIsNoRingIsLeftAlone) {
  const Sleeper job;
  ::mkfifo(path(1).c_str(), 0600);
  std::filesystem::create_symlink("/etc/passwd", path(2));
  std::filesystem::create_directory(path(3));
  std::ofstream(path(4)) << std::string(5000, 'x');
  std::ofstream(path(5)) << "";
  RingFile ring(path(6), job.pid(), job.ticks());
  ring.begin(100, "train");
  for (Nanos ms = 200; ms < 20'000; ms += 250) look(ms);
  last_look(20'000);
  EXPECT_EQ(tracks(), (Lines{"7/marks: 100 train"}));
  EXPECT_EQ(lost("mark_cut"), 2);  // the text and the empty file
  EXPECT_TRUE(std::filesystem::exists(path(4)));
}

TEST_F(MarksReaderTest, MarksThatCannotBeTrueAreCountedAndLeftOut) {
  const Sleeper job;
  RingFile ring(path(1), job.pid(), job.ticks());
  ring.mark(1, -5, ring.name("before"));
  ring.mark(1, 1'000'000'000, ring.name("later"));
  ring.mark(9, 100, 0);
  ring.mark(1, 100, 4000);      // no name there
  ring.mark(6, 100, 0, 1e300);  // no text
  ring.mark(6, 100, 0, std::numeric_limits<double>::quiet_NaN());
  ring.begin(200, "real");
  last_look(1000);
  EXPECT_EQ(tracks(), (Lines{"7/marks: 200 real"}));
  EXPECT_EQ(lost("mark_cut"), 6);
}

TEST_F(MarksReaderTest, AFileThatIsCutShortIsReadAsFarAsItGoes) {
  const Sleeper job;
  RingFile ring(path(1), job.pid(), job.ticks());
  ring.begin(100, "train");
  look(200);
  std::filesystem::resize_file(path(1), 100);
  look(300);
  std::filesystem::resize_file(path(1), 0);
  last_look(1000);
  EXPECT_EQ(tracks(), (Lines{"7/marks: 100 train"}));
}

TEST_F(MarksReaderTest, ThereIsALimitToFilesAndTracks) {
  const Sleeper job;
  reader_.emplace(MarksOptions{.directory = folder_, .since = 0, .most_files = 2, .most_tracks = 3});
  std::vector<std::unique_ptr<RingFile>> rings;
  for (int i = 0; i < 4; ++i) {
    rings.push_back(std::make_unique<RingFile>(path(i), job.pid(), job.ticks()));
    for (std::uint32_t thread = 0; thread < 4; ++thread) rings.back()->begin(100, "phase", thread);
  }
  last_look(1000);
  EXPECT_EQ(tracks().size(), 3U);
  EXPECT_EQ(lost("mark_cut"), 1 + 2);  // the files that were not opened; a track too many in two files
}

TEST(RingDirectoryTest, ItIsPrivateAndGoesWithItsOwner) {
  std::string path;
  {
    auto made = RingDirectory::make({"/no/such/place", ::testing::TempDir()});
    ASSERT_TRUE(made.has_value()) << made.error().what;
    path = made->path();
    struct stat info {};
    ASSERT_EQ(::stat(path.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700U);
    std::ofstream(path + "/1-0.marks") << "x";
    EXPECT_EQ(remove_stale_rings(::testing::TempDir()), 0) << "its owner lives";
    EXPECT_TRUE(std::filesystem::exists(path));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(RingDirectoryTest, WithoutAPlaceThereIsAReason) {
  const auto made = RingDirectory::make({"/no/such/place"});
  ASSERT_FALSE(made.has_value());
  EXPECT_NE(made.error().what.find("/no/such/place"), std::string::npos);
}

TEST(RingDirectoryTest, WhatAKilledOwnerLeftIsRemovedAndNothingElse) {
  std::string place = std::string(::testing::TempDir()) + "stale-XXXXXX";
  ASSERT_NE(::mkdtemp(place.data()), nullptr);
  const pid_t owner = ::fork();
  if (owner == 0) {
    auto made = RingDirectory::make({place});
    if (made) std::ofstream(made->path() + "/1-0.marks") << "x";
    ::_exit(made ? 0 : 1);  // no destructor
  }
  int status = 0;
  ::waitpid(owner, &status, 0);
  ASSERT_EQ(status, 0);
  std::filesystem::create_directory(place + "/headroom-marks.new-abc");  // may be about to be locked
  std::filesystem::create_directory(place + "/somebody-elses");
  std::filesystem::create_directory_symlink(place + "/somebody-elses", place + "/headroom-marks-link");
  std::ofstream(place + "/somebody-elses/file") << "x";
  EXPECT_EQ(remove_stale_rings(place), 1);
  EXPECT_EQ(remove_stale_rings(place), 0);
  EXPECT_TRUE(std::filesystem::exists(place + "/somebody-elses/file"));
  EXPECT_TRUE(std::filesystem::exists(place + "/headroom-marks.new-abc"));
  std::filesystem::remove_all(place);
}

}  // namespace
}  // namespace headroom::marks
