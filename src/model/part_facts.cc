// SPDX-License-Identifier: Apache-2.0
#include "model/part_facts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/strings.h"
#include "model/bounds.h"

namespace headroom {

namespace {

std::string numbered(std::string_view name, std::size_t i, std::string_view what = "") {
  return fmt::format("{}.{:06}{}{}", name, i, what.empty() ? "" : ".", what);
}

std::string places_text(const std::vector<LossPlace>& places) {
  std::string text;
  for (const LossPlace& place : places)
    text += fmt::format("{}{} {} {}", text.empty() ? "" : ";", place.begin, place.end, place.source);
  return text;
}

std::vector<LossPlace> places_of(std::string_view text) {
  std::vector<LossPlace> places;
  if (text.empty()) return places;
  for (const std::string_view one : split(text, ';')) {
    const auto words = split(one, ' ');
    if (words.size() != 3) continue;
    const auto begin = parse_number<Nanos>(words[0]), end = parse_number<Nanos>(words[1]);
    const auto source = parse_number<SourceId>(words[2]);
    if (begin && end && source) places.push_back({*begin, *end, *source});
  }
  return places;
}

}  // namespace

Attrs facts_of_part(const RecordingMeta& meta, const std::vector<Loss>& losses) {
  Attrs attrs{{"id", meta.id},
              {"origin", meta.origin},
              {"writer", meta.writer},
              {"host", meta.host},
              {"boot_id", meta.boot_id},
              {"stop_reason", meta.stop_reason},
              {"cwd", meta.cwd},
              {"tiers", meta.tiers},
              {"start_ns", fmt::format("{}", meta.start)},
              {"end_ns", fmt::format("{}", meta.end)},
              {"start_realtime_ns", fmt::format("{}", meta.start_realtime)},
              {"interval_ns", fmt::format("{}", meta.interval)}};
  if (meta.job_pid) attrs["job_pid"] = fmt::format("{}", *meta.job_pid);
  if (meta.exit_code) attrs["exit_code"] = fmt::format("{}", *meta.exit_code);
  for (std::size_t i = 0; i < meta.command.size(); ++i) attrs[numbered("command", i)] = meta.command[i];
  for (std::size_t i = 0; i < meta.missing_tiers.size(); ++i)
    attrs[numbered("missing", i)] = meta.missing_tiers[i].tier + meta.missing_tiers[i].why;
  for (const auto& [name, value] : meta.extra) attrs["extra." + name] = value;
  for (std::size_t i = 0; i < losses.size(); ++i) {
    attrs[numbered("loss", i, "what")] = losses[i].what;
    attrs[numbered("loss", i, "count")] = fmt::format("{}", losses[i].count);
    attrs[numbered("loss", i, "severity")] = severity_name(losses[i].severity);
    attrs[numbered("loss", i, "detail")] = losses[i].detail;
    attrs[numbered("loss", i, "places")] = places_text(losses[i].places);
  }
  return attrs;
}

namespace {

template <class T>
void take(const Attrs& attrs, const char* name, T& value) {
  if (const auto found = attrs.find(name); found != attrs.end()) {
    if constexpr (std::is_same_v<T, std::string>)
      value = found->second;
    else
      value = parse_number<typename std::remove_reference_t<T>>(found->second).value_or(T{});
  }
}
template <class T>
void take(const Attrs& attrs, const char* name, std::optional<T>& value) {
  if (const auto found = attrs.find(name); found != attrs.end()) value = parse_number<T>(found->second);
}

// What stands behind "NAME.", in order.
template <class Add>
void each(const Attrs& attrs, const std::string& name, const Add& add) {
  const std::string before = name + ".";
  for (auto at = attrs.lower_bound(before); at != attrs.end() && at->first.starts_with(before); ++at)
    add(at->first.substr(before.size()), at->second);
}

}  // namespace

RecordingMeta meta_of_part(const Source& source) {
  const Attrs& attrs = source.attrs;
  RecordingMeta meta;
  take(attrs, "id", meta.id);
  take(attrs, "origin", meta.origin);
  take(attrs, "writer", meta.writer);
  take(attrs, "host", meta.host);
  take(attrs, "boot_id", meta.boot_id);
  take(attrs, "stop_reason", meta.stop_reason);
  take(attrs, "cwd", meta.cwd);
  take(attrs, "tiers", meta.tiers);
  take(attrs, "start_ns", meta.start);
  take(attrs, "end_ns", meta.end);
  take(attrs, "start_realtime_ns", meta.start_realtime);
  take(attrs, "interval_ns", meta.interval);
  take(attrs, "job_pid", meta.job_pid);
  take(attrs, "exit_code", meta.exit_code);
  each(attrs, "command", [&](const std::string&, const std::string& word) { meta.command.push_back(word); });
  each(attrs, "missing", [&](const std::string&, const std::string& text) {
    if (!text.empty()) meta.missing_tiers.push_back({text[0], text.substr(1)});
  });
  each(attrs, "extra", [&](const std::string& name, const std::string& value) { meta.extra[name] = value; });
  for (Nanos* at : {&meta.start, &meta.end, &meta.start_realtime}) *at = std::clamp(*at, kEarliest, kLatest);
  return meta;
}

std::vector<Loss> losses_of_part(const Source& source) {
  std::map<std::string, Loss> by_number;
  each(source.attrs, "loss", [&](const std::string& name, const std::string& value) {
    const auto dot = name.find('.');
    if (dot == std::string::npos) return;
    Loss& loss = by_number[name.substr(0, dot)];
    const std::string_view what = std::string_view(name).substr(dot + 1);
    if (what == "what") loss.what = value;
    if (what == "count") loss.count = parse_number<std::int64_t>(value).value_or(0);
    if (what == "severity") loss.severity = severity_of(value).value_or(Severity::kNotice);
    if (what == "detail") loss.detail = value;
    if (what == "places") loss.places = places_of(value);
  });
  std::vector<Loss> losses;
  for (auto& [number, loss] : by_number) losses.push_back(std::move(loss));
  return losses;
}

}  // namespace headroom
