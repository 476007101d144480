// SPDX-License-Identifier: Apache-2.0
#include "marks/output_reader.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/regular_file.h"
#include "base/strings.h"
#include "model/notes.h"
#include "pump/pump.h"

namespace headroom::marks {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Words = std::vector<std::string>;

class OutputReaderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int ends[2];
    ASSERT_EQ(::pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0);
    out_ = Fd(ends[0]);
    in_ = Fd(ends[1]);
    folder_ = std::filesystem::temp_directory_path() / fmt::format("headroom-lines-{}", ::getpid());
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void send(std::string_view text, Nanos at, std::uint16_t stream = 1, std::uint32_t lost = 0) {
    const pump::CopyHeader header{
        .at = at, .lost = lost, .bytes = static_cast<std::uint16_t>(text.size()), .stream = stream};
    std::string record(reinterpret_cast<const char*>(&header), sizeof header);
    record += text;
    ASSERT_EQ(::write(in_.get(), record.data(), record.size()), static_cast<ssize_t>(record.size()));
  }
  std::unique_ptr<OutputReader> reader(std::unique_ptr<LineSource> lines) {
    OutputReaderOptions options{.source = {SourceKind::kMarks, "7/1/7/output"}, .process_key = "7/1"};
    options.lines.push_back(std::move(lines));
    return std::make_unique<OutputReader>(std::move(options));
  }
  std::string path() const { return folder_ / "log"; }
  void append(std::string_view text) { std::ofstream(path(), std::ios::app) << text; }
  Words lines(LineSource& source) {
    Words found;
    output::LineCutter cutter;
    source.look(1 << 20, 1, [&](const LineSource::Piece& piece) {
      if (!piece.follows) found.emplace_back("-");
      cutter.take(piece.bytes, 1, [&](std::string_view line, Nanos) { found.emplace_back(line); });
    });
    return found;
  }

  Words phases() {
    Words found;
    const Recording& recording = sink_.recording();
    for (const Track& track : recording.tracks)
      for (const ListRow& row : track.lists) {
        Words names;
        for (const TextId id : recording.lists[row.list]) names.push_back(recording.texts[id]);
        found.push_back(fmt::format("{} {}", row.at / kMillisecond, join(names, "/")));
      }
    return found;
  }

  Fd in_, out_;
  std::filesystem::path folder_;
  MemorySink sink_;
};

TEST_F(OutputReaderTest, LinesHaveTheInstantAtWhichTheyCameAndTheRecordingTheirProcess) {
  const auto one = reader(copied_lines(std::move(out_)));
  send("Epoch 1/2\nValid", 100 * kMillisecond);
  send("ating...\n", 300 * kMillisecond);
  one->read(kSecond, sink_);
  EXPECT_THAT(phases(), ElementsAre("100 epoch", "300 validate"));
  const auto& sources = sink_.recording().sources;
  ASSERT_EQ(sources.size(), 2U);
  EXPECT_EQ(sources[1].parent, 0);
  EXPECT_EQ(sources[0].key, "7/1");
}

TEST_F(OutputReaderTest, LinesOfTwoStreamsAreInOrderOfTime) {
  const auto one = reader(copied_lines(std::move(out_)));
  send("Valida", 100 * kMillisecond, 1);
  send("Epoch 1/2\n", 200 * kMillisecond, 2);
  send("ting...\n", 300 * kMillisecond, 1);
  one->read(kSecond, sink_);
  EXPECT_THAT(phases(), ElementsAre("200 epoch", "300 validate"));
}

TEST_F(OutputReaderTest, WhatWasLostIsCountedAndTheLineAroundItIsNone) {
  const auto one = reader(copied_lines(std::move(out_)));
  send("Epoch", kMillisecond);
  send(" 1/2\nValidating...\n", 200 * kMillisecond, 1, 5);
  one->read(kSecond, sink_);
  EXPECT_THAT(phases(), ElementsAre("200 validate"));
  ASSERT_EQ(sink_.recording().losses.size(), 1U);
  EXPECT_EQ(sink_.recording().losses[0].what, "output_lost");
  EXPECT_EQ(sink_.recording().losses[0].count, 5);
}

