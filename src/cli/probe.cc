// SPDX-License-Identifier: Apache-2.0
#include <malloc.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "base/duration.h"
#include "base/human.h"
#include "base/strings.h"
#include "base/visible.h"
#include "cli/arguments.h"
#include "cli/live_parts.h"
#include "cli/repeat_facts.h"
#include "cli/repeats.h"
#include "cli/stop_rule.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "probe/values.h"
#include "report/probe.h"

namespace headroom::cli {

namespace {

constexpr std::int64_t kDefaultSteps = 50, kDefaultWarmUp = 5;
constexpr std::size_t kMostValues = 64;

struct ProbeOptions {
  RepeatsOptions common;
  std::string vary, time, batch_size, larger;
  std::int64_t steps = 0;  // 0: not said
  std::int64_t warm_up = kDefaultWarmUp;
  int rounds = 3;
  bool whole = false, no_batch_size = false;
  std::vector<std::string> command;
};

struct Varied {
  std::string name;
  std::vector<std::string> values;
};

// "num_workers=0,2,4".
Result<Varied> parse_vary(const std::string& text) {
  const auto equals = text.find('=');
  constexpr const char* kUsage = "headroom probe --vary num_workers=0,2,4 -- python3 train.py --workers {num_workers}";
  if (text.empty()) return fail(Errc::kInvalidInput, "probe: --vary says what is tried", kUsage);
  Varied varied{.name = std::string(trim(text.substr(0, equals)))};
  const bool is_name = !varied.name.empty() && std::all_of(varied.name.begin(), varied.name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  });
  if (equals == std::string::npos || !is_name)
    return fail(Errc::kInvalidInput, fmt::format("--vary: '{}' is not NAME=VALUE,VALUE", text), kUsage);
  for (const auto part : split(std::string_view(text).substr(equals + 1), ',')) {
    const std::string value(trim(part));
    if (value.empty())
      return fail(Errc::kInvalidInput, fmt::format("--vary: a value of {} is empty", varied.name), kUsage);
    if (std::find(varied.values.begin(), varied.values.end(), value) != varied.values.end())
      return fail(Errc::kInvalidInput, fmt::format("--vary: {} is {} twice", varied.name, value), "each value once");
    varied.values.push_back(value);
  }
  if (varied.values.size() < 2)
    return fail(Errc::kInvalidInput, fmt::format("--vary: one value of {} has nothing beside it", varied.name), kUsage);
  if (varied.values.size() > kMostValues)
    return fail(Errc::kInvalidInput,
                fmt::format("--vary: {} values; {} are the most", varied.values.size(), kMostValues));
  return varied;
}

std::string replaced(std::string word, const std::string& placeholder, const std::string& value) {
  for (std::size_t at = word.find(placeholder); at != std::string::npos; at = word.find(placeholder, at + value.size()))
    word.replace(at, placeholder.size(), value);
  return word;
}

// A value as a part of a file's name.
std::string file_name_of(const std::string& value) {
  std::string name;
  for (const char c : value) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '-';
    name += plain ? std::string(1, c) : fmt::format("_{:02x}", static_cast<unsigned char>(c));
  }
  return name.substr(0, 100);
}

bool sounds_like_batch_size(const std::string& name) {
  const std::string word = lower(name);
  return word.find("batch") != std::string::npos || word == "bs" || word.ends_with("_bs");
}

// One invocation of `headroom probe`.
class ProbeVerb {
 public:
  explicit ProbeVerb(const ProbeOptions& options) : options_(options) {}
  Result<int> run();

 private:
  [[nodiscard]] Result<RepeatsRequest> plan();
  [[nodiscard]] Result<void> plan_stop();
  [[nodiscard]] Result<void> plan_sizes();
  [[nodiscard]] std::string resume_line() const;
  [[nodiscard]] Result<void> run_all();
  [[nodiscard]] Result<bool> run_one(std::size_t repeat);
  [[nodiscard]] Result<void> take(std::size_t repeat);
  [[nodiscard]] bool has_failed(std::size_t value, const std::string& reason);
  void evaluate_sizes();
  [[nodiscard]] int finish();

  const ProbeOptions& options_;
  Varied varied_;
  StopRule stop_;
  std::map<std::string, double> sizes_;  // by value, where it is a batch size
  std::vector<double> larger_;           // sizes to say something of
  std::vector<probe::PlannedRun> runs_;
  std::unique_ptr<Repeats> repeats_;
  ProbeReport report_;
  std::optional<bool> by_steps_;  // of the runs so far
  bool of_lines_ = false;         // some count their steps in lines of output
};

