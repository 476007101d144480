// SPDX-License-Identifier: Apache-2.0
#include "run/step_counter.h"

#include "base/strings.h"

namespace headroom::run {

namespace {
constexpr double kMostSteps = 1e15;  // more is no count, as "nan" is none
}

void StepCounter::take(std::string_view text) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find_first_of("\r\n", begin), text.size());  // progress bars return
    if (end > begin) take_line(text.substr(begin, end - begin));
    begin = end + 1;
  }
}

void StepCounter::take_line(std::string_view line) {
  std::cmatch match;
  if (line.size() > kLongestLogLine) return;
  if (!std::regex_search(line.data(), line.data() + line.size(), match, *pattern_)) return;
  seen_ = true;
  const auto number =
      parse_number<double>(std::string_view(match[1].first, static_cast<std::size_t>(match[1].length())));
  if (!number || !(*number >= 0 && *number <= kMostSteps)) {
    now_ += 1;
    return;
  }
  if (*number < now_) before_ += now_;
  now_ = *number;
}

}  // namespace headroom::run
