// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <optional>

#include "base/duration.h"
#include "base/human.h"
#include "base/strings.h"
#include "cli/environment.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "record/shelf.h"
#include "report/recordings.h"

namespace headroom::cli {

namespace {

struct RecordingsOptions {
  bool json = false, dry_run = false;
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
  return summary.meta.command.empty() ? "(" + summary.meta.origin + ")" : shell_join(summary.meta.command);
}

void print_table(const std::vector<ShelfEntry>& entries, std::size_t width) {
  std::size_t longest = 4;
  for (const auto& entry : entries) longest = std::max(longest, entry.name.size());
  fmt::print("{:<19}  {:>8}  {:>4}  {:>8}  {:<11}  {:<{}}  COMMAND\n", "STARTED", "DURATION", "GPUS", "SIZE", "STATE",
             "NAME", longest);
  for (const auto& entry : entries) {
    std::string line;
    if (entry.summary) {
      const RecordingMeta& meta = entry.summary->meta;
      line = fmt::format("{:<19}  {:>8}  {:>4}  {:>8}  {:<11}  {:<{}}  {}", local_time(meta.start_realtime),
                         human_duration(std::max<Nanos>(0, meta.end - meta.start)), entry.summary->devices,
                         human_bytes(entry.bytes), name(entry.summary->state), entry.name, longest,
                         what_of(*entry.summary));
    } else {
      line = fmt::format("{:<19}  {:>8}  {:>4}  {:>8}  {:<11}  {:<{}}  {}", local_time(entry.modified), "-", "-",
                         human_bytes(entry.bytes), "unreadable", entry.name, longest, entry.problem);
    }
    // On a terminal a long command does not wrap; in a pipe nothing is cut.
    if (width > 0 && line.size() > width) line.resize(width);
    fmt::print("{}\n", line);
  }
}

int list(const Shelf& shelf, const RecordingsOptions& options) {
  const ShelfListing listing{shelf.directory(), shelf.network_filesystem(), shelf.list()};
  const auto& entries = listing.entries;
  if (options.json) {
    fmt::print("{}", report::to_json(listing));
    return kExitOk;
  }
  if (entries.empty()) {
    fmt::print("no recordings in {}\n  make one with: headroom run -- COMMAND\n", listing.directory);
    return kExitOk;
  }
  print_table(entries, ::isatty(STDOUT_FILENO) == 1 ? text_options(STDOUT_FILENO).width : 0);
  fmt::print("{}, {}, in {}\n", count_of(entries.size(), "recording"), human_bytes(bytes_of(entries)),
             listing.directory);
  if (!listing.network_filesystem.empty())
    fmt::print("this folder is on {}: a recording there can be read only once it has ended\n",
               listing.network_filesystem);
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

int prune(const Shelf& shelf, const RecordingsOptions& options) {
  const auto limits = limits_of(options);
  if (!limits) return report_error(limits.error());
  const DryRun dry_run = options.dry_run ? DryRun::kYes : DryRun::kNo;
  const PruneReport report = shelf.prune(*limits, realtime_now(), dry_run);
  if (options.json) {
    fmt::print("{}", report::to_json(report, dry_run));
  } else {
    for (const auto& entry : report.removed)
      fmt::print("{} {} ({})\n", options.dry_run ? "would remove" : "removed", entry.name, human_bytes(entry.bytes));
    std::vector<std::string> bounds;
    if (limits->max_bytes) bounds.push_back("at most " + human_bytes(*limits->max_bytes));
    if (limits->max_age) bounds.push_back("none older than " + human_duration(*limits->max_age));
    if (limits->keep) bounds.push_back(fmt::format("the newest {}", *limits->keep));
    fmt::print("kept {} of {} recordings, {} (limit: {})\n", report.kept.size(),
               report.kept.size() + report.removed.size(), human_bytes(bytes_of(report.kept)), join(bounds, ", "));
  }
  for (const auto& problem : report.problems) fmt::print(stderr, "headroom: {}\n", problem);
  return report.problems.empty() ? kExitOk : kExitFailed;
}

int remove(const Shelf& shelf, const RecordingsOptions& options) {
  int code = kExitOk;
  for (const auto& name : options.names) {
    const auto removed = shelf.remove(name);
    if (!removed)
      code = report_error(removed.error());
    else if (!options.json)
      fmt::print("removed {}\n", name);
  }
  return code;
}

}  // namespace

Action declare_recordings(VerbInput input) {
  auto options = std::make_shared<RecordingsOptions>();
  auto& app = input.app;
  app.require_subcommand(0, 1);
  app.add_flag("--json", options->json, "machine-readable, schema headroom.recordings/1");
  auto* list_them = app.add_subcommand("list", "what has been recorded, newest first (the default)");
  list_them->add_flag("--json", options->json, "machine-readable, schema headroom.recordings/1");
  auto* prune_them = app.add_subcommand("prune", "remove the oldest; never one that is being recorded");
  prune_them->add_option("--max-size", options->max_size, "keep at most this much (default, without other limits: 2G)");
  prune_them->add_option("--older-than", options->older_than, "remove what was last written longer ago, such as 30d");
  prune_them->add_option("--keep", options->keep, "keep only so many of the newest");
  prune_them->add_flag("--dry-run", options->dry_run, "only say what would be removed");
  prune_them->add_flag("--json", options->json, "machine-readable, schema headroom.recordings-prune/1");
  auto* remove_them = app.add_subcommand("rm", "remove recordings by the names that the list shows");
  remove_them->add_option("names", options->names, "names")->required();
  return [options, prune_them, remove_them] {
    const auto shelf = users_shelf();
    if (!shelf) return report_error(shelf.error());
    if (prune_them->parsed()) return prune(*shelf, *options);
    if (remove_them->parsed()) return remove(*shelf, *options);
    return list(*shelf, *options);
  };
}

}  // namespace headroom::cli
