// SPDX-License-Identifier: Apache-2.0
#include "base/run_program.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "base/fd.h"

namespace headroom {

Result<ProgramAnswer> run_program(ChildOptions options, Nanos patience, std::size_t most) {
  const std::string name = options.argv.empty() ? "" : options.argv.front();
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return tl::unexpected(errno_error(fmt::format("pipe for {}", name)));
  Fd out(ends[0]), in(ends[1]);
  HR_TRY(const Fd nothing, open_read("/dev/null"));
  const Fd complaint(::memfd_create("what a program complains of", MFD_CLOEXEC));
  if (!complaint) return tl::unexpected(errno_error(fmt::format("room for what {} says", name)));
  options.standard_in = nothing.get();
  options.standard_out = in.get();
  options.standard_error = complaint.get();
  options.own_group = true;
  HR_TRY(Child child, Child::spawn(options));
  in.reset();
  ProgramAnswer answer;
  const Nanos deadline = monotonic_now() + patience;
  for (;;) {
    const Nanos left = deadline - monotonic_now();
    pollfd ready{out.get(), POLLIN, 0};
    if (left <= 0 || ::poll(&ready, 1, static_cast<int>(left / kMillisecond) + 1) == 0)
      return fail(Errc::kBusy, fmt::format("{} takes too long", name));
    std::array<char, 4096> bytes;
    const ssize_t got = ::read(out.get(), bytes.data(), bytes.size());
    if (got < 0) continue;
    if (got == 0) break;
    // What is too much is read all the same, so that it ends by itself.
    answer.out.append(bytes.data(), std::min(static_cast<std::size_t>(got), most - std::min(most, answer.out.size())));
  }
  answer.status = child.wait();
  std::array<char, 4096> words;
  const ssize_t said = ::pread(complaint.get(), words.data(), words.size(), 0);
  answer.error.assign(words.data(), static_cast<std::size_t>(std::max<ssize_t>(0, said)));
  return answer;
}

}  // namespace headroom
