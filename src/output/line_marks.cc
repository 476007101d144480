// SPDX-License-Identifier: Apache-2.0
#include "output/line_marks.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/strings.h"
#include "output/line_cutter.h"

namespace headroom::output {

namespace {

constexpr std::string_view kTrain = "train", kValidate = "validate", kCheckpoint = "checkpoint", kEpoch = "epoch";
constexpr std::size_t kLongestName = 64;
constexpr double kMostEpochs = 1e9;
constexpr std::int64_t kMostSteps = 1'000'000'000'000;  // at once: more is no count

std::string_view phase_of(BarOf of) {
  switch (of) {
    case BarOf::kTrain:
      return kTrain;
    case BarOf::kValidate:
      return kValidate;
    case BarOf::kTest:
      return "test";
    case BarOf::kPredict:
      return "predict";
    case BarOf::kSanityCheck:
      return "sanity_check";
    case BarOf::kUnknown:
    case BarOf::kEpochs:
    case BarOf::kOther:
      return "";
  }
  return "";
}

std::optional<double> figure(std::string_view text) {
  std::string plain;
  for (const char c : text)
    if (c != ',') plain += c;
  if (plain.starts_with('+')) plain.erase(0, 1);
  const auto value = parse_number<double>(plain);
  return value && std::isfinite(*value) ? value : std::nullopt;
}

struct Pair {
  std::string_view name, value;
};

// "Val Sharpe: 0.027", with nothing beside it.
std::optional<Pair> pair_of(std::string_view line) {
  static const RE2 alone(
      R"(\s*([A-Za-z][\w/-]*(?: [A-Za-z][\w/-]*){0,2})\s*[:=]\s*([-+]?(?:\d[\d.]*|\.\d+)(?:[eE][-+]?\d+)?)%?\s*)");
  re2::StringPiece name, value;
  if (!RE2::FullMatch(re2::StringPiece(line.data(), line.size()), alone, &name, &value)) return std::nullopt;
  return Pair{{name.data(), name.size()}, {value.data(), value.size()}};
}

// What says where a training is or how long it took, and is no metric of it.
bool is_no_metric(std::string_view name) {
  constexpr std::array<std::string_view, 21> kOther{
      "epoch", "step", "global_step", "iteration", "iter", "batch", "time", "eta",    "elapsed", "remaining", "total",
      "took",  "rank", "duration",    "seed",      "fold", "size",  "gpu",  "device", "worker",  "trial"};
  return std::find(kOther.begin(), kOther.end(), name) != kOther.end();
}

// "Val Sharpe" is val_sharpe.
std::string as_name(std::string_view words) {
  std::string name = lower(words);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return c == ' ' || c == '-'; }, '_');
  return name;
}

// Where a training is, and no metric of it.
bool is_place(std::string_view name) {
  constexpr std::array<std::string_view, 6> kPlaces{"epoch", "step", "global_step", "iteration", "iter", "batch"};
  return std::find(kPlaces.begin(), kPlaces.end(), name) != kPlaces.end();
}

// A name behind the end of a sentence: of "done val_auc" "val_auc".
std::string without_sentence(const std::string& name) {
  constexpr std::array<std::string_view, 14> kEnds{"done",  "finished", "completed", "complete", "ended",
                                                   "with",  "and",      "is",        "the",      "at",
                                                   "after", "for",      "saved",     "has"};
  std::size_t begin = 0;
  for (std::size_t at = 0, blank = 0; (blank = name.find(' ', at)) != std::string::npos; at = blank + 1)
    if (std::find(kEnds.begin(), kEnds.end(), std::string_view(name).substr(at, blank - at)) != kEnds.end())
      begin = blank + 1;
  return name.substr(begin);
}

// The metric of a rate, by the unit that stands behind it in small letters.
std::string_view rate_of(std::string_view unit) {
  if (unit.starts_with('t')) return "tokens_per_second";
  const bool samples = unit.starts_with("sa") || unit.starts_with("im") || unit.starts_with("ex");
  return samples ? "samples_per_second" : "steps_per_second";
}

}  // namespace

