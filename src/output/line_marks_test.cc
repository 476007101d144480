// SPDX-License-Identifier: Apache-2.0
#include "output/line_marks.h"

#include <gmock/gmock.h>

#include "base/fd.h"
#include "base/strings.h"
#include "base/testing.h"
#include "output/line_marks_testing.h"

namespace headroom::output {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

TEST(LineMarks, MetricsOfJsonLinesAndOfSentences) {
  Said json;
  json.print(
      "{\"epoch\": 1, \"step\": 120, \"loss\": 0.8, \"val/acc\": \"0.61\", \"lr\": "
      "1e-4}\n{\"loss\":0.7,\"val_acc\":0.62}\n");
  EXPECT_EQ(json.metrics,
            (std::map<std::string, double>{{"loss", 0.7}, {"val/acc", 0.61}, {"val_acc", 0.62}, {"lr", 1e-4}}));
  Said own;
  own.print(
      "{\"headroom\": {\"params\": {\"lr\": 0.1}, \"metrics\": {\"auc\": 0.93}}}\n{\"lr\": 0.1, \"loss_weight\": 2, "
      "\"acc_steps\": 6}\n");
  EXPECT_THAT(own.metrics, IsEmpty()) << "another form, and parameters";
  Said words;
  words.print("loss=0.9, val_acc 0.4\nfold 12 done val_auc=0.820\nTrain Loss: 0.34\n");
  EXPECT_EQ(words.metrics,
            (std::map<std::string, double>{{"loss", 0.9}, {"val_acc", 0.4}, {"val_auc", 0.82}, {"train_loss", 0.34}}));
}

TEST(LineMarks, MetricsOfOnesOwnStandBesideKnownOnes) {
  const auto metrics = [](std::string_view line) { return Said().print(std::string(line) + "\n").metrics; };
  using Metrics = std::map<std::string, double>;
  EXPECT_EQ(metrics("epoch 3 loss 0.9"), (Metrics{{"loss", 0.9}}));
  EXPECT_EQ(metrics("epoch 1/8  recall@20 0.045"), (Metrics{{"recall@20", 0.045}}));
  EXPECT_EQ(metrics("[3] loss: 0.8 IC: 0.051"), (Metrics{{"loss", 0.8}, {"IC", 0.051}}));
  EXPECT_EQ(metrics("Fold 2 val_auc=0.71 ic=-.02"), (Metrics{{"val_auc", 0.71}, {"ic", -0.02}}));
  EXPECT_EQ(metrics("Epoch 4: train loss 0.52, IC=0.034, Sharpe: 1.21, took 12.3s, time: 8 s, mem=3.2GB, lr=3e-4"),
            (Metrics{{"train_loss", 0.52}, {"IC", 0.034}, {"Sharpe", 1.21}, {"lr", 3e-4}}));
  EXPECT_EQ(metrics("Epoch 4/9 | loss: 0.5 | speed: 81.2 samples/s"),
            (Metrics{{"loss", 0.5}, {"samples_per_second", 81.2}}));
  EXPECT_EQ(metrics("loss: 0.5 sharpe: 0.6 ic: 0.02"), (Metrics{{"loss", 0.5}, {"sharpe", 0.6}, {"ic", 0.02}}));
  EXPECT_EQ(metrics("loss 0.5 sharpe=0.6"), (Metrics{{"loss", 0.5}, {"sharpe", 0.6}}));
  EXPECT_EQ(metrics("sharpe=1.1 ic=0.03 accuracy=0.8"), (Metrics{{"sharpe", 1.1}, {"ic", 0.03}, {"accuracy", 0.8}}));
  EXPECT_EQ(metrics("Fold 1/3 loss=0.4 sharpe=1.2"), (Metrics{{"loss", 0.4}, {"sharpe", 1.2}}));
  EXPECT_EQ(metrics("[fold 1/3] IC=0.03 Sharpe=1.20 loss=0.4"),
            (Metrics{{"IC", 0.03}, {"Sharpe", 1.2}, {"loss", 0.4}}));
  EXPECT_EQ(metrics("2026-11-29 05:10:01,123 INFO trainer: epoch=1 loss=0.9 sharpe=0.3"),
            (Metrics{{"loss", 0.9}, {"sharpe", 0.3}}));
  EXPECT_EQ(metrics("Epoch 1/3 | loss 1.0 | Sharpe 0.3 | IC 0.01"),
            (Metrics{{"loss", 1.0}, {"Sharpe", 0.3}, {"IC", 0.01}}));
  EXPECT_EQ(metrics("Epoch 1/3 | loss 1.0 | mem 3.2 GB | GPU 0 | took 4 s | IC 0.01"),
            (Metrics{{"loss", 1.0}, {"IC", 0.01}}));
  EXPECT_EQ(metrics("lr=0.1 loss_weight=2 layers=3"), Metrics{}) << "settings";
  EXPECT_EQ(metrics("Sharpe: 1.21"), Metrics{}) << "what it is, nothing tells";
  EXPECT_EQ(metrics("epoch 3 of the paper: loss of data in 2019"), Metrics{});
}

TEST(LineMarks, LightningsBarsTellTrainingFromValidation) {
  Said said;
  said.print("\rSanity Checking: |          | 0/? [00:00<?, ?it/s]");
  said.print("\rSanity Checking DataLoader 0:   0%|          | 0/2 [00:00<?, ?it/s]");
  said.print("\rSanity Checking DataLoader 0: 100%|██████████| 2/2 [00:00<00:00, 12.1it/s]");
  said.print("\rEpoch 0:   0%|          | 0/4 [00:00<?, ?it/s]");
  for (int i = 1; i <= 3; ++i)
    said.print(fmt::format("\rEpoch 0:  {}%|##   | {}/4 [00:12<00:15,  9.60it/s, loss=0.34, v_num=1]", i * 25, i));
  said.print("\rEpoch 0: 100%|##########| 4/4 [00:16<00:00,  9.60it/s, loss=0.25, v_num=1]");
  said.print("\rValidation: |          | 0/? [00:00<?, ?it/s]\x1b[A");
  said.print("\n\rValidation DataLoader 0:  50%|#####     | 1/2 [00:00<00:00, 37.48it/s]\x1b[A");
  said.print("\n\rValidation DataLoader 0: 100%|##########| 2/2 [00:00<00:00, 37.48it/s]\x1b[A");
  said.print("\rEpoch 0: 100%|##########| 4/4 [00:18<00:00,  9.6it/s, loss=0.25, v_num=1, val_acc=0.166]");
  said.print("\rEpoch 1:   0%|          | 0/4 [00:00<?, ?it/s, loss=0.25, v_num=1]");
  said.print("\rEpoch 1:  25%|##        | 1/4 [00:00<00:03, 9.6it/s, loss=0.2, v_num=1]\n");
  EXPECT_THAT(said.phases, ElementsAre("sanity_check", "", "train", "", "validate", "", "train"));
  EXPECT_EQ(said.steps, 5);
  EXPECT_EQ(said.metrics, (std::map<std::string, double>{{"loss", 0.2}, {"val_acc", 0.166}}));
}

TEST(LineMarks, AnEpochsBarThatMovesWithTheValidationIsNoTraining) {
  Said said;
  said.print("Epoch 0:   0%|          | 0/1016 [00:00<?, ?it/s]\n");
  said.print("Epoch 0:  50%|#####     | 508/1016 [00:30<00:30, 27.70it/s, loss=0.223]\n");
  for (int i = 0; i < 10; ++i) {
    said.print(fmt::format("Validation DataLoader 0:  46%|##   | {}/157 [00:02<00:02, 37.48it/s]\n", i * 5));
    for (int k = 0; k < 5; ++k)
      said.print(fmt::format("Epoch 0:  92%|###  | {}/1016 [00:33<00:03, 27.70it/s, loss=0.223]\n", 509 + i * 5 + k));
  }
  EXPECT_THAT(said.phases, ElementsAre("train", "validate"));
  EXPECT_EQ(said.steps, 508);
}

TEST(LineMarks, AValidationsBarThatIsClearedIsOver) {
  Said said;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (int i = 0; i <= 40; i += 20)
      said.print(fmt::format("\rEpoch {}:  20%|##  | {}/50 [00:01<00:04, 10.0it/s]", epoch, i));
    for (int i = 0; i <= 20; i += 10)
      said.print(fmt::format("\rValidation:  20%|##  | {}/30 [00:01<00:04, 10.0it/s]", i));
    said.print("\r                                                            \r");
  }
  EXPECT_THAT(said.phases, ElementsAre("train", "validate", "", "train", "validate", ""));
  Said unpainted;
  for (int epoch = 0; epoch < 2; ++epoch) {
    for (int i = 0; i <= 40; i += 20)
      unpainted.print(fmt::format("\rEpoch {}:  20%|##  | {}/50 [00:01<00:04, 10.0it/s]", epoch, i));
    unpainted.print("\rValidation:  20%|##  | 10/30 [00:01<00:04, 10.0it/s]");
  }
  unpainted.print("\n");
  EXPECT_THAT(unpainted.phases, ElementsAre("train", "validate", "train", "validate"));
  EXPECT_EQ(unpainted.steps, 80);
}

