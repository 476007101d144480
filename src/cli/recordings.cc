// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/duration.h"
#include "base/fd.h"
#include "base/human.h"
#include "base/strings.h"
#include "base/visible.h"
#include "cli/arguments.h"
#include "cli/environment.h"
#include "cli/open_recording.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "record/shelf.h"
#include "report/layout.h"
#include "report/palette.h"
#include "report/recordings.h"

namespace headroom::cli {

namespace {

struct RecordingsOptions {
  bool json = false, dry_run = false, yes = false;
  std::string max_size, older_than;
  std::optional<std::size_t> keep;
  std::vector<std::string> names;
};

std::string local_time(Nanos unix_ns) {
  if (unix_ns == 0) return "-";  // an import that knew no date
  const auto second = static_cast<std::time_t>(unix_ns / kSecond);
  std::tm local{};
  char text[32];
  ::localtime_r(&second, &local);
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local)};
}

std::string what_of(const RecordingSummary& summary) {
  return summary.meta.command.empty() ? visible("(" + summary.meta.origin + ")") : typed_line(summary.meta.command);
}

struct ListedCell {
  std::string text;
  std::size_t width = 0;  // of its column; 0: the last one
  bool right = false;
  std::string (*dressed)(std::string_view, const report::TextOptions&) = nullptr;
};

ListedCell state_of(const ShelfEntry& entry) {
  constexpr std::size_t kWidest = 11;
  ListedCell cell{.text = std::string(entry.summary ? name(entry.summary->state) : "unreadable"), .width = kWidest};
  if (!entry.summary)
    cell.dressed = report::alarm;
  else if (entry.summary->state == FileState::kRecording)
    cell.dressed = report::good;
  else if (entry.summary->state == FileState::kCut)
    cell.dressed = report::alarm;
  else if (entry.summary->state == FileState::kInterrupted)
    cell.dressed = report::warning;
  return cell;
}

// What is typed comes first. On a terminal what has no room goes on in the next line, and only the command is cut; in a
// pipe a recording is a line.
std::string row_of(const std::vector<ListedCell>& cells, bool terminal, const report::TextOptions& layout) {
  constexpr std::size_t kIndent = 4, kLeastOfCommand = 20;
  std::string text;
  std::size_t used = 0;
  for (const ListedCell& cell : cells) {
    const std::size_t width = cell.width > 0 ? cell.width : std::min(kLeastOfCommand, report::display_width(cell.text));
    if (terminal && used > 0 && used + 2 + width > layout.width) {
      text += "\n" + std::string(kIndent, ' ');
      used = kIndent;
    } else if (used > 0) {
      text += "  ";
      used += 2;
    }
    const std::size_t wide = report::display_width(cell.text), room = layout.width - std::min(layout.width, used);
    const std::size_t last = terminal ? std::min(wide, room) : wide;
    const std::string shown = cell.right
                                  ? report::pad_left(cell.text, cell.width)
                                  : report::pad_right(cell.text, cell.width > 0 ? std::max(cell.width, wide) : last);
    used += std::max(width, report::display_width(shown));
    text += cell.dressed != nullptr ? cell.dressed(shown, layout) : shown;  // last: colours must not be cut
  }
  return text + "\n";
}

void print_table(const std::vector<ShelfEntry>& entries, bool terminal) {
  const report::TextOptions layout = text_options(STDOUT_FILENO);
  std::size_t longest = 4;
  for (const auto& entry : entries) longest = std::max(longest, report::display_width(visible(entry.name)));
  const auto row = [&](std::vector<ListedCell> cells) { put(row_of(cells, terminal, layout)); };
  row({{"NAME", longest, false, report::bold},
       {"DURATION", 8, true, report::bold},
       {"GPUS", 4, true, report::bold},
       {"SIZE", 8, true, report::bold},
       {"STATE", 11, false, report::bold},
       {"STARTED", 19, false, report::bold},
       {"COMMAND", 0, false, report::bold}});
  for (const auto& entry : entries) {
    std::string lasted = "-", gpus = "-", started = local_time(entry.modified), what = visible(entry.problem);
    if (entry.summary) {
      const RecordingMeta& meta = entry.summary->meta;
      lasted = human_duration(std::max<Nanos>(0, meta.end - meta.start)), what = what_of(*entry.summary);
      gpus = fmt::format("{}", entry.summary->devices), started = local_time(meta.start_realtime);
    }
    row({{visible(entry.name), longest},
         {lasted, 8, true},
         {gpus, 4, true},
         {human_bytes(entry.bytes), 8, true},
         state_of(entry),
         {started, 19},
         {what, 0}});
  }
}