LineMarks::LineMarks(const std::vector<LogPattern>& patterns, Seen seen) : seen_(seen) {
  for (const LogPattern& pattern : patterns) {
    if (pattern.kind == LogPattern::Kind::kPhase) phases_.push_back({pattern, Matcher(pattern)});
    if (pattern.kind == LogPattern::Kind::kMetric || pattern.kind == LogPattern::Kind::kParameter)
      metrics_.push_back({pattern, Matcher(pattern)});
    if (pattern.kind == LogPattern::Kind::kStep) user_steps_.emplace(Matcher(pattern));
  }
}

const std::vector<Mark>& LineMarks::take(std::string_view line, Nanos at) {
  at_ = at;
  marks_.clear();
  kept_.clear();
  if (line.size() > kLongestLine) line = line.substr(0, kLongestLine);
  take_patterns(line);
  const bool below_metric = std::exchange(metric_above_, false);
  // A bar that is not to stay is painted over with blanks.
  if (trim(line).empty()) {
    if (validation_bar_open_) resume();
    return marks_;
  }
  const std::string_view whole = without_log_prefix(line), body = within_fold(whole);
  if (body.size() < whole.size()) at_fold(whole, "within");
  if (const auto bar = bar_of(body)) {
    take_bar(*bar);
    return marks_;
  }
  const bool after_best = std::exchange(best_follows_, false);
  const auto kinds = kinds_of(body);
  const auto has = [&](LineKind kind) {
    return std::any_of(kinds.begin(), kinds.end(), [&](const LineMatch& one) { return one.rule->kind == kind; });
  };
  // Whoever prints something else has saved what was to be saved.
  if (phase_ == kCheckpoint && !has(LineKind::kCheckpointBegins) && !has(LineKind::kCheckpointGoesOn) &&
      !trim(body).empty())
    phase(before_checkpoint_);
  for (const LineMatch& match : kinds)
    if (!(after_best && match.rule->kind == LineKind::kBoostingRow) &&
        !(match.rule->kind == LineKind::kEpochTold && has(LineKind::kStep)))
      take_kind(match, body);
  if (has(LineKind::kMetrics) && !has(LineKind::kEpochTold) && !has(LineKind::kStep)) take_place_of_metrics(body);
  if (has(LineKind::kEpochTold) || has(LineKind::kValidationEnds) || has(LineKind::kStep) || has(LineKind::kMetrics)) {
    take_metrics(body, Form::kWords);
    take_own_metrics(body);
    metric_above_ = pair_of(body).has_value();
  } else if (below_metric && kinds.empty()) {
    take_metric_below(body);
  }
  return marks_;
}

void LineMarks::take_patterns(std::string_view line) {
  for (const Pattern& one : phases_) {
    if (!one.matcher.matches(line)) continue;
    const std::string_view name = one.pattern.name == "none" ? std::string_view() : std::string_view(one.pattern.name);
    marks_.push_back({.kind = Mark::Kind::kPhase, .at = at_, .name = name});
    break;
  }
  for (const Pattern& one : metrics_) {
    const auto found = one.matcher.find(line);
    if (!found) continue;
    if (one.pattern.kind == LogPattern::Kind::kParameter)
      marks_.push_back({.kind = Mark::Kind::kParameter, .at = at_, .name = one.pattern.name, .text = *found});
    else if (const auto value = figure(*found))
      marks_.push_back({.kind = Mark::Kind::kMetric, .at = at_, .name = one.pattern.name, .value = *value});
  }
  if (!user_steps_) return;
  user_steps_->take(line);
  const auto done = user_steps_->done();
  if (!done) return;
  // What was done before anybody looked is not known.
  const double before = user_steps_done_.value_or(seen_ == Seen::kFromMidway ? *done : 0);
  const auto count = static_cast<std::int64_t>(std::floor(*done) - std::floor(before));
  user_steps_done_ = done;
  if (count > 0 && count <= kMostSteps)
    marks_.push_back({.kind = Mark::Kind::kStep,
                      .at = at_,
                      .value = samples_per_step_ * static_cast<double>(count),
                      .count = count});
}

bool LineMarks::interrupted() const { return !phase_.empty() && phase_ != kTrain && phase_ != kEpoch; }

