// SPDX-License-Identifier: Apache-2.0
#include "compare/memory.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace headroom::compare {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr double kGiB = 1073741824.0;

Side one_run() {
  Side side{.hardware = {.gpus = {"A6000"}}, .processes = 1, .others_bytes = 0};
  side.samples.push_back({.task = "train.py", .variables = Parameters{}});
  return side;
}

std::vector<ComparedFigure> held(double peak_a, double peak_b, double mean_a = kGiB, double mean_b = kGiB) {
  return {{"peak_memory", "GPU 0", peak_a, peak_b}, {"mean_memory", "GPU 0", mean_a, mean_b}};
}

std::string said(const std::vector<ComparedMemory>& facts) {
  std::string text;
  for (const ComparedMemory& one : facts) text += fmt::format("{}: {}\n", info(one.fact).code, one.text);
  return text;
}

TEST(Memory, ALittleIsNoDifference) {
  const Side side = one_run();
  EXPECT_THAT(memory_facts(side, side, {}, {}), IsEmpty()) << "of neither it is known";
  EXPECT_THAT(memory_facts(side, side, held(10 * kGiB, 10.4 * kGiB), {}), IsEmpty()) << "4 %";
  EXPECT_THAT(memory_facts(side, side, held(0.5 * kGiB, 0.56 * kGiB), {}), IsEmpty()) << "61 MiB";
  EXPECT_THAT(memory_facts(side, side, held(10 * kGiB, 10.6 * kGiB), {}), Not(IsEmpty()));
  EXPECT_THAT(memory_facts(side, side, {{"peak_memory", "GPU 0", kGiB, std::nullopt}}, {}), IsEmpty());
}

TEST(Memory, WhereNothingElseDiffersThatIsSaidAndWhatWouldTell) {
  Side a = one_run(), b = one_run();
  const auto figures = held(10 * kGiB, 20 * kGiB);
  EXPECT_EQ(said(memory_facts(a, b, figures, {})),
            "peak: 10.0 GiB in A, 20.0 GiB in B, on GPU 0\n"
            "not_told: what the recordings keep does not tell why: GPUs, tasks, processes on the GPU, the allocator's "
            "settings, batch size and precision are the same as far as they are known; the program's own account would "
            "tell, such as torch.cuda.memory_summary() at the end of both\n");
  a.samples[0].variables.reset(), b.processes.reset(), a.processes.reset();
  EXPECT_THAT(said(memory_facts(a, b, figures, {{"hidden_size", "64", "128", true}})),
              HasSubstr("known (not recorded: the environment of A, the processes on the GPU of either), and of the "
                        "parameters that differ only who knows the program can say; the"));
}

TEST(Memory, WhatDiffersIsSaidToDifferToo) {
  const auto facts = memory_facts(one_run(), one_run(), held(10 * kGiB, 20 * kGiB),
                                  {{"PYTORCH_CUDA_ALLOC_CONF", "", "expandable_segments:True", true},
                                   {"$XLA_PYTHON_CLIENT_PREALLOCATE", "true", "false", true},
                                   {"Total train batch size", "32", "64", false},
                                   {"train.batch-size", "32", "64", true},
                                   {"mixed_precision", "bf16", "no", true},
                                   {"lr", "0.1", "0.2", true}});
  EXPECT_EQ(said(facts),
            "peak: 10.0 GiB in A, 20.0 GiB in B, on GPU 0\n"
            "settings: PYTORCH_CUDA_ALLOC_CONF differs, too: not set in A, expandable_segments:True in B\n"
            "settings: $XLA_PYTHON_CLIENT_PREALLOCATE differs, too: true in A, false in B\n"
            "batch_size: Total train batch size differs, too: 32 in A, 64 in B\n"
            "batch_size: train.batch-size differs, too: 32 in A, 64 in B\n"
            "precision: mixed_precision differs, too: bf16 in A, no in B\n");
}

TEST(Memory, GpusTasksAndWhoHeldThemAreLookedAt) {
  Side a = one_run(), b = one_run();
  a.hardware.gpus = {"A100", "A100"}, b.hardware.gpus = {"H100"};
  a.samples.push_back({.task = "eval.py", .unseen = true});
  a.processes = 4, a.others_bytes = 3 * kGiB;
  EXPECT_EQ(
      said(memory_facts(a, b, held(10 * kGiB, 20 * kGiB), {})),
      "peak: 10.0 GiB in A, 20.0 GiB in B, on GPU 0\n"
      "gpu: the model differs, too: A100 in A, H100 in B\n"
      "tasks: only A ran eval.py\n"
      "unseen_tasks: 1 of A's 2 runs were not seen on their GPU: where they were shorter than the time between two "
      "readings, what they held may be missing here\n"
      "processes: how many of the job's processes the driver listed on a GPU at once differs, too: 4 in A, 1 in B\n"
      "others: what the largest compute process of others held differs, too: 3072 MiB in A, nothing in B\n");
  b.hardware.gpus = {"A100"};
  EXPECT_THAT(said(memory_facts(a, b, held(1, 20 * kGiB), {})), HasSubstr("gpu: their number differs, too: 2 in A, 1"));
}

TEST(Memory, PeaksThatAreEqualLeaveHowLongItWasHeld) {
  EXPECT_EQ(said(memory_facts(one_run(), one_run(), held(10 * kGiB, 10 * kGiB, 4 * kGiB, 8 * kGiB), {})),
            "mean: 4096 MiB in A, 8192 MiB in B, on GPU 0; the peaks do not differ: how long memory was held does\n");
}

TEST(Memory, GpusOfOtherNumbersAreComparedByWhatHeldMost) {
  const std::vector<ComparedFigure> figures{{"peak_memory", "GPU 0", 10 * kGiB, std::nullopt},
                                            {"peak_memory", "GPU 1", std::nullopt, 20 * kGiB}};
  EXPECT_THAT(said(memory_facts(one_run(), one_run(), figures, {})),
              HasSubstr("peak: 10.0 GiB in A, 20.0 GiB in B, on the GPU of each that held most\n"));
  // Among several the one that differs, not the one with the most bytes.
  EXPECT_THAT(said(memory_facts(
                  one_run(), one_run(),
                  {{"peak_memory", "GPU 0", 40 * kGiB, 41 * kGiB}, {"peak_memory", "GPU 1", kGiB, 1.5 * kGiB}}, {})),
              HasSubstr("on GPU 1\n"));
}

}  // namespace
}  // namespace headroom::compare