TEST(LineMarks, ABarThatMovesAloneAfterAValidationIsTrainingAgain) {
  Said said;
  said.between = kSecond;
  for (int i = 0; i <= 30; i += 10) said.print(fmt::format("\rEpoch 0:  20%|##  | {}/100 [00:01<00:04, 10.0it/s]", i));
  said.print("\rValidation:  20%|##  | 10/30 [00:01<00:04, 10.0it/s]");
  for (int i = 40; i <= 90; i += 10) said.print(fmt::format("\rEpoch 0:  20%|##  | {}/100 [00:01<00:04, 10.0it/s]", i));
  said.print("\n");
  EXPECT_THAT(said.phases, ElementsAre("train", "validate", "train"));
}

TEST(LineMarks, KerasTrainsValidatesAtAnEpochsEndAndEvaluatesWithTheSameBar) {
  Said said;
  for (int epoch = 1; epoch <= 2; ++epoch) {
    said.print(fmt::format("Epoch {}/2\n", epoch));
    said.print("\r  1/267 [..............................] - ETA: 3:02 - loss: 0.98 - accuracy: 0.1");
    said.print("\b\b\b\b\b\r120/267 [============>.................] - ETA: 5s - loss: 0.34 - accuracy: 0.9");
    said.print("\b\b\b\b\b\r267/267 [==============================] - ETA: 0s - loss: 0.30 - accuracy: 0.91");
    said.print(
        "\b\b\b\r267/267 [==============================] - 12s 45ms/step - loss: 0.30 - accuracy: 0.91 - "
        "val_loss: 0.41 - val_accuracy: 0.88\n");
  }
  said.print("30/30 [==============================] - 1s 30ms/step - loss: 0.41 - accuracy: 0.88\n");
  // That it validates is known after the first epoch.
  EXPECT_THAT(said.phases, ElementsAre("epoch", "train", "", "epoch", "train", "validate", ""));
  EXPECT_EQ(said.steps, 2 * 267);
  EXPECT_EQ(said.metrics, (std::map<std::string, double>{
                              {"loss", 0.30}, {"accuracy", 0.91}, {"val_loss", 0.41}, {"val_accuracy", 0.88}}));
}

