// SPDX-License-Identifier: Apache-2.0
// Any bytes are a recording with rows in order of time and columns of equal length, or an error that says something.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/result.h"
#include "import/import.h"

namespace {

void check(const headroom::Result<headroom::Recording>& result) {
  if (!result) {
    HR_CHECK(!result.error().what.empty(), "an error without words");
    return;
  }
  HR_CHECK(!result->tracks.empty() && result->tracks.size() == result->sources.size(), "a recording of nothing");
  const bool trace = result->meta.origin == "import:kineto";  // of events, and not of readings at an interval
  HR_CHECK(result->meta.start < result->meta.end && (result->meta.interval > 0) != trace, "a recording without time");
  for (const auto& track : result->tracks) {
    if (trace && track.at.empty()) continue;
    HR_CHECK(!track.at.empty(), "a track without rows");
    HR_CHECK(track.at.front() > result->meta.start && track.at.back() <= result->meta.end, "a row outside");
    HR_CHECK(std::adjacent_find(track.at.begin(), track.at.end(), std::greater_equal<>()) == track.at.end(),
             "rows out of order");
    for (const auto& column : track.columns) {
      HR_CHECK(column.values.size() == track.at.size(), "a column of another length");
      HR_CHECK(column.absent.empty() || column.absent.size() == track.at.size(), "absences of another length");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  headroom::ImportOptions options;
  check(headroom::import_log("log", text, options));
  options.format = headroom::LogFormat::kMonitorCsv;
  options.interval = headroom::kSecond;
  check(headroom::import_log("log", text, options));
  options.format = headroom::LogFormat::kDmon;
  options.columns = "Date Time gpu pwr sm mem";
  check(headroom::import_log("log", text, options));
  return 0;
}
