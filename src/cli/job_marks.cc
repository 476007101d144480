// SPDX-License-Identifier: Apache-2.0
#include "cli/job_marks.h"

#include <sys/stat.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <filesystem>

#include "base/regular_file.h"
#include "base/result.h"
#include "base/strings.h"
#include "cli/environment.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "host/proc_parse.h"
#include "marks/marks_reader.h"
#include "marks/output_reader.h"
#include "model/notes.h"
#include "output/log_facts.h"
#include "pump/pump.h"
#include "wire/marks.h"

namespace headroom::cli {

namespace {

// Between looks. Lines that a pump passed on have the instant at which they came; those of a file that of the look.
constexpr Nanos kLinesInterval = 200 * kMillisecond;

Result<void> add_patterns(std::vector<output::LogPattern>& patterns, output::LogPattern::Kind kind,
                          std::string_view option, const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    auto pattern = kind == output::LogPattern::Kind::kStep ? output::log_pattern(kind, "", text)
                                                           : output::parse_log_option(kind, text);
    if (!pattern) return tl::unexpected(within(std::string(option), pattern.error()));
    patterns.push_back(std::move(*pattern));
  }
  return {};
}

bool holds_something(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && info.st_size > 0;
}

// "<pid>/<start ns>", as the readers of processes write it; "" where it is not known.
std::string process_key(std::int64_t pid) {
  if (pid <= 0) return "";
  const auto text = read_file(fmt::format("/proc/{}/stat", pid), 4096);
  const auto stat = text ? host::parse_pid_stat(*text) : std::nullopt;
  if (!stat) return "";
  return fmt::format("{}/{}", pid, stat->start_ticks * (kSecond / ::sysconf(_SC_CLK_TCK)));
}

marks::OutputReaderOptions reader_options(const std::string& process, std::int64_t pid, const JobLines& lines) {
  const std::string key = process.empty() ? fmt::format("{}/0", pid) : process;
  marks::OutputReaderOptions options{.source = {SourceKind::kMarks, fmt::format("{}/{}/output", key, pid)},
                                     .process_key = process,
                                     .patterns = lines.patterns};
  options.source.attrs = {{"via", "output"}};
  if (pid > 0) options.source.attrs["pid"] = std::to_string(pid);
  return options;
}

std::vector<marks::OutputReaderOptions> readers_of(JobLines& lines, pump::JobOutput* output, std::int64_t pid) {
  std::vector<marks::OutputReaderOptions> readers;
  const std::string process = process_key(pid);
  if (output != nullptr) {
    auto& one = readers.emplace_back(reader_options(process, pid, lines));
    one.lines.push_back(marks::copied_lines(output->take_copy()));
    for (auto& written : output->take_files())
      one.lines.push_back(marks::lines_of_file(std::move(written.file), written.from));
  }
  for (JobLines::Log& log : lines.logs) {
    auto& one = readers.emplace_back(reader_options(process, pid, lines));
    one.source.key += fmt::format(":{}", &log - lines.logs.data() + 1);
    one.source.attrs["file"] = log.path;
    if (log.from_midway) one.seen = output::LineMarks::Seen::kFromMidway;
    one.lines.push_back(std::move(log.lines));
  }
  for (marks::OutputReaderOptions& reader : readers) reader.last_words = true;
  return readers;
}

}  // namespace

void declare_lines_options(CLI::App& app, LinesOptions& options, LinesOf of) {
  const bool own = of == LinesOf::kOwnJob;
  if (own)
    app.add_flag("--output-lines", options.output,
                 "read what the command prints, for its phases, steps and metrics; every byte is passed on");
  app.add_option("--log", options.logs, "read what is appended to this file, likewise; may be given several times")
      ->type_name("FILE")
      ->allow_extra_args(false);
  const std::string read_in = own ? "; without --log it means --output-lines" : "; needs --log";
  app.add_option("--phase", options.phases, "a line that matches begins the phase NAME; NAME none ends it" + read_in)
      ->type_name("NAME=REGEX")
      ->allow_extra_args(false);
  app.add_option("--metric", options.metrics, "the group of REGEX is the metric NAME" + read_in)
      ->type_name("NAME=REGEX")
      ->allow_extra_args(false);
  app.add_option("--step", options.steps, "the group of REGEX is the number of steps done" + read_in)
      ->type_name("REGEX")
      ->expected(1);
}

