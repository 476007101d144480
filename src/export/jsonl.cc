// SPDX-License-Identifier: Apache-2.0
#include "export/jsonl.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/decimal.h"
#include "base/json.h"

namespace headroom {

namespace {

using Json = nlohmann::ordered_json;

Json attrs_json(const Attrs& attrs) {
  Json json = Json::object();
  for (const auto& [name, value] : attrs) json[name] = value;
  return json;
}

// What is empty or zero is left out; reading gives it back.
Json meta_json(const RecordingMeta& meta) {
  Json json = Json::object();
  const auto text = [&](const char* name, const std::string& value) {
    if (!value.empty()) json[name] = value;
  };
  const auto number = [&](const char* name, std::int64_t value) {
    if (value != 0) json[name] = value;
  };
  text("id", meta.id);
  text("origin", meta.origin);
  text("writer", meta.writer);
  text("host", meta.host);
  text("boot_id", meta.boot_id);
  text("stop_reason", meta.stop_reason);
  if (!meta.command.empty()) json["command"] = meta.command;
  text("cwd", meta.cwd);
  text("tiers", meta.tiers);
  for (const auto& tier : meta.missing_tiers)
    json["missing_tiers"].push_back({{"tier", std::string(1, tier.tier)}, {"why", tier.why}});
  number("start_ns", meta.start);
  number("end_ns", meta.end);
  number("start_realtime_ns", meta.start_realtime);
  number("interval_ns", meta.interval);
  if (meta.job_pid) json["job_pid"] = *meta.job_pid;
  if (meta.exit_code) json["exit_code"] = *meta.exit_code;
  if (!meta.extra.empty()) json["extra"] = attrs_json(meta.extra);
  return json;
}

Json source_json(const Source& source, std::size_t id) {
  Json json{{"source", id}, {"kind", source_kind_name(source.kind)}, {"key", source.key}};
  if (source.parent != kNoSource) json["parent"] = source.parent;
  if (!source.attrs.empty()) json["attrs"] = attrs_json(source.attrs);
  return json;
}

Json event_json(const Event& event) {
  Json json{{"event", event.kind}, {"at", event.at}};
  if (event.end) json["end"] = *event.end;
  if (event.source != kNoSource) json["source"] = event.source;
  if (!event.attrs.empty()) json["attrs"] = attrs_json(event.attrs);
  return json;
}

Json loss_json(const Loss& loss) {
  Json json{{"loss", loss.what}, {"count", loss.count}, {"severity", severity_name(loss.severity)}};
  if (!loss.detail.empty()) json["detail"] = loss.detail;
  for (const LossPlace& place : loss.places) {
    Json one = Json::array({place.begin, place.end});
    if (place.source != kNoSource) one.push_back(place.source);
    json["places"].push_back(std::move(one));
  }
  return json;
}

// Writes the rows of one track. Cells that were not sampled are left out, unless leaving them out would change the
// order in which the columns first appear, or hide a column that has no reading at all.
class RowWriter {
 public:
  RowWriter(const Track& track, std::size_t source) : track_(track), source_(source) {
    seen_.resize(track.columns.size(), false);
  }
  [[nodiscard]] bool done() const { return next_ == track_.at.size(); }
  [[nodiscard]] Nanos at() const { return track_.at[next_]; }
  void write(std::string& out) {
    fmt::format_to(std::back_inserter(out), "{{\"row\":[{},{},{{", source_, at());
    const std::size_t announced = columns_to_announce();
    bool first = true;
    for (std::size_t i = 0; i < track_.columns.size(); ++i) {
      const Column& column = track_.columns[i];
      const bool sampled = code(column) != static_cast<std::uint8_t>(Absent::kNotSampled);
      if (!sampled && (seen_[i] || i >= announced)) continue;
      seen_[i] = true;
      put_cell(column, first, out);
      first = false;
    }
    out += "}]}\n";
    ++next_;
  }

