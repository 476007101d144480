// SPDX-License-Identifier: Apache-2.0
#include "compare/side.h"

#include <algorithm>

namespace headroom::compare {

void add(Figures& figures, const std::string& name, double value) {
  const auto found = std::find_if(figures.begin(), figures.end(), [&](const auto& one) { return one.first == name; });
  if (found != figures.end())
    found->second += value;
  else
    figures.emplace_back(name, value);
}

}  // namespace headroom::compare
