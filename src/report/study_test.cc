// SPDX-License-Identifier: Apache-2.0
#include "report/study.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "report/study_text.h"

namespace headroom::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

WhatIf change(std::string name, double rate, Estimate ratio, double busy, double pruned, bool helps) {
  WhatIf row{.change = std::move(name),
             .how = "study.optimize(objective, n_trials=200)  # the edit",
             .trials_per_hour = {rate - 4, rate, rate + 4},
             .utilisation = {busy - 0.01, busy, busy + 0.01},
             .time_to_best_ratio = ratio,
             .gpu_hours = 1.1,
             .helps = helps};
  row.states[static_cast<std::size_t>(TrialState::kPruned)] = pruned;
  return row;
}

std::vector<WhatIf> changes() {
  return {change("warm workers", 179, {0.79, 0.81, 0.84}, 0.99, 173, true),
          change("6 trials at once (3 GB each)", 160, {0.86, 0.9, 0.94}, 0.95, 173, true),
          change("half the start-up", 165, {0.85, 0.9, 0.95}, 0.94, 173, true),
          change("4 loader workers", 145, {0.95, 1, 1.05}, 0.84, 173, false),
          change("reduction_factor 3 -> 4", 140, {0.96, 1, 1.07}, 0.84, 173, false),
          change("min_resource 1 -> 3", 133, {1.02, 1.1, 1.2}, 0.86, 160, false),
          change("patience 2 -> 10", 113, {1.2, 1.27, 1.35}, 0.91, 120, false)};
}

// Figures in the manner of a sweep with short trials; invented.
StudyReport sweep() {
  StudyReport report{.name = "sweep", .storage = "optuna.db", .engine = "SQLite, schema v3.0.0.d, Optuna 3.1.0"};
  report.directions = {Direction::kMinimize};
  report.trials = 200;
  report.begin = 1'763'820'000 * kSecond;
  report.end = *report.begin + 4'900 * kSecond;
  report.live = true;
  report.clock = {.offset = -9 * 3600 * kSecond, .known = true, .how = "heartbeats"};
  report.states = {{.state = TrialState::kRunning, .count = 4},
                   {.state = TrialState::kComplete, .count = 8, .duration_seconds = {8, 500, 510, 540, 580, 600}},
                   {.state = TrialState::kPruned, .count = 173, .duration_seconds = {173, 40, 50, 95, 240, 1980}},
                   {.state = TrialState::kFail, .count = 15, .duration_seconds = {15, 40, 41, 48, 60, 61}},
                   {.state = TrialState::kWaiting, .count = 0}};
  report.pruner = {.text = "PatientPruner(HyperbandPruner(1, 100, 3), patience=2)", .told = true};
  report.sampler = {.text = "TPESampler", .evidence = "relative parameters are stored"};
  report.startup = {.inside_seconds = Estimate{40.1, 45, 49},
                    .between_seconds = Estimate{1, 2.3, 3},
                    .share = 0.466,
                    .method = "Theil-Sen regression of duration on steps"};
  report.step_time = {.seconds = Estimate{2, 2.3, 2.6},
                      .parameter = "layers",
                      .explained = 0.45,
                      .direction = "longer with higher layers"};
  report.parallelism = {
      .open_mean = 4.9, .alive_mean = 3.9, .computing_mean = 1.28, .any_computing = 0.781, .open_max = 5, .workers = 4};
  report.worker_time = {.total = 19'440, .useful = 2'333, .discarded = 7'582, .failed = 389, .startup = 9'136};
  report.failures = {{.where = "batch_size >= 256 and layers >= 6",
                      .failed = 13,
                      .of = 15,
                      .before_first_step = true,
                      .trials = {3, 7, 9}}};
  report.best = {{.trial = 12, .trials_finished = 20, .seconds = 700, .worked_seconds = 700, .value = 0.5},
                 {.trial = 143, .trials_finished = 150, .seconds = 4'000, .worked_seconds = 4'000, .value = 0.0316}};
  for (std::int64_t trial = 196; trial < 200; ++trial)
    report.bars.push_back(
        {.trial = trial, .state = TrialState::kRunning, .begin = 4'000, .end = 4'900, .dead = trial < 198});
  report.anomalies = {{.kind = "dead_trial",
                       .text = "trials 196 and 197 are RUNNING in the storage and dead",
                       .next = "study.tell(196, state=TrialState.FAIL) ends the first",
                       .trials = {196, 197}},
                      {.kind = "slow_trial",
                       .text = "Trial 109 was pruned after 33:00; others after 1:35.",
                       .next = "Look at its log.",
                       .trials = {109}}};
  report.calibration = {.good = true,
                        .why = "the replay gives 8.4 complete where 8 were, and 1:20:10 for 1:21:40",
                        .replayed_seconds = {4'700, 4'810, 4'950},
                        .replays = 20};
  report.as_it_is = change("as it is", 144, {1, 1, 1}, 0.83, 173, false);
  report.utilisation_of_gpu = true;
  report.what_if = changes();
  report.what_if[1].safety = Safety::kModerate;
  report.what_if[1].why = "memory: 6 x 3.0 GB of 24 GB";
  report.assumptions = {"A start-up keeps one core busy."};
  return report;
}

std::size_t longest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t longest = 0;
  for (std::string line; std::getline(lines, line);) longest = std::max(longest, display_width(line));
  return longest;
}

