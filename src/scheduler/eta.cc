// SPDX-License-Identifier: Apache-2.0
#include "scheduler/eta.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace headroom::scheduler {

namespace {
constexpr double kBinsPerFactorE = 20;    // 5 % wide
constexpr double kNeverKnown = 0.9;       // is the most of itself that a running task is credited with
constexpr double kShortestLength = 1e-3;  // seconds
constexpr double kLongestLength = 1e12;   // seconds
constexpr double kLeastScatter = 0.01;
constexpr double kOddScatter = 1.2;         // at least
constexpr double kOddAfter = 5;             // one in so many is odd, and in so many more as have ended
constexpr int kSteps = 10, kHalvings = 12;  // enough for a few percent, and for a thousandth
constexpr double kFar = 30;                 // scales from the middle of a logistic law
constexpr double kWithin = 1 - 1e-9;        // sums of shares are not exact
// Variance of a logistic law, in scales, beyond that of its tail.
constexpr double kLogistic = std::numbers::pi * std::numbers::pi / 3 - 1;
}  // namespace

void Lengths::add(double seconds) {
  const double log = std::log(std::max(seconds, kShortestLength));
  Bin& bin = bins_[static_cast<int>(std::floor(log * kBinsPerFactorE))];
  ++bin.count, bin.seconds += seconds;
  ++count_, logs_ += log, squared_logs_ += log * log;
}

double Lengths::spread() const {
  return count_ > 0 ? std::max(0.0, squared_logs_ - logs_ * logs_ / static_cast<double>(count_)) : 0;
}

double LengthLaw::left_at_most(double done, double share) const {
  const auto longer = [&](double seconds) {  // share of tasks
    const auto of = [&](double deviation) {
      return 1 / (1 + std::pow(seconds / usual, std::numbers::pi / std::numbers::sqrt3 / deviation));
    };
    return (1 - odd) * of(std::max(scatter, kLeastScatter)) + odd * of(std::max(scatter, kOddScatter));
  };
  const double wanted = longer(done) * (1 - share);
  double low = std::max(done, kShortestLength), high = std::max(low, usual);
  while (longer(high) > wanted && high < kLongestLength) high *= 4;
  for (int step = 0; step < kHalvings; ++step) {
    const double middle = std::sqrt(low * high);
    (longer(middle) > wanted ? low : high) = middle;
  }
  return std::max(0.0, high - done);
}

// Maximum likelihood by expectation and maximisation: what still runs is taken for as long as such a task is expected
// to be, and then for a length like the others.
void LengthCurve::believe(const Lengths& ended, std::span<const double> running, Belief belief) {
  const double seen = static_cast<double>(ended.count_), all = seen + static_cast<double>(running.size());
  const double believed = belief.weight * belief.scatter * belief.scatter, mean = ended.logs_ / std::max(1.0, seen);
  double usual = mean, variance = (ended.spread() + believed) / std::max(1.0, seen - 1 + belief.weight);
  for (int step = 0; step < kSteps && seen > 0 && !running.empty(); ++step) {
    const double scale = std::sqrt(variance) * std::numbers::sqrt3 / std::numbers::pi;
    double sum = ended.logs_, squares = 0, own = 0;
    for (const double one : running) {
      const double behind = std::clamp((std::log(std::max(one, kShortestLength)) - usual) / scale, -kFar, kFar);
      const double expected = usual + scale * (behind + (1 + std::exp(behind)) * std::log1p(std::exp(-behind)));
      sum += expected, squares += expected * expected;
      own += scale * scale * (1 + kLogistic / (1 + std::exp(behind)));
    }
    usual = sum / all;
    const double spread = ended.spread() + seen * (mean - usual) * (mean - usual) + own + squares -
                          2 * usual * (sum - ended.logs_) + static_cast<double>(running.size()) * usual * usual;
    variance = (spread + believed) / (all - 1 + belief.weight);
  }
  law_ = {.usual = std::exp(usual),
          .scatter = std::sqrt(variance * (1 + 1 / std::max(1.0, seen))),
          .odd = 1 / (seen + kOddAfter)};
}