void LineMarks::phase(std::string_view name) {
  if (phase_ == name) return;
  phase_ = name;
  if (name != kValidate) validation_bar_open_ = false;
  if (!phases_.empty()) return;
  marks_.push_back(
      {.kind = Mark::Kind::kPhase, .at = at_, .name = keep(std::string(name)), .nth = name == kEpoch ? epochs_ : 0});
}

void LineMarks::steps(std::int64_t count) {
  if (count <= 0 || count > kMostSteps || user_steps_) return;
  marks_.push_back(
      {.kind = Mark::Kind::kStep, .at = at_, .value = samples_per_step_ * static_cast<double>(count), .count = count});
}

// A number that goes back begins another training.
void LineMarks::step_number(std::int64_t number) {
  if (last_step_)
    steps(number >= *last_step_ ? number - *last_step_ : number);
  else if (seen_ == Seen::kFromTheBegin)
    steps(number);
  last_step_ = number;
}

void LineMarks::metric(std::string_view name, double value) {
  name = trim(name);
  if (name.empty() || name.size() > kLongestName || name == "v_num") return;
  if (std::any_of(metrics_.begin(), metrics_.end(), [&](const Pattern& one) { return one.pattern.name == name; }))
    return;
  marks_.push_back({.kind = Mark::Kind::kMetric, .at = at_, .name = keep(std::string(name)), .value = value});
}

std::string_view LineMarks::keep(std::string text) { return kept_.emplace_back(std::move(text)); }

void LineMarks::take_bar(const Bar& bar) {
  if (bar.style == Bar::Style::kKeras) return take_keras(bar);
  if (bar.of == BarOf::kTrain || bar.of == BarOf::kUnknown || bar.of == BarOf::kEpochs) {
    take_steps_of(bar);
  } else if (const std::string_view name = phase_of(bar.of); !name.empty()) {
    train_moves_in_validation_ = 0;
    if (bar.complete()) {
      if (phase_ == name) resume();
    } else {
      phase(name);
      validation_bar_open_ = true;
      validation_drawn_ = at_;
    }
  }
  take_metrics(bar.rest, bar.style == Bar::Style::kRich ? Form::kColon : Form::kEquals);
}

// Lightning 1 moves its bar of an epoch by what it validates, too: while the bar of the validation is drawn between, it
// goes on, and those are no steps. A bar that is cleared instead of completed is over when the other one begins anew,
// or moves alone for a while.
bool LineMarks::moves_with_validation(const Bar& bar) {
  constexpr int kMoves = 3;
  constexpr Nanos kAlone = 2 * kSecond;
  if (!validation_bar_open_ || !interrupted() || bars_.begins(bar)) return false;
  return ++train_moves_in_validation_ < kMoves || at_ - validation_drawn_ < kAlone;
}

void LineMarks::take_steps_of(const Bar& bar) {
  if (moves_with_validation(bar)) return bars_.pass(bar);
  if (bar.of == BarOf::kEpochs && bar.total) at_unit("epoch", {bar.done, *bar.total}, "counted");
  at_epoch(bar.description, "begun");
  const bool begins = bars_.begins(bar);
  const std::int64_t count = bars_.take(bar);
  if (trainer_evaluates_ && bar.of == BarOf::kUnknown && bars_.began_within()) return phase(kValidate);
  const bool draws_on = count > 0 || begins || phase_.empty() || phase_ == kEpoch;
  if (bar.of == BarOf::kTrain && !bar.complete() && draws_on) phase(kTrain);
  if (!bars_.leads() || bar.of == BarOf::kEpochs) return;
  if (bar.of == BarOf::kUnknown && count > 0 && interrupted()) resume();
  steps(count);
  at_step(bar.done, bar.total, names_an_epoch(bar.description));
  if (bar.of == BarOf::kTrain && bar.complete()) resume();
}