Result<void> ProbeVerb::plan_stop() {
  if (options_.whole && (options_.steps > 0 || !options_.time.empty()))
    return fail(Errc::kInvalidInput,
                "probe: --whole runs each command to its end: --steps and --for do not go with it");
  if (options_.steps > 0 && !options_.time.empty())
    return fail(Errc::kInvalidInput, "probe: --steps and --for exclude each other");
  if (options_.whole) return {};
  stop_.warm_up = options_.warm_up;
  if (options_.time.empty()) {
    stop_.steps = options_.steps > 0 ? options_.steps : kDefaultSteps;
  } else {
    HR_TRY(stop_.time, parse_duration(options_.time));
  }
  return {};
}

Result<void> ProbeVerb::plan_sizes() {
  if (!options_.batch_size.empty() && options_.batch_size != varied_.name)
    return fail(Errc::kInvalidInput,
                fmt::format("--batch-size: {} is varied, not {}", varied_.name, options_.batch_size));
  const bool is_size =
      !options_.batch_size.empty() || (!options_.no_batch_size && sounds_like_batch_size(varied_.name));
  if (!is_size) {
    if (!options_.larger.empty())
      return fail(Errc::kInvalidInput, fmt::format("--larger: {} is no batch size", varied_.name),
                  fmt::format("--batch-size {} says that it is one", varied_.name));
    return {};
  }
  for (const std::string& value : varied_.values) {
    const auto size = parse_number<double>(std::string_view(value));
    if (size && *size > 0) {
      sizes_[value] = *size;
    } else if (!options_.batch_size.empty()) {
      return fail(Errc::kInvalidInput, fmt::format("--batch-size: {} is no number of samples", value));
    } else {
      sizes_.clear();
      return {};
    }
  }
  double largest = 0;
  for (const auto& [value, size] : sizes_) largest = std::max(largest, size);
  if (options_.larger.empty()) larger_ = {2 * largest};
  for (const auto part : split(options_.larger, ',')) {
    if (options_.larger.empty()) break;
    const auto size = parse_number<double>(trim(part));
    if (!size || !(*size > largest))
      return fail(Errc::kInvalidInput,
                  fmt::format("--larger: '{}' is no size above {:g}, the largest that is run", trim(part), largest));
    larger_.push_back(*size);
  }
  return {};
}

std::string ProbeVerb::resume_line() const {
  std::vector<std::string> words{"headroom", "probe", fmt::format("--vary={}", options_.vary)};
  const ProbeOptions& o = options_;
  if (o.steps > 0) words.push_back(fmt::format("--steps={}", o.steps));
  if (!o.time.empty()) words.push_back(fmt::format("--for={}", o.time));
  if (o.warm_up != kDefaultWarmUp) words.push_back(fmt::format("--warm-up={}", o.warm_up));
  if (o.whole) words.emplace_back("--whole");
  if (o.rounds != ProbeOptions().rounds) words.push_back(fmt::format("--rounds={}", o.rounds));
  if (!o.batch_size.empty()) words.push_back(fmt::format("--batch-size={}", o.batch_size));
  if (o.no_batch_size) words.emplace_back("--no-batch-size");
  if (!o.larger.empty()) words.push_back(fmt::format("--larger={}", o.larger));
  const auto common = words_of(o.common);
  words.insert(words.end(), common.begin(), common.end());
  words.emplace_back("--");
  words.insert(words.end(), o.command.begin(), o.command.end());
  return typed_line(words);
}

