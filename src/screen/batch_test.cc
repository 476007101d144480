// SPDX-License-Identifier: Apache-2.0
#include "screen/batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/strings.h"

namespace headroom::screen {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr Nanos kTick = kSecond / 2;

BatchProgress::Gpu gpu(int index, std::size_t running, double util) {
  return {.gpu = {.uuid = "GPU-" + std::to_string(index),
                  .model = "NVIDIA RTX A6000",
                  .index = index,
                  .memory_bytes = std::int64_t{48} << 30},
          .running = running,
          .used_bytes = std::int64_t{8} << 30,
          .util_ratio = util,
          .power_watts = 212,
          .temperature_celsius = 64,
          .tasks_per_second = 2.8,
          .alone_tasks_per_second = 0.7};
}

// A batch of two and a half minutes: GPU 0 busy, GPU 1 in waves; the second half has a failure.
struct Shown {
  explicit Shown(std::size_t gpus = 2) {
    for (Nanos t = kTick; t <= 150 * kSecond; t += kTick) {
      progress.elapsed = t;
      progress.gpus.clear();
      for (std::size_t i = 0; i < gpus; ++i)
        progress.gpus.push_back(gpu(static_cast<int>(i), 3, i == 0 ? 0.9 : (t / (20 * kSecond)) % 2 == 0 ? 1.0 : 0.0));
      trail.add(progress);
    }
    progress.tasks = {.total = 252, .ready = 70, .running = 6, .succeeded = 174, .failed = 2};
    progress.left = 65 * kSecond, progress.left_low = 50 * kSecond, progress.left_high = 95 * kSecond;
    for (int i = 0; i < 6; ++i)
      progress.running.push_back(
          {.task = "lr0.0" + std::to_string(i) + "-seed" + std::to_string(i), .elapsed = (60 - i) * kSecond});
  }
  [[nodiscard]] std::string text(Size most, Look look = {.colour = false, .utf8 = true}) const {
    std::string text;
    for (const Line& line : batch_picture(progress, trail, most, look)) {
      std::string row = text_of({line}, look.colour);
      text += row.empty() ? "\n" : row;
    }
    return text;
  }

