// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/human.h"
#include "base/strings.h"
#include "report/facts.h"
#include "report/html.h"
#include "report/html_charts.h"

namespace headroom::report::html {

namespace {

constexpr std::size_t kWide = 960, kMostRows = 40, kMostTitles = 400;

std::string_view ending_class(view::Ending ending) {
  constexpr std::array<std::string_view, 3> kClasses{"running", "good", "bad"};
  return kClasses[static_cast<std::size_t>(ending)];
}

struct Scale {
  explicit Scale(const view::View& view)
      : begin(view.begin),
        unit(static_cast<double>(kWide) / static_cast<double>(std::max<Nanos>(1, view.end - view.begin))) {}
  [[nodiscard]] double at(Nanos t) const { return static_cast<double>(t - begin) * unit; }
  Nanos begin;
  double unit;
};

// One row for each run.
std::string small_gantt(const Document& d) {
  const view::View& view = d.view;
  const Scale scale(view);
  std::string html;
  for (const view::Run& run : view.runs) {
    const double from = scale.at(std::max(view.begin, run.begin)),
                 to = scale.at(std::min(view.end, run.end.value_or(view.end)));
    std::vector<std::string> gpus;
    for (const std::size_t gpu : run.gpus) gpus.push_back(fmt::format("{}", d.explanation.ledger.devices[gpu].index));
    const std::string where = gpus.empty() ? "no GPU" : "GPU " + join(gpus, ", ");
    const std::string words =
        fmt::format("{}, {}, {}: {} from {} on", run.task, where, ended(run),
                    human_duration(run.end.value_or(view.end) - run.begin), since_begin(view, run.begin));
    const bool said = run.ending() != view::Ending::kSucceeded;
    html += chart_row(fmt::format("{} · {}{}", run.task, where, said ? " · " + ended(run) : ""),
                      svg("run", kWide, 12, words, "",
                          rectangle("ground", 0, 0, kWide, 12) +
                              rectangle(ending_class(run.ending()), from, 0, std::max(2.0, to - from), 12)));
  }
  return html;
}

std::string bar_words(const view::View& view, const view::Bar& bar) {
  const view::Run& run = view.runs[bar.run];
  const std::string span = human_duration(bar.end - bar.begin);
  return bar.count == 1 ? fmt::format("{}, {}: {}", run.task, ended(run), span)
                        : fmt::format("{} and {} more, {}: {}", run.task, bar.count - 1, ended(run), span);
}

// A drawing for each GPU, a line of it for each lane.
std::string large_gantt(const Document& d) {
  const view::View& view = d.view;
  const Scale scale(view);
  std::size_t bars = 0;
  for (const view::Gpu& gpu : view.gpus) bars += gpu.bars.size();
  std::string html;
  for (std::size_t position = 0; position < view.gpus.size(); ++position) {
    const view::Gpu& gpu = view.gpus[position];
    if (gpu.bars.empty()) continue;
    std::string shapes;
    std::array<std::string, 3> paths;  // without titles, where there are too many
    for (const view::Bar& bar : gpu.bars) {
      const double x = scale.at(bar.begin), width = std::max(1.0, scale.at(bar.end) - x);
      const auto y = bar.lane * 12;
      if (bars <= kMostTitles)
        shapes += rectangle(ending_class(bar.ending), x, static_cast<double>(y), std::max(0.5, width - 0.5), 10,
                            bar_words(view, bar));
      else
        paths[static_cast<std::size_t>(bar.ending)] +=
            fmt::format("M{0:.1f} {1}h{2:.1f}v10h-{2:.1f}z", x, y, std::max(0.6, width - 0.4));
    }
    for (std::size_t i = 0; i < paths.size(); ++i)
      if (!paths[i].empty())
        shapes += fmt::format("<path class=\"{}\" d=\"{}\"/>", ending_class(static_cast<view::Ending>(i)), paths[i]);
    const std::string_view high = gpu.lanes <= 1    ? "lanes1"
                                  : gpu.lanes <= 4  ? "lanes4"
                                  : gpu.lanes <= 16 ? "lanes16"
                                                    : "lanes64";
    html += chart_row(gpu_label(d.explanation, position),
                      svg(high, kWide, gpu.lanes * 12, gpu_label(d.explanation, position) + ": runs of tasks over time",
                          fmt::format("{} side by side at most", count_of(gpu.lanes, "run")), shapes));
    if (gpu.runs_left_out > 0)
      html += fmt::format("<p class=\"dim\">{} more ran side by side there than are drawn.</p>\n", gpu.runs_left_out);
  }
  return html;
}

}  // namespace

std::string batch_charts(const Document& d) {
  if (d.view.runs.empty()) return "";
  std::string chart = d.view.runs.size() <= kMostRows ? small_gantt(d) : large_gantt(d);
  if (d.view.runs.size() > kMostRows)
    chart += "<p class=\"dim\">Short runs next to each other that ended alike share a box.</p>\n";
  return "<p>" + escaped(batch_words(d)) +
         "</p>\n<ul class=\"legend\"><li><i class=\"good\"></i>succeeded</li><li><i class=\"bad\"></i>did "
         "not</li><li><i class=\"running\"></i>running</li></ul>\n" +
         chart + time_axis(d.view.end - d.view.begin) + table_twin(runs_table(d));
}

}  // namespace headroom::report::html
