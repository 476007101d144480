// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>

#include "exposition/counted.h"
#include "model/recording.h"

namespace headroom::cli {

// What has been told of recordings that grow, for whoever tells it: a server, one that was started anew, and each
// `headroom export`. It lies in the folder of state; where that cannot be written, it is known to this process alone.
class CountedTimes {
 public:
  [[nodiscard]] exposition::Counted count(const Recording& recording, const Explanation& explanation);

 private:
  std::map<std::string, exposition::Counted> here_;  // by id of the recording
};

}  // namespace headroom::cli
