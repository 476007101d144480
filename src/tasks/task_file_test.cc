// SPDX-License-Identifier: Apache-2.0
#include "tasks/task_file.h"

#include <gtest/gtest.h>

#include <set>

#include "base/fd.h"
#include "base/testing.h"
#include "batch/identity.h"
#include "scheduler/order.h"
#include "tasks/template_pinning.h"

namespace headroom::tasks {
using namespace batch;
using namespace scheduler;
namespace {

using Words = std::vector<std::string>;

Result<std::string> files(const std::string& path) {
  if (path == "dir/base.env") return "A=base\nB=base\n";
  if (path == "dir/INFY.env") return "B=INFY\n";
  if (path == "dir/bad.env") return "A=1\nnonsense\n";
  return fail(Errc::kNotFound, "open " + path + ": No such file or directory");
}
Result<TaskSet> parse(std::string_view text) { return tasks_from_toml(text, "dir/w.toml", files); }
// "what | hint", without the folder.
std::string error_of(std::string_view text) {
  const auto set = parse(text);
  if (set) return "no error";
  const std::string& what = set.error().what;
  return (what.starts_with("dir/") ? what.substr(4) : what) + " | " + set.error().hint;
}
// A task with further lines; they begin at line 3.
std::string with(std::string_view lines) { return "[task]\ncommand = [\"t\"]\n" + std::string(lines); }

constexpr std::string_view kEverything = R"TOML([batch]
name = "windows"
[defaults]
retries = 1
env = { OMP_NUM_THREADS = 1, A = "default" }
[[task]]
name = "prepare"
gpus = 0
command = "mkdir -p ${OUT:-out} && date > out/stamp"
shell = true
[[task]]
name = "{symbol}_{window}_{lr}"
group = "train"
command = ["python3", "train.py", "--symbol={symbol}", "--lr", "{lr}", "--gpu", "{gpu}", "{{}}"]
working_directory = "."
env_file = ["base.env", "{symbol}.env"]
env = { A = "{symbol}{slot}" }
inputs = ["train.py"]
outputs = ["out/{task}.json"]
gpus = 2
gpu_memory = "3GiB"
cpus = 1.5
memory = "512M"
alone = true
retries = 3
retry_backoff = "2s"
retry_backoff_factor = 3
retry_backoff_max = 60
timeout = "10m"
hang_timeout = 90
priority = -2
after = ["prepare"]
[task.grid]
symbol = ["INFY"]
window = { from = 1, to = 5, step = 2 }
[task.zip]
lr = [0.1, 1.0, 1e-7]
on = [true, false, 1979-05-27]
[group.train]
max_running = 4
[log]
step = "iter (\\d+)"
metric.loss = "loss=([0-9.]+)"
param.lr = "lr ([0-9.]+)"
phase.validate = "^Validating"
)TOML";

TEST(TaskFile, EverythingAtOnce) {
  const auto set = parse(kEverything);
  ASSERT_TRUE(set) << set.error().what;
  EXPECT_EQ(set->name, "windows");
  ASSERT_EQ(set->tasks.size(), 10U);
  const TaskSpec& first = set->tasks[0];
  EXPECT_EQ(first.argv, (Words{"/bin/sh", "-c", "mkdir -p ${{OUT:-out}} && date > out/stamp"}));
  EXPECT_TRUE(first.shell);
  EXPECT_EQ(first.group, "prepare");
  EXPECT_EQ(first.retry.retries, 1);
  EXPECT_EQ(first.resources.gpus, 0);
  EXPECT_EQ(first.line, 6);
  const TaskSpec& task = set->tasks[2];
  EXPECT_EQ(task.name, "INFY_1_1.0");
  EXPECT_EQ(task.argv, (Words{"python3", "train.py", "--symbol=INFY", "--lr", "1.0", "--gpu", "{gpu}", "{{}}"}));
  EXPECT_EQ(task.working_directory, "dir");
  EXPECT_EQ(task.environment, (Parameters{{"A", "base"},
                                          {"B", "base"},
                                          {"B", "INFY"},
                                          {"OMP_NUM_THREADS", "1"},
                                          {"A", "default"},
                                          {"A", "INFY{slot}"}}));
  EXPECT_EQ(task.parameters, (Parameters{{"symbol", "INFY"}, {"window", "1"}, {"lr", "1.0"}, {"on", "false"}}));
  EXPECT_EQ(task.outputs, Words{"out/INFY_1_1.0.json"});
  EXPECT_EQ(task.resources, (ResourceRequest{2, std::int64_t{3} << 30, 1.5, std::int64_t{512} << 20, true}));
  EXPECT_EQ(task.retry, (RetryPolicy{3, 2 * kSecond, 3.0, 60 * kSecond}));
  EXPECT_EQ(task.timeout, 600 * kSecond);
  EXPECT_EQ(task.hang_timeout, 90 * kSecond);
  EXPECT_EQ(task.priority, -2);
  EXPECT_EQ(task.after, Words{"prepare"});
  EXPECT_EQ(set->groups, (std::vector{GroupSpec{"train", 4}}));
  ASSERT_EQ(set->patterns.size(), 4U);
  EXPECT_EQ(set->patterns[2].kind, output::LogPattern::Kind::kPhase);
  EXPECT_EQ(set->patterns[3].kind, output::LogPattern::Kind::kStep);
}

TEST(TaskFile, TheLastAxisVariesFastestInTheOrderOfTheFile) {
  const auto set =
      parse(with("name = \"{z}{a}{x}{l}\"\n[task.grid]\nz = [1, 2]\na = [3, 4]\n[task.zip]\nx = [5, 6]\n"
                 "[[task.list]]\nl = 7\n[[task.list]]\nl = 8\n"));
  ASSERT_TRUE(set) << set.error().what;
  ASSERT_EQ(set->tasks.size(), 16U);
  EXPECT_EQ(set->tasks[0].name, "1357");
  EXPECT_EQ(set->tasks[1].name, "1358");
  EXPECT_EQ(set->tasks[2].name, "1367");
  EXPECT_EQ(set->tasks[4].name, "1457");
  EXPECT_EQ(set->tasks[15].name, "2468");
}

TEST(TaskFile, GridSizesMultiplyAndNamesAreUnique) {
  for (int a = 1; a <= 4; ++a) {
    for (int b = 1; b <= 5; ++b) {
      const auto set = parse(with(fmt::format(
          "env = {{ X = \"{{a}}-{{b}}\" }}\n[task.grid]\na = {{ from = 1, to = {} }}\nb = {{ from = 1, to = {} }}\n", a,
          b)));
      ASSERT_TRUE(set) << set.error().what;
      std::set<std::string> names;
      for (const TaskSpec& task : set->tasks) names.insert(task.name);
      EXPECT_EQ(set->tasks.size(), static_cast<std::size_t>(a * b));
      EXPECT_EQ(names.size(), set->tasks.size());
    }
  }
}

TEST(TaskFile, UnknownKeysAreSuggested) {
  EXPECT_EQ(error_of(with("retrys = 2")), "w.toml:3:1: unknown key 'retrys' in [task] | did you mean 'retries'?");
  EXPECT_EQ(error_of("[tasks]\n"), "w.toml:1:2: unknown key 'tasks' | did you mean 'task'?");
  EXPECT_EQ(error_of("[defaults]\ncommand = [\"x\"]\n" + with("")).substr(0, 52),
            "w.toml:2:1: unknown key 'command' in [defaults] | kn");
  EXPECT_EQ(error_of("[[task]]\ncommand = [\"x\"]\ncwd = \"/\""),
            "w.toml:3:1: unknown key 'cwd' in [[task]] | known keys: group, working_directory, env, env_file, inputs, "
            "outputs, resolved, gpus, gpu_memory, cpus, memory, alone, retries, retry_backoff, retry_backoff_factor, "
            "retry_backoff_max, timeout, hang_timeout, priority, after, name, command, shell, grid, zip, list");
  EXPECT_EQ(error_of(with("[log]\nmetrics.a = \"(a)\"")),
            "w.toml:4:1: unknown key 'metrics' in [log] | did you mean 'metric'?");
  EXPECT_EQ(error_of(with("[group.x]\nmax = 1")).substr(0, 49), "w.toml:4:1: unknown key 'max' in [group.x] | know");
  EXPECT_EQ(error_of(with("group = \"train\"\n[group.trian]\nmax_running = 1")),
            "w.toml:4:1: no task is in group 'trian' | did you mean 'train'?");
}

TEST(TaskFile, WrongTypesSayWhatIsThere) {
  EXPECT_EQ(error_of(with("retries = \"2\"")),
            "w.toml:3:11: 'retries' in [task] is a text, not a whole number | a whole number from 0 to 1,000");
  EXPECT_EQ(error_of(with("retries = -1")), "w.toml:3:11: 'retries' in [task] is -1 | a whole number from 0 to 1,000");
  EXPECT_EQ(
      error_of(with("gpus = 0.5")),
      "w.toml:3:8: 'gpus' in [task] is a number with a fraction, not a whole number | a whole number from 0 to 64");
  EXPECT_EQ(error_of(with("gpu_memory = 3")),
            "w.toml:3:14: 'gpu_memory' in [task] is no size | write \"3GiB\" or \"512MiB\", in quotes");
  EXPECT_EQ(error_of(with("gpu_memory = \"lots\"")),
            "w.toml:3:14: 'gpu_memory' in [task] is 'lots' | write \"3GiB\" or \"512MiB\"");
  EXPECT_EQ(error_of(with("cpus = nan")), "w.toml:3:8: 'cpus' in [task] is nan | a number from 0.001 to 4096");
  EXPECT_EQ(error_of(with("timeout = \"soon\"")),
            "w.toml:3:11: 'timeout' in [task] is 'soon' | write \"90s\", \"10m\" or \"2h\"");
  EXPECT_EQ(error_of(with("timeout = 0")),
            "w.toml:3:11: 'timeout' in [task] is 0 | leave it out where there is no limit");
  EXPECT_EQ(error_of(with("after = [1]")),
            "w.toml:3:10: 'after' in [task] has an element that is a whole number | write texts in quotes");
  EXPECT_EQ(error_of(with("outputs = [\"\"]")), "w.toml:3:11: outputs: an empty text | leave it out, or write a path");
  EXPECT_EQ(error_of("task = 3"),
            "w.toml:1:8: 'task' is a whole number, not a table | write [[task]] on a line of its own");
  EXPECT_EQ(
      error_of("[task]\ncommand = \"python3 t.py\""),
      "w.toml:2:11: 'command' in [task] is a text, not a list of words | write [\"python3\", \"train.py\"], or add "
      "shell = true");
  EXPECT_EQ(error_of("[task]\ncommand = [\"a\"]\nshell = true"),
            "w.toml:2:11: 'command' in [task] is not one text, but shell = true | write the line in quotes");
  EXPECT_EQ(error_of("[task]\nname = \"a\""),
            "w.toml:1: 'command' in [task] is missing | add command = [\"python3\", \"train.py\"]");
  EXPECT_EQ(error_of("[task]\ncommand = []"),
            "w.toml:2:11: command: no program to run | the first word is the program");
  EXPECT_EQ(error_of(""),
            "w.toml: no [task] | write [task] with command = \"python3 train.py --lr {lr}\"; docs/batch-files.md has "
            "an example");
  EXPECT_EQ(error_of("[task\n").substr(0, 12), "w.toml:1:6: ");
}

TEST(TaskFile, PlaceholdersAreChecked) {
  const std::string grid = "\n[task.grid]\nsymbol = [\"A\", \"B\"]\n";
  EXPECT_EQ(error_of("[task]\ncommand = [\"t\", \"{symbl}\"]\nname = \"{symbol}\"" + grid),
            "w.toml:2:11: command: unknown placeholder {symbl} | did you mean {symbol}?");
  EXPECT_EQ(
      error_of("[task]\ncommand = [\"t\", \"{a\"]"),
      "w.toml:2:11: command: a single '{' at character 1 of '{a' | write a brace twice ({{ or }}) where a brace itself "
      "is meant");
  EXPECT_EQ(error_of(with("outputs = [\"{slot}.json\"]")),
            "w.toml:3:11: outputs: {slot} is not known before the task starts | use parameters and {task} here");
  EXPECT_EQ(error_of(with("gpus = 0\nenv = { X = \"{nope}\" }")).substr(0, 49),
            "w.toml:4:13: env.X: unknown placeholder {nope} | ");
  EXPECT_EQ(error_of("[task]\ncommand = [\"t\", \"{gpu}\"]\ngpus = 0"),
            "w.toml:2:11: command: a GPU is named, and the task asks for none | remove gpus = 0, or the placeholder");
  EXPECT_EQ(error_of(with(grid)),
            "w.toml:1: parameter 'symbol' of [task] is used nowhere | write {symbol} in the command, or remove it");
}

TEST(TaskFile, AbsurdParametersAreRefused) {
  const std::string task = "[task]\ncommand = [\"t\", \"{a}{b}{c}\"]\n";
  EXPECT_EQ(error_of(task + "[task.grid]\na = []"),
            "w.toml:4:5: 'a' in [task.grid] is an empty list | give at least one value");
  EXPECT_EQ(error_of(task + "[task.grid]\n"),
            "w.toml:3: [task.grid] has no parameters | write NAME = [ values ], or remove it");
  EXPECT_EQ(error_of(task + "[task.grid]\na = 3"),
            "w.toml:4:5: 'a' in [task.grid] is a whole number, not a list | a = [ … ]");
  EXPECT_EQ(
      error_of(task + "[task.grid]\na = [[1]]"),
      "w.toml:4:6: 'a' in [task.grid] has a value that is a list | values are texts, numbers, true, false and dates");
  EXPECT_EQ(
      error_of(task +
               "[task.grid]\na = { from = 1, to = 1000 }\nb = { from = 1, to = 1000 }\nc = { from = 1, to = 1000 }"),
      "w.toml:3: 1,000,000,000 combinations of parameters | a batch has at most 1,000,000 tasks; zip parameters that "
      "belong together");
  EXPECT_EQ(error_of(task + "[task.grid]\na = { from = 0, to = 999999999 }"),
            "w.toml:4:5: 'a' in [task.grid] has 1,000,000,000 values | a batch has at most 1,000,000 tasks");
  EXPECT_EQ(error_of(task + "[task.grid]\na = { from = 1, to = 0 }"),
            "w.toml:4:5: 'a' in [task.grid] is an empty range | 'to' is at least 'from'");
  EXPECT_EQ(error_of(task + "[task.zip]\na = [1, 2]\nb = [1]"),
            "w.toml:5:5: 'b' in [task.zip] has 1 values, 'a' has 2 | lists of a zip are equally long");
  EXPECT_EQ(error_of(task + "[task.grid]\na = [1]\n[task.zip]\na = [1]"),
            "w.toml:6:5: 'a' in [task.zip] is a parameter already | a parameter is in one of grid, zip and list");
  EXPECT_EQ(error_of(task + "[[task.list]]\na = 1\nb = 2\n[[task.list]]\na = 1"),
            "w.toml:6: 'b' in [[task.list]] is missing | rows of a list have the same parameters");
  EXPECT_EQ(error_of(task + "[task.grid]\ngpu = [1]"),
            "w.toml:4:7: 'gpu' is no name for a parameter | this placeholder is Headroom's own; choose another name");
}

TEST(TaskFile, TwoTasksMayNotShareAName) {
  EXPECT_EQ(error_of("[[task]]\nname = \"a\"\ncommand = [\"t\"]\n[[task]]\nname = \"a\"\ncommand = [\"u\"]"),
            "w.toml:4: two tasks are named 'a' (the first: line 1) | put the parameters that tell them apart into the "
            "name, or leave the name out");
  EXPECT_EQ(error_of(with("name = \"a/b\"")),
            "w.toml:3:8: name: 'a/b' is no name for a task | a name has no '/' and no control characters, and is not "
            "empty");
  EXPECT_EQ(error_of(with("name = \"a\\nb\"")),
            "w.toml:3:8: name: 'a b' is no name for a task | a name has no '/' and no control characters, and is not "
            "empty");
}

TEST(TaskFile, NamesKeepEveryScriptAndWhatNoFileMayBeNamedIsReplaced) {
  const auto set = parse(
      "[task]\ncommand = [\"t\", \"{p}\"]\nname = \"run {p}\"\n"
      "[task.grid]\np = [\"größe\", \"data/模型.csv\", \"a\\nb\"]\n");
  ASSERT_TRUE(set) << set.error().what;
  EXPECT_EQ(set->tasks[0].name, "run größe");
  EXPECT_EQ(set->tasks[1].name, "run data-模型.csv");
  EXPECT_EQ(set->tasks[2].name, "run a-b");
}

TEST(TaskFile, DependenciesAreResolvedByThePlan) {
  const auto unknown = parse(
      "[[task]]\nname = \"train\"\ncommand = [\"t\"]\nafter = [\"prepar\"]\n[[task]]\nname = \"prepare\"\ncommand = "
      "[\"t\"]");
  ASSERT_TRUE(unknown) << unknown.error().what;
  EXPECT_EQ(plan_tasks(unknown->tasks).error().what,
            "dir/w.toml:1: task train: after: no task or group is named prepar");
  const auto cycle = parse(
      "[[task]]\nname = \"a\"\ncommand = [\"t\"]\nafter = [\"b\"]\n[[task]]\nname = \"b\"\ncommand = [\"t\"]\nafter = "
      "[\"a\"]");
  ASSERT_TRUE(cycle) << cycle.error().what;
  EXPECT_FALSE(plan_tasks(cycle->tasks));
}

TEST(TaskFile, EnvironmentFilesAreFoundBesideItAndTheirErrorsNameThem) {
  EXPECT_EQ(error_of(with("env_file = \"no.env\"")),
            "w.toml:3:12: env_file: open dir/no.env: No such file or directory | ");
  EXPECT_EQ(error_of(with("env_file = \"bad.env\"")),
            "w.toml:3:12: env_file: dir/bad.env:2: no '=' | write NAME=value");
}

TEST(TaskFile, PatternsNeedOneGroup) {
  EXPECT_EQ(error_of(with("[log]\nmetric.loss = \"loss\"")),
            "w.toml:4:15: 'loss' in [log.metric]: 'loss' has 0 groups | put parentheses around the value, and (?: … ) "
            "around the "
            "rest");
}

TEST(TaskFile, TheWindowsOfTheExamples) {
  const std::string folder = in_checkout("examples/windows");
  ListOptions options;
  options.read = [](const std::string& file) { return read_file(file); };
  auto set = read_task_file(folder + "/windows.toml", options);
  ASSERT_TRUE(set) << set.error().what;
  ASSERT_EQ(set->tasks.size(), 252U);
  EXPECT_EQ(set->tasks[8].name, "TCS_2023Q2");
  EXPECT_EQ(set->tasks[8].argv, (Words{"/usr/bin/python3", "train_window.py", "--symbol", "TCS", "--start",
                                       "2023-04-01", "--end", "2023-06-30", "--output", "models/TCS_2023Q2"}));
  EXPECT_EQ(set->tasks[8].working_directory, folder);
  EXPECT_EQ(set->tasks[8].environment, (Parameters{{"OMP_NUM_THREADS", "1"}, {"OPENBLAS_NUM_THREADS", "1"}}));
  InputHasher hasher;
  ASSERT_TRUE(set_identities(set->tasks, "/", hasher));
  std::set<std::string> identities;
  for (const TaskSpec& task : set->tasks) identities.insert(task.identity);
  EXPECT_EQ(identities.size(), 252U);
  EXPECT_EQ(plan_tasks(set->tasks)->groups, Words{"windows"});
  for (const TaskSpec& task : set->tasks) EXPECT_TRUE(second_pins(task).empty());
}

}  // namespace
}  // namespace headroom::tasks