TEST(LineMarks, WhatKerasEvaluatesAfterATrainingWithoutValidationIsNoTraining) {
  Said said;
  said.print("Epoch 1/1\n 10/20 [=====>.....] - ETA: 5s - loss: 0.34\n20/20 [=====] - 12s 45ms/step - loss: 0.3\n");
  said.print(" 3/10 [=====>.....] - ETA: 5s - loss: 0.34\n10/10 [=====] - 12s 45ms/step - loss: 0.3\n");
  said.print("Saving checkpoint to x\nwords\n");
  EXPECT_THAT(said.phases, ElementsAre("epoch", "train", "", "checkpoint", ""));
  EXPECT_EQ(said.steps, 10) << "a bar that is first seen in its middle counts from there";
}

TEST(LineMarks, AnotherTrainingMayTellInAnotherWay) {
  Said said;
  said.print("Epoch 1/3\nEpoch 2/3\nEpoch 3/3\n");
  said.print("Epoch 1/20 | loss 0.34\nEpoch 2/20 | loss 0.31\n");
  EXPECT_THAT(said.progress, ElementsAre("epoch 1/3 begun", "epoch 2/3 begun", "epoch 3/3 begun", "epoch 1/20 done",
                                         "epoch 2/20 done"));
}

TEST(LineMarks, EpochsInBracketsAndWithAnEqualsSign) {
  Said bracket, equals;
  bracket.print("[Epoch 001/003]\n[Epoch 002/003]\n");
  EXPECT_THAT(bracket.progress, ElementsAre("epoch 1/3 begun", "epoch 2/3 begun"));
  equals.print("epoch=1/3 loss=0.34\nepoch=2/3 loss=0.31\n");
  EXPECT_THAT(equals.progress, ElementsAre("epoch 1/3 done", "epoch 2/3 done"));
}

TEST(LineMarks, StepsOfAllEpochsAreNotThoseOfOne) {
  Said said;
  said.print("Epoch 1/5 | global step 23/200 | loss 2.31\nEpoch 1/5 | step 23/40 | loss 2.31\n");
  EXPECT_THAT(said.progress, ElementsAre("epoch 1/5 within", "step 23/200 counted", "step 23/40 counted in epoch"));
}

