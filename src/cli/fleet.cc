// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/answers.h"
#include "base/civil_time.h"
#include "base/duration.h"
#include "base/result.h"
#include "base/strings.h"
#include "batch/folder.h"
#include "batch/journal.h"
#include "cli/arguments.h"
#include "cli/compare_sides.h"
#include "cli/config.h"
#include "cli/environment.h"
#include "cli/open_recording.h"
#include "cli/output.h"
#include "cli/predictions.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "diagnose/explain.h"
#include "fleet/groups.h"
#include "fleet/job.h"
#include "import/byte_stream.h"
#include "import/import.h"
#include "import/jobstats.h"
#include "model/fleet.h"
#include "model/shelf.h"
#include "plan/plan.h"
#include "record/reader.h"
#include "report/fleet.h"

namespace headroom::cli {

namespace {

struct FleetFile {
  std::string path;
  std::optional<RecordingSummary> summary;  // of a .hrec file; of a log nothing is known before it is read
};

struct FleetFiles {
  std::vector<FleetFile> list;  // recordings of a job before those of a whole machine, and logs last: who counts first
  std::size_t found = 0;
  std::vector<FleetLeftOut> left_out, unreadable;
};

namespace fs = std::filesystem;

std::string in_words(const Error& error, const std::string& path) {
  std::string what = error.what;
  if (what.starts_with(path + ": ")) what.erase(0, path.size() + 2);
  return error.hint.empty() ? what : what + " (" + error.hint + ")";
}

class Finder {
 public:
  FleetFiles find(const std::vector<std::string>& named) {
    for (const std::string& what : named) add_named(what);
    leave_copies_out();
    const auto rank = [](const FleetFile& file) {
      if (!file.summary) return 2;
      const RecordingMeta& meta = file.summary->meta;
      return meta.origin == "run" || meta.origin == "batch" || meta.job_pid ? 0 : 1;
    };
    const auto order = [&](const FleetFile& file) {
      return std::tuple(rank(file), file.summary ? file.summary->meta.start_realtime : 0, std::cref(file.path).get());
    };
    std::stable_sort(files_.list.begin(), files_.list.end(),
                     [&](const FleetFile& x, const FleetFile& y) { return order(x) < order(y); });
    return std::move(files_);
  }

 private:
  void add_named(const std::string& what) {
    if (const auto there = answers(what); !there) return unreadable(what, there.error());
    std::error_code ignored;
    if (fs::is_directory(what, ignored)) return search(what);
    if (what.ends_with(".toml")) {
      const auto folder = batch::find_folder(what);
      return folder ? search(*folder) : unreadable(what, folder.error());
    }
    const auto path = path_of_recording(what);
    if (!path) return unreadable(what, path.error());
    if (*path == "-") {
      files_.unreadable.push_back({what, "standard input is no file: name one"});
      return;
    }
    add(*path, true);
  }

  // Links to folders are not followed.
  void search(const std::string& folder) {
    std::error_code error;
    fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, error);
    std::vector<std::string> paths, journals;
    for (const fs::recursive_directory_iterator end; !error && at != end; at.increment(error)) {
      std::error_code ignored;
      if (!at->is_regular_file(ignored)) continue;
      if (at->path().extension() == ".hrec") paths.push_back(at->path().string());
      if (at->path().filename() == "journal.sqlite") journals.push_back(at->path().parent_path().string());
    }
    if (error) files_.unreadable.push_back({folder, fmt::format("it cannot be searched: {}", error.message())});
    std::sort(paths.begin(), paths.end());
    std::sort(journals.begin(), journals.end());
    for (const std::string& path : paths) add(path, true);
    for (const std::string& journal : journals) add_batch(journal);
    if (paths.empty() && journals.empty() && !error)
      files_.left_out.push_back({folder, "no .hrec file and no batch lies in it"});
  }