std::string one_line(std::string text) {
  std::string out;
  for (const char c : text)
    if (c != '\n' && c != ' ')
      out += c;
    else if (!out.ends_with(' '))
      out += ' ';
  return out;
}

TEST(StudyText, CallsNothingGpuTimeThatNoGpuIsKnownToHaveDone) {
  StudyReport report = sweep();
  report.utilisation_of_gpu = true;
  EXPECT_THAT(what_if_details(report, report.what_if[0]), HasSubstr("1.1 GPU-hours for the same trials"));
  report.utilisation_of_gpu = false;
  EXPECT_THAT(what_if_details(report, report.what_if[0]), Not(HasSubstr("GPU-hours")));
  EXPECT_THAT(what_if_details(report, report.what_if[0]), HasSubstr("1:06:00 for the same trials"));
}

TEST(StudyText, WhereManyTrialsFailTheEditsAreNotTheFirstThingToDo) {
  constexpr std::string_view kFirst = "First see why trials fail, as told above";
  StudyReport report = sweep();
  ASSERT_TRUE(report.as_it_is);
  report.what_if.front().helps = true;
  auto& states = report.as_it_is->states;
  states[static_cast<std::size_t>(TrialState::kFail)] = 0;
  EXPECT_THAT(one_line(to_text(report, {})), Not(HasSubstr(std::string(kFirst))));
  states[static_cast<std::size_t>(TrialState::kFail)] = 100;
  const std::string text = one_line(to_text(report, {}));
  EXPECT_THAT(text, HasSubstr(std::string(kFirst)));
  EXPECT_LT(text.find(kFirst), text.find(" 1. " + report.what_if.front().how.substr(0, 20))) << text;
}

TEST(StudyText, FitsFortyLinesOfEightyColumnsAndNarrowerOnesInProportion) {
  StudyReport report = sweep();
  for (int i = 0; i < 30; ++i) report.what_if.push_back(report.what_if.back());
  for (int i = 0; i < 10; ++i) report.anomalies.push_back(report.anomalies.back());
  for (const std::size_t width : {40U, 60U, 80U, 160U}) {
    const std::string text = to_text(report, {.width = width});
    EXPECT_LE(longest_line(text), width) << text;
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), width >= 80 ? 40 : 40 * 80 / width) << text;
    EXPECT_LE(longest_line(to_text(report, {.width = width, .full = true})), width);
  }
}

TEST(StudyText, TheAnswerComesFirstAndItsSharesSumToAHundred) {
  const std::string text = one_line(to_text(sweep(), {}));
  EXPECT_TRUE(text.starts_with(
      "200 trials: 8 complete, 173 pruned, 15 failed, 4 running (2 of them dead). Of 5.4 worker-hours, "
      "12 % trained trials that completed, 39 % trials that were pruned, 47 % was start-up, 2 % went into failed and "
      "dead trials. Best value 0.0316, minimised: trial 143, after 1:06:40 and 150 trials. "))
      << text;
}

