// SPDX-License-Identifier: Apache-2.0
#include "cli/live_parts.h"

#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>

#include "base/answers.h"
#include "base/duration.h"
#include "base/filesystem.h"
#include "base/human.h"
#include "base/ids.h"
#include "base/strings.h"
#include "cli/arguments.h"
#include "cli/environment.h"
#include "device/nvml_reader.h"
#include "host/host_reader.h"
#include "model/visible.h"
#include "python/attach.h"
#include "python/stack_reader.h"
#include "record/shelf.h"
#include "record/writer.h"

namespace headroom::cli {

namespace {

constexpr Nanos kShortestInterval = 10 * kMillisecond, kLongestInterval = 3600 * kSecond;
constexpr int kMostTasks = 1'000'000;  // of which the stacks of one are read
constexpr int kMostStacks = 50;        // per second: 1,000 slow a process down by 6 %, 100 are lost in the noise

Result<std::string> path_on_shelf(const RecordingMeta& meta) {
  HR_TRY(const Shelf shelf, users_shelf());
  HR_TRY(std::string path, shelf.new_path(meta.command, meta.start_realtime));
  if (const std::string network = shelf.network_filesystem(); !network.empty())
    say(fmt::format("{} is on a network file system ({}): the recording can be read once it has ended",
                    shelf.directory(), network),
        "--output or XDG_STATE_HOME choose a local disk");
  return path;
}

// A job is not left unrecorded for want of a folder. Where none can be made, what creates the file says why.
void make_folder_of(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::create_directories(directory_of(path), ignored))
    say(fmt::format("made the folder {} for the recording", directory_of(path)));
}

// The first of "NAME-2.hrec", "NAME-3.hrec", … that is not there; `wanted` where a folder or a device is, a mistake.
std::string next_name(const std::string& wanted) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(wanted, ignored)) return wanted;
  const std::filesystem::path path(wanted);
  for (int n = 2;; ++n) {
    auto next = path.parent_path() / fmt::format("{}-{}{}", path.stem().string(), n, path.extension().string());
    if (!std::filesystem::exists(next, ignored)) return next.string();
  }
}

// Of recorders that begin together each finds the same name free, and one of them makes the file: the others go on to
// the next name. A job is not left unrecorded because its last recording is still there.
Result<std::unique_ptr<Writer>> create_writer(const LiveOptions& live, const RecordingMeta& meta) {
  WriterOptions options;
  options.keep_secrets = live.keep_environment;
  std::string path = live.output;
  constexpr int kMostTries = 1000;
  for (int tries = 1;; ++tries) {
    if (live.output.empty()) {
      HR_TRY(path, path_on_shelf(meta));
    }
    HR_TRYV(answers(path));
    make_folder_of(path);
    auto writer = Writer::create(path, options);
    const bool taken = !writer && writer.error().code == Errc::kBusy;
    if (!taken || tries == kMostTries || !(live.output.empty() || live.next_if_taken)) return writer;
    if (live.output.empty()) continue;
    const std::string next = next_name(live.output);
    if (next == live.output) return writer;
    path = next;
  }
}

Result<OpenRecording> begin_recording(const LiveOptions& live, const RecordingMeta& meta) {
  HR_TRY(std::unique_ptr<Writer> writer, create_writer(live, meta));
  const std::string path = writer->path();
  if (!live.output.empty() && path != live.output)
    say(fmt::format("{} exists already: this recording goes to {}", live.output, path), "");
  Writer* raw = writer.get();
  return OpenRecording{.sink = std::move(writer),
                       .path = path,
                       .close = [raw] { return raw->close(); },
                       .failure = [raw]() -> std::optional<Error> {
                         const WriterStatus status = raw->status();
                         if (status.state == WriterState::kDiskFull) return Error{Errc::kNoSpace, status.message, ""};
                         if (status.state == WriterState::kFailed) return Error{Errc::kIo, status.message, ""};
                         return std::nullopt;
                       }};
}

// The job has this process's environment. Nothing is known under a mask of MIG instances: they are no devices here.
std::vector<Source> given_by_environment(const std::vector<Device>& devices) {
  const auto mask = environment("CUDA_VISIBLE_DEVICES");
  if (mask && mask->starts_with("MIG-")) return {};
  const auto visible = visible_devices(devices, mask, environment("CUDA_DEVICE_ORDER")).ordinals;
  std::vector<std::string> given;
  for (const std::size_t i : visible) given.push_back(devices[i].uuid);
  return given_facts(devices, given);
}

