// SPDX-License-Identifier: Apache-2.0
#include "batch/history.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/fd.h"
#include "base/json.h"
#include "base/regular_file.h"
#include "base/secrets.h"
#include "base/strings.h"

namespace headroom::batch {

namespace {

using Json = nlohmann::json;
constexpr std::size_t kMostCommands = 2000, kMostTasksKept = 50'000, kLargestFile = std::size_t{64} << 20;
constexpr std::size_t kLongestCommand = 2000;
constexpr double kNewest = 0.1;  // least weight of a new value
constexpr double kLongestSeconds = 1e9;

double weight(std::int64_t count) { return std::max(1.0 / static_cast<double>(count), kNewest); }

void move(std::optional<double>& mean, double seen, double by) { mean = mean ? *mean + by * (seen - *mean) : seen; }

template <class T>
void blend(std::optional<T>& mean, const std::optional<T>& seen, std::int64_t count) {
  if (seen) move(mean, *seen, weight(count));
}

// A share of a task's time, which is longer beside others: there it can only be too small. Else each batch would find
// tasks smaller than the one before, and start more of them.
void blend_share(std::optional<double>& mean, const std::optional<double>& seen, bool alone) {
  constexpr double kAlone = 0.3;
  if (seen && (alone || !mean || *seen > *mean)) move(mean, *seen, alone ? kAlone : kNewest);
}

std::string kept_command(const std::string& command) { return hide_secrets(command).substr(0, kLongestCommand); }

// A number that is there and makes sense, or nothing.
std::optional<double> number(const Json& row, const char* key, double low, double high) {
  const auto value = row.find(key);
  if (value == row.end() || !value->is_number()) return std::nullopt;
  const double found = value->get<double>();
  if (!(found >= low && found <= high)) return std::nullopt;
  return found;
}

struct StatKeys {
  const char *runs, *mean, *variance;
};
constexpr StatKeys kAll{"runs", "log_mean", "log_variance"};
constexpr StatKeys kAlone{"alone_runs", "alone_log_mean", "alone_log_variance"};

std::optional<DurationStat> read_stat(const Json& row, const StatKeys& keys) {
  const auto count = number(row, keys.runs, 1, 1e15);
  const auto mean = number(row, keys.mean, -25, 25), variance = number(row, keys.variance, 0, 1000);
  if (!count || !mean || !variance) return std::nullopt;
  return DurationStat{static_cast<std::int64_t>(*count), *mean, *variance};
}

void put(Json& row, const DurationStat& stat, const StatKeys& keys) {
  row[keys.runs] = stat.count;
  row[keys.mean] = stat.log_mean;
  row[keys.variance] = stat.log_variance;
}

Json json_of(const DurationStat& stat, std::int64_t seen) {
  Json row{{"seen", seen}};
  put(row, stat, kAll);
  return row;
}

}  // namespace

void update(DurationStat& stat, Nanos duration) {
  const double value = std::log(std::clamp(seconds(duration), 1e-6, kLongestSeconds));
  ++stat.count;
  const double share = weight(stat.count), step = value - stat.log_mean;
  stat.log_mean += share * step;
  stat.log_variance = stat.count == 1 ? 0 : (1 - share) * (stat.log_variance + share * step * step);
}

std::optional<Expectation> expectation(const DurationStat& stat) {
  if (stat.count == 0) return std::nullopt;
  // Runs of one task differ by a few percent, tasks of one command by factors: before there is a spread, a factor of
  // about 1.7 is assumed, and it counts like one run.
  constexpr double kAssumedVariance = 0.16, kFourInFive = 1.2816;
  const double runs = static_cast<double>(std::min<std::int64_t>(stat.count, 1000));
  const double spread = std::sqrt((stat.log_variance * (runs - 1) + kAssumedVariance) / runs * (1 + 1 / runs));
  const auto at = [&](double log) {
    return static_cast<Nanos>(std::clamp(std::exp(log), 1e-6, kLongestSeconds) * 1e9);
  };
  return Expectation{at(stat.log_mean), at(stat.log_mean - kFourInFive * spread),
                     at(stat.log_mean + kFourInFive * spread), stat.count, false};
}

bool History::read_line(std::string_view line) {
  const Json row = parse_json<Json>(line);
  if (!row.is_object()) return false;
  const auto text = [&](const char* key) -> std::optional<std::string> {
    const auto value = row.find(key);
    return value != row.end() && value->is_string() ? std::optional(value->get<std::string>()) : std::nullopt;
  };
  auto command = text("command"), gpu = text("gpu");
  if (command) command = kept_command(*command);  // of an older version, which kept it as it was
  const auto stat = read_stat(row, kAll);
  const auto seen = number(row, "seen", 0, 1e15);
  if (!command || !gpu || !stat || !seen) return false;
  const auto last = static_cast<std::int64_t>(*seen);
  if (const auto task = text("task")) {
    tasks_[{*command, *gpu, *task}] = {*stat, read_stat(row, kAlone).value_or(DurationStat{}), last};
    return true;
  }
  CommandHistory history{*command, *gpu, *stat, {}, {}, {}, {}, {}, last};
  if (const auto bytes = number(row, "peak_gpu_bytes", 0, 1e15))
    history.peak_gpu_bytes = static_cast<std::int64_t>(*bytes);
  history.gpu_util_ratio = number(row, "gpu_util_ratio", 0, 1);
  history.cores = number(row, "cores", 0, 1e5);
  history.seconds_per_step = number(row, "seconds_per_step", 0, kLongestSeconds);
  history.startup_seconds = number(row, "startup_seconds", 0, kLongestSeconds);
  commands_[{*command, *gpu}] = std::move(history);
  return true;
}

History History::parse(std::string_view text) {
  History history;
  for (const std::string_view line : split(text, '\n'))
    if (!trim(line).empty() && !history.read_line(line)) ++history.damaged_;
  return history;
}

History History::load(const std::string& path) {
  const auto text = read_regular(path, kLargestFile);
  return parse(text ? *text : "");
}

std::optional<Expectation> History::expected(const std::string& command, const std::string& gpu_model,
                                             const std::string& task) const {
  const std::string kept = kept_command(command);
  if (const auto known = tasks_.find({kept, gpu_model, task}); known != tasks_.end()) {
    auto found = expectation(known->second.duration);
    if (found) found->same_task = true;
    return found;
  }
  const CommandHistory* history = find(kept, gpu_model);
  return history == nullptr ? std::nullopt : expectation(history->duration);
}

std::optional<Nanos> History::took_alone(const std::string& command, const std::string& gpu_model,
                                         const std::string& task) const {
  const auto known = tasks_.find({kept_command(command), gpu_model, task});
  const auto found = known == tasks_.end() ? std::nullopt : expectation(known->second.alone);
  return found ? std::optional(found->expected) : std::nullopt;
}

const CommandHistory* History::find(const std::string& command, const std::string& gpu_model) const {
  const auto found = commands_.find({kept_command(command), gpu_model});
  return found == commands_.end() ? nullptr : &found->second;
}

std::vector<CommandHistory> History::commands() const {
  std::vector<CommandHistory> all;
  for (const auto& [key, history] : commands_) all.push_back(history);
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.last_seen_seconds > b.last_seen_seconds; });
  return all;
}

