// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include "base/output_file.h"
#include "cli/cli11.h"

// What a verb may replace where people name a file: its own earlier answers, anything else with --force.
namespace headroom::cli {

void declare_force(CLI::App& app, bool& force);

// Answers in JSON, of any version of "headroom.plan".
[[nodiscard]] MayReplace own_json(std::string_view verb, std::string_view schema, bool force);
// Documents of a verb, "html" or "md"; its JSON, "json".
[[nodiscard]] MayReplace own_document(std::string_view verb, std::string_view format, bool force);

}  // namespace headroom::cli
