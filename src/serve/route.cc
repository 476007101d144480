// SPDX-License-Identifier: Apache-2.0
#include "serve/route.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/strings.h"

namespace headroom::serve {

namespace {

using What = Route::What;

constexpr std::array<std::pair<std::string_view, What>, 9> kPlaces{{
    {"/healthz", What::kHealth},
    {"/", What::kFile},
    {"/app.js", What::kFile},
    {"/app.css", What::kFile},
    {"/favicon.svg", What::kFile},
    {"/api/overview", What::kOverview},
    {"/api/events", What::kEvents},
    {"/metrics", What::kMetrics},
    {"/metrics/dcgm", What::kDcgmMetrics},
}};

constexpr std::array<std::pair<std::string_view, What>, 7> kOfRecordings{{
    {"view", What::kView},
    {"why", What::kWhy},
    {"plan", What::kPlan},
    {"report", What::kReport},
    {"compare", What::kComparison},
    {"trace", What::kTrace},
    {"stacks", What::kStacks},
}};

bool is_key(std::string_view key) {
  constexpr std::size_t kLongest = 64;
  return !key.empty() && key.size() <= kLongest && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

template <class Number>
void take(const Request& request, std::string_view name, Number least, Number most, Number& to, std::string& problem) {
  const auto text = request.parameter(name);
  if (!text) return;
  const auto number = parse_number<Number>(*text);
  if (!number || *number < least || *number > most)
    problem = fmt::format("{} is no number from {} to {}", name, least, most);
  else
    to = *number;
}

}  // namespace

Route route_of(std::string_view path) {
  for (const auto& [place, what] : kPlaces)
    if (path == place) return {what, ""};
  const auto parts = split(path, '/');  // "", "api", "recordings", KEY, what
  if (parts.size() < 4 || !parts[0].empty() || parts[1] != "api" || !is_key(parts[3])) return {};
  if (parts.size() == 4 && parts[2] == "batches") return {What::kBatch, std::string(parts[3])};
  if (parts.size() == 4 && parts[2] == "studies") return {What::kStudy, std::string(parts[3])};
  if (parts.size() == 5 && parts[2] == "studies" && parts[4] == "report")
    return {What::kStudyReport, std::string(parts[3])};
  if (parts.size() == 5 && parts[2] == "recordings")
    for (const auto& [name, what] : kOfRecordings)
      if (parts[4] == name) return {what, std::string(parts[3])};
  return {};
}

ViewQuery view_query(const Request& request, std::string& problem) {
  constexpr Nanos kLongest = Nanos{1} << 60;
  ViewQuery query;
  for (const auto& [name, to] : {std::pair("begin", &query.begin), std::pair("end", &query.end)}) {
    Nanos at = -1;
    take<Nanos>(request, name, 0, kLongest, at, problem);
    if (at >= 0) *to = at;
  }
  take<std::size_t>(request, "bins", 1, kMostBins, query.bins, problem);
  take<std::size_t>(request, "series_bins", 1, kMostBins, query.series_bins, problem);
  if (query.begin && query.end && *query.begin >= *query.end && problem.empty())
    problem = "begin and end leave no time";
  return query;
}

bool takes_openmetrics(std::string_view accept) {
  for (const std::string_view range : split(accept, ',')) {
    const auto words = split(range, ';');
    if (lower(trim(words[0])) != "application/openmetrics-text") continue;
    bool wanted = true;
    for (std::size_t i = 1; i < words.size(); ++i) {
      const std::string word = lower(trim(words[i]));
      if (word.starts_with("version=")) wanted = wanted && word == "version=1.0.0";
      if (word.starts_with("q="))
        wanted = wanted && parse_number<double>(std::string_view(word).substr(2)).value_or(0) > 0;
    }
    if (wanted) return true;
  }
  return false;
}

}  // namespace headroom::serve
