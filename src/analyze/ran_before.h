// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/entities.h"

namespace headroom {

// A process of the job ran before it was recorded: of what it did until then nothing is known. A recorder may begin a
// moment after the job that it starts.
[[nodiscard]] inline bool ran_before(const Process& process, Nanos recording) {
  return process.in_job && process.start > 0 && process.start + kSecond < recording;
}

}  // namespace headroom
