// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "report/tables.h"

// Small writers of GitHub's Markdown. Whatever comes in as text is escaped here: it can become neither markup nor a
// link, nor mention anybody.
namespace headroom::report::markdown {

[[nodiscard]] std::string escaped(std::string_view text);
[[nodiscard]] std::string table(const Table& one);  // "" without rows
[[nodiscard]] std::string points(const std::vector<Point>& points);
[[nodiscard]] std::string section(std::string_view title, const std::string& body);  // "" without a body
[[nodiscard]] std::string commands(const std::vector<std::string>& lines);           // to be copied

}  // namespace headroom::report::markdown