TEST_F(OutputReaderTest, ALineWithoutAnEndCountsWhenItStandsForAWhileAndAtTheEnd) {
  const auto one = reader(copied_lines(std::move(out_)));
  send("Validating...", 100 * kMillisecond);
  one->read(150 * kMillisecond, sink_);
  EXPECT_THAT(phases(), IsEmpty());
  one->read(2 * kSecond, sink_);
  EXPECT_THAT(phases(), ElementsAre("100 validate"));
  send("\nEpoch 3/5", 2500 * kMillisecond);
  one->end_soon();
  one->read(2501 * kMillisecond, sink_);
  EXPECT_THAT(phases(), ElementsAre("100 validate", "2500 epoch"));
}

TEST_F(OutputReaderTest, MoreThanALookHoldsIsReadLaterWithItsOwnInstants) {
  const auto one = reader(copied_lines(std::move(out_)));
  ::fcntl(in_.get(), F_SETPIPE_SZ, 1 << 20);
  const std::string filler(4000, 'x');
  send("Epoch 1/2\n", 100 * kMillisecond);
  for (int i = 0; i < 40; ++i) send(filler + "\n", 100 * kMillisecond);
  send("Validating...\n", 500 * kMillisecond);
  one->read(2 * kSecond, sink_);
  EXPECT_THAT(phases(), IsEmpty()) << "what comes may lie close to it";
  one->read(3 * kSecond, sink_);
  one->read(4 * kSecond, sink_);
  EXPECT_THAT(phases(), ElementsAre("100 epoch", "500 validate"));
}

TEST_F(OutputReaderTest, AFileIsReadFromItsEnd) {
  append("old\n");
  auto source = lines_at_path(path());
  ASSERT_TRUE(source);
  append("new\n");
  EXPECT_THAT(lines(**source), ElementsAre("new"));
  EXPECT_THAT(lines(**source), IsEmpty());
}

TEST_F(OutputReaderTest, AFileThatIsMadeLaterIsReadFromItsBegin) {
  auto source = lines_at_path(path());
  ASSERT_TRUE(source);
  EXPECT_THAT(lines(**source), IsEmpty());
  append("one\n");
  EXPECT_THAT(lines(**source), ElementsAre("one"));
}

TEST_F(OutputReaderTest, AFileThatIsCutShortIsReadFromItsBegin) {
  append("a long line of old\n");
  auto source = lines_at_path(path());
  std::filesystem::resize_file(path(), 0);
  append("new\n");
  EXPECT_THAT(lines(**source), ElementsAre("-", "new"));
}

TEST_F(OutputReaderTest, AFileThatIsMovedAwayIsReadToItsEndAndThenItsSuccessor) {
  append("old\n");
  auto source = lines_at_path(path());
  append("last\n");
  std::filesystem::rename(path(), path() + ".1");
  EXPECT_THAT(lines(**source), ElementsAre("last"));
  append("first\n");
  EXPECT_THAT(lines(**source), ElementsAre("-", "first"));
}

TEST_F(OutputReaderTest, FarBehindTheEndCountsAndTheRestIsSaid) {
  append("");
  auto source = lines_at_path(path());
  std::string many;
  for (int i = 0; i < 1'000'000; ++i) many += "0123456\n";
  append(many);
  std::int64_t lost = 0;
  (*source)->look(1 << 20, 1, [&](const LineSource::Piece& piece) { lost += piece.lost_before; });
  EXPECT_NEAR(static_cast<double>(lost), 1'000'000 - (1 << 20) / 8, 10);
}

TEST_F(OutputReaderTest, WhatIsNoRegularFileIsRefusedAndNotWaitedFor) {
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  EXPECT_EQ(lines_at_path(path()).error().code, Errc::kInvalidInput);
  EXPECT_EQ(lines_at_path("/dev/zero").error().code, Errc::kInvalidInput);
  EXPECT_EQ(lines_at_path(folder_).error().code, Errc::kInvalidInput);
}