Result<OpenSource> open_gpus(host::TreeReader& tree, Nanos since, GivenGpus given, bool fine_power) {
  NvmlReaderOptions options;
  options.fine_power = fine_power;
  options.path = nvml_library();
  options.describe = [&tree](std::int64_t pid) { return tree.describe(pid); };
  options.since = since;
  HR_TRY(std::unique_ptr<NvmlReader> reader, NvmlReader::open(std::move(options)));
  OpenSource gpus;
  gpus.gpus = reader->devices().size();
  gpus.before_last_look = [nvml = reader.get()] { nvml->ask_all(); };
  std::vector<Source> facts;
  if (given == GivenGpus::kByEnvironment) facts = given_by_environment(reader->devices());
  gpus.readers.push_back(std::move(reader));
  gpus.readers.push_back(std::make_unique<SourceFacts>(std::move(facts)));
  return gpus;
}

}  // namespace

namespace {

// "off", "on", a count and, of tasks, "1/N"; false: it is none of these.
bool read_stacks(std::string_view text, int usual, StacksOf of, LiveOptions& options) {
  constexpr std::string_view kOneIn = "1/";
  const bool of_some = of == StacksOf::kTasks && text.starts_with(kOneIn);
  const auto number = text == "on"    ? std::optional(usual)
                      : text == "off" ? std::optional(0)
                                      : parse_number<int>(of_some ? text.substr(kOneIn.size()) : text);
  if (!number || *number < (of_some ? 1 : 0) || *number > (of_some ? kMostTasks : kMostStacks)) return false;
  options.stacks = of_some ? usual : *number;
  options.stacks_one_in = of_some ? *number : 1;
  return true;
}

}  // namespace

void declare_stacks_option(CLI::App& app, LiveOptions& options, StacksOf of) {
  const bool tasks = of == StacksOf::kTasks;
  app.add_option_function<std::string>(
         "--stacks",
         [&options, of, tasks, usual = options.stacks](const std::string& text) {
           if (!read_stacks(text, usual, of, options))
             throw CLI::ValidationError(
                 "--stacks", fmt::format("'{}' is neither off, on{} nor a number from 0 to {}; {} is usual", text,
                                         tasks ? ", 1/N" : "", kMostStacks, usual));
         },
         fmt::format("Python stacks per second, read from outside; on: {}; off: none{}", options.stacks,
                     tasks ? "; 1/N: of one task in N" : ""))
      ->type_name(tasks ? "off|1/N|on|COUNT" : "off|on|COUNT");
}

void declare_live_options(CLI::App& app, LiveOptions& options) {
  app.add_option("-i,--interval", options.interval, "time between samples, such as 200ms; default: 1s")
      ->type_name("DURATION")
      ->check(duration_check());
  app.add_option("-o,--output", options.output, "where the recording goes; default: $XDG_STATE_HOME/headroom")
      ->type_name("FILE");
  app.add_flag("--no-gpu", options.no_gpu, "leave the GPUs alone: record processes and host only");
  declare_stacks_option(app, options);
  app.add_flag("--keep-environment", options.keep_environment,
               "write commands as they are: without it what looks like a secret in them becomes ***");
}

Result<Nanos> interval_of(const LiveOptions& options) {
  HR_TRY(const Nanos interval, parse_duration(options.interval));
  if (interval < kShortestInterval || interval > kLongestInterval)
    return fail(Errc::kInvalidInput, fmt::format("an interval of {} cannot be kept", options.interval),
                "choose one between 10ms and 1h");
  return interval;
}

RecordingMeta meta_at(Nanos start, std::string id, std::string origin, Nanos interval) {
  RecordingMeta meta;
  meta.id = std::move(id);
  meta.origin = std::move(origin);
  meta.writer = "headroom " HEADROOM_VERSION;
  meta.host = host_name();
  meta.boot_id = boot_id();
  meta.cwd = current_directory();
  meta.start = start;
  meta.start_realtime = realtime_now() - (boottime_now() - start);
  meta.interval = interval;
  return meta;
}

