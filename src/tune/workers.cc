// SPDX-License-Identifier: Apache-2.0
#include "tune/workers.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "tune/quantiles.h"

namespace headroom::tune {

namespace {

constexpr double kMostly = 0.5;
constexpr double kAtTimes = 0.01;
constexpr std::int64_t kMostRunning = 1'000;  // RUNNING trials, each against the whole study: more is no study

std::vector<std::size_t> by_begin(const Timeline& timeline) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < timeline.spans.size(); ++i)
    if (timeline.spans[i].timed) order.push_back(i);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return timeline.spans[a].begin < timeline.spans[b].begin; });
  return order;
}

// The middle duration of trials that ended; 0 where none did.
Nanos middle_duration(const Study& study, const Timeline& timeline) {
  std::vector<double> durations;
  for (std::size_t i = 0; i < study.trials.size(); ++i)
    if (timeline.spans[i].timed && is_finished(study.trials[i].state))
      durations.push_back(static_cast<double>(timeline.spans[i].duration()));
  return static_cast<Nanos>(quantiles(std::move(durations)).p50);
}

// When more were open than there can be, from a moment on.
struct Excess {
  Nanos first = 0, held = 0;
};

Excess excess_since(const OpenCurve& curve, Nanos since, std::int64_t most, Nanos end) {
  Excess excess{.first = end};
  for (std::size_t i = curve.size(); i-- > 0;) {
    const Nanos until = i + 1 < curve.size() ? curve[i + 1].first : end;
    if (until <= since) break;
    if (curve[i].second <= most) continue;
    excess.first = std::max(since, curve[i].first);
    excess.held += until - excess.first;
  }
  return excess;
}

using FreeWorkers = std::set<std::pair<Nanos, std::int64_t>>;  // since, lane

// The one that has been free for longest, but for `pause` at most: one that was free for longer has stopped, and comes
// back only where no other is free. Without a pause the one that became free last.
FreeWorkers::iterator free_for_longest(const FreeWorkers& free, Nanos at, Nanos pause) {
  const auto lane = free.lower_bound({at - std::min(pause, at), 0});
  return (lane == free.end() || lane->first > at) && lane != free.begin() ? std::prev(lane) : lane;
}

// The one that has been free for nearest to `usual`.
FreeWorkers::iterator free_as_usual(const FreeWorkers& free, Nanos at, Nanos usual) {
  const Nanos since = at - std::min(usual, at);
  const auto lane = free.lower_bound({since, 0});
  if (lane == free.begin()) return lane;
  const auto longer = std::prev(lane);
  return lane == free.end() || lane->first > at || since - longer->first <= lane->first - since ? longer : lane;
}

// Each trial goes to the worker that is chosen of those that are free, or to a new one.
template <class Choose>
void place_by_times(const std::vector<std::size_t>& order, const Choose& choose, Timeline& timeline) {
  FreeWorkers free;
  std::int64_t lanes = 0;
  for (const std::size_t i : order) {
    TrialSpan& span = timeline.spans[i];
    const auto lane = choose(free, span.begin);
    if (lane != free.end() && lane->first <= span.begin) {
      span.lane = lane->second;
      free.erase(lane);
    } else {
      span.lane = lanes++;
    }
    free.emplace(span.alive_until, span.lane);
  }
}

}  // namespace

OpenCurve open_curve(const std::vector<TrialSpan>& spans, From from, Until until) {
  std::vector<std::pair<Nanos, int>> events;
  for (const TrialSpan& span : spans) {
    if (!span.timed) continue;
    events.emplace_back(from == From::kBegin ? span.begin : span.first_step, 1);
    events.emplace_back(until == Until::kEnd ? span.end : span.alive_until, -1);
  }
  std::sort(events.begin(), events.end());
  OpenCurve curve;
  std::int64_t open = 0;
  for (std::size_t i = 0; i < events.size(); ++i) {
    open += events[i].second;
    if (i + 1 < events.size() && events[i + 1].first == events[i].first) continue;
    if (curve.empty() || curve.back().second != open) curve.emplace_back(events[i].first, open);
  }
  return curve;
}

