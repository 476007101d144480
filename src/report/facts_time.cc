// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/human.h"
#include "report/facts.h"
#include "report/words.h"

namespace headroom::report {

namespace {

constexpr std::size_t kRows = 12, kAccountColumns = 4;

using Sums = std::map<Account, Nanos>;

// The account of computing and the longest others.
std::vector<Account> columns_of(const view::Gpu& gpu) {
  std::vector<view::Share> shares = gpu.ledger;
  std::stable_sort(shares.begin(), shares.end(), [](const auto& a, const auto& b) {
    const bool useful_a = a.account == Account::kUseful, useful_b = b.account == Account::kUseful;
    return useful_a != useful_b ? useful_a : a.ns > b.ns;
  });
  std::vector<Account> accounts;
  for (const view::Share& share : shares)
    if (accounts.size() < kAccountColumns) accounts.push_back(share.account);
  return accounts;
}

// What was read in one of the stretches.
std::string range_words(const view::Series& series, std::size_t row) {
  const std::size_t n = series.bins.size();
  std::optional<float> low, high;
  for (std::size_t bin = n * row / kRows; bin < std::max(n * row / kRows + 1, n * (row + 1) / kRows) && bin < n;
       ++bin) {
    const view::Range& range = series.bins[bin];
    if (range.samples == 0) continue;
    low = std::min(low.value_or(range.low), range.low);
    high = std::max(high.value_or(range.high), range.high);
  }
  if (!low) return "-";
  const std::string least = figure(series.metric, static_cast<double>(*low)),
                    most = figure(series.metric, static_cast<double>(*high));
  return least == most ? least : fmt::format("{} to {}", least, most);
}

}  // namespace

Table time_table(const Document& d, std::size_t position) {
  const view::Gpu& gpu = d.view.gpus[position];
  const std::vector<Account> accounts = columns_of(gpu);
  Table table;
  table.caption = gpu_name(d.explanation.ledger.devices[position]) + " over time";
  table.head = {"From"};
  for (const Account account : accounts) table.head.emplace_back(info(account).label);
  if (gpu.ledger.size() > accounts.size()) table.head.emplace_back("others");
  for (const view::Series& series : gpu.series) table.head.emplace_back(info(series.metric).name);
  const auto& bins = gpu.strip.bins;
  for (std::size_t row = 0; row < kRows && bins.size() >= kRows; ++row) {
    Sums sums;
    Nanos all = 0, others = 0;
    for (std::size_t bin = bins.size() * row / kRows; bin < bins.size() * (row + 1) / kRows; ++bin)
      for (const view::Share& share : bins[bin]) {
        const bool own = std::find(accounts.begin(), accounts.end(), share.account) != accounts.end();
        (own ? sums[share.account] : others) += share.ns;
        all += share.ns;
      }
    const Nanos from = view::bin_edge(d.view.begin, d.view.end, bins.size(), bins.size() * row / kRows);
    std::vector<std::string> cells{since_begin(d.view, from)};
    for (const Account account : accounts) cells.push_back(share_words(sums[account], all));
    if (gpu.ledger.size() > accounts.size()) cells.push_back(share_words(others, all));
    for (const view::Series& series : gpu.series) cells.push_back(range_words(series, row));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

}  // namespace headroom::report
