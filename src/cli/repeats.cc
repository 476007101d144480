// SPDX-License-Identifier: Apache-2.0
#include "cli/repeats.h"

#include <sys/stat.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <filesystem>

#include "base/duration.h"
#include "base/filesystem.h"
#include "base/fnv.h"
#include "base/human.h"
#include "base/strings.h"
#include "batch/control.h"
#include "batch/control_words.h"
#include "batch/executor/local_executor.h"
#include "batch/finish.h"
#include "batch/folder.h"
#include "batch/folder_lock.h"
#include "batch/identity.h"
#include "batch/resume.h"
#include "batch/task_logs.h"
#include "cli/arguments.h"
#include "cli/environment.h"
#include "cli/live_parts.h"
#include "cli/terminal.h"
#include "output/log_pattern.h"
#include "report/batch_status.h"
#include "tasks/template.h"

namespace headroom::cli {

namespace {

namespace fs = std::filesystem;

constexpr Nanos kShowEvery = 500 * kMillisecond;
constexpr std::uintmax_t kLargestCopy = std::uintmax_t{256} << 20;  // of an output
// File systems stamp with the kernel's tick, which may lie before an instant that was read off the clock.
constexpr Nanos kCoarseStamp = 20 * kMillisecond;

// This program, for the commands that it starts: it need not be in PATH.
std::string own_path() {
  std::error_code error;
  const auto path = fs::read_symlink("/proc/self/exe", error).string();
  return error || path.empty() ? "headroom" : path;
}

// Since `start` (Unix time): what an earlier run has left does not count.
bool written_since(const std::string& path, Nanos start) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return false;
  return info.st_mtim.tv_sec * kSecond + info.st_mtim.tv_nsec >= start - kCoarseStamp;
}

// A copy, so that the next run may write over it; of what is large its hash.
Result<void> keep_copy(const std::string& from, const std::string& to) {
  std::error_code error;
  fs::create_directories(fs::path(to).parent_path(), error);
  const auto size = fs::file_size(from, error);
  if (error) return fail(Errc::kIo, fmt::format("{}: {}", from, error.message()));
  if (size > kLargestCopy) {
    batch::InputHasher hasher;
    HR_TRY(const std::string hash, hasher.hash(from));
    return write_file(to + ".hash", fmt::format("{} {} bytes\n", hash, size));
  }
  fs::copy_file(from, to, fs::copy_options::overwrite_existing, error);
  if (error) return fail(Errc::kIo, fmt::format("keep a copy of {}: {}", from, error.message()));
  return {};
}

void remove_recording(const std::string& path) {
  for (const char* end : {"", "-wal", "-shm", "-journal"}) ::unlink((path + end).c_str());
}

std::string hex_of(std::uint64_t hash) { return fmt::format("{:016x}", hash); }

}  // namespace

// Each run is recorded by itself: the batch has nothing to record, and nobody but the run looks at the GPUs.
class Repeats::NoRecorder final : public batch::Recorder {
 public:
  void add_event(const Event&) override {}
  void read_process_lists() override {}
  void follow_tree_of(std::int64_t) override {}
};

std::string folder_for(std::string_view verb, const std::vector<std::vector<std::string>>& words) {
  std::uint64_t hash = fnv1a(verb);
  for (const auto& list : words) {
    hash = fnv1a(std::uint64_t{list.size()}, hash);
    for (const std::string& word : list) hash = fnv1a(word, fnv1a(std::uint64_t{word.size()}, hash));
  }
  return fmt::format("{}/headroom-{}-{:08x}.batch", current_directory(), verb, hash >> 32);
}

Repeats::~Repeats() { clear(); }

Result<std::unique_ptr<Repeats>> Repeats::open(RepeatsRequest request) {
  std::unique_ptr<Repeats> repeats(new Repeats(std::move(request)));
  HR_TRYV(repeats->prepare());
  return repeats;
}

Result<void> Repeats::prepare() {
  batch_.folder = request_.batch.folder;
  HR_TRYV(make_tasks());
  HR_TRY(batch_.place, batch::take_folder(batch_.folder, request_.batch, say));
  if (!request_.quiet)
    batch::warn_of_others(batch_.folder,
                          on_virtual_gpus() || request_.batch.gpus == "none" ? "cores" : "GPUs and cores", say);
  HR_TRY(signals_, Signals::block({SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}));
  HR_TRY(batch::Guardian guardian, batch::Guardian::start(request_.grace, batch_.place.lock.get()));
  guardian_.emplace(std::move(guardian));
  batch::note_holder(batch_.place, guardian_->pid(), request_.grace);
  screen_.emplace(STDERR_FILENO);
  batch_.set.tasks = tasks_;
  HR_TRYV(batch::open_journal(batch_, request_.resume, *guardian_, request_.grace, say));
  HR_TRYV(choose_gpus());
  HR_TRYV(look_at_earlier());
  HR_TRY(loop_, Loop::create());
  return {};
}

