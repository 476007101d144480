// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/child.h"
#include "base/fd.h"
#include "base/result.h"
#include "base/time.h"

namespace headroom::pump {

// A file that the job writes to by itself: it is read beside it, and needs no pump.
struct WrittenFile {
  Fd file;
  std::int64_t from = 0;  // where the job begins to write
};

// The output of a job that is about to be started, on its way to where this process's own goes. A terminal becomes a
// pty in between, with the terminal's size and without a change to any byte; a file stays as it is; anything else
// becomes a pipe. Standard output and error that are one file stay one, and keep their order. The bytes are passed on
// by processes of their own (pumps), which outlive this one. Their read ends are held here as well: when a pump dies,
// another goes on.
class JobOutput {
 public:
  // `pump`: how a pump is started: a program and its first arguments, which then calls run_pump(); two numbers follow.
  [[nodiscard]] static Result<std::unique_ptr<JobOutput>> open(std::vector<std::string> pump);
  ~JobOutput();
  JobOutput(const JobOutput&) = delete;
  JobOutput& operator=(const JobOutput&) = delete;

  // For the job; -1: this process's own.
  [[nodiscard]] int standard_out() const;
  [[nodiscard]] int standard_error() const;
  void job_started();  // it has its ends: those of this process are closed

  // A copy of all that is passed on: records of CopyHeader. Once.
  [[nodiscard]] Fd take_copy() { return std::move(copy_out_); }
  [[nodiscard]] std::vector<WrittenFile> take_files() { return std::move(files_); }
  [[nodiscard]] std::vector<pid_t> pumps() const;

  // A child of this process has ended. True if it was a pump; if its work is not done, another one goes on.
  bool ended(pid_t pid, ExitStatus status);
  std::function<void(pid_t)> on_pump;  // a pump that was started later

  // Waits until all that was written so far has been passed on.
  void flush(Nanos patience);
  // What could not be, as was seen by then: "standard output: No space left on device".
  [[nodiscard]] std::vector<std::string> not_passed_on() const;

 private:
  struct Stream {
    std::uint16_t number = 1;  // 1: standard output, 2: standard error
    bool both = false;         // 1, and 2 with it
    bool pty = false;
    Fd in;  // held for the next pump; closed when nobody reads any more
    Fd job_end;
    Fd control;
    pid_t pump = 0;
    int deaths = 0;
    int error = 0;  // Passed::error
  };

  JobOutput() = default;
  Result<void> add(std::uint16_t number, bool both);
  Result<void> start_pump(Stream& stream);
  void go_on(Stream& stream);
  void pump_ended(Stream& stream, ExitStatus status);
  void wait_for(Stream& stream, Nanos until);
  [[nodiscard]] const Stream* of(std::uint16_t number) const;

  std::vector<std::string> program_;
  std::vector<Stream> streams_;
  std::vector<WrittenFile> files_;
  Fd copy_in_, copy_out_;
};

}  // namespace headroom::pump
