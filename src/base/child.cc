// SPDX-License-Identifier: Apache-2.0
#include "base/child.h"

#include <poll.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/strings.h"

extern char** environ;

namespace headroom {

namespace {

constexpr std::string_view kDefaultPath = "/bin:/usr/bin";
constexpr int kReapTimeoutMs = 2000;  // a process in uninterruptible sleep may outlive SIGKILL for long

class SpawnAttributes {
 public:
  explicit SpawnAttributes(const ChildOptions& options) {
    ::posix_spawnattr_init(&attributes_);
    short flags = 0;
    if (options.signal_mask) {
      ::posix_spawnattr_setsigmask(&attributes_, &*options.signal_mask);
      flags = static_cast<short>(flags | POSIX_SPAWN_SETSIGMASK);
    }
    if (options.own_group) {
      ::posix_spawnattr_setpgroup(&attributes_, 0);
      flags = static_cast<short>(flags | POSIX_SPAWN_SETPGROUP);
    }
    ::posix_spawnattr_setflags(&attributes_, flags);
    ::posix_spawn_file_actions_init(&actions_);
    if (!options.cwd.empty()) ::posix_spawn_file_actions_addchdir_np(&actions_, options.cwd.c_str());
    const int targets[] = {options.standard_in, options.standard_out, options.standard_error};
    for (int target = 0; target < 3; ++target)
      if (targets[target] >= 0) ::posix_spawn_file_actions_adddup2(&actions_, targets[target], target);
  }
  ~SpawnAttributes() {
    ::posix_spawnattr_destroy(&attributes_);
    ::posix_spawn_file_actions_destroy(&actions_);
  }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;

  int spawn(pid_t* pid, const std::string& file, std::vector<char*>& argv, std::vector<char*>& env) {
    return ::posix_spawn(pid, file.c_str(), &actions_, &attributes_, argv.data(), env.data());
  }

 private:
  posix_spawnattr_t attributes_{};
  posix_spawn_file_actions_t actions_{};
};

// Pointers into `words`, ended by a null pointer. posix_spawn does not write through them.
std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> result;
  result.reserve(words.size() + 1);
  for (const auto& word : words) result.push_back(const_cast<char*>(word.c_str()));
  result.push_back(nullptr);
  return result;
}

std::vector<char*> environment_with(const std::vector<std::string>& set_env) {
  const auto replaced = [&](std::string_view entry) {
    const auto name = entry.substr(0, entry.find('=') + 1);
    return std::any_of(set_env.begin(), set_env.end(), [&](const auto& own) { return own.starts_with(name); });
  };
  std::vector<char*> result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    if (set_env.empty() || !replaced(*entry)) result.push_back(*entry);
  for (const auto& own : set_env) result.push_back(const_cast<char*>(own.c_str()));
  result.push_back(nullptr);
  return result;
}

// Want of something that others give back, or a file system that does not answer: no fault of the program.
bool passes(int number) {
  return number == EAGAIN || number == EMFILE || number == ENFILE || number == ENOMEM || number == ETXTBSY ||
         number == EIO || number == ESTALE || number == ETIMEDOUT;
}

Error spawn_error(int number, const std::string& program) {
  errno = number;
  Error error = errno_error(fmt::format("run {}", program));
  if (number == EACCES || number == ENOEXEC || number == EISDIR) error.code = Errc::kNoPermission;
  if (passes(number)) error.code = Errc::kBusy;
  return error;
}

// 0: can be run. Else the errno that execve() would give.
int why_not_runnable(const std::string& file) {
  struct stat info {};
  if (::stat(file.c_str(), &info) != 0) return errno;
  if (S_ISDIR(info.st_mode)) return EACCES;
  return ::access(file.c_str(), X_OK) == 0 ? 0 : errno;
}

}  // namespace

ExitStatus exit_status_of(int wait_status) {
  if (WIFSIGNALED(wait_status)) return {.code = 0, .signal = WTERMSIG(wait_status)};
  return {.code = WEXITSTATUS(wait_status), .signal = 0};
}

Result<Fd> open_pidfd(pid_t pid) {
#ifdef SYS_pidfd_open
  const long fd = ::syscall(SYS_pidfd_open, pid, 0);  // close-on-exec by definition
  if (fd >= 0) return Fd(static_cast<int>(fd));
  if (errno != ENOSYS && errno != EPERM) return tl::unexpected(errno_error(fmt::format("open process {}", pid)));
#endif
  return fail(Errc::kUnsupported, fmt::format("open process {}: this kernel has no pidfd_open", pid));
}

