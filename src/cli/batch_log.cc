// SPDX-License-Identifier: Apache-2.0
#include "cli/batch_log.h"

#include <unistd.h>

#include <memory>
#include <optional>
#include <regex>

#include "base/fd.h"
#include "base/strings.h"
#include "run/identity.h"

namespace headroom::cli {

namespace {

constexpr off_t kLookedAt = 128 << 10;      // of a log: results come last
constexpr std::size_t kLongestLine = 4096;  // beyond it a regular expression is not tried

std::string end_of(const std::string& path) {
  const auto file = open_read(path);
  if (!file) return "";
  const off_t size = ::lseek(file->get(), 0, SEEK_END);
  const off_t from = std::max<off_t>(0, size - kLookedAt);
  std::string text(static_cast<std::size_t>(std::max<off_t>(0, size - from)), '\0');
  const ssize_t got = ::pread(file->get(), text.data(), text.size(), from);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, got)));
  return text;
}

}  // namespace

std::function<std::vector<std::pair<std::string, std::string>>(const TaskSpec&)> input_hasher(
    std::string start_directory) {
  auto hasher = std::make_shared<run::InputHasher>();
  return [hasher, start = std::move(start_directory)](const TaskSpec& task) {
    std::vector<std::pair<std::string, std::string>> hashes;
    for (const std::string& input : task.inputs) {
      const auto hash = hasher->hash(run::path_of(task, input, start));
      hashes.emplace_back(input, hash ? *hash : "unreadable");
    }
    return hashes;
  };
}

std::function<void(Attempt&)> log_inspector(const std::vector<run::LogPattern>& patterns) {
  struct Compiled {
    run::LogPattern pattern;
    std::regex regex;
  };
  auto compiled = std::make_shared<std::vector<Compiled>>();
  for (const auto& pattern : patterns)  // their syntax was checked when they were read
    if (pattern.kind != run::LogPattern::Kind::kStep)
      compiled->push_back({.pattern = pattern, .regex = std::regex(pattern.regex, std::regex::ECMAScript)});
  return [compiled](Attempt& attempt) {
    const std::string text = end_of(attempt.log_path);
    for (const Compiled& one : *compiled) {
      std::optional<std::string> found;
      for (const auto line : split(text, '\n')) {
        std::cmatch match;
        if (line.size() <= kLongestLine && std::regex_search(line.data(), line.data() + line.size(), match, one.regex))
          found = match[1].str();
      }
      if (!found) continue;
      if (one.pattern.kind == run::LogPattern::Kind::kParameter)
        attempt.parameters_resolved.emplace_back(one.pattern.name, *found);
      else if (const auto value = parse_number<double>(std::string_view(*found)))
        attempt.metrics.emplace_back(one.pattern.name, *value);
    }
  };
}

}  // namespace headroom::cli
