// SPDX-License-Identifier: Apache-2.0
#include "tasks/task_list.h"

#include <gtest/gtest.h>

#include "tasks/template_task.h"

namespace headroom::tasks {
namespace {

ListOptions options(std::string command = "", std::string file = "f") {
  ListOptions made;
  made.command = std::move(command);
  made.file = std::move(file);
  made.read = [](const std::string& path) -> Result<std::string> {
    if (path == "values.txt") return "x\n\ny z\n";
    if (path == "a.env") return "A=1\nB={gpu}\n";
    return fail(Errc::kNotFound, "open " + path + ": No such file or directory");
  };
  return made;
}

using Words = std::vector<std::string>;

TEST(Jsonl, ALineIsATask) {
  const auto set = tasks_from_jsonl(
      "{\"lr\": 0.1, \"tag\": \"a {b}\", \"deep\": {\"x\": [1]}}\n\n{\"lr\": 1e-3, \"tag\": \"c\", \"deep\": null}\n",
      options("train.py --lr {lr} '{tag}' --deep={deep} {gpu}"));
  ASSERT_TRUE(set) << set.error().what;
  ASSERT_EQ(set->tasks.size(), 2U);
  EXPECT_EQ(set->tasks[0].argv, (Words{"train.py", "--lr", "0.1", "a {{b}}", "--deep={{\"x\":[1]}}", "{gpu}"}));
  EXPECT_EQ(set->tasks[1].argv, (Words{"train.py", "--lr", "0.001", "c", "--deep=null", "{gpu}"}));
  EXPECT_EQ(set->tasks[1].line, 3);
  EXPECT_EQ(set->tasks[1].parameters, (Parameters{{"lr", "0.001"}, {"tag", "c"}, {"deep", "null"}}));
  EXPECT_EQ(set->tasks[0].group, "train.py");
  EXPECT_EQ(set->tasks[0].command_template, "train.py --lr '{lr}' '{tag}' '--deep={deep}' '{gpu}'");
}

TEST(Jsonl, ErrorsNameTheLine) {
  const auto what = [](std::string_view text, std::string command = "t {lr}") {
    return tasks_from_jsonl(text, options(std::move(command), "p.jsonl")).error().what;
  };
  EXPECT_EQ(what("{\"lr\": 1}\n{lr"), "p.jsonl:2: not valid JSON");
  EXPECT_EQ(what("[1]"), "p.jsonl:1: not an object");
  EXPECT_EQ(what("{\"lx\": 1}"), "p.jsonl:1: --command: unknown placeholder {lr}");
  EXPECT_EQ(what("{\"gpu\": 1}"), "p.jsonl:1: 'gpu' is no name for a parameter");
  EXPECT_EQ(what("\n"), "p.jsonl: no tasks");
  EXPECT_EQ(what(R"({"lr": 1, "b": {"lr": 2, "c": 3}, "lr": 4})"), "p.jsonl:1: 'lr' is there twice");
  EXPECT_EQ(what(std::string(100'000, '[')), "p.jsonl:1: not valid JSON");
  std::string many = "{\"lr\": 1";
  for (std::size_t i = 0; i < 300'000; ++i) many += ",\"k" + std::to_string(i) + "\":1";
  EXPECT_EQ(what(many + "}"), "p.jsonl:1: more than 10000 parameters");
  EXPECT_EQ(what("{}", ""), "p.jsonl: parameters without a command");
  EXPECT_EQ(what("{}", "t 'x"), "--command: the ' at character 3 is not closed");
}

TEST(Csv, QuotesLineEndsAndNames) {
  const auto set = tasks_from_csv("\xEF\xBB\xBFsymbol, note\r\nWIPRO,\"a, \"\"b\"\"\nc\"\r\n\r\nINFY,\r\n",
                                  options("t {symbol} {note}"));
  ASSERT_TRUE(set) << set.error().what;
  ASSERT_EQ(set->tasks.size(), 2U);
  EXPECT_EQ(set->tasks[0].argv, (Words{"t", "WIPRO", "a, \"b\"\nc"}));
  EXPECT_EQ(set->tasks[1].argv, (Words{"t", "INFY", ""}));
  EXPECT_EQ(set->tasks[1].line, 5);
  EXPECT_EQ(set->tasks[0].name, "WIPRO_a---b--c");
}

TEST(Csv, ErrorsNameTheLine) {
  const auto what = [](std::string_view text) { return tasks_from_csv(text, options("t {a}", "p.csv")).error().what; };
  EXPECT_EQ(what("a,b\n1"), "p.csv:2: 1 field, but 2 columns");
  EXPECT_EQ(what("a,a\n"), "p.csv:1: two columns are named 'a'");
  EXPECT_EQ(what(std::string(300'000, ',') + "\n"), "p.csv:1: more than 10000 parameters");
  EXPECT_EQ(what("a,,b\n"), "p.csv:1: '' is no name for a parameter");
  EXPECT_EQ(what("a\n\"x"), "p.csv:2: a quote that is not closed");
  EXPECT_EQ(what("a\n\"x\"y"), "p.csv:2: 'y' after a closing quote");
  EXPECT_EQ(what("a\n"), "p.csv: no tasks");
  EXPECT_EQ(what("task\n1"), "p.csv:1: 'task' is no name for a parameter");
}

TEST(Lines, ACommandPerLineAsTheShellRunsIt) {
  const auto set = tasks_from_lines(
      "# comment\npython3 train.py --fold 1 --gpu {gpu}\n\nawk '{print}' f | sort > o\npython3 train.py --fold 1 --gpu "
      "{gpu}\n",
      options("", "standard input"));
  ASSERT_TRUE(set) << set.error().what;
  ASSERT_EQ(set->tasks.size(), 3U);
  EXPECT_EQ(set->tasks[0].argv, (Words{"python3", "train.py", "--fold", "1", "--gpu", "{gpu}"}));
  EXPECT_EQ(set->tasks[0].name, "task-1");
  EXPECT_EQ(set->tasks[0].group, "python3 train.py");
  EXPECT_EQ(set->tasks[0].command_template, "python3 train.py");
  EXPECT_FALSE(set->tasks[0].shell);
  EXPECT_EQ(set->tasks[1].argv, (Words{"/bin/sh", "-c", "awk '{{print}}' f | sort > o"}));
  EXPECT_EQ(set->tasks[1].line, 4);
  EXPECT_TRUE(set->tasks[1].shell);
  EXPECT_EQ(set->tasks[1].group, "awk");
  EXPECT_EQ(set->tasks[2].name, "task-3");
}

TEST(Lines, WithACommandALineIsItsArgument) {
  const auto set = tasks_from_lines("a/b.csv\nc d.csv\n", options("train {} --out {/.}.json --n {#}"));
  ASSERT_TRUE(set) << set.error().what;
  EXPECT_EQ(set->tasks[0].argv, (Words{"train", "a/b.csv", "--out", "b.json", "--n", "1"}));
  EXPECT_EQ(set->tasks[1].argv, (Words{"train", "c d.csv", "--out", "c d.json", "--n", "2"}));
  EXPECT_EQ(set->tasks[1].parameters, (Parameters{{"1", "c d.csv"}}));
}

TEST(Arguments, SourcesMultiply) {
  const auto set = tasks_from_arguments({"t", "--a={1}", "{2}", ":::", "x", "y", ":::", "1", "2", "3"}, options());
  ASSERT_TRUE(set) << set.error().what;
  ASSERT_EQ(set->tasks.size(), 6U);
  EXPECT_EQ(set->tasks[0].argv, (Words{"t", "--a=x", "1"}));
  EXPECT_EQ(set->tasks[1].argv, (Words{"t", "--a=x", "2"}));
  EXPECT_EQ(set->tasks[5].argv, (Words{"t", "--a=y", "3"}));
  EXPECT_EQ(set->tasks[5].name, "y_3");
}

TEST(Arguments, LinkedSourcesGoTogetherAndFilesAreRead) {
  const auto set = tasks_from_arguments({"t", ":::", "a", "b", "c", "::::+", "values.txt", ":::", "1"}, options());
  ASSERT_TRUE(set) << set.error().what;
  ASSERT_EQ(set->tasks.size(), 2U);
  EXPECT_EQ(set->tasks[0].argv, (Words{"t", "a", "x", "1"}));
  EXPECT_EQ(set->tasks[1].argv, (Words{"t", "b", "y z", "1"}));
}

TEST(Arguments, OneWordWithBlanksIsAShellLine) {
  const auto set = tasks_from_arguments({"sort {} | head -n {%} > {/.}.out", ":::", "d/it's.txt"}, options());
  ASSERT_TRUE(set) << set.error().what;
  EXPECT_EQ(set->tasks[0].argv, (Words{"/bin/sh", "-c", "sort 'd/it'\\''s.txt' | head -n {slot} > 'it'\\''s'.out"}));
  const auto bare = tasks_from_arguments({"cat x", ":::", "a b", ":::", "c"}, options());
  ASSERT_TRUE(bare) << bare.error().what;
  EXPECT_EQ(bare->tasks[0].argv, (Words{"/bin/sh", "-c", "cat x 'a b' c"}));
}

TEST(Arguments, WhatTheCommandHidesIsInNoName) {
  const std::string token = "hf_AbCdEfGhIjKlMnOpQrStUv";
  const auto names = [](const Words& words, const std::string& name = "") {
    ListOptions with = options("");
    with.defaults.name = name;
    const auto set = tasks_from_arguments(words, with);
    EXPECT_TRUE(set) << set.error().what;
    Words all;
    for (const TaskSpec& task : set->tasks) all.push_back(task.name + " " + task.argv.back());
    return all;
  };
  EXPECT_EQ(names({"t", "--token", "{}", ":::", token, "abcdef"}), (Words{"hidden-1 " + token, "hidden-2 abcdef"}));
  EXPECT_EQ(names({"t --token={2} {1}", ":::", "0.1", "2", ":::", "abcdef"}),
            (Words{"0.1_hidden-1 t --token=abcdef 0.1", "2_hidden-2 t --token=abcdef 2"}));
  EXPECT_EQ(names({"t", "{}", ":::", "postgres://me:pw@host/db"}), (Words{"hidden-1 postgres://me:pw@host/db"}));
  EXPECT_EQ(names({"t", "--token", "{}", ":::", token}, "run-{1}"), (Words{"run-hidden-1 " + token}));
  EXPECT_EQ(names({"t", "--password=hunter22", "--lr", "{}", ":::", "2"}), (Words{"2 2"})) << "not the password's 2";
  EXPECT_EQ(names({"t", "--max-tokens", "{}", ":::", "512"}), (Words{"512 512"}));
}

TEST(Arguments, PartsOfPaths) {
  const auto set = tasks_from_arguments(
      {"t", "{.}", "{/}", "{//}", "{/.}", "{1.}", ":::", "a.b/c.tar.gz", "x", "/r", ".hid"}, options());
  ASSERT_TRUE(set) << set.error().what;
  EXPECT_EQ(set->tasks[0].argv, (Words{"t", "a.b/c.tar", "c.tar.gz", "a.b", "c.tar", "a.b/c.tar"}));
  EXPECT_EQ(set->tasks[1].argv, (Words{"t", "x", "x", ".", "x", "x"}));
  EXPECT_EQ(set->tasks[2].argv, (Words{"t", "/r", "r", "/", "r", "/r"}));
  EXPECT_EQ(set->tasks[3].argv, (Words{"t", ".hid", ".hid", ".", ".hid", ".hid"}));
}

TEST(Arguments, ErrorsSayWhat) {
  const auto what = [](const Words& words) { return tasks_from_arguments(words, options()).error().what; };
  EXPECT_EQ(what({"t", ":::"}), "nothing after :::");
  EXPECT_EQ(what({":::", "a"}), "nothing to run before :::");
  EXPECT_EQ(what({"t", ":::+", "a"}), ":::+ without a source before it");
  EXPECT_EQ(what({"t", "::::", "no.txt"}), "open no.txt: No such file or directory");
  EXPECT_EQ(what({"t", "{3}", ":::", "a"}), "f: command: unknown placeholder {3}");
  Words many{"t"};
  for (int i = 0; i < 7; ++i) {
    many.push_back(":::");
    for (int k = 0; k < 10; ++k) many.push_back(std::to_string(k));
  }
  EXPECT_EQ(what(many), "more than 1,000,000 combinations");
}

TEST(Lists, WhatTheOptionsSayHoldsForEveryTask) {
  ListOptions with = options("t {lr}");
  with.defaults.name = "run-{lr}";
  with.defaults.outputs = {"{task}.json"};
  with.defaults.environment = {{"SEED", "{lr}{gpu}"}};
  with.defaults.resources.gpu_memory_bytes = 5;
  with.defaults.retry.retries = 2;
  with.env_files = {"a.env"};
  const auto set = tasks_from_jsonl("{\"lr\": 1}", with);
  ASSERT_TRUE(set) << set.error().what;
  const TaskSpec& task = set->tasks[0];
  EXPECT_EQ(task.name, "run-1");
  EXPECT_EQ(task.outputs, (Words{"run-1.json"}));
  EXPECT_EQ(task.environment, (Parameters{{"A", "1"}, {"B", "{{gpu}}"}, {"SEED", "1{gpu}"}}));
  EXPECT_EQ(task.from_env_file, 2U);
  EXPECT_EQ(task.resources.gpu_memory_bytes, 5);
  EXPECT_EQ(task.retry.retries, 2);
}

TEST(Lists, VariablesThatNoEnvironmentCanHoldAreRefused) {
  for (const auto& [name, value] : {std::pair<std::string, std::string>{"A=B", "1"}, {"", "1"}, {"A", {'x', 0, 'y'}}}) {
    ListOptions with = options("t {lr}");
    with.defaults.environment = {{name, value}};
    const auto set = tasks_from_jsonl("{\"lr\": 1}", with);
    ASSERT_FALSE(set) << name;
    EXPECT_NE(set.error().what.find("no variable of an environment"), std::string::npos) << set.error().what;
  }
}

TEST(Lists, CommandsThatWouldFillTheMemoryAreRefused) {
  TaskTemplate from;
  ASSERT_TRUE(set_command(from, {"t", std::string(300 << 10, 'x')}, Field{"command", "", {}}));
  TaskCollector collector(1 << 20);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(collector.add(from, Row{{}, "f:2", {}}));
  const auto fourth = collector.add(from, Row{{}, "f:5", {}});
  ASSERT_FALSE(fourth);
  EXPECT_EQ(fourth.error().what, "f:5: the commands of the first 4 tasks alone have 1 MiB");
  EXPECT_EQ(kMostBytes >> 20, 512U);
}

TEST(Lists, NamesThatNobodyChoseAreMadeUnique) {
  const auto set = tasks_from_csv("a\nx\nx\nx/\nx-\n", options("t {a}"));
  ASSERT_TRUE(set) << set.error().what;
  EXPECT_EQ(set->tasks[0].name, "x");
  EXPECT_EQ(set->tasks[1].name, "x-2");
  EXPECT_EQ(set->tasks[2].name, "x-");
  EXPECT_EQ(set->tasks[3].name, "x--4");
}

}  // namespace
}  // namespace headroom::tasks
