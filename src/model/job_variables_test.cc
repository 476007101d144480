// SPDX-License-Identifier: Apache-2.0
#include "model/job_variables.h"

#include <gtest/gtest.h>

namespace headroom {
namespace {

TEST(JobVariables, OfTheEnvironmentOnlyAListIsKept) {
  for (const char* kept :
       {"OMP_NUM_THREADS", "CUDA_LAUNCH_BLOCKING", "NCCL_P2P_DISABLE", "NUM_WORKERS", "USE_AMP", "WORLD_SIZE"})
    EXPECT_TRUE(is_job_variable(kept)) << kept;
  for (const char* left :
       {"HOME", "PATH", "HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "WANDB_API_KEY", "USER", "MY_CUDA_X", ""})
    EXPECT_FALSE(is_job_variable(left)) << left;
  EXPECT_TRUE(is_placement("CUDA_VISIBLE_DEVICES"));
  EXPECT_FALSE(is_placement("OMP_NUM_THREADS"));
}

TEST(JobVariables, NoneAndNotRecordedAreTwoThings) {
  RecordingMeta meta;
  EXPECT_FALSE(job_variables(meta));
  keep_job_variables({}, meta);
  ASSERT_TRUE(job_variables(meta));
  EXPECT_TRUE(job_variables(meta)->empty());
  const JobVariables some{{"NCCL_DEBUG", "INFO"}, {"OMP_NUM_THREADS", "4"}};
  keep_job_variables(some, meta);
  EXPECT_EQ(job_variables(meta), some);
}

}  // namespace
}  // namespace headroom