TEST(LineMarks, WhatPrecisionIsUsedIsAParameter) {
  const auto told = [](std::string_view line) {
    Said said;
    said.print(line);
    said.print("\n");
    const auto found = said.parameters.find("mixed_precision");
    return found == said.parameters.end() ? std::string() : found->second;
  };
  EXPECT_EQ(told("[2026-01-01 10:00:00] [AMP] enabled, scaler off, amp_dtype=torch.bfloat16"), "bfloat16");
  EXPECT_EQ(told("Using 16bit Automatic Mixed Precision (AMP)"), "16bit");
  EXPECT_EQ(told("Mixed precision type: no"), "no");
  EXPECT_EQ(told("use_amp: True, lr: 0.1"), "True");
  EXPECT_EQ(told("  'precision': 'bf16-mixed',"), "bf16-mixed");
  EXPECT_EQ(told("precision=bf16-mixed"), "bf16-mixed");
  EXPECT_EQ(told("precision: 0.93 recall: 0.91"), "") << "a score";
  EXPECT_EQ(told("average precision = 16"), "");
  EXPECT_EQ(told("fp16=True,"), "True");
  EXPECT_EQ(told("bf16: True"), "True");
  EXPECT_EQ(told("Autocast enabled: True (dtype=bf16)"), "True");
  EXPECT_EQ(told("bf16=False, fp16=True, lr=0.1"), "True");
  EXPECT_EQ(told("Namespace(lr=0.1, amp=False, epochs=3)"), "False");
  EXPECT_EQ(told("{'fp16': True, 'lr': 0.1}"), "True");
  EXPECT_EQ(told("fp16=False, lr=0.1"), "") << "it may be bf16";
  EXPECT_EQ(told("set fp16=True to save memory"), "");
  EXPECT_EQ(told("Using 16bit native Automatic Mixed Precision (AMP)"), "16bit");
  EXPECT_EQ(told("Namespace(amp=False, precision='bf16', lr=0.1)"), "bf16");
  EXPECT_EQ(told("{'use_amp': True}"), "True");
  for (const char* prose : {"mixed precision: see the documentation", "mixed precision: no speed-up was measured",
                            "WARNING mixed precision: none of the parameters", "loss scale amp: no overflow",
                            "You can try mixed_precision=fp16 to save memory", "KV cache precision: fp16"})
    EXPECT_EQ(told(prose), "") << prose;
}

TEST(LineMarks, Keras3IsReadAsWell) {
  Said said;
  said.print(
      "Epoch 1/5\n\x1b[1m  1/267\x1b[0m \x1b[37m━━━━━━━━━━━━━━━━━━━━\x1b[0m \x1b[1m1:02\x1b[0m 235ms/step - loss: "
      "2.3\r");
  said.print(
      "\x1b[1m120/267\x1b[0m \x1b[32m━━━━━━━━\x1b[0m\x1b[37m━━━━━\x1b[0m \x1b[1m5s\x1b[0m 45ms/step - accuracy: 0.81 - "
      "loss: 0.34\r");
  said.print("120/Unknown 5s 45ms/step - loss: 0.3\r\n");
  EXPECT_EQ(said.metrics["accuracy"], 0.81);
  EXPECT_THAT(said.phases, ElementsAre("epoch", "train"));
  EXPECT_GE(said.steps, 119);
}

constexpr std::string_view kTrainer =
    "[INFO|trainer.py:2128] 2024-05-02 10:00:00,123 >> ***** Running training *****\n"
    "[INFO|trainer.py:2129] 2024-05-02 10:00:00,123 >>   Num examples = 3,668\n"
    "[INFO|trainer.py:2132] 2024-05-02 10:00:00,124 >>   Total train batch size (w. parallel, distributed & "
    "accumulation) = 32\n"
    "[INFO|trainer.py:2135] 2024-05-02 10:00:00,124 >>   Total optimization steps = 500\n"
    "\r  0%|          | 0/500 [00:00<?, ?it/s]\r 20%|##        | 100/500 [00:10<00:40, 10.0it/s]"
    "\r{'loss': 0.63, 'grad_norm': 1.2, 'learning_rate': 4.8e-05, 'epoch': 0.87}\n"
    "[INFO|trainer.py:3719] 2024-05-02 10:00:10,000 >> ***** Running Evaluation *****\n"
    "\r  0%|          | 0/13 [00:00<?, ?it/s]\x1b[A\r100%|##########| 13/13 [00:01<00:00, 9.9it/s]\x1b[A"
    "\r{'eval_loss': 0.5, 'eval_runtime': 1.3, 'eval_samples_per_second': 77.1, 'epoch': 0.87}\n"
    "[INFO|trainer.py:3410] 2024-05-02 10:00:12,000 >> Saving model checkpoint to out/checkpoint-100\n"
    "[INFO|configuration_utils.py:472] 2024-05-02 10:00:12,000 >> Configuration saved in "
    "out/checkpoint-100/config.json\n"
    "[INFO|modeling_utils.py:2690] 2024-05-02 10:00:13,000 >> Model weights saved in "
    "out/checkpoint-100/model.safetensors\n"
    "\r 40%|####      | 200/500 [00:23<00:30, 10.0it/s]\r"
    "{'train_runtime': 60.1, 'train_samples_per_second': 266.0, 'train_loss': 0.5, 'epoch': 4.0}\n";

