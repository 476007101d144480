// SPDX-License-Identifier: Apache-2.0
#include "cli/top_recording.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <csignal>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/filesystem.h"
#include "base/human.h"
#include "base/ids.h"
#include "base/strings.h"
#include "cli/config.h"
#include "cli/growing_recording.h"
#include "cli/several.h"
#include "doctor/facts.h"
#include "host/proc_dir.h"
#include "host/proc_parse.h"
#include "host/processes.h"

namespace headroom::cli {

namespace {

// A sentence for people where /proc hides other users' processes: how many and whose, as far as that shows, and what
// helps; "" where it hides none.
std::string hidden_processes() {
  constexpr std::size_t kMostBytes = 4096;
  DoctorFacts facts;
  probe_machine("", facts);
  // Root, and the group that the mount names, see all the same: the first process is root's.
  if (facts.hidepid.empty() || read_file("/proc/1/stat", kMostBytes)) return "";
  host::ProcDir proc("/proc");
  host::UserNames names("");
  std::set<std::string> users;
  std::size_t hidden = 0;
  const auto numbers = proc.list_numbers(".");
  if (numbers)
    for (const std::int64_t pid : std::vector<std::int64_t>(numbers->begin(), numbers->end())) {
      const std::string folder = fmt::format("/proc/{}", pid);
      struct stat info {};
      if (read_file(folder + "/stat", kMostBytes) || ::stat(folder.c_str(), &info) != 0) continue;
      const std::string name = names.name(info.st_uid);
      users.insert(name.empty() ? fmt::format("user {}", info.st_uid) : name);
      ++hidden;
    }
  const std::string whose = hidden == 0 ? "the processes of other users"
                                        : fmt::format("{} of {}", count_of(hidden, "process", "processes"),
                                                      join(std::vector<std::string>(users.begin(), users.end()), ", "));
  return fmt::format("/proc hides {} (hidepid={}): root sees them, and the group that gid= of its mount names", whose,
                     facts.hidepid);
}

constexpr Nanos kFindingsCostParts = 200;           // likewise, of looks for what stands
constexpr Nanos kBoxFindingsCostParts = 1000;       // likewise, of this machine,
constexpr Nanos kBoxFindingsLatest = 30 * kSecond;  // but not later than this
constexpr Nanos kBeforeWindowParts = 10;     // of what is kept before the window, one in so many is explained with it
constexpr Nanos kSleepEvery = 30 * kSecond;  // of those that sleep beside the work
constexpr std::size_t kMostOfMachine = 2000;
constexpr Nanos kFirstReading = 10 * kSecond;  // within which a recording that was begun has one
constexpr Nanos kNever = std::numeric_limits<Nanos>::max() / 4;

// There is something to be shown of this machine: its GPUs, or where no driver is itself and the processes.
bool shows_something(const Recording& recording, const BoxWatch& box) {
  return !recording.all(box.no_gpus() ? SourceKind::kHost : SourceKind::kGpu).empty();
}

}  // namespace

Result<WatchedRecording> WatchedRecording::open(const std::string& what, const ImportOptions& import) {
  WatchedRecording watched;
  HR_TRY(watched.families_, users_families());
  HR_TRY(const std::string path, path_of_recording(what));
  const Nanos cpu = process_cpu_now();
  watched.trace_ = trace_of(path);
  HR_TRY(watched.opened_, open_recording(path, import, {.leave_out = metrics_not_viewed()}));
  watched.import_ = import;
  watched.newest_ = what == "last";
  watched.name_ = last_part(watched.opened_.path);
  watched.read_at_ = boottime_now();
  watched.cost_ = process_cpu_now() - cpu;
  watched.plan_next_look();
  return watched;
}

Result<WatchedRecording> WatchedRecording::open(const std::vector<std::string>& words, const ImportOptions& import) {
  if (words.size() <= 1) return open(words.empty() ? "last" : words.front(), import);
  WatchedRecording watched;
  HR_TRY(watched.families_, users_families());
  HR_TRY(watched.opened_, open_recordings(words, import, {.leave_out = metrics_not_viewed()}));
  watched.import_ = import;
  watched.name_ = fmt::format("{} recordings", words.size());
  watched.read_at_ = boottime_now();
  watched.plan_next_look();
  return watched;
}

Result<WatchedRecording> WatchedRecording::open_box(const BoxWatch::Options& options, const ImportOptions& import) {
  HR_TRY(std::unique_ptr<BoxWatch> box, BoxWatch::start(options));
  const Nanos begin = boottime_now();
  for (;;) {
    const auto begun = box->next();
    auto opened = begun ? open(begun->path, import) : fail(Errc::kIo, "nothing was recorded yet");
    if (opened && shows_something(opened->recording(), *box)) {
      box->shows_next();
      opened->name_ = begun->name;
      opened->hidden_ = hidden_processes();
      opened->newest_before_ = path_of_recording("last").value_or("");
      opened->box_ = std::move(box);
      return opened;
    }
    if (const std::string trouble = box->trouble(); !trouble.empty()) return fail(Errc::kIo, trouble);
    if (boottime_now() - begin > kFirstReading) return opened ? fail(Errc::kIo, "nothing was read") : std::move(opened);
    if (!box->pause(kSecond / 10)) return fail(Errc::kIo, "interrupted");
  }
}

bool WatchedRecording::look_again() {
  const Nanos now = boottime_now();
  next_look_ = now + kLookEvery;
  if (!grows()) return false;
  const FileTrace trace = trace_of(opened_.path);
  if (trace == trace_ && now - read_at_ < kSilent) return false;
  const Nanos cpu = process_cpu_now();
  if (!growing_) {
    growing_.emplace(opened_.path, metrics_not_viewed(), recording().meta.id);
    if (box_) growing_->keep_short(kSleepEvery);
  }
  const auto again = growing_->read_on();
  if (again) opened_.recording = {};
  read_at_ = now;
  trace_ = trace;
  cost_ = process_cpu_now() - cpu;
  next_look_ = now + std::max(kLookEvery, kLookCostParts * cost_);
  trouble_ =
      again ? ""
            : fmt::format("{} cannot be read any more: {}; this is what was read before", name_, again.error().what);
  return true;
}

std::optional<std::string> WatchedRecording::go_on_with_next() {
  if (box_) return go_on_in_box();
  if (!newest_ || grows()) return std::nullopt;
  const auto path = path_of_recording("last");
  if (!path || *path == opened_.path) return std::nullopt;
  auto next = open("last", import_);
  if (!next) return std::nullopt;  // it has hardly begun: at the next look
  *this = std::move(*next);
  return "that recording has ended; this one was begun after it";
}

std::optional<std::string> WatchedRecording::go_on_in_box() {
  if (auto other = begun_elsewhere()) {
    *this = std::move(*other);
    return "a recording was begun: this is it";
  }
  box_->look(view_);
  if (const std::string trouble = box_->trouble(); !trouble.empty()) trouble_ = trouble;
  const auto begun = box_->next();
  if (!begun) return std::nullopt;
  auto next = open(begun->path, import_);
  if (!next || !shows_something(next->recording(), *box_)) return std::nullopt;  // at the next look
  next->box_ = std::move(box_);
  next->box_->shows_next();
  next->newest_before_ = std::move(newest_before_);
  next->name_ = begun->name;
  next->hidden_ = std::move(hidden_);
  *this = std::move(*next);
  return begun->message;
}

// `headroom run` and its like record more of what they began themselves.
std::optional<WatchedRecording> WatchedRecording::begun_elsewhere() const {
  if (box_->was_asked_for()) return std::nullopt;
  const auto path = path_of_recording("last");
  if (!path || *path == newest_before_ || box_->owns(*path)) return std::nullopt;
  auto other = open("last", import_);
  if (!other || !other->grows()) return std::nullopt;
  return std::move(*other);
}

void WatchedRecording::explain_window(const screen::State& state) {
  const Nanos cpu = process_cpu_now();
  ExplainOptions options = explaining();
  options.window = screen::window_of(state, span());
  if (options.window) {
    keep_what_is_shown(begin() + options.window->first);
    const Nanos forgotten = recording().meta.start - begin();
    options.window->first = std::max<Nanos>(0, options.window->first - forgotten);
    options.window->second = std::max<Nanos>(options.window->first, options.window->second - forgotten);
  }
  if (const auto from = options.window && !state.at ? begin_of_recent(*options.window) : std::nullopt) {
    const Nanos left_out = *from - recording().meta.start;
    options.window = {options.window->first - left_out, options.window->second - left_out};
    const RecentPart recent = growing_->recent(*from);
    explain_in(recent.recording(), options);
  } else {
    explain_in(recording(), options);
  }
  explaining_cost_ = process_cpu_now() - cpu;
  plan_next_look();
  if (grows() && !state.at && boottime_now() >= next_findings_) look_for_findings();
}

void WatchedRecording::explain_in(const Recording& part, const ExplainOptions& options) {
  explanation_ = explain(part, options);
  tell_times_of_all(explanation_.meta);
  // The recorder counts its time from its beginning, whatever is kept.
  if (explanation_.cost.core_ratio)
    explanation_.cost.core_ratio = *explanation_.cost.cpu_seconds / seconds(part.meta.end - begin());
  view_ = view::view_of(
      part, explanation_,
      {.bins = 1, .series_bins = 1, .most_processes = box_ && box_->no_gpus() ? kMostOfMachine : kMostProcesses});
}

// Of this machine, from where on the explanation of a window that ends now needs it; nothing where that is all of it.
std::optional<Nanos> WatchedRecording::begin_of_recent(std::pair<Nanos, Nanos> window) const {
  if (!box_ || !is_read_on()) return std::nullopt;
  const Nanos before = box_->kept() / kBeforeWindowParts;
  const Nanos start = recording().meta.start;
  const Nanos from = last_kernels_before(recording(), start + window.first - before);
  return from < start + before ? std::nullopt : std::optional(from);  // hardly less than all
}

// A window that lies before what is kept makes the file be read again.
void WatchedRecording::keep_what_is_shown(Nanos from) {
  if (!box_ || !is_read_on()) return;
  const Nanos kept_from = recording().meta.start;
  if (from < kept_from) {
    growing_->remember();
    (void)growing_->read_on();  // on an error what is kept stays, and look_again() says why
  } else if (from - kept_from > box_->kept() + box_->kept() / 4) {
    growing_->forget_before(from - box_->kept());
  }
}

// Where what is shown lies in all of it, whatever of that is kept.
void WatchedRecording::tell_times_of_all(RecordingMeta& meta) const {
  if (meta.start_realtime != 0) meta.start_realtime -= meta.start - begin();
  meta.start = begin();
}

ExplainOptions WatchedRecording::explaining() const {
  ExplainOptions options;
  options.path = opened_.path;
  options.file_bytes = opened_.file_bytes;
  options.families = families_;
  return options;
}

// Seldom: the window alone is explained anew with every picture.
void WatchedRecording::look_for_findings() {
  const Nanos cpu = process_cpu_now();
  const ExplainOptions options = explaining();
  const bool is_whole =
      explanation_.ledger.begin <= recording().meta.start && explanation_.ledger.end >= recording().meta.end;
  const std::optional<Explanation> all = is_whole ? std::nullopt : std::optional(explain(recording(), options));
  const Explanation& whole = all ? *all : explanation_;
  // Of this machine hardly more than the last minutes is kept.
  const std::optional<Explanation> recent = box_ ? std::nullopt : explain_last_minutes(recording(), options);
  (void)findings_.look(whole, recent ? *recent : whole);
  const Nanos cost = process_cpu_now() - cpu;
  next_findings_ =
      boottime_now() + (box_ ? std::clamp(kBoxFindingsCostParts * cost, FindingLooks().every, kBoxFindingsLatest)
                             : std::max(FindingLooks().every, kFindingsCostParts * cost));
}

void WatchedRecording::plan_next_look() {
  if (grows())
    next_look_ = read_at_ + std::max(kLookEvery, kLookCostParts * (cost_ + explaining_cost_));
  else
    next_look_ = newest_ ? boottime_now() + kLookEvery : kNever;
}

bool WatchedRecording::grows() const { return opened_.file_bytes && goes_on(recording().meta); }

std::vector<std::string> WatchedRecording::what_is_lacking() const {
  if (!box_) return {};
  std::vector<std::string> lacks;
  if (const auto& why = box_->no_gpus()) lacks.push_back(fmt::format("Why: {}; headroom doctor says more.", why->what));
  for (const MissingTier& missing : explanation_.meta.missing_tiers)
    if (missing.tier == 'Y')
      lacks.push_back(fmt::format("No Python stacks of the job: {}; headroom doctor says more.", missing.why));
  if (hidden_.empty()) return lacks;
  const auto nameless = std::count_if(view_.processes.begin(), view_.processes.end(),
                                      [](const view::Process& one) { return one.name.empty() && !one.gpus.empty(); });
  lacks.push_back(nameless == 0 ? hidden_ + "."
                                : fmt::format("{}; the driver names {} that it hides.", hidden_, nameless));
  return lacks;
}

screen::Scene WatchedRecording::scene() const {
  const RecordingMeta& meta = recording().meta;
  screen::Scene scene{explanation_, view_, begin(), meta.end, name_, trouble_, std::nullopt};
  if (grows()) scene.now = findings_.now();
  scene.lacks = what_is_lacking();
  if (goes_on(meta) && meta.boot_id == boot_id()) scene.behind = std::max<Nanos>(0, boottime_now() - meta.end);
  if (meta.stop_reason == "recovered" && trouble_.empty())
    scene.trouble = "its recorder died: this is what it had written";
  return scene;
}

Result<void> send_signal(const Recording& recording, const screen::Wish& wish) {
  if (recording.meta.boot_id.empty() || recording.meta.boot_id != boot_id())
    return fail(Errc::kUnsupported, "the recording is of another machine, or of another run of this one");
  const auto pid = static_cast<pid_t>(wish.pid);
  // The descriptor holds the process: it cannot become another one between the look and the signal.
  const Fd process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (process.get() < 0) return fail(Errc::kNotFound, fmt::format("there is no process {} any more", wish.pid));
  const auto text = read_file(fmt::format("/proc/{}/stat", wish.pid), 4096);
  const auto stat = text ? host::parse_pid_stat(*text) : std::nullopt;
  const Nanos tick = kSecond / std::max<Nanos>(1, ::sysconf(_SC_CLK_TCK));
  if (!stat || std::abs(stat->start_ticks * tick - wish.process_start) > tick)
    return fail(Errc::kNotFound, fmt::format("{} is no longer the process that was recorded", wish.pid));
  const int number = wish.signal == "KILL" ? SIGKILL : wish.signal == "INT" ? SIGINT : SIGTERM;
  if (::syscall(SYS_pidfd_send_signal, process.get(), number, nullptr, 0) != 0)
    return tl::unexpected(errno_error(fmt::format("send SIG{} to {}", wish.signal, wish.pid)));
  return {};
}

}  // namespace headroom::cli
