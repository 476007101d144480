// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "model/recording.h"

namespace headroom {

// RecordingMeta as the rows of table `meta`: keys are the field names, numbers are decimal, lists are JSON.
[[nodiscard]] std::map<std::string, std::string> meta_to_rows(const RecordingMeta& meta);
// Unknown keys are ignored, malformed values read as absent.
[[nodiscard]] RecordingMeta meta_from_rows(const std::map<std::string, std::string>& rows);

// Attrs as a JSON object of strings. Bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] std::string attrs_to_json(const Attrs& attrs);
// Values that are no strings are kept as their JSON text; what is no object reads as empty.
[[nodiscard]] Attrs attrs_from_json(std::string_view json);

// Where a loss happened, as [[begin, end], [begin, end, source], …].
[[nodiscard]] std::string places_to_json(const std::vector<LossPlace>& places);
// Malformed ones are left out.
[[nodiscard]] std::vector<LossPlace> places_from_json(std::string_view json);

// Who writes a recording: "<boot id>/<pid>/<start ticks>" of the calling process, "" where /proc is missing.
[[nodiscard]] std::string owner_of_this_process();
// Is that process still running on this boot of this machine, and does it write the file `path`?
[[nodiscard]] bool owner_is_alive(std::string_view owner, const std::string& path);

}  // namespace headroom
