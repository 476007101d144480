// SPDX-License-Identifier: Apache-2.0
#include "batch/task_json.h"

#include <gtest/gtest.h>

namespace headroom::batch {
namespace {

TEST(TaskJson, EverythingComesBack) {
  TaskSpec task;
  task.name = "größe 1", task.identity = "0123", task.group = "g", task.command_template = "t {x}";
  task.argv = {"/bin/sh", "-c", "echo 'a\nb' {gpu}"}, task.shell = true;
  task.environment = {{"A", "1"}, {"A", "2"}}, task.from_env_file = 1, task.working_directory = "/tmp",
  task.parameters = {{"x", "1"}};
  task.inputs = {"i"}, task.outputs = {"o"}, task.resolved = "r.json";
  task.resources = {.gpus = 2, .gpu_memory_bytes = 5, .cpus = 1.5, .host_memory_bytes = 7, .alone = true};
  task.retry = {.retries = 3, .backoff = 1, .backoff_factor = 1.5, .backoff_max = 9};
  task.timeout = 10, task.hang_timeout = 11, task.priority = -1, task.after = {"b"}, task.file = "f", task.line = 4;
  const TaskSpec plain{.name = "plain"};
  const auto text = tasks_text({task, plain});
  ASSERT_TRUE(text);
  EXPECT_EQ(text->find('\n'), std::string::npos) << "one line";
  const auto back = tasks_of(*text);
  ASSERT_TRUE(back);
  ASSERT_EQ(back->size(), 2u);
  EXPECT_EQ(back->at(0), task);
  EXPECT_EQ(back->at(1), plain);
}

TEST(TaskJson, WhatIsNoneIsRefused) {
  for (const char* text : {"", "{", "{}x", "[1]", "[{\"name\": 5}]", "[{\"name\": \"a\"}]", "7"})
    EXPECT_FALSE(tasks_of(text)) << text;
  EXPECT_FALSE(tasks_text({TaskSpec{.name = "\xff"}}));
}

}  // namespace
}  // namespace headroom::batch
