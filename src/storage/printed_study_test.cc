// SPDX-License-Identifier: Apache-2.0
#include "storage/printed_study.h"

#include <gtest/gtest.h>

namespace headroom {
namespace {

const std::string kLines =
    "[I 2025-03-10 10:00:00,101] A new study created in memory with name: no-name-1f2e\n"
    "[I 2025-03-10 10:01:00,101] Trial 0 finished with value: 0.5 and parameters: {'lr': 0.1}. Best is trial 0 with "
    "value: 0.5.\n"
    "[I 2025-03-10 10:01:30,101] Trial 1 pruned. Trial was pruned at iteration 12.\n"
    "[W 2025-03-10 10:01:40,101] Trial 2 failed with parameters: {'lr': 0.2} because of the following error: "
    "OutOfMemoryError('CUDA out of memory').\n"
    "Traceback (most recent call last):\n"
    "[W 2025-03-10 10:01:40,102] Trial 2 failed with value None.\n"
    "[I 2025-03-10 10:02:40,101] Trial 3 finished with value: 0.25 and parameters: {'lr': 0.3}. Best is trial 3 with "
    "value: 0.25.\n";

TEST(PrintedStudy, TellsHowTrialsEndedAndTheBestThatItNames) {
  EXPECT_TRUE(is_printed_by_optuna(kLines));
  EXPECT_FALSE(is_printed_by_optuna("Trial 3 of 10\n"));
  EXPECT_EQ(told_by_optuna(kLines),
            "2 trials completed, 1 was pruned, 1 failed; the best value it names is 0.25, of trial 3");
}

TEST(PrintedStudy, ALineThatWasCutTellsNothing) {
  EXPECT_EQ(told_by_optuna("[I 2025-03-10 10:01:00,101] Trial 4"), "");
  EXPECT_EQ(told_by_optuna("[I 2025-03-10 10:01:00,101] Trial "), "");
}

TEST(PrintedStudy, OfSeveralStudiesOrOfNoTrialItTellsNothing) {
  EXPECT_EQ(told_by_optuna(kLines + kLines), "");
  EXPECT_EQ(told_by_optuna(kLines.substr(0, kLines.find('\n'))), "");
  EXPECT_EQ(
      told_by_optuna("[I 2025-03-10 10:01:00,101] Trial 4 finished with values: [0.5, 1.0] and parameters: {}.\n"),
      "1 trial completed")
      << "of two objectives none is the best";
}

}  // namespace
}  // namespace headroom
