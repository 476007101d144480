// SPDX-License-Identifier: Apache-2.0
// Any text in any form is tasks that can be started, with names of their own, or an error that says something.
#include <cstddef>
#include <cstdint>
#include <unordered_set>

#include "base/result.h"
#include "tasks/task_file.h"
#include "tasks/template_pinning.h"
#include "tasks/template_task.h"

namespace {

using namespace headroom;
using namespace headroom::tasks;

void check(Result<TaskSet> set) {
  if (!set) {
    HR_CHECK(!set.error().what.empty(), "an error without words");
    return;
  }
  HR_CHECK(!set->tasks.empty() && set->tasks.size() <= kMostTasks, "a batch of nothing, or of too much");
  std::unordered_set<std::string> names;
  const Place place{{0}, {"GPU-0"}, 0};
  for (TaskSpec& task : set->tasks) {
    HR_CHECK(names.insert(task.name).second && !task.name.empty(), "names are unique");
    HR_CHECK(!task.argv.empty() && !fill_place(task.argv[0], place).empty(), "there is a program");
    HR_CHECK(!task.group.empty(), "a task is in a group");
    HR_CHECK(settle_second_pins(task, PinPolicy::kRewrite).has_value() && second_pins(task).empty(),
             "a rewrite settles");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  ListOptions options;
  options.file = "f";
  options.command = "t {a} {b} --gpu {gpu}";
  options.read = [](const std::string& path) -> Result<std::string> { return fail(Errc::kNotFound, path); };
  switch (data[0]) {
    case 'j':
      check(tasks_from_jsonl(text, options));
      break;
    case 'c':
      check(tasks_from_csv(text, options));
      break;
    case 'l':
      options.command.clear();
      check(tasks_from_lines(text, options));
      options.command = "sh -c 'x {}' {/.}";
      check(tasks_from_lines(text, options));
      break;
    case 'e':
      if (const auto variables = parse_environment(text, "f"))
        for (const auto& [name, value] : *variables) HR_CHECK(!name.empty(), "a variable has a name");
      break;
    default:
      check(tasks_from_toml(text, "f", options.read));
  }
  return 0;
}
