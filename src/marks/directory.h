// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

namespace headroom::marks {

// The directory in which a job's processes make their rings (wire/marks.h): the recorder's own, mode 0700. A lock on it
// that ends with its owner tells it from what a recorder that was killed has left behind.
class RingDirectory {
 public:
  // In the first of `places` that can hold it: absolute paths of directories, tried in turn.
  [[nodiscard]] static Result<RingDirectory> make(const std::vector<std::string>& places);

  RingDirectory(RingDirectory&&) noexcept = default;
  RingDirectory& operator=(RingDirectory&& other) noexcept;
  ~RingDirectory() { remove(); }

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] const std::string& place() const { return place_; }
  void remove();  // with what is in it; what a process has mapped it keeps

 private:
  RingDirectory(std::string place, std::string path, Fd lock)
      : place_(std::move(place)), path_(std::move(path)), lock_(std::move(lock)) {}

  std::string place_, path_;
  Fd lock_;
};

// Removes what recorders of this user that were killed have left in `place`; gives how many.
int remove_stale_rings(const std::string& place);

}  // namespace headroom::marks
