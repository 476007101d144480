// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "report/bars.h"
#include "report/facts.h"
#include "report/html.h"
#include "report/html_charts.h"
#include "report/words.h"

namespace headroom::report::html {

namespace {

constexpr int kLedgerWide = 1000;

std::string told(const view::Share& share, Nanos whole) {
  return fmt::format("{}: {} ({})", info(share.account).label, share_words(share.ns, whole), human_duration(share.ns));
}

double wide(Nanos ns, Nanos whole) {
  return whole > 0 ? static_cast<double>(ns) / static_cast<double>(whole) * kLedgerWide : 0;
}

// The accounts of one GPU side by side.
std::string bar(const Document& d, std::size_t gpu) {
  const Nanos span = d.explanation.ledger.span();
  std::string shapes, words;
  double x = 0;
  for (const view::Share& share : d.view.gpus[gpu].ledger) {
    const double width = wide(share.ns, span);
    shapes += rectangle(account_class(share.account), x, 0, std::max(0.5, width), 20, told(share, span));
    words += (words.empty() ? "" : "; ") + told(share, span);
    x += width;
  }
  return svg("bar", kLedgerWide, 20, fmt::format("{}: where its time went", gpu_label(d.explanation, gpu)), words,
             shapes);
}

// Each account begins where the one before it ends: a table that is a chart.
std::string waterfall(const Document& d) {
  Nanos budget = 0, longest = 0, before = 0;
  const std::vector<view::Share> shares = shares_of_used(d, budget);
  for (const view::Share& share : shares) longest = std::max(longest, share.ns);
  std::string html = fmt::format("<table class=\"waterfall\"><caption>Of all time of the GPUs{}</caption>\n",
                                 budget < d.explanation.ledger.budget() ? " that the job used" : "");
  html +=
      "<thead><tr><th scope=\"col\">Account</th>"
      "<th scope=\"col\">Drawn to scale</th><th scope=\"col\" class=\"n\">Share</th><th scope=\"col\" "
      "class=\"n\">Time</th></tr></thead>\n<tbody>\n";
  for (const view::Share& share : shares) {
    const double width = std::max(2.0, wide(share.ns, budget));
    const std::string shape =
        rectangle(account_class(share.account), std::min(wide(before, budget), kLedgerWide - width), 0, width, 14);
    html += fmt::format(
        "<tr><th scope=\"row\" title=\"{}\">{}</th><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
        escaped(info(share.account).help), escaped(info(share.account).label),
        svg("step", kLedgerWide, 14, told(share, budget), "", shape), share_words(share.ns, budget),
        column_duration(share.ns, longest));
    before += share.ns;
  }
  return html + "</tbody></table>\n";
}

}  // namespace

std::string ledger_charts(const Document& d) {
  const Ledger& ledger = d.explanation.ledger;
  if (ledger.devices.empty() || ledger.span() <= 0) return "";
  std::string html = legend(d.view.ledger);
  for (std::size_t gpu = 0; gpu < ledger.devices.size(); ++gpu)
    html += chart_row(gpu_label(d.explanation, gpu), bar(d, gpu));
  html += waterfall(d);
  if (const std::string words = computing_words(d.explanation); !words.empty())
    html += fmt::format("<p class=\"dim\">{}</p>\n", words);
  if (const std::string ends = ends_words(ledger); !ends.empty())
    html += fmt::format("<p class=\"dim\">{}</p>\n", ends);
  return html + table_twin(ledger_table(d));
}

std::string option_chart(const Document& d) {
  double most = 1;
  for (const Option& option : d.plan.options)
    if (option.promises) most = std::max(most, option.gain.high);
  if (most <= 1) return "";
  std::string html;
  std::size_t number = 0;
  const auto x = [&](double gain) { return (gain - 1) / (most - 1) * kLedgerWide; };
  for (const Option& option : d.plan.options) {
    ++number;
    if (!option.promises || option.gain.high <= 1) continue;
    const std::string words = gain_range(option.gain);
    const double low = x(option.gain.low), high = x(option.gain.high);
    html += chart_row(
        fmt::format("{}. {}: {}", number, option.title, words),
        svg("step", kLedgerWide, 14, fmt::format("{}: {} of time at equal work", option.title, words), "",
            rectangle("ground", 0, 0, kLedgerWide, 14) + rectangle("gain", low, 0, std::max(4.0, high - low), 14)));
  }
  return html + fmt::format(
                    "<div class=\"row\"><span class=\"dim\">gain of time</span><div "
                    "class=\"axis\"><span>1x, none</span><span>{}</span></div></div>\n",
                    human_factor(most));
}

}  // namespace headroom::report::html