int list(const Shelf& shelf, const RecordingsOptions& options) {
  const ShelfListing listing{shelf.directory(), shelf.network_filesystem(), shelf.list()};
  const auto& entries = listing.entries;
  if (options.json) {
    put(report::to_json(listing));
    return kExitOk;
  }
  if (entries.empty()) {
    print("no recordings in {}\n  make one with: headroom run COMMAND\n", listing.directory);
    return kExitOk;
  }
  print_table(entries, ::isatty(STDOUT_FILENO) == 1);
  print("{}, {}, in {}\n", count_of(entries.size(), "recording"), human_bytes(bytes_of(entries)), listing.directory);
  if (!listing.network_filesystem.empty())
    print("this folder is on {}: a recording there can be read only once it has ended\n", listing.network_filesystem);
  return kExitOk;
}

// "2G", "500M", "1.5GiB", "1000000": binary units.
Result<std::int64_t> parse_size(const std::string& text) {
  const auto unit_at = text.find_first_not_of("0123456789.");
  const auto number = parse_number<double>(std::string_view(text).substr(0, unit_at));
  const std::string unit = unit_at == std::string::npos ? "" : lower(text.substr(unit_at));
  constexpr std::string_view kUnits = "kmgt";
  double factor = 1;
  bool known = unit.empty() || unit == "b";
  if (const auto at = kUnits.find(unit.empty() ? '?' : unit[0]); at != std::string_view::npos) {
    known = unit.size() == 1 || unit.substr(1) == "b" || unit.substr(1) == "ib";
    for (std::size_t i = 0; i <= at; ++i) factor *= 1024;
  }
  if (!number || !known || *number * factor > 9e18)
    return fail(Errc::kInvalidInput, fmt::format("--max-size: '{}' is no size", text), "write it as 500M or 2G");
  return static_cast<std::int64_t>(*number * factor);
}

Result<PruneLimits> limits_of(const RecordingsOptions& options) {
  PruneLimits limits;
  limits.keep = options.keep;
  if (!options.older_than.empty()) {
    HR_TRY(limits.max_age, parse_duration(options.older_than));
  }
  if (!options.max_size.empty()) {
    HR_TRY(limits.max_bytes, parse_size(options.max_size));
  }
  if (!limits.keep && !limits.max_age && !limits.max_bytes) limits.max_bytes = kDefaultShelfBytes;
  return limits;
}

// Whether what is listed may go: said beforehand, or on a terminal now.
Result<bool> may_remove(const RecordingsOptions& options, std::size_t count, std::int64_t bytes) {
  if (options.yes) return true;
  const std::string what = fmt::format("{}, {}", count_of(count, "recording"), human_bytes(bytes));
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDERR_FILENO) != 1)
    return fail(Errc::kInvalidInput, fmt::format("recordings: {} would be removed, and nobody can be asked", what),
                "--yes removes them, --dry-run only says which");
  (void)write_all(STDERR_FILENO, fmt::format("Remove {}? [y/N] ", visible(what)));
  std::string answer;
  for (char c = 0; ::read(STDIN_FILENO, &c, 1) == 1 && c != '\n';) answer += c;
  return lower(trim(answer)) == "y" || lower(trim(answer)) == "yes";
}

void print_pruned(const PruneReport& report, const PruneLimits& limits, std::string_view done) {
  for (const auto& entry : report.removed) print("{} {} ({})\n", done, entry.name, human_bytes(entry.bytes));
  std::vector<std::string> bounds;
  if (limits.max_bytes) bounds.push_back("at most " + human_bytes(*limits.max_bytes));
  if (limits.max_age) bounds.push_back("none older than " + human_duration(*limits.max_age));
  if (limits.keep) bounds.push_back(fmt::format("the newest {}", *limits.keep));
  print("{} {} of {} recordings, {} (limit: {})\n", done == "removed" ? "kept" : "keeping", report.kept.size(),
        report.kept.size() + report.removed.size(), human_bytes(bytes_of(report.kept)), join(bounds, ", "));
}