std::unique_ptr<host::TreeReader> make_tree(std::vector<std::int64_t> pids, const std::string& id, JobOf job_of) {
  host::TreeOptions options;
  options.pids = std::move(pids);
  options.recorder_pid = ::getpid();
  options.recorder_is_subreaper = job_of == JobOf::kRecorder;
  if (job_of == JobOf::kRecorder) options.environment_marker = recording_marker(id);
  // The virtual driver runs beside us; NVIDIA's names processes by the numbers they have outside of any container.
  options.driver_names_host_pids = foreign_pids();
  options.virtual_gpus = file_of_virtual_gpus();
  return std::make_unique<host::TreeReader>(std::move(options));
}

std::unique_ptr<host::TreeReader> make_tree_of_machine() {
  constexpr std::size_t kMost = 1000;
  host::TreeOptions options;
  options.recorder_pid = ::getpid();
  options.most_of_machine = kMost;
  return std::make_unique<host::TreeReader>(std::move(options));
}

std::string recording_marker(const std::string& id) { return "HEADROOM_RECORDING=" + id; }

SessionOptions session_options(const LiveOptions& options, RecordingMeta meta, std::unique_ptr<host::TreeReader> tree,
                               GivenGpus given) {
  SessionOptions session;
  session.interval = meta.interval;
  session.open_recording = [options, meta] { return begin_recording(options, meta); };
  EvidenceSource gpus{.tier = 'N', .name = "the driver", .where = ReadOn::kSamplerOnceOpen};
  // The reader asks the tree only while it is read: by then both belong to the session's sampler.
  if (!options.no_gpu)
    gpus.open = [raw = tree.get(), since = meta.start, given, fine_power = options.fine_power] {
      return open_gpus(*raw, since, given, fine_power);
    };
  else
    gpus.why_not = "not wanted (--no-gpu)";
  auto shared = std::make_shared<std::unique_ptr<host::TreeReader>>(std::move(tree));
  EvidenceSource host{.tier = 'P', .name = "the host"};
  host.open = [shared, job_pid = meta.job_pid]() -> Result<OpenSource> {
    OpenSource opened;
    opened.readers.push_back(std::move(*shared));
    opened.readers.push_back(std::make_unique<host::HostReader>(host::HostOptions{.root = "", .job_pid = job_pid}));
    return opened;
  };
  session.sources.push_back(std::move(gpus));
  session.sources.push_back(std::move(host));
  session.meta = std::move(meta);
  return session;
}

void add_stacks(SessionOptions& session, const LiveOptions& options, std::vector<std::int64_t> pids, JobOf job_of,
                const StacksOfTasks& tasks) {
  EvidenceSource stacks{.tier = 'Y', .name = "the Python stacks", .where = ReadOn::kOwnThread};
  if (options.stacks > 0) {
    stacks.interval = kSecond / options.stacks;
    stacks.open = [pids = std::move(pids), job_of, tasks, one_in = options.stacks_one_in,
                   interval = stacks.interval]() -> Result<OpenSource> {
      const bool own = job_of == JobOf::kRecorder;
      HR_TRYV(python::can_read_stacks(own ? python::Whose::kOwn : python::Whose::kOthers));
      OpenSource opened;
      opened.readers.push_back(
          std::make_unique<python::StackReader>(python::StackOptions{.pids = pids,
                                                                     .recorder_pid = ::getpid(),
                                                                     .recorder_is_subreaper = own,
                                                                     .one_in = one_in,
                                                                     .from_age = tasks.from_age,
                                                                     .most_of_core = tasks.most_of_core,
                                                                     .spread = interval}));
      return opened;
    };
  } else {
    stacks.why_not = "not wanted (--stacks off)";
  }
  session.sources.push_back(std::move(stacks));
}

void keep_shelf_small() {
  const auto shelf = users_shelf();
  if (!shelf) return;
  std::error_code error;
  std::uintmax_t bytes = 0;  // a quick sum: prune() opens every recording
  for (std::filesystem::directory_iterator entry(shelf->directory(), error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code vanished;
    const auto size = entry->file_size(vanished);
    if (!vanished) bytes += size;
  }
  if (error || bytes <= static_cast<std::uintmax_t>(kDefaultShelfBytes)) return;
  const PruneReport report = shelf->prune({.max_bytes = kDefaultShelfBytes}, realtime_now());
  if (!report.removed.empty())
    say(fmt::format("removed the {} oldest recordings: {} keeps {}", report.removed.size(), shelf->directory(),
                    human_bytes(kDefaultShelfBytes)),
        "headroom recordings lists them; copy what must stay");
}

void leave(int code) { ::_exit(output_code(code)); }

}  // namespace headroom::cli
