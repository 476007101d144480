// SPDX-License-Identifier: Apache-2.0
#include "import/jsonl.h"

#include <algorithm>
#include <limits>
#include <set>

#include "base/strings.h"
#include "import/jsonl_value.h"
#include "model/bounds.h"
#include "model/losses.h"

namespace headroom {

namespace {

using Kind = JsonValue::Kind;

const char* const kFirstLine = "the first line must be {\"recording\":1,\"meta\":{…}}";

class JsonlReader {
 public:
  Result<Recording> read(std::string_view text);

 private:
  Result<void> read_line();
  Result<void> read_head(const JsonValue& json);
  Result<void> read_meta(const JsonValue& json);
  Result<void> read_source(const JsonValue& json);
  Result<void> read_row(const JsonValue& row);
  Result<void> read_event(const JsonValue& json);
  Result<void> read_loss(const JsonValue& json);
  Result<Cell> read_cell(const MetricInfo& metric, const JsonValue& value);
  Result<Attrs> read_attrs(const JsonValue& json, const char* name);
  Result<std::string> text(const JsonValue& json, const char* name);
  Result<std::int64_t> integer(const JsonValue& json, const char* name, std::int64_t fallback);
  Result<std::int64_t> integer(const JsonValue& json, const char* name);
  Result<void> read_text(const JsonValue& json);
  Result<void> read_list(const JsonValue& json);
  Result<void> read_list_row(const JsonValue& row);
  Result<SourceId> source_id(const JsonValue& value);
  Result<std::vector<LossPlace>> read_places(const JsonValue& list);
  [[nodiscard]] tl::unexpected<Error> wrong(std::string_view about, std::string what) const;
  void lose(LossKind kind, const std::string& detail);