Result<std::string> find_program(const std::string& program) {
  const auto cannot = [&](int number) -> Result<std::string> {
    if (number == ENOENT && program.find('/') == std::string::npos)
      return fail(Errc::kNotFound, fmt::format("cannot run '{}': not found in PATH", program));
    Error error = spawn_error(number, program);
    error.what = fmt::format("cannot run '{}': {}", program, std::strerror(number));
    if (number == ENOTDIR) error.code = Errc::kNotFound;
    return tl::unexpected(error);
  };
  if (program.empty()) return cannot(ENOENT);
  if (program.find('/') != std::string::npos) {
    const int number = why_not_runnable(program);
    if (number != 0) return cannot(number);
    return program;
  }
  const char* path = std::getenv("PATH");
  int worst = ENOENT;
  for (const auto folder : split(path != nullptr ? std::string_view(path) : kDefaultPath, ':')) {
    std::string file = folder.empty() ? program : fmt::format("{}/{}", folder, program);
    const int number = why_not_runnable(file);
    if (number == 0) return file;
    if (number == EACCES || passes(number)) worst = number;  // as execvp(): keep looking, but remember
  }
  return cannot(worst);
}

Result<Child> Child::spawn(const ChildOptions& options) {
  HR_CHECK(!options.argv.empty(), "a child needs a program");
  // A relative path counts from the child's folder, so only the exec itself can say whether it is there.
  const std::string& program = options.argv[0];
  const bool from_cwd = !options.cwd.empty() && program.find('/') != std::string::npos;
  HR_TRY(const std::string file, from_cwd ? Result<std::string>(program) : find_program(program));
  SpawnAttributes attributes(options);
  std::vector<char*> argv = pointers(options.argv);
  std::vector<char*> env = environment_with(options.set_env);
  pid_t pid = -1;
  int number = attributes.spawn(&pid, file, argv, env);
  if (number == ENOEXEC) {  // a script without "#!": shells and execvp() give it to sh
    static const std::string kShell = "/bin/sh";
    std::vector<char*> script{const_cast<char*>("sh"), const_cast<char*>(file.c_str())};
    script.insert(script.end(), argv.begin() + 1, argv.end());
    number = attributes.spawn(&pid, kShell, script, env);
  }
  if (number != 0) {
    Error error = spawn_error(number, options.argv[0]);
    error.what = fmt::format("cannot run '{}': {}", options.argv[0], std::strerror(number));
    if (number == ENOENT)
      error.what += options.cwd.empty() ? " (the interpreter named in its first line?)" : " (or no such folder)";
    return tl::unexpected(error);
  }
  return Child(pid, options);
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      own_group_(other.own_group_),
      on_drop_(other.on_drop_),
      status_(other.status_) {}

Child::~Child() {
  if (pid_ < 0 || on_drop_ == OnDrop::kLeave) return;
  if (own_group_) ::kill(-pid_, SIGKILL);  // also what outlived the child itself
  if (!status_) {
    kill(SIGKILL);
    const auto process = open_pidfd(pid_);
    pollfd ended{.fd = process ? process->get() : -1, .events = POLLIN, .revents = 0};
    if (process && ::poll(&ended, 1, kReapTimeoutMs) <= 0) return;
    wait();
  }
  // Orphans of the group are this process's children if it is a subreaper; without this they stay zombies.
  while (own_group_ && ::waitpid(-pid_, nullptr, WNOHANG) > 0) {
  }
}

std::optional<ExitStatus> Child::try_wait() {
  if (status_) return status_;
  int status = 0;
  const pid_t got = ::waitpid(pid_, &status, WNOHANG);
  if (got == pid_)
    status_ = exit_status_of(status);
  else if (got < 0 && errno == ECHILD)
    status_ = ExitStatus{};  // reaped by someone else: nothing is known
  return status_;
}

ExitStatus Child::wait() {
  while (!status_) {
    int status = 0;
    const pid_t got = ::waitpid(pid_, &status, 0);
    if (got == pid_)
      status_ = exit_status_of(status);
    else if (errno != EINTR)
      status_ = ExitStatus{};
  }
  return *status_;
}

void Child::kill(int signal) const {
  if (pid_ < 0 || status_) return;
  if (own_group_ && ::kill(-pid_, signal) == 0) return;
  ::kill(pid_, signal);
}

}  // namespace headroom
