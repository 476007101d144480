// SPDX-License-Identifier: Apache-2.0
#include "marks/directory.h"

#include "base/filesystem.h"

namespace headroom::marks {

namespace {

constexpr const char* kRings = "headroom-marks";
constexpr std::uint64_t kLeastFree = 64U << 20;  // bytes: others live off that memory, too

}  // namespace

Result<RingDirectory> RingDirectory::make(const std::vector<std::string>& places) {
  Error why{.code = Errc::kNotFound, .what = "there is no place for the marks of the job", .hint = ""};
  for (const std::string& place : places) {
    if (const auto free = free_bytes(place); free && *free < kLeastFree) {
      why = {.code = Errc::kNoSpace, .what = fmt::format("{} is full", place), .hint = ""};
      continue;
    }
    auto folder = LockedFolder::make(place, kRings, LockedFolder::Lock::kNeeded);
    if (folder) return RingDirectory(place, std::move(*folder));
    why = folder.error();
  }
  return tl::unexpected(why);
}

int remove_stale_rings(const std::string& place) { return remove_stale_folders(place, kRings); }

}  // namespace headroom::marks
