// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "scheduler/planner.h"

// How long tasks take, from those that have ended and from those that still run: the short ones end first, and who
// looked at these alone would expect too little of the others.
namespace headroom::scheduler {

// The lengths of tasks that ended, in bins of a few percent: bounded, however many there are.
class Lengths {
 public:
  void add(double seconds);
  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] double spread() const;  // sum of the squares of what the logarithms are off their mean

 private:
  friend class LengthCurve;
  struct Bin {
    std::int64_t count = 0;
    double seconds = 0;
  };
  std::map<int, Bin> bins_;
  std::int64_t count_ = 0;
  double logs_ = 0, squared_logs_ = 0;
};

// The assumed distribution of tasks' lengths: log-logistic, and for a few of them a very wide one. So
// who has outlived the usual has much before it, in proportion to what it has behind it.
struct LengthLaw {
  double usual = 1, scatter = 0.5;  // seconds; the standard deviation of the logarithms
  double odd = 0;                   // share of tasks that are unlike the others
  // How much more a task takes that has run for `done`, in such a `share` of cases.
  [[nodiscard]] double left_at_most(double done, double share) const;
};

// The estimate of Kaplan and Meier: each that ended also stands for those that ran shorter so far than it took. What
// still runs though it runs longer than all that ended is expected to go on by as much as lengths scatter. How far a
// task may go on at most and at least is asked of a law, too, of which few that ended leave much open.
class LengthCurve {
 public:
  // The assumed scatter before these lengths have shown theirs, and for how many lengths it counts.
  struct Belief {
    double scatter = 0.4, weight = 2;
  };
  LengthCurve() = default;
  LengthCurve(const Lengths& ended, std::span<const double> running);  // how far each is, rising
  LengthCurve(const Lengths& ended, std::span<const double> running, Belief belief);

  [[nodiscard]] double mean() const { return mean_; }
  [[nodiscard]] double variance() const { return variance_; }
  [[nodiscard]] double left(double done) const;                         // expected of one that is so far
  [[nodiscard]] double left_at_most(double done, double share) const;   // in such a share of cases
  [[nodiscard]] double left_at_least(double done, double share) const;  // likewise
 private:
  struct Point {
    double seconds = 0, share = 0;
  };
  void believe(const Lengths& ended, std::span<const double> running, Belief belief);
  [[nodiscard]] std::optional<double> seen_left(double done, double share) const;

  std::vector<Point> points_;  // rising
  double mean_ = 0, variance_ = 0;
  LengthLaw law_;
};

// When a batch will be done, from what its tasks took in earlier batches and in this one, all counted as if each had
// its GPU to itself, and from how much slower they are now. Pure.

class Eta {
 public:
  explicit Eta(std::span<const PlannedTask> tasks) { add(tasks); }  // of the batch; ended ones count for nothing
  void add(std::span<const PlannedTask> tasks);                     // further ones

  // `took`: what the attempt that succeeded would have taken alone; absent for a task that ended otherwise.
  void ended(TaskIndex task, std::optional<Nanos> took);

  struct Running {
    TaskIndex task = 0;
    Nanos done = 0;    // of its time alone
    double speed = 1;  // now, of alone
  };
  // How far everything is at this time: shows the rate at which work is really done. `prices`, of each group: how
  // much of the machine a second of its work takes (Planner::prices()); a batch does more seconds of cheap work in
  // the same time. Empty, or 0: not known.
  void observe(Nanos now, std::span<const Running> running, std::span<const double> prices = {});
  // Left is an expectation, low to high an interval of about four in five, if tasks go on as they have.
  struct Estimate {
    Nanos left = 0, low = 0, high = 0;
  };
  // Absent where nothing runs, or nothing is known of how long tasks take: no history, and none has ended.
  [[nodiscard]] std::optional<Estimate> estimate(std::span<const Running> running) const;

 private:
  struct Group {
    std::int64_t left = 0;   // that have no expectation of their own
    std::int64_t tasks = 0;  // ever
    Lengths ended;
    double succeeded_seconds = 0, seen_seconds = 0;  // alone; until now, and with what ran, at the last observation
    double expected_left = 0;                        // seconds, of those with an expectation
    double price = 1;
  };
  struct Task {
    GroupIndex group = 0;
    double expected = -1;  // seconds alone; < 0: not known
    bool ended = false;
  };
  struct Progress {
    double at = 0, done = 0;  // seconds; work at its price, of what has succeeded or runs
    double end = -1;          // when the end was expected then; < 0: not known
  };
  struct Rate {
    double mean = 0, scatter = 0;  // of the work per second, lately; relative
  };
  struct Rest {
    double work = 0, variance = 0;  // at its price
    double last = 0;                // seconds that the longest of what waits is likely to take beyond half a usual one
    double spread = 0;              // relative variance of a task around its expectation
    double rate = 0, speeds = 0;    // of what runs, priced and not
    double longest = 0;             // seconds until what runs has ended: nothing ends before …
    double overdue = 0;             // … and until it likely has …
    double soonest = 0;             // … and at least
    // Of `work` and `variance`, what runs; and the squares of what its work may be less.
    double run_work = 0, run_variance = 0, doubtful = 0;
  };
  [[nodiscard]] std::optional<Rate> seen_rate() const;
  [[nodiscard]] double revised(double left) const;  // by how much the expectation may still change, relative
  [[nodiscard]] double stretch() const;
  using Curves = std::map<GroupIndex, LengthCurve>;  // made for one estimate; -1: of all groups
  [[nodiscard]] const LengthCurve& curve_of(GroupIndex group, std::span<const Running> running, Curves& made) const;
  [[nodiscard]] std::optional<Rest> unfinished(std::span<const Running> running, Curves& curves) const;
  void count_running(std::span<const Running> running, Curves& curves, Rest& rest) const;
  void take_prices(std::span<const double> prices);

  std::vector<Task> tasks_;
  std::deque<Progress> progress_;  // of the last third of the time
  double begin_ = -1, priced_ = 0;
  Lengths ended_;  // of all groups
  struct {
    std::int64_t seen = 0;  // tasks that ended after another one of their group
    double spread = 0;
  } within_;  // groups: by how much tasks that are alike differ
  std::vector<Group> groups_;
  std::int64_t left_ = 0;                       // tasks
  double expected_ended_ = 0, took_ended_ = 0;  // of those with an expectation
  double longest_expected_ = 0;                 // of any task: weighs the first ratios
  double misses_ = 0;                           // squared relative errors of the guesses
  std::int64_t succeeded_ = 0;                  // since the batch began
  std::int64_t judged_ = 0;                     // guesses that met their truth
};

}  // namespace headroom::scheduler
