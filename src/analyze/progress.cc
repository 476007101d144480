// SPDX-License-Identifier: Apache-2.0
#include "analyze/progress.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "analyze/named_phases.h"
#include "analyze/work.h"
#include "base/strings.h"
#include "model/events.h"
#include "model/losses.h"

namespace headroom {

namespace {

struct ToldUnits {
  Nanos at = 0;
  events::Progress said;
};

// By one source.
struct Telling {
  std::vector<ToldUnits> folds, epochs, steps;  // in order of time, of the training that is under way
  SourceId source = kNoSource;
  bool several = false;  // trainings tell here, side by side: no two words are of one
};

// A whole is told of the last one.
bool of_whole(const std::vector<ToldUnits>& told) { return !told.empty() && told.back().said.of > 0; }

struct Lengths {  // in seconds
  double low = 0, high = 0;
};

// What was seen n times.
Lengths widened(double low, double high, std::size_t n) {
  constexpr double kOfOne = 0.25;
  const double more = 1 + kOfOne / static_cast<double>(std::max<std::size_t>(1, n));
  return {low / more, high * more};
}

Lengths range_of(const std::vector<double>& lengths) {
  const auto [low, high] = std::minmax_element(lengths.begin(), lengths.end());
  return widened(*low, *high, lengths.size());
}

bool believable(const events::Progress& said) {
  constexpr std::int64_t kMost = 1'000'000'000'000;  // as output is read
  const auto counted = said.steps.value_or(0);
  return said.of >= (said.unit == "step" ? 1 : 0) && said.of <= kMost && said.number >= 0 &&
         said.number <= (said.of > 0 ? said.of : kMost) && counted >= 0 && counted <= 1000 * kMost;
}

// Of phases without a number in their name those are counted that were read.
bool may_have_missed(const Recording& recording, SourceId source) {
  const auto& attrs = recording.sources[static_cast<std::size_t>(source)].attrs;
  const auto via = attrs.find("via");
  return (via == attrs.end() || via->second != "output") &&
         std::any_of(recording.losses.begin(), recording.losses.end(),
                     [](const Loss& loss) { return loss.what == info(LossKind::kMarkLost).name; });
}

// Numbers that go back, another whole or another way of telling begin anew.
bool goes_on_from(const events::Progress& before, const events::Progress& next) {
  return next.number >= before.number && next.of == before.of && next.state == before.state;
}

std::vector<ToldUnits>* units_of(Telling& telling, std::string_view unit) {
  return unit == "fold"    ? &telling.folds
         : unit == "epoch" ? &telling.epochs
         : unit == "step"  ? &telling.steps
                           : nullptr;
}

void take(Telling& telling, Nanos at, events::Progress said) {
  std::vector<ToldUnits>& told = *units_of(telling, said.unit);
  // Epochs that begin again are another training; steps that do so are those of the next epoch. Epochs that go back
  // and do not begin again are told by several.
  const bool goes_on = told.empty() || goes_on_from(told.back().said, said);
  const bool of_epochs = said.unit == "epoch", of_folds = said.unit == "fold";
  const bool back = !goes_on && of_epochs && said.of == told.back().said.of && said.number > told.front().said.number;
  if (of_epochs && !goes_on) telling.several = back;
  if (!goes_on && !back) told.clear();
  if (of_folds) telling.epochs.clear(), telling.steps.clear();  // those of the fold before
  told.push_back({at, std::move(said)});
}

std::optional<Telling> telling_of(const Recording& recording, Nanos at) {
  std::map<SourceId, Telling> all;
  for (const Event& event : recording.events) {
    if (event.at > at) break;
    auto said = of_event<events::Progress>(event);
    if (!said || !believable(*said) || event.source < 0) continue;
    if (static_cast<std::size_t>(event.source) >= recording.tracks.size()) continue;
    if (said->of == 0 && may_have_missed(recording, event.source)) continue;
    Telling& telling = all[event.source];
    telling.source = event.source;
    if (units_of(telling, said->unit) != nullptr) take(telling, event.at, std::move(*said));
  }
  const auto worth = [](const Telling& one) {
    return std::tuple(of_whole(one.epochs) || of_whole(one.folds), one.epochs.size(), one.steps.size());
  };
  const auto most = std::max_element(all.begin(), all.end(),
                                     [&](const auto& x, const auto& y) { return worth(x.second) < worth(y.second); });
  return most == all.end() ? std::nullopt : std::optional(std::move(most->second));
}

// The steps that are counted beside a bar or a line that says of how many.
class Steps {
 public:
  Steps(const Recording& recording, const Telling& telling, Nanos at) : at_(at) {
    if (telling.steps.empty()) return;
    last_ = telling.steps.back().said;
    const Track& track = recording.tracks[static_cast<std::size_t>(telling.source)];
    const std::int64_t begin = last_->steps.value_or(0) - last_->number;  // counted before the first of these
    const StepCounts all(track, "");
    for (const StepCounts::Count& count : all.counts())
      if (count.at <= at && count.steps > begin) counts_.push_back(count);
    done_ = last_->number;
    if (!counts_.empty()) done_ = std::clamp(counts_.back().steps - begin, done_, last_->of);
  }

