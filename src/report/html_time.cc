// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/human.h"
#include "report/facts.h"
#include "report/html.h"
#include "report/html_charts.h"
#include "report/words.h"

namespace headroom::report::html {

namespace {

constexpr std::size_t kMostLanes = 5;  // of phases, and of findings
constexpr std::size_t kMarksWide = 960;

std::string unit_words(const view::Series& series) {
  if (series.metric == Metric::kGpuUtil) return "GPU utilisation";
  if (series.metric == Metric::kMemoryUsed) return "memory";
  if (series.metric == Metric::kPower) return "power";
  return std::string(info(series.metric).name);
}

double top_of(const view::Series& series) {
  double most = series.whole.value_or(0);
  for (const view::Range& range : series.bins)
    if (range.samples > 0) most = std::max(most, static_cast<double>(range.high));
  return most > 0 ? most : 1;
}

std::string series_row(const view::Series& series) {
  const double most = top_of(series);
  float low = INFINITY, high = -INFINITY;
  for (const view::Range& range : series.bins) {
    if (range.samples == 0) continue;
    low = std::min(low, range.low);
    high = std::max(high, range.high);
  }
  const std::string label = fmt::format("{}, 0 to {}", unit_words(series), figure(series.metric, most));
  const std::string words =
      fmt::format("{} over time: {} to {}", unit_words(series), figure(series.metric, static_cast<double>(low)),
                  figure(series.metric, static_cast<double>(high)));
  return chart_row(label, svg("series", series.bins.size(), kSeriesHeight, words,
                              "the lowest to the highest reading of each moment", series_path(series, most)));
}

std::string marks_svg(const view::View& view, const view::Marks& marks, const std::string& words) {
  const double scale = static_cast<double>(kMarksWide) / static_cast<double>(std::max<Nanos>(1, view.end - view.begin));
  std::string path;
  for (const view::Span& span : marks.spans) {
    const auto x = std::llround(static_cast<double>(span.begin - view.begin) * scale);
    const auto to = std::llround(static_cast<double>(span.end - view.begin) * scale);
    path += fmt::format("M{} 0h{}v8h-{}z", x, std::max(1LL, to - x), std::max(1LL, to - x));
  }
  return svg("marks", kMarksWide, 8, words, "", "<path d=\"" + path + "\"/>");
}

std::string lanes(const Document& d, const view::Gpu& gpu) {
  std::string html;
  const auto add = [&](const std::vector<view::Marks>& all, std::string_view what, const auto& name) {
    for (std::size_t i = 0; i < std::min(kMostLanes, all.size()); ++i) {
      const std::string words = name(all[i].index);
      html += chart_row(fmt::format("{} {}", what, words),
                        marks_svg(d.view, all[i], fmt::format("{} {}: {}", what, words, human_duration(all[i].ns))));
    }
    if (all.size() > kMostLanes)
      html += fmt::format("<p class=\"dim\">{} more of {} are not drawn.</p>\n", all.size() - kMostLanes, what);
  };
  const auto numbers = finding_numbers(d.explanation);
  add(gpu.phases, "phase", [&](std::size_t i) { return d.explanation.phases[i].name; });
  add(gpu.findings, "finding",
      [&](std::size_t i) { return fmt::format("{}, {}", numbers[i], d.explanation.findings[i].title); });
  return html;
}

std::string gpu_details(const Document& d, std::size_t position) {
  const view::Gpu& gpu = d.view.gpus[position];
  std::string html;
  for (const view::Series& series : gpu.series)
    if (series.metric != Metric::kTemperature) html += series_row(series);
  html += lanes(d, gpu);
  if (!html.empty()) html += time_axis(d.view.end - d.view.begin);
  return html;
}

}  // namespace

std::string strip_shapes(const view::Strip& strip) {
  const std::size_t n = strip.bins.size();
  std::vector<std::vector<std::size_t>> tops(n);  // of each share: the units below its upper edge
  std::array<bool, kAccounts.size()> present{};
  for (std::size_t bin = 0; bin < n; ++bin) {
    tops[bin] = view::heights(strip.bins[bin], kStripHeight);
    for (std::size_t i = 1; i < tops[bin].size(); ++i) tops[bin][i] += tops[bin][i - 1];
    for (const view::Share& share : strip.bins[bin]) present[static_cast<std::size_t>(share.account)] = true;
  }
  const auto top = [&](std::size_t bin, Account account) -> std::size_t {  // 0: not in this bin
    for (std::size_t i = 0; i < strip.bins[bin].size(); ++i)
      if (strip.bins[bin][i].account == account) {
        const std::size_t below = i == 0 ? 0 : tops[bin][i - 1];
        return tops[bin][i] > below ? tops[bin][i] : 0;
      }
    return 0;
  };
  // Every account reaches down to the ground, and those below it are painted over it: an outline of one step for a bin.
  std::string shapes;
  for (std::size_t a = kAccounts.size(); a-- > 0;) {
    if (!present[a]) continue;
    std::string path;
    for (std::size_t bin = 0; bin < n; ++bin) {
      std::size_t height = top(bin, kAccounts[a].id);
      if (height == 0) continue;
      path += fmt::format("M{} {}V{}", bin, kStripHeight, kStripHeight - height);
      while (height != 0) {
        std::size_t same = 1;
        while (bin + same < n && top(bin + same, kAccounts[a].id) == height) ++same;
        path += fmt::format("h{}", same);
        bin += same;
        height = bin < n ? top(bin, kAccounts[a].id) : 0;
        path += fmt::format("V{}", kStripHeight - height);
      }
    }
    if (!path.empty()) shapes += fmt::format("<path class=\"{}\" d=\"{}z\"/>", account_class(kAccounts[a].id), path);
  }
  return shapes;
}

std::string series_path(const view::Series& series, double most) {
  const auto y = [&](float value) {
    const double share = std::clamp(static_cast<double>(value) / most, 0.0, 1.0);
    return kSeriesHeight - static_cast<std::size_t>(std::llround(share * kSeriesHeight));
  };
  std::string path;
  const std::size_t n = series.bins.size();
  for (std::size_t from = 0; from < n; ++from) {
    if (series.bins[from].samples == 0) continue;
    std::size_t to = from;
    while (to < n && series.bins[to].samples > 0) ++to;
    path += fmt::format("M{} {}", from, y(series.bins[from].high));
    const auto edge = [&](std::size_t first, std::size_t bins, bool forward) {
      for (std::size_t i = 0; i < bins;) {
        const auto level = [&](std::size_t k) {
          const view::Range& range = series.bins[forward ? first + k : first - k];
          return y(forward ? range.high : range.low);
        };
        std::size_t same = 1;
        while (i + same < bins && level(i + same) == level(i)) ++same;
        path += fmt::format("V{}h{}{}", level(i), forward ? "" : "-", same);
        i += same;
      }
    };
    edge(from, to - from, true);
    edge(to - 1, to - from, false);
    path += "z";
    from = to;
  }
  return path.empty() ? "" : "<path d=\"" + path + "\"/>";
}

std::string time_charts(const Document& d) {
  if (d.view.gpus.empty() || d.view.end <= d.view.begin) return "";
  std::string html = legend(d.view.ledger), behind;
  for (std::size_t gpu = 0; gpu < d.view.gpus.size(); ++gpu) {
    const view::Strip& strip = d.view.gpus[gpu].strip;
    const std::string label = gpu_label(d.explanation, gpu);
    html += chart_row(label, svg("strip", strip.bins.size(), kStripHeight, label + ": accounts over time",
                                 "each moment stacked to 100 %, in the order of the legend, computing at the bottom",
                                 strip_shapes(strip)));
    const std::string more = gpu_details(d, gpu) + table_twin(time_table(d, gpu));
    behind += details(label + ": readings, phases and findings", more,
                      d.view.gpus.size() <= 2 ? Shown::kOpen : Shown::kClosed);
  }
  const Nanos bin =
      (d.view.end - d.view.begin) / static_cast<Nanos>(std::max<std::size_t>(1, d.view.gpus[0].strip.bins.size()));
  html += time_axis(d.view.end - d.view.begin);
  html += fmt::format(
      "<p class=\"dim\">One step is {}. What takes a millisecond or a hundredth of a step is drawn at least one line "
      "high, so that short peaks stay visible.</p>\n",
      human_duration(bin));
  return html + behind;
}

}  // namespace headroom::report::html
