// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string>
#include <vector>

#include "cli/open_recording.h"
#include "diagnose/explain.h"
#include "model/explanation.h"

// Several recordings that are read together, each a part of one (model/parts.h).
namespace headroom::cli {

enum class Unreadable { kRefuse, kLeaveOut };  // kLeaveOut: and says so

// The .hrec files in a folder and in the folders below it, in order of their paths. Links to folders are not followed.
[[nodiscard]] std::vector<std::string> recordings_below(const std::string& folder);
// Whether these words mean more than one recording: several words, or a folder that holds any.
[[nodiscard]] bool mean_several(std::span<const std::string> words);
// The recordings that words mean: names that every verb takes, and folders, all of whose recordings are meant.
[[nodiscard]] Result<std::vector<std::string>> several(std::span<const std::string> words);

// What words mean: one recording as every verb opens it, or several as one.
[[nodiscard]] Result<OpenedRecording> open_recordings(std::span<const std::string> words,
                                                      const ImportOptions& import = {}, const ReadOptions& read = {});
// All of them as one; where a folder holds a single one, that one.
[[nodiscard]] Result<OpenedRecording> open_merged(std::span<const std::string> paths, const ImportOptions& import = {},
                                                  const ReadOptions& read = {},
                                                  Unreadable unreadable = Unreadable::kRefuse);
// The same explanation as that of all as one, with one of them in memory at a time.
[[nodiscard]] Result<Explanation> explain_merged(std::span<const std::string> paths, const ImportOptions& import,
                                                 const ExplainOptions& options);

}  // namespace headroom::cli