Result<void> Repeats::make_tasks() {
  const std::string runs = batch_.folder + "/runs";
  std::map<std::string, std::string> identities;  // by group
  for (const Repeat& repeat : request_.repeats) {
    TaskSpec task{.name = repeat.name, .group = repeat.group, .command_template = shell_join(repeat.command)};
    task.resources.alone = true;
    if (!request_.batch.timeout.empty()) {
      HR_TRY(task.timeout, parse_duration(request_.batch.timeout));
    }
    std::string& identity = identities[repeat.group];
    if (identity.empty()) {  // of the command and of how it is measured, whichever program is called headroom
      std::vector<TaskSpec> one{task};
      one[0].argv = repeat.command;
      one[0].argv.insert(one[0].argv.end(), request_.run_options.begin(), request_.run_options.end());
      batch::InputHasher hasher;
      HR_TRYV(batch::set_identities(one, current_directory(), hasher));
      identity = one[0].identity;
    }
    task.identity = hex_of(fnv1a(repeat.name, fnv1a(identity)));
    const std::string recording = fmt::format("{}/{}.hrec", runs, repeat.file);
    task.argv = {own_path(), "run", "--quiet", "--replace", "--output", recording};
    task.argv.insert(task.argv.end(), request_.run_options.begin(), request_.run_options.end());
    task.argv.emplace_back("--");
    task.argv.insert(task.argv.end(), repeat.command.begin(), repeat.command.end());
    for (std::string& word : task.argv) word = tasks::double_braces(word);
    task.outputs = {recording};
    tasks_.push_back(std::move(task));
  }
  return {};
}

// The same for every run: all that --gpus names, or the first.
Result<void> Repeats::choose_gpus() {
  const auto tree = make_tree({}, "", JobOf::kRecorder);
  HR_TRY(batch_.plan, scheduler::plan_tasks(batch_.set.tasks));
  HR_TRYV(batch::settle_places(batch_, request_.batch, *tree, say));
  auto& gpus = batch_.gpus.gpus;
  if (request_.batch.gpus.empty() && gpus.size() > 1) gpus.resize(1);
  batch_.gpus.reader.reset();  // each run has its own
  for (TaskSpec& task : tasks_) task.resources.gpus = static_cast<int>(gpus.size());
  return {};
}

Result<void> Repeats::look_at_earlier() {
  prints_ = batch::fingerprints_of(tasks_);
  for (std::size_t i = 0; i < tasks_.size(); ++i) {
    const batch::KnownTask& known = batch_.known[i];
    if (known.state != TaskState::kSucceeded || known.fingerprint.empty() || known.fingerprint == prints_[i]) continue;
    return fail(Errc::kInvalidInput,
                fmt::format("a script that the commands name has changed since {} ran: earlier runs and new ones "
                            "cannot be compared",
                            tasks_[i].name),
                "--fresh starts over and keeps what was there aside");
  }
  HR_TRYV(batch::compare_with_earlier(batch_, request_.batch, say));
  known_ = batch_.known;
  earlier_ = batch_.earlier;
  return {};
}

std::string Repeats::recording_of(std::size_t repeat) const {
  return fmt::format("{}/runs/{}.hrec", batch_.folder, request_.repeats[repeat].file);
}

std::string Repeats::copy_of(std::size_t repeat, const std::string& output) const {
  return fmt::format("{}/runs/{}.outputs/{}", batch_.folder, request_.repeats[repeat].file,
                     fs::path(output).filename().string());
}

Result<batch::BatchOptions> Repeats::options_for(std::size_t repeat) {
  batch_.set.tasks = {tasks_[repeat]};
  HR_TRY(batch_.plan, scheduler::plan_tasks(batch_.set.tasks));
  batch_.fingerprints = {prints_[repeat]};
  batch::Request request = request_.batch;
  request.no_pack = true;
  request.slots = 1;
  batch::BatchOptions options = batch::options_of(batch_, request, [](std::string_view, std::string_view) {});
  options.learn = nullptr;                                  // a run that is stopped early teaches nothing
  std::vector<std::pair<std::string, std::string>> copies;  // from, to
  for (const std::string& output : request_.outputs)
    copies.emplace_back(batch::path_of(tasks_[repeat], output, current_directory()), copy_of(repeat, output));
  const Nanos start = realtime_now();
  options.missing_outputs = [check = options.missing_outputs, copies, start](const TaskSpec& task) {
    std::vector<std::string> missing = check(task);
    for (const auto& [from, to] : copies)
      if (!written_since(from, start) || !keep_copy(from, to)) missing.push_back(from);
    return missing;
  };
  return options;
}