LengthCurve::LengthCurve(const Lengths& ended, std::span<const double> running)
    : LengthCurve(ended, running, Belief{}) {}

LengthCurve::LengthCurve(const Lengths& ended, std::span<const double> running, Belief belief) {
  believe(ended, running, belief);
  const double count = static_cast<double>(ended.count_);
  const double shown = ended.spread() + belief.weight * belief.scatter * belief.scatter;
  double at_risk = count + static_cast<double>(running.size()), longer = 1, last = 0;
  auto shorter = running.begin();
  for (const auto& [number, bin] : ended.bins_) {
    const double size = static_cast<double>(bin.count);
    last = bin.seconds / size;
    for (; shorter != running.end() && *shorter < last; ++shorter) --at_risk;
    const double share = longer * size / at_risk;
    points_.push_back({last, share});
    longer -= share, at_risk -= size;
  }
  if (longer > 1e-9 && !running.empty())
    points_.push_back({std::max(last, running.back()) * std::exp(std::sqrt(shown / (count + belief.weight))), longer});
  for (const Point& point : points_) mean_ += point.share * point.seconds;
  for (const Point& point : points_) variance_ += point.share * (point.seconds - mean_) * (point.seconds - mean_);
  const double believed = mean_ * mean_ * std::expm1(std::min(1.0, law_.scatter * law_.scatter));
  variance_ = (count * variance_ + belief.weight * believed) / std::max(1.0, count - 1 + belief.weight);
}

double LengthCurve::left(double done) const {
  double share = 0, sum = 0;
  for (const Point& point : points_)
    if (point.seconds > done) share += point.share, sum += point.share * (point.seconds - done);
  return std::max(share > 0 ? sum / share : 0, done * (1 - kNeverKnown) / kNeverKnown);
}

// Absent where none took so long.
std::optional<double> LengthCurve::seen_left(double done, double within) const {
  double share = 0, sum = 0;
  for (const Point& point : points_) share += point.seconds > done ? point.share : 0;
  for (const Point& point : points_) {
    if (point.seconds <= done) continue;
    sum += point.share;
    if (sum >= within * share * kWithin) return point.seconds - done;
  }
  return std::nullopt;
}

double LengthCurve::left_at_most(double done, double share) const {
  return std::max(
      {seen_left(done, share).value_or(0), law_.left_at_most(done, share), done * (1 - kNeverKnown) / kNeverKnown});
}

double LengthCurve::left_at_least(double done, double share) const {
  const double held = law_.left_at_most(done, 1 - share);
  return std::min(seen_left(done, 1 - share).value_or(held), held);
}

namespace {
constexpr double kAssumedSpread = 0.4;  // of one task, relative, before any guess has met its truth
constexpr double kDrift = 0.05;         // the machine may become faster or slower: no range is narrower
// How fast tasks are beside each other is predicted, and more of them may still be started: until what runs has been
// replaced a few times, the rate of work is not proven.
constexpr double kUnproven = 0.5;
constexpr double kFourInFive = 1.2816;  // standard deviations
constexpr double kLook = 0.33;          // of the time so far: over so much the rate of work is seen …
constexpr double kShortestLook = 5;     // … and over so many seconds at least
constexpr std::size_t kParts = 4;       // of that time: what they differ by is what the rate may change by
constexpr double kLongest = 9e9;        // seconds: about the most that Nanos can say
constexpr double kNeverDone = 0.9;      // is the most of itself that a running task is credited with
constexpr double kSlowest = 0.01;
constexpr std::int64_t kFewest = 2;
constexpr std::int64_t kMostRunning = 4;  // for each that has ended
constexpr double kShortest = 1e-3;        // seconds
constexpr double kRevised = 0.6;          // of what the expectation moved lately: it may move so much again
constexpr double kMostLonger = 0.9;       // share of the lengths that the last task is not expected to exceed
}  // namespace