TEST(LineMarks, TheTrainerOfHuggingFaceTellsAllItsPhases) {
  Said said;
  said.print(kTrainer);
  EXPECT_THAT(said.phases, ElementsAre("train", "validate", "train", "checkpoint", "train", ""));
  EXPECT_EQ(said.steps, 200);
  EXPECT_EQ(said.samples, 200 * 32);
  EXPECT_EQ(said.metrics["eval_loss"], 0.5);
  EXPECT_EQ(said.metrics["learning_rate"], 4.8e-05);
  EXPECT_EQ(said.metrics["train_samples_per_second"], 266.0);
  EXPECT_EQ(said.parameters["Total optimization steps"], "500");
}

// As it prints by default: no lines of its logger.
TEST(LineMarks, WithoutItsLoggerTheTrainersSecondEvaluationIsKnownByItsBar) {
  Said said;
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i <= 4; ++i) said.print(fmt::format("\r 20%|##   | {}/500 [00:10<00:40, 10.0it/s]", round * 5 + i));
    said.print("\n{'loss': '0.63', 'grad_norm': '1.2', 'learning_rate': '4.8e-05', 'epoch': '0.87'}\n");
    said.print("\r  0%|          | 0/13 [00:00<?, ?it/s]\x1b[A\r 50%|#    | 7/13 [00:01<00:00, 9.9it/s]\x1b[A");
    said.print("\n{'eval_loss': '0.5', 'eval_runtime': '1.3', 'epoch': '0.87'}\n");
  }
  EXPECT_EQ(said.steps, 9);
  EXPECT_THAT(said.phases, ElementsAre("train", "validate", "train"));
  EXPECT_EQ(said.metrics["loss"], 0.63);
}

TEST(LineMarks, LightGbmsRowsAreStepsAndMetrics) {
  Said said;
  said.print("[LightGBM] [Info] Total Bins 25500\n[LightGBM] [Info] Start training from score 0.499120\n");
  said.print("Training until validation scores don't improve for 50 rounds\n");
  said.print("[100]\ttraining's l2: 0.31\tvalid_0's l2: 0.42\n[200]\ttraining's l2: 0.21\tvalid_0's l2: 0.43\n");
  said.print("Early stopping, best iteration is:\n[100]\ttraining's l2: 0.31\tvalid_0's l2: 0.42\n");
  said.print("[10]\tcv_agg's valid l2: 0.5 + 0.01\n");
  EXPECT_THAT(said.phases, IsEmpty()) << "nothing tells when boosting ends";
  EXPECT_EQ(said.steps, 210);
  EXPECT_EQ(said.metrics["valid_0's l2"], 0.43);
  EXPECT_EQ(said.metrics["cv_agg's valid l2"], 0.5);
}

TEST(LineMarks, ThatItMayStopEarlyIsAParameter) {
  const auto told = [](std::string_view line) {
    return Said().print(fmt::format("{}\n", line)).parameters["early_stopping"];
  };
  for (const char* line :
       {"Training until validation scores don't improve for 50 rounds", "Stopping. Best iteration:",
        "Did not meet early stopping. Best iteration is:", "Early stopping, best iteration is:",
        "Monitored metric val_loss did not improve in the last 3 records. Best score: 0.1. Signaling Trainer to stop.",
        "Epoch 12: early stopping", "INFO:root:Early stopping triggered after 12 epochs"})
    EXPECT_EQ(told(line), "yes") << line;
  for (const char* line :
       {"early stopping: off", "early_stopping=None", "without early stopping", "no early stopping at all"})
    EXPECT_EQ(told(line), "") << line;
}

TEST(LineMarks, XgboostsRowsCountFromZero) {
  Said said;
  for (int i = 0; i < 12; ++i) said.print(fmt::format("[{}]\ttrain-rmse:0.3{}\teval-rmse:0.4\n", i, i));
  said.print("[10:00:00] [12]\ttrain-rmse:0.25\teval-rmse:1e-05\n");
  EXPECT_EQ(said.steps, 13);
  EXPECT_EQ(said.metrics["eval-rmse"], 1e-05);
  EXPECT_THAT(said.phases, IsEmpty()) << "nothing tells when boosting ends";
  Said again;
  again.print("[0]\ttrain-rmse:0.3\n[9]\ttrain-rmse:0.3\n[0]\ttrain-rmse:0.3\n[9]\ttrain-rmse:0.3\n");
  EXPECT_EQ(again.steps, 20) << "a second training";
}

TEST(LineMarks, RowsSeenFromMidwayCountFromThere) {
  Said said({}, LineMarks::Seen::kFromMidway);
  said.print("[500]\ttrain-rmse:0.3\n[510]\ttrain-rmse:0.3\n");
  EXPECT_EQ(said.steps, 10);
  Said begun({}, LineMarks::Seen::kFromMidway);
  begun.print("[LightGBM] [Info] Start training from score 0.5\n[50]\tvalid_0's l2: 0.4\n");
  EXPECT_EQ(begun.steps, 50);
  Said users({*log_pattern(LogPattern::Kind::kStep, "", "did (\\d+)")}, LineMarks::Seen::kFromMidway);
  users.print("did 500\ndid 510\n");
  EXPECT_EQ(users.steps, 10);
}