TEST_F(OutputReaderTest, AFifoInThePlaceOfALogIsNotWaitedForEither) {
  append("one\n");
  auto source = lines_at_path(path());
  std::filesystem::remove(path());
  ASSERT_EQ(::mkfifo(path().c_str(), 0600), 0);
  EXPECT_THAT(lines(**source), IsEmpty());
}

TEST_F(OutputReaderTest, LogsOfManyJobsComeAndGoAndWhatTheySaidLastIsRead) {
  const auto readers = std::make_shared<LogReaders>();
  const auto one = reader_of(readers);
  append("Epoch 1/2\n");
  for (std::uint64_t job = 1; job <= 2; ++job) {
    OutputReaderOptions options{.source = {SourceKind::kMarks, fmt::format("{}/1/{}/output", job, job)}};
    options.lines.push_back(lines_of_file(*open_regular(path()), 0));
    readers->add(job, std::move(options));
  }
  one->read(kSecond, sink_);
  append("Validating...\n");
  readers->end(1);
  one->read(2 * kSecond, sink_);
  append("val_loss: 0.3\n");
  readers->end_all();
  one->read(3 * kSecond, sink_);
  EXPECT_THAT(phases(), ElementsAre("1000 epoch", "2000 validate", "1000 epoch", "2000 validate", "3000 epoch"));
}

TEST_F(OutputReaderTest, AJobThatSaysNothingOfItselfLeavesNothing) {
  const auto one = reader(copied_lines(std::move(out_)));
  send("hello world\n", kMillisecond);
  one->read(kSecond, sink_);
  one->end_soon();
  one->read(2 * kSecond, sink_);
  EXPECT_TRUE(sink_.recording().sources.empty());
}

TEST_F(OutputReaderTest, ALogInAFolderThatIsNotThereIsRefused) {
  const auto refused = lines_at_path(folder_ / "no" / "such" / "log");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("there is no folder"), std::string::npos);
}

TEST_F(OutputReaderTest, TrialsThatFailOneAfterTheOtherAreNotedEach) {
  const auto one = reader(copied_lines(std::move(out_)));
  for (int trial = 0; trial < 40; ++trial)
    send("Trial failed because of OutOfMemoryError('CUDA out of memory')\nOutOfMemoryError: CUDA out of memory\n",
         kMillisecond);
  one->read(kSecond, sink_);
  EXPECT_EQ(sink_.recording().events.size(), 80U);
}

TEST_F(OutputReaderTest, TheExceptionAtTheEndIsNotedWhereThatIsWanted) {
  for (const bool wanted : {false, true}) {
    MemorySink sink;
    OutputReaderOptions options{.source = {SourceKind::kMarks, "7/1/7/output"}, .last_words = wanted};
    append("Traceback (most recent call last):\n  File \"a\"\nValueError: hf_abcdefghijklmnopqrstuv is no token\n");
    options.lines.push_back(lines_of_file(Fd(::open(path().c_str(), O_RDONLY | O_CLOEXEC)), 0));
    OutputReader one(std::move(options));
    one.read(kSecond, sink);
    EXPECT_TRUE(sink.recording().events.empty());
    one.end_soon();
    one.read(2 * kSecond, sink);
    ASSERT_EQ(sink.recording().events.size(), wanted ? 1U : 0U);
    if (wanted) {
      EXPECT_EQ(sink.recording().events[0].attrs.at("text"),
                std::string(kNoteException) + "ValueError: *** is no token");
    }
  }
}

TEST_F(OutputReaderTest, ThatAGpusMemoryDidNotSufficeIsNoted) {
  const auto one = reader(copied_lines(std::move(out_)));
  send("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 8 GiB\nMemoryError\nall memory is fine\n",
       kMillisecond);
  one->read(kSecond, sink_);
  const auto& events = sink_.recording().events;
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].attrs.at("text"),
            std::string(kNoteOutOfMemory) + "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 8 GiB");
}

}  // namespace
}  // namespace headroom::marks
