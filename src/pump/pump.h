// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>
#include <climits>
#include <cstdint>
#include <optional>

namespace headroom::pump {

// A pump's copy for the recorder: records in a pipe, each written by one write(2) of at most
// PIPE_BUF bytes, so that it is whole or not there, whoever dies.
struct CopyHeader {
  std::int64_t at = 0;      // when the bytes came: CLOCK_BOOTTIME
  std::uint32_t lost = 0;   // lines of this stream that had no room before these
  std::uint16_t bytes = 0;  // that follow
  std::uint16_t stream = 0;
};
inline constexpr std::size_t kMostCopied = PIPE_BUF - sizeof(CopyHeader);

// The ends of one pump. It owns none of them, and works on until `in` has no writer left.
struct Ends {
  int in = -1;       // what the job writes to: the read end of a pipe, or the master of a pty
  int out = -1;      // where it went without Headroom
  int copy = -1;     // non-blocking; -1 for none
  int control = -1;  // a socket to Headroom; -1 for none
  std::uint16_t stream = 1;
  pid_t group = 0;  // of a pty: the process group that is told when the terminal's size has changed; 0: not a pty
};

enum class End : std::uint8_t {
  kDone = 0,  // nobody writes any more, and all was passed on
  kGone = 3,  // nobody reads any more: the job is to see it, too
};

struct Passed {
  End end = End::kDone;
  int error = 0;  // errno of the first write that failed though somebody reads (a full device): its bytes are missing
  bool operator==(const Passed&) const = default;
};

// The result as the exit code of a process that does nothing else, and back.
[[nodiscard]] int exit_code_of(const Passed& passed);
[[nodiscard]] std::optional<Passed> passed_of(int exit_code);  // nothing if it says something else

// Passes bytes on, unchanged and in order, and waits with the job where nobody takes them. Bytes that cannot be written
// are dropped, and the job goes on. What does not fit into `copy` is not copied, and counted. A byte on `control` is
// answered when all that was written before it has been passed on: with Passed::error, as one byte.
[[nodiscard]] Passed pass_on(const Ends& ends);

// The process that does nothing else: standard input, standard output, 3 and 4 are `in`, `out`, `copy` and `control`.
// Out of reach of the terminal's signals, and of those that end programs: it ends when its work has.
[[noreturn]] void run_pump(std::uint16_t stream, pid_t group);

}  // namespace headroom::pump
