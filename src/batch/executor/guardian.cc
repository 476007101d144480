// SPDX-License-Identifier: Apache-2.0
#include "batch/executor/guardian.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include "batch/sweep.h"

namespace headroom::batch {

namespace {
constexpr std::size_t kMostGroups = 4096;  // beyond it the environment marker has to do
constexpr char kLeave = 'q';
constexpr std::array kIgnored{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};

// From 3 on. One by one where the kernel is older than 5.9.
void close_others(int keep, int keep_too) {
  const int most = static_cast<int>(std::min(::sysconf(_SC_OPEN_MAX), 65536L));
  int from = 3;
  for (const int kept : {std::min(keep, keep_too), std::max(keep, keep_too), most}) {
    if (kept > from && ::close_range(static_cast<unsigned>(from), static_cast<unsigned>(kept - 1), 0) != 0)
      for (int fd = from; fd < kept; ++fd) ::close(fd);
    from = std::max(from, kept + 1);
  }
}
}  // namespace

struct Guardian::Shared {
  char batch_id[64];
  std::array<std::atomic<pid_t>, kMostGroups> groups;
};

Result<Guardian> Guardian::start(Nanos grace, int lock_fd) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return tl::unexpected(errno_error("start the guardian"));
  Fd read_end(ends[0]);
  Guardian guardian;
  guardian.alive_ = Fd(ends[1]);
  void* memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return tl::unexpected(errno_error("start the guardian"));
  guardian.shared_ = new (memory) Shared{};
  // What comes before it ignores them waits until then, and is gone.
  sigset_t ignored, before;
  ::sigemptyset(&ignored);
  for (const int number : kIgnored) ::sigaddset(&ignored, number);
  ::pthread_sigmask(SIG_BLOCK, &ignored, &before);
  const pid_t pid = ::fork();
  if (pid != 0) ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (pid < 0) return tl::unexpected(errno_error("start the guardian"));
  if (pid == 0) keep_watch(read_end.get(), lock_fd, *guardian.shared_, grace);
  guardian.pid_ = pid;
  return guardian;
}

void Guardian::keep_watch(int pipe_fd, int lock_fd, const Shared& shared, Nanos grace) {
  ::setsid();  // out of reach of the terminal's signals
  for (const int number : kIgnored) ::signal(number, SIG_IGN);
  ::prctl(PR_SET_NAME, "headroom-guard");
  const int null = ::open("/dev/null", O_RDWR);  // NOLINT: inherited by nobody
  for (int fd = 0; fd < 3; ++fd) ::dup2(null, fd);
  close_others(pipe_fd, lock_fd);
  char word = 0;
  ssize_t got = 0;
  do {
    got = ::read(pipe_fd, &word, 1);
  } while (got < 0 && errno == EINTR);
  if (got == 1 && word == kLeave) ::_exit(0);
  std::vector<pid_t> groups;
  for (const auto& group : shared.groups)
    if (const pid_t id = group.load(); id > 0) groups.push_back(id);
  if (shared.batch_id[0] != '\0') stop_processes(shared.batch_id, groups, grace);
  ::_exit(0);
}

Guardian::Guardian(Guardian&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      alive_(std::move(other.alive_)),
      shared_(std::exchange(other.shared_, nullptr)) {}

Guardian::~Guardian() {
  if (pid_ > 0) {
    [[maybe_unused]] const auto sent = ::write(alive_.get(), &kLeave, 1);
    alive_.reset();
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (shared_ != nullptr) ::munmap(shared_, sizeof(Shared));
}

void Guardian::set_batch(std::string_view batch_id) {
  const std::size_t length = std::min(batch_id.size(), sizeof shared_->batch_id - 1);
  std::memcpy(shared_->batch_id, batch_id.data(), length);
}

void Guardian::add_group(pid_t group) {
  for (auto& place : shared_->groups) {
    if (place.load() != 0) continue;
    place.store(group);
    return;
  }
}

void Guardian::remove_group(pid_t group) {
  for (auto& place : shared_->groups)
    if (place.load() == group) return place.store(0);
}

}  // namespace headroom::batch
