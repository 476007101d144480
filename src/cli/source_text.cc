// SPDX-License-Identifier: Apache-2.0
#include "cli/source_text.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/fd.h"
#include "base/ids.h"
#include "base/names.h"
#include "base/secrets.h"
#include "base/strings.h"
#include "base/time.h"
#include "base/visible.h"
#include "model/entities.h"

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

}  // namespace headroom::cli
