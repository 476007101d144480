// SPDX-License-Identifier: Apache-2.0
#include "report/progress_words.h"

#include <gtest/gtest.h>

namespace headroom::report {
namespace {

TEST(ProgressWords, ARangeGoesOutwards) {
  EXPECT_EQ(seconds_between(12.6, 14.2), "12 to 15 s");
  EXPECT_EQ(seconds_between(700, 830), "11 to 14 min");
  EXPECT_EQ(seconds_between(9000, 10'000), "2.5 to 2.8 h");
  EXPECT_EQ(seconds_between(0, 30), "at most 30 s");
  EXPECT_EQ(seconds_between(0, 0.2), "at most 1 s");
  EXPECT_EQ(seconds_between(60, 60), "about 60 s");
}

TEST(ProgressWords, WhereTheJobIsAndHowLongItMayTake) {
  Progress progress;
  progress.epoch = Progress::At{3, 5, false};
  EXPECT_EQ(progress_words(progress), "epoch 3/5");
  progress.step = Progress::At{120, 267, true};
  progress.left = Progress::Left{700, 830, Progress::Unit::kEpochs, false};
  progress.next_validation = Progress::Next{"validate", 70, 110};
  EXPECT_EQ(progress_words(progress),
            "epoch 3/5, step 120/267; 11 to 14 min left of these epochs if they go as the last ones; next validation "
            "in 70 to 110 s");
  progress.left->without_pauses = true;
  progress.next_validation.reset();
  EXPECT_EQ(progress_words(progress),
            "epoch 3/5, step 120/267; 11 to 14 min left of these epochs, and what comes between epochs");
  progress.epoch.reset();
  progress.left->to_end_of = Progress::Unit::kSteps;
  EXPECT_EQ(progress_words(progress), "step 120/267; 11 to 14 min left of these steps at this pace");
  progress = {};
  progress.epoch = Progress::At{5, 5, true};
  EXPECT_EQ(progress_words(progress), "epoch 5/5 done");
}

TEST(ProgressWords, AFoldStandsFirstAndNoWholeIsInvented) {
  Progress progress;
  progress.fold = Progress::At{1, 2, false};
  progress.epoch = Progress::At{3, 0, false};
  progress.step = Progress::At{1230, 0, true};
  EXPECT_EQ(progress_words(progress), "fold 1/2, epoch 3, 1,230 steps counted");
  progress.left = Progress::Left{700, 830, Progress::Unit::kFolds, false};
  EXPECT_EQ(progress_words(progress),
            "fold 1/2, epoch 3, 1,230 steps counted; 11 to 14 min left of these folds if they go as the last ones");
}

TEST(ProgressWords, WhatIsBestIsSaidWhereTheNameTells) {
  SaidMetric loss{.name = "loss", .last = 0.4, .first = 2.31, .lowest = 0.31, .highest = 2.31, .values = 12};
  EXPECT_EQ(metric_words(loss), "0.4 last, 2.31 first, 0.31 lowest and 2.31 highest of 12 kept");
  loss.better = Better::kLower;
  EXPECT_EQ(metric_words(loss), "0.4 last, 2.31 first, 0.31 best (lowest) of 12 kept");
  loss.better = Better::kHigher;
  EXPECT_EQ(metric_words(loss), "0.4 last, 2.31 first, 2.31 best (highest) of 12 kept");
  loss.values = 1;
  EXPECT_EQ(metric_words(loss), "0.4");
}

TEST(ProgressWords, ACurveGoesFromTheLowestToTheHighest) {
  EXPECT_EQ(curve_text({8, 4.5, 1}), "█▅▁");
  EXPECT_EQ(curve_text({2, 2}), "▁▁");
  EXPECT_EQ(curve_text({2}), "");
  EXPECT_EQ(curve_text({8, 7, 6, 5, 4, 3, 2, 1}, 3), "█▅▁");
  EXPECT_EQ(curve_text({-1.7e308, 1.7e308}), "▁█");
}

}  // namespace
}  // namespace headroom::report
