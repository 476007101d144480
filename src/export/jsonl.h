// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include "export/output.h"
#include "model/recording.h"

namespace headroom {

inline constexpr std::string_view kJsonlBeginning = R"({"recording":1,"meta":)";

// The text form of a recording: one JSON object per line, made to be read, compared and written by hand; read_jsonl
// (import/jsonl.h) gives the same recording back. docs/recording-format.md describes it.
[[nodiscard]] Result<void> write_jsonl(const Recording& recording, const Output& output);
[[nodiscard]] std::string to_jsonl(const Recording& recording);

}  // namespace headroom