namespace {

std::int64_t usual_height(const OpenCurve& curve) {
  std::map<std::int64_t, double> held;  // seconds, by count
  double any = 0;
  for (std::size_t i = 0; i + 1 < curve.size(); ++i) {
    if (curve[i].second <= 0) continue;
    const double length = seconds(curve[i + 1].first - curve[i].first);
    held[curve[i].second] += length;
    any += length;
  }
  if (held.empty()) return 0;
  for (const auto& [count, length] : held)
    if (length > kMostly * any) return count;
  double so_many_or_more = 0;
  for (auto at = held.rbegin(); at != held.rend(); ++at) {
    so_many_or_more += at->second;
    if (so_many_or_more >= kAtTimes * any) return at->first;
  }
  return held.begin()->first;
}

// From the first trial of each worker to its last; none where the storage does not know who had each.
std::vector<TrialSpan> lives_of_workers(const Study& study, const Timeline& timeline) {
  std::map<std::uint32_t, TrialSpan> lives;
  for (std::size_t i = 0; i < study.trials.size(); ++i) {
    const TrialSpan& span = timeline.spans[i];
    if (!span.timed) continue;
    if (!study.trials[i].worker) return {};
    const auto [life, is_new] = lives.try_emplace(*study.trials[i].worker, span);
    if (is_new) continue;
    life->second.begin = std::min(life->second.begin, span.begin);
    life->second.alive_until = std::max(life->second.alive_until, span.alive_until);
  }
  std::vector<TrialSpan> all;
  for (const auto& [worker, life] : lives) all.push_back(life);
  return all;
}

}  // namespace

std::int64_t infer_workers(const Study& study, const Timeline& timeline) {
  const std::int64_t open = usual_height(open_curve(timeline.spans, From::kBegin, Until::kAliveUntil));
  const std::int64_t there =
      usual_height(open_curve(lives_of_workers(study, timeline), From::kBegin, Until::kAliveUntil));
  return std::max({open, there, timeline.any ? std::int64_t{1} : std::int64_t{0}});
}

void find_replaced(const Study& study, std::int64_t workers, Told told, Timeline& timeline) {
  if (workers <= 0) return;
  const OpenCurve curve = open_curve(timeline.spans, From::kBegin, Until::kAliveUntil);
  const std::vector<std::size_t> order = by_begin(timeline);
  const Nanos handover = std::min<Nanos>(kSecond, (timeline.end - timeline.begin) / 100);
  const Nanos at_least = std::max(handover, middle_duration(study, timeline) / 4);
  const std::int64_t younger_needed = told == Told::kYes ? 1 : 2 * workers;
  std::int64_t younger = static_cast<std::int64_t>(order.size()), most = workers, looked_at = 0;
  for (const std::size_t i : order) {
    --younger;
    TrialSpan& span = timeline.spans[i];
    if (study.trials[i].state != TrialState::kRunning || span.dead != DeadBy::kNone) continue;
    if (younger < younger_needed || ++looked_at > kMostRunning) return;
    // While it was heard of, its worker was there, too.
    const Excess excess = excess_since(curve, std::max(span.begin, span.last_sign), most, timeline.end);
    if (excess.held <= at_least) continue;
    if (told == Told::kNo && excess.held < (timeline.end - excess.first) / 2) continue;
    // Any of those that are open may be the one: a trial that could still end by itself is not it for sure.
    if (seconds(timeline.end - span.last_sign) <= timeline.longest) continue;
    span.dead = DeadBy::kReplaced;
    span.alive_until = excess.first;
    ++most;
  }
}

void find_left_behind(const Study& study, Timeline& timeline) {
  constexpr std::size_t kEnough = 3;
  std::map<std::uint32_t, std::vector<std::size_t>> of_worker;
  for (const std::size_t i : by_begin(timeline))
    if (study.trials[i].worker) of_worker[*study.trials[i].worker].push_back(i);
  for (const auto& [worker, order] : of_worker) {
    std::size_t ended = 0;
    Nanos last_end = 0;
    bool beside = false;
    for (const std::size_t i : order) {
      if (!is_finished(study.trials[i].state)) continue;
      beside |= timeline.spans[i].begin < last_end;
      last_end = std::max(last_end, timeline.spans[i].end);
      ++ended;
    }
    if (beside || ended < kEnough) continue;
    for (std::size_t k = 0; k + 1 < order.size(); ++k) {
      TrialSpan& span = timeline.spans[order[k]];
      const bool shown_dead =
          span.dead != DeadBy::kNone && span.dead != DeadBy::kAge;  // its age shows nothing for sure
      if (study.trials[order[k]].state != TrialState::kRunning || shown_dead) continue;
      span.dead = DeadBy::kLeftBehind;
      span.alive_until = std::min(span.last_sign, timeline.spans[order[k + 1]].begin);
    }
  }
}

