// SPDX-License-Identifier: Apache-2.0
#include "import/row_course.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "import/log_order.h"

namespace headroom {

RowsOfOneTime course_of(const std::vector<std::int64_t>& values, std::size_t rows_of_a_time) {
  constexpr std::size_t kFewestTimes = 10, kFewestChanges = 10;
  const std::size_t n = rows_of_a_time;
  if (n < 2 || values.size() < kFewestTimes * n) return RowsOfOneTime::kUnknown;
  double within = 0, between = 0, across = 0;  // changes from row to row, at a time or to the next; to the next's row
  std::size_t changes = 0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    const auto change = static_cast<double>(std::abs(values[i] - values[i - 1]));
    (i % n != 0 ? within : between) += change;
    if (i % n != 0 && change > 0) ++changes;
    if (i >= n) across += static_cast<double>(std::abs(values[i] - values[i - n]));
  }
  if (changes < kFewestChanges) return RowsOfOneTime::kUnknown;
  const auto rows = static_cast<double>(values.size()), of_a_time = static_cast<double>(n);
  const double along = (within + between) / (rows - 1);
  across /= rows - of_a_time;
  if (2 * across < along) return RowsOfOneTime::kGpus;
  const double times = rows / of_a_time;
  const bool steady = between / (times - 1) <= 2 * within / (rows - times);  // no leap from one time to the next
  constexpr double kOfStraight = 0.6, kLeast = 1.6;  // a straight course changes by n steps from time to time
  return steady && across >= std::max(kOfStraight * of_a_time, kLeast) * along ? RowsOfOneTime::kSamples
                                                                               : RowsOfOneTime::kUnknown;
}

RowsOfOneTime course_of(const GpuLog& gpu, std::size_t skipped, std::size_t rows_of_a_time) {
  bool samples = false;
  for (const PackedColumn& column : gpu.columns) {
    if (column.values.size() <= skipped) continue;
    const auto course = course_of(
        std::vector(column.values.begin() + static_cast<std::ptrdiff_t>(skipped), column.values.end()), rows_of_a_time);
    if (course == RowsOfOneTime::kGpus) return course;
    samples = samples || course == RowsOfOneTime::kSamples;
  }
  return samples ? RowsOfOneTime::kSamples : RowsOfOneTime::kUnknown;
}

bool fills(Nanos interval, std::size_t rows_of_a_time, Nanos spacing) {
  constexpr Nanos kNear = 10;  // a tenth
  return interval > 0 && std::abs(interval * static_cast<Nanos>(rows_of_a_time) - spacing) <= spacing / kNear;
}

namespace {

// The cell of a row, at the end of a column; `from`: nullptr where its GPU has no such column.
void append_cell(PackedColumn& to, const PackedColumn* from, std::size_t row) {
  constexpr auto kMissing = static_cast<std::uint8_t>(Absent::kNotSampled);
  to.values.push_back(from && from->has(row) ? from->values[row] : 0);
  to.absent.push_back(!from ? kMissing : from->absent.empty() ? std::uint8_t{0} : from->absent[row]);
}

// The rows of all as those of one, in the order of the log; those of a time are spread over the time to the next.
GpuLog as_one(std::vector<GpuLog> gpus) {
  for (GpuLog& gpu : gpus) fill_columns(gpu);
  const PackedNumbers& times = gpus[0].at;
  const Nanos spacing = median_spacing(times);
  GpuLog one = gpus[0];
  one.at.clear(), one.lines.clear(), one.free_memory = {};
  for (PackedColumn& column : one.columns) column.values.clear(), column.absent.clear();
  for (std::size_t i = 0; i < times.size(); ++i) {
    const Nanos room = i + 1 < times.size() ? std::clamp<Nanos>(times[i + 1] - times[i], 0, spacing) : spacing;
    for (std::size_t g = 0; g < gpus.size() && i < gpus[g].at.size(); ++g) {
      GpuLog& from = gpus[g];
      one.at.push_back(times[i] + room / static_cast<Nanos>(gpus.size()) * static_cast<Nanos>(g));
      one.lines.push_back(from.lines[i]);
      if (i < from.free_memory.values.size()) append_cell(one.free_memory, &from.free_memory, i);
      for (PackedColumn& column : one.columns) append_cell(column, from.column(column.metric), i);
    }
  }
  return one;
}

}  // namespace

void settle_rows_below_times(LogData& data, Nanos interval) {
  if (!data.by_order) return;
  const auto tell = [&](std::string words) {
    data.losses.add(LossKind::kNoGpuColumn, 1, [&] { return "the rows below each time are taken as " + words; });
  };
  GpuLog one = as_one(data.gpus);
  const bool told = fills(interval, data.gpus.size(), median_spacing(data.gpus[0].at));
  if (!told && course_of(one, 0, data.gpus.size()) != RowsOfOneTime::kSamples)
    return tell("one of each GPU, in order: no column says which (of one GPU, --log-interval says how far apart)");
  tell(told ? "samples of one GPU, as far apart as --log-interval says"
            : "samples of one GPU, over the time to the next: their readings go on from row to row");
  data.gpus.clear();
  data.gpus.push_back(std::move(one));
  data.names_gpus = false;
  for (Event& event : data.events)
    if (event.source != kNoSource) event.source = 0;
}

}  // namespace headroom
