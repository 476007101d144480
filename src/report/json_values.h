// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/visible.h"
#include "model/recording.h"
#include "report/live_findings.h"

// Pieces that the JSON answers share. Members stand in the order in which they were put.
namespace headroom::report {

using Json = nlohmann::ordered_json;

// Pretty, with a line end. What is not UTF-8 is replaced: names of files and tasks may hold anything.
[[nodiscard]] inline std::string dump(const Json& json, int indent = 2) {
  return visible_json(json_text(json, indent)) + "\n";
}

template <class T>
[[nodiscard]] Json optional_json(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

[[nodiscard]] inline Json text_json(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

[[nodiscard]] inline Json losses_json(const std::vector<Loss>& losses) {
  Json list = Json::array();
  for (const Loss& loss : losses)
    list.push_back({{"what", loss.what},
                    {"count", loss.count},
                    {"severity", severity_name(loss.severity)},
                    {"detail", loss.detail}});
  return list;
}

// What stands at the end of a recording that goes on. `origin`: what its instants are told from.
[[nodiscard]] inline Json standing_json(const std::vector<StandingFinding>& standing, Nanos origin) {
  Json list = Json::array();
  for (const StandingFinding& one : standing)
    list.push_back({{"key", one.key},
                    {"title", one.title},
                    {"advice", one.advice},
                    {"alarm", one.alarm},
                    {"since_ns", one.since - origin}});
  return list;
}

}  // namespace headroom::report
