// SPDX-License-Identifier: Apache-2.0
#include "marks/mark_track.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/strings.h"
#include "model/losses.h"
#include "output/number_of.h"

namespace headroom::marks {

namespace {

// How many of the first are the same.
template <class T>
std::size_t shared(const std::vector<T>& a, const std::vector<T>& b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

// "epoch 3/5", "epoch_3"; of "epoch" the how many-th it is.
std::optional<output::NumberOf> place_in(std::string_view unit, std::string_view name, std::int32_t nth) {
  if (!name.starts_with(unit)) return std::nullopt;
  if (name.size() == unit.size()) return nth > 0 ? std::optional(output::NumberOf{nth, 0}) : std::nullopt;
  if (unit == "fold") return output::fold_in(name);
  const auto of_whole = output::epoch_in(name);
  return of_whole ? of_whole : output::epoch_alone_in(name);
}

}  // namespace

std::optional<std::uint32_t> MarkTrack::name_of(std::string_view text) {
  if (const auto found = numbers_.find(text); found != numbers_.end()) return found->second;
  if (text.empty() || names_.size() == kMostNames || bytes_ + text.size() > kMostNameBytes) {
    ++cut_;
    return std::nullopt;
  }
  const auto number = static_cast<std::uint32_t>(names_.size());
  names_.emplace_back(text);
  texts_.push_back(kNoText);
  numbers_.emplace(text, number);
  bytes_ += text.size();
  return number;
}

void MarkTrack::take(const Mark& mark) {
  last_ = std::max(last_, mark.at);
  switch (mark.kind) {
    case Mark::Kind::kBegin:
      begin(mark.name);
      break;
    case Mark::Kind::kEnd:
      end(mark.name);
      break;
    case Mark::Kind::kPhase: {
      std::vector<Begun> open;
      if (!mark.name.empty())
        if (const auto name = name_of(mark.name)) open.push_back({*name, mark.nth, ++begins_, last_});
      too_deep_ = 0;
      const auto same = [](const Begun& x, const Begun& y) { return x.name == y.name && x.nth == y.nth; };
      const bool goes_on = std::equal(open.begin(), open.end(), open_.begin(), open_.end(), same);
      if (!goes_on) change(std::move(open));
      break;
    }
    case Mark::Kind::kStep:
      if (mark.count <= 0) break;
      hold_counts();
      steps_ += mark.count;
      if (std::isfinite(mark.value) && mark.value > 0) samples_ += mark.value;
      stepped_ = last_;
      break;
    case Mark::Kind::kMetric:
      if (const auto name = name_of(mark.name)) {
        set_metric(metrics_[*name], mark.value);
      }
      break;
    case Mark::Kind::kParameter:
      set_parameter(mark);
      break;
    case Mark::Kind::kProgress:
      set_progress(mark);
      break;
  }
}

void MarkTrack::begin(std::string_view name) {
  const auto number = name_of(name);
  if (!number || open_.size() == kDeepestPhase) {
    ++too_deep_;
    return;
  }
  std::vector<Begun> open = open_;
  open.push_back({*number, begins(*number), ++begins_, last_});
  tell_place(name, open.back().nth);
  change(std::move(open));
}

// A phase of a name such as "epoch" or "fold 1/5" says where the job is.
void MarkTrack::tell_place(std::string_view name, std::int32_t nth) {
  const std::string called = lower(name);
  for (const std::string_view unit : {"fold", "epoch"})
    if (const auto at = place_in(unit, called, nth))
      set_progress({.kind = Mark::Kind::kProgress,
                    .at = last_,
                    .name = unit,
                    .count = at->number,
                    .of = at->of,
                    .state = "begun"});
}

// Ranges that need not nest are not counted: where one around them ends, they are in another place.
std::int32_t MarkTrack::begins(std::uint32_t name) {
  if (within_ == Within::kGoesOn) return 0;
  Names open;
  for (const Begun& begun : open_) open.push_back(begun.name);
  open.push_back(name);
  const auto known = begun_.find(open);
  if (known == begun_.end() && begun_.size() == kMostNames) return 0;
  std::int32_t& times = known == begun_.end() ? begun_[open] : known->second;
  times = std::min(times, std::numeric_limits<std::int32_t>::max() - 1) + 1;
  return times;
}

void MarkTrack::end(std::string_view name) {
  if (too_deep_ > 0) {
    --too_deep_;
    return;
  }
  const auto found = numbers_.find(name);
  auto end = open_.end();
  while (end != open_.begin() && !name.empty() && (found == numbers_.end() || (end - 1)->name != found->second)) --end;
  if (end == open_.begin()) return;  // what was never begun, or begun before anybody looked
  std::vector<Begun> open(open_.begin(), end - 1);
  if (within_ == Within::kGoesOn) open.insert(open.end(), end, open_.end());
  change(std::move(open));
}

void MarkTrack::set_parameter(const Mark& mark) {
  const auto name = name_of(mark.name);
  if (!name) return;
  LastParameter& parameter = parameters_[*name];
  if (parameter.written && parameter.text == mark.text) {
    parameter.fresh = false;
    return;
  }
  if (bytes_ - parameter.text.size() + mark.text.size() > kMostNameBytes) {
    ++cut_;
    return;
  }
  bytes_ += mark.text.size() - parameter.text.size();
  parameter.text = mark.text;
  parameter.at = last_;
  parameter.fresh = true;
}

void MarkTrack::set_progress(const Mark& mark) {
  const bool of_steps = mark.name == "step", of_folds = mark.name == "fold";
  LastProgress& last = of_steps ? progress_steps_ : of_folds ? folds_ : epochs_;
  events::Progress said{std::string(mark.name),  mark.count,   mark.of,
                        std::string(mark.state), std::nullopt, std::nullopt};
  if (of_steps) said.steps = steps_;
  if (of_steps && mark.in_epoch) said.in_epoch = 1;
  const bool another = said.of != last.said.of || said.state != last.said.state;
  if (last.at > 0 && !another && said.number == last.said.number) return;
  last.anew |= !of_steps || another || said.number < last.said.number;
  last.said = std::move(said);
  last.at = last_;
  last.fresh = true;
  if (of_folds) epochs_ = {.written = epochs_.written};  // they begin anew
}

// Before the first step of a phase: the counts as they were, so that its steps are not thought to have begun in the
// phase before. What is counted in the instant of the change was done before it. Where phases within every step leave
// more of these than are kept, the longest pauses are those between the phases that have rows; the one before the first
// step of all has no length, and without it that step has no time.
void MarkTrack::hold_counts() {
  if (!changed_ || last_ <= *changed_) return;
  const Nanos changed = *std::exchange(changed_, std::nullopt);
  pauses_.push_back({std::min(changed, stepped_ ? *stepped_ : row_at_.value_or(changed)), changed, steps_, samples_});
  if (pauses_.size() > kMostHeld)
    pauses_.erase(std::min_element(pauses_.begin() + (pauses_.front().steps == 0 ? 1 : 0), pauses_.end(),
                                   [](const Pause& x, const Pause& y) { return x.length() < y.length(); }));
}

void MarkTrack::change(std::vector<Begun> open) {
  changed_ = last_;
  for (const Begun& begun : open_) {
    const bool open_still =
        std::any_of(open.begin(), open.end(), [&](const Begun& other) { return other.id == begun.id; });
    if (open_still || last_ - begun.at >= kShortestPhase) continue;
    too_short_.emplace(begun.id, last_);
    if (last_ > begun.at) ++short_;
  }
  open_ = std::move(open);
  // What lasted no time was no phase: one range ends where the next begins.
  if (!said_.empty() && said_.back().since == last_) said_.pop_back();
  said_.push_back({last_, open_});
  if (said_.size() % kMostSaid == 0) drop_short(last_, false);
}

// Hands what is certain of said_ on to states_. Returns until when that is.
Nanos MarkTrack::drop_short(Nanos now, bool last) {
  std::size_t certain = 0;
  for (; certain < said_.size(); ++certain) {
    const Said& said = said_[certain];
    const bool open = std::any_of(said.open.begin(), said.open.end(), [&](const Begun& begun) {
      return !is_short(begun) && now - begun.at < kShortestPhase;
    });
    if (!last && (open || said.since >= now)) break;  // it may still grow, or be none
    State state{said.since, {}, {}};
    std::int64_t innermost = 0;
    for (const Begun& begun : said.open)
      if (!is_short(begun)) {
        state.open.push_back(begun.name);
        state.nths.push_back(begun.nth);
        innermost = begun.id;
      }
    if (told_.open == state.open && told_.nths == state.nths) {
      if (innermost > told_id_) ++short_;  // once more, at once; nobody counts
    } else {
      told_ = state;
      states_.push_back(std::move(state));
    }
    told_id_ = innermost;
  }
  said_.erase(said_.begin(), said_.begin() + static_cast<std::ptrdiff_t>(certain));
  const Nanos end = said_.empty() ? now : said_.front().since;
  std::erase_if(too_short_, [&](const auto& gone) { return gone.second <= end; });
  return end;
}

void MarkTrack::settle(Nanos now, RecordingSink& sink, bool last) {
  const Nanos until = drop_short(now, last);
  std::size_t settled = 0;
  for (; settled < states_.size(); ++settled) {
    State& state = states_[settled];
    const bool is_last = settled + 1 == states_.size();
    const Nanos end = is_last ? until : states_[settled + 1].since;
    if (end - state.since >= kShortestPhase) {
      close_run(sink);
      enter(state);
      put(state, sink);
      continue;
    }
    if (is_last) break;  // it may still grow
    enter(state);
    if (run_) {
      run_->open.resize(shared(run_->open, state.open));
      run_->nths.assign(state.nths.begin(), state.nths.begin() + static_cast<std::ptrdiff_t>(run_->open.size()));
    } else {
      run_ = std::move(state);
    }
    run_end_ = end;
    if (run_end_ - run_->since >= kShortestPhase) close_run(sink);
  }
  states_.erase(states_.begin(), states_.begin() + static_cast<std::ptrdiff_t>(settled));
}

// Counts the phases that have ended and had no row.
void MarkTrack::enter(const State& state) {
  const std::size_t same = std::min(shared(settled_.open, state.open), shared(settled_.nths, state.nths));
  short_ += std::count(in_row_.begin() + static_cast<std::ptrdiff_t>(same), in_row_.end(), false);
  in_row_.resize(same);
  in_row_.resize(state.open.size(), false);
  settled_ = state;
  if (written_ && shared(written_->open, state.open) < written_->open.size()) ended_ = true;
}

void MarkTrack::close_run(RecordingSink& sink) {
  if (!run_) return;
  // A shorter one belongs to what was before.
  if (run_end_ - run_->since >= kShortestGap) put(*run_, sink);
  run_.reset();
}

void MarkTrack::put(const State& state, RecordingSink& sink) {
  const auto& [at, open, nths] = state;
  std::fill_n(in_row_.begin(), open.size(), true);
  const bool once_more = std::exchange(ended_, false) && state.nth() == 0 && written_->open == open;
  if (once_more) ++short_;  // in the row that is there
  if (written_ ? written_->open == open && written_->nth() == state.nth() : open.empty()) return;
  std::vector<TextId> ids;
  for (const std::uint32_t name : open) {
    if (texts_[name] == kNoText) texts_[name] = sink.intern(names_[name]);
    ids.push_back(texts_[name]);
  }
  const ListId list = sink.intern_list(ids);
  if (list == kNoList || std::find(ids.begin(), ids.end(), kNoText) != ids.end()) {
    ++cut_;
    return;
  }
  sink.add_list_row(id(sink), {at, list, state.nth()});
  written_ = state;
}

void MarkTrack::put_count(Nanos at, std::int64_t steps, double samples, RecordingSink& sink) {
  if (row_at_ && at <= *row_at_ && steps == row_steps_) return;
  if (row_at_) at = std::max(at, *row_at_ + 1);  // one instant has one row
  std::vector<Cell> cells{{Metric::kSteps, steps, std::nullopt}};
  if (samples > 0) cells.push_back({Metric::kSamples, from_unit(Metric::kSamples, samples), std::nullopt});
  sink.add_row(id(sink), at, cells);
  row_at_ = at;
  row_steps_ = steps;
}

void MarkTrack::write_counts(Nanos now, bool last, RecordingSink& sink) {
  for (const Pause& pause : pauses_) {
    if (pause.length() > 0) put_count(pause.last_step, pause.steps, pause.samples, sink);
    put_count(pause.last_change, pause.steps, pause.samples, sink);
  }
  pauses_.clear();
  if (stepped_) put_count(*std::exchange(stepped_, std::nullopt), steps_, samples_, sink);
  for (auto& [name, metric] : metrics_) {
    if (!metric.last.fresh || (!last && metric.written && now - *metric.written < interval_of(metric, now))) continue;
    write_metric(names_[name], metric, sink);
    metric.written = now;
  }
  for (auto& [name, parameter] : parameters_) {
    if (!parameter.fresh || (!last && parameter.written && now - *parameter.written < kMetricInterval)) continue;
    sink.add_event(to_event(events::Parameter{names_[name], parameter.text}, parameter.at, id(sink)));
    parameter.written = now;
    parameter.fresh = false;
  }
  write_progress(now, last, sink);
  if (const auto cut = std::exchange(cut_, 0); cut > 0) sink.add_loss(make_loss(LossKind::kMarkCut, cut, source_.key));
  if (const auto few = std::exchange(short_, 0); few > 0)
    sink.add_loss(make_loss(LossKind::kMarkShort, few, source_.key));
}

void MarkTrack::set_metric(LastMetric& metric, double value) const {
  metric.last = {.value = value, .at = last_, .fresh = true, .nth = metric.last.nth + 1};
  if (std::isnan(value)) return;
  if (!metric.first) metric.first = metric.last;
  if (!metric.lowest || value < metric.lowest->value) metric.lowest = metric.last;
  if (!metric.highest || value > metric.highest->value) metric.highest = metric.last;
}

Nanos MarkTrack::interval_of(const LastMetric& metric, Nanos now) const {
  const Nanos age = now - (metric.first ? *metric.first : metric.last).at;
  const auto many = static_cast<std::int64_t>(metrics_.size()) / kFewMetrics;
  return std::clamp(age / kPartsOfItsAge, std::min(kMetricInterval, (1 + many) * kShortestMetricInterval),
                    kMetricInterval);
}

void MarkTrack::write_metric(const std::string& name, LastMetric& metric, RecordingSink& sink) {
  std::vector<MetricValue> fresh;
  for (std::optional<MetricValue>* one : {&metric.first, &metric.lowest, &metric.highest})
    if (*one && std::exchange((*one)->fresh, false)) fresh.push_back(**one);
  fresh.push_back(metric.last);
  metric.last.fresh = false;
  std::sort(fresh.begin(), fresh.end(), [](const auto& x, const auto& y) { return x.nth < y.nth; });
  for (std::size_t i = 0; i < fresh.size(); ++i)
    if (i == 0 || fresh[i].nth != fresh[i - 1].nth)
      sink.add_event(to_event(events::MetricValue{name, fresh[i].value}, fresh[i].at, id(sink)));
}

// Of steps that go on, the count of steps says where they are.
void MarkTrack::write_progress(Nanos now, bool last, RecordingSink& sink) {
  for (LastProgress* one : {&folds_, &epochs_, &progress_steps_}) {
    const Nanos interval = one->anew ? kProgressInterval : kMetricInterval;
    if (!one->fresh || (!last && one->written && now - *one->written < interval)) continue;
    sink.add_event(to_event(one->said, one->at, id(sink)));
    one->written = now;
    one->fresh = one->anew = false;
  }
}

void MarkTrack::write(Nanos now, RecordingSink& sink) {
  settle(std::max(now, last_), sink);
  write_counts(std::max(now, last_), false, sink);
}

void MarkTrack::finish(Nanos now, RecordingSink& sink) {
  settle(std::max(now, last_), sink, true);
  close_run(sink);
  if (!states_.empty()) {
    enter(states_.back());
    put(states_.back(), sink);
  }
  states_.clear();
  write_counts(std::max(now, last_), true, sink);
}

SourceId MarkTrack::id(RecordingSink& sink) {
  if (id_ == kNoSource) id_ = sink.add_source(source_);
  return id_;
}

}  // namespace headroom::marks