// Keras draws the same bar when it evaluates and predicts: only after "Epoch 3/5" it is about training. Whether it
// validates at an epoch's end is known once it has done so.
void LineMarks::take_keras(const Bar& bar) {
  const bool validated = bar.rest.find(" val_") != std::string_view::npos;
  if (keras_ == Keras::kTrained && (!bar.complete() || bar.total != keras_total_)) keras_ = Keras::kNothing;
  if (keras_ == Keras::kNothing) return;
  if (!bar.complete()) phase(kTrain);
  steps(bars_.take(bar));
  if (bars_.leads()) at_step(bar.done, bar.total, true);
  if (bar.complete() || validated) {
    base_.clear();
    keras_total_ = bar.total;
    keras_validates_ = keras_validates_ || validated;
    keras_ = validated ? Keras::kNothing : Keras::kTrained;
    phase(keras_validates_ && !validated ? kValidate : "");
  }
  take_metrics(bar.rest, Form::kDashColon);
}

void LineMarks::take_metrics(std::string_view text, Form form) {
  static constexpr std::string_view kValue = R"(([-+]?[\d.]+(?:[eE][-+]?\d+)?))";
  static const RE2 equals(fmt::format(R"(([A-Za-z][\w/.-]*)={}(?:,|\s|$))", kValue));
  static const RE2 colon(fmt::format(R"(([A-Za-z][\w/.-]*): *{}(?:,|\s|$))", kValue));
  static const RE2 dash_colon(fmt::format(R"((?:^|\s)- ([A-Za-z][\w/. -]*?): {}(?:\s|$))", kValue));
  static const RE2 words(fmt::format(R"((?i)\b((?:[a-z]\w*[ _/-]){{0,2}}\w*(?:)" HEADROOM_TOLD
                                     R"()(?:@\d+)?)\s*[:=|]?\s*{}%?)"
                                     R"((?:[\s,;|)\]]|$))",
                                     kValue));
  const RE2& one = form == Form::kEquals  ? equals
                   : form == Form::kColon ? colon
                   : form == Form::kWords ? words
                                          : dash_colon;
  re2::StringPiece rest(text.data(), text.size()), name, value;
  while (RE2::FindAndConsume(&rest, one, &name, &value))
    if (const auto number = figure({value.data(), value.size()})) {
      std::string called(name.data(), name.size());
      if (form == Form::kWords) {  // "Train Loss" is the train_loss of others
        called = as_name(without_sentence(lower(called)));
      }
      metric(called, *number);
    }
}

// Beside a metric that is known, "ic=0.051" and "Sharpe: 1.2" are metrics of the job's own. Not what says where it is
// or how long that took, nor a number with a unit behind it.
void LineMarks::take_own_metrics(std::string_view text) {
  static const RE2 one(
      R"((?:^|[\s,;|(\[])([A-Za-z][\w/-]*)\s*[:=]\s*([-+]?(?:\d[\d.]*|\.\d+)(?:[eE][-+]?\d+)?)([^\s,;|)\]]*\s*[A-Za-z/]*))");
  static const RE2 cell(R"(\s*([A-Za-z][\w/-]*)\s+([-+]?(?:\d[\d.]*|\.\d+)(?:[eE][-+]?\d+)?)\s*)");
  static const RE2 known(R"((?i).*(?:)" HEADROOM_TOLD R"())");
  static const RE2 unit(
      R"((?i)%?(?:[^\s%].*|\s+(?:s|secs?|seconds|ms|mins?|minutes|h|hours|[kmg]i?b|[a-z]+/s(?:ec)?)))");
  const auto take = [&](re2::StringPiece name, re2::StringPiece value) {
    const std::string called(name.data(), name.size());
    if (RE2::FullMatch(called, known) || is_no_metric(lower(called))) return;
    if (const auto number = figure({value.data(), value.size()})) metric(called, *number);
  };
  re2::StringPiece rest(text.data(), text.size()), name, value, behind;
  while (RE2::FindAndConsume(&rest, one, &name, &value, &behind)) {
    rest = re2::StringPiece(behind.data(), static_cast<std::size_t>(text.data() + text.size() - behind.data()));
    if (!RE2::FullMatch(behind, unit)) take(name, value);
  }
  for (const std::string_view part : split(text.substr(std::min(text.size(), text.find('|'))), '|'))
    if (RE2::FullMatch(re2::StringPiece(part.data(), part.size()), cell, &name, &value)) take(name, value);
}

