// SPDX-License-Identifier: Apache-2.0
// Programs in C, with the libraries as they are delivered, read by the recorder's reader.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/strings.h"
#include "base/testing.h"
#include "base/time.h"
#include "marks/marks_reader.h"
#include "model/events.h"

namespace headroom {
namespace {

using Words = std::vector<std::string>;

constexpr const char *kMarksProgram = "inject/marks_program", *kNvtxProgram = "inject/nvtx_program";

class Inject : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::string(::testing::TempDir()) + "inject-XXXXXX";
    ASSERT_NE(::mkdtemp(folder_.data()), nullptr);
    since_ = boottime_now();
    limit_ = RLIM_INFINITY;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Runs a program to its end; gives its exit code, 128 and the signal where it died of one.
  int run(const char* program, Words words, const std::string& marks) {
    return end_of(start(program, std::move(words), marks));
  }
  pid_t start(const char* program, Words words, const std::string& marks) const {
    const std::string path = in_build(program), library = in_build("src/lib/headroom/libheadroom_nvtx.so");
    const pid_t pid = ::fork();
    if (pid == 0) {
      if (!marks.empty()) ::setenv("HEADROOM_MARKS", marks.c_str(), 1);
      ::setenv("NVTX_INJECTION64_PATH", library.c_str(), 1);
      const rlimit limit{limit_, limit_};
      ::setrlimit(RLIMIT_FSIZE, &limit);
      std::vector<char*> argv{const_cast<char*>(path.c_str())};
      for (auto& word : words) argv.push_back(word.data());
      argv.push_back(nullptr);
      ::execv(path.c_str(), argv.data());
      ::_exit(127);
    }
    return pid;
  }
  static int end_of(pid_t pid) {
    int status = 0;
    ::waitpid(pid, &status, 0);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  }
  int marks(Words words) { return run(kMarksProgram, std::move(words), folder_); }
  int nvtx(Words words) { return run(kNvtxProgram, std::move(words), folder_); }

  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(folder_), std::filesystem::directory_iterator()));
  }
  const Recording& recorded() {
    marks::MarksReader reader({.directory = folder_, .since = since_});
    reader.end_with_next_read();
    reader.read(boottime_now(), sink_);
    return sink_.recording();
  }
  // The phases of each track, without their times: "epoch, epoch/train, ".
  std::vector<std::string> phases() {
    const Recording& recording = recorded();
    std::vector<std::string> lines;
    for (const SourceId id : recording.all(SourceKind::kMarks)) {
      std::vector<std::string> rows;
      for (const ListRow& row : recording.tracks[static_cast<std::size_t>(id)].lists) {
        std::vector<std::string> names;
        for (const TextId text : recording.lists[row.list]) names.push_back(recording.texts[text]);
        rows.push_back(join(names, "/"));
      }
      lines.push_back(join(rows, ", "));
    }
    return lines;
  }
  std::int64_t last_of(Metric metric) {
    std::int64_t sum = 0;
    for (const SourceId id : sink_.recording().all(SourceKind::kMarks))
      if (const Column* column = sink_.recording().tracks[static_cast<std::size_t>(id)].find(metric))
        sum += column->values.back();
    return sum;
  }

  std::string folder_;
  Nanos since_ = 0;
  rlim_t limit_ = RLIM_INFINITY;
  MemorySink sink_;
};

TEST_F(Inject, PhasesStepsMetricsAndParametersArrive) {
  EXPECT_EQ(marks({"begin:epoch", "sleep:30", "begin:train", "step:32", "step:32", "sleep:30", "end:train", "sleep:30",
                   "metric:val_loss=0.25", "parameter:lr=1e-3", "end", "sleep:30", "phase:save", "sleep:30", "phase"}),
            0);
  EXPECT_EQ(phases(), (Words{"epoch, epoch/train, epoch, , save, "}));
  EXPECT_EQ(last_of(Metric::kSteps), 2);
  EXPECT_EQ(last_of(Metric::kSamples), 64);
  std::vector<std::string> said;
  for (const Event& event : sink_.recording().events) {
    if (const auto metric = of_event<events::MetricValue>(event)) said.push_back(metric->name);
    if (const auto parameter = of_event<events::Parameter>(event)) said.push_back(parameter->value);
    if (const auto progress = of_event<events::Progress>(event))
      said.push_back(fmt::format("{} {}", progress->unit, progress->number));
  }
  EXPECT_THAT(said, ::testing::UnorderedElementsAre("val_loss", "1e-3", "epoch 1"));
  EXPECT_TRUE(sink_.recording().losses.empty());
}