Result<Repeats::End> Repeats::run(std::size_t repeat, const std::string& progress) {
  const Repeat& what = request_.repeats[repeat];
  std::error_code ignored;
  fs::create_directories(batch_.folder + "/runs", ignored);
  remove_recording(recording_of(repeat));
  fs::remove_all(fs::path(copy_of(repeat, "x")).parent_path(), ignored);
  HR_TRY(batch::BatchOptions options, options_for(repeat));
  batch::LocalExecutor executor(*loop_, *guardian_, batch_.place,
                                {.batch_id = batch_.journal->batch_id(),
                                 .mask = signals_->mask_before(),
                                 .grace = request_.grace,
                                 .environment = {}});
  NoRecorder recorder;
  const batch::MachineClock clock;
  batch::KnownTask known = known_[repeat];
  known.state = TaskState::kReady, known.failures = 0;
  batch::Batch batch(std::move(options), std::move(batch_.plan), {known},
                     {.executor = executor,
                      .journal = *batch_.journal,
                      .recorder = recorder,
                      .clock = clock,
                      .say = [this](batch::MessageKind kind, const std::string& text) {
                        clear();
                        if (!request_.quiet || kind == batch::MessageKind::kProblem) screen_->put("- " + text + "\n");
                      }});
  batch::BatchLoop batch_loop(*loop_, *signals_, executor, batch);
  running_ = &batch, running_loop_ = &batch_loop;
  const auto control = batch::ControlServer::open(*loop_, batch_.place.directory,
                                                  [this](std::string_view question) { return answer(question); });
  began_ = boottime_now();
  Loop::TimerId timer = 0;
  const std::function<void()> repaint = [&] {
    show(fmt::format("{} · {} {}", progress, what.name, human_duration(boottime_now() - began_)));
    timer = loop_->after(kShowEvery, repaint);
  };
  if (!request_.quiet && can_repaint(STDERR_FILENO)) repaint();
  batch_loop.run();
  loop_->cancel(timer);
  clear();
  running_ = nullptr, running_loop_ = nullptr;
  const batch::BatchEnd end = batch.end();
  if (end.signal != 0) signal_ = end.signal;
  known_[repeat].attempts += static_cast<int>(end.summary.attempts);
  if (end.summary.tasks.succeeded == 1) {
    known_[repeat].state = TaskState::kSucceeded;
    return End{.succeeded = true};
  }
  if (end.summary.tasks.left > 0) return End{.reason = "stopped"};
  HR_TRY(std::string reason, reason_of(repeat));
  return End{.reason = std::move(reason)};
}

Result<std::string> Repeats::reason_of(std::size_t repeat) const {
  HR_TRY(const batch::Contents contents, batch::read_journal(batch_.place.folder_now()));
  for (auto attempt = contents.attempts.rbegin(); attempt != contents.attempts.rend(); ++attempt)
    if (contents.tasks[attempt->task].key == known_[repeat].key) return attempt->reason;
  return std::string("it failed");
}

std::string Repeats::answer(std::string_view question) {
  if (question == "ping") return "ok\n";
  if (question == "status") return report::to_json(running_->progress());
  const bool now = question == batch::kStopNowRequest;
  if (question != batch::kStopRequest && !now)
    return fmt::format("error headroom {} does not do that\n\n", request_.verb);
  const BatchProgress before = running_->progress();
  if (now || !before.draining) running_loop_->interrupt(now ? SIGTERM : SIGINT);
  return fmt::format("ok {}\n", before.tasks.running);
}

void Repeats::say_line(const std::string& line) {
  clear();
  if (!request_.quiet) screen_->put(line + "\n");
}

void Repeats::show(const std::string& progress) {
  screen_->put("\r" + progress + "\x1b[K");
  shown_ = true;
}

void Repeats::clear() {
  if (std::exchange(shown_, false)) screen_->put("\r\x1b[K");
}

bool Repeats::finish(const std::string& reason) {
  clear();
  screen_->flush();
  batch::BatchEnd end;
  end.reason = reason;
  const bool kept = batch::write_end(batch_, end, {}, say);
  batch_.journal->sync();
  return kept;
}

