// SPDX-License-Identifier: Apache-2.0
#include "cli/box_watch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <map>
#include <mutex>
#include <utility>

#include "base/filesystem.h"
#include "base/ids.h"
#include "base/strings.h"
#include "cli/environment.h"
#include "cli/live_parts.h"
#include "host/processes.h"
#include "live/session.h"

namespace headroom::cli {

namespace {

namespace fs = std::filesystem;

constexpr Nanos kLongest = 3600 * kSecond;  // of one recording
constexpr Nanos kOverlap = 65 * kSecond;    // with the one after it: what is shown is a minute, usually
constexpr Nanos kDriverPatience = 10 * kSecond;
// What must be free in memory: the job may need it, too (containers have 64 MiB, for the workers of its loader).
constexpr std::uint64_t kRoom = std::uint64_t{256} << 20;
constexpr std::string_view kPrefix = "headroom-top.";

bool lives(std::int64_t pid) { return ::kill(static_cast<pid_t>(pid), 0) == 0 || errno == EPERM; }

// What a killed one left behind: whoever uses a folder has locked it, but for its first moments.
void tidy(const std::string& parent) {
  constexpr std::time_t kFirstMoments = 60;
  std::error_code ignored;
  for (fs::directory_iterator entry(parent, ignored), end; !ignored && entry != end; entry.increment(ignored)) {
    if (!entry->path().filename().string().starts_with(kPrefix)) continue;
    const Fd folder(::open(entry->path().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    struct stat info {};
    if (!folder || ::fstat(folder.get(), &info) != 0 || info.st_uid != ::geteuid()) continue;
    if (std::time(nullptr) - info.st_mtime < kFirstMoments || ::flock(folder.get(), LOCK_EX | LOCK_NB) != 0) continue;
    std::error_code stays;
    fs::remove_all(entry->path(), stays);
  }
}

// A folder of this process alone, in memory if there is one with room. Others write where it lies: its name is not to
// be guessed.
Result<std::string> make_folder(Fd& lock) {
  std::vector<std::string> parents;
  if (const auto runtime = environment("XDG_RUNTIME_DIR")) parents.push_back(*runtime);
  parents.emplace_back("/dev/shm");
  std::erase_if(parents, [](const std::string& parent) { return free_bytes(parent).value_or(0) < kRoom; });
  parents.push_back(environment("TMPDIR").value_or("/tmp"));
  for (const std::string& parent : parents) {
    tidy(parent);
    std::string folder = fmt::format("{}/{}XXXXXX", parent, kPrefix);
    if (::mkdtemp(folder.data()) == nullptr) continue;
    lock = Fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    (void)::flock(lock.get(), LOCK_EX | LOCK_NB);
    return folder;
  }
  return tl::unexpected(errno_error(fmt::format("make a folder in {}", join(parents, ", "))));
}

struct JobOnGpus {
  std::int64_t pid = 0, gpu_bytes = 0;
  bool ours = false;
  std::string name;
};

// This user's before others', and those with most GPU memory first.
std::vector<JobOnGpus> jobs_on(const view::View& view) {
  std::map<std::int64_t, JobOnGpus> jobs;
  for (const view::Process& process : view.processes) {
    const bool computes =
        std::any_of(process.gpus.begin(), process.gpus.end(), [](const auto& on) { return !on.graphics; });
    if (!computes || process.end || process.pid == ::getpid()) continue;
    const auto root = host::root_of_job(process.pid);
    if (!root) continue;
    JobOnGpus& job = jobs[*root];
    job.pid = *root;
    job.ours = host::user_of_process(*root) == static_cast<std::int64_t>(::geteuid());
    if (job.name.empty() || process.pid == *root) job.name = process.name;
    for (const auto& on : process.gpus) job.gpu_bytes += on.memory_bytes.value_or(0);
  }
  std::vector<JobOnGpus> sorted;
  for (auto& [pid, job] : jobs) sorted.push_back(std::move(job));
  std::stable_sort(sorted.begin(), sorted.end(), [](const JobOnGpus& a, const JobOnGpus& b) {
    return a.ours != b.ours ? a.ours : a.gpu_bytes > b.gpu_bytes;
  });
  return sorted;
}

}  // namespace

// A recording in the making. What its threads learn lies apart: they may outlive it.
struct BoxWatch::Recorder {
  struct Learnt {
    std::mutex mutex;
    std::string path;
    std::optional<Error> failed;  // it was never begun, or cannot go on
    std::optional<Error> no_gpus;
  };
  std::shared_ptr<Learnt> learnt = std::make_shared<Learnt>();
  std::int64_t pid = 0;  // of the job
  Nanos begin = 0, shown_from = 0;
  std::string name, message;
  std::unique_ptr<Session> session;

  [[nodiscard]] std::string path() const {
    const std::lock_guard lock(learnt->mutex);
    return learnt->path;
  }
  [[nodiscard]] std::optional<Error> failed() const {
    const std::lock_guard lock(learnt->mutex);
    return learnt->failed;
  }
  [[nodiscard]] std::optional<Error> no_gpus() const {
    const std::lock_guard lock(learnt->mutex);
    return learnt->no_gpus;
  }
};

BoxWatch::BoxWatch(const Options& options) : options_(options) {}

BoxWatch::~BoxWatch() {
  next_.reset();
  shown_.reset();
  std::error_code ignored;
  if (!folder_.empty())
    fs::remove_all(folder_, ignored);
  else if (options_.keep)
    keep_shelf_small();
}

Result<std::unique_ptr<BoxWatch>> BoxWatch::start(const Options& options) {
  std::unique_ptr<BoxWatch> watch(new BoxWatch(options));
  if (options.pid && *options.pid < 1)
    return fail(Errc::kInvalidInput, fmt::format("{} is no process number", *options.pid));
  if (options.pid && !lives(*options.pid))
    return fail(Errc::kNotFound, fmt::format("there is no process {}", *options.pid),
                "headroom devices lists who is on the GPUs");
  if (!options.keep) {
    HR_TRY(watch->folder_, make_folder(watch->lock_));
  }
  watch->next_ = watch->begin(options.pid.value_or(0), "", 0);
  const Nanos begin = watch->next_->begin;
  while (boottime_now() - begin < kDriverPatience) {
    const Recorder& first = *watch->next_;
    if (const auto error = first.failed()) return tl::unexpected(*error);
    if ((watch->no_gpus_ || first.session->gpus() > 0) && !first.path().empty()) return watch;
    if (const auto why = first.no_gpus(); why && !first.path().empty()) watch->go_on_without_gpus(*why);
    if (!options.pause(20 * kMillisecond)) return fail(Errc::kIo, "interrupted");
  }
  return fail(Errc::kIo, "the GPU driver does not answer", "headroom doctor says more");
}

// What was begun to read GPUs knows no processes but those of a job.
void BoxWatch::go_on_without_gpus(const Error& why) {
  no_gpus_ = why;
  const std::string path = next_->path();
  next_.reset();
  std::error_code ignored;
  fs::remove(path, ignored);
  next_ = begin(options_.pid.value_or(0), "", 0);
}

std::unique_ptr<BoxWatch::Recorder> BoxWatch::begin(std::int64_t pid, std::string message, Nanos shown_from) {
  auto recorder = std::make_unique<Recorder>();
  recorder->pid = pid;
  recorder->begin = boottime_now();
  recorder->shown_from = shown_from;
  recorder->message = std::move(message);
  recorder->name = pid == 0                       ? "this machine"
                   : shown_ && shown_->pid == pid ? shown_->name
                                                  : fmt::format("process {}", pid);
  LiveOptions live;
  if (!folder_.empty()) live.output = fmt::format("{}/{}.hrec", folder_, ++begun_);
  const std::string id = random_id();
  RecordingMeta meta = meta_at(recorder->begin, id, "record", kSecond);
  std::vector<std::int64_t> pids;
  if (pid > 0) pids.push_back(pid), meta.job_pid = pid;
  auto tree = no_gpus_ && pid == 0 ? make_tree_of_machine() : make_tree(pids, id, JobOf::kOthers);
  live.no_gpu = no_gpus_.has_value();
  live.fine_power = options_.keep;  // a picture shows the reading of the second
  SessionOptions session = session_options(live, std::move(meta), std::move(tree), GivenGpus::kUnknown);
  if (no_gpus_) session.source('N').why_not = no_gpus_->what;
  if (pid > 0) add_stacks(session, live, pids, JobOf::kOthers);
  session.open_recording = [learnt = recorder->learnt, open = std::move(session.open_recording)] {
    auto opened = open();
    const std::lock_guard lock(learnt->mutex);
    if (opened) learnt->path = opened->path;
    return opened;
  };
  session.on_failed = [learnt = recorder->learnt](const Error& error, Failed) {
    const std::lock_guard lock(learnt->mutex);
    learnt->failed = error;
  };
  session.source('N').on_missing = [learnt = recorder->learnt](const Error& error) {
    const std::lock_guard lock(learnt->mutex);
    learnt->no_gpus = error;
  };
  recorder->session = std::make_unique<Session>(std::move(session));
  return recorder;
}

void BoxWatch::look(const view::View& shown) {
  if (next_) return;
  const Nanos now = boottime_now();
  const bool old = now - shown_->begin > kLongest;
  if (options_.pid || (shown_->pid > 0 && lives(shown_->pid))) {
    if (old) next_ = begin(shown_->pid, "", now + kOverlap);
    return;
  }
  const auto jobs = foreign_pids() ? std::vector<JobOnGpus>() : jobs_on(shown);
  if (jobs.empty()) {
    if (old) next_ = begin(0, "", now + kOverlap);
    return;
  }
  const JobOnGpus& job = jobs.front();
  next_ = begin(job.pid,
                jobs.size() == 1
                    ? fmt::format("{} ({}) is on the GPUs: it is watched from now on", job.name, job.pid)
                    : fmt::format("{} jobs are on the GPUs: {} ({}) is explained; headroom top --pid P takes another",
                                  jobs.size(), job.name, job.pid),
                0);
  next_->name = fmt::format("{} ({})", job.name, job.pid);
}

std::optional<BoxWatch::Begun> BoxWatch::next() const {
  if (!next_ || boottime_now() < next_->shown_from) return std::nullopt;
  const std::string path = next_->path();
  return path.empty() ? std::nullopt : std::optional(Begun{path, next_->name, next_->message});
}

void BoxWatch::shows_next() {
  const std::string before = shown_ && !folder_.empty() ? shown_->path() : "";
  shown_ = std::move(next_);  // the one before it ends
  std::error_code ignored;
  if (!before.empty()) fs::remove(before, ignored);
}

bool BoxWatch::has_found_job() const { return next_ && shown_ && next_->pid != shown_->pid; }

bool BoxWatch::owns(const std::string& path) const {
  return (shown_ && shown_->path() == path) || (next_ && next_->path() == path);
}

std::string BoxWatch::trouble() const {
  const auto error = newest().failed();
  return error ? error->what : "";
}

}  // namespace headroom::cli