  MemorySink sink_;
  std::vector<SourceId> ids_;  // of the file's numbers; kNoSource if their kind is unknown
  std::vector<std::int64_t> parents_;
  std::vector<Nanos> last_;  // by our id
  std::vector<Nanos> last_list_;
  std::set<std::pair<SourceKind, std::string>> keys_;
  std::vector<Loss> found_;  // by this reader, after those of the file
  std::vector<Cell> cells_;
  std::size_t number_ = 0;
  std::string_view line_;
  bool has_head_ = false;
};

// The column is that of the name the complaint is about, where the line has it.
tl::unexpected<Error> JsonlReader::wrong(std::string_view about, std::string what) const {
  const auto at = about.empty() ? std::string_view::npos : line_.find(fmt::format("\"{}\"", about));
  return fail(Errc::kInvalidInput,
              fmt::format("line {}, column {}: {}", number_, at == std::string_view::npos ? 1 : at + 1, what),
              "docs/recording-format.md describes the text form of recordings");
}

void JsonlReader::lose(LossKind kind, const std::string& detail) {
  count_loss(found_, make_loss(kind, 1, fmt::format("line {}: {}", number_, detail)));
}

Result<std::string> JsonlReader::text(const JsonValue& json, const char* name) {
  const JsonValue* value = json.find(name);
  if (value == nullptr) return std::string();
  if (value->kind != Kind::kString) return wrong(name, fmt::format("'{}' must be a text", name));
  return value->text;
}

Result<std::int64_t> JsonlReader::integer(const JsonValue& json, const char* name) {
  const JsonValue* value = json.find(name);
  if (value == nullptr) return wrong("", fmt::format("'{}' is missing", name));
  const auto number = value->integer();
  if (!number) return wrong(name, fmt::format("'{}' must be a whole number", name));
  return *number;
}

Result<std::int64_t> JsonlReader::integer(const JsonValue& json, const char* name, std::int64_t fallback) {
  if (json.find(name) == nullptr) return fallback;
  return integer(json, name);
}

Result<Attrs> JsonlReader::read_attrs(const JsonValue& json, const char* name) {
  Attrs attrs;
  const JsonValue* object = json.find(name);
  if (object == nullptr) return attrs;
  if (object->kind != Kind::kObject) return wrong(name, fmt::format("'{}' must be an object of texts", name));
  for (const auto& [key, value] : object->members) {
    const auto plain = value.plain();
    if (!plain) return wrong(key, fmt::format("'{}' must be a text, a number or a bool", key));
    attrs[key] = *plain;
  }
  return attrs;
}

Result<void> JsonlReader::read_meta(const JsonValue& json) {
  RecordingMeta meta;
  HR_TRY(meta.id, text(json, "id"));
  HR_TRY(meta.origin, text(json, "origin"));
  HR_TRY(meta.writer, text(json, "writer"));
  HR_TRY(meta.host, text(json, "host"));
  HR_TRY(meta.boot_id, text(json, "boot_id"));
  HR_TRY(meta.stop_reason, text(json, "stop_reason"));
  HR_TRY(meta.cwd, text(json, "cwd"));
  HR_TRY(meta.tiers, text(json, "tiers"));
  HR_TRY(meta.start, integer(json, "start_ns", 0));
  HR_TRY(meta.end, integer(json, "end_ns", 0));
  HR_TRY(meta.start_realtime, integer(json, "start_realtime_ns", 0));
  HR_TRY(meta.interval, integer(json, "interval_ns", 0));
  HR_TRY(meta.extra, read_attrs(json, "extra"));
  if (json.find("job_pid") != nullptr) {
    HR_TRY(meta.job_pid, integer(json, "job_pid"));
  }
  if (json.find("exit_code") != nullptr) {
    HR_TRY(const std::int64_t code, integer(json, "exit_code"));
    meta.exit_code = static_cast<int>(code);
  }
  if (const JsonValue* command = json.find("command"); command != nullptr)
    for (const auto& argument : command->items) meta.command.push_back(argument.text);
  if (const JsonValue* missing = json.find("missing_tiers"); missing != nullptr) {
    for (const auto& entry : missing->items) {
      HR_TRY(const std::string tier, text(entry, "tier"));
      if (tier.size() != 1) return wrong("missing_tiers", "a tier is one letter");
      HR_TRY(std::string why, text(entry, "why"));
      meta.missing_tiers.push_back({tier[0], std::move(why)});
    }
  }
  sink_.set_meta(meta);
  return {};
}

Result<void> JsonlReader::read_head(const JsonValue& json) {
  const JsonValue* version = json.find("recording");
  if (version == nullptr) return wrong("", kFirstLine);
  const auto number = version->integer();
  if (!number) return wrong("recording", "'recording' must be the version of the text form, 1");
  if (*number > 1)
    return fail(Errc::kUnsupported, fmt::format("this is text form {} of a recording; this program reads 1", *number),
                "update Headroom");
  has_head_ = true;
  const JsonValue* meta = json.find("meta");
  if (meta == nullptr) return {};
  if (meta->kind != Kind::kObject) return wrong("meta", "'meta' must be an object");
  return read_meta(*meta);
}

Result<void> JsonlReader::read_source(const JsonValue& json) {
  HR_TRY(const std::int64_t id, integer(json, "source"));
  if (id != static_cast<std::int64_t>(ids_.size()))
    return wrong("source", fmt::format("sources are numbered in order: this must be number {}", ids_.size()));
  HR_TRY(const std::string kind, text(json, "kind"));
  Source source;
  HR_TRY(source.key, text(json, "key"));
  HR_TRY(source.attrs, read_attrs(json, "attrs"));
  HR_TRY(const std::int64_t parent, integer(json, "parent", kNoSource));
  parents_.push_back(parent);
  const auto known = source_kind_of(kind);
  if (!known) {
    lose(LossKind::kUnknownSource, fmt::format("sources of kind '{}' are not known to this program", kind));
    ids_.push_back(kNoSource);
    return {};
  }
  source.kind = *known;
  if (!keys_.emplace(source.kind, source.key).second) return wrong("key", "there is such a source already");
  ids_.push_back(sink_.add_source(source));
  last_.push_back(std::numeric_limits<Nanos>::min());
  return {};
}

Result<SourceId> JsonlReader::source_id(const JsonValue& value) {
  const auto number = value.integer();
  if (!number || *number < 0 || *number >= static_cast<std::int64_t>(ids_.size()))
    return wrong("source", fmt::format("there is no source '{}' above this line", value.text));
  return ids_[static_cast<std::size_t>(*number)];
}

Result<Cell> JsonlReader::read_cell(const MetricInfo& metric, const JsonValue& value) {
  if (value.kind == Kind::kString) {
    const auto absent = absent_of(value.text);
    if (!absent) return wrong(metric.name, fmt::format("'{}' is no reason why a value is absent", value.text));
    return Cell{metric.id, 0, *absent};
  }
  if (value.kind != Kind::kNumber) return wrong(metric.name, "a cell is a number, or the reason why there is none");
  const auto stored = parse_decimal(value.text, metric.exp10);
  if (!stored)
    return wrong(metric.name, fmt::format("{} {} cannot be stored: {} keeps {} decimals and 63 bits", value.text,
                                          metric.unit, metric.name, metric.exp10));
  return Cell{metric.id, *stored, std::nullopt};
}

Result<void> JsonlReader::read_row(const JsonValue& row) {
  if (row.kind != Kind::kList || row.items.size() != 3 || row.items[2].kind != Kind::kObject)
    return wrong("row", "a row is [source, time, {metric: value, …}]");
  HR_TRY(const SourceId source, source_id(row.items[0]));
  if (source == kNoSource) return {};
  const auto at = row.items[1].integer();
  if (!at) return wrong("row", "the time of a row is a whole number of nanoseconds");
  Nanos& last = last_[static_cast<std::size_t>(source)];
  if (*at < last) return wrong("row", "rows of a source must be in order of time");
  last = *at;
  cells_.clear();
  for (const auto& [name, value] : row.items[2].members) {
    const auto metric = metric_of(name);
    if (!metric) {
      lose(LossKind::kUnknownMetric, fmt::format("'{}' is not known to this program", name));
      continue;
    }
    HR_TRY(const Cell cell, read_cell(info(*metric), value));
    cells_.push_back(cell);
  }
  sink_.add_row(source, *at, cells_);
  return {};
}

Result<void> JsonlReader::read_event(const JsonValue& json) {
  Event event;
  HR_TRY(event.kind, text(json, "event"));
  HR_TRY(event.at, integer(json, "at"));
  if (json.find("end") != nullptr) {
    HR_TRY(event.end, integer(json, "end"));
  }
  if (const JsonValue* source = json.find("source"); source != nullptr) {
    HR_TRY(event.source, source_id(*source));
  }
  HR_TRY(event.attrs, read_attrs(json, "attrs"));
  sink_.add_event(event);
  return {};
}

Result<std::vector<LossPlace>> JsonlReader::read_places(const JsonValue& list) {
  std::vector<LossPlace> places;
  for (const JsonValue& item : list.items) {
    const bool has_source = item.items.size() == 3;
    if (item.items.size() != 2 && !has_source)
      return wrong("places", "a place is [begin, end] or [begin, end, source]");
    const auto begin = item.items[0].integer(), end = item.items[1].integer();
    if (!begin || !end) return wrong("places", "times are whole numbers of nanoseconds");
    places.push_back({*begin, *end, kNoSource});
    if (has_source) {
      HR_TRY(places.back().source, source_id(item.items[2]));
    }
  }
  return places;
}

Result<void> JsonlReader::read_loss(const JsonValue& json) {
  Loss loss;
  HR_TRY(loss.what, text(json, "loss"));
  HR_TRY(loss.count, integer(json, "count", 1));
  HR_TRY(const std::string severity, text(json, "severity"));
  const auto known = severity_of(severity.empty() ? "notice" : severity);
  if (!known) return wrong("severity", fmt::format("'{}' is none of info, notice, data_loss, error", severity));
  loss.severity = *known;
  HR_TRY(loss.detail, text(json, "detail"));
  if (const JsonValue* places = json.find("places"); places != nullptr) {
    HR_TRY(loss.places, read_places(*places));
  }
  sink_.add_loss(loss);
  return {};
}

Result<void> JsonlReader::read_text(const JsonValue& json) {
  HR_TRY(const std::int64_t id, integer(json, "text"));
  HR_TRY(const std::string is, text(json, "is"));
  if (id != std::ssize(sink_.recording().texts)) return wrong("text", "texts are numbered in order, from 0");
  if (sink_.intern(is) != static_cast<TextId>(id)) return wrong("is", "every text is there once, and not too many are");
  return {};
}

Result<void> JsonlReader::read_list(const JsonValue& json) {
  HR_TRY(const std::int64_t id, integer(json, "list"));
  if (id != std::ssize(sink_.recording().lists)) return wrong("list", "lists are numbered in order, from 0");
  std::vector<TextId> texts;
  if (const JsonValue* given = json.find("texts"); given != nullptr)
    for (const JsonValue& item : given->items) {
      const auto number = item.integer();
      if (!number || *number < 0 || *number >= std::ssize(sink_.recording().texts))
        return wrong("texts", fmt::format("there is no text '{}' above this line", item.text));
      texts.push_back(static_cast<TextId>(*number));
    }
  if (sink_.intern_list(texts) != static_cast<ListId>(id))
    return wrong("texts", "every list is there once, and not too many are");
  return {};
}

Result<void> JsonlReader::read_list_row(const JsonValue& row) {
  if (row.items.size() < 3 || row.items.size() > 4)
    return wrong("list_row", "a list row is [source, time, list] or [source, time, list, value]");
  HR_TRY(const SourceId source, source_id(row.items[0]));
  const auto at = row.items[1].integer(), list = row.items[2].integer();
  const auto value = row.items.size() == 4 ? row.items[3].integer() : std::optional<std::int64_t>(0);
  if (!at || !list || !value) return wrong("list_row", "time, list and value are whole numbers");
  const auto small = static_cast<std::int32_t>(*value);
  if (small != *value) return wrong("list_row", fmt::format("a value is a number of 32 bits, and {} is not", *value));
  if (*list < 0 || *list >= std::ssize(sink_.recording().lists))
    return wrong("list_row", fmt::format("there is no list '{}' above this line", *list));
  if (source == kNoSource) return {};
  const auto index = static_cast<std::size_t>(source);
  if (last_list_.size() <= index) last_list_.resize(index + 1, std::numeric_limits<Nanos>::min());
  if (*at < last_list_[index]) return wrong("list_row", "rows of a source must be in order of time");
  last_list_[index] = *at;
  sink_.add_list_row(source, {*at, static_cast<ListId>(*list), small});
  return {};
}

Result<void> JsonlReader::read_line() {
  // A line of somebody else's is not made into values first: they take ten times the memory of its text or more.
  if (!has_head_ && line_.substr(0, 4096).find("\"recording\"") == std::string_view::npos) return wrong("", kFirstLine);
  auto parsed = parse_json_line(line_);
  if (!parsed) return fail(Errc::kInvalidInput, fmt::format("line {}, {}", number_, parsed.error().what));
  const JsonValue& json = *parsed;
  if (json.kind != Kind::kObject || json.members.empty()) return wrong("", "a line is a JSON object");
  if (!has_head_) return read_head(json);
  const std::string& first = json.members[0].first;
  if (first == "row") return read_row(json.members[0].second);
  if (first == "source") return read_source(json);
  if (first == "event") return read_event(json);
  if (first == "loss") return read_loss(json);
  if (first == "text") return read_text(json);
  if (first == "list") return read_list(json);
  if (first == "list_row") return read_list_row(json.members[0].second);
  lose(LossKind::kUnknownLine, fmt::format("lines that begin with '{}' are not known to this program", first));
  return {};
}

Result<Recording> JsonlReader::read(std::string_view text) {
  while (!text.empty()) {
    const auto end = text.find('\n');
    line_ = trim(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++number_;
    if (!line_.empty()) HR_TRYV(read_line());
  }
  if (!has_head_) return fail(Errc::kInvalidInput, "line 1, column 1: the text is empty");
  for (const auto& loss : found_) sink_.add_loss(loss);
  Recording recording = sink_.take();
  if (std::count_if(recording.sources.begin(), recording.sources.end(), [](const Source& source) {
        return source.kind == SourceKind::kGpu;
      }) > static_cast<std::ptrdiff_t>(kMostGpus))
    return fail(Errc::kInvalidInput, fmt::format("more than {} GPUs", kMostGpus));
  for (std::size_t i = 0; i < ids_.size(); ++i) {
    const std::int64_t parent = parents_[i];
    if (parent != kNoSource && (parent < 0 || parent >= static_cast<std::int64_t>(ids_.size())))
      return fail(Errc::kInvalidInput, fmt::format("source {} has parent {}, which there is not", i, parent));
    if (ids_[i] == kNoSource) continue;
    recording.sources[static_cast<std::size_t>(ids_[i])].parent =
        parent == kNoSource ? kNoSource : ids_[static_cast<std::size_t>(parent)];
  }
  keep_in_bounds(recording);
  return recording;
}

}  // namespace

Result<Recording> read_jsonl(std::string_view text) { return JsonlReader().read(text); }

}  // namespace headroom
