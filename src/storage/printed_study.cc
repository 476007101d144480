// SPDX-License-Identifier: Apache-2.0
#include "storage/printed_study.h"

#include <fmt/format.h>

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

}  // namespace

bool is_printed_by_optuna(std::string_view beginning) {
  return beginning.find(kCreated) != std::string_view::npos ||
         (beginning.find(kTrial) != std::string_view::npos && beginning.find(kFinished) != std::string_view::npos);
}

std::string told_by_optuna(std::string_view printed) {
  std::map<std::int64_t, std::size_t> trials;  // by number, how each ended
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
    for (std::size_t i = 0; i < kEndings.size(); ++i)
      if (rest.substr(blank).starts_with(kEndings[i].words)) trials[*number] = i;
    if (std::string named = best_in(rest); !named.empty()) best = std::move(named);
  }
  std::array<std::size_t, kEndings.size()> counts{};
  for (const auto& [number, ending] : trials) ++counts[ending];
  std::vector<std::string> told;
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (counts[i] > 0)
      told.push_back(fmt::format("{}{} {}", counts[i], told.empty() ? (counts[i] == 1 ? " trial" : " trials") : "",
                                 counts[i] == 1 ? kEndings[i].said_of_one : kEndings[i].said));
  const std::string words = join(told, ", ");
  return words.empty() || best.empty() ? words : fmt::format("{}; the best value it names is {}", words, best);
}

}  // namespace headroom