TEST(LineMarks, AStepOfManyAloneOnItsLineIsCounted) {
  const auto counted = [](std::string_view text) {
    Said said;
    said.print(text);
    return said.steps;
  };
  EXPECT_EQ(counted("step 1/75\nstep 2/75\nstep 3/75\n"), 3);
  EXPECT_EQ(counted("Step 1/4\nStep 2/4\n"), 0) << "stages of something";
  EXPECT_EQ(counted("step 1/75: download\n"), 0);
}

TEST(LineMarks, WhereTheJobIsIsKeptWithItsWhole) {
  Said said;
  said.print("Epoch 1/5\n  0%|          | 0/267 [00:00<?, ?it/s]\r  1%|          | 1/267 [00:00<00:15,  9.60it/s]\r");
  said.print(" 45%|####5     | 120/267 [00:12<00:15,  9.60it/s]\nEpoch 2/5\n");
  EXPECT_THAT(said.progress,
              ElementsAre("epoch 1/5 begun", "step 1/267 counted", "step 120/267 counted", "epoch 2/5 begun"));
}

TEST(LineMarks, ABarThatNamesItsEpochCountsStepsOfIt) {
  Said said;
  said.print("Epoch 3/5:   0%|      | 1/9 [00:00<00:15,  9.60it/s]\n");
  EXPECT_THAT(said.progress, ElementsAre("epoch 3/5 begun", "step 1/9 counted in epoch"));
  Said lightning;
  lightning.print("Epoch 3:  10%|#     | 1/9 [00:00<00:15,  9.60it/s, v_num=1]\n");
  EXPECT_THAT(lightning.progress, ElementsAre("epoch 3/0 begun", "step 1/9 counted in epoch"))
      << "of how many epochs is not said";
  Said keras;
  keras.print("Epoch 1/5\n 1/267 [>....] - ETA: 5s - loss: 0.34\n");
  EXPECT_THAT(keras.progress, ElementsAre("epoch 1/5 begun", "step 1/267 counted in epoch"));
}

TEST(LineMarks, ABarOfEpochsCountsThoseThatAreDone) {
  Said said;
  said.print("Epochs:   0%|      | 0/5 [00:00<?, ?it/s]\rEpochs:  20%|#     | 1/5 [00:10<00:40,  0.1it/s]\n");
  EXPECT_THAT(said.progress, ElementsAre("epoch 0/5 counted", "epoch 1/5 counted"));
}

TEST(LineMarks, ALineWithALossIsTheEndOfItsEpoch) {
  Said said;
  said.print("Epoch [1/5], Loss: 0.34\nEpoch [2/5], Loss: 0.33\n");
  EXPECT_THAT(said.progress, ElementsAre("epoch 1/5 done", "epoch 2/5 done"));
  Said several;
  several.print("Epoch 1/5 | loss 0.34\nEpoch 1/5 | loss 0.33\nEpoch 2/5 | loss 0.32\n");
  EXPECT_THAT(several.progress, ElementsAre("epoch 1/5 done", "epoch 2/5 within"));
  Said headed;
  headed.print("Epoch 1/5\nEpoch 1/5 | loss 0.34\nEpoch 2/5\n");
  EXPECT_THAT(headed.progress, ElementsAre("epoch 1/5 begun", "epoch 2/5 begun"));
}

TEST(LineMarks, ALineMaySayBothAndNoWholeIsAPlaceAlone) {
  Said said;
  said.print("Epoch [1/5], Step [100/267], Loss: 0.34\nEpoch [1/5], Step [200/267], Loss: 0.33\n");
  EXPECT_THAT(said.progress,
              ElementsAre("epoch 1/5 within", "step 100/267 counted in epoch", "step 200/267 counted in epoch"));
  EXPECT_EQ(said.steps, 200);
  Said none;
  none.print("Epoch 3\nstep 120 | loss 0.3\n120it [00:12,  9.60it/s]\nstep 300/267 | loss 0.3\nEpoch 7/5\n");
  EXPECT_THAT(none.progress, ElementsAre("epoch 3/0 begun"));
}

TEST(LineMarks, AnEpochWithoutItsWholeIsAPlace) {
  Said said;
  said.print("epoch 3 loss 0.34 ic=0.051\nepoch 4: loss 0.33\nEpoch 4 | loss 0.32\nEpoch 0.5 loss 0.3\n");
  EXPECT_THAT(said.progress, ElementsAre("epoch 3/0 within", "epoch 4/0 within"));
  Said rows;
  rows.print("{\"epoch\": 3, \"loss\": 0.34}\n{\"epoch\": 3.5, \"loss\": 0.34}\n{'eval_loss': 0.3, 'epoch': 1.0}\n");
  EXPECT_THAT(rows.progress, ElementsAre("epoch 3/0 within"));
  Said both;
  both.print("Epoch 1/5\nEpoch 2 loss 0.3\nEpoch 2/5\n");
  EXPECT_THAT(both.progress, ElementsAre("epoch 1/5 begun", "epoch 2/5 begun"))
      << "where the whole is told, that counts";
}