  // Recordings of a batch lie where all do, unless somebody said otherwise.
  void add_batch(const std::string& folder) {
    const auto contents = batch::read_journal(folder);
    if (!contents) return unreadable(folder, contents.error());
    std::error_code ignored;
    for (const batch::Run& run : contents->runs)
      if (!run.recording.empty() && answers(run.recording) && fs::is_regular_file(run.recording, ignored))
        add(run.recording, false);
  }

  // `said`: somebody named it, and is told where it is left out.
  void add(const std::string& path, bool said) {
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0) {
      const auto [first, is_new] = known_.emplace(std::pair(status.st_dev, status.st_ino), path);
      if (!is_new) {
        if (said && first->second != path)
          files_.left_out.push_back({path, fmt::format("it is the same file as {}", first->second)});
        return;
      }
    }
    ++files_.found;
    const auto format = format_of_file(path);
    if (!format || *format != LogFormat::kRecording) {
      if (path.ends_with(".hrec"))
        return format ? (void)files_.unreadable.push_back({path, "it is no recording"})
                      : unreadable(path, format.error());
      files_.list.push_back({path, std::nullopt});
      return;
    }
    auto summary = summarize(path);
    if (!summary) return unreadable(path, summary.error());
    files_.list.push_back({path, std::move(*summary)});
  }

  // Recordings with one id are one job: the file that holds most stays.
  void leave_copies_out() {
    const auto holds = [](const FleetFile& file) {
      const RecordingMeta& meta = file.summary->meta;
      return std::pair(meta.end - meta.start, file.summary->bytes);
    };
    std::map<std::string, std::size_t> best;
    std::set<std::size_t> out;
    for (std::size_t i = 0; i < files_.list.size(); ++i) {
      if (!files_.list[i].summary || files_.list[i].summary->meta.id.empty()) continue;
      const auto [first, is_new] = best.emplace(files_.list[i].summary->meta.id, i);
      if (is_new) continue;
      const bool better = holds(files_.list[i]) > holds(files_.list[first->second]);
      out.insert(better ? first->second : i);
      if (better) first->second = i;
    }
    std::vector<FleetFile> kept;
    for (std::size_t i = 0; i < files_.list.size(); ++i) {
      FleetFile& file = files_.list[i];
      if (!out.contains(i)) continue;
      const std::string& whole = files_.list[best.at(file.summary->meta.id)].path;
      files_.left_out.push_back({file.path, fmt::format("it is a copy of {}, by its id", whole)});
    }
    for (std::size_t i = 0; i < files_.list.size(); ++i)
      if (!out.contains(i)) kept.push_back(std::move(files_.list[i]));
    files_.list = std::move(kept);
  }

  void unreadable(const std::string& path, const Error& error) {
    files_.unreadable.push_back({path, in_words(error, path)});
  }

  FleetFiles files_;
  std::map<std::pair<dev_t, ino_t>, std::string> known_;
};

// The recordings that `named` means: files, names that every verb takes, task files, and folders, in which all .hrec
// files are looked for and those that batches name in their journals. A file that is there twice is in the list once.
FleetFiles fleet_files(const std::vector<std::string>& named) { return Finder().find(named); }

struct FleetOptions {
  std::vector<std::string> files;
  std::string by = "user", since, until, sacct;
  std::size_t top = 20;
  bool json = false, full = false;
};

FleetBy by_of(const std::string& name) {
  return std::find_if(kFleetBys.begin(), kFleetBys.end(), [&](const FleetByInfo& by) { return by.name == name; })->id;
}

// "2026-11-01", "2026-11-01 08:00", by this machine's clock, or "7d": so long ago.
Result<std::optional<Nanos>> instant_of(const char* flag, const std::string& text) {
  if (text.empty()) return std::optional<Nanos>();
  if (const auto ago = parse_duration(text)) return std::optional<Nanos>(realtime_now() - *ago);
  const auto date = parse_date(text);
  const auto time = date ? std::optional(IsoTime{*date, false}) : parse_iso_time(text);
  if (!time)
    return fail(Errc::kInvalidInput, fmt::format("{}: '{}' is no time", flag, text),
                "write a date such as 2026-11-01, a time such as 2026-11-01T08:00:00, or how long ago: 7d");
  if (time->zone) return std::optional<Nanos>(time->at);
  HR_TRY(const Nanos offset, offset_of_zone("local", time->at));
  return std::optional<Nanos>(time->at - offset);
}

