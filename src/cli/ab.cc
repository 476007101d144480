// SPDX-License-Identifier: Apache-2.0
#include <malloc.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <memory>

#include "base/human.h"
#include "base/visible.h"
#include "cli/compare.h"
#include "cli/compare_sides.h"
#include "cli/live_parts.h"
#include "cli/repeat_facts.h"
#include "cli/repeats.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "compare/compare.h"
#include "compare/parameters.h"
#include "probe/run_order.h"
#include "report/ab.h"

namespace headroom::cli {

namespace {

constexpr std::array<std::string_view, 2> kNames{"A", "B"};

struct AbOptions {
  RepeatsOptions common;
  int repeats = 0;  // 0: not said
  std::string until;
  int most = 20;
  bool warm_up = false;
  std::vector<std::string> outputs, changed;
  double tolerance = 1e-6;
  std::array<std::vector<std::string>, 2> commands;
};

constexpr int kDefaultRepeats = 5, kFewestRepeats = 3;
constexpr const char* kTask = "run";  // that both do, by the asker's word

// "CMD_A --- CMD_B".
Result<void> part_commands(const std::vector<std::string>& words, AbOptions& options) {
  const auto between = std::find(words.begin(), words.end(), "---");
  constexpr const char* kUsage = "headroom ab -- python3 train.py --- python3 train.py --compile";
  if (words.empty()) return fail(Errc::kInvalidInput, "ab: no commands given", kUsage);
  if (between == words.end()) return fail(Errc::kInvalidInput, "ab: there is no --- between two commands", kUsage);
  if (std::find(between + 1, words.end(), "---") != words.end())
    return fail(Errc::kInvalidInput, "ab: it compares two commands, and there is more than one ---",
                "headroom probe --vary compares several values of one parameter");
  options.commands[0].assign(words.begin(), between);
  options.commands[1].assign(between + 1, words.end());
  for (std::size_t side = 0; side < 2; ++side)
    if (options.commands[side].empty())
      return fail(Errc::kInvalidInput,
                  fmt::format("ab: there is no command {} the ---", side == 0 ? "before" : "after"), kUsage);
  return {};
}

std::string resume_line(const AbOptions& o) {
  std::vector<std::string> words{"headroom", "ab"};
  if (o.repeats > 0) words.push_back(fmt::format("--repeats={}", o.repeats));
  if (!o.until.empty()) words.push_back(fmt::format("--until={}", o.until));
  if (o.most != AbOptions().most) words.push_back(fmt::format("--max-repeats={}", o.most));
  if (o.warm_up) words.emplace_back("--warm-up");
  for (const auto& output : o.outputs) words.push_back(fmt::format("--output={}", output));
  if (o.tolerance != AbOptions().tolerance) words.push_back(fmt::format("--tolerance={}", o.tolerance));
  for (const auto& name : o.changed) words.push_back(fmt::format("--changed={}", name));
  const auto common = words_of(o.common);
  words.insert(words.end(), common.begin(), common.end());
  words.emplace_back("--");
  words.insert(words.end(), o.commands[0].begin(), o.commands[0].end());
  words.emplace_back("---");
  words.insert(words.end(), o.commands[1].begin(), o.commands[1].end());
  return typed_line(words);
}

// One invocation of `headroom ab`.
class AbVerb {
 public:
  explicit AbVerb(const AbOptions& options) : options_(options) {}
  Result<int> run();

 private:
  [[nodiscard]] Result<RepeatsRequest> plan();
  [[nodiscard]] Result<bool> run_one(std::size_t repeat);
  [[nodiscard]] Result<void> run_all();
  [[nodiscard]] Result<compare::Side> facts_of(std::size_t repeat);
  [[nodiscard]] Result<Comparison> compared();
  [[nodiscard]] Result<void> compare_outputs(Comparison& comparison);
  [[nodiscard]] std::string outputs_of(std::size_t side, int round) const;  // a folder
  [[nodiscard]] std::string progress(std::size_t repeat) const;
  [[nodiscard]] std::string with_enough(const Comparison& comparison) const;  // "": no more are needed
  [[nodiscard]] int finish(Comparison comparison);

