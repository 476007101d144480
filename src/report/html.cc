// SPDX-License-Identifier: Apache-2.0
#include "report/html.h"

#include <fmt/format.h>

#include "base/human.h"
#include "base/strings.h"
#include "base/visible.h"
#include "report/bars.h"
#include "report/beginning.h"
#include "report/html_style.h"

namespace headroom::report::html {

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : visible(text)) switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      case '\'':
        safe += "&#39;";
        break;
      default:
        safe += c;
    }
  return safe;
}

std::string dim(std::string_view words) {
  return words.empty() ? "" : fmt::format("<p class=\"dim\">{}</p>\n", escaped(words));
}

std::string table(const Table& table) {
  if (table.rows.empty()) return "";
  std::string html = "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"" + escaped(table.caption) +
                     "\">\n<table>\n<caption>" + escaped(table.caption) + "</caption>\n<thead><tr>";
  const auto html_class = [&](std::size_t column) { return column < table.words ? "" : " class=\"n\""; };
  for (std::size_t i = 0; i < table.head.size(); ++i)
    html += fmt::format("<th scope=\"col\"{}>{}</th>", html_class(i), escaped(table.head[i]));
  html += "</tr></thead>\n<tbody>\n";
  for (const auto& row : table.rows) {
    html += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i)
      html += i == 0 ? fmt::format("<th scope=\"row\">{}</th>", escaped(row[i]))
                     : fmt::format("<td{}>{}</td>", html_class(i), escaped(row[i]));
    html += "</tr>\n";
  }
  html += "</tbody></table></div>\n";
  html += dim(table.note);
  return html;
}

std::string details(std::string_view summary, const std::string& html, Shown shown) {
  if (html.empty()) return "";
  return fmt::format("<details{}><summary>{}</summary>\n{}</details>\n", shown == Shown::kOpen ? " open" : "",
                     escaped(summary), html);
}

std::string table_twin(const Table& one) { return details("Show as table: " + one.caption, table(one)); }

std::string points(const std::vector<Point>& points) {
  if (points.empty()) return "";
  std::string html = "<dl>\n";
  std::string_view last;
  for (const Point& point : points) {
    if (point.label != last) html += "<dt>" + escaped(point.label) + "</dt>";
    last = point.label;
    html +=
        point.code ? "<dd><code>" + escaped(point.text) + "</code></dd>\n" : "<dd>" + escaped(point.text) + "</dd>\n";
  }
  return html + "</dl>\n";
}

std::string section(std::string_view id, std::string_view title, const std::string& html) {
  if (html.empty()) return "";
  return fmt::format("<section id=\"{0}\" aria-labelledby=\"{0}-h\">\n<h2 id=\"{0}-h\">{1}</h2>\n{2}</section>\n", id,
                     escaped(title), html);
}

std::string svg(std::string_view html_class, std::size_t width, std::size_t height, std::string_view title,
                std::string_view description, const std::string& shapes) {
  std::string head =
      fmt::format("<svg class=\"{}\" viewBox=\"0 0 {} {}\" preserveAspectRatio=\"none\" role=\"img\"><title>{}</title>",
                  html_class, width, height, escaped(title));
  if (!description.empty()) head += "<desc>" + escaped(description) + "</desc>";
  return head + shapes + "</svg>";
}

std::string rectangle(std::string_view html_class, double x, double y, double width, double height,
                      std::string_view title) {
  const std::string shape =
      fmt::format("<rect class=\"{}\" x=\"{:.4g}\" y=\"{:.4g}\" width=\"{:.4g}\" height=\"{:.4g}\"", html_class, x, y,
                  width, height);
  return title.empty() ? shape + "/>" : shape + "><title>" + escaped(title) + "</title></rect>";
}

std::string chart_row(std::string_view label, const std::string& svg_html) {
  return fmt::format("<div class=\"row\"><span title=\"{0}\">{0}</span>{1}</div>\n", escaped(label), svg_html);
}

std::string time_axis(Nanos span) {
  constexpr Nanos kLabels = 5;
  std::vector<std::string> marks{"0"};
  for (Nanos i = 1; i < kLabels; ++i) marks.push_back(column_duration(span / (kLabels - 1) * i, span));
  return axis("time since begin", marks);
}

std::string axis(std::string_view label, const std::vector<std::string>& marks) {
  std::string html = "<div class=\"row\"><span class=\"dim\">" + escaped(label) + "</span><div class=\"axis\">";
  for (const std::string& mark : marks) html += "<span>" + escaped(mark) + "</span>";
  return html + "</div></div>\n";
}

std::string account_class(Account account) { return "a-" + std::string(info(account).cause); }

std::string legend(const std::vector<view::Share>& shares) {
  std::string html = "<ul class=\"legend\">";
  for (const view::Share& share : shares)
    html += fmt::format("<li><i class=\"{}\"></i>{}</li>", account_class(share.account),
                        escaped(info(share.account).label));
  return html + "</ul>\n";
}

std::string legend(const std::vector<std::pair<std::string, std::string>>& classes) {
  std::string html = "<ul class=\"legend\">";
  for (const auto& [html_class, words] : classes)
    html += fmt::format("<li><i class=\"{}\"></i>{}</li>", html_class, escaped(words));
  return html + "</ul>\n";
}

std::string commands(const std::vector<std::string>& lines) {
  std::vector<std::string> shown;
  for (const std::string& line : lines) shown.push_back(escaped(line));
  return "<pre tabindex=\"0\"><code>" + join(shown, "\n") + "</code></pre>\n";
}

std::string page(const Page& page) {
  std::string links, body;
  for (const Part& part : page.parts) {
    if (part.html.empty()) continue;
    links += fmt::format("<li><a href=\"#{}\">{}</a></li>", part.id, escaped(part.title));
    body += section(part.id, part.title, part.html);
  }
  const std::string title = escaped(page.title);
  return html_beginning(page.verb) +
         fmt::format(
             "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'sha256-{}'; "
             "base-uri 'none'; form-action 'none'\">\n"
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"referrer\" "
             "content=\"no-referrer\">\n<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n",
             kStyleHash, title, kStyle) +
         fmt::format(
             "<a class=\"skip\" href=\"#main\">Skip to the report</a>\n<header>\n<p "
             "class=\"dim\">{}</p>\n<h1>{}</h1>\n{}<nav aria-label=\"Contents\"><ul>{}</ul></nav>\n</header>\n",
             title, escaped(page.headline), page.introduction, links) +
         "<main id=\"main\">\n" + body +
         fmt::format("</main>\n<footer><p class=\"dim\">Written by headroom {}.</p></footer>\n</body>\n</html>\n",
                     HEADROOM_VERSION);
}

}  // namespace headroom::report::html
