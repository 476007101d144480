// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/enum_table.h"
#include "model/recording.h"

// What is known of recordings without reading their rows.
namespace headroom {

enum class FileState : std::uint8_t {
  kRecording,
  kClosed,
  kInterrupted,  // its recorder is gone and did not close it
  kCut,          // it was closed, and its last part is missing since
};
struct FileStateInfo {
  FileState id;
  std::string_view name;  // JSON, and for people
};
inline constexpr std::array kFileStates{
    FileStateInfo{FileState::kRecording, "recording"},
    FileStateInfo{FileState::kClosed, "closed"},
    FileStateInfo{FileState::kInterrupted, "interrupted"},
    FileStateInfo{FileState::kCut, "cut"},
};
static_assert(in_order_of_ids(kFileStates));
[[nodiscard]] inline std::string_view name(FileState state) {
  return kFileStates[static_cast<std::size_t>(state)].name;
}

struct RecordingSummary {
  RecordingMeta meta;  // `end` is the last instant seen where the recording was not closed
  FileState state = FileState::kClosed;
  std::int64_t devices = 0;
  std::int64_t losses = 0;  // that count as loss of data, or worse
  std::int64_t bytes = 0;   // of the file and its log
  bool operator==(const RecordingSummary&) const = default;
};

// A recording in the folder where recordings lie.
struct ShelfEntry {
  std::string path;
  std::string name;                         // of the file
  std::int64_t bytes = 0;                   // with its log
  Nanos modified = 0;                       // Unix time
  std::optional<RecordingSummary> summary;  // nothing if it cannot be opened; `problem` says why
  std::string problem;
};
[[nodiscard]] inline std::int64_t bytes_of(const std::vector<ShelfEntry>& entries) {
  std::int64_t bytes = 0;
  for (const ShelfEntry& entry : entries) bytes += entry.bytes;
  return bytes;
}

struct ShelfListing {
  std::string directory;
  std::string network_filesystem;   // "nfs", …; "" on a local disk
  std::vector<ShelfEntry> entries;  // newest first
};

enum class DryRun { kNo, kYes };

struct PruneReport {
  std::vector<ShelfEntry> removed, kept;
  std::vector<std::string> problems;  // a line each: what could not be removed, and why
};

}  // namespace headroom