TEST(StudyText, PercentsSumToAHundredWhateverTheParts) {
  EXPECT_THAT(percents({1, 1, 1}), ::testing::ElementsAre(34, 33, 33));
  EXPECT_THAT(percents({0, 0}), ::testing::ElementsAre(0, 0));
  EXPECT_THAT(percents({0.004, 0.996}), ::testing::ElementsAre(0, 100));
  EXPECT_THAT(percents({std::numeric_limits<double>::infinity(), 1}), ::testing::ElementsAre(0, 0));
  for (int n = 1; n < 40; ++n) {
    std::vector<double> parts;
    for (int i = 0; i < 6; ++i) parts.push_back((n * 37 + i * i * 11) % 101 + 0.1);
    int sum = 0;
    for (const int percent : percents(parts)) sum += percent;
    EXPECT_EQ(sum, 100);
  }
}

TEST(StudyText, TheFactsCarryTheirMethodAndTheirRange) {
  const std::string text = one_line(to_text(sweep(), {}));
  EXPECT_THAT(text, HasSubstr("Start-up 45.0 s (40.1 s to 49.0 s) in each trial, 2.3 s (1.0 s to 3.0 s) between trials "
                              "(Theil-Sen regression of duration on steps)."));
  EXPECT_THAT(text,
              HasSubstr("Step 2.3 s (2.0 s to 2.6 s), longer with higher layers (explains 45 % of its variation)"));
  EXPECT_THAT(
      text, HasSubstr("At once 3.9 trials open on average, 4.9 with dead ones (5 at most), 1.3 past start-up, at least "
                      "one for 78 % of the time; 4 workers, as inferred."));
  EXPECT_THAT(text, HasSubstr("batch_size >= 256 and layers >= 6: 13 of 15 trials, before the first step (trials 3, 7 "
                              "and 9)."));
}

TEST(StudyText, WhatIfIsCalledSimulatedAndRankedWithTheEditsOfTheFirstThree) {
  const std::string text = to_text(sweep(), {});
  EXPECT_THAT(text, HasSubstr("simulated 20 times"));
  EXPECT_THAT(text, HasSubstr("1. warm workers                  144 -> 179   0.79x-0.84x  83 -> 99 %  safe\n"
                              "2. 6 trials at once (3 GB each)  144 -> 160   0.86x-0.94x  83 -> 95 %  moderate\n"));
  EXPECT_THAT(text, HasSubstr("   patience 2 -> 10              144 -> 113   1.20x-1.35x  83 -> 91 %  slower\n"));
  EXPECT_THAT(text, HasSubstr("\n1. study.optimize(objective, n_trials=200)  # the edit\n2. "));
  EXPECT_THAT(text, Not(HasSubstr("4. ")));
  EXPECT_THAT(to_text(sweep(), {.width = 120}), HasSubstr("moderate: memory: 6 x 3.0 GB of 24 GB\n"));
}

TEST(StudyText, SlowerIsOneWordAndSaysThanWhat) {
  StudyReport report = sweep();
  report.what_if = {change("6 trials at once", 160, {1.02, 1.4, 1.9}, 0.83, 173, false)};
  report.what_if[0].safety = Safety::kModerate;
  report.what_if[0].why = "memory per trial is not known";
  const std::string text = one_line(to_text(report, {.width = 160}));
  EXPECT_THAT(text, HasSubstr("slower Slower: the best value comes later than in the study as it is."));
  EXPECT_THAT(text, Not(HasSubstr("slower: memory")));
  EXPECT_THAT(what_if_details(report, report.what_if[0]),
              HasSubstr("slower to the best value than the study as it is; moderate: memory per trial is not known"));
}

TEST(StudyText, TrialsPerHourSayHowManyOfThemFail) {
  StudyReport report = sweep();
  EXPECT_THAT(to_text(report, {.width = 200}), Not(HasSubstr("trials/h counts")));
  report.as_it_is->states[static_cast<std::size_t>(TrialState::kFail)] = 173;
  EXPECT_THAT(
      one_line(to_text(report, {.width = 200})),
      HasSubstr("trials/h counts all that end: of the study as it is 50 % of them failed, and 72 per hour did not."));
}

TEST(StudyText, WorkersThatBecameFewerAreToldWithTheTime) {
  StudyReport report = sweep();
  report.parallelism.fewer = {{0, 4}, {130, 3}, {300, 2}};
  EXPECT_THAT(one_line(to_text(report, {.width = 200})),
              HasSubstr("; 4 workers for the first 2:10, 3 until 5:00, then 2, as inferred."));
}

