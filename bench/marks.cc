// SPDX-License-Identifier: Apache-2.0
// What marks cost the program that makes them: bench_marks PAIRS prints, as JSON, the ns of a phase's begin and end
// (median of nine rounds, and each), of a step, and of the first mark.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/time.h"
#include "inject/headroom.h"

namespace {

template <class Work>
double ns_each(long times, Work work) {
  const headroom::Nanos before = headroom::monotonic_now();
  for (long i = 0; i < times; ++i) work();
  return static_cast<double>(headroom::monotonic_now() - before) / static_cast<double>(times);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: bench_marks PAIRS\n"), 2;
  const long pairs = std::atol(argv[1]);
  const double first = ns_each(1, [] { headroom_phase_begin("train"); });
  std::vector<double> rounds;
  std::string each;
  for (int i = 0; i < 9; ++i) {
    rounds.push_back(ns_each(pairs, [] {
      headroom_phase_begin("forward");
      headroom_phase_end("forward");
    }));
    char text[32];
    std::snprintf(text, sizeof text, "%s%.2f", i > 0 ? ", " : "", rounds.back());
    each += text;
  }
  const double step = ns_each(pairs, [] { headroom_step(32); });
  std::nth_element(rounds.begin(), rounds.begin() + 4, rounds.end());
  std::printf("{\"pair_ns\": %.2f, \"pairs_ns\": [%s], \"step_ns\": %.2f, \"first_ns\": %.0f}\n", rounds[4],
              each.c_str(), step, first);
  return 0;
}
