// SPDX-License-Identifier: Apache-2.0
#include "import/plain_text.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "base/visible.h"
#include "import/blank_table.h"
#include "import/google_csv.h"
#include "import/import.h"
#include "import/line_prefixes.h"
#include "import/log_column.h"
#include "import/log_reader.h"
#include "import/log_records.h"
#include "import/printed_rows.h"
#include "import/table.h"

namespace headroom {

bool names_a_time(std::string_view columns) {
  if (columns.find('=') != std::string_view::npos) return false;
  const std::vector<std::string_view> names = split(columns, ',');
  return std::any_of(names.begin(), names.end(), [](std::string_view name) {
    const auto rule = csv_column(trim(name));
    return rule && rule->role == ColumnRole::kTimestamp;
  });
}

std::optional<std::string> on_terminal(std::string_view text) {
  const std::string_view head = text.substr(0, kLogHead);
  if (head.find("\x1b[") == std::string_view::npos || head.find('\0') != std::string_view::npos) return std::nullopt;
  return without_escapes(text);
}

std::optional<std::string> timed_by_lines(std::string_view text, std::string_view columns) {
  const bool told = !columns.empty() && columns.find('=') == std::string_view::npos;
  auto plain = stamps_as_lines(text, names_a_time(columns));
  const std::string_view head = text.substr(0, kLogHead);
  if (!plain || has_prefixes(head) || sniff_table(head) != LogFormat::kUnknown) return std::nullopt;
  const LogFormat format = sniff_log(*plain);
  const bool reads = told || format == LogFormat::kNvidiaSmi || format == LogFormat::kMonitorCsv ||
                     format == LogFormat::kDcgm || format == LogFormat::kDmon || format == LogFormat::kPmon;
  return reads ? std::move(plain) : std::nullopt;
}

std::optional<std::string> plain_lines(std::string_view text, std::string_view columns) {
  const bool rows_are_told = !columns.empty();
  if (auto shown = on_terminal(text)) return shown;
  const std::string_view head = text.substr(0, kLogHead);
  if (auto csv = csv_of_google(text)) return csv;
  if (auto csv = csv_of_printed(text)) return csv;
  if (csv_of_blanks(head.substr(0, head.size() < text.size() ? head.rfind('\n') : head.size())))
    return csv_of_blanks(text);
  if (rows_are_told && !row_of_blanks(head.substr(0, head.find('\n'))).empty())
    return rows_of_blanks(text, split(columns, ',').size());
  const auto begin = lines_of_records(head.substr(0, head.size() < text.size() ? head.rfind('\n') : head.size()));
  if (!begin || (!rows_are_told && sniff_log(*begin) == LogFormat::kUnknown)) return std::nullopt;
  return head.size() < text.size() ? lines_of_records(text) : begin;
}

}  // namespace headroom
