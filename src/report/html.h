// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/ledger.h"
#include "report/tables.h"
#include "view/strip.h"

// Small writers of HTML and SVG. Whatever comes in as text is escaped here; what is HTML already says so in its name.
namespace headroom::report::html {

[[nodiscard]] std::string escaped(std::string_view text);  // visible (base/visible.h), and no markup, in attributes too

[[nodiscard]] std::string table(const Table& table);  // "" without rows
enum class Shown : std::uint8_t { kClosed, kOpen };
[[nodiscard]] std::string details(std::string_view summary, const std::string& html, Shown shown = Shown::kClosed);
[[nodiscard]] std::string table_twin(const Table& table);  // a table behind "Show as table"
[[nodiscard]] std::string points(const std::vector<Point>& points);
[[nodiscard]] std::string dim(std::string_view words);  // a paragraph that stands back; "" without words
// A landmark with a heading of its own; "" without a body.
[[nodiscard]] std::string section(std::string_view id, std::string_view title, const std::string& html);

// A drawing as wide as its place, without text in it: text would be drawn out with it. Its title is what a screen
// reader says and a mouse shows.
[[nodiscard]] std::string svg(std::string_view html_class, std::size_t width, std::size_t height,
                              std::string_view title, std::string_view description, const std::string& shapes);
[[nodiscard]] std::string rectangle(std::string_view html_class, double x, double y, double width, double height,
                                    std::string_view title = "");
// One line of a chart: what it is, and the drawing.
[[nodiscard]] std::string chart_row(std::string_view label, const std::string& svg_html);
[[nodiscard]] std::string time_axis(Nanos span);
// Labels below a chart, at equal distances from its left edge to its right one.
[[nodiscard]] std::string axis(std::string_view label, const std::vector<std::string>& marks);

// The class that gives an account its colour, and the name of it beside a patch of that colour.
[[nodiscard]] std::string account_class(Account account);
[[nodiscard]] std::string legend(const std::vector<view::Share>& shares);
// Of other colours: classes and what they mean.
[[nodiscard]] std::string legend(const std::vector<std::pair<std::string, std::string>>& classes);

[[nodiscard]] std::string commands(const std::vector<std::string>& lines);  // to be copied

// A whole document: one file without a script or anything to load.
struct Part {
  std::string_view id, title;
  std::string html;  // "": it is left out
};
struct Page {
  std::string_view verb;  // that writes it
  std::string title, headline;
  std::string introduction;  // HTML, below the headline
  std::vector<Part> parts;
};
[[nodiscard]] std::string page(const Page& page);

}  // namespace headroom::report::html
