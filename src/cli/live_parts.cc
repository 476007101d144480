// SPDX-License-Identifier: Apache-2.0
#include "cli/live_parts.h"

#include <sys/random.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/duration.h"
#include "base/strings.h"
#include "device/nvml_reader.h"
#include "record/writer.h"

namespace headroom::cli {

namespace {

constexpr Nanos kShortestInterval = 10 * kMillisecond, kLongestInterval = 3600 * kSecond;

std::string host_name() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

Result<OpenRecording> open_recording(const std::string& output, const std::string& id) {
  const std::string path = output.empty() ? "/tmp/" + id + ".hrec" : output;
  HR_TRY(std::unique_ptr<Writer> writer, Writer::create(path));
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

}  // namespace

void declare_live_options(CLI::App& app, LiveOptions& options) {
  app.add_option("-i,--interval", options.interval, "time between samples: 100ms, 1s (default)")->type_name("TIME");
  app.add_option("-o,--output", options.output, "where the recording goes; default: $XDG_STATE_HOME/headroom")
      ->type_name("FILE");
  app.add_flag("--no-gpu", options.no_gpu, "leave the GPUs alone: record processes and host only");
}

Result<Nanos> interval_of(const LiveOptions& options) {
  HR_TRY(const Nanos interval, parse_duration(options.interval));
  if (interval < kShortestInterval || interval > kLongestInterval)
    return fail(Errc::kInvalidInput, fmt::format("an interval of {} cannot be kept", options.interval),
                "choose one between 10ms and 1h");
  return interval;
}

std::string new_recording_id() {
  std::uint64_t bits = 0;
  // Unlike std::random_device this raises no glibc version and cannot throw.
  if (::getrandom(&bits, sizeof bits, GRND_NONBLOCK) != static_cast<ssize_t>(sizeof bits))
    bits = static_cast<std::uint64_t>(realtime_now()) * std::uint64_t{0x9e3779b97f4a7c15} ^
           static_cast<std::uint64_t>(::getpid());
  return fmt::format("{:016x}", bits);
}

RecordingMeta meta_at(Nanos start, std::string id, std::string origin, Nanos interval) {
  RecordingMeta meta;
  meta.id = std::move(id);
  meta.origin = std::move(origin);
  meta.writer = "headroom " HEADROOM_VERSION;
  meta.host = host_name();
  if (const auto boot = read_file("/proc/sys/kernel/random/boot_id", 256)) meta.boot_id = trim(*boot);
  std::error_code ignored;
  meta.cwd = std::filesystem::current_path(ignored).string();
  meta.start = start;
  meta.start_realtime = realtime_now() - (boottime_now() - start);
  meta.interval = interval;
  return meta;
}

SessionOptions session_options(const LiveOptions& options, RecordingMeta meta, std::unique_ptr<host::TreeReader> tree,
                               GivenGpus given) {
  (void)given;
  SessionOptions session;
  session.interval = meta.interval;
  session.open_recording = [output = options.output, id = meta.id] { return open_recording(output, id); };
  // The tree outlives the GPU reader, which asks it who a process is: both belong to the session's sampler.
  host::TreeReader* raw = tree.get();
  auto shared = std::make_shared<std::unique_ptr<host::TreeReader>>(std::move(tree));
  session.open_host = [shared] {
    std::vector<std::unique_ptr<Reader>> readers;
    readers.push_back(std::move(*shared));
    return readers;
  };
  if (options.no_gpu) {
    session.why_no_gpus = "not wanted (--no-gpu)";
  } else {
    session.open_gpus = [raw, since = meta.start]() -> Result<GpuReaders> {
      NvmlReaderOptions nvml;
      nvml.describe = [raw](std::int64_t pid) { return raw->describe(pid); };
      nvml.since = since;
      HR_TRY(std::unique_ptr<NvmlReader> reader, NvmlReader::open(std::move(nvml)));
      GpuReaders gpus;
      gpus.gpus = reader->devices().size();
      gpus.before_last_look = [nvml_reader = reader.get()] { nvml_reader->ask_all(); };
      gpus.readers.push_back(std::move(reader));
      return gpus;
    };
  }
  session.meta = std::move(meta);
  return session;
}

void say(std::string_view what, std::string_view next) {
  std::string text = fmt::format("headroom: {}\n", what);
  if (!next.empty()) text += fmt::format("  {}\n", next);
  (void)write_all(STDERR_FILENO, text);
}

void leave(int code) {
  std::fflush(nullptr);
  ::_exit(code);
}

}  // namespace headroom::cli
