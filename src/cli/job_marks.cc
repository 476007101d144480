// SPDX-License-Identifier: Apache-2.0
#include "cli/job_marks.h"

#include <sys/stat.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <filesystem>

#include "base/result.h"
#include "cli/environment.h"
#include "marks/marks_reader.h"
#include "model/notes.h"
#include "wire/marks.h"

namespace headroom::cli {

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

// What is loaded into the job must be nobody else's to change.
bool can_be_trusted(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) &&
         (info.st_uid == 0 || info.st_uid == ::geteuid()) && (info.st_mode & S_IWOTH) == 0;
}

// As it is installed, and as it is unpacked: from where this program lies.
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