  const AbOptions& options_;
  std::optional<double> until_;
  int pairs_ = 0;                        // that may run
  std::vector<probe::PlannedRun> runs_;  // those of the warm-up first: their round is -1
  std::unique_ptr<Repeats> repeats_;
  std::map<std::size_t, compare::Side> facts_;                     // by repeat
  std::optional<std::pair<std::size_t, compare::Sample>> failed_;  // by side
  bool cannot_ = false;  // more pairs would not mend what refuses the comparison
  report::AbFacts told_;
};

Result<RepeatsRequest> AbVerb::plan() {
  if (!options_.until.empty()) {
    HR_TRY(until_, parse_share("--until", options_.until));
  }
  if (until_ && options_.repeats > 0)
    return fail(Errc::kInvalidInput, "ab: --repeats and --until exclude each other",
                "--until 5% --max-repeats 12 runs at most 12 pairs");
  pairs_ = until_ ? options_.most : options_.repeats > 0 ? options_.repeats : kDefaultRepeats;
  if (options_.warm_up) runs_ = {{.side = 0, .round = -1}, {.side = 1, .round = -1}};
  const auto rest = probe::order_runs(2, pairs_, options_.common.run_order(), options_.common.seed);
  runs_.insert(runs_.end(), rest.begin(), rest.end());
  HR_TRY(RepeatsRequest request,
         request_of(options_.common, "ab", folder_for("ab", {options_.commands[0], options_.commands[1]})));
  for (const probe::PlannedRun& run : runs_) {
    const std::string name = run.round < 0 ? fmt::format("{}-warm-up", kNames[run.side])
                                           : fmt::format("{}-{:02}", kNames[run.side], run.round + 1);
    request.repeats.push_back(
        {.name = name, .group = std::string(kNames[run.side]), .file = name, .command = options_.commands[run.side]});
  }
  request.outputs = options_.outputs;
  request.resume = resume_line(options_);
  return request;
}

Result<int> AbVerb::run() {
  HR_TRY(RepeatsRequest request, plan());
  told_ = {.order = options_.common.order, .seed = options_.common.seed, .resume = request.resume};
  HR_TRY(repeats_, Repeats::open(std::move(request)));
  told_.folder = repeats_->folder();
  if (!options_.common.quiet)
    repeats_->say_line(fmt::format("A and B in turn, {}{} · resume: {}", until_ ? "at most " : "",
                                   count_of(static_cast<std::size_t>(pairs_), "pair"), told_.resume));
  const auto ran = run_all();
  if (!ran) {
    (void)repeats_->finish("failed");
    return tl::unexpected(ran.error());
  }
  HR_TRY(const Comparison comparison, compared());
  return finish(comparison);
}

std::string AbVerb::progress(std::size_t repeat) const {
  const int round = runs_[repeat].round;
  return round < 0 ? "warm-up" : fmt::format("pair {} of {}{}", round + 1, until_ ? "at most " : "", pairs_);
}

// False: it is over, and told_ says why.
Result<bool> AbVerb::run_one(std::size_t repeat) {
  if (repeats_->succeeded(repeat)) {
    if (facts_of(repeat)) return true;
    repeats_->forget(repeat);
  }
  const std::string name = runs_[repeat].round < 0
                               ? fmt::format("{} (warm-up)", kNames[runs_[repeat].side])
                               : fmt::format("{} {}", kNames[runs_[repeat].side], runs_[repeat].round + 1);
  const Nanos begin = realtime_now();
  HR_TRY(const Repeats::End end, repeats_->run(repeat, progress(repeat)));
  if (!end.succeeded) {
    if (repeats_->signal() != 0) return false;
    told_.failed = fmt::format("{} did not succeed: {}", name, end.reason);
    compare::Sample failed{.task = kTask, .begin = seconds(begin), .end = seconds(realtime_now()), .outcome = "failed"};
    failed.asked = compare::parameters_of(options_.commands[runs_[repeat].side]);
    failed_.emplace(runs_[repeat].side, std::move(failed));
    return false;
  }
  HR_TRY(const compare::Side side, facts_of(repeat));
  const compare::Sample& sample = side.samples.front();
  repeats_->say_line(fmt::format(
      "{:<6} {}{}", name, human_duration(static_cast<Nanos>(sample.seconds() * 1e9)),
      sample.steps ? fmt::format(", {}{:g} steps", sample.steps_of_lines ? "at least " : "", *sample.steps) : ""));
  return repeats_->signal() == 0;
}

Result<void> AbVerb::run_all() {
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    HR_TRY(const bool goes_on, run_one(i));
    if (!goes_on) return {};
    const bool pair_ended = i + 1 == runs_.size() || runs_[i + 1].round != runs_[i].round;
    if (!pair_ended || runs_[i].round < 0) continue;
    told_.pairs = runs_[i].round + 1;
    HR_TRY(const Comparison so_far, compared());
    const probe::Next next = probe::after_pair(so_far, until_);
    if (next == probe::Next::kGoOn) continue;
    cannot_ = next == probe::Next::kCannot;
    if (cannot_ && i + 1 < runs_.size())
      told_.stopped = fmt::format("stopped after {}: more of them would not mend this",
                                  count_of(static_cast<std::size_t>(told_.pairs), "pair"));
    return {};
  }
  if (until_) told_.stopped = fmt::format("the interval is wider than was asked for, after all {} pairs", pairs_);
  return {};
}

Result<compare::Side> AbVerb::facts_of(std::size_t repeat) {
  if (const auto known = facts_.find(repeat); known != facts_.end()) return known->second;
  HR_TRY(compare::Side side, side_of_run(repeats_->recording_of(repeat)));
  compare::Sample& sample = side.samples.front();
  sample.task = kTask;
  sample.repeat = runs_[repeat].round;
  return facts_.emplace(repeat, std::move(side)).first->second;
}

// The comparison rests on complete pairs alone.
Result<Comparison> AbVerb::compared() {
  std::array<compare::Side, 2> sides;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    const int complete = failed_ ? pairs_ : told_.pairs;  // beside a run that failed all that ran is shown
    if (runs_[i].round < 0 || runs_[i].round >= complete || !facts_.contains(i)) continue;
    compare::Side& side = sides[runs_[i].side];
    if (side.samples.empty())
      side = facts_.at(i);
    else
      join_sides(facts_.at(i), side);
  }
  if (failed_) sides[failed_->first].samples.push_back(failed_->second);
  for (std::size_t side = 0; side < 2; ++side) {
    sides[side].label = kNames[side];
    sides[side].command = typed_line(options_.commands[side]);
  }
  compare::CompareRequest request{.by = compare::By::kTasks};
  if (!options_.changed.empty()) request.changed = options_.changed;
  Comparison comparison = compare::compare(sides[0], sides[1], request);
  if (failed_) {  // one reason says it all: what the other side did is of no use beside it
    comparison.reasons = {{CompareReason::kOutcomesDiffer, told_.failed, true}};
    comparison.ratio.reset();
  }
  HR_TRYV(compare_outputs(comparison));
  if (cannot_)  // that they are few is none of the reasons: more would not help
    std::erase_if(comparison.reasons, [](const auto& one) { return one.reason == CompareReason::kTooFewRepeats; });
  comparison.valid_command = comparison.valid_note = "";  // it is this command that makes a valid pair
  return comparison;
}

