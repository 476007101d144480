// SPDX-License-Identifier: Apache-2.0
#include "export/csv.h"

#include <vector>

#include "base/decimal.h"
#include "base/iso_time.h"
#include "model/entities.h"

namespace headroom {

namespace {

// RFC 4180: quoted where a comma, a quote or a line end would be misread.
std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

std::vector<Metric> metrics_of(const Recording& recording, std::optional<SourceKind> only) {
  std::vector<Metric> used;
  for (const auto& metric : metrics()) {
    bool found = false;
    for (std::size_t i = 0; i < recording.tracks.size() && !found; ++i)
      found = (!only || recording.sources[i].kind == *only) && recording.tracks[i].find(metric.id) != nullptr;
    if (found) used.push_back(metric.id);
  }
  return used;
}

// Index and name of the GPU that a source is, or belongs to, as two cells.
std::string gpu_cells(const Recording& recording, SourceId id) {
  for (int hops = 0; id >= 0 && hops < 2; ++hops) {
    const Source& source = recording.sources[static_cast<std::size_t>(id)];
    if (source.kind == SourceKind::kGpu) {
      const Device device = device_of(source);
      return fmt::format("{},{}", device.index, csv_field(device.name));
    }
    id = source.parent;
  }
  return ",";
}

Result<void> write_track(const Recording& recording, std::size_t source, const std::vector<Metric>& used,
                         BlockOutput& out) {
  const Track& track = recording.tracks[source];
  const RecordingMeta& meta = recording.meta;
  const std::string who =
      fmt::format(",{},{},{}", source_kind_name(recording.sources[source].kind),
                  csv_field(recording.sources[source].key), gpu_cells(recording, static_cast<SourceId>(source)));
  std::vector<const Column*> columns;
  for (const Metric metric : used) columns.push_back(track.find(metric));
  for (std::size_t row = 0; row < track.at.size(); ++row) {
    const Nanos at = track.at[row];
    const std::string time = meta.start_realtime == 0 ? "" : iso_time(meta.start_realtime + (at - meta.start));
    out.text() += fmt::format("{},{}{}", at, time, who);
    for (const Column* column : columns) {
      out.text() += ',';
      if (column == nullptr) continue;
      if (const auto value = column->at(row)) out.text() += decimal(*value, info(column->metric).exp10);
    }
    out.text() += '\n';
    HR_TRYV(out.line_done());
  }
  return {};
}

}  // namespace

Result<void> write_csv(const Recording& recording, std::optional<SourceKind> only, const Output& output) {
  const auto used = metrics_of(recording, only);
  BlockOutput out(output);
  out.text() = "at_ns,time,source,key,gpu_index,gpu_name";
  for (const Metric metric : used) out.text() += fmt::format(",{}", info(metric).name);
  out.text() += '\n';
  for (std::size_t i = 0; i < recording.sources.size(); ++i)
    if (!only || recording.sources[i].kind == *only) HR_TRYV(write_track(recording, i, used, out));
  return out.flush();
}

}  // namespace headroom
