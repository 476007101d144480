// SPDX-License-Identifier: Apache-2.0
#include "report/overview_json.h"

#include <algorithm>

#include "base/visible.h"
#include "report/json_values.h"

namespace headroom::report {

namespace {

std::string label_of(const Overview::Recording& recording) {
  const RecordingMeta& meta = recording.entry.summary->meta;
  if (!recording.label.empty()) return visible(recording.label);
  return meta.command.empty() ? visible("(" + meta.origin + ")") : typed_line(meta.command);
}

Json recording_json(const Overview::Recording& recording) {
  const ShelfEntry& entry = recording.entry;
  Json json{{"key", recording.key}, {"name", entry.name}};
  if (!entry.summary) {
    json.update({{"origin", ""},
                 {"command", Json::array()},
                 {"label", visible(entry.name)},
                 {"state", "unreadable"},
                 {"start_ns", nullptr},
                 {"duration_ns", nullptr},
                 {"bytes", entry.bytes},
                 {"gpus", nullptr},
                 {"problem", visible(entry.problem)}});
    return json;
  }
  const RecordingMeta& meta = entry.summary->meta;
  json.update({{"origin", meta.origin},
               {"command", meta.command},
               {"label", label_of(recording)},
               {"state", name(entry.summary->state)},
               {"start_ns", meta.start_realtime == 0 ? Json(nullptr) : Json(meta.start_realtime)},
               {"duration_ns", std::max<Nanos>(0, meta.end - meta.start)},
               {"bytes", entry.bytes},
               {"gpus", entry.summary->devices},
               {"problem", nullptr}});
  return json;
}

}  // namespace

std::string overview_json(const Overview& overview) {
  Json recordings = Json::array(), batches = Json::array(), studies = Json::array();
  for (const auto& recording : overview.recordings) recordings.push_back(recording_json(recording));
  for (const auto& batch : overview.batches)
    batches.push_back({{"key", batch.key},
                       {"path", batch.path},
                       {"name", batch.name},
                       {"running", batch.running},
                       {"recording", text_json(batch.recording)}});
  for (const auto& study : overview.studies)
    studies.push_back(
        {{"key", study.key}, {"path", study.path}, {"name", study.name}, {"problem", text_json(study.problem)}});
  return dump({{"schema", "headroom.overview/1"},
               {"version", overview.version},
               {"host", overview.host},
               {"now_ns", overview.now},
               {"recordings", std::move(recordings)},
               {"batches", std::move(batches)},
               {"studies", std::move(studies)}},
              -1);
}

std::string error_json(const Error& error) {
  return dump({{"schema", "headroom.error/1"}, {"what", error.what}, {"hint", text_json(error.hint)}}, -1);
}

}  // namespace headroom::report