Result<JobLines> open_lines(const LinesOptions& options, LinesOf of) {
  using Kind = output::LogPattern::Kind;
  JobLines lines;
  HR_TRYV(add_patterns(lines.patterns, Kind::kPhase, "--phase", options.phases));
  HR_TRYV(add_patterns(lines.patterns, Kind::kMetric, "--metric", options.metrics));
  HR_TRYV(add_patterns(lines.patterns, Kind::kStep, "--step", options.steps));
  const bool nothing_to_read = options.logs.empty() && !options.output;
  if (of == LinesOf::kOthers && nothing_to_read && !lines.patterns.empty())
    return fail(Errc::kInvalidInput, "record: a pattern, and nothing to look for it in",
                "name the job's log with --log FILE; headroom run --output-lines reads what a command prints");
  lines.output = options.output || (nothing_to_read && !lines.patterns.empty());
  lines.why_not = "not asked for (--output-lines)";
  for (const std::string& path : options.logs) {
    JobLines::Log log{.path = path, .from_midway = holds_something(path)};
    auto opened = marks::lines_at_path(path);
    if (!opened) return tl::unexpected(within("--log", opened.error()));
    log.lines = std::move(*opened);
    lines.logs.push_back(std::move(log));
  }
  return lines;
}

std::unique_ptr<pump::JobOutput> open_job_output(JobLines& lines) {
  if (!lines.output) return nullptr;
  auto output = pump::JobOutput::open({"/proc/self/exe", "output-pump"});
  if (output) return std::move(*output);
  say(fmt::format("cannot read the job's output: {}", output.error().what),
      fmt::format("{}, its output unread", output::kJobRunsOn));
  lines.why_not = output.error().what;
  return nullptr;
}

void add_lines(SessionOptions& session, JobLines lines, pump::JobOutput* output, std::int64_t pid) {
  EvidenceSource source{.tier = 'L', .name = "the job's output", .where = ReadOn::kOwnThread};
  auto readers = std::make_shared<std::vector<marks::OutputReaderOptions>>(readers_of(lines, output, pid));
  if (readers->empty()) {
    source.why_not = lines.why_not;
  } else {
    source.interval = kLinesInterval;
    source.open = [readers]() -> Result<OpenSource> {
      OpenSource opened;
      std::vector<marks::OutputReader*> all;
      for (marks::OutputReaderOptions& options : *readers) {
        auto reader = std::make_unique<marks::OutputReader>(std::move(options));
        all.push_back(reader.get());
        opened.readers.push_back(std::move(reader));
      }
      opened.before_last_look = [all] {
        for (marks::OutputReader* reader : all) reader->end_soon();
      };
      return opened;
    };
  }
  session.sources.push_back(std::move(source));
}

TaskLogs::TaskLogs(std::vector<output::LogPattern> patterns)
    : patterns_(std::move(patterns)), readers_(std::make_shared<marks::LogReaders>()) {}

void TaskLogs::add(const Attempt& attempt) {
  auto log = open_regular_at_once(attempt.log_path);
  if (!log) return;  // of an executor whose logs are elsewhere
  JobLines lines;
  lines.patterns = patterns_;
  auto options = reader_options(process_key(attempt.pid), attempt.pid, lines);
  options.lines.push_back(marks::lines_of_file(std::move(*log), 0));
  readers_->add(attempt.id, std::move(options));
}

void TaskLogs::end(AttemptId attempt) { readers_->end(attempt); }

void TaskLogs::add_to(SessionOptions& session) {
  EvidenceSource source{
      .tier = 'L', .name = "the tasks' logs", .where = ReadOn::kOwnThread, .interval = kLinesInterval};
  source.open = [readers = readers_]() -> Result<OpenSource> {
    OpenSource opened;
    opened.readers.push_back(marks::reader_of(readers));
    opened.before_last_look = [readers] { readers->end_all(); };
    return opened;
  };
  session.sources.push_back(std::move(source));
}

