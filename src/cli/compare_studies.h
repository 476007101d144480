// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/document_file.h"
#include "model/requirement.h"

// `headroom compare` of two studies.
namespace headroom::cli {

// Whether a word names a storage of Optuna: by its URL, or by what the file begins with.
[[nodiscard]] bool names_storage(const std::string& word);

// Prints the answer; writes it as a document, too, where `document` has a path. Exit code: 0 where they may be
// compared, else 1.
struct StudyPair {
  std::string a, b;  // storages
  std::optional<std::string> study_a, study_b;
  std::vector<Requirement> requirements;  // of B
  bool json = false;
  bool prints = true;
  DocumentOptions document;
};
[[nodiscard]] Result<int> compare_studies(const StudyPair& pair);

}  // namespace headroom::cli