 private:
  [[nodiscard]] std::uint8_t code(const Column& column) const {
    return column.absent.empty() ? std::uint8_t{0} : column.absent[next_];
  }
  // Columns before this one must be named in this row if they were not before.
  [[nodiscard]] std::size_t columns_to_announce() const {
    if (next_ + 1 == track_.at.size()) return track_.columns.size();
    for (std::size_t i = track_.columns.size(); i-- > 0;)
      if (!seen_[i] && code(track_.columns[i]) != static_cast<std::uint8_t>(Absent::kNotSampled)) return i;
    return 0;
  }
  void put_cell(const Column& column, bool first, std::string& out) const {
    const MetricInfo& metric = info(column.metric);
    if (!first) out += ',';
    fmt::format_to(std::back_inserter(out), "\"{}\":", metric.name);
    const auto value = column.at(next_);
    if (value)
      out += decimal(*value, metric.exp10);
    else
      fmt::format_to(std::back_inserter(out), "\"{}\"", absent_name(value.error()));
  }

  const Track& track_;
  std::size_t source_;
  std::size_t next_ = 0;
  std::vector<bool> seen_;
};

// Rows of all tracks and the events, by time; an event stands before the rows of its instant.
Result<void> write_timeline(const Recording& recording, BlockOutput& out) {
  std::vector<RowWriter> writers;
  for (std::size_t i = 0; i < recording.tracks.size(); ++i) writers.emplace_back(recording.tracks[i], i);
  std::size_t event = 0;
  for (;;) {
    Nanos earliest = std::numeric_limits<Nanos>::max();
    bool rows = false;
    for (const auto& writer : writers) {
      if (writer.done()) continue;
      earliest = std::min(earliest, writer.at());
      rows = true;
    }
    for (; event < recording.events.size() && (!rows || recording.events[event].at <= earliest); ++event) {
      out.text() += json_text(event_json(recording.events[event])) + "\n";
      HR_TRYV(out.line_done());
    }
    if (!rows) return {};
    for (auto& writer : writers) {
      while (!writer.done() && writer.at() == earliest) {
        writer.write(out.text());
        HR_TRYV(out.line_done());
      }
    }
  }
}

// The dictionary, then the rows that use it.
Result<void> write_lists(const Recording& recording, BlockOutput& out) {
  const auto line = [&](const Json& json) {
    out.text() += json_text(json) + "\n";
    return out.line_done();
  };
  for (std::size_t i = 0; i < recording.texts.size(); ++i) HR_TRYV(line({{"text", i}, {"is", recording.texts[i]}}));
  for (std::size_t i = 0; i < recording.lists.size(); ++i) HR_TRYV(line({{"list", i}, {"texts", recording.lists[i]}}));
  for (std::size_t i = 0; i < recording.tracks.size(); ++i)
    for (const ListRow& row : recording.tracks[i].lists) {
      Json json = Json::array({i, row.at, row.list});
      if (row.value != 0) json.push_back(row.value);
      HR_TRYV(line({{"list_row", std::move(json)}}));
    }
  return {};
}

}  // namespace

Result<void> write_jsonl(const Recording& recording, const Output& output) {
  BlockOutput out(output);
  out.text() += std::string(kJsonlBeginning) + json_text(meta_json(recording.meta)) + "}\n";
  for (std::size_t i = 0; i < recording.sources.size(); ++i) {
    out.text() += json_text(source_json(recording.sources[i], i)) + "\n";
    HR_TRYV(out.line_done());
  }
  HR_TRYV(write_timeline(recording, out));
  HR_TRYV(write_lists(recording, out));
  for (const auto& loss : recording.losses) out.text() += json_text(loss_json(loss)) + "\n";
  return out.flush();
}

std::string to_jsonl(const Recording& recording) {
  std::string text;
  (void)write_jsonl(recording, [&](std::string_view block) -> Result<void> {
    text += block;
    return {};
  });
  return text;
}

}  // namespace headroom
