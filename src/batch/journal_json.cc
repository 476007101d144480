// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "batch/journal_rows.h"

// The long tail of an attempt's facts is JSON in two columns: they are written once, shown, and never searched.
namespace headroom::batch {

namespace {

using nlohmann::json;

template <class T>
void put(json& to, const char* name, const std::optional<T>& value) {
  if (value) to[name] = *value;
}
template <class T>
void put_list(json& to, const char* name, const T& list) {
  if (!list.empty()) to[name] = list;
}
void put_text(json& to, const char* name, const std::string& text) {
  if (!text.empty()) to[name] = text;
}

template <class T>
std::optional<T> found(const json& from, const char* name) {
  const auto member = from.find(name);
  if (member == from.end() || member->is_null()) return std::nullopt;
  try {
    return member->get<T>();
  } catch (const json::exception&) {  // written by a version that meant something else by this name
    return std::nullopt;
  }
}
template <class T>
void take(const json& from, const char* name, T& value) {
  if (auto there = found<T>(from, name)) value = std::move(*there);
}
template <class T>
void take(const json& from, const char* name, std::optional<T>& value) {
  if (auto there = found<T>(from, name)) value = std::move(there);
}

// JSON has null for a loss that became NaN.
void take_metrics(const json& from, std::vector<std::pair<std::string, double>>& metrics) {
  const auto found = from.find("metrics");
  if (found == from.end() || !found->is_array()) return;
  for (const json& metric : *found)
    if (metric.is_array() && metric.size() == 2 && metric[0].is_string() &&
        (metric[1].is_number() || metric[1].is_null()))
      metrics.emplace_back(metric[0], metric[1].is_null() ? std::nan("") : metric[1].get<double>());
}

// A value that is no number is null.
double number_of(const json& from, const char* name) { return found<double>(from, name).value_or(std::nan("")); }

void take_courses(const json& from, std::vector<SaidMetric>& courses) {
  const auto all = from.find("courses");
  if (all == from.end() || !all->is_array()) return;
  for (const json& one : *all) {
    auto name = one.is_object() ? found<std::string>(one, "name") : std::nullopt;
    if (!name) continue;
    SaidMetric metric{.name = std::move(*name),
                      .last = number_of(one, "last"),
                      .first = number_of(one, "first"),
                      .lowest = number_of(one, "lowest"),
                      .highest = number_of(one, "highest")};
    metric.better = better_by_name(metric.name);
    take(one, "values", metric.values);
    take(one, "curve", metric.curve);
    if (metric.curve.size() <= kMostOfCurve) courses.push_back(std::move(metric));
  }
}

}  // namespace

std::string pairs_text(const TextPairs& pairs) { return pairs.empty() ? "" : json_text(json(pairs)); }

TextPairs pairs_of(std::string_view text) {
  const json pairs = parse_json<json>(text);
  try {
    return pairs.is_array() ? pairs.get<TextPairs>() : TextPairs{};
  } catch (const json::exception&) {
    return {};
  }
}

std::string start_facts(const Attempt& attempt) {
  json facts = json::object();
  put_list(facts, "gpu_uuids", attempt.gpu_uuids);
  put_list(facts, "argv", attempt.argv);
  put_list(facts, "environment", attempt.environment);
  put_text(facts, "working_directory", attempt.working_directory);
  put_text(facts, "git_commit", attempt.git_commit);
  put(facts, "git_dirty", attempt.git_dirty);
  put_list(facts, "input_hashes", attempt.input_hashes);
  put_text(facts, "driver_version", attempt.driver_version);
  put(facts, "reserved_gpu_bytes", attempt.reserved_gpu_bytes);
  return json_text(facts);
}

void take_start_facts(std::string_view text, Attempt& attempt) {
  const json facts = parse_json<json>(text);
  if (!facts.is_object()) return;
  take(facts, "gpu_uuids", attempt.gpu_uuids);
  take(facts, "argv", attempt.argv);
  take(facts, "environment", attempt.environment);
  take(facts, "working_directory", attempt.working_directory);
  take(facts, "git_commit", attempt.git_commit);
  take(facts, "git_dirty", attempt.git_dirty);
  take(facts, "input_hashes", attempt.input_hashes);
  take(facts, "driver_version", attempt.driver_version);
  take(facts, "reserved_gpu_bytes", attempt.reserved_gpu_bytes);
}

std::string end_facts(const Attempt& attempt) {
  json facts = json::object();
  put_list(facts, "parameters_resolved", attempt.parameters_resolved);
  put_list(facts, "metrics", attempt.metrics);
  put(facts, "peak_gpu_bytes", attempt.peak_gpu_bytes);
  put(facts, "peak_host_bytes", attempt.peak_host_bytes);
  put(facts, "cpu_time_ns", attempt.cpu_time);
  put(facts, "gpu_time_ns", attempt.gpu_time);
  put(facts, "steps", attempt.steps);
  put_list(facts, "seen_gpu_uuids", attempt.seen_gpu_uuids);
  return json_text(facts);
}

std::string metric_json(const std::string& name, double value) { return json_text(json{name, value}); }

std::string course_json(const SaidMetric& metric) {
  return json_text(json{{"name", metric.name},
                        {"last", metric.last},
                        {"first", metric.first},
                        {"lowest", metric.lowest},
                        {"highest", metric.highest},
                        {"values", metric.values},
                        {"curve", metric.curve}});
}

void take_end_facts(std::string_view text, Attempt& attempt) {
  const json facts = parse_json<json>(text);
  if (!facts.is_object()) return;
  take(facts, "parameters_resolved", attempt.parameters_resolved);
  take_metrics(facts, attempt.metrics);
  take_courses(facts, attempt.courses);
  take(facts, "peak_gpu_bytes", attempt.peak_gpu_bytes);
  take(facts, "peak_host_bytes", attempt.peak_host_bytes);
  take(facts, "cpu_time_ns", attempt.cpu_time);
  take(facts, "gpu_time_ns", attempt.gpu_time);
  take(facts, "steps", attempt.steps);
  take(facts, "seen_gpu_uuids", attempt.seen_gpu_uuids);
}

}  // namespace headroom::batch
