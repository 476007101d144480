// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "base/strings.h"
#include "base/visible.h"
#include "report/fleet.h"
#include "report/fleet_averages.h"
#include "report/fleet_table.h"
#include "report/palette.h"

namespace headroom::report {

namespace {

struct TableLayout {
  explicit TableLayout(const TextOptions& options)
      : narrow(options.width < 64),
        name(options.width - kIndent - (narrow ? kHeld + kBack : kJobs + kHeld + kBusy + kBack)) {
    name = std::min<std::size_t>(name, 60);
  }
  static constexpr std::size_t kIndent = 2, kJobs = 6, kHeld = 13, kBusy = 8, kBack = 18;
  bool narrow;
  std::size_t name;

  [[nodiscard]] std::string line(std::string_view named, std::string_view jobs, std::string_view held,
                                 std::string_view busy, std::string_view back) const {
    return fmt::format("  {}{}{}{}{}", pad_right(named, name), narrow ? "" : pad_left(jobs, kJobs),
                       pad_left(held, kHeld), narrow ? "" : pad_left(busy, kBusy), pad_left(back, kBack));
  }
};

// "input 41 %, start-up 6 %": where the GPUs were not busy.
std::string idle_words(const FleetGroup& group) {
  constexpr std::size_t kMost = 2;
  constexpr double kLeast = 0.01;
  std::vector<const AccountInfo*> idle;
  for (const AccountInfo& account : kAccounts)
    if (!is_busy(account.id)) idle.push_back(&account);
  const auto time = [&](const AccountInfo* account) { return group.accounts[static_cast<std::size_t>(account->id)]; };
  std::stable_sort(idle.begin(), idle.end(), [&](const auto* x, const auto* y) { return time(x) > time(y); });
  std::vector<std::string> words;
  for (std::size_t i = 0; i < kMost; ++i)
    if (const double part = share_of(time(idle[i]), group.held()); part >= kLeast)
      words.push_back(fmt::format("{} {}", idle[i]->label, human_percent(part)));
  return join(words, ", ");
}

std::string loss_words(const FleetLoss& loss, std::size_t of_jobs) {
  if (of_jobs == 1) return loss.title;
  return fmt::format("{} ({} of {})", loss.title, loss.jobs, count_of(of_jobs, "job"));
}

// The finding that could bring most back; where none could, that the cause is not told.
std::string finding_words(const FleetGroup& group, const GpuUnit& unit) {
  if (!group.losses.empty() && group.losses.front().at_most > 0) return loss_words(group.losses.front(), group.jobs);
  if (group.undecided > 0)
    return fmt::format("of {} {} the cause is not told", unit.figure(group.undecided), unit.name);
  return "";
}

std::string details(const FleetGroup& group, const GpuUnit& unit, const TextOptions& options) {
  std::vector<std::string> words;
  for (std::string& part : std::vector{idle_words(group), finding_words(group, unit)})
    if (!part.empty()) words.push_back(std::move(part));
  std::string text = wrap(join(words, ". "), options.width, "    ", "    ");
  if (!options.full) return text;
  for (const AccountInfo& account : kAccounts)
    if (const Nanos ns = group.accounts[static_cast<std::size_t>(account.id)]; ns > 0)
      text += fmt::format("      {}{}{}\n", pad_right(account.label, 20), pad_left(unit.figure(ns), 12),
                          pad_left(human_percent(share_of(ns, group.held())), 9));
  for (const FleetLoss& loss : group.losses)
    text += wrap(fmt::format("{}: costs {}, {}", loss_words(loss, group.jobs), unit.figure(loss.cost),
                             loss.cause ? fmt::format("at most {} back", unit.figure(loss.at_most)) : "cause not told"),
                 options.width, "      ", "        ");
  if (!group.look_at.empty())
    text += wrap("headroom plan " + typed_word(group.look_at), options.width, "      ", "        ");
  return text;
}

std::string back_words(std::int64_t low, std::int64_t high) {
  if (high == 0) return "-";
  return low == 0 ? fmt::format("at most {}", GpuUnit::shown(high))
                  : fmt::format("{} to {}", GpuUnit::shown(low), GpuUnit::shown(high));
}

std::string table(const Fleet& fleet, const GpuUnit& unit, const TextOptions& options) {
  const TableLayout layout(options);
  std::vector<FleetGroup> rows = fleet.groups;
  if (fleet.not_listed > 0) rows.push_back(fleet.others);
  std::vector<Nanos> held, low, high;
  for (const FleetGroup& row : rows) {
    held.push_back(row.held());
    low.push_back(row.back_low);
    high.push_back(row.back_high);
  }
  const auto helds = tenths_of(held, unit), lows = tenths_of(low, unit), highs = tenths_of(high, unit);
  std::string text = bold(layout.line(name(fleet.by), "jobs", unit.name, "busy", "could come back"), options) + "\n";
  const auto line = [&](const FleetGroup& row, std::string_view named, const std::string& time,
                        const std::string& back) {
    return layout.line(named, human_count(static_cast<std::int64_t>(row.jobs)), time,
                       human_percent(share_of(busy_of(row.accounts), row.held())), back) +
           "\n";
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool rest = i == fleet.groups.size();
    const std::string named = rest ? fmt::format("{} others (--top)", fleet.not_listed)
                                   : name_cell(rows[i].name, fleet.by, layout.name, options);
    text += line(rows[i], named, GpuUnit::shown(helds[i]), back_words(lows[i], highs[i]));
    if (!rest) text += details(rows[i], unit, options);
  }
  if (rows.size() > 1)
    text += line(fleet.total, "all", unit.figure(fleet.total.held()),
                 back_words(unit.tenths(fleet.total.back_low), unit.tenths(fleet.total.back_high)));
  return text + "\n";
}

std::string ledger(const Fleet& fleet, const GpuUnit& unit, const TextOptions& options) {
  constexpr double kSmall = 0.01;
  constexpr std::size_t kLabel = 20, kFigures = 24;
  const std::size_t cells = std::min<std::size_t>(46, options.width - std::min(options.width, 3 + kLabel + kFigures));
  const Nanos whole = fleet.total.held();
  const auto line = [&](std::string_view label, Nanos ns) {
    return fmt::format("  {}{}{}{}\n", pad_right(label, kLabel), bar(share_of(ns, whole), cells, options.utf8),
                       pad_left(human_percent(share_of(ns, whole)), 10), pad_left(unit.figure(ns), 14));
  };
  std::string text = bold(fmt::format("Where all {} went", unit.name), options) + "\n";
  Nanos rest = 0;
  std::size_t small = 0;
  for (const AccountInfo& account : kAccounts) {
    const Nanos ns = fleet.total.accounts[static_cast<std::size_t>(account.id)];
    if (ns == 0) continue;
    if (!options.full && share_of(ns, whole) < kSmall) {
      rest += ns;
      ++small;
      continue;
    }
    text += line(account.label, ns);
  }
  if (small > 0) text += line(count_of(small, "other"), rest);
  return text + "\n";
}

std::string headline(const Fleet& fleet, const GpuUnit& unit, const TextOptions& options) {
  const FleetGroup& all = fleet.total;
  std::string text =
      fmt::format("{} held {} {}; their kernels ran for {} of that.", count_of(all.jobs, "recorded job"),
                  unit.figure(all.held()), unit.name, human_percent(share_of(busy_of(all.accounts), all.held())));
  if (all.back_high > 0)
    text += fmt::format(" Of it {} could come back ({}).",
                        back_words(unit.tenths(all.back_low), unit.tenths(all.back_high)),
                        human_percent(share_of(all.back_high, all.held())) + " at most");
  else
    text += " Of none of it is it known that it could come back.";
  if (all.undecided > 0) text += fmt::format(" For {} the evidence leaves several causes.", unit.figure(all.undecided));
  return wrap(text, options.width, "", "") + "\n";
}

std::string not_counted(const std::vector<FleetLeftOut>& files, std::string_view title, const TextOptions& options) {
  constexpr std::size_t kMost = 5;
  if (files.empty()) return "";
  const std::size_t shown = options.full ? files.size() : std::min(files.size(), kMost);
  std::string text = bold(title, options) + "\n";
  for (std::size_t i = 0; i < shown; ++i)
    text += wrap(fmt::format("{}: {}", typed_word(files[i].path), files[i].why), options.width, "  ", "    ");
  if (shown < files.size()) text += fmt::format("  and {} more (--full)\n", files.size() - shown);
  return text + "\n";
}

// Time of jobs that are listed, which another file counts; and what cannot be told.
std::vector<FleetLeftOut> partly(const Fleet& fleet, const GpuUnit& unit) {
  std::vector<FleetLeftOut> parts;
  for (const FleetJob& job : fleet.jobs)
    if (unit.tenths(job.elsewhere) > 0)
      parts.push_back({job.path, fmt::format("{} {} of it are counted with {}", unit.figure(job.elsewhere), unit.name,
                                             typed_word(job.counted_with))});
  return parts;
}

std::string notes(const Fleet& fleet, const GpuUnit& unit, const TextOptions& options) {
  std::string text = wrap(
      "Could come back: what the jobs would need less if they ended sooner by the changes that headroom "
      "plan names for causes that are told, or let go of GPUs that they do not use. It is an upper "
      "limit; the low end is what recordings show a change to save.",
      options.width, "", "");
  const auto unknown =
      std::count_if(fleet.jobs.begin(), fleet.jobs.end(), [](const auto& job) { return job.overlap_unknown; });
  if (unknown > 0)
    text +=
        wrap(fmt::format("{} without UUIDs of GPUs, or without a date: whether another file has the same time cannot "
                         "be told.",
                         count_of(static_cast<std::int64_t>(unknown), "file")),
             options.width, "", "");
  Nanos foreign = 0;
  for (const FleetJob& job : fleet.jobs) foreign += job.foreign;
  if (unit.tenths(foreign) > 0)
    text += wrap(fmt::format("Kernels of others on these jobs' GPUs ({} {}) are counted to none of them.",
                             unit.figure(foreign), unit.name),
                 options.width, "", "");
  return text;
}

std::string recorded(const Fleet& fleet, const TextOptions& options) {
  const GpuUnit unit(fleet.total.held());
  if (fleet.jobs.empty()) return fleet.averages ? "" : "No recorded job held a GPU.\n\n";
  std::string text = headline(fleet, unit, options) + table(fleet, unit, options) + ledger(fleet, unit, options);
  text += not_counted(partly(fleet, unit), "Counted once", options);
  text += notes(fleet, unit, options);
  if (!fleet.total.look_at.empty()) text += "Next: headroom plan " + typed_word(fleet.total.look_at) + "\n";
  return text;
}

}  // namespace

std::string to_text(const Fleet& fleet, const TextOptions& asked) {
  const TextOptions options = clamped(asked);
  std::string text = not_counted(fleet.unreadable, "Could not be read", options) +
                     not_counted(fleet.left_out, "Left out", options) + recorded(fleet, options);
  if (!fleet.averages) return text;
  if (!fleet.jobs.empty())
    text +=
        "\n" + wrap("The second list is not added to the first: a job may be in both.", options.width, "", "") + "\n";
  return text + averages_text(*fleet.averages, fleet.by, options);
}

}  // namespace headroom::report
