// SPDX-License-Identifier: Apache-2.0
#include "report/bars.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/human.h"
#include "base/strings.h"
#include "model/parts.h"
#include "report/layout.h"
#include "report/palette.h"

namespace headroom::report {

namespace {

constexpr double kFewPoints = 0.03, kSmall = 0.01;

using Devices = std::vector<std::size_t>;

Nanos total(const Ledger& ledger, Account account, const Devices& devices) {
  if (devices.size() == ledger.devices.size()) return ledger.total(account);
  Nanos sum = 0;
  for (const std::size_t device : devices) sum += ledger.total(account, device);
  return sum;
}

double share_of(Nanos ns, Nanos whole) {
  return whole > 0 ? static_cast<double>(ns) / static_cast<double>(whole) : 0.0;
}

std::array<double, kAccounts.size()> shares(const Ledger& ledger, std::size_t device) {
  std::array<double, kAccounts.size()> all{};
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = share_of(ledger.total(kAccounts[i].id, device), ledger.span());
  return all;
}

std::string title_of(const Ledger& ledger, const Devices& devices) {
  std::string name = ledger.devices[devices.front()].name;
  for (const std::size_t device : devices)
    if (ledger.devices[device].name != name) name.clear();
  const std::string gpus = gpu_names(ledger, devices);
  return name.empty() ? gpus : gpus + "  " + name;
}

std::string whole_of(const Ledger& ledger, const Devices& devices) {
  const std::string span = human_duration(ledger.span());
  return devices.size() == 1 ? span + " = 100 %" : fmt::format("{} x {} = 100 %", devices.size(), span);
}

std::string percent(double share) { return share >= 0.0005 ? fmt::format("{:.1f} %", 100 * share) : "< 0.1 %"; }

std::string painted(const std::string& bar, Account account, const TextOptions& options) {
  if (account == Account::kUseful) return good(bar, options);
  const std::string_view state = info(account).state;
  return state == "free" || state == "unobserved" ? faint(bar, options) : warning(bar, options);
}

// Wide terminals get more evidence, not longer bars.
struct Columns {
  explicit Columns(std::size_t width) : label(width < 60 ? 15 : 20), cells(0) {
    constexpr std::size_t kFigures = 19, kLongestBar = 46, kShortestBar = 5;
    const std::size_t left = width - std::min(width, 2 + label + kFigures);
    if (left >= kShortestBar) cells = std::min(kLongestBar, left);
  }
  std::size_t label, cells;

  [[nodiscard]] std::size_t line() const { return 2 + label + cells + 19; }
};

struct Row {
  Account account = Account::kUnexplained;
  std::string label;
  Nanos ns = 0;
};

// Small ones are one row, where that is wanted and there are two or more.
std::vector<Row> rows_of(const Ledger& ledger, const Devices& devices, bool all) {
  const Nanos whole = ledger.span() * static_cast<Nanos>(devices.size());
  std::vector<Row> rows;
  Row rest{Account::kUnexplained, "", 0};
  std::size_t small = 0;
  for (const AccountInfo& account : kAccounts) {
    const Nanos ns = total(ledger, account.id, devices);
    if (ns == 0) continue;
    rows.push_back({account.id, std::string(account.label), ns});
    if (share_of(ns, whole) < kSmall) {
      ++small;
      rest.ns += ns;
    }
  }
  if (all || small < 2) return rows;
  std::erase_if(rows, [&](const Row& row) { return share_of(row.ns, whole) < kSmall; });
  rest.label = fmt::format("{} others", small);
  rows.push_back(rest);
  return rows;
}

std::string table(const Ledger& ledger, const Devices& devices, bool all, const TextOptions& options) {
  const Columns columns(options.width);
  const Nanos whole = ledger.span() * static_cast<Nanos>(devices.size());
  const std::vector<Row> rows = rows_of(ledger, devices, all);
  Nanos longest = 0;
  for (const Row& row : rows) longest = std::max(longest, row.ns);
  const std::string title = title_of(ledger, devices), right = whole_of(ledger, devices);
  const bool fits = display_width(title) + 2 + display_width(right) <= columns.line();
  std::string text = fits ? bold(pad_right(title, columns.line() - display_width(right)), options) + right + "\n"
                          : bold(pad_right(title, std::min(columns.line(), display_width(title))), options) + "\n" +
                                pad_left(right, columns.line()) + "\n";
  for (const Row& row : rows) {
    const double share = share_of(row.ns, whole);
    text += fmt::format("  {}{} {} {}\n", pad_right(row.label, columns.label),
                        painted(bar(share, columns.cells, options.utf8), row.account, options),
                        pad_left(percent(share), 7), pad_left(column_duration(row.ns, longest), 10));
  }
  return text;
}

std::string sentence(const Ledger& ledger, const Devices& devices, const TextOptions& options) {
  const Nanos whole = ledger.span() * static_cast<Nanos>(devices.size());
  std::vector<std::string> parts;
  for (const Row& row : rows_of(ledger, devices, false))
    parts.push_back(fmt::format("{} {}", row.label, percent(share_of(row.ns, whole))));
  return wrap(fmt::format("{}: {}", title_of(ledger, devices), join(parts, ", ")), options.width, "", "  ");
}

// The groups, each told by `tell`; past `lines` lines the rest of the devices are one group.
template <class Tell>
std::string told(std::vector<Devices> groups, std::size_t lines, const Tell& tell) {
  std::string text;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const std::string next = tell(groups[i]);
    if (i + 1 < groups.size() && i > 0 && lines_in(text) + 2 * lines_in(next) > lines) {
      for (std::size_t j = i + 1; j < groups.size(); ++j)
        groups[i].insert(groups[i].end(), groups[j].begin(), groups[j].end());
      std::sort(groups[i].begin(), groups[i].end());
      return text + tell(groups[i]);
    }
    text += next;
  }
  return text;
}

}  // namespace