std::string AbVerb::outputs_of(std::size_t side, int round) const {
  for (std::size_t i = 0; i < runs_.size(); ++i)
    if (runs_[i].side == side && runs_[i].round == round)
      return std::filesystem::path(repeats_->copy_of(i, "any")).parent_path().string();
  return "";
}

// The artefacts of a pair must be the same; where repeats of A differ among themselves, B is not to blame.
Result<void> AbVerb::compare_outputs(Comparison& comparison) {
  if (options_.outputs.empty() || told_.pairs == 0) return {};
  for (int pair = 0; pair < told_.pairs; ++pair) {
    HR_TRY(const auto artefacts, compare_artefacts(outputs_of(0, pair), outputs_of(1, pair), options_.tolerance));
    for (const ComparedArtefact& artefact : artefacts) {
      const auto known = std::find_if(comparison.artefacts.begin(), comparison.artefacts.end(),
                                      [&](const ComparedArtefact& one) { return one.name == artefact.name; });
      if (known == comparison.artefacts.end())
        comparison.artefacts.push_back(artefact);
      else if (known->same && !artefact.same)
        *known = artefact;
    }
  }
  std::vector<ComparedArtefact> of_a;
  if (told_.pairs > 1) {
    HR_TRY(of_a, compare_artefacts(outputs_of(0, 0), outputs_of(0, 1), options_.tolerance));
  }
  for (ComparedArtefact& artefact : comparison.artefacts) {
    if (artefact.same) continue;
    const bool chance = std::any_of(
        of_a.begin(), of_a.end(), [&](const ComparedArtefact& one) { return one.name == artefact.name && !one.same; });
    if (chance) {
      artefact.difference += "; two runs of A differ in it, too";
      continue;
    }
    const std::string differs = fmt::format("{} is not the same: {}", artefact.name, artefact.difference);
    comparison.reasons.insert(
        comparison.reasons.begin(),
        told_.pairs > 1
            ? ComparedReason{CompareReason::kDifferentWork, differs, true}
            : ComparedReason{CompareReason::kTooFewRepeats,
                             differs + "; a second pair shows whether two runs of A differ in it, too", true});
    comparison.ratio.reset();
    comparison.accounts.clear(), comparison.phases.clear(), comparison.metrics.clear();
  }
  return {};
}

