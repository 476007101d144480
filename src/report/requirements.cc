// SPDX-License-Identifier: Apache-2.0
#include "report/requirements.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "base/strings.h"
#include "base/visible.h"
#include "model/figure.h"

namespace headroom::report {

namespace {

// In the limit's own unit, with as many digits as tell the value from the limit.
std::string value_words(const JudgedRequirement& one) {
  const Requirement& requirement = one.requirement;
  const double value = *one.value / requirement.scale, limit = requirement.limit / requirement.scale;
  std::string words = fmt::format("{}", limit);
  for (int digits = 3; value != limit && digits <= 17; ++digits) {
    words = human_figure(value, digits);
    if (words != human_figure(limit, digits)) break;
  }
  words += requirement.suffix;
  return one.of.empty() ? words : fmt::format("{} on {}", words, one.of);
}

std::string_view verdict(const JudgedRequirement& one) {
  return !one.kept ? "not known" : *one.kept ? "kept" : "not kept";
}

std::string measured_words(const JudgedRequirement& one) { return one.kept ? value_words(one) : one.why_not; }

std::string figure_words(FigureUnit unit, const std::optional<double>& value) {
  if (!value) return "not known";
  switch (unit) {
    case FigureUnit::kRatio:
      return human_percent(*value);
    case FigureUnit::kBytes:
      return human_bytes(static_cast<std::int64_t>(*value));
    case FigureUnit::kWatts:
      return fmt::format("{} W", human_figure(*value, 3));
    case FigureUnit::kCelsius:
      return fmt::format("{} C", human_figure(*value, 3));
    case FigureUnit::kSeconds:
      return human_duration(static_cast<Nanos>(*value * 1e9));
    case FigureUnit::kNumber:
      break;
  }
  return human_figure(*value, 3);
}

std::string label(const ComparedFigure& figure) {
  std::string name = figure.name;
  std::replace(name.begin(), name.end(), '_', ' ');
  return figure.of.empty() ? name : fmt::format("{}, {}", name, figure.of);
}

}  // namespace

std::string requirements_text(const std::vector<JudgedRequirement>& requirements, const TextOptions& options) {
  if (requirements.empty()) return "";
  std::size_t widest = 0;
  for (const JudgedRequirement& one : requirements)
    widest = std::max(widest, display_width(visible(one.requirement.text)));
  widest = std::min(widest, options.width / 2);
  std::string text = "Required\n";
  for (const JudgedRequirement& one : requirements)
    text += wrap(fmt::format("{}: {}", verdict(one), measured_words(one)), options.width,
                 fmt::format("  {}  ", pad_right(visible(one.requirement.text), widest)), std::string(widest + 4, ' '));
  return text;
}

Json requirements_json(const std::vector<JudgedRequirement>& requirements) {
  Json list = Json::array();
  for (const JudgedRequirement& one : requirements)
    list.push_back({{"requirement", one.requirement.text},
                    {"figure", one.requirement.name},
                    {"limit", one.requirement.limit},
                    {"value", optional_json(one.value)},
                    {"of", text_json(one.of)},
                    {"kept", optional_json(one.kept)},
                    {"why_not_known", text_json(one.why_not)}});
  return list;
}

Table requirements_table(const std::vector<JudgedRequirement>& requirements) {
  Table table{.caption = "What was required", .head = {"Required", "Kept", "Measured"}, .words = 3};
  for (const JudgedRequirement& one : requirements)
    table.rows.push_back({one.requirement.text, std::string(verdict(one)), measured_words(one)});
  return table;
}

Json figures_json(const std::vector<ComparedFigure>& figures) {
  Json list = Json::array();
  for (const ComparedFigure& figure : figures)
    list.push_back({{"name", figure.name},
                    {"of", text_json(figure.of)},
                    {"a", optional_json(figure.a)},
                    {"b", optional_json(figure.b)}});
  return list;
}

Table figures_table(const std::vector<ComparedFigure>& figures) {
  Table table{.caption = "Figures of the whole runs", .head = {"Figure", "A", "B"}};
  for (const ComparedFigure& figure : figures) {
    const FigureUnit unit = figure_info(figure.name)->unit;
    table.rows.push_back({label(figure), figure_words(unit, figure.a), figure_words(unit, figure.b)});
  }
  return table;
}

}  // namespace headroom::report
