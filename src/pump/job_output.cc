// SPDX-License-Identifier: Apache-2.0
#include "pump/job_output.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "pump/pump.h"

extern char** environ;

namespace headroom::pump {

namespace {

constexpr int kCopyBytes = 1 << 20;  // what a user may have in one pipe, by default: seconds of a busy job's output
constexpr int kMostDeaths = 5;       // whoever kills them goes on doing so
constexpr int kFirstOwnFd = 10;      // above those that a pump has

struct Pipe {
  Fd out, in;
};

Result<Pipe> make_pipe(int flags) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | flags) != 0) return tl::unexpected(errno_error("make a pipe for the job's output"));
  return Pipe{.out = Fd(ends[0]), .in = Fd(ends[1])};
}

// The same one above the descriptors of a pump, which dup2() would write over.
Result<Fd> moved_up(Fd fd) {
  Fd high(::fcntl(fd.get(), F_DUPFD_CLOEXEC, kFirstOwnFd));
  if (!high) return tl::unexpected(errno_error("make a descriptor for the job's output"));
  return high;
}

struct Pty {
  Fd master, slave;
};

// With the terminal's size and modes, but for those that change bytes or echo them.
Result<Pty> make_pty(int terminal) {
  Pty pty;
  pty.master = Fd(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK));
  char name[128] = "";
  if (!pty.master || ::grantpt(pty.master.get()) != 0 || ::unlockpt(pty.master.get()) != 0)
    return tl::unexpected(errno_error("make a pseudo-terminal for the job's output"));
#ifdef TIOCGPTPEER
  pty.slave = Fd(::ioctl(pty.master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
#endif
  if (!pty.slave && ::ptsname_r(pty.master.get(), name, sizeof name) == 0)
    pty.slave = Fd(::open(name, O_RDWR | O_NOCTTY | O_CLOEXEC));
  termios modes{};
  if (!pty.slave || ::tcgetattr(terminal, &modes) != 0)
    return tl::unexpected(errno_error("open a pseudo-terminal for the job's output"));
  modes.c_oflag &= ~static_cast<tcflag_t>(OPOST);
  modes.c_lflag &= ~static_cast<tcflag_t>(ECHO | ECHOE | ECHOK | ECHONL | TOSTOP);
  winsize size{};
  if (::tcsetattr(pty.slave.get(), TCSANOW, &modes) != 0)
    return tl::unexpected(errno_error("set up a pseudo-terminal for the job's output"));
  if (::ioctl(terminal, TIOCGWINSZ, &size) == 0) ::ioctl(pty.master.get(), TIOCSWINSZ, &size);
  return pty;
}

bool same_file(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

// Where it will be written to: at its end, or where the descriptor stands.
Result<WrittenFile> opened_for_reading(int fd, const struct stat& info) {
  HR_TRY(Fd file, open_read(fmt::format("/proc/self/fd/{}", fd)));
  const int flags = ::fcntl(fd, F_GETFL);
  const off_t at = flags >= 0 && (flags & O_APPEND) == 0 ? ::lseek(fd, 0, SEEK_CUR) : info.st_size;
  return WrittenFile{.file = std::move(file), .from = std::max<off_t>(0, at)};
}

}  // namespace

Result<std::unique_ptr<JobOutput>> JobOutput::open(std::vector<std::string> pump) {
  std::unique_ptr<JobOutput> output(new JobOutput);
  output->program_ = std::move(pump);
  HR_TRY(Pipe copy, make_pipe(O_NONBLOCK));
  ::fcntl(copy.in.get(), F_SETPIPE_SZ, kCopyBytes);  // what it has without is enough for a while
  output->copy_out_ = std::move(copy.out);
  HR_TRY(output->copy_in_, moved_up(std::move(copy.in)));
  struct stat out {
  }, error{};
  const bool has_out = ::fstat(STDOUT_FILENO, &out) == 0, has_error = ::fstat(STDERR_FILENO, &error) == 0;
  const bool both = has_out && has_error && same_file(out, error);
  if (has_out) HR_TRYV(output->add(1, both));
  if (has_error && !both) HR_TRYV(output->add(2, false));
  return output;
}

Result<void> JobOutput::add(std::uint16_t number, bool both) {
  struct stat info {};
  ::fstat(number, &info);
  if (S_ISREG(info.st_mode)) {
    HR_TRY(WrittenFile file, opened_for_reading(number, info));
    files_.push_back(std::move(file));
    return {};
  }
  Stream stream{.number = number, .both = both, .pty = ::isatty(number) == 1};
  if (stream.pty) {
    HR_TRY(Pty pty, make_pty(number));
    HR_TRY(stream.in, moved_up(std::move(pty.master)));
    stream.job_end = std::move(pty.slave);
  } else {
    HR_TRY(Pipe pipe, make_pipe(0));
    HR_TRY(stream.in, moved_up(std::move(pipe.out)));
    stream.job_end = std::move(pipe.in);
  }
  HR_TRYV(start_pump(stream));
  streams_.push_back(std::move(stream));
  return {};
}

// The signals of this thread stay blocked in it until it ignores them.
Result<void> JobOutput::start_pump(Stream& stream) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return tl::unexpected(errno_error("start a pump for the job's output"));
  Fd ours(ends[0]);
  HR_TRY(const Fd theirs, moved_up(Fd(ends[1])));
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  // Its standard output is ours: first what is read from it, then the rest.
  const std::pair<int, int> moves[] = {
      {stream.number, STDOUT_FILENO}, {stream.in.get(), STDIN_FILENO}, {copy_in_.get(), 3}, {theirs.get(), 4}};
  for (const auto& [from, to] : moves) ::posix_spawn_file_actions_adddup2(&actions, from, to);
  std::vector<std::string> words = program_;
  words.push_back(std::to_string(stream.number));
  words.push_back(std::to_string(stream.pty ? ::getpgrp() : 0));
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const int failed = ::posix_spawn(&stream.pump, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    stream.pump = 0;
    errno = failed;
    return tl::unexpected(errno_error("start a pump for the job's output"));
  }
  stream.control = std::move(ours);
  return {};
}