void Eta::add(std::span<const PlannedTask> tasks) {
  tasks_.reserve(tasks_.size() + tasks.size());
  for (const PlannedTask& given : tasks) {
    Task task{.group = given.group, .ended = has_ended(given.state)};
    if (given.expected) task.expected = seconds(*given.expected);
    const auto index = static_cast<std::size_t>(given.group);
    if (index >= groups_.size()) groups_.resize(index + 1);
    Group& group = groups_[index];
    ++group.tasks;
    if (!task.ended) {
      ++left_;
      if (task.expected >= 0)
        group.expected_left += task.expected, longest_expected_ = std::max(longest_expected_, task.expected);
      else
        ++group.left;
    }
    tasks_.push_back(task);
  }
}

void Eta::ended(TaskIndex index, std::optional<Nanos> took) {
  if (index >= tasks_.size() || tasks_[index].ended) return;
  Task& task = tasks_[index];
  task.ended = true;
  --left_;
  Group& group = groups_[static_cast<std::size_t>(task.group)];
  if (task.expected >= 0)
    group.expected_left = std::max(0.0, group.expected_left - task.expected);
  else
    --group.left;
  if (!took) return;
  ++succeeded_;
  const double truth = seconds(*took);
  group.succeeded_seconds += truth;
  if (task.expected > 0) {
    const double guessed = task.expected * stretch(), miss = (truth - guessed) / guessed;
    misses_ += std::min(miss * miss, 1.0);
    ++judged_;
  }
  within_.seen += group.ended.count() > 0 ? 1 : 0;
  within_.spread -= group.ended.spread();
  group.ended.add(truth);
  within_.spread += group.ended.spread();
  ended_.add(truth);
  if (task.expected >= 0) expected_ended_ += task.expected, took_ended_ += truth;
}

// Today tasks may take longer than in earlier batches; the longest task's weight keeps the first ratios from ruling.
double Eta::stretch() const {
  const double weight = longest_expected_;
  return expected_ended_ + weight > 0 ? (took_ended_ + weight) / (expected_ended_ + weight) : 1;
}

// Of tasks without an expectation: of their group, or of all (-1) where none of the group has ended.
const LengthCurve& Eta::curve_of(GroupIndex group, std::span<const Running> running, Curves& made) const {
  if (group >= 0 && groups_[static_cast<std::size_t>(group)].ended.count() == 0) group = -1;
  if (const auto found = made.find(group); found != made.end()) return found->second;
  LengthCurve::Belief belief;
  if (group >= 0) {  // groups are taken to scatter alike
    const double weight = belief.weight + static_cast<double>(within_.seen);
    belief.scatter = std::sqrt((belief.weight * belief.scatter * belief.scatter + within_.spread) / weight);
  }
  std::vector<double> far;
  for (const Running& one : running)
    if (one.task < tasks_.size() && (group < 0 || tasks_[one.task].group == group)) far.push_back(seconds(one.done));
  std::sort(far.begin(), far.end());
  const Lengths& ended = group < 0 ? ended_ : groups_[static_cast<std::size_t>(group)].ended;
  return made.emplace(group, LengthCurve(ended, far, belief)).first->second;
}

// Relative to the usual task's, so that they say nothing of how fast the machine is.
void Eta::take_prices(std::span<const double> prices) {
  double sum = 0, weight = 0;
  const std::size_t count = std::min(prices.size(), groups_.size());
  for (std::size_t g = 0; g < count; ++g)
    if (prices[g] > 0)
      sum += prices[g] * static_cast<double>(groups_[g].tasks), weight += static_cast<double>(groups_[g].tasks);
  if (sum <= 0) return;
  for (std::size_t g = 0; g < count; ++g) groups_[g].price = prices[g] > 0 ? prices[g] * weight / sum : 1;
}

