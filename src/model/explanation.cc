// SPDX-License-Identifier: Apache-2.0
#include "model/explanation.h"

#include <algorithm>
#include <initializer_list>

#include "base/strings.h"

namespace headroom {

std::string_view answer_name(Answer answer) {
  switch (answer) {
    case Answer::kYes:
      return "yes";
    case Answer::kNo:
      return "no";
    case Answer::kUnknown:
      break;
  }
  return "unknown";
}

Better better_by_name(std::string_view metric) {
  const std::string name = lower(metric);
  const auto has = [&](std::initializer_list<std::string_view> words) {
    return std::any_of(words.begin(), words.end(),
                       [&](std::string_view word) { return name.find(word) != std::string::npos; });
  };
  const bool higher = has({"acc", "auc", "f1", "score", "precision", "recall", "r2", "map", "bleu"});
  const bool lower_wins = has({"loss", "err", "rmse", "mae", "mse", "perplexity", "ppl"});
  if (higher == lower_wins) return Better::kUnknown;
  return higher ? Better::kHigher : Better::kLower;
}

}  // namespace headroom