TEST(StudyText, AnEditThatBeginsWithAnotherIsToldInFewWords) {
  StudyReport report = sweep();
  report.what_if[0].how = "keep the process";
  report.what_if[1].how = "keep the process; start 6 of them";
  report.what_if[1].safety = Safety::kRisky;
  EXPECT_THAT(to_text(report, {}),
              HasSubstr("\n1. keep the process\n2. as 1., and: start 6 of them (risky: memory: 6 x "
                        "3.0 GB of 24 GB)\n"));
  std::swap(report.what_if[0].how, report.what_if[1].how);
  EXPECT_THAT(to_text(report, {}), HasSubstr("\n2. as 1., except: start 6 of them"));
  EXPECT_THAT(to_text(report, {.width = 100, .full = true}), HasSubstr("   keep the process; start 6 of them\n"));
}

TEST(StudyText, AChangeThatDoesNotFitHasNoEdit) {
  StudyReport report = sweep();
  report.what_if[1].fits = report.what_if[1].helps = false;
  const std::string text = to_text(report, {});
  EXPECT_THAT(text, HasSubstr("   6 trials at once (3 GB each) 144 -> 160  0.86x-0.94x 83 -> 95 % does not fit\n"));
}

TEST(StudyText, WhereStartUpIsNotKnownTrialsAreOpen) {
  StudyReport report = sweep();
  report.utilisation_of_gpu = false;
  report.startup = {.method = "no trial reports"};
  const std::string text = one_line(to_text(report, {}));
  EXPECT_THAT(text, HasSubstr("time to best open risk"));
  EXPECT_THAT(text, HasSubstr("Open: at least one trial is"));
  EXPECT_THAT(to_json({report}), HasSubstr("\"trials_open\""));
}

TEST(StudyText, WithoutAWordOfTheGpuNothingIsSaidOfIt) {
  StudyReport report = sweep();
  report.utilisation_of_gpu = false;
  const std::string text = one_line(to_text(report, {}));
  EXPECT_THAT(text, HasSubstr("time to best computing risk"));
  EXPECT_THAT(text, HasSubstr("nothing here tells what the GPU did"));
  EXPECT_THAT(text, Not(HasSubstr("GPU busy")));
  EXPECT_THAT(text, Not(HasSubstr("fills the GPU")));
}

TEST(StudyText, OfTooFewReplaysNoRatioIsTold) {
  StudyReport report = sweep();
  report.what_if.front().best_reached = 0.3;
  EXPECT_THAT(to_text(report, {}), HasSubstr("hardly reached"));
}

TEST(StudyText, BusyIsNotFastIsSaidWhereTheTableShowsItOnly) {
  const std::string note = "Pruning less fills the GPU with trials that lose: busier, and slower.";
  EXPECT_THAT(one_line(to_text(sweep(), {})), HasSubstr(note));
  StudyReport report = sweep();
  report.what_if.pop_back();
  report.what_if.pop_back();
  EXPECT_THAT(one_line(to_text(report, {})), Not(HasSubstr(note)));
  report = sweep();  // slower, but not by pruning less
  for (WhatIf& row : report.what_if) row.states = report.as_it_is->states;
  EXPECT_THAT(one_line(to_text(report, {})), Not(HasSubstr(note)));
}

TEST(StudyText, ABestValueThatOnlySomeReplaysReachHasItsMark) {
  StudyReport report = sweep();
  report.what_if.resize(2);
  report.what_if[0].best_reached = 0.6;
  report.what_if[1].best_reached = 0;
  const std::string text = to_text(report, {});
  EXPECT_THAT(text, HasSubstr("0.79x-0.84x*"));
  EXPECT_THAT(one_line(text), HasSubstr("* reached in a part of the replays only; under another pruner the others "
                                        "count with all their time, and then that of the study as it is."));
  EXPECT_THAT(text, HasSubstr("not reached"));
}

TEST(StudyText, AWhatIfThatIsRefusedSaysWhy) {
  StudyReport report = sweep();
  report.what_if.clear();
  report.calibration = {.good = false, .why = "the pruner is not known"};
  EXPECT_THAT(to_text(report, {}), HasSubstr("No what-if: the pruner is not known.\n"));
  report.calibration = {};
  EXPECT_THAT(to_text(report, {}), Not(HasSubstr("hat-if")));
}

