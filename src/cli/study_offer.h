// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "model/recording.h"

namespace headroom::cli {

// The storage of the study that a job which was run here led, so that it can be offered: a file that its command or the
// command of one of its processes names, else one in the job's folder that was written while it ran. "": none.
[[nodiscard]] std::string study_led_by(const Recording& recording);

}  // namespace headroom::cli
