// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>

#include "base/result.h"
#include "diagnose/explain.h"
#include "model/recording.h"
#include "report/document.h"

namespace headroom::cli {

// Makes the document of `headroom report` and hands it to `write`. `name`: how the next commands name the recording, as
// a shell takes it; `stretch`: their options where it is of a part of it.
[[nodiscard]] Result<void> with_document(const Recording& recording, const ExplainOptions& explaining,
                                         const std::string& name, const std::string& stretch,
                                         const std::function<Result<void>(const report::Document&)>& write);

}  // namespace headroom::cli
