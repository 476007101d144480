// SPDX-License-Identifier: Apache-2.0
#include "probe/student.h"

#include <cmath>
#include <numbers>

namespace headroom::probe {

namespace {

// The probability within -t and t, as finite sums: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3
// (odd degrees) and 26.7.4 (even).
double within(double t, int degrees) {
  const double angle = std::atan(t / std::sqrt(static_cast<double>(degrees)));
  const double sine = std::sin(angle), cosine = std::cos(angle);
  const bool odd = degrees % 2 == 1;
  double term = odd ? cosine : 1, sum = degrees == 1 ? 0 : term;
  for (int k = odd ? 3 : 2; k <= degrees - 2; k += 2) {
    term *= cosine * cosine * (k - 1) / k;
    sum += term;
  }
  return odd ? 2 / std::numbers::pi * (angle + sine * sum) : sine * sum;
}

}  // namespace

double student_t(int degrees, double outside) {
  double low = 0, high = 1;
  while (within(high, degrees) < 1 - outside && high < 1e12) high *= 2;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (within(middle, degrees) < 1 - outside ? low : high) = middle;
  }
  return high;
}

}  // namespace headroom::probe
