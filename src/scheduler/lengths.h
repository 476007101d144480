// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <map>
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

// The estimate of Kaplan and Meier: each that ended also stands for those that ran shorter so far than it took. What
// still runs though it runs longer than all that ended is expected to go on by as much as lengths scatter.
class LengthCurve {
 public:
  LengthCurve() = default;
  LengthCurve(const Lengths& ended, std::span<const double> running);  // how far each is, rising

  [[nodiscard]] double mean() const { return mean_; }
  [[nodiscard]] double variance() const { return variance_; }
  [[nodiscard]] double left(double done) const;                        // expected of one that is so far
  [[nodiscard]] double left_at_most(double done, double share) const;  // in such a share of cases
 private:
  struct Point {
    double seconds = 0, share = 0;
  };
  std::vector<Point> points_;  // rising
  double mean_ = 0, variance_ = 0;
  double scatter_ = 0;  // of the logarithms
};

}  // namespace headroom::scheduler
