// SPDX-License-Identifier: Apache-2.0
#include "python/process.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/fd.h"
#include "host/proc_dir.h"
#include "host/proc_parse.h"
#include "python/attach.h"

namespace headroom::python {

namespace {

constexpr std::size_t kLookAgain = 100;  // samples until a thread whose number was not found is looked for again

std::vector<std::int64_t> namespace_pids(host::ProcDir& proc, const std::string& folder) {
  const auto text = proc.read((folder + "/status").c_str());
  return text ? host::parse_numbers(host::parse_pid_status(*text).ns_pids) : std::vector<std::int64_t>();
}

}  // namespace

PythonProcess::PythonProcess(std::int64_t pid, const Target& target)
    : pid_(pid), target_(target), version_(fmt::format("3.{}", target.layout.minor)) {}
PythonProcess::PythonProcess(PythonProcess&&) noexcept = default;
PythonProcess& PythonProcess::operator=(PythonProcess&&) noexcept = default;
PythonProcess::~PythonProcess() = default;

Result<PythonProcess> PythonProcess::attach(std::int64_t pid, LinesOf lines, KnownFiles* files) {
  auto memory = std::make_unique<ProcessMemory>(static_cast<pid_t>(pid));
  KnownFiles none;
  HR_TRY(const Target target, find_python(pid, *memory, files != nullptr ? *files : none));
  PythonProcess process(pid, target);
  process.memory_ = std::move(memory);
  process.source_ = std::make_unique<SourceFiles>(pid);
  process.walker_ = std::make_unique<StackWalker>(*process.memory_, target, process.source_.get(), lines);
  host::ProcDir proc("/proc");
  process.nested_ = namespace_pids(proc, fmt::format("{}", pid)).size() > namespace_pids(proc, "self").size();
  process.walker_->look(process.look_);
  if (process.look_.result == ProcessLook::Result::kNoInterpreter)
    return fail(Errc::kBusy, "its Python has not started yet");
  return process;
}

PythonProcess::Outcome PythonProcess::sample(StackSample& sample) {
  sample.stacks.clear();
  sample.rejected = sample.left_out = 0;
  sample.more_interpreters = false;
  ++samples_;
  walker_->look(look_);
  if (look_.result != ProcessLook::Result::kRead) {
    sample.rejected = look_.result == ProcessLook::Result::kRejected ? 1 : 0;
    return memory_->take_error() == ESRCH ? Outcome::kGone : Outcome::kNothing;
  }
  sample.left_out = look_.left_out;
  sample.more_interpreters = look_.more_interpreters;
  for (const ThreadLook& thread : look_.threads) {
    if (thread.stack == ThreadLook::Stack::kRejected) ++sample.rejected;
    if (thread.stack != ThreadLook::Stack::kRead) continue;
    const std::int64_t tid = tid_of(thread);
    if (tid == 0)
      ++sample.left_out;
    else
      sample.stacks.push_back({tid, tid == pid_, thread.gil, thread.cut, thread.same, &thread.frames});
  }
  return Outcome::kRead;
}

std::int64_t PythonProcess::tid_of(const ThreadLook& thread) {
  auto known = std::find_if(tids_.begin(), tids_.end(), [&](const Tid& one) {
    return one.state == thread.state && one.thread_id == thread.thread_id && one.native_id == thread.native_id;
  });
  if (known == tids_.end()) {
    constexpr std::size_t kMostRemembered = 4 * kMostThreads;
    if (tids_.size() >= kMostRemembered) tids_.clear();
    known =
        tids_.insert(tids_.end(), Tid{thread.state, thread.thread_id, thread.native_id, find_tid(thread), samples_});
  } else if (known->tid == 0 && samples_ - known->looked >= kLookAgain) {
    known->tid = find_tid(thread);
    known->looked = samples_;
  }
  return known->tid;
}

// Before 3.11 Python does not keep the number that the kernel gave a thread; the C library does, in what pthread_self()
// points to.
std::int64_t PythonProcess::find_tid(const ThreadLook& thread) {
  host::ProcDir proc("/proc");
  const auto tids = proc.list_numbers(fmt::format("{}/task", pid_).c_str());
  if (!tids) return 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> numbers;  // as the process calls them, and ours
  const std::vector<std::int64_t> ours(tids->begin(), tids->end());
  for (const std::int64_t tid : ours) {
    const auto pids =
        nested_ ? namespace_pids(proc, fmt::format("{}/task/{}", pid_, tid)) : std::vector<std::int64_t>();
    numbers.emplace_back(pids.empty() ? tid : pids.back(), tid);
  }
  const auto ours_of = [&](std::int64_t theirs) -> std::int64_t {
    for (const auto& [inner, tid] : numbers)
      if (inner == theirs) return tid;
    return 0;
  };
  if (thread.native_id != 0) return ours_of(static_cast<std::int64_t>(thread.native_id));
  constexpr std::array<Address, 2> kTidAt{0x2D0, 48};  // in glibc's struct pthread, and in musl's
  for (const Address offset : kTidAt) {
    std::int32_t tid = 0;
    const Region region{thread.thread_id + offset, sizeof tid};
    if (memory_->read({&region, 1}, reinterpret_cast<std::byte*>(&tid)) == sizeof tid && ours_of(tid) != 0)
      return ours_of(tid);
  }
  return ours.size() == 1 ? ours.front() : 0;
}

}  // namespace headroom::python
