// SPDX-License-Identifier: Apache-2.0
#include "compare/verify.h"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/human.h"
#include "base/json.h"
#include "base/strings.h"
#include "compare/parameters.h"

namespace headroom::compare {

namespace {

using PlanJson = nlohmann::json;

std::string word_of(const PlanJson& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<double> number_of(const PlanJson& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  const double value = found->get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

const PlanJson& list_of(const PlanJson& object, const char* key) {
  static const PlanJson kNone = PlanJson::array();
  const auto found = object.find(key);
  return found != object.end() && found->is_array() ? *found : kNone;
}

std::optional<Cause> cause_of(const std::string& id) {
  for (const CauseInfo& cause : all_causes())
    if (cause.id == id) return cause.cause;
  return std::nullopt;
}

// Factors of time: {"gain": {"low": 1.1, "high": 1.4}}.
Result<Gain> gain_of(const PlanJson& object, const std::string& of) {
  const auto gain = object.find("gain");
  if (gain != object.end() && gain->is_object()) {
    const auto low = number_of(*gain, "low"), high = number_of(*gain, "high");
    if (low && high && *low > 0 && *high >= *low) return Gain{.low = *low, .high = *high};
  }
  return fail(Errc::kInvalidInput, fmt::format("the gain of {} is no interval of factors", of),
              "write the plan again: headroom plan REC --json > plan.json");
}

// "batch_size=32:128"
std::optional<std::pair<double, double>> batch_of(std::string_view setting) {
  constexpr std::string_view kSizes = "batch_size=";
  const auto colon = setting.find(':');
  if (!setting.starts_with(kSizes) || colon == std::string_view::npos) return std::nullopt;
  const auto from = parse_number<double>(setting.substr(kSizes.size(), colon - kSizes.size())),
             to = parse_number<double>(setting.substr(colon + 1));
  if (!from || !to || !(*from > 0) || !(*to > 0) || !std::isfinite(*from) || !std::isfinite(*to)) return std::nullopt;
  return std::pair(*from, *to);
}

Safety safety_of(const std::string& name) {
  for (const SafetyInfo& safety : kSafeties)
    if (safety.name == name) return safety.id;
  return Safety::kSafe;
}

Result<Option> option_of(const PlanJson& json, std::size_t number) {
  Option option;
  if (json.is_object()) option.id = word_of(json, "id");
  if (option.id.empty())
    return fail(Errc::kInvalidInput, fmt::format("option {} has no id", number),
                "write the plan again: headroom plan REC --json > plan.json");
  const auto gain = json.find("gain");
  option.promises = gain != json.end() && !gain->is_null();
  if (option.promises) {
    HR_TRY(option.gain, gain_of(json, "option " + option.id));
  }
  option.title = word_of(json, "title"), option.safety = safety_of(word_of(json, "safety"));
  option.cause = cause_of(word_of(json, "cause"));
  option.batch_sizes = batch_of(word_of(json, "setting"));
  return option;
}

}  // namespace

Result<Plan> read_plan(std::string_view text) {
  const PlanJson json = parse_json<PlanJson>(text);
  const std::string schema = json.is_object() ? word_of(json, "schema") : "";
  if (!schema.starts_with("headroom.plan/"))
    return fail(Errc::kInvalidInput, json.is_discarded() ? "it is no JSON" : "it is no answer of headroom plan",
                "headroom plan REC --json > plan.json writes one");
  if (schema != "headroom.plan/1")
    return fail(Errc::kUnsupported, fmt::format("it is of a newer version ({})", schema),
                "use that version of headroom");
  Plan plan;
  plan.recording = word_of(json, "recording");
  if (const auto recording = json.find("recording"); recording != json.end() && recording->is_object())
    plan.recording = word_of(*recording, "path");
  std::size_t number = 0;
  for (const PlanJson& option : list_of(json, "options")) {
    HR_TRY(Option planned, option_of(option, ++number));
    plan.options.push_back(std::move(planned));
  }
  for (const PlanJson& together : list_of(json, "after")) {
    if (!together.is_object()) continue;
    OptionsTogether planned;
    for (const PlanJson& id : list_of(together, "options"))
      if (id.is_string()) planned.options.push_back(id.get<std::string>());
    auto gain = gain_of(together, "a combination");
    if (!gain) continue;  // it is only needed where it was applied
    planned.gain = std::move(*gain);
    std::sort(planned.options.begin(), planned.options.end());
    plan.after.push_back(std::move(planned));
  }
  return plan;
}

namespace {

const Option* find_option(const Plan& plan, const std::string& id) {
  const auto found = std::find_if(plan.options.begin(), plan.options.end(), [&](const auto& o) { return o.id == id; });
  return found == plan.options.end() ? nullptr : &*found;
}

std::string ids_of(const Plan& plan) {
  std::vector<std::string> ids;
  for (const Option& option : plan.options)
    if (option.promises) ids.push_back(option.id);
  return join(ids, ", ");
}

// "1 (start_loader_workers), 3 (local_data)", by their places in the plan.
std::string numbered(const Plan& plan) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < plan.options.size(); ++i)
    if (plan.options[i].promises) names.push_back(fmt::format("{} ({})", i + 1, plan.options[i].id));
  return join(names, ", ");
}

VerifiedOption predicted(const Plan& plan, std::vector<std::string> applied) {
  VerifiedOption option{.ids = applied};
  if (applied.size() == 1) {
    if (const Option* planned = find_option(plan, applied[0])) {
      option.cause = planned->cause;
      if (planned->promises) option.low = planned->gain.low, option.high = planned->gain.high;
    }
    return option;
  }
  std::sort(applied.begin(), applied.end());
  for (const OptionsTogether& together : plan.after)
    if (together.options == applied) option.low = together.gain.low, option.high = together.gain.high;
  return option;
}

bool all_about_work(const Comparison& comparison) {
  return std::all_of(comparison.reasons.begin(), comparison.reasons.end(), [](const ComparedReason& reason) {
    return !reason.refuses || reason.reason == CompareReason::kDifferentWork ||
           reason.reason == CompareReason::kFasterWithMoreWork;
  });
}

bool refuses_for(const Comparison& comparison, CompareReason reason) {
  return std::any_of(comparison.reasons.begin(), comparison.reasons.end(),
                     [&](const ComparedReason& one) { return one.refuses && one.reason == reason; });
}

// A short run after a long one may be faster per step: that is no sign of anything. Batches of which one runs more
// tasks at once are compared from the first start to the last end, as a plan's gains are.
Comparison compared(const Side& before, const Side& after, CompareRequest request) {
  const bool one_each = before.samples.size() == 1 && after.samples.size() == 1;
  if (request.by != By::kAuto) return compare(before, after, request);
  if (!one_each || before.steps.empty() || after.steps.empty()) {
    Comparison by_runs = compare(before, after, request);
    if (!refuses_for(by_runs, CompareReason::kConcurrencyDiffersOrUnknown)) return by_runs;
    request.by = By::kWhole;
    Comparison whole = compare(before, after, request);
    return whole.comparable() ? whole : by_runs;
  }
  request.by = By::kWhole;
  Comparison whole = compare(before, after, request);
  if (whole.comparable() || !all_about_work(whole)) return whole;
  request.by = By::kSteps;
  return compare(before, after, request);
}

// What the options were to end is no reason against comparing the state before with that after.
std::vector<CompareReason> mended_by(const Plan& plan, const std::vector<std::string>& applied) {
  std::vector<CompareReason> mended;
  for (const std::string& id : applied) {
    const Option* option = find_option(plan, id);
    if (option == nullptr || !option->cause) continue;
    if (*option->cause == Cause::kForeignTenant) mended.push_back(CompareReason::kOtherTenants);
    if (*option->cause == Cause::kThrottling) mended.push_back(CompareReason::kThrottled);
  }
  return mended;
}

// A step holds another number of samples after these.
bool changes_steps(const Plan& plan, const std::vector<std::string>& applied) {
  constexpr std::array<std::string_view, 2> kOptions{"larger_batch", "less_memory"};
  return std::any_of(applied.begin(), applied.end(), [&](const std::string& id) {
    const Option* option = find_option(plan, id);
    return std::find(kOptions.begin(), kOptions.end(), id) != kOptions.end() ||
           (option != nullptr && (option->batch_sizes || option->cause == Cause::kBatchTooSmall));
  });
}

// Where a run counts no samples and does not say its batch size, the plan does. True: it was asked.
bool take_sizes(const Plan& plan, const std::vector<std::string>& applied, Side& before, Side& after) {
  bool taken = false;
  for (const std::string& id : applied) {
    const Option* option = find_option(plan, id);
    if (option == nullptr || !option->batch_sizes) continue;
    for (const auto& [side, size] :
         {std::pair(&before, option->batch_sizes->first), std::pair(&after, option->batch_sizes->second)})
      for (Sample& run : side->samples) {
        if (run.seen.value_or(0) > 0 || batch_size_of(run)) continue;
        run.asked.emplace_back("batch_size", fmt::format("{:g}", size));
        taken = true;
      }
  }
  return taken;
}

}  // namespace

Result<std::vector<std::string>> applied_options(const Plan& plan, const std::vector<std::string>& said) {
  const auto promising =
      std::count_if(plan.options.begin(), plan.options.end(), [](const auto& option) { return option.promises; });
  if (said.empty()) {
    if (promising == 1) return std::vector<std::string>{ids_of(plan)};
    if (promising == 0)
      return fail(Errc::kInvalidInput,
                  fmt::format("the plan {}: there is nothing to verify",
                              plan.options.empty() ? "has no option" : "promises no gain"),
                  "headroom compare A B compares any two runs");
    return fail(Errc::kInvalidInput, fmt::format("the plan has {} options with a gain; which were applied?", promising),
                fmt::format("--applied with its number in the plan or its name, of {}", numbered(plan)));
  }
  std::vector<std::string> applied;
  for (const std::string& word : said) {
    const auto number = parse_number<std::size_t>(word);
    const bool by_number = number && *number >= 1 && *number <= plan.options.size();
    const std::string& id = by_number ? plan.options[*number - 1].id : word;
    if (find_option(plan, id) == nullptr)
      return fail(
          Errc::kInvalidInput, fmt::format("--applied: the plan has no option {}", id),
          promising > 0 ? "it promises a gain of " + numbered(plan) : "headroom compare A B compares any two runs");
    if (std::find(applied.begin(), applied.end(), id) == applied.end()) applied.push_back(id);
  }
  return applied;
}

QualityVerdict quality_of(const ComparedMetric& metric) {
  constexpr double kOneRun = 0.01, kDeviations = 2;
  QualityVerdict verdict{.name = metric.name, .a = metric.a, .b = metric.b};
  const Better better = better_by_name(metric.name);
  if (better == Better::kUnknown) return verdict;
  const double worse = better == Better::kHigher ? metric.a - metric.b : metric.b - metric.a;
  double chance = kOneRun * std::abs(metric.a);
  if (metric.a_spread && metric.b_spread)
    chance = kDeviations * std::sqrt(*metric.a_spread * *metric.a_spread + *metric.b_spread * *metric.b_spread);
  verdict.equal_work = metric.equal_work;
  if (std::isfinite(worse) && metric.equal_work) verdict.lost = worse > chance ? Answer::kYes : Answer::kNo;
  return verdict;
}

void judge(const std::vector<QualityVerdict>& quality, bool risky, VerifiedOption& option) {
  if (!option.measured) {
    option.why = "the two runs cannot be compared";
    return;
  }
  if (!option.low || !option.high) {
    option.why =
        option.ids.size() == 1 ? "the plan promised no gain of it" : "the plan did not simulate these options together";
    return;
  }
  const MeasuredGain& measured = *option.measured;
  option.beyond = measured.low > *option.high;
  if (measured.value >= *option.low) {
    option.kept = true;
    option.why = option.beyond ? "it gained more than was held possible: look whether both did the same work"
                               : "the measured gain is within what was predicted";
    if (!option.beyond && measured.value > *option.high) option.why = "the measured gain reaches what was predicted";
    if (measured.low <= 1 && measured.high >= 1) {
      option.kept.reset();
      option.why =
          "what was measured is as much as was predicted, but these runs cannot tell it from no difference; "
          "more pairs may (headroom ab)";
    }
  } else if (measured.high < *option.low) {
    option.kept = false;
    option.why = "the measured gain is below what was predicted, its whole interval";
  } else {
    option.why = "the measured gain is below what was predicted, but its interval is not: more repeats would tell";
  }
  for (const QualityVerdict& verdict : quality) {
    if (verdict.lost != Answer::kYes) continue;
    option.kept = false;
    option.why = fmt::format("{} is worse: {:.5g}, and was {:.5g}", verdict.name, verdict.b, verdict.a);
    return;
  }
  const bool judged = std::any_of(quality.begin(), quality.end(), [](const auto& q) { return q.lost == Answer::kNo; });
  if (risky && !judged && option.kept.value_or(false)) {
    option.kept.reset();
    option.why += "; whether the results are as good is not known, since no quality was printed";
    if (!quality.empty())
      option.why +=
          fmt::format(" after the same work in both (headroom.metric(\"{}\", ...) at the same samples would tell)",
                      quality.front().name);
  }
}

Verification verify(const Plan& plan, const std::vector<std::string>& applied, Side before, Side after,
                    CompareRequest request) {
  request.mended = mended_by(plan, applied);
  request.other_steps = changes_steps(plan, applied);
  const bool sizes_of_plan = take_sizes(plan, applied, before, after);
  Verification result{.applied = predicted(plan, applied), .comparison = compared(before, after, request)};
  if (sizes_of_plan && result.comparison.ratio)
    result.comparison.reasons.push_back(
        {CompareReason::kDifferentWork, "the samples of a step are the plan's: the runs do not say them", false});
  if (const auto& ratio = result.comparison.ratio)
    result.applied.measured = MeasuredGain{1 / ratio->value, 1 / ratio->high, 1 / ratio->low};
  const bool risky = std::any_of(applied.begin(), applied.end(), [&](const std::string& id) {
    const Option* option = find_option(plan, id);
    return option != nullptr && option->safety == Safety::kRisky;
  });
  for (const ComparedMetric& metric : result.comparison.metrics) {
    const QualityVerdict verdict = quality_of(metric);
    if (verdict.lost != Answer::kUnknown || !verdict.equal_work) result.quality.push_back(verdict);
  }
  judge(result.quality, risky, result.applied);
  return result;
}

}  // namespace headroom::compare
