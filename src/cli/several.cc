// SPDX-License-Identifier: Apache-2.0
#include "cli/several.h"

#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <utility>

#include "base/answers.h"
#include "base/human.h"
#include "base/visible.h"
#include "cli/job_files.h"
#include "cli/output.h"
#include "diagnose/joined.h"
#include "model/parts.h"

namespace headroom::cli {

namespace {

namespace fs = std::filesystem;

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return answers(path) && fs::is_directory(path, ignored);
}

// Reads one after the other and hands it on; what cannot be read ends it, or is said and left out.
Result<void> read_each(std::span<const std::string> paths, const ImportOptions& import, const ReadOptions& read,
                       Unreadable unreadable, const std::function<void(OpenedRecording)>& take) {
  std::size_t taken = 0;
  for (const std::string& path : paths) {
    auto opened = open_recording(path, import, read);
    if (opened) {
      ++taken;
      take(std::move(*opened));
      opened = fail(Errc::kNotFound, "taken");
    } else if (unreadable == Unreadable::kRefuse) {
      Error error = opened.error();
      error.hint = fmt::format("name the others alone{}", error.hint.empty() ? "" : "; " + error.hint);
      return tl::unexpected(std::move(error));
    } else {
      say(fmt::format("left out: {}", opened.error().what));
    }
  }
  if (taken > 0) return {};
  return fail(Errc::kNotFound, fmt::format("none of {} can be read", count_of(paths.size(), "recording")));
}

PartToJoin part_to_join(const OpenedRecording& opened) {
  return {opened.path, opened.recording.meta, gpus_of_part(opened.recording)};
}

}  // namespace

std::vector<std::string> recordings_below(const std::string& folder) {
  std::error_code error;
  fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, error);
  std::vector<std::string> paths;
  for (const fs::recursive_directory_iterator end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    if (at->path().extension() == ".hrec" && at->is_regular_file(ignored)) paths.push_back(at->path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

bool mean_several(std::span<const std::string> words) {
  return words.size() > 1 ||
         (words.size() == 1 && is_folder(words.front()) && !recordings_below(words.front()).empty());
}

Result<std::vector<std::string>> several(std::span<const std::string> words) {
  std::vector<std::string> paths;
  for (const std::string& word : words) {
    HR_TRYV(answers(word));
    if (!is_folder(word)) {
      HR_TRY(std::string path, path_of_recording(word));
      paths.push_back(std::move(path));
      continue;
    }
    std::vector<std::string> below = recordings_below(word);
    if (below.empty())
      return fail(Errc::kNotFound, fmt::format("{}: no .hrec file lies in it", word),
                  "headroom run -o FOLDER/ -- CMD writes one there");
    paths.insert(paths.end(), std::make_move_iterator(below.begin()), std::make_move_iterator(below.end()));
  }
  std::vector<std::string> once;
  for (std::string& path : paths)
    if (std::find(once.begin(), once.end(), path) == once.end()) once.push_back(std::move(path));
  return once;
}

Result<OpenedRecording> open_recordings(std::span<const std::string> words, const ImportOptions& import,
                                        const ReadOptions& read) {
  if (words.size() == 1) return open_recording(words.front(), import, read);
  HR_TRY(const std::vector<std::string> paths, several(words));
  return open_merged(paths, import, read);
}

Result<OpenedRecording> open_merged(std::span<const std::string> paths, const ImportOptions& import,
                                    const ReadOptions& read, Unreadable unreadable) {
  std::vector<PartToJoin> parts;
  std::vector<Recording> recordings;
  OpenedRecording all;
  HR_TRYV(read_each(paths, import, read, unreadable, [&](OpenedRecording opened) {
    parts.push_back(part_to_join(opened));
    if (opened.file_bytes) all.file_bytes = all.file_bytes.value_or(0) + *opened.file_bytes;
    recordings.push_back(std::move(opened.recording));
  }));
  if (recordings.size() == 1) {
    all.path = parts.front().name;
    all.recording = std::move(recordings.front());
    return all;
  }
  HR_TRYV(can_be_joined(parts));
  all.recording = merged(std::move(recordings));
  return all;
}

Result<Explanation> explain_merged(std::span<const std::string> paths, const ImportOptions& import,
                                   const ExplainOptions& options) {
  // What is read of one is of other sizes than what is read of the next: in pages of its own it can be given back.
  constexpr int kPagesOfItsOwn = 64 << 10;
  ::mallopt(M_MMAP_THRESHOLD, kPagesOfItsOwn);
  std::vector<PartToJoin> parts;
  std::vector<ExplainedPart> explained;
  HR_TRYV(read_each(paths, import, {.leave_out = metrics_not_explained()}, Unreadable::kRefuse,
                    [&](const OpenedRecording& opened) {
                      ExplainOptions own = options;
                      own.path = opened.path;
                      own.file_bytes = opened.file_bytes;
                      own.source_text = source_text_of(opened.recording);
                      parts.push_back(part_to_join(opened));
                      explained.push_back(explain_part(opened.recording, own));
                    }));
  HR_TRYV(can_be_joined(parts));
  return join_parts(std::move(explained), options);
}

}  // namespace headroom::cli