JobOutput::~JobOutput() = default;  // pumps end with their work

const JobOutput::Stream* JobOutput::of(std::uint16_t number) const {
  for (const Stream& stream : streams_)
    if (stream.number == number || (stream.both && number == 2)) return &stream;
  return nullptr;
}

int JobOutput::standard_out() const { return of(1) != nullptr ? of(1)->job_end.get() : -1; }
int JobOutput::standard_error() const { return of(2) != nullptr ? of(2)->job_end.get() : -1; }

void JobOutput::job_started() {
  for (Stream& stream : streams_) stream.job_end.reset();
}

std::vector<pid_t> JobOutput::pumps() const {
  std::vector<pid_t> pids;
  for (const Stream& stream : streams_)
    if (stream.pump > 0) pids.push_back(stream.pump);
  return pids;
}

bool JobOutput::ended(pid_t pid, ExitStatus status) {
  const auto stream =
      std::find_if(streams_.begin(), streams_.end(), [&](const Stream& one) { return one.pump == pid; });
  if (pid <= 0 || stream == streams_.end()) return false;
  pump_ended(*stream, status);
  return true;
}

void JobOutput::pump_ended(Stream& stream, ExitStatus status) {
  stream.pump = 0;
  stream.control.reset();
  const auto passed = status.signal == 0 ? passed_of(status.code) : std::nullopt;
  if (passed && passed->error != 0) stream.error = passed->error;
  if (passed)
    stream.in.reset();  // the job sees it, where it still writes
  else
    go_on(stream);
}

void JobOutput::go_on(Stream& stream) {
  if (++stream.deaths <= kMostDeaths && start_pump(stream)) {
    if (on_pump) on_pump(stream.pump);
    return;
  }
  // No more processes: this one does it. The thread may outlive this object, and the process leaves without it.
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0) stream.control = Fd(ends[0]);
  const Ends all{.in = stream.in.release(),
                 .out = stream.number,
                 .copy = copy_in_.get(),
                 .control = stream.control ? ends[1] : -1,
                 .stream = stream.number,
                 .group = stream.pty ? ::getpgrp() : 0};
  try {
    std::thread([all] {
      (void)pass_on(all);
      ::close(all.in);
      if (all.control >= 0) ::close(all.control);
    }).detach();
  } catch (const std::system_error&) {  // no thread either
    ::close(all.in);
  }
}

void JobOutput::flush(Nanos patience) {
  const Nanos until = boottime_now() + patience;
  for (Stream& stream : streams_) wait_for(stream, until);
}

std::vector<std::string> JobOutput::not_passed_on() const {
  std::vector<std::string> texts;
  for (const Stream& stream : streams_)
    if (stream.error != 0)
      texts.push_back(fmt::format("standard {}{}: {}", stream.number == 1 ? "output" : "error",
                                  stream.both ? " and error" : "", std::strerror(stream.error)));
  return texts;
}

void JobOutput::wait_for(Stream& stream, Nanos until) {
  while (stream.control) {
    const char request = 'f';
    (void)!::send(stream.control.get(), &request, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    pollfd reply{stream.control.get(), POLLIN, 0};
    const Nanos left = until - boottime_now();
    if (left <= 0 || ::poll(&reply, 1, static_cast<int>(left / kMillisecond) + 1) <= 0) return;
    unsigned char error = 0;
    if (::recv(stream.control.get(), &error, 1, MSG_DONTWAIT) == 1) {
      if (error != 0) stream.error = error;
      return;
    }
    int status = 0;
    if (stream.pump <= 0 || ::waitpid(stream.pump, &status, 0) != stream.pump) return;
    pump_ended(stream, exit_status_of(status));
  }
}

}  // namespace headroom::pump
