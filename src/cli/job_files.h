// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "model/ledger.h"
#include "model/recording.h"

namespace headroom::cli {

// Reads what stands at a line of the code of a job that was recorded on this machine: nothing of another machine's, of
// files that were written since the job's first process began, of what is no text, and of lines that name a secret
// (base/secrets.h). At most some eighty letters of it.
[[nodiscard]] SourceText source_text_of(const Recording& recording);

// The storage of the study that a job which was run here led, so that it can be offered: a file that its command or the
// command of one of its processes names, else one in the job's folder that was written while it ran. "": none.
[[nodiscard]] std::string study_led_by(const Recording& recording);

}  // namespace headroom::cli
