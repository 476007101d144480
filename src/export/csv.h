// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include "export/output.h"
#include "model/recording.h"

namespace headroom {

// One line per row of the recording: at_ns, time (UTC), source kind, its key, the GPU's index and name, then one column
// per metric that occurs, named with its unit. Sources follow one another. What is absent is an empty field (JSONL
// keeps the reason). `only` limits it to sources of one kind.
[[nodiscard]] Result<void> write_csv(const Recording& recording, std::optional<SourceKind> only, const Output& output);

}  // namespace headroom
