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
  progress.left = Progress::Left{700, 830, true, false};
  progress.next_validation = Progress::Next{"validate", 70, 110};
  EXPECT_EQ(progress_words(progress),
            "epoch 3/5, step 120/267; 11 to 14 min left of these epochs if they go as the last ones; next validation "
            "in 70 to 110 s");
  progress.left->without_pauses = true;
  progress.next_validation.reset();
  EXPECT_EQ(progress_words(progress),
            "epoch 3/5, step 120/267; 11 to 14 min left of these epochs, and what comes between epochs");
  progress.epoch.reset();
  progress.left->of_epochs = false;
  EXPECT_EQ(progress_words(progress), "step 120/267; 11 to 14 min left of these steps at this pace");
  progress = {};
  progress.epoch = Progress::At{5, 5, true};
  EXPECT_EQ(progress_words(progress), "epoch 5/5 done");
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
  EXPECT_EQ(curve_text({-1.7e308, 1.7e308}), "▁█");
}

}  // namespace
}  // namespace headroom::report
