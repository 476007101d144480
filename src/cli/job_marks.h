// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/cli11.h"
#include "live/session.h"
#include "marks/output_reader.h"
#include "marks/ring.h"
#include "model/batch.h"
#include "output/log_pattern.h"
#include "pump/job_output.h"

// Reading a job's own output, for `run` and `record`: options, and the parts wired together.
namespace headroom::cli {

struct LinesOptions {
  bool output = false;  // --output-lines
  std::vector<std::string> phases, metrics, steps, logs;
};
// `record` cannot come between a job that runs already and its output.
enum class LinesOf : std::uint8_t { kOwnJob, kOthers };
void declare_lines_options(CLI::App& app, LinesOptions& options, LinesOf of);

// The logs and the output to be read, opened before the job begins.
struct JobLines {
  struct Log {
    std::string path;
    bool from_midway = false;
    std::unique_ptr<marks::LineSource> lines;
  };
  std::vector<output::LogPattern> patterns;
  std::vector<Log> logs;
  bool output = false;
  std::string why_not;  // its output is not read
};
// kInvalidInput where a pattern is none, where there is nothing that it could be looked for in, or a log is no file.
[[nodiscard]] Result<JobLines> open_lines(const LinesOptions& options, LinesOf of);

// Stands between the job that is about to be started and where its output goes, if that is wanted. Null where it is
// not, or where it cannot be had, which is said and kept for the recording.
[[nodiscard]] std::unique_ptr<pump::JobOutput> open_job_output(JobLines& lines);

// Adds them to the recording, as those of the process `pid` (0: not known).
void add_lines(SessionOptions& session, JobLines lines, pump::JobOutput* output, std::int64_t pid);

// The logs of a batch's tasks, as long as they run. From any thread.
class TaskLogs {
 public:
  explicit TaskLogs(std::vector<output::LogPattern> patterns);
  void add(const Attempt& attempt);
  void end(AttemptId attempt);
  void add_to(SessionOptions& session);

 private:
  std::vector<output::LogPattern> patterns_;
  std::shared_ptr<marks::LogReaders> readers_;
};

// `headroom output-pump STREAM GROUP`: the process that passes output on. For JobOutput alone.
[[nodiscard]] int output_pump(std::span<char*> arguments);

// Marks in a job's code and ranges of NVTX, while it is recorded.

struct MarksChoice {
  bool no_marks = false, no_nvtx = false;
};
void declare_marks_options(CLI::App& app, MarksChoice& choice);

// The place where a job's processes put their marks, from before it starts to its end.
class JobMarks {
 public:
  // Never fails: a recording without marks says why.
  [[nodiscard]] static JobMarks prepare(const MarksChoice& choice);

  // Variables for the job's processes: "NAME=value".
  [[nodiscard]] const std::vector<std::string>& environment() const { return environment_; }
  // Adds the marks made from `since` on.
  void add_to(SessionOptions& session, Nanos since) const;
  // Why ranges of NVTX are not recorded, where marks are; "": they are.
  [[nodiscard]] const std::string& no_nvtx() const { return no_nvtx_; }
  void remove();  // when all that there is was read

 private:
  std::optional<marks::RingDirectory> directory_;
  std::vector<std::string> environment_;
  std::string why_not_, no_nvtx_;
};

}  // namespace headroom::cli
