// SPDX-License-Identifier: Apache-2.0
#include "compare/parameters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/strings.h"

namespace headroom::compare {

namespace {

using Values = std::map<std::string, std::string>;

Values values_of(const Parameters& parameters) { return {parameters.begin(), parameters.end()}; }

// 0.1 and 1e-1 are one value.
bool same_value(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const auto x = parse_number<double>(a), y = parse_number<double>(b);
  return x && y && *x == *y;
}

// "20" and "20.0" are shown once.
void keep(const std::string& value, std::set<std::string>& values) {
  if (std::none_of(values.begin(), values.end(), [&](const std::string& one) { return same_value(one, value); }))
    values.insert(value);
}

struct Seen {
  std::set<std::string> a, b;
  bool differs = false, asked = false;
};

void look(const Values& a, const Values& b, bool asked, std::map<std::string, Seen>& seen) {
  std::set<std::string> names;
  for (const auto& [name, value] : a) names.insert(name);
  for (const auto& [name, value] : b) names.insert(name);
  for (const std::string& name : names) {
    const auto of_a = a.find(name), of_b = b.find(name);
    const bool both = of_a != a.end() && of_b != b.end();
    if (both ? same_value(of_a->second, of_b->second) : !asked) continue;  // what one did not say may be the same
    Seen& entry = seen[name];
    entry.differs = true;
    entry.asked = entry.asked || asked;
    if (of_a != a.end()) keep(of_a->second, entry.a);
    if (of_b != b.end()) keep(of_b->second, entry.b);
  }
}

std::string name_of(std::string_view flag) {
  std::string name(flag.substr(flag.find_first_not_of('-')));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// ":::", "::::", ":::+": what follows is a list of values, one for each task of a batch.
bool begins_list(std::string_view word) {
  if (word.ends_with('+')) word.remove_suffix(1);
  return word == ":::" || word == "::::";
}
constexpr std::string_view kValuesOf = "values of ";  // then that word, and the number of a list after the first

std::set<std::string> values_of_lists(const std::set<std::string>& lists) {
  std::set<std::string> values;
  for (const std::string& list : lists)
    for (const std::string_view value : split(list, '\n')) values.emplace(value);
  return values;
}

// Of lists only what the other side does not have; of equal ones in another order all.
void keep_own_values(Seen& entry) {
  const std::set<std::string> a = values_of_lists(entry.a), b = values_of_lists(entry.b);
  entry.a = a, entry.b = b;
  if (a == b) return;
  std::erase_if(entry.a, [&](const std::string& value) { return b.contains(value); });
  std::erase_if(entry.b, [&](const std::string& value) { return a.contains(value); });
}

bool is_flag(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && word.find_first_not_of('-') != std::string::npos &&
         !parse_number<double>(word);  // -1 is a value
}

// "--no-record", which takes no value; what a number follows may: "--no_repeat_ngram_size 3".
bool is_switch(const std::string& flag, const std::string& next) {
  const std::string_view name = std::string_view(flag).substr(flag.find_first_not_of('-'));
  return (name.starts_with("no-") || name.starts_with("no_")) && !parse_number<double>(next);
}

// By what a batch size is told, the surest first.
constexpr std::array<std::string_view, 6> kBatchSizes{
    "batch_size", "train_batch_size", "batch", "bs", "per_device_train_batch_size", "b"};

}  // namespace

std::string some_of(const std::set<std::string>& values) {
  constexpr std::size_t kShown = 3;
  std::vector<std::string> some(values.begin(), values.end());
  const std::size_t more = some.size() > kShown ? some.size() - kShown : 0;
  some.resize(some.size() - more);
  return join(some, ", ") + (more > 0 ? fmt::format(" and {} more", more) : "");
}

std::vector<SamplePair> pairs_that_tell(const Matching& matching) {
  if (!matching.pairs.empty()) return matching.pairs;
  if (matching.a.empty() || matching.b.empty()) return {};
  std::map<std::string_view, const Sample*> of_a;
  for (const Sample* run : matching.a) of_a.emplace(run->task, run);
  std::vector<SamplePair> pairs;
  for (const Sample* run : matching.b)
    if (const auto found = of_a.find(run->task); found != of_a.end()) pairs.emplace_back(found->second, run);
  return pairs;
}

std::string plain_name(std::string_view name) {
  std::string plain = lower(name.substr(std::min(name.size(), name.find_first_not_of("-$"))));
  for (char& c : plain)
    if (c == '-' || c == ' ') c = '_';
  return plain.substr(plain.find_last_of("./") + 1);
}

bool is_batch_size(std::string_view plain_name) {
  return std::find(kBatchSizes.begin(), kBatchSizes.end(), plain_name) != kBatchSizes.end() ||
         plain_name.find("batch_size") != std::string_view::npos;
}

std::vector<ComparedParameter> compare_parameters(const Matching& matching,
                                                  const std::optional<std::vector<std::string>>& changed) {
  std::vector<ComparedParameter> differing;
  std::map<std::string, Seen> seen;
  for (const auto& [a, b] : pairs_that_tell(matching)) {
    look(values_of(a->asked), values_of(b->asked), true, seen);
    look(values_of(a->resolved), values_of(b->resolved), false, seen);
    if (a->variables && b->variables) look(values_of(*a->variables), values_of(*b->variables), true, seen);
  }
  std::set<std::string> meant;
  for (const std::string& name : changed.value_or(std::vector<std::string>{})) meant.insert(name_of(name));
  for (auto& [name, entry] : seen) {
    if (name.starts_with(kValuesOf)) keep_own_values(entry);
    differing.push_back(
        {name, some_of(entry.a), some_of(entry.b), changed ? meant.contains(name_of(name)) : entry.asked});
  }
  return differing;
}

Parameters parameters_of(const std::vector<std::string>& argv) {
  Parameters result;
  std::size_t alone = 0, lists = 0;
  for (std::size_t i = 1; i < argv.size(); ++i) {
    const std::string& word = argv[i];
    if (begins_list(word)) {
      ++lists;
      std::vector<std::string> values;
      for (; i + 1 < argv.size() && !begins_list(argv[i + 1]); ++i) values.push_back(argv[i + 1]);
      result.emplace_back(fmt::format("{}{}{}", kValuesOf, word, lists > 1 ? fmt::format(" {}", lists) : ""),
                          join(values, "\n"));
      continue;
    }
    if (!is_flag(word)) {
      result.emplace_back(fmt::format("argument {}", ++alone), word);
      continue;
    }
    if (const auto equals = word.find('='); equals != std::string::npos) {
      result.emplace_back(name_of(word.substr(0, equals)), word.substr(equals + 1));
    } else if (i + 1 < argv.size() && !is_flag(argv[i + 1]) && !is_switch(word, argv[i + 1])) {
      result.emplace_back(name_of(word), argv[i + 1]);
      ++i;
    } else {
      result.emplace_back(name_of(word), "yes");
    }
  }
  return result;
}

std::optional<double> batch_size_of(const Sample& sample) {
  for (const Parameters* parameters : {&sample.resolved, &sample.asked})
    for (const std::string_view name : kBatchSizes)
      for (const auto& [key, text] : *parameters)
        if (key == name)
          if (const auto value = parse_number<double>(text); value && *value > 0) return value;
  return std::nullopt;
}

}  // namespace headroom::compare
