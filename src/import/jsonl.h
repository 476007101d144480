// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

#include "base/result.h"
#include "model/recording.h"

namespace headroom {

// The text form of a recording, as write_jsonl makes it or a person wrote it. Metrics, kinds of source and lines that
// this program does not know are left out and counted (unknown_metric, unknown_source, unknown_line).
// kInvalidInput with "line L, column C: what" for anything that is wrong.
[[nodiscard]] Result<Recording> read_jsonl(std::string_view text);

}  // namespace headroom
