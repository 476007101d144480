// SPDX-License-Identifier: Apache-2.0
#include "cli/job_files.h"

#include <sys/stat.h>
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/ids.h"
#include "base/names.h"
#include "base/secrets.h"
#include "base/strings.h"
#include "base/time.h"
#include "base/visible.h"
#include "model/entities.h"
#include "storage/find_storage.h"

namespace headroom::cli {

namespace {

constexpr std::size_t kLargestFile = std::size_t{4} << 20;
constexpr std::size_t kLongestText = 80;

std::string text_at(const CodeLine& code, Nanos before) {
  struct stat info {};
  if (!code.file.starts_with('/') || ::stat(code.file.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return "";
  if (info.st_mtim.tv_sec * kSecond + info.st_mtim.tv_nsec > before) return "";
  const auto file = read_file(code.file, kLargestFile);
  if (!file) return "";
  std::string_view rest = *file;
  for (std::int32_t line = 1; line < code.line; ++line) {
    const auto end = rest.find('\n');
    if (end == std::string_view::npos) return "";
    rest.remove_prefix(end + 1);
  }
  const std::string_view text = trim(rest.substr(0, rest.find('\n')));
  if (text.empty() || text.find('\0') != std::string_view::npos || is_secret_name(text)) return "";
  const std::string shown = visible(hide_secrets(text));
  std::size_t end = 0;
  while (end < std::min(shown.size(), kLongestText))
    end += std::max<std::size_t>(1, utf8_length(std::string_view(shown).substr(end)));
  return end < shown.size() ? shown.substr(0, end) + "..." : shown;
}

// When the job's first process began: it may have run for long when it was recorded.
Nanos begin_of_job(const Recording& recording) {
  Nanos begin = recording.meta.start;
  for (const SourceId id : recording.all(SourceKind::kProcess)) {
    const Process process = process_of(recording.sources[static_cast<std::size_t>(id)]);
    if (process.in_job && process.start > 0) begin = std::min(begin, process.start);
  }
  return begin;
}

}  // namespace

SourceText source_text_of(const Recording& recording) {
  const RecordingMeta& meta = recording.meta;
  if (meta.boot_id != boot_id() || meta.start_realtime == 0) return {};
  return [before = meta.start_realtime - (meta.start - begin_of_job(recording))](const CodeLine& code) {
    return text_at(code, before);
  };
}

namespace {

namespace fs = std::filesystem;
constexpr std::size_t kMostStorages = 256;  // that are looked into

// Relative to the job's folder where they are.
void add_named(const RecordingMeta& meta, std::string_view word, std::set<std::string>& named) {
  for (const std::string& file : files_in_word(word))
    if (named.size() < kMostStorages) named.insert((fs::path(meta.cwd) / file).lexically_normal());
}

std::vector<std::string> written_meanwhile(const RecordingMeta& meta) {
  std::vector<std::string> files;
  std::error_code error;
  fs::directory_iterator entry(meta.cwd, error);
  for (std::size_t looks = 0; !error && entry != fs::directory_iterator() && looks < 4 * kMostStorages; ++looks) {
    struct stat info {};
    const std::string path = entry->path();
    if (::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && files.size() < kMostStorages &&
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