Result<int> prune(const Shelf& shelf, const RecordingsOptions& options) {
  HR_TRY(PruneLimits limits, limits_of(options));
  const Nanos now = realtime_now();
  const PruneReport plan = shelf.prune(limits, now, DryRun::kYes);
  if (options.dry_run) {
    options.json ? (void)put(report::to_json(plan, DryRun::kYes)) : print_pruned(plan, limits, "would remove");
    return kExitOk;
  }
  if (!plan.removed.empty()) {
    if (!options.json && !options.yes) print_pruned(plan, limits, "to remove:");
    HR_TRY(const bool may, may_remove(options, plan.removed.size(), bytes_of(plan.removed)));
    if (!may) return say("nothing was removed"), kExitFailed;
  }
  limits.among.emplace();  // what came meanwhile was not asked about
  for (const auto& entry : plan.removed) limits.among->push_back(entry.name);
  const PruneReport report = shelf.prune(limits, now);
  options.json ? (void)put(report::to_json(report, DryRun::kNo)) : print_pruned(report, limits, "removed");
  for (const auto& problem : report.problems) say(problem);
  return report.problems.empty() ? kExitOk : kExitFailed;
}

Result<int> remove(const Shelf& shelf, const RecordingsOptions& options) {
  std::vector<std::string> names;
  std::int64_t bytes = 0;
  for (const auto& what : options.names) {
    HR_TRY(std::string name, name_of_recording(what));
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  for (const auto& name : names) {
    std::error_code ignored;
    const auto size = std::filesystem::file_size(shelf.directory() + "/" + name, ignored);
    if (!ignored) bytes += static_cast<std::int64_t>(size);
  }
  // One that was named in full needs no question.
  if (options.dry_run || names.size() > 1 || names != options.names) {
    for (const auto& name : names) print("{} {}\n", options.dry_run ? "would remove" : "to remove:", name);
    if (options.dry_run) return kExitOk;
    HR_TRY(const bool may, may_remove(options, names.size(), bytes));
    if (!may) return say("nothing was removed"), kExitFailed;
  }
  int code = kExitOk;
  for (const auto& name : names) {
    if (const auto removed = shelf.remove(name); !removed)
      code = report_error(removed.error());
    else
      print("removed {}\n", name);
  }
  return code;
}

// For scripts: each line is one word, and no option. A name that a shell would take apart or expand is left out.
int print_names(const Shelf& shelf) {
  std::int64_t left_out = 0;
  for (const auto& name : shelf.names()) {
    if (shell_quote(name) == name && !name.starts_with('-'))
      print("{}\n", name);
    else
      ++left_out;
  }
  if (left_out > 0)
    (void)write_all(
        STDERR_FILENO,
        fmt::format("headroom: {} left out: the name is not one word for a shell; headroom recordings lists it\n",
                    count_of(left_out, "recording")));
  return kExitOk;
}

int code_of(const Result<int>& done) { return done ? *done : report_error(done.error()); }

}  // namespace

Action declare_recordings(VerbInput input) {
  auto options = std::make_shared<RecordingsOptions>();
  auto& app = input.app;
  app.require_subcommand(0, 1);
  app.add_flag("--json", options->json, "machine-readable, schema headroom.recordings/1");
  auto* list_them = app.add_subcommand("list", "what has been recorded, newest first (the default)");
  list_them->add_flag("--json", options->json, "machine-readable, schema headroom.recordings/1");
  auto* prune_them = app.add_subcommand("prune", "remove the oldest; never one that is being recorded");
  prune_them->add_option("--max-size", options->max_size, "keep at most this much (default, without other limits: 2G)")
      ->type_name("SIZE");
  prune_them->add_option("--older-than", options->older_than, "remove what was last written longer ago, such as 30d")
      ->type_name("DURATION")
      ->check(duration_check());
  prune_them->add_option("--keep", options->keep, "keep only so many of the newest")
      ->type_name("COUNT")
      ->check(CLI::Range(0, 1'000'000));
  prune_them->add_flag("--json", options->json, "machine-readable, schema headroom.recordings-prune/1");
  auto* remove_them = app.add_subcommand("rm", "remove recordings");
  remove_them->add_option("RECORDING", options->names, "names that the list shows, how they begin, last, or last~1")
      ->required();
  for (CLI::App* deletes : {prune_them, remove_them}) {
    deletes->add_flag("-n,--dry-run", options->dry_run, "only say what would be removed");
    deletes->add_flag("-y,--yes", options->yes, "do not ask: needed where nobody can be asked");
  }
  auto* print_them = app.add_subcommand("names", "their names only, newest first")->group("");
  app.footer(
      "What would be removed is said first, and asked about; only rm of one recording by its whole name is not. A "
      "time\nor size needs its unit.");
  return [options, prune_them, remove_them, print_them] {
    const auto shelf = users_shelf();
    if (!shelf) return report_error(shelf.error());
    if (prune_them->parsed()) return code_of(prune(*shelf, *options));
    if (remove_them->parsed()) return code_of(remove(*shelf, *options));
    return print_them->parsed() ? print_names(*shelf) : list(*shelf, *options);
  };
}

}  // namespace headroom::cli