TEST(StudyText, TheClockIsNamedOrItsZoneIsSaidToBeUnknown) {
  EXPECT_THAT(one_line(to_text(sweep(), {})), HasSubstr("Times: the storage's are UTC+09:00 (heartbeats). Next"));
  StudyReport report = sweep();
  report.clock = {};
  EXPECT_THAT(one_line(to_text(report, {})),
              HasSubstr("taken for UTC (nothing here tells their zone; --tz tells it); lengths of"));
}

TEST(StudyText, AnomaliesAreSentencesAndCodeStaysAsItIs) {
  const std::string text = one_line(to_text(sweep(), {}));
  EXPECT_THAT(text, HasSubstr("! Trials 196 and 197 are RUNNING in the storage and dead. study.tell(196, "
                              "state=TrialState.FAIL) ends the first. ! Trial 109 was"));
}

TEST(StudyText, AStartupThatIsNotKnownSaysWhy) {
  StudyReport report = sweep();
  report.startup = {.between_seconds = Estimate{2, 2, 2}, .method = "no trial reports"};
  EXPECT_THAT(to_text(report, {}), HasSubstr("within trials not known (no trial reports); 2.0 s between trials.\n"));
}

TEST(StudyText, NamesFromOutsideCannotSpeakToTheTerminal) {
  StudyReport report = sweep();
  report.name = report.storage = report.engine = report.step_time.parameter = report.failures[0].where =
      report.anomalies[0].text = report.what_if[0].change = report.what_if[0].how = report.clock.how =
          report.calibration.why = "\x1b[31m\u202e";
  for (const bool full : {false, true}) {
    const std::string text = to_text(report, {.full = full}) + study_list({report}, {});
    EXPECT_THAT(text, Not(HasSubstr("\x1b")));
    EXPECT_THAT(text, Not(HasSubstr("\u202e")));
  }
}

TEST(StudyText, AStudyWithoutTrialsAndOneThatOnlyFailsAreReportedToo) {
  EXPECT_TRUE(to_text(StudyReport{.name = "empty"}, {}).starts_with("0 trials.\n"));
  StudyReport report{.name = "fails", .trials = 2};
  report.states = {{.state = TrialState::kFail, .count = 2}};
  const std::string text = to_text(report, {});
  EXPECT_THAT(text, HasSubstr("2 trials: 2 failed."));
  EXPECT_THAT(text, HasSubstr("No trial has completed with a value"));
}

TEST(StudyText, NumbersThatAreNoneDoNotBreakIt) {
  const double bad = std::numeric_limits<double>::quiet_NaN(), huge = 1e308;
  StudyReport report = sweep();
  report.startup.inside_seconds = Estimate{bad, huge, -huge};
  report.worker_time.total = huge;
  report.best.back().value = std::numeric_limits<double>::infinity();
  report.what_if[0].time_to_best_ratio = {bad, bad, bad};
  report.parallelism.open_mean = bad;
  EXPECT_THAT(to_text(report, {.full = true}), HasSubstr("Best value inf"));
  const auto json = nlohmann::json::parse(to_json({report}));
  EXPECT_TRUE(json["studies"][0]["best"]["value"].is_null());
}

TEST(StudyText, TheNextCommandNamesTheStudyAsThePersonDid) {
  EXPECT_THAT(to_text(sweep(), {.recording = "optuna.db --study sweep"}),
              HasSubstr("Next: headroom study optuna.db --study sweep --full\n"
                        "      headroom study optuna.db --study sweep --watch\n"));
  StudyReport recorded = sweep();
  recorded.recording.emplace();
  EXPECT_THAT(to_text(recorded, {.recording = "optuna.db last"}),
              HasSubstr("Next: headroom study optuna.db last --full\n"));
  EXPECT_THAT(to_text(recorded, {}), Not(HasSubstr("--watch")));
}

TEST(StudyJson, HasTheNamesOfTheSchema) {
  const auto root = nlohmann::json::parse(to_json({sweep()}));
  EXPECT_EQ(root["schema"], "headroom.study/1");
  const auto& study = root["studies"][0];
  EXPECT_EQ(study["states"]["PRUNED"], 173);
  EXPECT_EQ(study["duration_seconds"]["COMPLETE"]["p50"], 540);
  EXPECT_TRUE(study["duration_seconds"]["WAITING"].is_null());
  EXPECT_EQ(study["startup_seconds"]["estimate"], 45);
  EXPECT_EQ(study["parallelism"]["running_mean"], 4.9);
  EXPECT_EQ(study["worker_seconds"]["startup"], 9136);
  EXPECT_EQ(study["best"]["trial"], 143);
  EXPECT_EQ(study["what_if"][0]["time_to_best_ratio"], 0.81);
  EXPECT_EQ(study["what_if"][0]["low"], 0.79);
  EXPECT_EQ(study["anomalies"][0]["kind"], "dead_trial");
  EXPECT_TRUE(study["recording"].is_null());
  EXPECT_EQ(nlohmann::json::parse(to_json({}))["studies"].size(), 0U);
}

