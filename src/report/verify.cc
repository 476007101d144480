// SPDX-License-Identifier: Apache-2.0
#include "report/verify.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "base/json.h"
#include "base/strings.h"
#include "base/visible.h"
#include "report/compare.h"
#include "report/json_values.h"

namespace headroom::report {

namespace {

std::string factors(double low, double high) { return fmt::format("{:.2f}x to {:.2f}x", low, high); }

Json option_json(const VerifiedOption& option, const std::string& id, bool alone) {
  Json json{{"id", id}, {"cause", alone && option.cause ? Json(info(*option.cause).id) : Json(nullptr)}};
  json["predicted"] =
      alone && option.low && option.high ? Json{{"low", *option.low}, {"high", *option.high}} : Json(nullptr);
  json["measured"] =
      alone && option.measured
          ? Json{{"value", option.measured->value}, {"low", option.measured->low}, {"high", option.measured->high}}
          : Json(nullptr);
  json["kept"] = alone ? optional_json(option.kept) : Json(nullptr);
  return json;
}

Json outcome_json(const PredictionOutcome& outcome) {
  return {
      {"at", outcome.at},
      {"option", outcome.option},
      {"cause", outcome.cause ? Json(info(*outcome.cause).id) : Json(nullptr)},
      {"predicted", {{"low", outcome.low}, {"high", outcome.high}}},
      {"measured", {{"value", outcome.measured.value}, {"low", outcome.measured.low}, {"high", outcome.measured.high}}},
      {"kept", optional_json(outcome.kept)}};
}

// What `ab` answers says nothing of the plan; its runs do.
std::string then_verify(const Verification& v) {
  if (v.comparison.comparable() || v.comparison.valid_command.empty()) return "";
  constexpr int kPairs = 5;  // that it makes unless told otherwise
  const auto runs = [](char side) {
    std::vector<std::string> names;
    for (int i = 1; i <= kPairs; ++i) names.push_back(fmt::format("DIR/runs/{}-{:02}.hrec", side, i));
    return join(names, ",");
  };
  return fmt::format("Then, DIR being the folder that it names:\nheadroom verify {} {} --before {} --applied {}\n",
                     typed_word(v.plan), runs('B'), runs('A'), join(v.applied.ids, ","));
}

std::string newest_outcomes(const std::vector<PredictionOutcome>& outcomes) {
  constexpr std::size_t kShown = 5, kOption = 22, kPredicted = 18, kMeasured = 11;
  std::string text = "  " + pad_right(outcomes.size() > kShown ? "newest" : "option", kOption) +
                     pad_right("predicted", kPredicted) + pad_right("measured", kMeasured) + "\n";
  for (std::size_t i = outcomes.size(); i-- > 0 && outcomes.size() - i <= kShown;) {
    const PredictionOutcome& one = outcomes[i];
    text += "  " + pad_right(one.option, kOption) + pad_right(factors(one.low, one.high), kPredicted) +
            pad_right(fmt::format("{:.2f}x", one.measured.value), kMeasured) +
            (one.measured.low > one.high ? "more than was held possible"
             : !one.kept                 ? "not known"
             : *one.kept                 ? "delivered"
                                         : "not delivered") +
            "\n";
  }
  return text;
}

}  // namespace

std::string verify_words(const VerifiedOption& applied) {
  const std::string which = join(applied.ids, " and ");
  if (!applied.kept) return fmt::format("Whether {} delivered is not known: {}.", which, applied.why);
  return fmt::format("{} {}: {}.", which, *applied.kept ? "delivered" : "did not deliver", applied.why);
}

std::string to_text(const Verification& v, const TextOptions& given) {
  const TextOptions options = clamped(given);
  const auto row = [&](std::string_view label, const std::string& words) {
    constexpr std::size_t kLabel = 14;
    return wrap(words, options.width, "  " + pad_right(label, kLabel), std::string(kLabel + 2, ' '));
  };
  const VerifiedOption& applied = v.applied;
  std::string text = wrap(bold(verify_words(applied), options), options.width, "", "");
  if (applied.low && applied.high)
    text += row("predicted", factors(*applied.low, *applied.high) + " of time at equal work");
  if (applied.measured)
    text += row("measured", fmt::format("{:.2f}x (95 % interval {})", applied.measured->value,
                                        factors(applied.measured->low, applied.measured->high)));
  for (const QualityVerdict& quality : v.quality)
    text += row(quality.name, fmt::format("{:.5g} -> {:.5g}, {}", quality.a, quality.b,
                                          !quality.equal_work            ? "not known: not after the same work"
                                          : quality.lost == Answer::kYes ? "worse"
                                                                         : "not worse"));
  if (!v.remembered && v.applied.ids.size() == 1 && !v.applied.cause && v.applied.measured)
    text += wrap("Not kept for headroom plan --history: it is about no single cause.", options.width, "", "");
  if (v.remembered)
    text +=
        wrap("Remembered: headroom plan --history shows how far such predictions came true.", options.width, "", "");
  return text + "\n" + to_text(v.comparison, options) + then_verify(v);
}

std::string to_json(const Verification& v) {
  Json json{{"schema", "headroom.verify/1"}, {"plan", v.plan}, {"recording", v.recording}};
  json["options"] = Json::array();
  const bool alone = v.applied.ids.size() == 1;
  for (const std::string& id : v.applied.ids) json["options"].push_back(option_json(v.applied, id, alone));
  json["together"] = option_json(v.applied, join(v.applied.ids, "+"), true);
  json["together"]["beyond"] = v.applied.beyond;
  json["together"]["why"] = v.applied.why;
  json["quality"] = Json::array();
  for (const QualityVerdict& quality : v.quality)
    json["quality"].push_back({{"name", quality.name},
                               {"a", quality.a},
                               {"b", quality.b},
                               {"lost", answer_name(quality.lost)},
                               {"equal_work", quality.equal_work}});
  json["remembered"] = v.remembered;
  json["comparison"] = parse_json<Json>(to_json(v.comparison));
  return dump(json);
}

std::string predictions_text(const std::vector<CauseHistory>& causes, const std::vector<PredictionOutcome>& outcomes,
                             const TextOptions& given) {
  const TextOptions options = clamped(given);
  if (outcomes.empty())
    return wrap(
        "No prediction has been verified yet: headroom verify PLAN REC does. Until then a plan promises half of what "
        "the recording shows that a change saves, and nothing where it shows no such thing.",
        options.width, "", "");
  const std::string all = count_of(outcomes.size(), "prediction");
  if (causes.empty()) return wrap(fmt::format("{} verified.", all), options.width, "", "") + newest_outcomes(outcomes);
  std::string text =
      wrap(fmt::format("{} verified. Of the gain that was held possible came true:", all), options.width, "", "");
  constexpr std::size_t kCause = 30;
  text += "  " + pad_right("cause", kCause) + pad_left("verified", 9) + pad_left("kept", 6) + "   of the next one\n";
  for (const CauseHistory& cause : causes)
    text += fmt::format("  {}{}{}   {} to {}\n", pad_right(info(cause.cause).id, kCause),
                        pad_left(human_count(cause.n), 9), pad_left(human_count(cause.kept), 6),
                        human_percent(cause.shrink_low), human_percent(cause.shrink_high));
  return text + newest_outcomes(outcomes);
}

std::string predictions_json(const std::vector<CauseHistory>& causes, const std::vector<PredictionOutcome>& outcomes) {
  Json json{{"schema", "headroom.predictions/1"}, {"causes", Json::array()}, {"outcomes", Json::array()}};
  for (const CauseHistory& cause : causes)
    json["causes"].push_back({{"cause", info(cause.cause).id},
                              {"outcomes", cause.n},
                              {"kept", cause.kept},
                              {"shrink_low", cause.shrink_low},
                              {"shrink_high", cause.shrink_high}});
  for (const PredictionOutcome& outcome : outcomes) json["outcomes"].push_back(outcome_json(outcome));
  return dump(json);
}

}  // namespace headroom::report