// Below a line that is a known metric and nothing else, "Val Sharpe: 0.027" is one of the job's own, and so on; a
// number without a point counts something.
void LineMarks::take_metric_below(std::string_view line) {
  const auto pair = pair_of(line);
  metric_above_ = pair.has_value();
  if (!pair || pair->value.find_first_of(".eE") == std::string_view::npos) return;
  const auto words = split(pair->name, ' ');
  if (std::any_of(words.begin(), words.end(), [](std::string_view word) { return is_no_metric(lower(word)); })) return;
  if (const auto value = figure(pair->value)) metric(as_name(pair->name), *value);
}

// Several ranks may say of the same epoch that it begins.
void LineMarks::count_epoch(std::string_view line) {
  constexpr std::string_view kDigits = "0123456789";
  line.remove_prefix(std::min(line.size(), line.find_first_of(kDigits)));
  const std::string number(line.substr(0, line.find_first_not_of(kDigits)));
  if (number == epoch_) return;
  epoch_ = number;
  ++epochs_;
  if (phase_ == kEpoch) phase_.clear();  // it begins anew
}

void LineMarks::at_unit(std::string_view unit, NumberOf at, std::string_view state) {
  const bool of_folds = unit == "fold";
  const auto known = (of_folds ? told_fold_ : told_epoch_).take(at, state);
  if (!known) return;
  marks_.push_back(
      {.kind = Mark::Kind::kProgress, .at = at_, .name = unit, .count = at.number, .of = at.of, .state = *known});
  if (!of_folds) return;
  told_epoch_ = {};  // its epochs begin anew
  epoch_.clear();
}

void LineMarks::at_epoch(std::string_view words, std::string_view state) {
  const auto of_whole = epoch_in(words);
  if (const auto at = of_whole ? of_whole : epoch_alone_in(words)) at_unit("epoch", *at, state);
}

void LineMarks::at_fold(std::string_view words, std::string_view state) {
  if (const auto at = fold_in(words)) at_unit("fold", *at, state);
}

// "epoch 3 loss 0.34", "fold 1/3 loss=0.34": within or at the end of it.
void LineMarks::take_place_of_metrics(std::string_view line) {
  if (const auto at = epoch_alone_in(line)) at_unit("epoch", *at, "within");
  at_fold(line, "within");
}

// With a user's pattern for steps, others are not counted.
void LineMarks::at_step(std::int64_t number, std::optional<std::int64_t> of, bool in_epoch) {
  if (user_steps_ || !of || *of <= 0 || number > *of || *of > kMostSteps) return;
  marks_.push_back({.kind = Mark::Kind::kProgress,
                    .at = at_,
                    .name = "step",
                    .count = number,
                    .of = *of,
                    .state = "counted",
                    .in_epoch = in_epoch});
}

void LineMarks::take_step(std::int64_t number, std::string_view line) {
  step_number(number);
  at_epoch(line, "within");
  const bool of_all = lower(line).find("global") != std::string::npos;  // "Epoch 1/5 | global step 23/200"
  if (const auto at = step_in(line)) at_step(at->number, at->of, !of_all && names_an_epoch(line));
}

void LineMarks::take_told(const LineMatch& match) {
  if (const auto told = parameter_of(match))
    marks_.push_back({.kind = Mark::Kind::kParameter, .at = at_, .name = told->name, .text = told->value});
}

