// SPDX-License-Identifier: Apache-2.0
#include "cli/counted_times.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "base/filesystem.h"
#include "base/regular_file.h"
#include "cli/environment.h"
#include "cli/output.h"

namespace headroom::cli {

namespace {

using exposition::Counted;

constexpr std::size_t kMostCounted = 100, kMostCountedHere = 64;
constexpr std::size_t kLargestCounted = 64 << 10;

bool is_a_name(std::string_view id) {
  constexpr std::size_t kLongestId = 64;
  return !id.empty() && id.size() <= kLongestId &&
         std::all_of(id.begin(), id.end(), [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); });
}

// Of recordings that nobody has asked of for the longest time: they have long ended.
void remove_the_oldest(const std::string& folder) {
  std::error_code failed;
  std::vector<std::pair<std::filesystem::file_time_type, std::filesystem::path>> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failed))
    if (entry.path().filename() != "lock") files.emplace_back(entry.last_write_time(failed), entry.path());
  if (files.size() <= kMostCounted) return;
  std::sort(files.begin(), files.end());
  for (std::size_t i = 0; i + kMostCounted < files.size(); ++i) std::filesystem::remove(files[i].second, failed);
}

// Where it lies, held against others that count.
struct KeptCount {
  std::string path;
  Fd lock;
  bool there = false;
  Counted counted;
};

Result<KeptCount> kept_count(const std::string& id, bool goes_on) {
  HR_TRY(const std::string state, users_state_folder());
  const std::string folder = state + "/counted";
  KeptCount kept{.path = folder + "/" + id};
  std::error_code failed;
  if (!goes_on && !std::filesystem::exists(kept.path, failed)) return kept;
  HR_TRYV(make_private_folder(folder));
  HR_TRY(kept.lock, locked_file(folder + "/lock"));
  const auto text = read_regular(kept.path, kLargestCounted);
  auto counted = text ? exposition::counted_of(*text) : std::nullopt;
  kept.there = counted && counted->recording == id;
  if (kept.there) kept.counted = std::move(*counted);
  if (!kept.there && goes_on) remove_the_oldest(folder);
  return kept;
}

}  // namespace

Counted CountedTimes::count(const Recording& recording, const Explanation& explanation) {
  const std::string& id = recording.meta.id;
  Counted counted;
  if (const auto found = here_.find(id); found != here_.end()) counted = found->second;
  const bool growing = goes_on(recording.meta);
  auto kept =
      is_a_name(id) ? kept_count(id, growing) : Result<KeptCount>(fail(Errc::kUnsupported, "no id that names a file"));
  if (kept && kept->there && kept->counted.until >= counted.until) counted = kept->counted;
  const Counted before = counted;
  exposition::count_on(counted, explanation, exposition::countable(explanation));
  if (counted == before) return counted;
  if (kept && kept->lock) (void)replace_private_file(kept->path, to_text(counted));  // else it is known here
  if (!growing && !here_.contains(id)) return counted;
  if (here_.size() >= kMostCountedHere && !here_.contains(id)) here_.clear();
  return here_[id] = counted;
}

}  // namespace headroom::cli
