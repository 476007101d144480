// SPDX-License-Identifier: Apache-2.0
#include "report/recordings.h"

#include <algorithm>

#include "base/human.h"
#include "base/iso_time.h"
#include "base/json.h"
#include "base/strings.h"
#include "model/entities.h"
#include "report/json_values.h"

namespace headroom::report {

namespace {

Json entry_json(const ShelfEntry& entry) {
  Json json{{"path", entry.path}, {"name", entry.name}, {"bytes", entry.bytes}};
  if (!entry.summary) {
    json["problem"] = entry.problem;
    return json;
  }
  const RecordingMeta& meta = entry.summary->meta;
  json["state"] = name(entry.summary->state);
  json["id"] = meta.id;
  json["origin"] = meta.origin;
  json["start"] = meta.start_realtime == 0 ? Json(nullptr) : Json(iso_time(meta.start_realtime));
  json["start_ns"] = meta.start_realtime == 0 ? Json(nullptr) : Json(meta.start_realtime);
  json["duration_ns"] = std::max<Nanos>(0, meta.end - meta.start);
  json["command"] = meta.command;
  json["devices"] = entry.summary->devices;
  json["stop_reason"] = meta.stop_reason;
  json["exit_code"] = optional_json(meta.exit_code);
  json["lost"] = entry.summary->losses;
  return json;
}

Json names_json(const std::vector<ShelfEntry>& entries) {
  Json list = Json::array();
  for (const ShelfEntry& entry : entries) list.push_back(entry.name);
  return list;
}

}  // namespace

std::string to_json(const Recorded& recorded) {
  const nlohmann::json answer{{"schema", "headroom.record/1"},    {"path", recorded.path},
                              {"duration_ns", recorded.duration}, {"gpus", recorded.gpus},
                              {"processes", recorded.processes},  {"stop_reason", recorded.stop_reason}};
  return visible_json(json_text(answer)) + "\n";
}

std::string what_is_recorded(std::size_t gpus, const std::vector<std::int64_t>& processes) {
  std::vector<std::string> parts;
  if (gpus > 0) parts.push_back(count_of(gpus, "GPU"));
  if (!processes.empty()) parts.push_back(count_of(processes.size(), "process tree"));
  return parts.empty() ? "nothing yet" : join(parts, " and ");
}

std::string to_json(const ShelfListing& listing) {
  Json json{{"schema", "headroom.recordings/1"}, {"directory", listing.directory}};
  json["network_filesystem"] = listing.network_filesystem;
  json["bytes"] = bytes_of(listing.entries);
  json["recordings"] = Json::array();
  for (const ShelfEntry& entry : listing.entries) json["recordings"].push_back(entry_json(entry));
  return dump(json);
}

std::string to_json(const PruneReport& report, DryRun dry_run) {
  return dump({{"schema", "headroom.recordings-prune/1"},
               {"dry_run", dry_run == DryRun::kYes},
               {"removed", names_json(report.removed)},
               {"removed_bytes", bytes_of(report.removed)},
               {"kept", names_json(report.kept)},
               {"kept_bytes", bytes_of(report.kept)},
               {"problems", report.problems}});
}

std::size_t gpu_rows(const PackedRecording& packed) {
  std::size_t rows = 0;
  for (const SourceId id : packed.recording.all(SourceKind::kGpu)) rows += packed.rows_of(id);
  return rows;
}

std::string import_to_json(const PackedRecording& packed, const std::string& path) {
  const Recording& recording = packed.recording;
  Json json{{"schema", "headroom.import/1"},         {"recording", path},
            {"origin", recording.meta.origin},       {"rows", gpu_rows(packed)},
            {"start_ns", recording.meta.start},      {"end_ns", recording.meta.end},
            {"interval_ns", recording.meta.interval}};
  json["devices"] = Json::array();
  for (const SourceId id : recording.all(SourceKind::kGpu)) {
    const Device device = device_of(recording.sources[static_cast<std::size_t>(id)]);
    json["devices"].push_back(
        {{"uuid", device.uuid}, {"index", device.index}, {"name", device.name}, {"rows", packed.rows_of(id)}});
  }
  json["losses"] = losses_json(recording.losses);
  return dump(json);
}

}  // namespace headroom::report