TEST(LineMarks, FoldsAreToldAndTheirEpochsBeginAnew) {
  Said said;
  said.print("Fold 1/2\nEpoch 1/1\n=== Fold 2/2 ===\nEpoch 1/1\n");
  EXPECT_THAT(said.progress, ElementsAre("fold 1/2 begun", "epoch 1/1 begun", "fold 2/2 begun", "epoch 1/1 begun"));
  EXPECT_THAT(said.nths, ElementsAre(1, 2)) << "each is an epoch of its own";
  Said inside;
  inside.print("[Fold 1/5] Epoch 3/10 | loss 0.34\nFold 2/5, epoch 1/10 - loss 0.3\n");
  EXPECT_THAT(inside.progress, ElementsAre("fold 1/5 within", "epoch 3/10 done", "fold 2/5 within", "epoch 1/10 done"));
  Said metrics;
  metrics.print("fold 1/3 loss=0.34 sharpe=1.2\nTraining fold 2\nFold 2 results are in\nfolds: 5\n");
  EXPECT_THAT(metrics.progress, ElementsAre("fold 1/3 within"));
}

TEST(LineMarks, ABlockOfFiguresBelowAKnownMetricIsOfTheJobsOwn) {
  Said said;
  said.print(
      "Train Loss: 0.3592\nVal Loss:   0.3616\nVal Sharpe: 0.027082\nVal IC:     -0.004790\nVal RankIC: 0.005753\n"
      "Hit Rate:   0.5300\nPatience: 3\nEpoch time: 7.1\nSaved.\nLearning Rate: 0.001\n");
  EXPECT_THAT(said.metrics,
              UnorderedElementsAre(Pair("train_loss", 0.3592), Pair("val_loss", 0.3616), Pair("val_sharpe", 0.027082),
                                   Pair("val_ic", -0.00479), Pair("val_rankic", 0.005753), Pair("hit_rate", 0.53)));
  Said alone;
  alone.print("GPU Memory: 85.0\nepoch 3 loss 0.34 of 5\nTemperature: 0.7\n");
  EXPECT_THAT(alone.metrics, UnorderedElementsAre(Pair("loss", 0.34)));
}

TEST(LineMarks, EveryRuleOfTheTableKnowsItsExample) {
  for (const LineRule& rule : kLineRules) {
    const auto found = kinds_of(without_log_prefix(rule.example));
    const bool known =
        std::any_of(found.begin(), found.end(), [&](const LineMatch& one) { return one.rule->kind == rule.kind; });
    EXPECT_TRUE(known) << rule.example;
  }
}

TEST(LineMarks, TheUsersPageNamesEveryRule) {
  auto page = read_file(in_checkout("docs/output.md"));
  ASSERT_TRUE(page);
  std::erase(*page, '\\');  // a bar in a cell
  for (const LineRule& rule : kLineRules) EXPECT_NE(page->find(trim(rule.example)), std::string::npos) << rule.example;
}

TEST(LineMarks, ProseIsNoPhase) {
  Said said;
  for (const char* line : {"Validation loss: 0.34",
                           "Validation accuracy improved to 0.9",
                           "validation_split = 0.2",
                           "Validation set: 1000 samples",
                           "Evaluation of the paper's claims",
                           "Saving checkpoints every 500 steps",
                           "checkpoint_every: 5",
                           "Model saved in the past",
                           "Epoch 3/5, loss: 0.3",
                           "Epoch 3 took 12 s",
                           "epochs: 5",
                           "training data: 5 files",
                           "Loading checkpoint runs/1.pt",
                           "We train for 3 epochs",
                           "Running training script train.py",
                           "[12] a list item: yes",
                           "[1] see: https://x.y",
                           "{'lr': 0.1, 'batch_size': 32}",
                           "{\"headroom\": {\"params\": {\"epoch\": 1}}}",
                           "INFO:root:evaluating=False",
                           "import of module validation failed",
                           "Saving the world since 1999",
                           "Epoch time: 12:30:00"})
    said.print(std::string(line) + "\n");
  EXPECT_THAT(said.phases, IsEmpty());
  EXPECT_EQ(said.steps, 0);
}