void LineMarks::take_kind(const LineMatch& match, std::string_view line) {
  const auto [first, second] = match.groups;
  switch (match.rule->kind) {
    case LineKind::kTrainingBegins:
      base_ = kTrain;
      return phase(kTrain);
    case LineKind::kTrainingEnds:
      base_.clear();
      keras_ = Keras::kNothing;
      return phase("");
    case LineKind::kEpochBegins:
      keras_ = Keras::kTrains;
      count_epoch(line);
      at_epoch(line, "begun");
      if (base_ != kTrain) base_ = kEpoch;
      return resume();
    case LineKind::kEpochTold:
      return at_epoch(line, "done");
    case LineKind::kFoldBegins:
      return at_fold(line, "begun");
    case LineKind::kValidationBegins:
      return phase(kValidate);
    case LineKind::kValidationEnds:
      if (phase_ == kValidate && !validation_bar_open_) resume();
      return;
    case LineKind::kCheckpointBegins:
      if (phase_ != kCheckpoint) before_checkpoint_ = phase_;
      return phase(kCheckpoint);
    case LineKind::kCheckpointGoesOn:
    case LineKind::kCheckpointEnds:
      return;
    case LineKind::kTrainerRow:
      return take_row(line);
    case LineKind::kTrainerFact:
      if (const auto value = figure(second); value && first.starts_with("Total train batch size"))
        samples_per_step_ = std::max(0.0, *value);
      return take_told(match);
    case LineKind::kBoostingEnds:  // and says again which row was the best
      best_follows_ = true;
      return take_told(match);
    case LineKind::kPrecision:
    case LineKind::kEarlyStopping:
      return take_told(match);
    case LineKind::kBoostingBegins:
      last_step_ = 0;
      return;
    case LineKind::kBoostingRow:
      return take_boosting_row(first, second);
    case LineKind::kStep:
      if (const auto number = parse_number<std::int64_t>(first)) take_step(*number, line);
      if (interrupted() && !validation_bar_open_) resume();
      return;
    case LineKind::kMetrics:
      return;
    case LineKind::kRate:
      if (const auto value = figure(first)) metric(rate_of(lower(second)), *value);
      return;
  }
}

// {'loss': 0.34, 'learning_rate': 5e-05, 'epoch': 1.2} of a training, or as JSON, {'eval_loss': …} after an evaluation,
// {'train_runtime': …} after all; numbers may stand in quotes.
void LineMarks::take_row(std::string_view line) {
  static const RE2 pair(R"(['"]([\w/.-]{1,64})['"]: *['"]?([-+]?[\d.]+(?:[eE][-+]?\d+)?)['"]?[,}])");
  bool evaluated = false, trained = false, learning_rate = false;
  std::optional<double> epoch;
  re2::StringPiece rest(line.data(), line.size()), name, value;
  while (RE2::FindAndConsume(&rest, pair, &name, &value)) {
    const std::string_view key(name.data(), name.size());
    evaluated = evaluated || key.starts_with("eval_");
    trained = trained || key == "train_runtime";
    learning_rate = learning_rate || key == "learning_rate";
    const auto number = figure({value.data(), value.size()});
    if (number && !is_place(key)) metric(key, *number);
    if (number && key == "epoch") epoch = *number;
  }
  trainer_ = trainer_ || learning_rate;
  // That of the Trainer, whose rows have single quotes, is a fraction, and one of what it evaluates.
  const bool numbers_epochs = epoch && *epoch >= 0 && *epoch < kMostEpochs && *epoch == std::floor(*epoch) &&
                              line.find('\'') == std::string_view::npos;
  if (numbers_epochs) at_unit("epoch", {static_cast<std::int64_t>(*epoch), 0}, "within");
  if (trained) {
    base_.clear();
    return phase("");
  }
  if (trainer_ && learning_rate) base_ = kTrain;
  trainer_evaluates_ = trainer_evaluates_ || evaluated;
  if (evaluated ? phase_ == kValidate : learning_rate) resume();
}

// LightGBM counts from 1 ("[100]\tvalid_0's l2: 0.42"), XGBoost from 0 ("[12]\teval-rmse:0.4"). Rows say nothing of
// when boosting ends, and begin no phase.
void LineMarks::take_boosting_row(std::string_view number, std::string_view cells) {
  static const RE2 cell(R"(([A-Za-z_][^\t:]{0,63}):\s*([-+]?(?:\d[\d.]*(?:e[-+]?\d+)?))(?:\s*\+\s*[\d.e-]+)?\s*$)");
  bool lightgbm = false;
  std::size_t known = 0;
  for (const std::string_view text : split(cells, '\t')) {
    re2::StringPiece name, value;
    if (!RE2::FullMatch(re2::StringPiece(text.data(), text.size()), cell, &name, &value)) continue;
    ++known;
    const std::string_view called(name.data(), name.size());
    lightgbm = lightgbm || called.find("'s ") != std::string_view::npos;
    if (const auto figures = figure({value.data(), value.size()})) metric(called, *figures);
  }
  const auto count = parse_number<std::int64_t>(number);
  if (known > 0 && count) step_number(lightgbm ? *count : *count + 1);
}

}  // namespace headroom::output
