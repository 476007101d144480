// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "model/study.h"

namespace headroom::tune {

// A parameter over trials. Categories whose words are all numbers count as numbers.
struct ParameterColumn {
  std::string name;
  bool number = true;
  std::vector<std::string> words;                      // categories
  std::vector<std::pair<std::size_t, double>> values;  // index into Study::trials, number or index into `words`
};

// By first appearance in Study::spaces. Values that are out of their space are left out.
[[nodiscard]] std::vector<ParameterColumn> parameter_columns(const Study& study);

}  // namespace headroom::tune
