// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace headroom {

// A temporary folder of this process, mode 0700, that goes with this object. A lock on it, which ends with its owner,
// tells it from what a process that was killed has left behind.
class LockedFolder {
 public:
  // "<place>/<name>-<random>". Where the file system has no locks (kWhereItCan) it is "<place>/<name>.new-<random>",
  // which is stale once it is old.
  enum class Lock { kNeeded, kWhereItCan };
  [[nodiscard]] static Result<LockedFolder> make(const std::string& place, std::string_view name, Lock lock);

  LockedFolder(LockedFolder&&) noexcept = default;
  LockedFolder& operator=(LockedFolder&& other) noexcept;
  ~LockedFolder() { remove(); }

  [[nodiscard]] const std::string& path() const { return path_; }
  void remove();  // with what is in it; what a process has open or mapped it keeps

 private:
  LockedFolder(std::string path, Fd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string path_;
  Fd fd_;
};

// Removes what processes of this user that were killed have left of that name in `place`; gives how many.
int remove_stale_folders(const std::string& place, std::string_view name);

}  // namespace headroom
