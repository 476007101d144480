// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "model/batch.h"
#include "model/batch_progress.h"
#include "output/log_pattern.h"

namespace headroom::batch {

// Hashes of a task's input files, as they are when an attempt starts.
[[nodiscard]] std::function<std::vector<std::pair<std::string, std::string>>(const TaskSpec&)> input_hasher(
    std::string start_directory);

// Those of a task's outputs that are not there.
[[nodiscard]] std::function<std::vector<std::string>(const TaskSpec&)> output_check(std::string start_directory);

// Fills in metrics and resolved parameters of an attempt from its log and its file of them.
[[nodiscard]] std::function<void(const TaskSpec&, Attempt&)> log_inspector(
    const std::vector<output::LogPattern>& patterns, std::string start_directory);

// Counts an attempt's steps by its log, which is read on from where the last call ended: by the pattern for steps, or,
// where there is none, by what trainers print, as in the recording (output/line_marks.h).
[[nodiscard]] std::function<std::optional<double>(const Attempt&)> step_counter(
    const std::vector<output::LogPattern>& patterns);

// What is appended to a file, piece by piece. What is no regular file is empty.
class LogTail {
 public:
  explicit LogTail(std::string path) : path_(std::move(path)) {}
  // Whole lines that came since the last call, at most `most` bytes of them; "" for none. `last`: also what lacks its
  // line end, since nothing more will come. A line longer than `most` comes in pieces.
  [[nodiscard]] std::string read(std::size_t most, bool last = false);
  [[nodiscard]] bool empty() const;  // the file, or there is none
  // Leaves out what is further than `bytes` from the end.
  void skip_to_last(std::size_t bytes);

 private:
  std::string path_;
  Fd file_;
  off_t offset_ = 0;
};

// The output of all running tasks in one stream, each line with its task's name (--follow).
class Follower {
 public:
  explicit Follower(std::function<void(const std::string& lines)> out) : out_(std::move(out)) {}
  void look(const std::vector<BatchProgress::Running>& running);
  void ended(const Attempt& attempt, const std::string& task);  // its last lines

 private:
  std::function<void(const std::string&)> out_;
  std::map<AttemptId, LogTail> tails_;
};

}  // namespace headroom::batch