void Eta::observe(Nanos now, std::span<const Running> running, std::span<const double> prices) {
  const double at = seconds(now);
  if (begin_ < 0) begin_ = at;
  take_prices(prices);
  std::vector<double> done(groups_.size());
  for (std::size_t g = 0; g < groups_.size(); ++g) done[g] = groups_[g].succeeded_seconds;
  for (const Running& one : running)
    if (one.task < tasks_.size()) done[static_cast<std::size_t>(tasks_[one.task].group)] += seconds(one.done);
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    priced_ += groups_[g].price * (done[g] - groups_[g].seen_seconds);
    groups_[g].seen_seconds = done[g];
  }
  progress_.push_back({.at = at, .done = priced_});
  if (const auto found = estimate(running)) progress_.back().end = at + seconds(found->left);
  const double since = at - std::max(kShortestLook, (at - begin_) * kLook);
  while (progress_.size() > 2 && progress_[1].at <= since) progress_.pop_front();
}

std::optional<Eta::Rate> Eta::seen_rate() const {
  if (progress_.empty()) return std::nullopt;
  const Progress first = progress_.front(), last = progress_.back();
  const double time = last.at - first.at, done = last.done - first.done;
  if (time < kShortestLook || done <= 0) return std::nullopt;
  Rate rate{.mean = done / time};
  Progress before = first;
  double squares = 0, parts = 0;
  for (std::size_t part = 1; part <= kParts; ++part) {
    const double until = first.at + time * static_cast<double>(part) / static_cast<double>(kParts);
    const auto end = std::lower_bound(progress_.begin(), progress_.end(), until - 1e-6,
                                      [](const Progress& one, double instant) { return one.at < instant; });
    if (end == progress_.end() || end->at <= before.at) continue;
    const double relative = (end->done - before.done) / (end->at - before.at) / rate.mean - 1;
    squares += relative * relative, ++parts;
    before = *end;
  }
  rate.scatter = parts > 1 ? std::sqrt(squares / (parts - 1)) : 0;
  return rate;
}

// As it was revised in the time that is looked back on: like a walk whose steps go on.
double Eta::revised(double left) const {
  const auto known = std::find_if(progress_.begin(), progress_.end(), [](const Progress& one) { return one.end >= 0; });
  if (known == progress_.end() || left <= 0) return 0;
  const Progress& last = progress_.back();
  const double time = last.at - known->at;
  if (time < kShortestLook || last.end < 0) return 0;
  double most = 0;
  for (auto one = known; one != progress_.end(); ++one) most = std::max(most, std::abs(last.end - one->end));
  return std::min(1.0, kRevised * most / std::sqrt(left * time));
}

// All that has not ended, as if none of it had begun.
std::optional<Eta::Rest> Eta::unfinished(std::span<const Running> running, Curves& curves) const {
  Rest rest;
  double known = 0;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    const Group& group = groups_[g];
    known += group.price * group.expected_left * stretch();
    if (group.left == 0) continue;
    // The first to end are the shortest of those that run, and look like all of them.
    if (ended_.count() < (left_ > 1 ? kFewest : 1)) return std::nullopt;
    if (kMostRunning * ended_.count() < static_cast<std::int64_t>(running.size())) return std::nullopt;
    const LengthCurve& curve = curve_of(static_cast<GroupIndex>(g), running, curves);
    const double seen = static_cast<double>(group.ended.count()), left = static_cast<double>(group.left);
    rest.work += group.price * left * curve.mean();
    rest.variance += group.price * group.price * curve.variance() * (left + left * left / (seen + 1));
    if (left > static_cast<double>(running.size()))
      rest.last = std::max(rest.last, curve.left_at_most(0, kMostLonger) - 0.5 * curve.mean());
  }
  const double judged = static_cast<double>(judged_);
  rest.spread = (misses_ + kAssumedSpread * kAssumedSpread) / (judged + 1);
  rest.work += known;
  rest.variance += known * known * rest.spread * (1 / (judged + 1) + 1 / static_cast<double>(left_));
  return rest;
}

