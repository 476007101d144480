// SPDX-License-Identifier: Apache-2.0
#include "python/threads_now.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>

#include "base/strings.h"
#include "base/time.h"
#include "host/proc_dir.h"
#include "host/proc_parse.h"
#include "host/processes.h"
#include "host/wait_reader.h"
#include "python/process.h"

namespace headroom::python {

namespace {

constexpr int kTries = 5;  // for stacks that change while they are read

// How often a thread went to sleep, and what it is at: the same twice, it did not run in between.
struct Sleep {
  char state = '?';
  std::optional<std::int64_t> switches;
  bool operator==(const Sleep&) const = default;
};

Sleep sleep_of(host::ProcDir& proc, const std::string& folder) {
  Sleep sleep;
  if (const auto text = proc.read((folder + "/stat").c_str()))
    if (const auto stat = host::parse_pid_stat(*text)) sleep.state = stat->state;
  if (const auto text = proc.read((folder + "/status").c_str()))
    sleep.switches = host::parse_pid_status(*text).voluntary_switches;
  return sleep;
}

std::vector<std::int64_t> threads_of(host::ProcDir& proc, std::int64_t pid) {
  const auto tids = proc.list_numbers(fmt::format("{}/task", pid).c_str());
  return tids ? std::vector<std::int64_t>(tids->begin(), tids->end()) : std::vector<std::int64_t>();
}

// The processes of its job, which may be at the other ends of its pipes, and its own children.
struct Relatives {
  std::vector<std::int64_t> job, children;
};

Relatives relatives_of(host::ProcDir& proc, std::int64_t pid) {
  Relatives found;
  host::Discovery discovery;
  std::vector<host::Candidate> all;
  std::ranges::copy_if(discovery.fresh(proc), std::back_inserter(all),
                       [](const host::Candidate& one) { return !one.ended; });
  std::vector<std::int64_t> family{host::root_of_job(pid).value_or(pid)};
  for (std::size_t i = 0; i < family.size(); ++i)
    for (const host::Candidate& one : all)
      if (one.ppid == family[i] && std::find(family.begin(), family.end(), one.pid) == family.end())
        family.push_back(one.pid);
  for (const std::int64_t one : family)
    if (one != pid) found.job.push_back(one);
  for (const host::Candidate& one : all)
    if (one.ppid == pid) found.children.push_back(one.pid);
  return found;
}

std::string command_of(host::ProcDir& proc, std::int64_t pid) {
  constexpr std::size_t kLongest = 120;
  if (const auto text = proc.read(fmt::format("{}/cmdline", pid).c_str()); text && !text->empty())
    return host::command_line(*text, kLongest);
  const auto name = proc.read(fmt::format("{}/comm", pid).c_str());
  return name ? host::valid_utf8(trim(*name)) : "";
}

ThreadNow thread_now(host::ProcDir& proc, std::int64_t pid, std::int64_t tid, std::span<const std::int64_t> job) {
  const std::string folder = fmt::format("{}/task/{}", pid, tid);
  ThreadNow now{.tid = tid, .main = tid == pid};
  if (const auto name = proc.read((folder + "/comm").c_str())) now.name = host::valid_utf8(trim(*name));
  now.state = sleep_of(proc, folder).state;
  if (const auto wchan = proc.read((folder + "/wchan").c_str())) now.waits_in = host::parse_wchan(*wchan, now.state);
  if (now.state == 'S' || now.state == 'D')
    now.waits_for = host::WaitReader(true).read(proc, {tid, false, now.state == 'D'}, job, boottime_now()).targets;
  return now;
}

// The stacks of one sample, once none of them changed while it was read, or after some tries the last ones.
void add_stacks(PythonProcess& python, ProcessNow& now) {
  StackSample sample;
  auto outcome = PythonProcess::Outcome::kNothing;
  for (int i = 0; i < kTries && (outcome == PythonProcess::Outcome::kNothing || sample.rejected > 0); ++i)
    outcome = python.sample(sample);
  now.torn = sample.rejected;
  now.left_out = sample.left_out;
  now.more_interpreters = sample.more_interpreters;
  for (const ThreadStack& stack : sample.stacks) {
    const auto thread = std::find_if(now.threads.begin(), now.threads.end(),
                                     [&](const ThreadNow& one) { return one.tid == stack.tid; });
    if (thread == now.threads.end()) continue;  // it began meanwhile
    if (stack.gil != Gil::kUnknown) thread->holds_gil = stack.gil == Gil::kHeld;
    thread->cut = stack.cut;
    for (auto id = stack.frames->rbegin(); id != stack.frames->rend(); ++id) thread->frames.push_back(python.text(*id));
  }
}

}  // namespace

Result<ProcessNow> look_now(std::int64_t pid) {
  host::ProcDir proc("/proc");
  const auto status = proc.read(fmt::format("{}/status", pid).c_str());
  if (!status)
    return fail(Errc::kNotFound, fmt::format("process {} does not run", pid), "ps aux shows the processes that do");
  if (const auto leader = host::parse_pid_status(*status).tgid.value_or(pid); leader != pid)
    return fail(Errc::kInvalidInput, fmt::format("{} is a thread of process {}", pid, leader),
                fmt::format("headroom stacks --pid {}", leader));
  ProcessNow now{.pid = pid, .command = command_of(proc, pid)};
  auto python = PythonProcess::attach(pid, LinesOf::kAllCode);
  const Relatives relatives = relatives_of(proc, pid);
  std::vector<Sleep> before;
  for (const std::int64_t tid : threads_of(proc, pid)) {
    before.push_back(sleep_of(proc, fmt::format("{}/task/{}", pid, tid)));
    now.threads.push_back(thread_now(proc, pid, tid, relatives.job));
  }
  if (python) {
    now.python = python->version();
    add_stacks(*python, now);
  } else {
    now.declined = python.error().what;
    now.hint = python.error().hint;
  }
  for (std::size_t i = 0; i < now.threads.size(); ++i)
    now.threads[i].ran = before[i] != sleep_of(proc, fmt::format("{}/task/{}", pid, now.threads[i].tid));
  std::stable_partition(now.threads.begin(), now.threads.end(),
                        [](const ThreadNow& one) { return one.main || !one.frames.empty(); });
  for (const std::int64_t child : relatives.children) now.children.emplace_back(child, command_of(proc, child));
  return now;
}

}  // namespace headroom::python