Result<RepeatsRequest> ProbeVerb::plan() {
  HR_TRY(varied_, parse_vary(options_.vary));
  HR_TRYV(plan_stop());
  HR_TRYV(plan_sizes());
  if (options_.command.empty())
    return fail(Errc::kInvalidInput, "probe: no command given",
                fmt::format("headroom probe --vary {} -- python3 train.py --NAME {{{}}}", options_.vary, varied_.name));
  const std::string placeholder = "{" + varied_.name + "}";
  if (std::none_of(options_.command.begin(), options_.command.end(),
                   [&](const std::string& word) { return word.find(placeholder) != std::string::npos; }))
    return fail(Errc::kInvalidInput,
                fmt::format("probe: the command has no {}, so that every value would be the same", placeholder),
                fmt::format("write {} where the value goes", placeholder));
  HR_TRY(RepeatsRequest request,
         request_of(options_.common, "probe", folder_for("probe", {{varied_.name}, options_.command})));
  if (stop_.any()) {
    const auto words = words_of(stop_);
    request.run_options.insert(request.run_options.end(), words.begin(), words.end());
  }
  runs_ = probe::order_runs(varied_.values.size(), options_.rounds, options_.common.run_order(), options_.common.seed);
  for (const probe::PlannedRun& run : runs_) {
    const std::string& value = varied_.values[run.side];
    Repeat repeat{.name = fmt::format("{}={} round {}", varied_.name, value, run.round + 1),
                  .group = fmt::format("{}={}", varied_.name, value),
                  .file = fmt::format("{}_{:02}", file_name_of(value), run.round + 1),
                  .command = options_.command};
    for (std::string& word : repeat.command) word = replaced(word, placeholder, value);
    request.repeats.push_back(std::move(repeat));
  }
  request.resume = resume_line();
  report_.parameter = varied_.name;
  report_.command = typed_line(options_.command);
  report_.rounds = options_.rounds;
  for (const std::string& value : varied_.values) report_.values.push_back({.value = value});
  report_.resume = request.resume;
  return request;
}

Result<int> ProbeVerb::run() {
  HR_TRY(RepeatsRequest request, plan());
  HR_TRY(repeats_, Repeats::open(std::move(request)));
  report_.folder = repeats_->folder();
  repeats_->say_line(fmt::format("{} of {}, {} · resume: {}", count_of(varied_.values.size(), "value"), varied_.name,
                                 count_of(static_cast<std::size_t>(options_.rounds), "round"), report_.resume));
  const auto ran = run_all();
  if (!ran) {
    (void)repeats_->finish("failed");
    return tl::unexpected(ran.error());
  }
  return finish();
}

Result<void> ProbeVerb::run_all() {
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    ProbedValue& value = report_.values[runs_[i].side];
    if (!value.failed.empty()) continue;  // it would again
    HR_TRY(const bool goes_on, run_one(i));
    if (!goes_on) return {};
  }
  return {};
}

// The others go on.
bool ProbeVerb::has_failed(std::size_t value, const std::string& reason) {
  report_.values[value].failed = reason;
  repeats_->say_line(fmt::format("{}={}: {}", varied_.name, varied_.values[value], reason));
  return repeats_->signal() == 0;
}

// False: somebody has stopped it.
Result<bool> ProbeVerb::run_one(std::size_t repeat) {
  const probe::PlannedRun& planned = runs_[repeat];
  if (repeats_->succeeded(repeat)) {
    if (take(repeat)) return true;
    repeats_->forget(repeat);
  }
  HR_TRY(const Repeats::End end,
         repeats_->run(repeat, fmt::format("round {} of {}", planned.round + 1, options_.rounds)));
  if (!end.succeeded) {
    if (repeats_->signal() != 0) return false;
    return has_failed(planned.side, end.reason);
  }
  if (const auto taken = take(repeat); !taken) {
    if (taken.error().code != Errc::kInvalidInput) return tl::unexpected(taken.error());
    return has_failed(planned.side, taken.error().what);
  }
  const ProbedRun& run = report_.runs.back();
  repeats_->say_line(fmt::format("{}={:<8} {} per {}", varied_.name, varied_.values[planned.side],
                                 report::unit_time_words(run.seconds / run.work), report_.unit));
  return repeats_->signal() == 0;
}

// Puts the facts of a run's recording into the report.
Result<void> ProbeVerb::take(std::size_t repeat) {
  HR_TRY(CountedPart part,
         counted_part(repeats_->recording_of(repeat), options_.whole ? Counting::kWholeRun : Counting::kSteps,
                      stop_.warm_up, stop_.steps));
  if (by_steps_ && *by_steps_ != part.by_steps)
    return fail(Errc::kInvalidInput, "some runs count their steps and others do not: they cannot be compared",
                "headroom.step(), or --step REGEX for a line that the program prints");
  by_steps_ = part.by_steps;
  of_lines_ |= part.of_lines;
  const bool samples = part.by_steps && !sizes_.empty();
  report_.unit = samples ? "sample" : part.by_steps ? "step" : "run";
  part.run.value = runs_[repeat].side, part.run.round = runs_[repeat].round;
  if (samples) part.run.work *= sizes_.at(varied_.values[part.run.value]);
  report_.runs.push_back(std::move(part.run));
  return {};
}

