// SPDX-License-Identifier: Apache-2.0
#include "storage/printed_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/strings.h"

namespace headroom {

namespace {

constexpr std::string_view kCreated = " A new study created ", kTrial = "] Trial ", kFinished = " finished with value";

struct Ending {
  std::string_view words, said, said_of_one;  // words: behind the number of the trial
};
constexpr std::array kEndings{Ending{kFinished, "completed", "completed"},
                              Ending{" pruned", "were pruned", "was pruned"}, Ending{" failed", "failed", "failed"}};

// "0.3135, of trial 37", of "… Best is trial 37 with value: 0.3135."; "" where the line names none.
std::string best_in(std::string_view line) {
  constexpr std::string_view kBest = "Best is trial ", kValue = " with value: ";
  const auto best = line.find(kBest);
  const auto value = best == std::string_view::npos ? best : line.find(kValue, best);
  if (value == std::string_view::npos) return "";
  std::string_view number = trim(line.substr(value + kValue.size()));
  if (number.ends_with('.')) number.remove_suffix(1);
  const std::string_view trial = line.substr(best + kBest.size(), value - best - kBest.size());
  if (!parse_number<double>(number) || !parse_number<std::int64_t>(trial)) return "";
  return fmt::format("{}, of trial {}", number, trial);
}

// How the trial ended of which behind its number this is said.
const Ending* ending_in(std::string_view said) {
  const auto* ending =
      std::find_if(kEndings.begin(), kEndings.end(), [&](const Ending& one) { return said.starts_with(one.words); });
  return ending == kEndings.end() ? nullptr : ending;
}

using Endings = std::map<std::int64_t, const Ending*>;  // by number of the trial

// "3 trials completed, 1 was pruned"
std::string endings_words(const Endings& trials) {
  std::vector<std::string> told;
  for (const Ending& ending : kEndings) {
    const auto count = std::count_if(trials.begin(), trials.end(), [&](const auto& t) { return t.second == &ending; });
    if (count == 0) continue;
    const std::string_view trial = !told.empty() ? "" : count == 1 ? " trial" : " trials";
    told.push_back(fmt::format("{}{} {}", count, trial, count == 1 ? ending.said_of_one : ending.said));
  }
  return join(told, ", ");
}

}  // namespace

bool is_printed_by_optuna(std::string_view beginning) {
  return beginning.find(kCreated) != std::string_view::npos ||
         (beginning.find(kTrial) != std::string_view::npos && beginning.find(kFinished) != std::string_view::npos);
}

std::string told_by_optuna(std::string_view printed) {
  Endings trials;
  std::string best;
  int studies = 0;
  for (const std::string_view line : split(printed, '\n')) {
    if (line.find(kCreated) != std::string_view::npos && ++studies > 1) return "";
    const auto at = line.find(kTrial);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = line.substr(at + kTrial.size());
    const auto blank = rest.find(' ');
    const auto number = parse_number<std::int64_t>(rest.substr(0, blank));
    if (!number || blank == std::string_view::npos) continue;
    if (const Ending* ending = ending_in(rest.substr(blank))) trials[*number] = ending;
    if (std::string named = best_in(rest); !named.empty()) best = std::move(named);
  }
  const std::string words = endings_words(trials);
  return words.empty() || best.empty() ? words : fmt::format("{}; the best value it names is {}", words, best);
}

}  // namespace headroom