namespace {

std::string names_on_one(const Ledger& ledger, const Devices& devices) {
  const auto index = [&](std::size_t i) { return ledger.devices[devices[i]].index; };
  if (devices.size() == 1) return fmt::format("GPU {}", index(0));
  std::vector<std::string> runs;
  for (std::size_t i = 0, last = 0; i < devices.size(); i = last + 1) {
    last = i;
    while (last + 1 < devices.size() && index(last + 1) == index(last) + 1) ++last;
    if (last > i + 1)
      runs.push_back(fmt::format("{} to {}", index(i), index(last)));
    else
      for (std::size_t j = i; j <= last; ++j) runs.push_back(fmt::format("{}", index(j)));
  }
  if (runs.size() == 2) return fmt::format("GPUs {} and {}", runs[0], runs[1]);
  return "GPUs " + join(runs, ", ");
}

}  // namespace

std::string gpu_names(const Ledger& ledger, const std::vector<std::size_t>& devices) {
  std::vector<Device> of_machines;
  for (const std::size_t device : devices)
    if (!ledger.devices[device].host.empty()) of_machines.push_back(ledger.devices[device]);
  return of_machines.empty() ? names_on_one(ledger, devices) : gpus_on_machines(of_machines);
}

std::vector<std::vector<std::size_t>> alike(const Ledger& ledger) {
  std::vector<Devices> groups;
  for (std::size_t device = 0; device < ledger.devices.size(); ++device) {
    const auto mine = shares(ledger, device);
    const auto group = std::find_if(groups.begin(), groups.end(), [&](const Devices& other) {
      const auto theirs = shares(ledger, other.front());
      const bool close = std::equal(mine.begin(), mine.end(), theirs.begin(),
                                    [](double one, double two) { return std::abs(one - two) <= kFewPoints; });
      return close && ledger.devices[other.front()].name == ledger.devices[device].name;
    });
    if (group == groups.end())
      groups.push_back({device});
    else
      group->push_back(device);
  }
  return groups;
}

namespace {

// The sum, and the two that computed the least and the most.
std::string sum_and_extremes(const Ledger& ledger, const TextOptions& options) {
  Devices all(ledger.devices.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  std::vector<Nanos> computing(all.size()), read(all.size());
  for (const LedgerEntry& entry : ledger.entries) {
    if (entry.account == Account::kUseful) computing[entry.device] += entry.ns;
    if (entry.account != Account::kUnobserved) read[entry.device] += entry.ns;
  }
  std::vector<double> useful;
  for (const std::size_t device : all) useful.push_back(share_of(computing[device], read[device]));
  const auto [least, most] = std::minmax_element(useful.begin(), useful.end());
  std::string text = table(ledger, all, false, options);
  if (*least == *most) return text;
  const auto one = [&](auto at, std::string_view what) {
    const Devices device{static_cast<std::size_t>(at - useful.begin())};
    std::vector<std::string> parts;
    for (const Row& row : rows_of(ledger, device, false))
      parts.push_back(fmt::format("{} {}", row.label, percent(share_of(row.ns, ledger.span()))));
    return wrap(fmt::format("{}, {}: {}", what, gpu_name(ledger.devices[device.front()]), join(parts, ", ")),
                options.width, "  ", "    ");
  };
  return text + one(least, "computing least") + one(most, "computing most");
}

}  // namespace

std::string bars(const Ledger& ledger, const TextOptions& options, std::size_t lines) {
  constexpr std::size_t kMostTold = 16;  // of several machines
  if (ledger.devices.size() > kMostTold && !ledger.devices.front().host.empty())
    return sum_and_extremes(ledger, options);
  const auto groups = alike(ledger);
  for (const bool all : {true, false}) {
    std::string text;
    for (const Devices& devices : groups) text += table(ledger, devices, all, options);
    if (lines_in(text) <= (all ? lines * 3 / 4 : lines)) return text;
  }
  return share_sentences(ledger, options, lines);
}

std::string share_sentences(const Ledger& ledger, const TextOptions& options, std::size_t lines) {
  return told(alike(ledger), lines, [&](const Devices& devices) { return sentence(ledger, devices, options); });
}

std::string column_duration(Nanos ns, Nanos longest) {
  if (longest < kSecond) return human_duration(ns);
  if (longest < 60 * kSecond) return ns < 50 * kMillisecond ? "< 0.1 s" : fmt::format("{:.1f} s", seconds(ns));
  const Nanos whole = (ns + kSecond / 2) / kSecond;
  if (longest < 3600 * kSecond) return whole == 0 ? "< 0:01" : fmt::format("{}:{:02}", whole / 60, whole % 60);
  return whole == 0 ? "< 0:00:01" : fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

}  // namespace headroom::report
