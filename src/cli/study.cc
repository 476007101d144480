// SPDX-License-Identifier: Apache-2.0
#include "cli/study.h"

#include <unistd.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <thread>

#include "analyze/study_match.h"
#include "base/answers.h"
#include "base/bytes.h"
#include "base/database_copy.h"
#include "base/duration.h"
#include "base/human.h"
#include "base/secrets.h"
#include "base/strings.h"
#include "base/visible.h"
#include "cli/arguments.h"
#include "cli/output.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "report/study.h"
#include "report/study_document.h"
#include "tune/pruner_text.h"
#include "tune/study_facts.h"
#include "tune/what_if.h"

namespace headroom::cli {

namespace {

// Options that the command line gives as texts.
struct ToldWords {
  std::string pruner, gpu_memory, trial_memory, watch, recording;
};

bool is_local_file(const std::string& storage) {
  return storage.find("://") == std::string::npos || storage.starts_with("sqlite:");
}

// --watch takes a number where one follows; else the next word is the storage.
Result<void> read_watch(StudyVerb& verb, const ToldWords& words) {
  if (words.watch.empty()) return {};
  auto every = parse_duration(words.watch);
  if (const auto plain = parse_number<double>(words.watch); plain && *plain >= 0)
    every = static_cast<Nanos>(std::min(*plain, 1e6) * 1e9);
  std::error_code ignored;
  if (!every && (verb.storage.empty() || (answers(words.watch) && std::filesystem::exists(words.watch, ignored)))) {
    verb.recording = verb.storage;
    verb.storage = words.watch;
    return {};
  }
  if (!every) return tl::unexpected(within("--watch", every.error()));
  if (*every < kSecond / 10 || *every > 3600 * kSecond)
    return fail(Errc::kInvalidInput, fmt::format("--watch: {} is no useful time between two looks", words.watch),
                "write 0.1 to 3600 seconds, such as --watch 10");
  verb.watch_every = *every;
  return {};
}

// What is looked at, and how: what takes one another's place is refused.
Result<void> read_names(StudyVerb& verb, const ToldWords& words) {
  HR_TRYV(read_watch(verb, words));
  if (verb.storage.empty())
    return fail(Errc::kInvalidInput, "study: which storage?",
                "headroom study optuna.db, or the URL that the study was created with");
  if (!words.recording.empty() && !verb.recording.empty())
    return fail(Errc::kInvalidInput, fmt::format("study: two recordings, {} and {}", verb.recording, words.recording),
                "name one of them");
  if (!words.recording.empty()) verb.recording = words.recording;
  const std::string_view beside = verb.json                     ? "--json"
                                  : !verb.document.path.empty() ? "--output"
                                  : !verb.recording.empty()     ? "recording"
                                                                : "";
  if (verb.watch && !beside.empty())
    return fail(Errc::kInvalidInput, fmt::format("--watch takes no {}", beside),
                "without --watch it does; headroom record records a study that runs");
  return {};
}

Result<void> read_size(const char* flag, const std::string& text, std::optional<std::int64_t>& to) {
  if (text.empty()) return {};
  const auto bytes = parse_bytes(text);
  if (!bytes) return tl::unexpected(within(flag, bytes.error()));
  to = *bytes;
  return {};
}

Result<void> read_words(StudyVerb& verb, const ToldWords& words) {
  HR_TRYV(read_names(verb, words));
  if (!words.pruner.empty()) {
    auto pruner = tune::parse_pruner(words.pruner);
    if (!pruner) return tl::unexpected(within("--pruner", pruner.error()));
    verb.told.pruner = *pruner;
  }
  HR_TRYV(read_size("--gpu-memory", words.gpu_memory, verb.told.gpu_memory_bytes));
  HR_TRYV(read_size("--trial-memory", words.trial_memory, verb.told.memory_per_trial_bytes));
  if (!verb.tz.empty())
    if (const auto zone = offset_of_zone(verb.tz, 0); !zone) return tl::unexpected(within("--tz", zone.error()));
  settle(verb);
  return {};
}

Result<void> explain_studies(const StudyVerb& verb) {
  DocumentFile file;
  if (!verb.document.path.empty()) {
    HR_TRY(file, document_file("study", verb.document));
  }
  DatabaseCopy::remove_stale();
  HR_TRY(const StorageContent content, read_storage({.name = verb.storage, .study = verb.study}));
  std::optional<OpenedRecording> recording;
  if (!verb.recording.empty()) {
    HR_TRY(recording, open_recording(verb.recording));
  }
  std::vector<StudyReport> reports;
  for (const Study& study : content.studies) {
    HR_TRY(StudyReport report, explained(verb, recording ? &*recording : nullptr, study));
    reports.push_back(std::move(report));
  }
  if (!verb.document.path.empty()) HR_TRYV(write_study(verb, content.studies, reports, file));
  if (verb.json) {
    put(report::to_json(reports));
    return {};
  }
  constexpr std::size_t kListed = 3;
  report::TextOptions layout = study_layout(verb);
  if (reports.empty()) print("There is no study in {} yet.\n", verb.told.storage);
  if (reports.size() > kListed) put(report::study_list(reports, layout));
  for (const StudyReport& report : reports) {
    if (reports.size() > 1) print("{}Study {}\n", &report == reports.data() ? "" : "\n", visible(report.name));
    layout.recording = study_argument(verb, report.name, reports.size() == 1);
    put(report::to_text(report, layout));
  }
  return {};
}

void declare_told(CLI::App& app, StudyVerb& verb, ToldWords& words) {
  app.add_option("--pruner", words.pruner,
                 "the study's pruner, as its program has it: \"PatientPruner(HyperbandPruner(1, 100, 3), patience=2)\"")
      ->type_name("CALL");
  app.add_option("--sampler", verb.told.sampler, "its sampler: TPESampler")->type_name("NAME");
  app.add_option("--workers", verb.told.workers, "trials at once, as it was started")
      ->check(CLI::Range(1, 100'000))
      ->type_name("COUNT");
  app.add_option("--tz", verb.tz, "zone of the storage's times: UTC, local, +09:00, Asia/Tokyo (default: estimated)")
      ->type_name("ZONE");
  app.add_option("--cores", verb.told.cores, "cores of the host (default: this machine's, for a file)")
      ->check(CLI::Range(0.1, 100'000.0))
      ->type_name("COUNT");
  app.add_option("--gpu-memory", words.gpu_memory, "memory of the GPU: 24GB")->type_name("SIZE");
  app.add_option("--trial-memory", words.trial_memory, "what a trial takes of it: 3.5GB")->type_name("SIZE");
  app.add_option("--loader-workers", verb.told.loader_workers, "data loader workers of a trial")
      ->check(CLI::Range(0, 100'000))
      ->type_name("COUNT");
  app.add_option("--kernel-share", verb.told.kernel_share,
                 "share of a trial's steps in which its kernels run when it is alone, 0 to 1")
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("RATIO");
  app.add_option("--replays", verb.told.replays, "simulations for each change (default 20)")
      ->check(CLI::Range(1, 10'000))
      ->type_name("COUNT");
}

}  // namespace

void settle(StudyVerb& verb) {
  if (!verb.told.cores && is_local_file(verb.storage)) verb.told.cores = std::thread::hardware_concurrency();
  verb.told.storage = hide_secrets(verb.storage);
}

Result<tune::StudyOptions> told_about(const StudyVerb& verb, const Study& study) {
  tune::StudyOptions told = verb.told;
  told.now = realtime_now();
  Nanos begin = told.now;
  for (const Trial& trial : study.trials)
    if (trial.start) begin = std::min(begin, *trial.start);
  HR_TRY(told.local_offset, offset_of_zone("local", begin));
  if (verb.tz.empty()) return told;
  HR_TRY(told.utc_offset, offset_of_zone(verb.tz, begin));
  return told;
}

std::string study_argument(const StudyVerb& verb, const std::string& name, bool only) {
  std::string words = typed_word(verb.told.storage);
  if (!verb.recording.empty()) words += " " + typed_word(verb.recording);
  return only && !verb.study ? words : fmt::format("{} --study {}", words, typed_word(name));
}

report::TextOptions study_layout(const StudyVerb& verb) {
  report::TextOptions layout = text_options(STDOUT_FILENO);
  if (verb.width) layout.width = *verb.width;
  layout.full = verb.full;
  return layout;
}

Result<StudyReport> explained(const StudyVerb& verb, const OpenedRecording* recording, const Study& study) {
  HR_TRY(tune::StudyOptions told, told_about(verb, study));
  StudyReport report = facts_with(recording, study, told);
  if (!verb.no_what_if) tune::add_what_if(study, told, report);
  return report;
}

namespace {

std::string some_names(const std::vector<Study>& studies) {
  std::vector<std::string> names;
  for (const Study& study : studies) names.push_back(typed_word(study.name));
  constexpr std::size_t kShown = 5;
  if (names.size() > kShown) names.resize(kShown), names.emplace_back("...");
  return join(names, ", ");
}

// Of the only study there is.
Result<report::StudyDocument> document_of(const StudyVerb& verb, const std::vector<Study>& studies,
                                          const std::vector<StudyReport>& reports) {
  if (reports.empty())
    return fail(Errc::kNotFound, fmt::format("{}: there is no study in it yet", verb.told.storage), "");
  if (reports.size() > 1)
    return fail(Errc::kInvalidInput,
                fmt::format("{} holds {}, and a document is of one", verb.told.storage,
                            count_of(reports.size(), "study", "studies")),
                "name it: --study " + some_names(studies));
  return report::StudyDocument{
      .report = reports[0], .study = studies[0], .name = study_argument(verb, reports[0].name, true)};
}

Result<std::vector<StudyReport>> explained(const StudyVerb& verb, const std::vector<Study>& studies) {
  std::vector<StudyReport> reports;
  for (const Study& study : studies) {
    HR_TRY(StudyReport report, explained(verb, nullptr, study));
    reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace

Result<Study> study_in(const std::string& storage, const std::optional<std::string>& name, const std::string& likely,
                       const char* option) {
  HR_TRY(StorageContent content, read_storage({.name = storage, .study = name}));
  for (Study& study : content.studies)
    if (content.studies.size() == 1 || study.name == likely) return std::move(study);
  if (content.studies.empty())
    return fail(Errc::kNotFound, fmt::format("{}: there is no study in it yet", hide_secrets(storage)),
                "run it, then ask again");
  return fail(Errc::kInvalidInput,
              fmt::format("{} holds {}: which of them?", hide_secrets(storage),
                          count_of(content.studies.size(), "study", "studies")),
              fmt::format("name it: {} {}", option, some_names(content.studies)));
}

StudyVerb about(const std::string& storage) {
  StudyVerb verb;
  verb.storage = storage;
  settle(verb);
  return verb;
}

Result<void> write_study(const StudyVerb& verb, const std::vector<Study>& studies,
                         const std::vector<StudyReport>& reports, const DocumentFile& file) {
  HR_TRY(const report::StudyDocument document, document_of(verb, studies, reports));
  return file.format == "json" ? write_document(file, report::to_json(reports)) : write_document(file, document);
}

Result<std::string> studies_json(const std::string& storage) {
  HR_TRY(const StorageContent content, read_storage({.name = storage, .study = std::nullopt}));
  HR_TRY(const std::vector<StudyReport> reports, explained(about(storage), content.studies));
  return report::to_json(reports);
}

Result<std::string> study_page(const std::string& storage, const std::optional<std::string>& name) {
  StudyVerb verb = about(storage);
  verb.study = name;
  HR_TRY(const StorageContent content, read_storage({.name = storage, .study = name}));
  HR_TRY(const std::vector<StudyReport> reports, explained(verb, content.studies));
  HR_TRY(const report::StudyDocument document, document_of(verb, content.studies, reports));
  return report::to_html(document);
}

Action declare_study(VerbInput input) {
  auto verb = std::make_shared<StudyVerb>();
  auto words = std::make_shared<ToldWords>();
  auto& app = input.app;
  app.add_option("STORAGE", verb->storage, "a SQLite file or journal of Optuna, or a URL as Optuna takes it");
  app.add_option("RECORDING", verb->recording, "a recording of the time in which it ran");
  app.add_option("--study", verb->study, "the study of this name (default: all)")->type_name("NAME");
  app.add_option("--recording", words->recording, "the same as RECORDING")->type_name("RECORDING");
  app.add_flag("--json", verb->json, "machine-readable, schema headroom.study/1");
  declare_document(
      app, verb->document,
      "write it as a document, too: a file that ends with .html or .md; one that ends with .json is a plan, "
      "for headroom verify");
  app.add_flag("--full", verb->full, "all that is known: tables, every change with its edit, assumptions");
  app.add_option("--width", verb->width, "columns of the text, 40 to 160 (default: the terminal's)")
      ->check(CLI::Range(report::kNarrowest, report::kWidest))
      ->type_name("COUNT");
  declare_told(app, *verb, *words);
  app.add_flag("--no-what-if", verb->no_what_if, "the facts only; nothing is simulated");
  auto* watch =
      app.add_option("--watch", words->watch, "follow a study that runs, a look every so often (default 10 s)")
          ->type_name("[SECONDS]")
          ->expected(0, 1);
  return [verb, words, watch] {
    verb->watch = watch->count() > 0;
    if (const auto read = read_words(*verb, *words); !read) return report_error(read.error());
    if (verb->watch) return watch_study(*verb);
    const auto done = explain_studies(*verb);
    return done ? kExitOk : report_error(done.error());
  };
}

namespace {

// The trials' times by Unix time, if the storage's are `offset` before it.
StudyMatch match_at(const Recording& recording, const Study& study, const tune::StudyOptions& told, Nanos offset) {
  std::vector<TrialTime> trials;
  for (const Trial& trial : study.trials)
    if (trial.start && (trial.complete || trial.state == TrialState::kRunning))
      trials.push_back({.number = trial.number,
                        .begin = *trial.start + offset,
                        .end = trial.complete ? *trial.complete + offset : told.now,
                        .finished = trial.complete.has_value(),
                        .failed = trial.state == TrialState::kFail});
  return match_study(recording, std::move(trials));
}

void add(const StudyMatch& match, const OpenedRecording& opened, tune::StudyOptions& told) {
  told.recording = StudyRecording{.path = opened.path,
                                  .covered = match.covered,
                                  .gpu_busy = match.gpu_busy,
                                  .memory_per_trial_bytes = match.memory_per_trial_bytes,
                                  .memory_at_once_bytes = match.memory_at_once_bytes,
                                  .trials_matched = static_cast<std::int64_t>(match.trials.size())};
  if (!told.gpu_memory_bytes && !match.trials.empty()) told.gpu_memory_bytes = match.gpu_memory_bytes;
  for (const TrialUse& use : match.trials) {
    told.recording->shared |= use.shared;
    tune::TrialMeasured& measured = told.measured[use.number];
    if (use.startup) measured.startup_seconds = seconds(*use.startup);
    measured.gpu = use.gpu;
    measured.computed = use.computed;
    measured.memory_bytes = use.memory_bytes;
    measured.alive = !use.gone;
  }
  for (const OutOfMemoryTrial& trial : match.out_of_memory)
    told.measured[trial.number].out_of_memory = trial.said ? tune::OutOfMemory::kSaid : tune::OutOfMemory::kFull;
}

}  // namespace

StudyReport facts_with(const OpenedRecording* opened, const Study& study, tune::StudyOptions& told) {
  StudyReport facts = tune::study_facts(study, told);
  if (opened == nullptr) return facts;
  StudyMatch match = match_at(opened->recording, study, told, facts.clock.offset);
  bool by_recording = false;
  if (!facts.clock.known && told.local_offset != 0) {  // UTC or local time: where its trials are in the recording
    StudyMatch local = match_at(opened->recording, study, told, -told.local_offset);
    by_recording = local.trials.empty() != match.trials.empty();
    if (by_recording) told.utc_offset = local.trials.empty() ? 0 : told.local_offset;
    if (match.trials.empty()) match = std::move(local);
  } else if (!facts.clock.known && !match.trials.empty()) {
    by_recording = true;
    told.utc_offset = 0;
  }
  if (match.trials.empty())
    say(fmt::format("{}: no trial of study {} was found among its processes", opened->path, study.name),
        match.covered > 0 ? "it must be of the job that runs the trials, with its GPU"
                          : "its time is another; --tz says of which zone the study's times are");
  add(match, *opened, told);
  facts = tune::study_facts(study, told);
  if (by_recording) facts.clock.how = "only so its trials lie in the recording";
  return facts;
}

}  // namespace headroom::cli
