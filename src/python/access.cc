// SPDX-License-Identifier: Apache-2.0
#include "python/access.h"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>

#include "base/fd.h"
#include "base/strings.h"
#include "host/proc_dir.h"
#include "host/proc_parse.h"

namespace headroom::python {

namespace {

constexpr const char* kScopeFile = "/proc/sys/kernel/yama/ptrace_scope";
constexpr const char* kOpenScope = "sudo sysctl kernel.yama.ptrace_scope=0";
constexpr int kCapSysPtrace = 19;  // capability.h

bool may_trace_all() {
  const auto text = read_file("/proc/self/status");
  constexpr std::string_view kName = "CapEff:\t";
  const auto at = text ? text->find(kName) : std::string::npos;
  if (at == std::string::npos) return false;
  std::uint64_t capabilities = 0;
  std::from_chars(text->data() + at + kName.size(), text->data() + text->size(), capabilities, 16);
  return (capabilities >> kCapSysPtrace & 1U) != 0;
}

std::optional<Error> denied_by_scope(int scope, Whose whose) {
  constexpr int kDescendants = 1, kAdministrators = 2;
  if (scope == kDescendants && whose == Whose::kOthers)
    return Error{Errc::kNoPermission,
                 "kernel.yama.ptrace_scope is 1: a process may read the memory of those only that it started",
                 fmt::format("start the job with `headroom run`, or: {}", kOpenScope)};
  if (scope == kAdministrators)
    return Error{Errc::kNoPermission,
                 "kernel.yama.ptrace_scope is 2: only administrators may read another process's memory", kOpenScope};
  if (scope > kAdministrators)
    return Error{Errc::kNoPermission,
                 "kernel.yama.ptrace_scope is 3: nobody may read another process's memory until the next boot",
                 "change it where it is set at boot (/etc/sysctl.d)"};
  return std::nullopt;
}

std::optional<std::int64_t> uid_of(const std::string& root, const std::string& pid) {
  host::ProcDir proc(root + "/proc");
  const auto text = proc.read((pid + "/status").c_str());
  return text ? host::parse_pid_status(*text).uid : std::nullopt;
}

}  // namespace

std::optional<int> ptrace_scope(const std::string& root) {
  const auto text = read_file(root + kScopeFile);
  return text ? parse_number<int>(trim(*text)) : std::nullopt;
}

Result<void> can_read_stacks(Whose whose) {
#if !defined(__x86_64__)
  return fail(Errc::kUnsupported, "Python stacks are read on x86-64 only");
#endif
  // One's own memory may always be read, unless the call itself is not there or filtered.
  std::uint64_t there = 42, copy = 0;
  const iovec from{&there, sizeof there}, to{&copy, sizeof copy};
  if (::process_vm_readv(::getpid(), &to, 1, &from, 1, 0) != sizeof copy || copy != there)
    return fail(Errc::kUnsupported, fmt::format("process_vm_readv: {}", errno_error("not usable").what),
                errno == ENOSYS
                    ? "the kernel was built without it (CONFIG_CROSS_MEMORY_ATTACH)"
                    : "a container's seccomp filter forbids it; docker run --cap-add SYS_PTRACE lets it through");
  if (may_trace_all()) return {};
  const auto denial = denied_by_scope(ptrace_scope().value_or(0), whose);
  return denial ? tl::unexpected(*denial) : Result<void>();
}

Error denied(std::int64_t pid, const std::string& root) {
  const auto theirs = uid_of(root, fmt::format("{}", pid));
  if (theirs && *theirs != static_cast<std::int64_t>(::geteuid()) && ::geteuid() != 0)
    return {Errc::kNoPermission, fmt::format("it belongs to another user (uid {})", *theirs),
            "run Headroom as that user, or as root"};
  if (const auto denial = denied_by_scope(ptrace_scope(root).value_or(0), Whose::kOthers)) return *denial;
  return {Errc::kNoPermission, "the kernel does not let its memory be read",
          "it may have more rights than Headroom, may forbid core dumps, or belong to another container"};
}

}  // namespace headroom::python