  [[nodiscard]] bool told() const { return last_.has_value(); }
  [[nodiscard]] bool in_epoch() const { return last_ && last_->in_epoch.value_or(0) == 1; }
  [[nodiscard]] std::int64_t done() const { return done_; }
  [[nodiscard]] std::int64_t of() const { return last_->of; }
  [[nodiscard]] double left() const { return static_cast<double>(last_->of - done_); }
  [[nodiscard]] double done_ratio() const { return static_cast<double>(done_) / static_cast<double>(last_->of); }

  // Seconds of one of them.
  [[nodiscard]] std::optional<Lengths> pace() const {
    constexpr std::int64_t kFewest = 10, kOfAPart = 5, kMostParts = 4;
    constexpr Nanos kShortest = 2 * kSecond;
    if (counts_.size() < 2) return std::nullopt;
    const std::int64_t steps = counts_.back().steps - counts_.front().steps;
    const Nanos seen = counts_.back().at - counts_.front().at;
    if (steps < kFewest || seen < kShortest) return std::nullopt;
    const std::int64_t parts = std::min(kMostParts, steps / kOfAPart);
    std::vector<double> paces;
    const auto* before = &counts_.front();
    for (const auto& count : counts_) {
      const bool ends =
          count.steps - counts_.front().steps >= steps / parts * (static_cast<std::int64_t>(paces.size()) + 1);
      if (!ends || count.steps == before->steps) continue;
      paces.push_back(seconds(count.at - before->at) / static_cast<double>(count.steps - before->steps));
      before = &count;
    }
    const Lengths pace = range_of(paces);
    return stands_still(pace) ? std::nullopt : std::optional(pace);
  }

 private:
  // No step for so long that another thing goes on: a validation, or nothing.
  [[nodiscard]] bool stands_still(const Lengths& pace) const {
    constexpr double kSteps = 20;
    constexpr Nanos kLeast = 10 * kSecond;  // outputs are read now and then
    const Nanos since = at_ - counts_.back().at;
    return since > kLeast && seconds(since) > kSteps * pace.high;
  }

