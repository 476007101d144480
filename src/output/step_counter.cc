// SPDX-License-Identifier: Apache-2.0
#include "output/step_counter.h"

#include "base/strings.h"

namespace headroom::output {

namespace {
constexpr double kMostCounted = 1e15;  // more is no count, as "nan" is none
}

void StepCounter::take(std::string_view text) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find_first_of("\r\n", begin), text.size());  // progress bars return
    if (end > begin) take_line(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

void StepCounter::take_line(std::string_view line) {
  const auto found = pattern_.find(line);
  if (!found) return;
  seen_ = true;
  const auto number = parse_number<double>(*found);
  if (!number || !(*number >= 0 && *number <= kMostCounted)) {
    now_ += 1;
    return;
  }
  if (*number < now_) before_ += now_;
  now_ = *number;
}

}  // namespace headroom::output
