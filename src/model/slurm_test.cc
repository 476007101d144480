// SPDX-License-Identifier: Apache-2.0
#include "model/slurm.h"

#include <gtest/gtest.h>

namespace headroom {
namespace {

const JobVariables kRankOfArray{{"SLURMD_NODENAME", "n1"},
                                {"SLURM_ARRAY_JOB_ID", "120"},
                                {"SLURM_ARRAY_TASK_ID", "3"},
                                {"SLURM_CLUSTER_NAME", "east"},
                                {"SLURM_JOB_ACCOUNT", "vision"},
                                {"SLURM_JOB_END_TIME", "1764365400"},
                                {"SLURM_JOB_ID", "123"},
                                {"SLURM_JOB_NAME", "train"},
                                {"SLURM_JOB_NUM_NODES", "3"},
                                {"SLURM_JOB_PARTITION", "gpu"},
                                {"SLURM_JOB_START_TIME", "1764361800"},
                                {"SLURM_LOCALID", "1"},
                                {"SLURM_NODEID", "0"},
                                {"SLURM_NTASKS", "6"},
                                {"SLURM_PROCID", "1"},
                                {"SLURM_RESTART_COUNT", "2"},
                                {"SLURM_STEP_ID", "0"},
                                {"SLURM_STEP_NUM_NODES", "2"},
                                {"SLURM_STEP_NUM_TASKS", "4"}};

JobVariables with(JobVariables variables, const std::string& name, const std::string& value) {
  for (auto& variable : variables)
    if (variable.first == name) variable.second = value;
  return variables;
}

JobVariables without(JobVariables variables, const std::string& name) {
  std::erase_if(variables, [&](const auto& variable) { return variable.first == name; });
  return variables;
}

TEST(SlurmJob, AllThatSlurmSaysIsRead) {
  const SlurmJob expected{.job = 123,
                          .array_job = 120,
                          .array_task = 3,
                          .step = 0,
                          .rank = 1,
                          .local_rank = 1,
                          .node_index = 0,
                          .nodes = 2,  // of the step, which is smaller than its job
                          .tasks = 4,
                          .restarts = 2,
                          .start_seconds = 1'764'361'800,
                          .end_seconds = 1'764'365'400,
                          .node = "n1",
                          .partition = "gpu",
                          .name = "train",
                          .account = "vision",
                          .cluster = "east"};
  EXPECT_EQ(slurm_job(kRankOfArray), expected);
  RecordingMeta meta;
  EXPECT_FALSE(slurm_job(meta));
  keep_job_variables(kRankOfArray, meta);
  EXPECT_EQ(slurm_job(meta), expected);
}

TEST(SlurmJob, EveryVariableItReadsIsKeptAndIsNoParameter) {
  for (const auto& [name, value] : kRankOfArray) {
    EXPECT_TRUE(is_job_variable(name)) << name;
    EXPECT_TRUE(is_placement(name)) << name;
  }
  for (const char* left : {"SLURM_JOB_USER", "SLURM_SUBMIT_DIR", "SLURM_CONF", "SLURM_JWT", "SLURM", ""})
    EXPECT_FALSE(is_job_variable(left)) << left;
}

TEST(SlurmJob, AbsentIsNotZero) {
  const auto job = slurm_job(JobVariables{{"SLURM_JOB_ID", "7"}});
  ASSERT_TRUE(job);
  EXPECT_EQ(*job, SlurmJob{.job = 7});
  EXPECT_FALSE(job->rank || job->restarts || job->nodes || job->end_seconds);
  EXPECT_FALSE(slurm_job(without(kRankOfArray, "SLURM_JOB_ID")));
}

TEST(SlurmJob, ABatchScriptHasNoRank) {  // Slurm calls it process 0
  for (const JobVariables& variables :
       {without(kRankOfArray, "SLURM_STEP_ID"), with(kRankOfArray, "SLURM_STEP_ID", "4294967290")}) {  // a shell
    const auto job = slurm_job(variables);
    ASSERT_TRUE(job);
    EXPECT_FALSE(job->step || job->rank || job->local_rank);
    EXPECT_FALSE(is_one_of_many(*job));
  }
}

TEST(SlurmJob, WhatIsNoNumberIsNotKnown) {
  const std::string long_text(100'000, '9');
  for (const std::string& hostile : {std::string(), std::string("-1"), std::string("1\n2"), std::string(" 1"),
                                     std::string("0x10"), std::string("n1"), std::string("99999999999999999999"),
                                     std::string("4294967295"), std::string("1.5"), long_text}) {
    for (const auto& [name, value] : kRankOfArray) {
      const auto job = slurm_job(with(kRankOfArray, name, hostile));
      EXPECT_EQ(job.has_value(), name != "SLURM_JOB_ID") << name << " " << hostile.substr(0, 30);
    }
    const auto task = slurm_job(with(kRankOfArray, "SLURM_ARRAY_TASK_ID", hostile));
    EXPECT_FALSE(task->array_job || task->array_task) << hostile.substr(0, 30);
    EXPECT_FALSE(slurm_job(with(kRankOfArray, "SLURM_PROCID", hostile))->rank) << hostile.substr(0, 30);
  }
  EXPECT_FALSE(slurm_job(JobVariables{{"SLURM_JOB_ID", "0"}}));
}

std::string file_name(const JobVariables& variables) { return slurm_file_name(slurm_job(variables).value()); }

TEST(SlurmJob, FilesOfRanksDiffer) {
  EXPECT_EQ(file_name(kRankOfArray), "slurm-123.0-n1-1");
  EXPECT_EQ(file_name(with(kRankOfArray, "SLURM_STEP_NUM_TASKS", "2")), "slurm-123.0-n1");  // one on each node
  EXPECT_EQ(file_name(without(kRankOfArray, "SLURM_STEP_ID")), "slurm-123-n1");
  EXPECT_EQ(file_name(without(kRankOfArray, "SLURM_STEP_NUM_NODES")), "slurm-123.0-n1-1");
  EXPECT_EQ(file_name({{"SLURM_JOB_ID", "7"}}), "slurm-7");
}

TEST(SlurmJob, SlurmstepdSaysWhichStepItIsOf) {
  EXPECT_EQ(slurmstepd_of(std::string_view("slurmstepd: [4.0]\0\0\0", 20)), (Slurmstepd{.job = 4, .step = 0}));
  EXPECT_EQ(slurmstepd_of("slurmstepd: [12.batch]"), (Slurmstepd{.job = 12}));
  EXPECT_EQ(slurmstepd_of("slurmstepd: [12.extern]"), (Slurmstepd{.job = 12}));
  for (const char* other : {"", "bash", "slurmstepd: [", "slurmstepd: []", "slurmstepd: [12]", "slurmstepd: [x.0]",
                            "slurmstepd: [-1.0]", "slurmstepd: [12.0", "x slurmstepd: [12.0]"})
    EXPECT_FALSE(slurmstepd_of(other)) << other;
}

TEST(SlurmJob, WhatAnEnvironmentBringsFromAnotherStepIsLeftOut) {
  const auto left = [](const std::optional<Slurmstepd>& above) {
    JobVariables variables = kRankOfArray;
    leave_out_other_steps(above, variables);
    return slurm_job(variables);
  };
  EXPECT_EQ(left(Slurmstepd{.job = 123, .step = 0}), slurm_job(kRankOfArray));
  EXPECT_EQ(left(std::nullopt), slurm_job(kRankOfArray));  // not seen
  for (const Slurmstepd& above : {Slurmstepd{.job = 123}, Slurmstepd{.job = 99, .step = 0}}) {
    const auto job = left(above);
    EXPECT_FALSE(job->step || job->rank);
    EXPECT_EQ(job->tasks, 6) << "of the job";
  }
}

TEST(SlurmJob, ANodeCannotChooseAnotherFolder) {
  EXPECT_EQ(file_name({{"SLURM_JOB_ID", "7"}, {"SLURMD_NODENAME", "../../etc/\n n1.x"}}), "slurm-7-______etc___n1_x");
  EXPECT_LT(file_name({{"SLURM_JOB_ID", "7"}, {"SLURMD_NODENAME", std::string(5'000, 'n')}}).size(), 100u);
}

}  // namespace
}  // namespace headroom
