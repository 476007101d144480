// SPDX-License-Identifier: Apache-2.0
#include "tasks/template_pinning.h"

#include <gtest/gtest.h>

namespace headroom::tasks {
namespace {

using Words = std::vector<std::string>;

TaskSpec task(Words argv, int gpus = 1) {
  TaskSpec made;
  made.name = "a";
  made.argv = std::move(argv);
  made.shell = made.argv[0] == "/bin/sh";
  made.resources.gpus = gpus;
  return made;
}
// The argv after a rewrite; the same where there is no second pin.
Words rewritten(Words argv, int gpus = 1) {
  TaskSpec made = task(std::move(argv), gpus);
  EXPECT_TRUE(settle_second_pins(made, PinPolicy::kRewrite));
  EXPECT_TRUE(second_pins(made).empty());
  return made.argv;
}

TEST(SecondPin, OrdinalsThatTheTaskDoesNotSee) {
  EXPECT_EQ(rewritten({"t", "--gpu-device-id", "1"}), (Words{"t", "--gpu-device-id", "{gpu}"}));
  EXPECT_EQ(rewritten({"t", "--gpu_id=3", "x"}), (Words{"t", "--gpu_id={gpu}", "x"}));
  EXPECT_EQ(rewritten({"t", "device=cuda:1"}), (Words{"t", "device=cuda:{gpu}"}));
  EXPECT_EQ(rewritten({"t", "--device", "cuda:2"}), (Words{"t", "--device", "cuda:{gpu}"}));
  EXPECT_EQ(rewritten({"t", "trainer.device=cuda:1", "model.gpu_id=1"}),
            (Words{"t", "trainer.device=cuda:{gpu}", "model.gpu_id={gpu}"}));
  EXPECT_EQ(rewritten({"lightgbm", "gpu_device_id=1", "CUDA:1"}),
            (Words{"lightgbm", "gpu_device_id={gpu}", "CUDA:{gpu}"}));
  EXPECT_EQ(rewritten({"t", "--gpu", "{gpu_index}", "--gpu-id={slot}"}),
            (Words{"t", "--gpu", "{gpu}", "--gpu-id={gpu}"}));
  EXPECT_EQ(rewritten({"t", "--gpu", "2,3", "--device=cuda:5"}, 2), (Words{"t", "--gpu", "{gpu}", "--device=cuda:0"}));
}

TEST(SecondPin, WhatAgreesWithTheMaskIsNone) {
  for (const Words& argv :
       {Words{"t", "--gpu-device-id", "0"}, Words{"t", "--gpu", "{gpu}"}, Words{"t", "device=cuda"},
        Words{"t", "--device", "cuda:0"}, Words{"t", "--gpus", "4"}, Words{"t", "--device", "cpu"},
        Words{"t", "--epochs", "1"}, Words{"t", "--gpu", "-1"}, Words{"env", "CUDA_VISIBLE_DEVICES={gpu_uuid}", "t"},
        Words{"t", "--note", "device 1"}, Words{"t", "--gpu"},
        Words{"/bin/sh", "-c", "echo $CUDA_VISIBLE_DEVICES; CUDA_VISIBLE_DEVICES=$CUDA_VISIBLE_DEVICES t"}})
    EXPECT_TRUE(second_pins(task(argv)).empty()) << argv.back();
  EXPECT_TRUE(second_pins(task({"t", "--gpu", "1"}, 2)).empty());
  EXPECT_TRUE(second_pins(task({"t", "--gpu", "1"}, 0)).empty());
}

TEST(SecondPin, AMaskOfItsOwn) {
  EXPECT_EQ(rewritten({"env", "CUDA_VISIBLE_DEVICES=1", "t"}), (Words{"env", "CUDA_VISIBLE_DEVICES={gpu_uuid}", "t"}));
  // Its own ordinal, 0, would be the box's first GPU.
  EXPECT_EQ(
      rewritten(
          {"/bin/sh", "-c", "CUDA_VISIBLE_DEVICES={gpu} t; export CUDA_VISIBLE_DEVICES=\"1\"&&t --device 'cuda:1'"}),
      (Words{
          "/bin/sh", "-c",
          "CUDA_VISIBLE_DEVICES={gpu_uuid} t; export CUDA_VISIBLE_DEVICES=\"{gpu_uuid}\"&&t --device 'cuda:{gpu}'"}));
  EXPECT_EQ(rewritten({"bash", "-lc", "CUDA_VISIBLE_DEVICES= t --gpu 3"}),
            (Words{"bash", "-lc", "CUDA_VISIBLE_DEVICES={gpu_uuid} t --gpu {gpu}"}));
  TaskSpec variable = task({"t"});
  variable.environment = {{"A", "1"}, {"CUDA_VISIBLE_DEVICES", "1"}};
  variable.from_env_file = 2;
  ASSERT_TRUE(settle_second_pins(variable, PinPolicy::kRewrite));
  EXPECT_EQ(variable.environment, (std::vector<std::pair<std::string, std::string>>{{"A", "1"}}));
  EXPECT_EQ(variable.from_env_file, 1U);
}

TEST(SecondPin, IsRefusedWithItsPlace) {
  TaskSpec made = task({"python3", "train.py", "--gpu-device-id", "1"});
  made.file = "w.toml";
  made.line = 3;
  const auto refused = settle_second_pins(made, PinPolicy::kRefuse);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what,
            "w.toml:3: task a pins a GPU itself: --gpu-device-id 1 (argument 2): the task sees one GPU, and its number "
            "there is 0");
  EXPECT_EQ(refused.error().hint, "write --gpu-device-id {gpu}, or use --second-pin rewrite");
  EXPECT_TRUE(settle_second_pins(made, PinPolicy::kAllow));
  EXPECT_EQ(made.argv[3], "1");

  TaskSpec shell = task({"/bin/sh", "-c", "CUDA_VISIBLE_DEVICES=1 t"});
  EXPECT_EQ(
      settle_second_pins(shell, PinPolicy::kRefuse).error().what,
      "task a pins a GPU itself: CUDA_VISIBLE_DEVICES=1 (shell line): it replaces the mask by which the task is given "
      "its GPU");
  TaskSpec variable = task({"t"});
  variable.environment = {{"CUDA_VISIBLE_DEVICES", "0"}};
  EXPECT_EQ(second_pins(variable), (std::vector{SecondPin{"environment", "CUDA_VISIBLE_DEVICES=0", "",
                                                          "it replaces the mask by which the task is given its GPU"}}));
}

}  // namespace
}  // namespace headroom::tasks
