// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

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

// What is believed of how long a task takes: a log-logistic law, and that a few follow none but a very wide one. So
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
  // What is held of the scatter before these have shown theirs, and for how many lengths that counts.
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

}  // namespace headroom::scheduler