// Explains one recording after the other and keeps a row of each.
class FleetReader {
 public:
  FleetReader(Fleet& fleet, ExplainOptions explaining, std::vector<CauseHistory> history)
      : fleet_(fleet),
        explaining_(std::move(explaining)),
        history_(std::move(history)),
        coverage_(fleet.since, fleet.until) {}

  void read(FleetFiles files) {
    fleet_.files += files.found;
    fleet_.left_out = std::move(files.left_out);
    fleet_.unreadable = std::move(files.unreadable);
    Nanos said = monotonic_now();
    for (std::size_t i = 0; i < files.list.size(); ++i) {
      add(files.list[i]);
      if (monotonic_now() - said < kSayEvery) continue;
      said = monotonic_now();
      say(fmt::format("{} of {} recordings explained", i + 1, files.list.size()));
    }
  }

 private:
  static constexpr Nanos kSayEvery = 5 * kSecond;

  void add(const FleetFile& file) {
    const auto opened = open_recording(file.path, {}, {.leave_out = metrics_not_explained()});
    if (!opened) {
      std::string why = opened.error().what;
      if (why.starts_with(file.path + ": ")) why.erase(0, file.path.size() + 2);
      fleet_.unreadable.push_back({file.path, why});
      return;
    }
    const RecordingMeta& meta = opened->recording.meta;
    if (const std::string why = why_not(meta); !why.empty()) return leave_out(file.path, why);
    ExplainOptions explaining = explaining_;
    explaining.path = file.path;
    Explanation explanation = explain(opened->recording, explaining);
    if (explanation.ledger.budget() == 0) return leave_out(file.path, "it holds no time of a GPU that its job had");
    fleet::keep_what_is_told(explanation);
    PlanRequest request;
    request.history = history_;
    request.loader = loader_of(opened->recording);
    FleetJob job = fleet::job_of(opened->recording, explanation, plan(explanation, request), coverage_);
    if (job.held() > 0) {
      fleet_.jobs.push_back(std::move(job));
    } else if (job.elsewhere > 0) {
      leave_out(file.path, fmt::format("the same GPUs at the same time are in {}", job.counted_with));
    } else {
      leave_out(file.path, fleet_.since || fleet_.until ? "its jobs held no GPU in the time that was asked for"
                                                        : "its job held no GPU: only others used them");
    }
  }

  // "": it counts.
  std::string why_not(const RecordingMeta& meta) {
    if (!meta.id.empty() && !ids_.insert(meta.id).second) return "it is a copy of another file here, by its id";
    if ((fleet_.since || fleet_.until) && meta.start_realtime == 0)
      return "it has no date, so that --since and --until cannot be told of it";
    return "";
  }

  void leave_out(const std::string& path, std::string why) { fleet_.left_out.push_back({path, std::move(why)}); }

  Fleet& fleet_;
  const ExplainOptions explaining_;
  const std::vector<CauseHistory> history_;
  fleet::Coverage coverage_;
  std::set<std::string> ids_;
};

// Sums the jobs that sacct lists, of which only averages are known.
Result<FleetAverages> averages_of(const FleetOptions& options, FleetBy by) {
  HR_TRY(ByteStream bytes, ByteStream::open(options.sacct));
  fleet::AverageSum sum(by, options.top, options.top);
  AveragedCounts counts;
  HR_TRYV(read_sacct(options.sacct, bytes, [&](const SacctRow& row) {
    switch (row.kind) {
      case SummaryKind::kSummary:
        return sum.add(row.job);
      case SummaryKind::kWithoutGpus:
        ++counts.without_gpus;
        return;
      case SummaryKind::kTooShort:
        ++counts.too_short;
        return;
      case SummaryKind::kNoSummary:
        ++counts.no_summary;
        return;
      case SummaryKind::kUnreadable:
        if (counts.unreadable++ == 0) counts.first_unreadable = row.problem;
    }
  }));
  return sum.take(std::move(counts));
}