TEST(StudyText, SaysWhenSeveralAtOnceBeganAndWhichTrialsWereRandom) {
  StudyReport report = sweep();
  report.parallelism.since = ParallelSince{.trial = 12, .seconds = 2050, .most = 4};
  report.random_start = RandomStart{.needed = 10, .trials = 13, .over = true};
  report.sampler.told = true;
  const std::string text = one_line(to_text(report, {.full = true}));
  EXPECT_THAT(text, HasSubstr("One trial at a time until trial 12 began, after 34:10; then up to 4 at once."));
  EXPECT_THAT(text, HasSubstr("TPESampler, as told. It draws at random until 10 trials have completed or were pruned, "
                              "here its first 13: the best value up to then is that of a random search."));
  report.parallelism.since = ParallelSince{.from_first = true, .early = 4, .most = 5};
  report.parallelism.workers = 4;
  EXPECT_THAT(one_line(to_text(report, {.full = true})), HasSubstr(" 4 at once from the first on."));
  EXPECT_THAT(one_line(to_text(report, {.full = true})),
              HasSubstr("that of a random search. No trial waited for these: several were open from the first on."));
  report.parallelism.since->early = 2;
  EXPECT_THAT(one_line(to_text(report, {.full = true})), HasSubstr(" Several at once from the first on."));
  report.random_start->over = false;
  EXPECT_THAT(one_line(to_text(report, {.full = true})), HasSubstr("which is not yet so here"));
  report.random_start->per_bracket = true;
  EXPECT_THAT(one_line(to_text(report, {.full = true})), HasSubstr("In each bracket of Hyperband"));
}

TEST(StudyText, NamesMemoryAsTheReasonOfFailedTrials) {
  StudyReport report = sweep();
  report.failures[0].said_out_of_memory = 9;
  report.failures[0].memory_full = 2;
  EXPECT_THAT(
      one_line(to_text(report, {.width = 160})),
      HasSubstr(
          "13 of 15 trials, before the first step, out of GPU memory by the output: at least 9 of these, the GPU's "
          "memory was full as 2 of these ended (trials 3, 7 and 9)"));
}

TEST(StudyText, KernelsOfFailedTrialsAreSaidWhereReadingsTellThem) {
  StudyReport report = sweep();
  for (StateFacts& facts : report.states)
    if (facts.state == TrialState::kPruned) facts.count = 0;
  report.recording = StudyRecording{.covered = 1, .gpu_busy = 0.4, .gpu_discarded = 2 * kSecond, .trials_matched = 24};
  EXPECT_THAT(one_line(to_text(report, {.full = true})),
              HasSubstr("about 2.0 s of kernels were for trials that failed, if"));
  report.recording->gpu_discarded.reset();
  EXPECT_THAT(
      one_line(to_text(report, {.full = true})),
      HasSubstr("whether kernels ran for trials that failed is not known: they are too short for the readings"));
}

TEST(StudyText, HasWhatIsPredictedOfEachChangeInFull) {
  StudyReport report = sweep();
  WhatIf& warm = report.what_if[0];
  warm.time_to_best_seconds = {600, 1200, 2400};
  warm.pruned_share = {0.83, 0.85, 0.86};
  warm.trial_seconds = {60, 70, 80};
  warm.at_once = {3.9, 3.9, 4.0};
  warm.memory_at_once_bytes = Estimate{8e9, 9e9, 10e9};
  EXPECT_THAT(what_if_details(report, warm),
              HasSubstr("the best value after 10:00 to 40:00; 83 % to 86 % of the trials pruned; a trial takes 1:00 to "
                        "1:20; 3.9 to 4.0 trials at once; 7629 MiB to 9537 MiB of GPU memory"));
}

}  // namespace
}  // namespace headroom::report
