// SPDX-License-Identifier: Apache-2.0
#include "python/attach.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/fd.h"
#include "base/regular_file.h"
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

namespace {

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::optional<std::uint64_t> hex(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// The next field of a line, and the rest behind it.
std::string_view take_field(std::string_view& line) {
  const auto end = std::min(line.find(' '), line.size());
  const auto field = line.substr(0, end);
  line.remove_prefix(std::min(line.find_first_not_of(' ', end), line.size()));
  return field;
}

// "3.11" or "311" at the beginning.
int minor_at(std::string_view text) {
  if (text.starts_with('2')) return 0;
  if (!text.starts_with('3')) return -1;
  text.remove_prefix(text.starts_with("3.") ? 2 : 1);
  int minor = -1;
  constexpr std::size_t kMostDigits = 2;
  std::from_chars(text.data(), text.data() + std::min(text.size(), kMostDigits), minor);
  return minor;
}

}  // namespace

std::vector<MappedFile> mapped_files(std::string_view maps) {
  std::vector<MappedFile> files;
  std::unordered_map<std::string_view, std::size_t> known;  // a process may map tens of thousands of files
  for (std::string_view line : split(maps, '\n')) {
    const auto range = take_field(line);
    const auto rights = take_field(line);
    const auto offset = hex(take_field(line));
    take_field(line);  // device
    take_field(line);  // inode
    const auto begin = hex(range.substr(0, range.find('-')));
    if (!begin || !offset || !line.starts_with('/')) continue;
    const auto [at, added] = known.try_emplace(line, files.size());
    if (added) files.push_back({line, *begin, *offset, false});
    MappedFile& file = files[at->second];
    file.executable = file.executable || rights.find('x') != std::string_view::npos;
  }
  return files;
}

bool may_hold_python(std::string_view path) {
  const auto name = file_name(path);
  return name.starts_with("libpython") || name.starts_with("python");
}

int minor_in_name(std::string_view path) {
  const auto name = file_name(path);
  for (const std::string_view before : {"libpython", "python", "cpython-"}) {
    const auto at = name.find(before);
    if (at == std::string_view::npos) continue;
    if (const int minor = minor_at(name.substr(at + before.size())); minor >= 0) return minor;
  }
  return -1;
}

namespace {

constexpr std::size_t kMostMaps = 32 * 1024 * 1024;

std::string link_target(const std::string& path) {
  char target[PATH_MAX];
  const ssize_t size = ::readlink(path.c_str(), target, sizeof target);
  return size > 0 ? std::string(target, static_cast<std::size_t>(size)) : std::string();
}

// The files that may hold an interpreter, the likeliest first.
std::vector<MappedFile> likely(const std::vector<MappedFile>& files, std::string_view exe) {
  constexpr std::size_t kMostFiles = 6;
  std::vector<MappedFile> chosen;
  for (const MappedFile& file : files)
    if (file.executable && (file.path == exe || may_hold_python(file.path))) chosen.push_back(file);
  std::stable_partition(chosen.begin(), chosen.end(),
                        [](const MappedFile& file) { return file.path.find("/libpython") != std::string_view::npos; });
  if (chosen.size() > kMostFiles) chosen.resize(kMostFiles);
  return chosen;
}

// What lies by now where a file was mapped from is the process's choice: a pipe would never answer, and to open a
// device may start something. What is mapped has the path of a file, not of a link.
Result<Fd> open_mapped(const std::string& path) {
  const Fd there(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!there || ::fstat(there.get(), &info) != 0) return tl::unexpected(errno_error(fmt::format("open {}", path)));
  if (!S_ISREG(info.st_mode)) return fail(Errc::kInvalidInput, fmt::format("open {}: not a regular file", path));
  return open_regular(fmt::format("/proc/self/fd/{}", there.get()));
}

Result<Fd> open_program(std::int64_t pid, std::string_view path, bool exe) {
  // The program itself by its link: it may have been deleted or replaced since.
  return exe ? open_read(fmt::format("/proc/{}/exe", pid)) : open_mapped(fmt::format("/proc/{}/root{}", pid, path));
}

// By the names of what is mapped: Python's own extensions and folders tell, where the program's name does not.
int minor_by_names(const std::vector<MappedFile>& files, std::string_view holder) {
  if (const int minor = minor_in_name(holder); minor >= 0) return minor;
  for (const MappedFile& file : files)
    if (const int minor = minor_in_name(file.path); minor >= 0) return minor;
  return -1;
}

bool read_exactly(ProcessMemory& memory, Address at, std::span<std::byte> into) {
  const Region region{at, into.size()};
  return memory.read({&region, 1}, into.data()) == into.size();
}

// PyCode_Type is where the symbols say it is: its name is "code".
bool is_code_type(ProcessMemory& memory, Address type) {
  Address name = 0;
  std::array<char, 5> text{};
  return read_exactly(memory, type + kTypeNameOffset, std::as_writable_bytes(std::span(&name, 1))) &&
         read_exactly(memory, name, std::as_writable_bytes(std::span(text))) &&
         std::memcmp(text.data(), "code", 5) == 0;
}

Result<Layout> layout_of(ProcessMemory& memory, Address runtime, std::optional<Address> version_at, int minor) {
  std::array<std::byte, kDebugOffsetsBytes> head{};
  if (read_exactly(memory, runtime, head)) {
    auto published = published_layout(head);
    if (published || published.error().code != Errc::kNotFound) return published;
  }
  std::uint64_t hex = 0;
  if (version_at && read_exactly(memory, *version_at, std::as_writable_bytes(std::span(&hex, 1))))
    minor = minor_of_version(hex).value_or(minor);
  if (minor < 0) return fail(Errc::kUnsupported, "its version of Python could not be told");
  if (const auto layout = known_layout(minor)) return *layout;
  constexpr int kFirstPublished = 13;
  if (minor >= kFirstPublished && minor <= kNewestMinor)
    return fail(Errc::kBusy, "its Python has not started yet");  // what it publishes is a constant: not yet mapped
  return tl::unexpected(unknown_version(minor));
}

Error gone() { return {Errc::kIo, "the process has ended", ""}; }

}  // namespace

Result<Target> find_python(std::int64_t pid, ProcessMemory& memory, KnownFiles& known) {
#if !defined(__x86_64__)
  return fail(Errc::kUnsupported, "Python stacks are read on x86-64 only");
#endif
  const auto maps = read_file(fmt::format("/proc/{}/maps", pid), kMostMaps);
  if (!maps) {
    if (maps.error().code == Errc::kNoPermission) return tl::unexpected(denied(pid));
    return tl::unexpected(maps.error().code == Errc::kInvalidInput ? maps.error() : gone());
  }
  const auto files = mapped_files(*maps);
  const std::string exe = link_target(fmt::format("/proc/{}/exe", pid));
  for (const MappedFile& file : likely(files, exe)) {
    const auto program = open_program(pid, file.path, file.path == exe);
    const ElfSymbols* elf = program ? known.symbols_of(*program) : nullptr;
    if (elf == nullptr || !elf->values[1]) continue;
    const auto bias = load_bias(*elf, file.offset, file.begin);
    const int minor = minor_by_names(files, file.path);
    if (!elf->values[0]) return tl::unexpected(unknown_version(std::max(minor, 0)));  // before 3.7 there was none
    if (!bias) continue;
    const Address code_type = *elf->values[1] + *bias;
    if (!is_code_type(memory, code_type)) {
      const int error = memory.take_error();
      if (error == EPERM || error == EACCES) return tl::unexpected(denied(pid));
      if (error == ESRCH) return tl::unexpected(gone());
      return fail(Errc::kBusy, "its Python has not started yet");  // not yet relocated
    }
    HR_TRY(const Layout layout,
           layout_of(memory, *elf->values[0] + *bias,
                     elf->values[3] ? std::optional(*elf->values[3] + *bias) : std::nullopt, minor));
    return Target{layout, *elf->values[0] + *bias, code_type, elf->values[2] ? *elf->values[2] + *bias : 0};
  }
  return fail(Errc::kNotFound, "there is no Python in it");
}

}  // namespace headroom::python
