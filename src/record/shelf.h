// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/shelf.h"

namespace headroom {

// What may stay; everything else goes, oldest first. Recordings that are being written always stay.
struct PruneLimits {
  std::optional<std::int64_t> max_bytes;
  std::optional<Nanos> max_age;
  std::optional<std::size_t> keep;                // so many of the newest
  std::optional<std::vector<std::string>> among;  // of these only; all others stay
};
inline constexpr std::int64_t kDefaultShelfBytes = std::int64_t{2} << 30;

// The folder in which recordings lie unless told otherwise.
class Shelf {
 public:
  // $XDG_STATE_HOME/headroom, else $HOME/.local/state/headroom. Nothing is created.
  [[nodiscard]] static Result<Shelf> of_user(const std::optional<std::string>& xdg_state_home,
                                             const std::optional<std::string>& home);
  explicit Shelf(std::string directory) : directory_(std::move(directory)) {}

  [[nodiscard]] const std::string& directory() const { return directory_; }
  // "nfs", …: recordings there can be read only once they have ended, so people are to be told; "" on a local disk.
  [[nodiscard]] std::string network_filesystem() const;
  // A name that is free now, from the time and the command: "20261120T141503Z-train.py.hrec". Makes the folder.
  [[nodiscard]] Result<std::string> new_path(const std::vector<std::string>& command, Nanos realtime) const;
  // The names of all recordings, newest first; opens none of them.
  [[nodiscard]] std::vector<std::string> names() const;
  // All recordings, newest first.
  [[nodiscard]] std::vector<ShelfEntry> list() const;
  // Removes what exceeds the limits at Unix time `now`; what is left of recorders that were killed is tidied into plain
  // files.
  [[nodiscard]] PruneReport prune(const PruneLimits& limits, Nanos now, DryRun dry_run = DryRun::kNo) const;
  // Removes one recording by the name that list() shows. Not while it is being written.
  [[nodiscard]] Result<void> remove(const std::string& name) const;

 private:
  std::string directory_;
};

// Merges the log that a killed recorder (or a reader at the wrong moment) left beside a recording into it. Only for
// recordings that nobody writes.
[[nodiscard]] Result<void> tidy(const std::string& path);

}  // namespace headroom
