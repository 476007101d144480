// SPDX-License-Identifier: Apache-2.0
#include "stacks/frame.h"

#include <gtest/gtest.h>

#include <vector>

namespace headroom::stacks {
namespace {

PrecisionSeen seen(const std::string& text) {
  return precision_seen(std::vector<std::string>{"train (/u/t.py:1)", text});
}

TEST(Precision, IsToldByFramesThatRunInMixedPrecisionAlone) {
  const std::string torch = "/x/site-packages/torch/amp/";
  EXPECT_EQ(seen("GradScaler._maybe_opt_step (" + torch + "grad_scaler.py:347)").mixed,
            "GradScaler._maybe_opt_step (grad_scaler.py)");
  EXPECT_EQ(seen("GradScaler.step (" + torch + "grad_scaler.py:380)").mixed, "") << "it may be switched off";
  EXPECT_NE(seen("MixedPrecision.forward_context (/x/lightning/pytorch/plugins/precision/amp.py:12)").mixed, "");
  EXPECT_EQ(seen("<module> (/x/lightning/pytorch/plugins/precision/amp.py:1)").mixed, "") << "it is imported";
}

TEST(Precision, IsToldByAModuleThatIsCastAsAWholeAndByOptimizersOfSixteenBits) {
  const std::string module = "/x/site-packages/torch/nn/modules/module.py:1180)";
  EXPECT_EQ(seen("Module.bfloat16 (" + module).cast, "Module.bfloat16 (module.py)");
  EXPECT_NE(seen("Module.half (" + module).cast, "");
  EXPECT_EQ(seen("Module.half (" + module).mixed, "") << "it may be a copy that is saved";
  EXPECT_EQ(seen("Module.float (" + module).cast, "");
  EXPECT_EQ(seen("half (/u/my/module.py:3)").cast, "") << "it is the job's own";
  EXPECT_NE(seen("BF16_Optimizer.step (/x/deepspeed/runtime/bf16_optimizer.py:300)").mixed, "");
  EXPECT_NE(seen("FP16_Optimizer.step (/x/deepspeed/runtime/fp16/fused_optimizer.py:200)").mixed, "");
  EXPECT_NE(seen("HalfPrecision.forward_context (/x/lightning/pytorch/plugins/precision/half.py:40)").mixed, "");
}

TEST(Precision, AutocastOnAStackMayBeSwitchedOff) {
  const std::string file = " (/x/site-packages/torch/amp/autocast_mode.py:222)";
  for (const char* function : {"autocast_decorator.<locals>.decorate_autocast", "autocast.__exit__", "__enter__"}) {
    EXPECT_TRUE(seen(function + file).autocast) << function;
    EXPECT_EQ(seen(function + file).mixed, "");
  }
  EXPECT_FALSE(seen("<module>" + file).autocast);
  EXPECT_FALSE(seen("is_autocast_available" + file).autocast);
}

}  // namespace
}  // namespace headroom::stacks
