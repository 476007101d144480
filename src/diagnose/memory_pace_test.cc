// SPDX-License-Identifier: Apache-2.0
// Memory that grows, of which there are few readings.
#include <gmock/gmock.h>

#include <functional>

#include "diagnose/explain.h"
#include "diagnose/testing.h"

namespace headroom {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// Five of one a second: too few for what grew in each part of the time.
TEST(MemoryPace, FewReadingsThatGrowAlikeBesideKernelsAreExtrapolated) {
  const auto log = [](double length, double util, const std::function<double(double)>& gigabytes) {
    return everything(explain(log_of_gpus({[&](double t) {
                                            return LogRow{util, {}, {}, 1e9 * gigabytes(t)};
                                          }},
                                          length)));
  };
  const auto steady = [](double t) { return 36 + 2 * t; };
  EXPECT_THAT(log(5, 0.9, steady), HasSubstr(", and 1907 MiB more each second: full in 2.8 s at this pace"));
  EXPECT_THAT(log(6, 0.9, steady), HasSubstr(" more each second: full in "));
  EXPECT_THAT(log(4, 0.9, steady), Not(HasSubstr("more each second"))) << "four readings";
  EXPECT_THAT(log(6, 0, steady), Not(HasSubstr("more each second"))) << "what loads comes to its end";
  for (const double still : {3.0, 5.0, 6.0})
    EXPECT_THAT(log(6, 0.9, [&](double t) { return 36 + 2 * t - (t >= still ? 2 : 0); }),
                Not(HasSubstr("more each second")))
        << "it stood still before " << still;
  EXPECT_THAT(log(6, 0.9, [](double t) { return 36 + (t < 5 ? 0.5 * t : 2 * t); }), Not(HasSubstr("more each second")))
      << "in jumps";
}

}  // namespace
}  // namespace headroom
