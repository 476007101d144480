// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "report/facts.h"

// Small writers of HTML and SVG. Whatever comes in as text is escaped here; what is HTML already says so in its name.
namespace headroom::report::html {

[[nodiscard]] std::string escaped(std::string_view text);  // visible (base/visible.h), and no markup, in attributes too

[[nodiscard]] std::string table(const Table& table);  // "" without rows
enum class Shown : std::uint8_t { kClosed, kOpen };
[[nodiscard]] std::string details(std::string_view summary, const std::string& html, Shown shown = Shown::kClosed);
[[nodiscard]] std::string table_twin(const Table& table);  // a table behind "Show as table"
[[nodiscard]] std::string points(const std::vector<Point>& points);
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
[[nodiscard]] std::string time_axis(const view::View& view);

// The class that gives an account its colour, and the name of it beside a patch of that colour.
[[nodiscard]] std::string account_class(Account account);
[[nodiscard]] std::string legend(const std::vector<view::Share>& shares);

}  // namespace headroom::report::html