  BatchProgress progress;
  view::BatchTrail trail;
};

std::size_t rows_in(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

TEST(BatchPicture, At40Columns) {
  EXPECT_EQ(Shown().text({40, 24}), R"(176/252  70 %  2:30  2 failed
about 1:05 left (50.0 s to 1:35)
GPU 0  3 running gpu 90 % 212 W 64 °C
 -2:30 ++++++++++++++++++++++++++++++
GPU 1  3 running gpu 0 % 212 W 64 °C
 -2:30 ++++uuuu++++uuuu++++uuuu++++uu
+ work under way 72 %  and 1 more
running: lr0.00-seed0 1:00
  lr0.01-seed1 59.0 s  and 4 more
)");
}
TEST(BatchPicture, At80Columns) {
  EXPECT_EQ(Shown().text({80, 24}), R"(██████████▒░░░░  176/252  70 %  2:30  2 failed  about 1:05 left (50.0 s to 1:35)
GPU 0  RTX A6000  3 running  8.0/48 GiB  gpu 90 %  212 W  64 °C  2.8 tasks/s
 -2:30 ++++++++++++++++++++++++++++++++++++++++++++++++++
GPU 1  RTX A6000  3 running  8.0/48 GiB  gpu 0 %  212 W  64 °C  2.8 tasks/s
 -2:30 +++++++uuuuuu+++++++uuuuuu+++++++uuuuuuu+++++++uuu
+ work under way 72 %  u idle, cause not looked at yet 28 %
running: lr0.00-seed0 1:00  lr0.01-seed1 59.0 s  lr0.02-seed2 58.0 s
  lr0.03-seed3 57.0 s  lr0.04-seed4 56.0 s  lr0.05-seed5 55.0 s
)");
}
TEST(BatchPicture, At120ColumnsWithFourGpus) {
  EXPECT_EQ(Shown(4).text({120, 24}),
            R"(██████████████████▒░░░░░░░  176/252  70 %  2:30  2 failed  about 1:05 left (50.0 s to 1:35)
0   ++++++++++++++++++++++++++++++++++++++++++++++++++        3 running  8.0/48 GiB  gpu 90 %  212 W  64 °C  2.8 tasks/s
1   +++++++uuuuuu+++++++uuuuuu+++++++uuuuuuu+++++++uuu        3 running  8.0/48 GiB  gpu 0 %  212 W  64 °C  2.8 tasks/s
2   +++++++uuuuuu+++++++uuuuuu+++++++uuuuuuu+++++++uuu        3 running  8.0/48 GiB  gpu 0 %  212 W  64 °C  2.8 tasks/s
3   +++++++uuuuuu+++++++uuuuuu+++++++uuuuuuu+++++++uuu        3 running  8.0/48 GiB  gpu 0 %  212 W  64 °C  2.8 tasks/s
+ work under way 62 %  u idle, cause not looked at yet 38 %
running: lr0.00-seed0 1:00  lr0.01-seed1 59.0 s  lr0.02-seed2 58.0 s  lr0.03-seed3 57.0 s  lr0.04-seed4 56.0 s
  lr0.05-seed5 55.0 s
)");
}

TEST(BatchPicture, WhatNobodyLookedAtIsNotCalledUnexplained) {
  for (const std::size_t columns : {40U, 60U, 80U, 200U})
    EXPECT_THAT(Shown().text({columns, 24}), Not(HasSubstr("unexplained")));
}

TEST(BatchPicture, HasNoMoreRowsThanTheTerminal) {
  for (const std::size_t gpus : {0U, 1U, 3U, 8U, 16U}) {
    const Shown shown(gpus);
    for (std::size_t rows = 1; rows <= 24; ++rows)
      for (const std::size_t columns : {1U, 20U, 40U, 79U, 200U}) {
        const auto lines = batch_picture(shown.progress, shown.trail, {columns, rows}, {});
        ASSERT_LE(lines.size(), rows);
        ASSERT_GE(lines.size(), 1U);
        for (const Line& line : lines) ASSERT_LE(line.size(), std::max<std::size_t>(columns, 8));
      }
  }
}

TEST(BatchPicture, CountsTheGpusThatHaveNoRoom) {
  EXPECT_THAT(Shown(16).text({80, 10}), HasSubstr("more GPUs"));
  EXPECT_THAT(Shown(8).text({80, 24}), Not(HasSubstr("more GPU")));
}

TEST(BatchPicture, WhatIsNotKnownYetIsSaid) {
  Shown shown;
  shown.progress.left.reset();
  EXPECT_THAT(shown.text({100, 24}), HasSubstr("how long it takes is not known yet"));
  shown.progress.draining = true;
  EXPECT_THAT(shown.text({100, 24}), Not(HasSubstr("not known")));
  EXPECT_THAT(shown.text({100, 24}), HasSubstr("ending, 6 running"));
}

TEST(BatchPicture, WithoutReadingsThereIsNoStrip) {
  Shown shown(0);
  view::BatchTrail unseen;
  shown.progress.gpus.push_back({.gpu = {.uuid = "GPU-0", .model = "H200", .index = 0}, .running = 2});
  unseen.add(shown.progress);
  std::string text;
  for (const Line& line : batch_picture(shown.progress, unseen, {80, 24}, {.colour = false, .utf8 = true}))
    text += text_of({line}, false);
  EXPECT_THAT(text, HasSubstr("GPU 0  H200  2 running\n"));
  EXPECT_THAT(text, Not(HasSubstr("-2:30")));
}

TEST(BatchPicture, ColourSaysNothingThatWordsDoNot) {
  const std::string plain = Shown().text({80, 24}, {.colour = false, .utf8 = false});
  EXPECT_TRUE(std::all_of(plain.begin(), plain.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; }))
      << plain;
  EXPECT_THAT(plain, HasSubstr("64 C"));
  const std::string colour = Shown().text({80, 24}, {.colour = true, .utf8 = true});
  EXPECT_THAT(colour, HasSubstr("\033[0;1;31m2 failed"));
  EXPECT_EQ(rows_in(colour), rows_in(plain));
}

TEST(BatchPicture, ANameFromOutsideMovesNothing) {
  Shown shown;
  shown.progress.running = {{.task = "\x1b[2J\n\x1b[H", .elapsed = kSecond}};
  const std::string text = shown.text({80, 24});
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_THAT(text, HasSubstr("\\x1b"));
}

TEST(BatchPicture, TheBarShowsWhatRunsBeforeAnythingHasEndedAndOneThatFailed) {
  const auto bar = [](BatchProgress::Tasks tasks) {
    Shown shown(0);
    shown.progress.tasks = tasks, shown.progress.left.reset(), shown.progress.running.clear(),
    shown.progress.draining = true;
    const Line line = batch_picture(shown.progress, shown.trail, {80, 5}, {.colour = true, .utf8 = false}).front();
    std::string cells;
    for (std::size_t i = 0; i < 26; ++i) cells += line[i].style.ink == Colour::kRed ? "!" : line[i].letter;
    return cells;
  };
  EXPECT_EQ(bar({.total = 12, .running = 12}), std::string(26, '+'));
  EXPECT_EQ(bar({.total = 1000, .running = 1}), "+" + std::string(25, '.'));
  EXPECT_EQ(bar({.total = 1000, .succeeded = 999, .failed = 1}), std::string(25, '#') + "!");
  EXPECT_EQ(bar({.total = 4, .running = 1, .succeeded = 2}),
            std::string(13, '#') + std::string(7, '+') + std::string(6, '.'));
}

}  // namespace
}  // namespace headroom::screen