TEST(LineMarks, PlainLinesBeginPhasesAndTheNextLineEndsACheckpoint) {
  Said said;
  said.print("INFO:root:Epoch 1/2\n2024-05-02 10:00:00,123 - INFO - train - step 10/20 | loss 0.3 | 12 ms\n");
  said.print("Validating...\nval_loss: 0.34\nSaving checkpoint to runs/7/last.pt\nstep 20/20 | loss 0.2 | 12 ms\n");
  said.print("--- Epoch: 2 ---\n");
  EXPECT_THAT(said.phases, ElementsAre("epoch", "validate", "epoch", "checkpoint", "epoch", "epoch"));
  EXPECT_EQ(said.steps, 20);
}

TEST(LineMarks, EpochsAreCountedAndAnInterruptionBeginsNone) {
  Said said;
  said.print("Epoch 1/3\nValidating...\nval_loss: 0.34\n");
  said.print("Epoch 2/3\nEpoch 2/3\nsome words\nEpoch 3/3\n");  // of two ranks
  EXPECT_THAT(said.phases, ElementsAre("epoch", "validate", "epoch", "epoch", "epoch"));
  EXPECT_THAT(said.nths, ElementsAre(1, 0, 1, 2, 3));
}

TEST(LineMarks, LossesOfWholeLinesAreMetrics) {
  Said said;
  said.print(
      "Epoch 1/3 | loss 0.50 | val_loss 0.41\n[epoch 2/3] Train Loss: 0.40 Val Acc: 91.5%\nTest Accuracy = 0.93\n");
  said.print("step 10/20 | loss 0.3 | 12 ms\nthe loss was 12 then, and accuracy: none\n");
  EXPECT_EQ(said.metrics,
            (std::map<std::string, double>{
                {"loss", 0.3}, {"val_loss", 0.41}, {"train_loss", 0.4}, {"val_acc", 91.5}, {"test_accuracy", 0.93}}));
}

TEST(LineMarks, EpochsThatBeginOrEndInWordsTellHowFarItIs) {
  Said begins, ends;
  begins.print("Starting epoch 1/3\nStarting epoch 2/3...\n");
  EXPECT_THAT(begins.progress, ElementsAre("epoch 1/3 begun", "epoch 2/3 begun"));
  ends.print("Epoch 1/3 completed in 4:12\n[epoch 2/3] done\n[epoch 3/3] Train Loss: 0.36\n");
  EXPECT_THAT(ends.progress, ElementsAre("epoch 1/3 done", "epoch 2/3 done", "epoch 3/3 done"));
}

TEST(LineMarks, RatesAreMetrics) {
  Said said;
  said.print("Speed: 1,512.3 samples/s\nthroughput: 9000 tokens/sec\n");
  EXPECT_EQ(said.metrics, (std::map<std::string, double>{{"samples_per_second", 1512.3}, {"tokens_per_second", 9000}}));
}

LogPattern pattern(LogPattern::Kind kind, const char* text) {
  return *(kind == LogPattern::Kind::kStep ? log_pattern(kind, "", text) : parse_log_option(kind, text));
}

TEST(LineMarks, AUsersPatternsStandInForTheBuiltInOnes) {
  Said said({pattern(LogPattern::Kind::kPhase, "warm up=^warming"), pattern(LogPattern::Kind::kPhase, "none=^end"),
             pattern(LogPattern::Kind::kStep, "did (\\d+) trees"),
             pattern(LogPattern::Kind::kMetric, "loss=now ([0-9.]+)")});
  said.print("warming the cache\nEpoch 1/3\ndid 5 trees\n 20%|##  | 10/50 [00:01<00:04, 10.0it/s, loss=9, acc=0.5]\n");
  said.print("did 9 trees, now 0.25\nend\n");
  EXPECT_THAT(said.phases, ElementsAre("warm up", ""));
  EXPECT_EQ(said.steps, 9);
  EXPECT_EQ(said.metrics, (std::map<std::string, double>{{"loss", 0.25}, {"acc", 0.5}}));
}

TEST(LineMarks, APhasesPatternNeedsNoGroupAndTheOthersNeedOne) {
  EXPECT_TRUE(parse_log_option(LogPattern::Kind::kPhase, "a=^a|(b)(c)"));
  EXPECT_FALSE(parse_log_option(LogPattern::Kind::kPhase, "=^a"));
  EXPECT_FALSE(parse_log_option(LogPattern::Kind::kPhase, "a=("));
  EXPECT_FALSE(parse_log_option(LogPattern::Kind::kMetric, "a=b"));
}

TEST(LineMarks, NumbersBeyondReasonAreNoSteps) {
  Said said;
  said.print(
      "  0%| | 0/999999999999999 [00:00<?, ?it/s]\n 20%|##  | 999999999999998/999999999999999 [00:01<00:04, "
      "10.0it/s]\n");
  said.print("[999999999]\ta's b: 1e999\n");
  EXPECT_LE(said.steps, 999'999'999);
  EXPECT_THAT(said.metrics, IsEmpty());
}

}  // namespace
}  // namespace headroom::output
