// SPDX-License-Identifier: Apache-2.0
#include "host/process_facts.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/strings.h"

namespace headroom::host {

KernelFacts read_kernel_facts(ProcDir& proc, bool this_machine) {
  KernelFacts facts;
  if (this_machine) {  // fixtures are of x86-64 machines: 100 ticks a second, pages of 4096 bytes
    if (const long ticks = ::sysconf(_SC_CLK_TCK); ticks > 0) facts.ns_per_tick = kSecond / ticks;
    if (const long page = ::sysconf(_SC_PAGESIZE); page > 0) facts.page_bytes = page;
  }
  if (const auto text = proc.read("sys/kernel/task_delayacct")) facts.io_delay = trim(*text) != "0";
  facts.cpu_clocks = this_machine;
  return facts;
}

std::string UserNames::name(std::int64_t uid) {
  if (!loaded_) {
    loaded_ = true;
    constexpr std::size_t kLargestPasswd = 4 * 1024 * 1024;
    const auto text = read_file(root_ + "/etc/passwd", kLargestPasswd);
    for (const auto line : split(text ? std::string_view(*text) : std::string_view(), '\n')) {
      const auto fields = split(line, ':');
      if (fields.size() < 4) continue;
      if (const auto id = parse_number<std::int64_t>(fields[2])) names_.emplace_back(*id, valid_utf8(fields[0]));
    }
  }
  const auto found = std::find_if(names_.begin(), names_.end(), [&](const auto& entry) { return entry.first == uid; });
  return found == names_.end() ? std::string() : found->second;
}

namespace {

std::optional<std::string> variable(std::string_view environ_text, std::string_view name) {
  const auto value = find_environment(environ_text, name);
  return value ? std::optional(valid_utf8(*value)) : std::nullopt;
}

void read_status(ProcDir& proc, UserNames& users, std::int64_t pid, ProcessFacts& facts) {
  const auto text = proc.read(fmt::format("{}/status", pid).c_str());
  if (!text) return;
  const PidStatus status = parse_pid_status(*text);
  facts.thread = status.tgid && *status.tgid != pid;
  facts.ns_pids = parse_numbers(status.ns_pids);
  facts.process.uid = status.uid;
  if (status.uid) facts.process.user = users.name(*status.uid);
}

void read_environment(ProcDir& proc, std::int64_t pid, ProcessFacts& facts) {
  const auto text = proc.read(fmt::format("{}/environ", pid).c_str());
  facts.environment_denied = !text && text.error() == Absent::kNoPermission;
  facts.environment_empty = text && text->empty();
  if (!text) return;
  facts.process.cuda_visible_devices = variable(*text, "CUDA_VISIBLE_DEVICES");
  facts.process.cuda_device_order = variable(*text, "CUDA_DEVICE_ORDER");
  facts.process.nvidia_visible_devices = variable(*text, "NVIDIA_VISIBLE_DEVICES");
}

}  // namespace

ProcessFacts read_process_facts(ProcDir& proc, const KernelFacts& kernel, UserNames& users, std::int64_t pid,
                                Environment environment) {
  ProcessFacts facts;
  facts.process.pid = pid;
  const auto text = proc.read(fmt::format("{}/stat", pid).c_str());
  if (!text) {
    facts.unreadable = text.error();
    return facts;
  }
  const auto stat = parse_pid_stat(*text);
  if (!stat) {
    facts.unreadable = Absent::kGarbage;
    return facts;
  }
  facts.kernel_thread = stat->kernel_thread();
  facts.process.ppid = stat->ppid;
  facts.process.start = stat->start_ticks * kernel.ns_per_tick;
  facts.process.comm = valid_utf8(stat->comm);
  read_status(proc, users, pid, facts);
  if (const auto cmdline = proc.read(fmt::format("{}/cmdline", pid).c_str()))
    facts.process.cmdline = command_line(*cmdline);
  if (environment == Environment::kRead) read_environment(proc, pid, facts);
  return facts;
}

}  // namespace headroom::host
