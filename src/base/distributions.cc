// SPDX-License-Identifier: Apache-2.0
#include "base/distributions.h"

#include <algorithm>
#include <boost/math/distributions/hypergeometric.hpp>
#include <boost/math/distributions/students_t.hpp>

namespace headroom {

double student_t(std::int64_t degrees, double outside) {
  const boost::math::students_t distribution(static_cast<double>(std::max<std::int64_t>(1, degrees)));
  return quantile(complement(distribution, outside / 2));
}

double drawn_by_chance(std::int64_t least, std::int64_t drawn, std::int64_t marked, std::int64_t all) {
  if (least <= std::max<std::int64_t>(0, drawn + marked - all)) return 1;  // so many are in any case
  if (least > std::min(drawn, marked)) return 0;
  const boost::math::hypergeometric distribution(static_cast<unsigned>(marked), static_cast<unsigned>(drawn),
                                                 static_cast<unsigned>(all));
  return cdf(complement(distribution, static_cast<unsigned>(least - 1)));
}

}  // namespace headroom
