// SPDX-License-Identifier: Apache-2.0
#include "export/attempt_slices.h"

#include <map>

namespace headroom {

std::vector<AttemptSlice> attempt_slices(const Recording& recording) {
  std::vector<AttemptSlice> slices;
  std::map<AttemptId, std::size_t> running;  // positions in `slices`
  for (const Event& event : recording.events) {
    if (const auto started = of_event<events::AttemptStart>(event)) {
      running[started->attempt] = slices.size();
      slices.push_back({*started, std::nullopt, {event.at, recording.meta.end}});
    } else if (const auto ended = of_event<events::AttemptEnd>(event)) {
      const auto begun = running.find(ended->start.attempt);
      if (begun == running.end()) continue;
      slices[begun->second].outcome = ended->outcome;
      slices[begun->second].stretch.end = event.at;
      running.erase(begun);
    }
  }
  return slices;
}

}  // namespace headroom