void declare_repeats_options(CLI::App& app, RepeatsOptions& o) {
  app.add_option("--gpus", o.gpus, "which GPUs each run gets, all of them: 0,1 or UUIDs; none; default: the first")
      ->type_name("LIST");
  app.add_option("--order", o.order, "alternate (default: A B, B A, …), or random: who begins is drawn for two rounds")
      ->check(CLI::IsMember({"alternate", "random"}));
  app.add_option("--seed", o.seed, "of --order random; default: 1");
  app.add_option("--step", o.steps, "the group of REGEX in a line of output is the number of steps done")
      ->type_name("REGEX")
      ->expected(1);
  app.add_option("--phase", o.phases, "a line of output that matches begins the phase NAME; NAME none ends it")
      ->type_name("NAME=REGEX")
      ->allow_extra_args(false);
  app.add_option("--metric", o.metrics, "the group of REGEX in a line of output is the metric NAME")
      ->type_name("NAME=REGEX")
      ->allow_extra_args(false);
  app.add_option("--timeout", o.timeout, "of one run; what takes longer is stopped, and has failed")
      ->type_name("DURATION")
      ->check(duration_check());
  app.add_option("--grace", o.grace, "between SIGTERM and SIGKILL (10s)")
      ->type_name("DURATION")
      ->check(duration_check());
  app.add_option("--folder", o.folder, "journal, logs and recordings; default: headroom-….batch here, by the commands")
      ->type_name("DIR");
  app.add_flag("--fresh", o.fresh, "start over; what was there is kept aside");
  app.add_flag("--trust-folder", o.trust_folder, "go on in a folder that others own or may write to");
  app.add_option("-i,--interval", o.interval, "time between samples of each recording (200ms)")
      ->type_name("DURATION")
      ->check(duration_check());
  app.add_flag("-q,--quiet", o.quiet, "nothing but the answer, and what is wrong");
}

std::vector<std::string> words_of(const RepeatsOptions& o) {
  std::vector<std::string> words;
  const auto text = [&](std::string_view option, const std::string& value, std::string_view otherwise = "") {
    if (value != otherwise) words.push_back(fmt::format("{}={}", option, value));
  };
  text("--gpus", o.gpus), text("--order", o.order, "alternate");
  if (o.seed != 1) words.push_back(fmt::format("--seed={}", o.seed));
  for (const auto& step : o.steps) text("--step", step);
  for (const auto& phase : o.phases) text("--phase", phase);
  for (const auto& metric : o.metrics) text("--metric", metric);
  text("--timeout", o.timeout), text("--grace", o.grace, "10s"), text("--folder", o.folder);
  if (o.trust_folder) words.emplace_back("--trust-folder");
  text("--interval", o.interval, "200ms");
  return words;
}

Result<RepeatsRequest> request_of(const RepeatsOptions& o, const std::string& verb, const std::string& folder) {
  RepeatsRequest request{.verb = verb, .quiet = o.quiet};
  HR_TRY(request.grace, parse_duration(o.grace));
  std::error_code ignored;
  request.batch.folder =
      o.folder.empty() ? folder : std::filesystem::absolute(o.folder, ignored).lexically_normal().string();
  request.batch.gpus = o.gpus, request.batch.timeout = o.timeout;
  request.batch.fresh = o.fresh, request.batch.trust_folder = o.trust_folder;
  request.batch.surroundings = {.variable = environment,
                                .nvml_library = nvml_library(),
                                .virtual_gpus = on_virtual_gpus() && !foreign_pids(),
                                .shelf = ""};
  request.run_options = {"--interval", o.interval, "--output-lines"};
  using Kind = output::LogPattern::Kind;
  const auto add = [&](const char* option, Kind kind, const std::vector<std::string>& texts) -> Result<void> {
    for (const std::string& text : texts) {
      const auto pattern =
          kind == Kind::kStep ? output::log_pattern(kind, "", text) : output::parse_log_option(kind, text);
      if (!pattern) return tl::unexpected(within(option, pattern.error()));
      request.run_options.push_back(fmt::format("{}={}", option, text));
    }
    return {};
  };
  HR_TRYV(add("--step", Kind::kStep, o.steps));
  HR_TRYV(add("--phase", Kind::kPhase, o.phases));
  HR_TRYV(add("--metric", Kind::kMetric, o.metrics));
  if (o.gpus == "none") request.run_options.emplace_back("--no-gpu");
  return request;
}

Result<double> parse_share(const std::string& option, const std::string& text) {
  const bool percent = text.ends_with('%');
  const auto number = parse_number<double>(std::string_view(text).substr(0, text.size() - (percent ? 1 : 0)));
  const double share = number.value_or(0) / (percent ? 100 : 1);
  if (!number || !(share > 0) || !(share < 1))
    return fail(Errc::kInvalidInput, fmt::format("{}: '{}' is no share between 0 and 100 %", option, text),
                fmt::format("{} 5%", option));
  return share;
}

}  // namespace headroom::cli
