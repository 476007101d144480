// SPDX-License-Identifier: Apache-2.0
#include "model/explanation.h"

#include <algorithm>
#include <array>

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
  constexpr std::array kHigher{"acc",       "accuracy", "auc", "auroc", "f1",  "score",
                               "precision", "recall",   "r2",  "map",   "bleu"};
  constexpr std::array kLower{"loss", "err", "error", "rmse", "mae", "mse", "perplexity", "ppl"};
  constexpr std::array kOther{"scale", "weight", "coef", "norm", "neg", "count", "grad", "lr"};  // of a loss, say
  bool higher = false, lower_wins = false;
  const auto take = [&](std::string_view word) {
    // "acc5", "mAP50"
    const std::string_view plain = word.substr(0, word.find_last_not_of("0123456789") + 1);
    const auto is_one_of = [&](const auto& words) {
      return std::any_of(words.begin(), words.end(),
                         [&](std::string_view known) { return word == known || plain == known; });
    };
    if (is_one_of(kOther)) higher = lower_wins = true;
    higher = higher || is_one_of(kHigher);
    lower_wins = lower_wins || is_one_of(kLower);
  };
  const std::string name = lower(metric);
  for (std::size_t begin = 0; begin < name.size();) {
    constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789";
    const std::size_t end = std::min(name.find_first_not_of(kLetters, begin), name.size());
    take(std::string_view(name).substr(begin, end - begin));
    begin = end + 1;
  }
  if (higher == lower_wins) return Better::kUnknown;
  return higher ? Better::kHigher : Better::kLower;
}

const MetricStats* DeviceStats::find(Metric metric) const {
  const auto found =
      std::find_if(metrics.begin(), metrics.end(), [&](const auto& one) { return one.metric == metric; });
  return found == metrics.end() ? nullptr : &*found;
}

}  // namespace headroom