void Eta::count_running(std::span<const Running> running, Curves& curves, Rest& rest) const {
  // The last of so many is to end within the range, not any of them.
  const double most = std::pow(kMostLonger, 1 / static_cast<double>(running.size()));
  for (const Running& one : running) {
    if (one.task >= tasks_.size()) continue;
    const Task& task = tasks_[one.task];
    const double done = seconds(one.done), speed = std::max(kSlowest, one.speed);
    const double price = groups_[static_cast<std::size_t>(task.group)].price;
    double whole = task.expected * stretch(), remaining = 0, at_most = 0, at_least = 0, deviation = 0, counted = 0;
    if (task.expected >= 0) {
      const LengthLaw law{.usual = std::max(whole, kShortest), .scatter = std::sqrt(std::log1p(rest.spread))};
      remaining = std::max(whole - done, done * (1 - kNeverDone) / kNeverDone);
      at_most = std::max(remaining, law.left_at_most(done, kMostLonger));
      at_least = law.left_at_most(done, 1 - kMostLonger);
    } else {
      const LengthCurve& curve = curve_of(task.group, running, curves);
      whole = curve.mean(), remaining = curve.left(done), counted = curve.variance();
      at_most = curve.left_at_most(done, most), at_least = curve.left_at_least(done, kMostLonger);
      deviation = (curve.left_at_most(done, kMostLonger) - at_least) / (2 * kFourInFive);
    }
    rest.work += price * (remaining - whole);
    rest.variance += price * price * (deviation * deviation - counted);
    rest.run_work += price * remaining;
    rest.run_variance += price * price * deviation * deviation;
    if (deviation > 0) rest.doubtful += price * price * (remaining - at_least) * (remaining - at_least);
    rest.rate += price * speed;
    rest.speeds += speed;
    rest.longest = std::max(rest.longest, remaining / speed);
    rest.overdue = std::max(rest.overdue, at_most / speed);
    rest.soonest = std::max(rest.soonest, at_least / speed);
  }
  rest.variance = std::max(rest.variance, rest.run_variance);
  rest.work = std::max(rest.work, 0.0);
}

std::optional<Eta::Estimate> Eta::estimate(std::span<const Running> running) const {
  if (running.empty() || left_ <= 0) return std::nullopt;
  Curves curves;
  std::optional<Rest> rest = unfinished(running, curves);
  if (!rest) return std::nullopt;
  count_running(running, curves, *rest);
  if (rest->rate <= 0) return std::nullopt;
  const double count = static_cast<double>(running.size()), replaced = static_cast<double>(succeeded_) / count;
  double doubt = 0, scatter = 0, rate = rest->rate;
  if (const auto seen = seen_rate()) {
    const double believed = replaced / (1 + replaced), apart = std::log(seen->mean / rate);
    rate *= std::exp(believed * apart);
    doubt = std::abs(apart) * (1 - believed);
    scatter = seen->scatter;
  }
  const double shared = rest->work / rate;  // if the work were a fluid
  const double left = std::max(shared, rest->longest);
  const double unproven = kUnproven / (1 + replaced), again = revised(left);
  const double errors = kDrift * kDrift + scatter * scatter + unproven * unproven + doubt * doubt + again * again;
  const auto factor = [&](double variance) {
    return 1 + kFourInFive * std::sqrt(variance / std::max(1e-9, rest->work * rest->work) + errors);
  };
  // What runs is little beside much that waits; of little it is nearly all, and each may be nearly done.
  const double sure = rest->work - std::min(rest->run_work, std::sqrt(rest->doubtful));
  const double low = std::max(sure / rate / factor(rest->variance - rest->run_variance), rest->soonest);
  const double ragged = shared + rest->last * count / rest->speeds;  // the last ones begin when all the rest has
  const auto nanos = [](double value) { return static_cast<Nanos>(std::clamp(value, 0.0, kLongest) * 1e9); };
  return Estimate{.left = nanos(left),
                  .low = nanos(std::min(left / factor(rest->variance), low)),
                  .high = nanos(std::max({left * factor(rest->variance), rest->overdue, ragged}))};
}

}  // namespace headroom::scheduler