void ProbeVerb::evaluate_sizes() {
  if (sizes_.empty() || report_.unit != "sample") return;
  std::vector<probe::SizeTime> times;
  const ProbedValue* largest = nullptr;
  double from = 0;
  for (const ProbedValue& value : report_.values) {
    if (!value.seconds_per_unit || !value.failed.empty()) continue;
    const double size = sizes_.at(value.value);
    times.push_back({size, *value.seconds_per_unit * size});
    if (size > from) from = size, largest = &value;
  }
  report_.line = probe::fit_line(times);
  if (!report_.line) return;
  const auto noise = probe::noise_of(report_);
  for (const double to : larger_)
    if (const auto bound = probe::larger_batch(times, from, to, largest->busy_ratio, noise))
      report_.larger.push_back(*bound);
}

int ProbeVerb::finish() {
  probe::evaluate(report_);
  evaluate_sizes();
  const bool failed = std::any_of(report_.values.begin(), report_.values.end(),
                                  [](const ProbedValue& value) { return !value.failed.empty(); });
  const int signal = repeats_->signal();
  if (signal != 0)
    report_.stopped = fmt::format("stopped after {} of {}", report_.runs.size(), count_of(runs_.size(), "run"));
  const bool kept = repeats_->finish(signal != 0 ? "drained" : failed ? "failed" : "finished");
  const bool json = options_.common.json;
  std::string text = report::to_text(report_, text_options(json ? STDERR_FILENO : STDOUT_FILENO));
  if (of_lines_) text += "Steps are those that lines of output tell of: more may have been done.\n";
  if (!json)
    put(text);
  else if (!options_.common.quiet)
    (void)write_all(STDERR_FILENO, text);
  if (json) put(report::to_json(report_));
  if (signal != 0) return kExitInterrupted;
  return kept && !failed && report_.best ? kExitOk : kExitFailed;
}

int probe_verb(const ProbeOptions& options) {
  ::mallopt(M_ARENA_MAX, 1);
  const auto code = ProbeVerb(options).run();
  leave(code ? *code : report_error(code.error()));
}

}  // namespace

Action declare_probe(VerbInput input) {
  auto o = std::make_shared<ProbeOptions>();
  input.app.add_option("--vary", o->vary, "the parameter and its values; {NAME} stands for it in the command")
      ->type_name("NAME=V,V,…");
  input.app.add_option("--steps", o->steps, "steps that each run is timed for, after its warm-up; default: 50")
      ->check(CLI::Range(std::int64_t{2}, std::int64_t{1'000'000'000}));
  input.app.add_option("--for", o->time, "instead: time after the warm-up, such as 30s")
      ->type_name("DURATION")
      ->check(duration_check());
  input.app.add_flag("--whole", o->whole, "instead: run each command to its end");
  input.app.add_option("--warm-up", o->warm_up, "first steps of each run, which do not count (5)")
      ->check(CLI::Range(std::int64_t{0}, std::int64_t{1'000'000'000}));
  input.app.add_option("--rounds", o->rounds, "runs of each value (3)")->check(CLI::Range(2, 100));
  input.app.add_option("--batch-size", o->batch_size, "the varied parameter is samples per step; default: by its name")
      ->type_name("NAME");
  input.app.add_flag("--no-batch-size", o->no_batch_size, "it is not, whatever its name");
  input.app
      .add_option("--larger", o->larger,
                  "batch sizes that are not run and may gain so much at most; default: twice the "
                  "largest")
      ->type_name("LIST");
  declare_repeats_options(input.app, o->common);
  input.app.add_flag("--json", o->common.json, "print headroom.probe/1 on stdout");
  input.app.footer(
      "Steps are counted by lines of output, headroom.step() or NVTX; a run is stopped (SIGTERM, then SIGKILL) when "
      "it\n"
      "has done enough of them. A command that counts none is run to its end. The same command goes on after Ctrl-C\n"
      "or a crash; more --rounds or values are added.");
  return [o, &argv = input.after_dashes] {
    o->command = argv;
    return probe_verb(*o);
  };
}

}  // namespace headroom::cli
