// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "import/import.h"
#include "model/recording.h"
#include "record/reader.h"

namespace headroom::cli {

// What every verb that takes a recording accepts: `last`, a .hrec file, JSONL, or a foreign log (imported on the fly).
struct OpenedRecording {
  Recording recording;
  std::string path;
  std::optional<std::int64_t> file_bytes;  // of a .hrec
};
[[nodiscard]] Result<OpenedRecording> open_recording(const std::string& what, const ImportOptions& options = {},
                                                     const ReadOptions& read = {});

// The options about foreign logs, declared on a verb: --format, --columns, --log-interval, --start-date,
// --power-limit, --memory-total, --device-name, --utc-offset.
[[nodiscard]] std::shared_ptr<ImportOptions> declare_import_options(CLI::App& app);

}  // namespace headroom::cli
