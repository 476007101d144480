// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "cli/cli11.h"
#include "import/import.h"
#include "model/packed_recording.h"
#include "record/reader.h"

namespace headroom::cli {

// What every verb that takes a recording accepts: the path of a .hrec file, of JSONL or of a foreign log (imported on
// the fly), `last`, `last~1` (the one before), or the name of a recording in its folder, or how that name begins; a
// folder of .hrec files: all of them as one (cli/several.h).
inline constexpr const char* kRecordingWords =
    "last, last~1 (the one before), a name that headroom recordings shows or how it begins, a .hrec file, or a log";

// Where that lies. What names no recording is taken for a path.
[[nodiscard]] Result<std::string> path_of_recording(const std::string& what);
// The same for those in their folder only; its name.
[[nodiscard]] Result<std::string> name_of_recording(const std::string& what);

struct OpenedRecording {
  Recording recording;
  std::string path;
  std::optional<std::int64_t> file_bytes;  // of a .hrec
};
[[nodiscard]] Result<OpenedRecording> open_recording(const std::string& what, const ImportOptions& options = {},
                                                     const ReadOptions& read = {});
// The same for who only writes it down: a log of gigabytes lies packed.
struct OpenedPacked {
  PackedRecording recording;
  std::string path;
  std::optional<std::int64_t> file_bytes;
};
[[nodiscard]] Result<OpenedPacked> open_packed(const std::string& what, const ImportOptions& options,
                                               const ReadOptions& read = {});

// The options about foreign logs, declared on a verb: --format, --columns, --log-interval, --start-date,
// --power-limit, --memory-total, --device-name, --utc-offset.
[[nodiscard]] std::shared_ptr<ImportOptions> declare_import_options(CLI::App& app);
// Those that were given, to be typed again: " --log-interval 30s"; "" where none was.
[[nodiscard]] std::string import_options_given(const CLI::App& app);

}  // namespace headroom::cli