  Nanos at_;
  std::optional<events::Progress> last_;
  std::vector<StepCounts::Count> counts_;  // of these
  std::int64_t done_ = 0;
};

// Epochs, or folds, from the last word on them to the end of the last one. Numbers that were not seen to begin at 1 may
// begin at 0, and then the whole may be their count or the last of them.
std::pair<std::int64_t, std::int64_t> epochs_left(const std::vector<ToldUnits>& epochs) {
  const events::Progress& last = epochs.back().said;
  const std::int64_t others = last.of - last.number;
  if (last.state == "counted") return {others, others};
  const bool from_one = epochs.front().said.number == 1;
  const std::int64_t own = last.state == "done" ? 0 : 1;
  const std::int64_t high = others + own;
  return {from_one ? high : std::max(own, high - 1), high};
}

std::optional<Lengths> lengths_of(const std::vector<ToldUnits>& epochs) {
  constexpr std::size_t kLast = 20;
  std::vector<double> lengths;
  for (std::size_t i = 1; i < epochs.size(); ++i) {
    const std::int64_t count = epochs[i].said.number - epochs[i - 1].said.number;
    if (count > 0) lengths.push_back(seconds(epochs[i].at - epochs[i - 1].at) / static_cast<double>(count));
  }
  if (lengths.size() > kLast) lengths.erase(lengths.begin(), lengths.end() - kLast);
  return lengths.empty() ? std::nullopt : std::optional(range_of(lengths));
}

// By whole epochs, or folds. `steps`: those of the one under way, where they are known.
std::optional<Lengths> left_by_whole(const std::vector<ToldUnits>& epochs, const Lengths& one, const Steps* steps,
                                     Nanos at) {
  constexpr double kTooLong = 3;
  const auto [fewest, most] = epochs_left(epochs);
  if (most == 0) return std::nullopt;  // what follows tells nothing of itself
  const double gone = seconds(at - epochs.back().at);
  if (gone > kTooLong * one.high) return std::nullopt;
  const double longest = std::max(one.high, widened(gone, gone, 1).high);
  Lengths current{std::max(0.0, one.low - gone), std::max(0.0, longest - gone)};
  if (epochs.back().said.state == "within") {  // since when is not known, but for its steps
    const double rest = steps != nullptr ? 1 - steps->done_ratio() : 1;
    current = {steps != nullptr ? one.low * rest : 0, steps != nullptr ? longest * rest : current.high};
  }
  const auto all = [](std::int64_t epochs_in_all, double first, double other) {
    return epochs_in_all == 0 ? 0.0 : first + static_cast<double>(epochs_in_all - 1) * other;
  };
  return Lengths{all(fewest, current.low, one.low), all(most, current.high, one.high)};
}

// Before an epoch has ended.
std::optional<Progress::Left> left_by_steps(const std::vector<ToldUnits>& epochs, const Steps& steps) {
  if (!steps.told() || steps.left() <= 0) return std::nullopt;
  const auto pace = steps.pace();
  if (!pace) return std::nullopt;
  const double low = steps.left() * pace->low, high = steps.left() * pace->high;
  if (!of_whole(epochs)) return Progress::Left{low, high, Progress::Unit::kSteps, false};
  const events::Progress& last = epochs.back().said;
  if (last.state == "done") return std::nullopt;  // of another epoch than the steps, perhaps
  auto [fewest, most] = epochs_left(epochs);
  if (last.state == "counted" && most == 0) return std::nullopt;
  const auto whole = static_cast<double>(steps.of());
  // A bar that does not name its epoch may be of all of them.
  const double others_low = steps.in_epoch() ? static_cast<double>(fewest - 1) * whole * pace->low : 0;
  const double others_high = static_cast<double>(most - 1) * whole * pace->high;
  return Progress::Left{low + std::max(0.0, others_low), high + others_high, Progress::Unit::kEpochs, true};
}

struct Begins {
  std::string name;
  std::vector<Nanos> at;
  bool open = false;
};

Begins validations_of(const Recording& recording, SourceId source, Nanos until) {
  Begins begins;
  std::int32_t nth = 0;
  for (const ListRow& row : recording.tracks[static_cast<std::size_t>(source)].lists) {
    if (row.at > until) break;
    std::vector<std::string> names;
    for (const TextId text : recording.lists[row.list]) names.push_back(recording.texts[text]);
    const std::string name = join(names, "/");
    const bool validates = account_told_by(name) == Account::kValidationHost;
    if (validates && (!begins.open || row.value != nth)) begins.at.push_back(row.at);
    if (validates) begins.name = name;
    begins.open = validates;
    nth = row.value;
  }
  return begins;
}

std::optional<Progress::Next> next_validation(const Recording& recording, Nanos at) {
  constexpr std::size_t kLast = 8;
  constexpr double kRegular = 1.5;
  Begins begins;
  for (const SourceId id : recording.all(SourceKind::kMarks))
    if (Begins own = validations_of(recording, id, at); own.at.size() > begins.at.size()) begins = std::move(own);
  if (begins.open || begins.at.size() < 3) return std::nullopt;
  std::vector<double> distances;
  for (std::size_t i = 1; i < begins.at.size(); ++i) distances.push_back(seconds(begins.at[i] - begins.at[i - 1]));
  if (distances.size() > kLast) distances.erase(distances.begin(), distances.end() - kLast);
  const auto [shortest, longest] = std::minmax_element(distances.begin(), distances.end());
  if (*longest > kRegular * *shortest) return std::nullopt;
  const Lengths distance = range_of(distances);
  const double gone = seconds(at - begins.at.back());
  if (gone > distance.high) return std::nullopt;
  return Progress::Next{begins.name, std::max(0.0, distance.low - gone), distance.high - gone};
}

// Not where all that was told of is done, nor in a last epoch that takes longer than any before: what follows is the
// end.
bool may_validate(const Progress& progress, const Telling& telling, const std::optional<Lengths>& lengths, Nanos at) {
  if (of_whole(telling.folds) && progress.fold->number < progress.fold->of) return true;
  if (progress.epoch && progress.epoch->of == 0) return true;
  if (!progress.epoch) return !progress.step || progress.step->of == 0 || progress.step->number < progress.step->of;
  if (progress.epoch->number < progress.epoch->of) return true;
  const bool overdue = lengths && seconds(at - telling.epochs.back().at) > lengths->high;
  return !progress.epoch->done && !overdue;
}

// Of one unit, by the last word on it.
std::optional<Progress::At> at_of(const std::vector<ToldUnits>& told) {
  if (told.empty()) return std::nullopt;
  const events::Progress& last = told.back().said;
  // So many of a bar are done: it is at the next one.
  const bool next = last.state == "counted" && last.number < last.of;
  return Progress::At{last.number + (next ? 1 : 0), last.of,
                      last.state == "done" || (last.state == "counted" && !next)};
}

// Where nobody says of how many, so many steps are counted.
std::optional<Progress::At> counted_steps(const Recording& recording, Nanos at) {
  std::int64_t done = 0;
  const StepCounts steps = step_counts(recording);
  for (const StepCounts::Count& count : steps.counts())
    if (count.at <= at) done = count.steps;
  return done > 0 ? std::optional(Progress::At{done, 0, true}) : std::nullopt;
}

Progress place_of(const Telling& telling, const Recording& recording, Nanos at) {
  Progress progress;
  progress.fold = at_of(telling.folds);
  progress.epoch = at_of(telling.epochs);
  const Steps steps(recording, telling, at);
  // Steps of the epoch before are none of this one.
  const bool before = !telling.epochs.empty() && steps.told() && telling.steps.back().at < telling.epochs.back().at &&
                      (steps.in_epoch() || steps.left() <= 0);
  if (steps.told() && !before) progress.step = Progress::At{steps.done(), steps.of(), true};
  if (!steps.told()) progress.step = counted_steps(recording, at);
  return progress;
}

// To the end of the folds where one of them was seen, else of the epochs, else of the steps.
std::optional<Progress::Left> left_of(const Telling& telling, const Steps& steps, const std::optional<Lengths>& epochs,
                                      Nanos at) {
  using Unit = Progress::Unit;
  const auto folds = of_whole(telling.folds) ? lengths_of(telling.folds) : std::nullopt;
  if (folds)
    if (const auto left = left_by_whole(telling.folds, *folds, nullptr, at))
      return Progress::Left{left->low, left->high, Unit::kFolds, false};
  if (!epochs) return left_by_steps(telling.epochs, steps);
  const auto left = left_by_whole(telling.epochs, *epochs, steps.told() && steps.in_epoch() ? &steps : nullptr, at);
  return left ? std::optional(Progress::Left{left->low, left->high, Unit::kEpochs, false}) : std::nullopt;
}

}  // namespace

std::optional<Progress> progress_of(const Recording& recording, Nanos at, Ends job) {
  Telling telling = telling_of(recording, at).value_or(Telling{});
  Progress progress = place_of(telling, recording, at);
  if (!progress.fold && !progress.epoch && !progress.step) return std::nullopt;
  if (job != Ends::kRuns) {
    for (std::optional<Progress::At>* one : {&progress.fold, &progress.epoch})
      if (job == Ends::kEndedWell && *one && (*one)->of > 0 && (*one)->number == (*one)->of) (*one)->done = true;
    return progress;
  }
  if (telling.several) return progress;
  const auto lengths = of_whole(telling.epochs) ? lengths_of(telling.epochs) : std::nullopt;
  const Steps steps(recording, telling, at);
  progress.left = left_of(telling, steps, lengths, at);
  if (may_validate(progress, telling, lengths, at)) progress.next_validation = next_validation(recording, at);
  if (progress.next_validation && progress.left && progress.next_validation->low_seconds > progress.left->high_seconds)
    progress.next_validation.reset();
  return progress;
}

}  // namespace headroom
