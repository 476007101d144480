// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/result.h"

namespace headroom::batch {

// A batch's folder, held open: it may be moved while the batch runs, and nobody can put another one in its place.
struct Place {
  std::string folder;  // as it was named
  Fd directory, logs;
  Fd lock;  // while it is held

  [[nodiscard]] std::string folder_now() const;  // where it is by now; as it was named, where that cannot be told
};

// Of an open folder: it has no name any more. What is written into it is lost, whatever its file descriptors say.
[[nodiscard]] bool is_removed(int directory);

enum class Trust { kOwn, kAnybodys };

// kNoPermission: somebody else owns `folder` or something in it, or may write there, or a link leads out of it.
[[nodiscard]] Result<void> check_own(const std::string& folder);

// Opens `folder` and its logs/, and makes what is missing, for this user alone; fails as check_own() does. Who may
// write there decides which processes a batch stops and which files it writes to; Trust::kAnybodys takes it as it is.
[[nodiscard]] Result<Place> open_place(const std::string& folder, Trust trust);

// A file in logs/, to append to; logs/ is made again where somebody has removed it. Links are not followed.
[[nodiscard]] Result<Fd> open_log(Place& place, const std::string& name);

}  // namespace headroom::batch
