// SPDX-License-Identifier: Apache-2.0
#include "output/line_kinds.h"

#include <re2/re2.h>
#include <re2/set.h>

#include <algorithm>
#include <memory>
#include <string>

#include "base/result.h"

namespace headroom::output {

namespace {

using re2::StringPiece;

// One automaton for the whole table: most lines match none, and are looked at once.
struct Compiled {
  re2::RE2::Set all{RE2::DefaultOptions, RE2::UNANCHORED};
  std::vector<std::unique_ptr<RE2>> each;
};

const Compiled& compiled() {
  static const auto table = [] {
    auto made = std::make_unique<Compiled>();
    for (const LineRule& rule : kLineRules) {
      const StringPiece regex(rule.regex.data(), rule.regex.size());
      made->each.push_back(std::make_unique<RE2>(regex));
      HR_CHECK(made->each.back()->ok() && made->all.Add(regex, nullptr) >= 0, "a rule of the table is no expression");
    }
    HR_CHECK(made->all.Compile(), "the table is too large");
    return made;
  }();
  return *table;
}

}  // namespace

std::string_view without_log_prefix(std::string_view line) {
  // "[INFO|trainer.py:2128] 2024-05-02 10:00:00,123 >> ", "INFO:root:", "2024-05-02 10:00:00.1 | INFO | a:b:42 - ",
  // "[rank0]: ", "05/02/2024 10:00:00 - INFO - trainer - ".
  static const RE2 prefix(
      R"(^(?:\[(?:[A-Z]+\||rank\d|\d{4}-|\d\d:\d\d:\d\d|INFO|DEBUG|WARNING)[^\]]{0,120}\]:? *)"
      R"(|\[(?:rank\d{1,4}|INFO|DEBUG|WARNING)\]:? *)"
      R"(|(?:\d{4}[-/]\d\d[-/]\d\d|\d\d/\d\d/\d{4})[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)? *)"
      R"(|\d\d:\d\d:\d\d(?:[.,]\d+)? +|>> ?|[-|:] +)"
      R"(|(?:DEBUG|INFO|WARNING|NOTICE|I)\b *(?::[\w.]*: ?|[-|:] +| +)(?:[\w.<>]+(?::[\w.<>]+:\d+)? +- +)?)+)");
  StringPiece rest(line.data(), line.size());
  // A line of a trainer may begin with blanks that its rule wants.
  if (!RE2::Consume(&rest, prefix)) return line;
  return {rest.data(), rest.size()};
}

std::vector<LineMatch> kinds_of(std::string_view line) {
  const StringPiece text(line.data(), line.size());
  std::vector<int> which;
  if (!compiled().all.Match(text, &which)) return {};
  std::sort(which.begin(), which.end());
  std::vector<LineMatch> found;
  for (const int index : which) {
    const LineRule& rule = kLineRules[static_cast<std::size_t>(index)];
    if (std::any_of(found.begin(), found.end(), [&](const LineMatch& one) { return one.rule->kind == rule.kind; }))
      continue;
    const RE2& regex = *compiled().each[static_cast<std::size_t>(index)];
    LineMatch& match = found.emplace_back(LineMatch{.rule = &rule});
    StringPiece groups[3];
    const int count = std::min(regex.NumberOfCapturingGroups() + 1, 3);
    regex.Match(text, 0, text.size(), RE2::UNANCHORED, groups, count);
    for (int i = 1; i < count; ++i)
      match.groups[static_cast<std::size_t>(i - 1)] = {groups[i].data(), groups[i].size()};
  }
  return found;
}

std::optional<ToldParameter> parameter_of(const LineMatch& match) {
  const auto& [first, second] = match.groups;
  if (match.rule->kind == LineKind::kTrainerFact) return ToldParameter{first.substr(0, first.find(" (")), second};
  if (match.rule->kind == LineKind::kPrecision) return ToldParameter{"mixed_precision", first};
  if (match.rule->kind == LineKind::kEarlyStopping || match.rule->kind == LineKind::kBoostingEnds)
    return ToldParameter{"early_stopping", "yes"};
  return std::nullopt;
}

}  // namespace headroom::output