void place_lanes(const Study& study, Timeline& timeline) {
  const auto known = [&](std::size_t i) { return study.trials[i].worker.has_value(); };
  const std::vector<std::size_t> order = by_begin(timeline);
  if (!order.empty() && std::all_of(order.begin(), order.end(), known)) {
    for (const std::size_t i : order) timeline.spans[i].lane = *study.trials[i].worker;
    return;
  }
  constexpr double kFarMoreAlike = 0.5;
  const auto pause = [&](Nanos most) {
    place_by_times(
        order, [most](const auto& free, Nanos at) { return free_for_longest(free, at, most); }, timeline);
    return quantiles(gaps(timeline));
  };
  // However many have left, no trial waits for the one that became free last.
  const Quantiles last = pause(0);
  if (last.count == 0) return;
  const Nanos most = to_nanos(kPause * last.p50);
  const Quantiles longest = pause(most);
  const Nanos usual = to_nanos(last.p50);
  place_by_times(
      order, [usual](const auto& free, Nanos at) { return free_as_usual(free, at, usual); }, timeline);
  // Where gaps are long, one that has left seems to be there: with whom it is not, they are far more alike.
  const Quantiles alike = quantiles(gaps(timeline));
  if (alike.p90 - alike.p10 >= kFarMoreAlike * (longest.p90 - longest.p10)) (void)pause(most);
}

namespace {

// Of the trials that began from `from` to `until`, the end of a stretch in which the study went on.
OpenCurve fewer_workers(const Timeline& timeline, Nanos from, Nanos until) {
  constexpr std::int64_t kGoOn = 3;  // trials that began since: else the study ran out
  struct Life {
    Nanos begin = 0, end = 0;
  };
  std::map<std::int64_t, Life> lives;
  std::vector<Nanos> begins;
  for (const TrialSpan& span : timeline.spans) {
    if (!span.timed || span.begin < from || span.begin > until) continue;
    const auto [life, is_new] = lives.try_emplace(span.lane, Life{span.begin, span.alive_until});
    life->second.begin = std::min(life->second.begin, span.begin);
    life->second.end = std::max(life->second.end, span.alive_until);
    begins.push_back(span.begin);
  }
  std::vector<Nanos> left;
  Nanos last_came = 0;
  for (const auto& [lane, life] : lives) {
    last_came = std::max(last_came, life.begin);
    const auto since = std::count_if(begins.begin(), begins.end(), [&](Nanos begin) { return begin > life.end; });
    if (seconds(until - life.end) > timeline.longest && since >= kGoOn) left.push_back(life.end);
  }
  std::sort(left.begin(), left.end());
  if (left.empty() || left.size() == lives.size() || left.front() < last_came) return {};
  auto there = static_cast<std::int64_t>(lives.size());
  OpenCurve curve{{from, there}};
  for (const Nanos at : left) curve.emplace_back(at, --there);
  return curve;
}

}  // namespace

OpenCurve fewer_workers(const Timeline& timeline) { return fewer_workers(timeline, timeline.begin, timeline.end); }

OpenCurve gone_workers(const Timeline& timeline) {
  std::vector<std::pair<Nanos, Nanos>> stretches{{timeline.begin, timeline.end}};  // all of it, then its sessions
  Nanos from = timeline.begin;
  for (const Standstill& still : timeline.stood_still) {
    if (still.open > 0) continue;
    stretches.emplace_back(from, timeline.begin + to_nanos(still.begin));
    from = timeline.begin + to_nanos(still.end);
  }
  if (stretches.size() > 1) stretches.emplace_back(from, timeline.end);
  std::map<Nanos, std::int64_t> gone;  // the most of all stretches
  std::vector<std::pair<OpenCurve, Nanos>> curves;
  for (const auto& [begin, end] : stretches) {
    curves.emplace_back(fewer_workers(timeline, begin, end), end);
    for (const auto& [at, there] : curves.back().first) gone[at] = 0;
    if (end < timeline.end && !curves.back().first.empty()) gone[end] = 0;  // the next session has its own
  }
  for (auto& [at, count] : gone)
    for (const auto& [curve, end] : curves)
      for (const auto& [since, there] : curve)
        if (since <= at && (at < end || end == timeline.end)) count = std::max(count, curve.front().second - there);
  return {gone.begin(), gone.end()};
}

std::vector<double> gaps(const Timeline& timeline) {
  std::map<std::int64_t, Nanos> ended;  // by lane
  std::vector<double> result;
  for (const std::size_t i : by_begin(timeline)) {
    const TrialSpan& span = timeline.spans[i];
    const auto before = ended.find(span.lane);
    if (before != ended.end() && before->second <= span.begin) result.push_back(seconds(span.begin - before->second));
    ended[span.lane] = std::max(before == ended.end() ? 0 : before->second, span.alive_until);
  }
  return result;
}

}  // namespace headroom::tune