// All that refuses is that they were few: the same command with more adds to them.
std::string AbVerb::with_enough(const Comparison& comparison) const {
  const bool few = std::all_of(comparison.reasons.begin(), comparison.reasons.end(), [](const ComparedReason& one) {
    return !one.refuses || one.reason == CompareReason::kTooFewRepeats;
  });
  if (comparison.comparable() || !few || options_.repeats <= 0 || options_.repeats >= kFewestRepeats) return "";
  AbOptions enough = options_;
  enough.repeats = kFewestRepeats;
  return resume_line(enough);
}

int AbVerb::finish(Comparison comparison) {
  const int signal = repeats_->signal();
  if (signal == 0) comparison.valid_command = with_enough(comparison);
  told_.interrupted = signal != 0;
  if (signal != 0)
    told_.stopped = fmt::format("stopped after {} of {}{}", told_.pairs, until_ ? "at most " : "",
                                count_of(static_cast<std::size_t>(pairs_), "pair"));
  const bool kept = repeats_->finish(signal != 0 ? "drained" : told_.failed.empty() ? "finished" : "failed");
  const int to = options_.common.json ? STDERR_FILENO : STDOUT_FILENO;
  const std::string text = report::to_text(comparison, told_, text_options(to));
  if (!options_.common.json) put(text);
  if (options_.common.json) {
    if (!options_.common.quiet) (void)write_all(STDERR_FILENO, text);
    put(report::to_json(comparison, told_));
  }
  if (signal != 0) return kExitInterrupted;
  return kept && comparison.comparable() ? kExitOk : kExitFailed;
}

int ab_verb(AbOptions& options, const std::vector<std::string>& words) {
  if (const auto parted = part_commands(words, options); !parted) return report_error(parted.error());
  ::mallopt(M_ARENA_MAX, 1);
  const auto code = AbVerb(options).run();
  leave(code ? *code : report_error(code.error()));
}

}  // namespace

Action declare_ab(VerbInput input) {
  auto options = std::make_shared<AbOptions>();
  input.app.add_option("--repeats", options->repeats, "pairs of runs; default: 5")->check(CLI::Range(1, 1000));
  input.app.add_option("--until", options->until, "instead: until half the interval is below this share, such as 5%")
      ->type_name("SHARE");
  input.app.add_option("--max-repeats", options->most, "pairs that --until may run (20)")->check(CLI::Range(3, 1000));
  input.app.add_flag("--warm-up", options->warm_up, "run each once before, which does not count");
  input.app.add_option("--output", options->outputs, "a file that each run leaves: copies are kept and compared")
      ->type_name("FILE")
      ->allow_extra_args(false);
  input.app
      .add_option("--changed", options->changed, "a parameter that is meant to differ; default: those of the commands")
      ->type_name("NAME")
      ->allow_extra_args(false);
  input.app.add_option("--tolerance", options->tolerance, "by how much numbers in outputs may differ, relative (1e-6)")
      ->check(CLI::Range(0.0, 1.0))
      ->type_name("RATIO");
  declare_repeats_options(input.app, options->common);
  input.app.add_flag("--json", options->common.json, "print headroom.compare/1 on stdout");
  input.app.footer(
      "Both run one at a time on the same GPU. Equal work is checked by the steps that they count (lines of output,\n"
      "headroom.step(), NVTX), else by their success. The same command goes on after Ctrl-C or a crash; a larger\n"
      "--repeats adds pairs. It ends with 0 if they could be compared, whichever is faster, and else with 1.");
  return [options, &argv = input.after_dashes] { return ab_verb(*options, argv); };
}

}  // namespace headroom::cli