void History::apply(const Observation& seen, std::int64_t now_seconds) {
  const std::string command = kept_command(seen.command);
  CommandHistory& history = commands_[{command, seen.gpu_model}];
  history.command = command;
  history.gpu_model = seen.gpu_model;
  update(history.duration, seen.duration);
  const std::int64_t count = history.duration.count;
  if (seen.peak_gpu_bytes) history.peak_gpu_bytes = std::max(history.peak_gpu_bytes.value_or(0), *seen.peak_gpu_bytes);
  const Shares& alone = seen.of_group_alone;
  blend_share(history.gpu_util_ratio, alone.gpu_util_ratio ? alone.gpu_util_ratio : seen.gpu_util_ratio,
              seen.alone || alone.gpu_util_ratio);
  blend_share(history.cores, alone.cores ? alone.cores : seen.cores, seen.alone || alone.cores);
  blend(history.seconds_per_step, seen.seconds_per_step, count);
  blend(history.startup_seconds, seen.startup ? std::optional(seconds(*seen.startup)) : std::nullopt, count);
  history.last_seen_seconds = now_seconds;
  Task& task = tasks_[{command, seen.gpu_model, seen.task}];
  update(task.duration, seen.duration);
  if (seen.alone) update(task.alone, seen.duration);
  task.last_seen_seconds = now_seconds;
}

