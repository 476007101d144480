// SPDX-License-Identifier: Apache-2.0
#include "model/explanation.h"

#include <gtest/gtest.h>

namespace headroom {
namespace {

TEST(Explanation, ANameTellsWhichWayAMetricIsBetter) {
  EXPECT_EQ(better_by_name("val_loss"), Better::kLower);
  EXPECT_EQ(better_by_name("Perplexity"), Better::kLower);
  EXPECT_EQ(better_by_name("eval_accuracy"), Better::kHigher);
  EXPECT_EQ(better_by_name("valid_0's auc"), Better::kHigher);
  EXPECT_EQ(better_by_name("learning_rate"), Better::kUnknown);
  EXPECT_EQ(better_by_name("val/mAP50"), Better::kHigher);
  EXPECT_EQ(better_by_name("top1_acc"), Better::kHigher);
  EXPECT_EQ(better_by_name("RMSE"), Better::kLower);
  for (const char* other : {"layer2.grad_norm", "loss_scale", "neg_mean_squared_error", "grad_accum",
                            "accumulated_tokens", "heatmap", "applied", "interrupts"})
    EXPECT_EQ(better_by_name(other), Better::kUnknown) << other;
  EXPECT_EQ(better_by_name("loss_score"), Better::kUnknown) << "both";
}

}  // namespace
}  // namespace headroom