int output_pump(std::span<char*> arguments) {
  const auto stream = arguments.size() == 2 ? parse_number<std::uint16_t>(arguments[0]) : std::nullopt;
  const auto group = arguments.size() == 2 ? parse_number<pid_t>(arguments[1]) : std::nullopt;
  if (stream && group) pump::run_pump(*stream, *group);
  say("output-pump is a part of headroom run --output-lines, and no verb", "headroom --help lists the verbs");
  return kExitUsage;
}

namespace {

constexpr Nanos kLooks = 250 * kMillisecond;
constexpr const char* kNvtxVariable = "NVTX_INJECTION64_PATH";
constexpr const char* kNvtxLibrary = "libheadroom_nvtx.so";

// In memory first: a disk has to write what a job marks.
std::vector<std::string> places() {
  std::vector<std::string> all;
  if (const auto own = environment("XDG_RUNTIME_DIR"); own && own->starts_with('/')) all.push_back(*own);
  all.insert(all.end(), {"/dev/shm", "/tmp"});
  return all;
}

// Nobody else may be able to change a library that is loaded into the job.
bool can_be_trusted(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         (info.st_uid == 0 || info.st_uid == ::geteuid()) && (info.st_mode & S_IWOTH) == 0;
}

// The library as it is installed, or as it is unpacked: relative to this program.
std::optional<std::string> nvtx_library() {
  std::error_code error;
  const auto folder = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  if (error) return std::nullopt;
  for (const char* way : {"../lib/headroom", "lib/headroom"}) {
    const std::string path = (folder / way / kNvtxLibrary).lexically_normal().string();
    if (can_be_trusted(path)) return path;
  }
  return std::nullopt;
}

}  // namespace

void declare_marks_options(CLI::App& app, MarksChoice& choice) {
  app.add_flag("--no-marks", choice.no_marks, "do not ask the job for its marks (phases, steps, metrics)");
  app.add_flag("--no-nvtx", choice.no_nvtx,
               "do not load a library into programs that use NVTX, to have its ranges as phases");
}

JobMarks JobMarks::prepare(const MarksChoice& choice) {
  JobMarks job;
  if (choice.no_marks) {
    job.why_not_ = "not wanted (--no-marks)";
    return job;
  }
  auto directory = marks::RingDirectory::make(places());
  if (!directory) {
    job.why_not_ = directory.error().what;
    return job;
  }
  job.environment_.push_back(fmt::format("{}={}", HEADROOM_MARKS_VARIABLE, directory->path()));
  job.directory_.emplace(std::move(*directory));
  const auto library = nvtx_library();
  const auto taken = cli::environment(kNvtxVariable);
  if (choice.no_nvtx)
    job.no_nvtx_ = std::string(kNoteNvtxNotWanted) + " (--no-nvtx)";
  else if (taken && !taken->empty() && taken != library)
    job.no_nvtx_ = fmt::format("{} {}: {}", kNvtxVariable, kNoteNvtxTaken, *taken);
  else if (!library)
    job.no_nvtx_ = fmt::format("there is no {} beside this program", kNvtxLibrary);
  else
    job.environment_.push_back(fmt::format("{}={}", kNvtxVariable, *library));
  return job;
}

void JobMarks::add_to(SessionOptions& session, Nanos since) const {
  EvidenceSource source{.tier = 'X', .name = "the marks", .where = ReadOn::kOwnThread, .why_not = why_not_};
  if (directory_) {
    source.interval = kLooks;
    source.open = [path = directory_->path(), place = directory_->place(), since]() -> Result<OpenSource> {
      marks::remove_stale_rings(place);
      OpenSource opened;
      auto reader = std::make_unique<marks::MarksReader>(marks::MarksOptions{.directory = path, .since = since});
      opened.before_last_look = [raw = reader.get()] { raw->end_with_next_read(); };
      opened.nothing_seen = [raw = reader.get()] { return raw->took_any() ? "" : "the job set none"; };
      opened.readers.push_back(std::move(reader));
      return opened;
    };
  }
  session.sources.push_back(std::move(source));
}

void JobMarks::remove() { directory_.reset(); }

}  // namespace headroom::cli
