// SPDX-License-Identifier: Apache-2.0
#include "pump/pump.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

#include "base/time.h"

namespace headroom::pump {

namespace {

constexpr std::size_t kBlock = 64 << 10;             // as much as a pipe holds
constexpr std::size_t kMostBeforeReply = 256 << 10;  // a job that never stops writing must not keep Headroom waiting
constexpr int kSizeMs = 250;                         // between looks at the terminal's size
constexpr short kHungUp = POLLERR | POLLHUP | POLLNVAL;

class Pump {
 public:
  explicit Pump(const Ends& ends) : ends_(ends) {}
  Passed run() {
    const End end = pass_all();
    return {end, error_};
  }

 private:
  enum class Read : std::uint8_t { kSome, kNothing, kEnd };
  End pass_all();
  Read read_some();
  bool write_all();
  [[nodiscard]] bool is_read() const;
  void copy();
  void take_request();
  void reply();
  void follow_size();

  Ends ends_;
  std::array<char, kBlock> block_{};
  std::size_t size_ = 0;  // in block_
  std::uint32_t lost_ = 0;
  int error_ = 0;
  bool asked_ = false;
  std::size_t since_asked_ = 0;
  winsize window_{};
};

End Pump::pass_all() {
  for (;;) {
    if (ends_.group > 0) follow_size();
    std::array<pollfd, 3> fds{pollfd{ends_.in, POLLIN, 0}, pollfd{ends_.out, 0, 0}, pollfd{ends_.control, POLLIN, 0}};
    const int ready = ::poll(fds.data(), fds.size(), asked_ ? 0 : ends_.group > 0 ? kSizeMs : -1);
    if (ready < 0 && errno != EINTR) return End::kGone;
    if ((fds[1].revents & kHungUp) != 0) return End::kGone;
    if (fds[2].revents != 0) take_request();
    if (fds[0].revents == 0) {
      if (ready >= 0) reply();
      continue;
    }
    const Read read = read_some();
    if (read == Read::kEnd) return End::kDone;
    if (read == Read::kNothing) continue;
    copy();
    if (!write_all()) return End::kGone;
    since_asked_ += size_;
    if (since_asked_ >= kMostBeforeReply) reply();
  }
}

// As much as there is: a pty gives 4 KiB at a time, and is set to give nothing instead of waiting.
Pump::Read Pump::read_some() {
  size_ = 0;
  do {
    const ssize_t got = ::read(ends_.in, block_.data() + size_, block_.size() - size_);
    if (got > 0) size_ += static_cast<std::size_t>(got);
    if (size_ > 0 && got <= 0) return Read::kSome;  // an end comes again
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return Read::kNothing;
    if (got <= 0) return Read::kEnd;  // of a pty whose other side is closed: EIO
  } while (ends_.group > 0 && size_ < block_.size());
  return Read::kSome;
}

bool Pump::is_read() const {
  pollfd out{ends_.out, 0, 0};
  return ::poll(&out, 1, 0) >= 0 && (out.revents & kHungUp) == 0;
}

// False where nobody reads any more.
bool Pump::write_all() {
  for (std::size_t put = 0; put < size_;) {
    const ssize_t wrote = ::write(ends_.out, block_.data() + put, size_ - put);
    if (wrote >= 0) {
      put += static_cast<std::size_t>(wrote);
    } else if (errno == EAGAIN) {  // somebody else has made it non-blocking
      pollfd out{ends_.out, POLLOUT, 0};
      ::poll(&out, 1, -1);
    } else if (errno != EINTR) {
      const int error = errno;
      if (error == EPIPE || !is_read()) return false;
      if (error_ == 0) error_ = error;
      return true;
    }
  }
  return true;
}

void Pump::copy() {
  if (ends_.copy < 0) return;
  struct {
    CopyHeader header;
    std::array<char, kMostCopied> bytes;
  } record;
  const Nanos now = boottime_now();
  for (std::size_t at = 0; at < size_;) {
    const std::size_t bytes = std::min(size_ - at, kMostCopied);
    record.header = {.at = now, .lost = lost_, .bytes = static_cast<std::uint16_t>(bytes), .stream = ends_.stream};
    std::memcpy(record.bytes.data(), block_.data() + at, bytes);
    const ssize_t wrote = ::write(ends_.copy, &record, sizeof record.header + bytes);
    if (wrote > 0) {
      lost_ = 0;
      at += bytes;
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) {  // Headroom has ended
      ends_.copy = -1;
      return;
    }
    const std::string_view rest(block_.data() + at, size_ - at);
    lost_ += static_cast<std::uint32_t>(std::max<std::ptrdiff_t>(1, std::count(rest.begin(), rest.end(), '\n')));
    return;
  }
}

void Pump::take_request() {
  char request = 0;
  const ssize_t got = ::read(ends_.control, &request, 1);
  if (got == 1) {
    asked_ = true;
    since_asked_ = 0;
  } else if (got == 0 || (errno != EINTR && errno != EAGAIN)) {
    ends_.control = -1;  // Headroom has ended
    asked_ = false;
  }
}

void Pump::reply() {
  if (!asked_) return;
  asked_ = false;
  const char done = static_cast<char>(error_);
  (void)!::send(ends_.control, &done, 1, MSG_NOSIGNAL);
}

// The job has been told by its terminal, and may have asked before it was so.
void Pump::follow_size() {
  winsize now{};
  if (::ioctl(ends_.out, TIOCGWINSZ, &now) != 0 || std::memcmp(&now, &window_, sizeof now) == 0) return;
  window_ = now;
  winsize known{};
  if (::ioctl(ends_.in, TIOCGWINSZ, &known) == 0 && std::memcmp(&now, &known, sizeof now) == 0) return;
  ::ioctl(ends_.in, TIOCSWINSZ, &now);
  ::kill(-ends_.group, SIGWINCH);
}

// Closes descriptors that the job's shell left open. One by one where the kernel is older than 5.9.
void close_from(int first) {
  if (::close_range(static_cast<unsigned>(first), ~0U, 0) == 0) return;
  const int most = static_cast<int>(std::min(::sysconf(_SC_OPEN_MAX), 65536L));
  for (int fd = first; fd < most; ++fd) ::close(fd);
}

}  // namespace

Passed pass_on(const Ends& ends) { return Pump(ends).run(); }

constexpr int kErrors = 64;  // and the errno: up to 133 on Linux

int exit_code_of(const Passed& passed) {
  return passed.error == 0 ? static_cast<int>(passed.end) : kErrors + std::min(passed.error, 191);
}

std::optional<Passed> passed_of(int exit_code) {
  if (exit_code > kErrors) return Passed{End::kDone, exit_code - kErrors};
  const auto end = static_cast<End>(exit_code);
  return end == End::kDone || end == End::kGone ? std::optional(Passed{end, 0}) : std::nullopt;
}

void run_pump(std::uint16_t stream, pid_t group) {
  constexpr int kCopy = 3, kControl = 4;
  for (const int number :
       {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGTSTP, SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH})
    ::signal(number, SIG_IGN);
  ::setsid();
  ::prctl(PR_SET_NAME, "headroom-pump");
  ::dup2(STDOUT_FILENO, STDERR_FILENO);  // nothing is written there, and standard error is not kept open
  close_from(kControl + 1);
  (void)!::chdir("/");
  ::_exit(exit_code_of(pass_on({.in = STDIN_FILENO,
                                .out = STDOUT_FILENO,
                                .copy = kCopy,
                                .control = kControl,
                                .stream = stream,
                                .group = group})));
}

}  // namespace headroom::pump
