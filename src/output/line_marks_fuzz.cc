// SPDX-License-Identifier: Apache-2.0
// The first byte says which patterns a user gave; the rest is the output of a job.
#include "output/line_marks.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "output/line_cutter.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace headroom;
  using namespace headroom::output;
  if (size == 0) return 0;
  std::vector<LogPattern> patterns;
  if ((data[0] & 1) != 0) patterns.push_back(*log_pattern(LogPattern::Kind::kStep, "", "step (\\S+)"));
  if ((data[0] & 2) != 0) patterns.push_back(*parse_log_option(LogPattern::Kind::kPhase, "a=^Epoch"));
  if ((data[0] & 4) != 0) patterns.push_back(*parse_log_option(LogPattern::Kind::kMetric, "loss=loss[:=] *(\\S+)"));
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  LineMarks marks(patterns, (data[0] & 8) != 0 ? LineMarks::Seen::kFromMidway : LineMarks::Seen::kFromTheBegin);
  LineCutter cutter;
  const auto take = [&](std::string_view line, Nanos at) {
    HR_CHECK(!line.empty() && line.size() <= kLongestLine, "a line is neither empty nor long");
    for (const Mark& mark : marks.take(line, at)) {
      HR_CHECK(mark.at == at, "a mark is of its line");
      HR_CHECK(mark.kind != Mark::Kind::kStep || mark.count > 0, "steps are done, not undone");
      HR_CHECK(std::isfinite(mark.value), "what is no number is no value");
    }
  };
  Nanos at = 0;
  for (std::size_t begin = 0; begin < text.size(); begin += 61) {  // in pieces, as it comes
    cutter.take(text.substr(begin, 61), at += kSecond / 10, take);
    cutter.settle(at + (begin % 2 == 0 ? kSecond : 0), take);
  }
  return 0;
}
