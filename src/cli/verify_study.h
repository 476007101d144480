// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/document_file.h"
#include "model/requirement.h"

// `headroom verify` of a plan that `headroom study -o plan.json` wrote.
namespace headroom::cli {

struct StudyProof {
  std::string plan, text;  // its path, and what is in it
  std::string storage, recording;
  std::optional<std::string> study;
  std::optional<std::int64_t> since;
  std::vector<std::string> applied;
  std::string pruner;
  std::vector<Requirement> requirements;
  bool json = false, no_history = false;
  std::optional<DocumentFile> document;  // to be written, too
};

// Prints the answer. Exit code: 0 where the change delivered, else 1.
[[nodiscard]] Result<int> verify_study(const StudyProof& proof);

}  // namespace headroom::cli
