// SPDX-License-Identifier: Apache-2.0
#include "cli/fleet_files.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "base/answers.h"
#include "batch/folder.h"
#include "batch/journal.h"
#include "cli/compare_sides.h"
#include "cli/open_recording.h"
#include "import/import.h"
#include "record/reader.h"

namespace headroom::cli {

namespace {

namespace fs = std::filesystem;

std::string in_words(const Error& error, const std::string& path) {
  std::string what = error.what;
  if (what.starts_with(path + ": ")) what.erase(0, path.size() + 2);
  return error.hint.empty() ? what : what + " (" + error.hint + ")";
}

class Finder {
 public:
  FleetFiles find(const std::vector<std::string>& named) {
    for (const std::string& what : named) add_named(what);
    leave_copies_out();
    const auto rank = [](const FleetFile& file) {
      if (!file.summary) return 2;
      const RecordingMeta& meta = file.summary->meta;
      return meta.origin == "run" || meta.origin == "batch" || meta.job_pid ? 0 : 1;
    };
    const auto order = [&](const FleetFile& file) {
      return std::tuple(rank(file), file.summary ? file.summary->meta.start_realtime : 0, std::cref(file.path).get());
    };
    std::stable_sort(files_.list.begin(), files_.list.end(),
                     [&](const FleetFile& x, const FleetFile& y) { return order(x) < order(y); });
    return std::move(files_);
  }

 private:
  void add_named(const std::string& what) {
    if (const auto there = answers(what); !there) return unreadable(what, there.error());
    std::error_code ignored;
    if (fs::is_directory(what, ignored)) return search(what);
    if (what.ends_with(".toml")) {
      const auto folder = batch::find_folder(what);
      return folder ? search(*folder) : unreadable(what, folder.error());
    }
    const auto path = path_of_recording(what);
    if (!path) return unreadable(what, path.error());
    if (*path == "-") {
      files_.unreadable.push_back({what, "standard input is no file: name one"});
      return;
    }
    add(*path, true);
  }

  // Links to folders are not followed.
  void search(const std::string& folder) {
    std::error_code error;
    fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, error);
    std::vector<std::string> paths, journals;
    for (const fs::recursive_directory_iterator end; !error && at != end; at.increment(error)) {
      std::error_code ignored;
      if (!at->is_regular_file(ignored)) continue;
      if (at->path().extension() == ".hrec") paths.push_back(at->path().string());
      if (at->path().filename() == "journal.sqlite") journals.push_back(at->path().parent_path().string());
    }
    if (error) files_.unreadable.push_back({folder, fmt::format("it cannot be searched: {}", error.message())});
    std::sort(paths.begin(), paths.end());
    std::sort(journals.begin(), journals.end());
    for (const std::string& path : paths) add(path, true);
    for (const std::string& journal : journals) add_batch(journal);
    if (paths.empty() && journals.empty() && !error)
      files_.left_out.push_back({folder, "no .hrec file and no batch lies in it"});
  }

  // Recordings of a batch lie where all do, unless somebody said otherwise.
  void add_batch(const std::string& folder) {
    const auto contents = batch::read_journal(folder);
    if (!contents) return unreadable(folder, contents.error());
    std::error_code ignored;
    for (const batch::Run& run : contents->runs)
      if (!run.recording.empty() && answers(run.recording) && fs::is_regular_file(run.recording, ignored))
        add(run.recording, false);
  }

  // `said`: somebody named it, and is told where it is left out.
  void add(const std::string& path, bool said) {
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0) {
      const auto [first, is_new] = known_.emplace(std::pair(status.st_dev, status.st_ino), path);
      if (!is_new) {
        if (said && first->second != path)
          files_.left_out.push_back({path, fmt::format("it is the same file as {}", first->second)});
        return;
      }
    }
    ++files_.found;
    const auto format = format_of_file(path);
    if (!format || *format != LogFormat::kRecording) {
      if (path.ends_with(".hrec"))
        return format ? (void)files_.unreadable.push_back({path, "it is no recording"})
                      : unreadable(path, format.error());
      files_.list.push_back({path, std::nullopt});
      return;
    }
    auto summary = summarize(path);
    if (!summary) return unreadable(path, summary.error());
    files_.list.push_back({path, std::move(*summary)});
  }

  // Of recordings with one id the one that holds most stays.
  void leave_copies_out() {
    const auto holds = [](const FleetFile& file) {
      const RecordingMeta& meta = file.summary->meta;
      return std::pair(meta.end - meta.start, file.summary->bytes);
    };
    std::map<std::string, std::size_t> best;
    std::set<std::size_t> out;
    for (std::size_t i = 0; i < files_.list.size(); ++i) {
      if (!files_.list[i].summary || files_.list[i].summary->meta.id.empty()) continue;
      const auto [first, is_new] = best.emplace(files_.list[i].summary->meta.id, i);
      if (is_new) continue;
      const bool better = holds(files_.list[i]) > holds(files_.list[first->second]);
      out.insert(better ? first->second : i);
      if (better) first->second = i;
    }
    std::vector<FleetFile> kept;
    for (std::size_t i = 0; i < files_.list.size(); ++i) {
      FleetFile& file = files_.list[i];
      if (!out.contains(i)) continue;
      const std::string& whole = files_.list[best.at(file.summary->meta.id)].path;
      files_.left_out.push_back({file.path, fmt::format("it is a copy of {}, by its id", whole)});
    }
    for (std::size_t i = 0; i < files_.list.size(); ++i)
      if (!out.contains(i)) kept.push_back(std::move(files_.list[i]));
    files_.list = std::move(kept);
  }

  void unreadable(const std::string& path, const Error& error) {
    files_.unreadable.push_back({path, in_words(error, path)});
  }

  FleetFiles files_;
  std::map<std::pair<dev_t, ino_t>, std::string> known_;
};

}  // namespace

FleetFiles fleet_files(const std::vector<std::string>& named) { return Finder().find(named); }

}  // namespace headroom::cli
