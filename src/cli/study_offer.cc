// SPDX-License-Identifier: Apache-2.0
#include "cli/study_offer.h"

#include <sys/stat.h>

#include <filesystem>
#include <set>
#include <vector>

#include "base/strings.h"
#include "model/entities.h"
#include "storage/find_storage.h"

namespace headroom::cli {

namespace {

namespace fs = std::filesystem;
constexpr std::size_t kMostFiles = 256;  // that are looked into

// Relative to the job's folder where they are.
void add_named(const RecordingMeta& meta, std::string_view word, std::set<std::string>& named) {
  for (const std::string& file : files_in_word(word))
    if (named.size() < kMostFiles) named.insert((fs::path(meta.cwd) / file).lexically_normal());
}

std::vector<std::string> written_meanwhile(const RecordingMeta& meta) {
  std::vector<std::string> files;
  std::error_code error;
  fs::directory_iterator entry(meta.cwd, error);
  for (std::size_t looks = 0; !error && entry != fs::directory_iterator() && looks < 4 * kMostFiles; ++looks) {
    struct stat info {};
    const std::string path = entry->path();
    if (::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && files.size() < kMostFiles &&
        info.st_mtim.tv_sec * kSecond + info.st_mtim.tv_nsec >= meta.start_realtime)
      files.push_back(path);
    entry.increment(error);
  }
  return files;
}

}  // namespace

std::string study_led_by(const Recording& recording) {
  const RecordingMeta& meta = recording.meta;
  if (meta.cwd.empty()) return "";
  std::set<std::string> named;
  for (const std::string& word : meta.command) add_named(meta, word, named);
  for (const SourceId id : recording.all(SourceKind::kProcess)) {
    const Process process = process_of(recording.sources[static_cast<std::size_t>(id)]);
    if (process.in_job)
      for (const std::string_view word : split(process.cmdline, ' ')) add_named(meta, word, named);
  }
  auto found = find_storage({named.begin(), named.end()});
  if (!found) found = find_storage(written_meanwhile(meta));
  return found ? fs::path(*found).lexically_proximate(meta.cwd).string() : "";
}

}  // namespace headroom::cli
