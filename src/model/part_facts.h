// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "model/recording.h"

// What a part of a joined recording was, as the attrs of its source of kind kPart: its meta and its losses, by name.
// For parts.cc.
namespace headroom {

[[nodiscard]] Attrs facts_of_part(const RecordingMeta& meta, const std::vector<Loss>& losses);
// Times are within what a recording may name.
[[nodiscard]] RecordingMeta meta_of_part(const Source& source);
[[nodiscard]] std::vector<Loss> losses_of_part(const Source& source);

}  // namespace headroom
