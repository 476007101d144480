// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/artefacts.h"
#include "cli/document_file.h"
#include "cli/open_recording.h"
#include "model/comparison.h"

namespace headroom::cli {

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
