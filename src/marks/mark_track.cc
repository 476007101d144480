// SPDX-License-Identifier: Apache-2.0
#include "marks/mark_track.h"

#include <algorithm>
#include <cmath>

#include "model/events.h"
#include "model/losses.h"

namespace headroom::marks {

namespace {

template <class T>
std::vector<T> common_prefix(const std::vector<T>& a, const std::vector<T>& b) {
  const auto end = std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first;
  return {a.begin(), end};
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
      Names open;
      if (!mark.name.empty())
        if (const auto name = name_of(mark.name)) open.push_back(*name);
      too_deep_ = 0;
      change(last_, std::move(open), mark.nth);
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
        LastMetric& metric = metrics_[*name];
        metric.value = mark.value;
        metric.at = last_;
        metric.fresh = true;
      }
      break;
    case Mark::Kind::kParameter:
      set_parameter(mark);
      break;
  }
}

void MarkTrack::begin(std::string_view name) {
  const auto number = name_of(name);
  if (!number || open_.size() == kDeepestPhase) {
    ++too_deep_;
    return;
  }
  Names open = open_;
  open.push_back(*number);
  change(last_, std::move(open));
}

void MarkTrack::end(std::string_view name) {
  if (too_deep_ > 0) {
    --too_deep_;
    return;
  }
  const auto found = numbers_.find(name);
  auto end = open_.end();
  while (end != open_.begin() && !name.empty() && (found == numbers_.end() || *(end - 1) != found->second)) --end;
  if (end == open_.begin()) return;  // what was never begun, or begun before anybody looked
  Names open(open_.begin(), end - 1);
  if (within_ == Within::kGoesOn) open.insert(open.end(), end, open_.end());
  change(last_, std::move(open));
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

// Before the first step of a phase: the counts as they were, so that its steps are not thought to have begun in the
// phase before. What is counted in the instant of the change was done before it.
void MarkTrack::hold_counts() {
  if (!changed_ || last_ <= *changed_) return;
  const Nanos changed = *std::exchange(changed_, std::nullopt);
  if (counts_.size() + 2 > kMostCountRows) return;
  if (stepped_ && *stepped_ < changed) counts_.push_back({*stepped_, steps_, samples_});
  counts_.push_back({changed, steps_, samples_});
}

void MarkTrack::change(Nanos at, Names open, std::int64_t nth) {
  if (open == open_ && nth == nth_) return;
  changed_ = at;
  open_ = std::move(open);
  nth_ = nth;
  // What lasted no time was no phase: one range ends where the next begins.
  if (!states_.empty() && states_.back().since == at) states_.pop_back();
  if (states_.empty() || states_.back().open != open_ || states_.back().nth != nth_)
    states_.push_back({at, open_, nth_});
}

void MarkTrack::settle(Nanos until, RecordingSink& sink) {
  std::size_t settled = 0;
  for (; settled < states_.size(); ++settled) {
    State& state = states_[settled];
    const bool is_last = settled + 1 == states_.size();
    const Nanos end = is_last ? until : states_[settled + 1].since;
    if (end - state.since >= kShortestPhase) {
      close_run(sink);
      put(state, sink);
      continue;
    }
    if (is_last) break;  // it may still grow
    ++short_;
    if (run_) {
      run_->nth = run_->open == state.open ? state.nth : 0;
      run_->open = common_prefix(run_->open, state.open);
    } else {
      run_ = std::move(state);
    }
    run_end_ = end;
    if (run_end_ - run_->since >= kShortestPhase) close_run(sink);
  }
  states_.erase(states_.begin(), states_.begin() + static_cast<std::ptrdiff_t>(settled));
}

void MarkTrack::close_run(RecordingSink& sink) {
  if (!run_) return;
  // A shorter one belongs to what was before.
  if (run_end_ - run_->since >= kShortestPhase) put(*run_, sink);
  run_.reset();
}

void MarkTrack::put(const State& state, RecordingSink& sink) {
  const auto& [at, open, nth] = state;
  if (written_ ? written_->open == open && written_->nth == nth : open.empty()) return;
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
  sink.add_list_row(id(sink), {at, list, nth});
  written_ = state;
}

void MarkTrack::write_counts(Nanos now, bool last, RecordingSink& sink) {
  if (stepped_) counts_.push_back({*std::exchange(stepped_, std::nullopt), steps_, samples_});
  for (const Count& count : counts_) {
    if (row_at_ && count.at <= *row_at_ && count.steps == row_steps_) continue;
    const Nanos at = row_at_ ? std::max(count.at, *row_at_ + 1) : count.at;  // one instant has one row
    std::vector<Cell> cells{{Metric::kSteps, count.steps, std::nullopt}};
    if (samples_ > 0) cells.push_back({Metric::kSamples, from_unit(Metric::kSamples, count.samples), std::nullopt});
    sink.add_row(id(sink), at, cells);
    row_at_ = at;
    row_steps_ = count.steps;
  }
  counts_.clear();
  for (auto& [name, metric] : metrics_) {
    if (!metric.fresh || (!last && metric.written && now - *metric.written < kMetricInterval)) continue;
    sink.add_event(to_event(events::MetricValue{names_[name], metric.value}, metric.at, id(sink)));
    metric.written = now;
    metric.fresh = false;
  }
  for (auto& [name, parameter] : parameters_) {
    if (!parameter.fresh || (!last && parameter.written && now - *parameter.written < kMetricInterval)) continue;
    sink.add_event(to_event(events::Parameter{names_[name], parameter.text}, parameter.at, id(sink)));
    parameter.written = now;
    parameter.fresh = false;
  }
  if (const auto cut = std::exchange(cut_, 0); cut > 0) sink.add_loss(make_loss(LossKind::kMarkCut, cut, source_.key));
  if (const auto few = std::exchange(short_, 0); few > 0)
    sink.add_loss(make_loss(LossKind::kMarkShort, few, source_.key));
}

void MarkTrack::write(Nanos now, RecordingSink& sink) {
  settle(std::max(now, last_), sink);
  write_counts(std::max(now, last_), false, sink);
}

void MarkTrack::finish(Nanos now, RecordingSink& sink) {
  settle(std::max(now, last_), sink);
  close_run(sink);
  if (!states_.empty()) put(states_.back(), sink);
  states_.clear();
  write_counts(std::max(now, last_), true, sink);
}

SourceId MarkTrack::id(RecordingSink& sink) {
  if (id_ == kNoSource) id_ = sink.add_source(source_);
  return id_;
}

}  // namespace headroom::marks
