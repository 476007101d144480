// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/cli11.h"
#include "cli/open_recording.h"
#include "cli/output.h"
#include "model/comparison.h"
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

// --artefacts and --tolerance.
struct ArtefactOptions {
  std::vector<std::string> paths;  // none, or two: of A and of B
  double tolerance = 1e-6;
};
void declare_artefacts(CLI::App& app, ArtefactOptions& options);

// Two files, or the files of two folders by their path below it (compare/artefact.h); those that only one folder has
// are not the same.
[[nodiscard]] Result<std::vector<ComparedArtefact>> compare_artefacts(const std::string& a, const std::string& b,
                                                                      double tolerance);

struct CompareOptions {
  std::string a, b;
  std::optional<std::string> study_a, study_b;  // their names, of two storages
  bool tasks = false, steps = false, whole = false, json = false, full = false;
  std::vector<std::string> changed, require;
  ArtefactOptions artefacts;
  DocumentOptions document;
};

// The comparison of A and B; where a document was asked for, that is written, too.
[[nodiscard]] Result<Comparison> compared(const CompareOptions& options, const ImportOptions& import);

}  // namespace headroom::cli
