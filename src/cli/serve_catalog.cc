// SPDX-License-Identifier: Apache-2.0
#include "cli/serve_catalog.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <utility>

#include "base/answers.h"
#include "base/fnv.h"
#include "base/secrets.h"
#include "base/strings.h"
#include "batch/folder.h"
#include "batch/folder_lock.h"
#include "batch/journal.h"
#include "cli/environment.h"
#include "cli/growing_recording.h"
#include "cli/open_recording.h"
#include "model/entities.h"
#include "record/reader.h"
#include "storage/find_storage.h"

namespace headroom::cli {

namespace {

namespace fs = std::filesystem;

constexpr const char* kBox = "";  // no path: the key of what is recorded of this machine, whichever that is

std::string key_of(char kind, const std::string& path) { return fmt::format("{}{:016x}", kind, fnv1a(path)); }

std::string absolute(const std::string& path) {
  std::error_code error;
  const auto whole = fs::absolute(path, error);
  return error ? path : whole.lexically_normal().string();
}

// Logs, traces and text forms have no summary to read.
Result<RecordingSummary> summary_of_import(const std::string& path, std::int64_t bytes) {
  HR_TRY(const OpenedRecording opened, open_recording(path, {}, {.leave_out = metrics_not_viewed()}));
  RecordingSummary summary;
  summary.meta = opened.recording.meta;
  summary.devices = static_cast<std::int64_t>(opened.recording.all(SourceKind::kGpu).size());
  summary.bytes = bytes;
  return summary;
}

// Where the batch of a recording may lie, by its command and by what is in the folder in which it was started.
std::vector<std::string> folders_of(const RecordingMeta& meta) {
  constexpr std::string_view kFolder = "--folder=";
  constexpr std::size_t kMost = 64;
  std::vector<std::string> folders;
  for (std::size_t i = 2; i < meta.command.size() && meta.command[i] != "--"; ++i) {
    const std::string& word = meta.command[i];
    if (word.starts_with(kFolder))
      return {(fs::path(meta.cwd) / word.substr(kFolder.size())).lexically_normal().string()};
    if (!word.starts_with('-') && folders.empty())
      folders.push_back((fs::path(meta.cwd) / word).replace_extension(".batch").lexically_normal().string());
  }
  std::error_code error;
  for (fs::directory_iterator entry(meta.cwd, error), end; !error && entry != end && folders.size() < kMost;
       entry.increment(error))
    if (entry->path().extension() == ".batch") folders.push_back(entry->path().lexically_normal().string());
  return folders;
}

bool runs(const std::string& folder) {
  const auto state = batch::holder_of(folder).state;
  return state == batch::Holder::State::kRuns || state == batch::Holder::State::kStopped;
}

// A journal learns of its recording at the end of a run; until then both began together.
bool is_of(const batch::Run& run, const std::string& path, const RecordingMeta& meta) {
  constexpr Nanos kTogether = 20 * kSecond;
  if (run.recording.empty()) return std::abs(run.start - meta.start_realtime) < kTogether;
  return run.recording == path || last_part(run.recording) == last_part(path);
}

// "" for a server of a database.
std::string file_of_storage(const std::string& what) {
  constexpr std::string_view kSqlite = "sqlite:///";
  if (what.starts_with(kSqlite)) return what.substr(kSqlite.size());
  return what.find("://") == std::string::npos ? what : "";
}

}  // namespace

Result<void> Catalog::name(const std::string& what) {
  const bool is_url = what.find("://") != std::string::npos;
  if (!is_url) HR_TRYV(answers(what));
  if (is_url || find_storage({what})) {
    const std::string shown = hide_secrets(what);
    const std::string file = file_of_storage(what);
    studies_.push_back({{key_of('s', what), shown, last_part(shown), ""}, what, file, trace_of(file)});
    return {};
  }
  std::error_code error;
  if (fs::is_directory(what, error) || what.ends_with(".toml")) {
    HR_TRY(const std::string folder, batch::find_folder(what));
    batches_[absolute(folder)] = new_batch(absolute(folder));
    return {};
  }
  HR_TRY(const std::string path, path_of_recording(what));
  if (path == "-") return fail(Errc::kInvalidInput, "serve: standard input can be read only once", "name a file");
  if (!fs::exists(path, error))
    return fail(Errc::kNotFound, fmt::format("serve: there is no {}", path),
                "a recording, a log, the folder of a batch, or a storage of Optuna");
  named_.push_back(absolute(path));
  return {};
}

// This machine's comes first, then recordings named on the command line and those of the shelf, the newest first.
std::vector<std::string> Catalog::paths() const {
  std::vector<std::string> paths;
  if (!of_box_.path.empty()) paths.push_back(of_box_.path);
  paths.insert(paths.end(), named_.begin(), named_.end());
  if (const auto shelf = users_shelf())
    for (const std::string& name : shelf->names()) {
      std::string path = shelf->directory() + "/" + name;
      if (std::find(paths.begin(), paths.end(), path) == paths.end()) paths.push_back(std::move(path));
    }
  return paths;
}

Catalog::Recording Catalog::read(const std::string& path) const {
  Recording recording{.trace = trace_of(path), .read_at = boottime_now()};
  ShelfEntry& entry = recording.shown.entry;
  recording.shown.key = key_of('r', path == of_box_.path ? kBox : path);
  if (path == of_box_.path) recording.shown.label = of_box_.name;
  entry.path = path;
  entry.name = last_part(path);
  entry.bytes = recording.trace[1] + recording.trace[4];
  entry.modified = recording.trace[2];
  const auto foreign = [&] {
    const auto format = format_of_file(path);
    return format && *format != LogFormat::kRecording;
  };
  auto summary = !path.ends_with(".hrec") && foreign() ? summary_of_import(path, entry.bytes) : summarize(path);
  if (summary)
    entry.summary = std::move(*summary);
  else
    entry.problem = summary.error().what;
  return recording;
}

Catalog::Changes Catalog::look(const std::function<bool(const std::string&)>& due) {
  Changes changes;
  looked_at_ = boottime_now();
  const std::string of_box_before = std::exchange(of_box_, box_ == nullptr ? ServedBox::Shown() : box_->shown()).path;
  if (of_box_.path != of_box_before)  // kept, it is one of the others from now on
    std::erase_if(recordings_, [](const Recording& recording) { return recording.shown.key == key_of('r', kBox); });
  std::map<std::string, Recording> before;
  for (Recording& recording : recordings_) before.emplace(recording.path(), std::move(recording));
  recordings_.clear();
  for (const std::string& path : paths()) {
    auto old = before.extract(path);
    const bool silent = old && old.mapped().goes_on() && looked_at_ - old.mapped().read_at > kSilent;
    if (old && !silent && old.mapped().trace == trace_of(path)) {
      recordings_.push_back(std::move(old.mapped()));
    } else {
      recordings_.push_back(read(path));
      Recording& now = recordings_.back();
      const bool turned = !old || old.mapped().state() != now.state();
      now.told = !old ? now.trace : turned ? FileTrace{} : old.mapped().told;
      changes.list = changes.list || turned;
      if (now.shown.entry.summary && now.shown.entry.summary->meta.origin == "batch") find_batches(now);
    }
    Recording& now = recordings_.back();
    if (now.trace == now.told || (now.goes_on() && !due(path))) continue;
    now.told = now.trace;
    changes.recordings.push_back(now.shown.key);
  }
  changes.list = changes.list || !before.empty();
  constexpr std::size_t kMostGone = 1000;
  if (gone_.size() > kMostGone) gone_.clear();
  for (const auto& [path, recording] : before) gone_[recording.shown.key] = path;
  look_at_batches(changes);
  look_at_studies(changes);
  return changes;
}

void Catalog::find_batches(const Recording& recording) {
  constexpr Nanos kYoung = 60 * kSecond;  // its batch may come to its folder a moment later
  const RecordingMeta& meta = recording.shown.entry.summary->meta;
  if (meta.host != host_name() || meta.cwd.empty() || searched_.contains(recording.path())) return;
  if (!recording.goes_on() || meta.end - meta.start > kYoung) searched_.insert(recording.path());
  for (const std::string& folder : folders_of(meta)) {
    std::error_code error;
    if (!fs::exists(batch::journal_path(folder), error)) continue;
    const auto contents = batch::read_journal(folder);
    if (!contents || std::none_of(contents->runs.begin(), contents->runs.end(),
                                  [&](const batch::Run& run) { return is_of(run, recording.path(), meta); }))
      continue;
    add_batch(folder, recording);
    searched_.insert(recording.path());
    return;
  }
}

void Catalog::add_batch(const std::string& folder, const Recording& recording) {
  Batch& batch = batches_[folder];
  const Nanos start = recording.shown.entry.summary->meta.start_realtime;
  if (batch.shown.key.empty()) batch = new_batch(folder);
  if (start < batch.recorded) return;  // of an earlier run
  batch.recorded = start;
  batch.shown.recording = recording.shown.key;
}

Catalog::Batch Catalog::new_batch(const std::string& folder) {
  return {.shown = {.key = key_of('b', folder), .path = folder, .name = last_part(folder)},
          .trace = trace_of(batch::journal_path(folder))};
}

void Catalog::look_at_batches(Changes& changes) {
  for (auto& [folder, batch] : batches_) {
    const FileTrace trace = trace_of(batch::journal_path(folder));
    const bool running = runs(folder);
    if (running != batch.shown.running) changes.list = true;
    if (trace != batch.trace || running != batch.shown.running) changes.batches.push_back(batch.shown.key);
    batch.trace = trace;
    batch.shown.running = running;
  }
}

// A trial may end many times a second, and an answer takes all of them.
void Catalog::look_at_studies(Changes& changes) {
  constexpr Nanos kApart = 10 * kSecond;
  const Nanos now = boottime_now();
  for (Study& study : studies_) {
    if (study.file.empty() || now - study.told_at < kApart) continue;
    const FileTrace trace = trace_of(study.file);
    if (trace == study.trace) continue;
    changes.studies.push_back(study.shown.key);
    study.trace = trace;
    study.told_at = now;
  }
}

report::Overview Catalog::overview() const {
  report::Overview overview{.version = HEADROOM_VERSION, .host = host_name(), .now = realtime_now()};
  for (const Recording& recording : recordings_) overview.recordings.push_back(recording.shown);
  for (const auto& [folder, batch] : batches_) {
    overview.batches.push_back(batch.shown);
    if (!recording(batch.shown.recording)) overview.batches.back().recording.clear();
  }
  for (const Study& study : studies_) overview.studies.push_back(study.shown);
  return overview;
}

const Catalog::Recording* Catalog::recording(const std::string& key) const {
  const auto found = std::find_if(recordings_.begin(), recordings_.end(),
                                  [&](const Recording& recording) { return recording.shown.key == key; });
  return found == recordings_.end() ? nullptr : &*found;
}

const std::string* Catalog::gone(const std::string& key) const {
  const auto found = gone_.find(key);
  return found == gone_.end() ? nullptr : &found->second;
}

const Catalog::Recording* Catalog::newest_live() const {
  const Recording* newest = nullptr;  // this machine's where there is no other
  for (const Recording& recording : recordings_)
    if (recording.goes_on() &&
        (newest == nullptr || newest->path() == of_box_.path ||
         recording.shown.entry.summary->meta.start_realtime > newest->shown.entry.summary->meta.start_realtime))
      newest = &recording;
  return newest;
}

const std::string* Catalog::batch_folder(const std::string& key) const {
  for (const auto& [folder, batch] : batches_)
    if (batch.shown.key == key) return &folder;
  return nullptr;
}

const std::string* Catalog::study_storage(const std::string& key) const {
  for (const Study& study : studies_)
    if (study.shown.key == key) return &study.storage;
  return nullptr;
}

}  // namespace headroom::cli
