// SPDX-License-Identifier: Apache-2.0
#include "output/bar.h"

#include <gmock/gmock.h>

#include "output/line_marks_testing.h"

namespace headroom::output {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Bars, OfBarsWithinOneAnotherTheInnerOneCounts) {
  Said said;
  for (int epoch = 0; epoch < 3; ++epoch) {
    said.print(fmt::format("\rEpochs:  33%|###  | {}/3 [00:10<00:20, 10.1s/it]", epoch));
    for (int i = 0; i <= 50; i += 10) said.print(fmt::format("\n\r 20%|##  | {}/50 [00:01<00:04, 10.0it/s]\x1b[A", i));
  }
  EXPECT_EQ(said.steps, 150);
  Said unnamed;
  for (int epoch = 0; epoch < 3; ++epoch) {
    unnamed.print(fmt::format("\r  33%|###  | {}/3 [00:10<00:20, 10.1s/it]", epoch));
    for (int i = 0; i <= 50; i += 10)
      unnamed.print(fmt::format("\n\r 20%|##  | {}/50 [00:01<00:04, 10.0it/s]\x1b[A", i));
  }
  EXPECT_EQ(unnamed.steps, 150);
}

TEST(Bars, OfBarsAfterOneAnotherTheTrainingCounts) {
  Said said;
  for (int epoch = 0; epoch < 3; ++epoch) {
    for (int i = 0; i <= 100; i += 50) said.print(fmt::format("\r 50%|#  | {}/100 [00:01<00:04, 10.0it/s]", i));
    for (int i = 0; i <= 20; i += 10) said.print(fmt::format("\r 50%|#  | {}/20 [00:01<00:04, 10.0it/s]", i));
  }
  EXPECT_EQ(said.steps, 300);
  Said named;
  for (int i = 0; i <= 900; i += 10) named.print(fmt::format("\r 50%|#  | {}/900 [00:01<00:04, 10.0it/s]", i));
  named.print("\n");
  const auto prepared = named.steps;
  for (int i = 0; i <= 10; ++i) named.print(fmt::format("\rTraining:  50%|#  | {}/10 [00:01<00:04, 10.0it/s]", i));
  for (int i = 0; i <= 900; i += 10) named.print(fmt::format("\r 50%|#  | {}/900 [00:01<00:04, 10.0it/s]", i));
  named.print("\n");
  EXPECT_EQ(named.steps - prepared, 10);
}

TEST(Bars, BarsOfOtherThingsAreNoSteps) {
  Said said;
  for (const char* line : {"Downloading data:  45%|####5     | 12/30 [00:01<00:02, 3.40MB/s]",
                           "Downloading:  45%|####5     | 12.3M/45.0M [00:01<00:02, 3.40MB/s]",
                           "Map:  45%|####5     | 1200/3000 [00:01<00:02, 900.1 examples/s]",
                           "Generating train split:  45%|####5     | 1200/3000 [00:01<00:02, 900.1 examples/s]",
                           "Loading checkpoint shards:  50%|#####     | 1/2 [00:01<00:01,  1.0s/it]",
                           "Train tokenizer:  50%|#####     | 1/2 [00:01<00:01,  1.0s/it]",
                           "Evaluate candidates later:  50%|#####     | 1/2 [00:01<00:01,  1.0s/it]",
                           "see results/2024/12 [00:12<x", "3/4 of [the] work", "tests/unit 12/20 [ok]"})
    said.print(std::string(line) + "\n");
  EXPECT_EQ(said.steps, 0);
  EXPECT_THAT(said.phases, IsEmpty());
}

TEST(Bars, DescriptionsTellWhatABarIsAbout) {
  using enum BarOf;
  const std::pair<const char*, BarOf> cases[] = {
      {"Epoch 3", kTrain},
      {"Train Epoch 3/5", kTrain},
      {"Training", kTrain},
      {"Epoch 3/5 [train]", kTrain},
      {"Epoch 3/5 [val]", kValidate},
      {"Epoch 1 loss 0.345", kTrain},
      {"Validating", kValidate},
      {"eval", kValidate},
      {"Evaluating", kValidate},
      {"Epoch", kEpochs},
      {"Testing DataLoader 0", kTest},
      {"Predicting DataLoader 0", kPredict},
      {"Iteration", kTrain},
      {"Validation sanity check", kSanityCheck},
      {"Sanity Checking", kSanityCheck},
      {"Loading checkpoint shards", kOther},
      {"Generating train split", kOther},
      {"Map", kOther},
      {"Filter (num_proc=4)", kOther},
      {"Building training index", kOther},
      {"", kUnknown},
  };
  for (const auto& [text, about] : cases) EXPECT_EQ(bar_about(text), about) << text;
}

TEST(Bars, BarsWithoutADrawnBarAndEndlessOnesAreBars) {
  Said said;
  said.print("Epoch 0:   0% 0/3000 [00:00<?, ?it/s]\n");
  said.print("Epoch 0:  34% 1020/3000 [01:04<02:05, 15.73it/s, loss=1.2, v_num=1024]\n");
  EXPECT_EQ(said.steps, 1020);
  Said endless;
  endless.print("\r0it [00:00, ?it/s]\r7it [00:01,  5.10it/s]\r20it [00:03,  6.1it/s]\n");
  EXPECT_EQ(endless.steps, 20);
  EXPECT_THAT(endless.phases, IsEmpty());
}

TEST(Bars, RichsBarsAreBars) {
  Said said;
  said.print("\x1b[2KEpoch 0/4 \x1b[38m━━━\x1b[0m╺━━━━━━━ 0/267 0:00:00 • -:--:-- 0.00it/s v_num: 1\n");
  said.print(
      "\x1b[2KEpoch 0/4 \x1b[38m━━━━━━━\x1b[0m╺━━━ 120/267 0:00:12 • 0:00:15 9.60it/s v_num: 1 train_loss: 0.34\n");
  EXPECT_EQ(said.steps, 120);
  EXPECT_EQ(said.metrics, (std::map<std::string, double>{{"train_loss", 0.34}}));
  EXPECT_THAT(said.phases, ElementsAre("train"));
}

}  // namespace
}  // namespace headroom::output