TEST_F(Inject, NothingIsDoneWithoutARecorder) {
  EXPECT_EQ(run(kMarksProgram, {"begin:a", "step:1", "fork", "end:a", "errno"}, ""), 0);
  EXPECT_EQ(run(kNvtxProgram, {"loaded:0", "push:a", "pop"}, ""), 0);
  EXPECT_EQ(files(), 0U);
}

TEST_F(Inject, WhereNoRingCanBeMadeNothingIsSaid) {
  ::testing::internal::CaptureStderr();
  for (const char* place : {"/no/such/place", "/proc", "/etc/passwd", "relative", "/"}) {
    if (::geteuid() == 0 && std::string_view(place) == "/") continue;  // root may
    EXPECT_EQ(run(kMarksProgram, {"begin:a", "errno", "step:1", "fork", "end:a"}, place), 0) << place;
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

TEST_F(Inject, ALimitToTheSizeOfFilesIsNotRunInto) {
  limit_ = 100'000;
  EXPECT_EQ(marks({"begin:a", "step:1", "end:a"}), 0) << "SIGXFSZ would be 128 + 25";
  EXPECT_EQ(files(), 0U);
}

TEST_F(Inject, AKilledProgramLosesNothing) {
  EXPECT_EQ(marks({"begin:train", "burst:5000", "begin:step", "kill"}), 128 + 9);
  // On a slow machine the burst lasts so long that the phase before it has a row of its own.
  EXPECT_THAT(phases(), ::testing::ElementsAre(::testing::AnyOf("train/step", "train, train/step")));
  EXPECT_EQ(last_of(Metric::kSteps), 5000);
}

TEST_F(Inject, ThreadsHaveTracksOfTheirOwnAndLoseNothing) {
  EXPECT_EQ(marks({"threads:8", "step:1"}), 0);
  EXPECT_EQ(recorded().all(SourceKind::kMarks).size(), 9U);
  EXPECT_EQ(last_of(Metric::kSteps), 8001);
  EXPECT_TRUE(sink_.recording().losses.empty());
}

TEST_F(Inject, AChildHasARingOfItsOwn) {
  EXPECT_EQ(marks({"begin:before", "sleep:30", "fork", "begin:after", "sleep:30", "end:after", "sleep:30", "wait"}), 0);
  EXPECT_EQ(files(), 2U);
  auto lines = phases();
  std::sort(lines.begin(), lines.end());
  EXPECT_EQ(lines, (Words{"after, ", "before, before/after, before"}));
}

TEST_F(Inject, AChildThatMarksNothingMakesNothing) {
  EXPECT_EQ(marks({"begin:before", "fork", "wait"}), 0);
  EXPECT_EQ(files(), 1U);
}

TEST_F(Inject, MoreThanTheRingHoldsIsCounted) {
  EXPECT_EQ(marks({"burst:100000"}), 0);
  const Recording& recording = recorded();
  ASSERT_EQ(recording.losses.size(), 1U);
  EXPECT_EQ(recording.losses[0].what, "mark_lost");
  EXPECT_EQ(recording.losses[0].count, 100'000 - HEADROOM_MARKS_SLOTS);
  EXPECT_EQ(last_of(Metric::kSteps), HEADROOM_MARKS_SLOTS);
}

// As fast as it can be written, four rounds of 1.6 million, and as fast as it can be read.
TEST_F(Inject, UnderAStormEveryMarkIsReadOnceOrCounted) {
  marks::MarksReader reader({.directory = folder_, .since = since_});
  Words words;
  for (int i = 0; i < 4; ++i) words.insert(words.end(), {"burst:1600000", "sleep:5", "metric:round=1"});
  const pid_t pid = start(kMarksProgram, words, folder_);
  siginfo_t info{};
  while (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0)
    reader.read(boottime_now(), sink_);
  reader.end_with_next_read();
  reader.read(boottime_now(), sink_);
  EXPECT_EQ(end_of(pid), 0);
  std::int64_t lost = 0, metrics = 0;
  for (const Loss& loss : sink_.recording().losses) {
    EXPECT_EQ(loss.what, "mark_lost") << loss.detail;
    lost += loss.count;
  }
  for (const Event& event : sink_.recording().events) metrics += of_event<events::MetricValue>(event) ? 1 : 0;
  EXPECT_GE(metrics, 1);
  EXPECT_GT(last_of(Metric::kSteps), 0);
  // Of the four metrics those that were written over are among the lost.
  const std::int64_t seen = last_of(Metric::kSteps) + lost;
  EXPECT_GE(seen, 6'400'000);
  EXPECT_LE(seen, 6'400'004);
}

TEST_F(Inject, ErrnoStays) { EXPECT_EQ(marks({"errno", "errno"}), 0); }

TEST_F(Inject, GarbageInARingIsHarmless) {
  EXPECT_EQ(marks({"begin:train", "burst:100", "garbage", "burst:10"}), 0);
  recorded();
  EXPECT_FALSE(sink_.recording().losses.empty());
}

TEST_F(Inject, NvtxRangesArePhases) {
  EXPECT_EQ(nvtx({"loaded:1", "push:epoch", "depth:0", "sleep:30", "pushx:forward", "depth:1", "sleep:30", "pop",
                  "depth:1", "mark", "sleep:30", "pop", "depth:0", "sleep:30", "pop", "depth:-1"}),
            0);
  EXPECT_EQ(phases(), (Words{"epoch, epoch/forward, epoch, "}));
  EXPECT_EQ(sink_.recording().sources.back().attrs.at("via"), "nvtx");
}

TEST_F(Inject, NvtxTextsOfAllKinds) {
  EXPECT_EQ(nvtx({"pushw:wide ", "sleep:30", "pop", "pushxw:wide too ", "sleep:30", "pop", "pushr:registered",
                  "sleep:30", "pop", "pushx:", "sleep:30", "pop"}),
            0);
  Words lines = phases();
  // On a busy machine the time between two of them may last long enough for a row of its own, without a name.
  for (std::string& line : lines)
    for (std::size_t gap = 0; (gap = line.find(", , ")) != std::string::npos;) line.erase(gap, 2);
  EXPECT_EQ(lines, (Words{"wide ü\U0001f600, wide too ü\U0001f600, registered, "}));
}

TEST_F(Inject, NvtxDomainsNest) {
  EXPECT_EQ(nvtx({"dpush:a:one", "depth:0", "sleep:30", "dpush:b:two", "depth:0", "sleep:30", "dpop:a", "depth:0",
                  "sleep:30", "dpop:b", "dpop:a", "depth:-1"}),
            0);
  EXPECT_EQ(phases(), (Words{"one, one/two, two, "}));
}

TEST_F(Inject, NvtxRangesMayEndInAnotherThread) {
  EXPECT_EQ(nvtx({"start:copy", "sleep:30", "push:forward", "sleep:30", "thread-end", "sleep:30", "pop"}), 0);
  EXPECT_EQ(phases(), (Words{"copy, copy/forward, forward, "}));
}

TEST_F(Inject, NvtxInAChildBeginsAnew) {
  EXPECT_EQ(
      nvtx({"push:parent", "start:range", "sleep:30", "fork", "pop", "end", "push:both", "sleep:30", "pop", "wait"}),
      0);
  auto lines = phases();
  std::sort(lines.begin(), lines.end());
  EXPECT_EQ(lines, (Words{"both, ", "parent/range, both, "}));
}

TEST_F(Inject, TwoCopiesOfNvtxInOneProgramBothWork) {
  EXPECT_EQ(nvtx({"push:first", "sleep:30", "second", "push:second", "sleep:30", "pop", "sleep:30", "pop"}), 0);
  EXPECT_EQ(phases(), (Words{"first, first/second, first, "}));
}

TEST_F(Inject, DeepNvtxRangesStayBalanced) {
  Words words{"push:bottom", "sleep:30"};
  for (int i = 0; i < 100; ++i) words.push_back("push:deep");
  words.push_back("sleep:30");
  for (int i = 0; i < 100; ++i) words.emplace_back("pop");
  words.insert(words.end(), {"sleep:30", "pop", "sleep:30"});
  EXPECT_EQ(nvtx(words), 0);
  const auto lines = phases();
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_TRUE(lines[0].starts_with("bottom, bottom/deep/")) << lines[0];
  EXPECT_TRUE(lines[0].ends_with("deep, bottom, ")) << lines[0];
}

}  // namespace
}  // namespace headroom