void History::add(const Observation& seen, std::int64_t now_seconds) {
  apply(seen, now_seconds);
  unsaved_.emplace_back(seen, now_seconds);
}

std::string History::text() const {
  std::string lines;
  std::vector<CommandHistory> all = commands();
  if (all.size() > kMostCommands) all.resize(kMostCommands);
  for (const CommandHistory& history : all) {
    Json row = json_of(history.duration, history.last_seen_seconds);
    row["command"] = history.command;
    row["gpu"] = history.gpu_model;
    if (history.peak_gpu_bytes) row["peak_gpu_bytes"] = *history.peak_gpu_bytes;
    if (history.gpu_util_ratio) row["gpu_util_ratio"] = *history.gpu_util_ratio;
    if (history.cores) row["cores"] = *history.cores;
    if (history.seconds_per_step) row["seconds_per_step"] = *history.seconds_per_step;
    if (history.startup_seconds) row["startup_seconds"] = *history.startup_seconds;
    lines += json_text(row) + "\n";
  }
  std::vector<std::pair<std::int64_t, const std::pair<const std::tuple<std::string, std::string, std::string>, Task>*>>
      kept;
  for (const auto& entry : tasks_) kept.emplace_back(-entry.second.last_seen_seconds, &entry);
  std::stable_sort(kept.begin(), kept.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  if (kept.size() > kMostTasksKept) kept.resize(kMostTasksKept);
  for (const auto& [last, entry] : kept) {
    Json row = json_of(entry->second.duration, entry->second.last_seen_seconds);
    if (entry->second.alone.count > 0) put(row, entry->second.alone, kAlone);
    std::tie(row["command"], row["gpu"], row["task"]) = entry->first;
    lines += json_text(row) + "\n";
  }
  return lines;
}

namespace {

// Another batch holds it for milliseconds; a batch waits for nobody longer than that.
Result<void> lock_soon(int fd, const std::string& path) {
  for (int attempt = 0; attempt < 50; ++attempt) {
    if (::flock(fd, LOCK_EX | LOCK_NB) == 0) return {};
    if (errno != EINTR && errno != EWOULDBLOCK) return tl::unexpected(errno_error("lock " + path));
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return fail(Errc::kBusy, fmt::format("{} is locked by another process", path), "it is written at the next chance");
}

}  // namespace

Result<void> History::save(const std::string& path) {
  if (unsaved_.empty()) return {};
  struct stat there {};
  if (::stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode))
    return fail(Errc::kInvalidInput, fmt::format("{} is not a file", path));
  const Fd lock(
      ::open((path + ".lock").c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!lock) return tl::unexpected(errno_error("open " + path + ".lock"));
  HR_TRYV(lock_soon(lock.get(), path));
  History merged = load(path);
  for (const auto& [seen, now] : unsaved_) merged.apply(seen, now);
  HR_TRYV(write_file(path, merged.text()));
  merged.damaged_ = damaged_;
  *this = std::move(merged);
  return {};
}

}  // namespace headroom::batch
