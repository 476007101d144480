// SPDX-License-Identifier: Apache-2.0
#include "batch/task_logs.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <mutex>
#include <optional>

#include "base/regular_file.h"
#include "base/strings.h"
#include "base/time.h"
#include "batch/identity.h"
#include "output/line_cutter.h"
#include "output/line_marks.h"
#include "output/log_facts.h"
#include "output/log_pattern.h"

namespace headroom::batch {

namespace {

constexpr std::size_t kLookedAt = 64 << 10;   // of a log: parameters come first, results last
constexpr std::size_t kPerLook = 64 << 10;    // of a log, for steps: a number that was left out is followed by another
constexpr std::size_t kAtTheEnd = 2 << 20;    // likewise, of one that has ended
constexpr std::size_t kPiece = 64 << 10;      // of what is followed
constexpr std::size_t kMostAtOnce = 4 << 20;  // likewise: nobody reads more at a time, and the batch has to go on

// What has come, each line with the task's name.
std::string named_lines_of(LogTail& tail, const std::string& task, bool last) {
  std::string result;
  tail.skip_to_last(kMostAtOnce);
  for (std::string text = tail.read(kPiece, last); !text.empty(); text = tail.read(kPiece, last)) {
    if (text.back() == '\n') text.pop_back();
    for (const auto line : split(text, '\n')) result += fmt::format("{}: {}\n", task, line);
  }
  return result;
}

// The steps of one attempt.
class Steps {
 public:
  explicit Steps(const std::optional<output::Matcher>& pattern) {
    if (pattern) by_pattern_.emplace(*pattern);
  }
  void take(std::string_view text) {
    if (by_pattern_) return by_pattern_->take(text);
    cutter_.take(text, boottime_now(), [this](std::string_view line, Nanos at) {
      for (const Mark& mark : printed_.take(line, at))
        if (mark.kind == Mark::Kind::kStep) done_ = done_.value_or(0) + static_cast<double>(mark.count);
    });
  }
  [[nodiscard]] std::optional<double> done() const { return by_pattern_ ? by_pattern_->done() : done_; }