Result<void> add_recordings(const FleetOptions& options, Fleet& fleet) {
  ExplainOptions explaining;
  HR_TRY(explaining.families, users_families());
  HR_TRY(const compare::Outcomes past, past_predictions());
  std::vector<std::string> named = options.files;
  if (named.empty()) {
    HR_TRY(const Shelf shelf, users_shelf());
    named.push_back(shelf.directory());
  }
  FleetReader(fleet, explaining, compare::cause_histories(past.list)).read(fleet_files(named));
  return {};
}

Result<int> run_fleet(const FleetOptions& options) {
  Fleet fleet;
  fleet.by = by_of(options.by);
  HR_TRY(fleet.since, instant_of("--since", options.since));
  HR_TRY(fleet.until, instant_of("--until", options.until));
  if (fleet.since && fleet.until && *fleet.since >= *fleet.until)
    return fail(Errc::kInvalidInput, "--since and --until leave no time", "--until is the later one");
  if ((fleet.since || fleet.until) && !options.sacct.empty() && options.files.empty())
    return fail(Errc::kInvalidInput, "--since and --until are about recordings, and there are none",
                "sacct itself takes the time that is wanted: -S and -E");
  if (!options.sacct.empty()) {
    HR_TRY(fleet.averages, averages_of(options, fleet.by));
  }
  if (options.sacct.empty() || !options.files.empty()) HR_TRYV(add_recordings(options, fleet));
  fleet::sum_up(options.top, fleet);
  if (options.json) {
    put(report::to_json(fleet));
  } else {
    report::TextOptions layout = text_options(STDOUT_FILENO);
    layout.full = options.full;
    put(report::to_text(fleet, layout));
  }
  const bool read_none = fleet.jobs.empty() && !fleet.unreadable.empty() && !fleet.averages;
  return read_none ? kExitFailed : kExitOk;
}

}  // namespace

Action declare_fleet(VerbInput input) {
  auto options = std::make_shared<FleetOptions>();
  auto& app = input.app;
  app.add_option("FILES", options->files,
                 "folders, in which all .hrec files are looked for and those of batches, and " +
                     std::string(kRecordingWords) + "; default: the folder of your recordings")
      ->type_name("DIR|FILE");
  std::vector<std::string> names;
  for (const FleetByInfo& by : kFleetBys) names.emplace_back(by.name);
  app.add_option(
         "--by", options->by,
         "a row for each: user, project (the folder that jobs were started in), job (a recording), command, host, "
         "gpu (the model); default: user")
      ->check(CLI::IsMember(names))
      ->type_name("WHAT");
  app.add_option(
         "--sacct", options->sacct,
         "what Jobstats keeps of each job, its averages: the output of sacct -P -o ...,admincomment; - is standard "
         "input; a list of its own beside that of recordings")
      ->type_name("FILE");
  app.add_option("--top", options->top, "so many rows, and one for all others (default 20)")
      ->check(CLI::Range(1, 1'000'000))
      ->type_name("COUNT");
  app.add_option("--since", options->since, "GPU time from then on: 2026-11-01, 2026-11-01T08:00:00, or 7d ago")
      ->type_name("TIME");
  app.add_option("--until", options->until, "GPU time before then")->type_name("TIME");
  app.add_flag("--json", options->json, "machine-readable, schema headroom.fleet/1");
  app.add_flag("--full", options->full, "every account and finding of each row, and every file that is left out");
  return [options] {
    const auto done = run_fleet(*options);
    return done ? *done : report_error(done.error());
  };
}

}  // namespace headroom::cli
