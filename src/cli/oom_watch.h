// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "host/cgroup.h"
#include "model/recording.h"

namespace headroom::cli {

// Counts processes that the kernel kills for want of host memory, from its making on.
class OomWatch {
 public:
  OomWatch() : before_(group_.oom_kills()) {}
  // For RecordingMeta::extra (model/oom_kills.h); empty where nothing counts them.
  [[nodiscard]] Attrs until_now();

 private:
  host::OwnCgroup group_;
  std::optional<host::OomKills> before_;
};

}  // namespace headroom::cli
