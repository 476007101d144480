// SPDX-License-Identifier: Apache-2.0
#include "sim/job/loader.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <string>
#include <utility>

namespace headroom::sim {

namespace {

// A pipe holds one page at least, so a batch of half a page makes a worker run two batches ahead.
constexpr std::size_t kBatchBytes = 2048;
constexpr int kPipeBytes = 4096;

[[noreturn]] void work(int pipe, pid_t trainer, const std::function<void()>& begin, const std::function<void()>& make) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::prctl(PR_SET_NAME, "loader");
  ::signal(SIGINT, SIG_IGN);  // Ctrl-C is the trainer's business: it ends its workers
  if (::getppid() != trainer) ::_exit(0);
  begin();
  const std::string batch(kBatchBytes, 'b');
  for (;;) {
    make();
    if (!write_all(pipe, batch)) ::_exit(0);
  }
}

}  // namespace

Result<Loader> Loader::start(std::size_t workers, const std::function<void()>& begin,
                             const std::function<void()>& make) {
  Loader loader;
  const pid_t trainer = ::getpid();
  for (std::size_t i = 0; i < workers; ++i) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return tl::unexpected(errno_error("make a pipe"));
    Fd reading(ends[0]), writing(ends[1]);
    ::fcntl(writing.get(), F_SETPIPE_SZ, kPipeBytes);
    const pid_t pid = ::fork();
    if (pid < 0) return tl::unexpected(errno_error("fork a loader worker"));
    if (pid == 0) {
      for (Worker& other : loader.workers_) other.pipe.reset();
      reading.reset();
      work(writing.get(), trainer, begin, make);
    }
    loader.workers_.push_back({pid, std::move(reading)});
  }
  return loader;
}

Loader::~Loader() { stop(); }

Loader& Loader::operator=(Loader&& other) noexcept {
  stop();
  workers_ = std::exchange(other.workers_, {});
  turn_ = other.turn_;
  return *this;
}

void Loader::stop() {
  for (Worker& worker : workers_) ::kill(worker.pid, SIGKILL);
  for (Worker& worker : workers_)
    while (::waitpid(worker.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  workers_.clear();
}

Result<void> Loader::next() {
  Worker& worker = workers_[turn_++ % workers_.size()];
  char batch[kBatchBytes];
  for (std::size_t have = 0; have < kBatchBytes;) {
    const ssize_t got = ::read(worker.pipe.get(), batch + have, kBatchBytes - have);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return tl::unexpected(errno_error("read a batch"));
    if (got == 0) return fail(Errc::kIo, fmt::format("loader worker {} died", worker.pid));
    have += static_cast<std::size_t>(got);
  }
  return {};
}

}  // namespace headroom::sim