 private:
  std::optional<output::StepCounter> by_pattern_;
  output::LineMarks printed_{{}, output::LineMarks::Seen::kFromTheBegin};
  output::LineCutter cutter_;
  std::optional<double> done_;
};

}  // namespace

std::function<std::vector<std::pair<std::string, std::string>>(const TaskSpec&)> input_hasher(
    std::string start_directory) {
  auto hasher = std::make_shared<batch::InputHasher>();
  return [hasher, start = std::move(start_directory)](const TaskSpec& task) {
    std::vector<std::pair<std::string, std::string>> hashes;
    for (const std::string& input : task.inputs) {
      const auto hash = hasher->hash(batch::path_of(task, input, start));
      hashes.emplace_back(input, hash ? *hash : "unreadable");
    }
    return hashes;
  };
}

std::function<std::vector<std::string>(const TaskSpec&)> output_check(std::string start_directory) {
  return [start = std::move(start_directory)](const TaskSpec& task) {
    std::vector<std::string> missing;
    for (const std::string& output : task.outputs) {
      struct stat info {};
      if (::stat(batch::path_of(task, output, start).c_str(), &info) != 0 && errno == ENOENT) missing.push_back(output);
    }
    return missing;
  };
}

std::function<void(const TaskSpec&, Attempt&)> log_inspector(const std::vector<output::LogPattern>& patterns,
                                                             std::string start_directory) {
  auto facts = std::make_shared<const output::LogFacts>(patterns);
  return [facts, start = std::move(start_directory)](const TaskSpec& task, Attempt& attempt) {
    LogTail log(attempt.log_path);
    if (log.empty() && task.resolved.empty()) return;
    facts->take_log(log.read(kLookedAt, true), attempt);
    log.skip_to_last(kLookedAt);
    for (std::string text = log.read(kLookedAt, true); !text.empty(); text = log.read(kLookedAt, true))
      facts->take_log(text, attempt);
    if (task.resolved.empty()) return;
    constexpr std::size_t kLargest = 4 << 20;
    const auto text = read_regular(batch::path_of(task, task.resolved, start), kLargest);
    const bool read = text && output::LogFacts::take_file(*text, attempt);
    if (!read && attempt.exit_code == 0)
      attempt.parameters_resolved.emplace_back("(none)", fmt::format("{} is not one JSON object", task.resolved));
  };
}

std::function<std::optional<double>(const Attempt&)> step_counter(const std::vector<output::LogPattern>& patterns) {
  const auto found = std::find_if(patterns.begin(), patterns.end(),
                                  [](const auto& pattern) { return pattern.kind == output::LogPattern::Kind::kStep; });
  struct Counted {
    LogTail tail;
    Steps steps;
    std::mutex mutex{};  // held for as long as its file is read
  };
  struct State {
    std::optional<output::Matcher> pattern;
    std::mutex mutex{};
    std::map<AttemptId, std::shared_ptr<Counted>> attempts{};
  };
  auto state = std::make_shared<State>();
  if (found != patterns.end()) state->pattern.emplace(*found);
  return [state](const Attempt& attempt) -> std::optional<double> {
    const bool ended = attempt.end.has_value();
    std::shared_ptr<Counted> counted;
    {
      const std::lock_guard lock(state->mutex);
      std::shared_ptr<Counted>& entry = state->attempts[attempt.id];
      if (!entry) entry = std::make_shared<Counted>(LogTail(attempt.log_path), Steps(state->pattern));
      counted = entry;
      if (ended) state->attempts.erase(attempt.id);
    }
    const std::unique_lock lock(counted->mutex, std::try_to_lock);
    if (!lock) return std::nullopt;  // a reading that was given up hangs in it
    counted->tail.skip_to_last(ended ? kAtTheEnd : kPerLook);
    std::string text = counted->tail.read(kPerLook, ended);
    counted->steps.take(text);
    while (ended && !text.empty()) counted->steps.take(text = counted->tail.read(kPerLook, true));
    if (ended) counted->steps.take("\n");  // its last line may lack its end
    return counted->steps.done();
  };
}

std::string LogTail::read(std::size_t most, bool last) {
  if (!file_) {
    auto opened = open_regular(path_);
    if (!opened) return "";
    file_ = std::move(*opened);
  }
  std::string text(most, '\0');
  const ssize_t got = ::pread(file_.get(), text.data(), text.size(), offset_);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, got)));
  if (const auto end = text.find_last_of("\r\n"); end != std::string::npos)
    text.resize(end + 1);
  else if (!last && text.size() < most)
    text.clear();
  offset_ += static_cast<off_t>(text.size());
  return text;
}

bool LogTail::empty() const {
  struct stat now {};
  return ::stat(path_.c_str(), &now) != 0 || now.st_size == 0;
}

void LogTail::skip_to_last(std::size_t bytes) {
  struct stat now {};
  if ((file_ ? ::fstat(file_.get(), &now) : ::stat(path_.c_str(), &now)) != 0) return;
  offset_ = std::max(offset_, now.st_size - static_cast<off_t>(bytes));
}

void Follower::look(const std::vector<BatchProgress::Running>& running) {
  std::string text;
  for (const auto& one : running) {
    LogTail& tail = tails_.try_emplace(one.attempt, LogTail(one.log_path)).first->second;
    text += named_lines_of(tail, one.task, false);
  }
  if (!text.empty()) out_(text);
}

void Follower::ended(const Attempt& attempt, const std::string& task) {
  const auto found = tails_.try_emplace(attempt.id, LogTail(attempt.log_path)).first;
  const std::string text = named_lines_of(found->second, task, true);
  tails_.erase(found);
  if (!text.empty()) out_(text);
}

}  // namespace headroom::batch
