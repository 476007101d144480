// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "base/locked_folder.h"
#include "base/result.h"

namespace headroom::marks {

// The directory in which a job's processes make their rings (wire/marks.h): the recorder's own, mode 0700, locked.
class RingDirectory {
 public:
  // In the first of `places` that can hold it: absolute paths of directories, tried in turn.
  [[nodiscard]] static Result<RingDirectory> make(const std::vector<std::string>& places);

  [[nodiscard]] const std::string& path() const { return folder_.path(); }
  [[nodiscard]] const std::string& place() const { return place_; }
  void remove() { folder_.remove(); }  // with what is in it; what a process has mapped it keeps

 private:
  RingDirectory(std::string place, LockedFolder folder) : place_(std::move(place)), folder_(std::move(folder)) {}

  std::string place_;
  LockedFolder folder_;
};

// Removes what recorders of this user that were killed have left in `place`; gives how many.
int remove_stale_rings(const std::string& place);

}  // namespace headroom::marks
