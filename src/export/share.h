// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/recording.h"

namespace headroom {

// The recording without what tells who ran what: commands, working directory, host, users, names of tasks and of
// cgroups, and what writers added of their own. Readings, times and GPUs stay (docs/privacy.md).
[[nodiscard]] Recording to_share(Recording recording);

}  // namespace headroom
