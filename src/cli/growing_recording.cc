// SPDX-License-Identifier: Apache-2.0
#include "cli/growing_recording.h"

#include <sys/stat.h>
#include <CLI/CLI.hpp>
#include <array>
#include <vector>

#include "base/duration.h"
#include "base/strings.h"
#include "base/time.h"
#include "diagnose/explain.h"

namespace headroom::cli {

FileTrace trace_of(const std::string& path) {
  struct stat file {
  }, log{};
  const bool has_file = ::stat(path.c_str(), &file) == 0, has_log = ::stat((path + "-wal").c_str(), &log) == 0;
  if (!has_file) return {};
  return {static_cast<std::int64_t>(file.st_ino),
          file.st_size,
          file.st_mtim.tv_sec * kSecond + file.st_mtim.tv_nsec,
          has_log ? static_cast<std::int64_t>(log.st_ino) : 0,
          has_log ? log.st_size : 0,
          has_log ? log.st_mtim.tv_sec * kSecond + log.st_mtim.tv_nsec : 0};
}

std::span<const Metric> metrics_not_viewed() {
  static const std::vector<Metric> metrics = [] {
    std::vector<Metric> left;
    for (const Metric metric : metrics_not_explained())
      if (metric != Metric::kPower && metric != Metric::kTemperature && metric != Metric::kRss &&
          metric != Metric::kProcessGpuMemory)
        left.push_back(metric);
    return left;
  }();
  return metrics;
}

void declare_finding_looks(CLI::App& app, FindingLooks& looks) {
  app.add_option_function<std::string>(
         "--finding-looks",
         [&looks](const std::string& text) {
           report::LiveRule& rule = looks.rule;
           const std::array<Nanos*, 4> values{&looks.every, &rule.evidence, &rule.cost, &rule.standstill};
           const auto parts = split(text, ',');
           for (std::size_t i = 0; i < parts.size() && i < values.size(); ++i) {
             const auto value = parse_duration(parts[i]);
             if (!value) throw CLI::ValidationError("--finding-looks", value.error().what);
             *values[i] = *value;
           }
           rule.held = looks.every;
         })
      ->group("");
}

std::optional<Explanation> explain_last_minutes(const Recording& recording, ExplainOptions options) {
  constexpr Nanos kRecent = 600 * kSecond;
  const Nanos length = recording.meta.end - recording.meta.start;
  if (length <= kRecent) return std::nullopt;
  options.window = {length - kRecent, length};
  return explain(recording, options);
}

}  // namespace headroom::cli
