// SPDX-License-Identifier: Apache-2.0
#include "compare/requirements.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "base/bytes.h"
#include "base/duration.h"
#include "base/strings.h"

namespace headroom::compare {

namespace {

constexpr std::string_view kExample = "--require 'accuracy>=0.97' --require 'peak_memory<22GB' --require 'busy>=40%'";

struct SenseText {
  std::string_view text;
  Sense sense;
};
constexpr std::array kSenses{SenseText{">=", Sense::kAtLeast}, SenseText{"<=", Sense::kAtMost},
                             SenseText{">", Sense::kMore}, SenseText{"<", Sense::kLess}};

bool keeps(const Requirement& requirement, double value) {
  switch (requirement.sense) {
    case Sense::kLess:
      return value < requirement.limit;
    case Sense::kAtMost:
      return value <= requirement.limit;
    case Sense::kMore:
      return value > requirement.limit;
    case Sense::kAtLeast:
      return value >= requirement.limit;
  }
  return false;
}

constexpr std::string_view kSpeedup = "speedup";  // of two runs; a figure of none

bool steps_may_differ(const Comparison& c) {
  return c.unit == "step" && std::any_of(c.reasons.begin(), c.reasons.end(), [](const ComparedReason& one) {
           return one.reason == CompareReason::kDifferentWork;
         });
}

bool wants_much(Sense sense) { return sense == Sense::kMore || sense == Sense::kAtLeast; }
bool is_worse(Sense sense, double value, double than) { return wants_much(sense) ? value < than : value > than; }

struct Number {
  double value;
  std::string_view suffix;
};
std::optional<Number> number_of(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number.value);
  if (error != std::errc() || !std::isfinite(number.value)) return std::nullopt;
  number.suffix = trim(text.substr(static_cast<std::size_t>(end - text.data())));
  return number;
}

Result<double> scale_of(FigureUnit unit, std::string_view suffix) {
  const auto either = [&](std::string_view name) { return suffix.empty() || suffix == name; };
  const std::string one = fmt::format("1{}", suffix);
  switch (unit) {
    case FigureUnit::kRatio:
      if (either("%")) return suffix.empty() ? 1.0 : 0.01;
      return fail(Errc::kInvalidInput, "", "a share is such as 0.4 or 40%");
    case FigureUnit::kBytes: {
      const auto bytes = parse_bytes(one);
      if (bytes) return static_cast<double>(*bytes);
      return fail(Errc::kInvalidInput, "", "a size is such as 22GB or 20GiB");
    }
    case FigureUnit::kWatts:
      if (either("W")) return 1.0;
      return fail(Errc::kInvalidInput, "", "power is in watts, such as 300W");
    case FigureUnit::kCelsius:
      if (either("C")) return 1.0;
      return fail(Errc::kInvalidInput, "", "a temperature is in degrees Celsius, such as 80C");
    case FigureUnit::kSeconds: {
      const auto time = parse_duration(one);
      if (time) return seconds(*time);
      return fail(Errc::kInvalidInput, "", "a time is such as 90s, 7m or 1.5h");
    }
    case FigureUnit::kNumber:
      break;
  }
  if (suffix.empty()) return 1.0;
  return fail(Errc::kInvalidInput, "", "it is a number without a unit");
}

std::string on_gpu(const Device& device) { return fmt::format("GPU {}", device.index); }

Figure share_busy(const Explanation& e, std::size_t device) {
  const Ledger& ledger = e.ledger;
  Figure figure{"busy", on_gpu(ledger.devices[device]), std::nullopt, "no reading says what the GPU did"};
  const Nanos observed = ledger.span() - ledger.total(Account::kUnobserved, device);
  if (observed <= 0) return figure;
  const Nanos busy = ledger.busy(device) - ledger.total(Account::kForeign, device);
  figure.value = static_cast<double>(busy) / static_cast<double>(observed);
  return figure;
}

bool is_of_others(const Ledger& ledger, std::size_t device) {
  return ledger.total(Account::kForeign, device) > 0 && ledger.busy(device) == ledger.total(Account::kForeign, device);
}

// Why readings do not tell a mean or a peak; "": they do.
std::string why_untold(const MetricStats* stats, bool job_computed) {
  constexpr std::int64_t kFewest = 3;  // the first and the last lie beside the job
  if (stats == nullptr) return "the recording has no reading of it";
  if (stats->samples < kFewest) return fmt::format("there are only {} readings of it", stats->samples);
  if (stats->metric == Metric::kMemoryUsed && stats->max <= 0 && job_computed)
    return "no reading lies where memory was held";
  return "";
}

void add_stats(const Explanation& e, std::size_t device, std::vector<Figure>& figures) {
  const auto of = std::find_if(e.devices.begin(), e.devices.end(),
                               [&](const DeviceStats& stats) { return stats.device == device; });
  const auto add = [&](Metric metric, std::string_view mean, std::string_view peak) {
    const MetricStats* stats = nullptr;
    if (of != e.devices.end())
      for (const MetricStats& one : of->metrics)
        if (one.metric == metric && one.samples > 0) stats = &one;
    const std::string why = why_untold(stats, e.ledger.busy(device) > 0);
    const auto put = [&](std::string_view name, double value) {
      if (name.empty()) return;
      figures.push_back({std::string(name), on_gpu(e.ledger.devices[device]),
                         why.empty() ? std::optional(value) : std::nullopt, why});
    };
    put(mean, stats != nullptr ? stats->mean : 0);
    put(peak, stats != nullptr ? stats->max : 0);
  };
  add(Metric::kGpuUtil, "mean_utilization", "");
  add(Metric::kMemoryUsed, "mean_memory", "peak_memory");
  add(Metric::kPower, "mean_power", "peak_power");
  add(Metric::kTemperature, "mean_temperature", "peak_temperature");
}

// The names of what the job wrote itself.
std::string own_metrics(const std::vector<Figure>& figures) {
  std::set<std::string> names;
  for (const Figure& figure : figures)
    if (figure_info(figure.name) == nullptr && figure.name != kSpeedup) names.insert(figure.name);
  return join(std::vector<std::string>(names.begin(), names.end()), ", ");
}

std::string why_none(const Requirement& requirement, const std::vector<Figure>& figures) {
  if (const FigureInfo* known = figure_info(requirement.name)) {
    if (known->of_each_gpu) return "no GPU of the job was recorded";
    if (requirement.name == "failed_tasks") return "it is no batch";
    if (requirement.name == "failed_trials") return "it is no study";
    return requirement.name == "duration" ? "it was not recorded" : "no steps were counted";
  }
  const std::string names = own_metrics(figures);
  return names.empty() ? "no metric of the job was recorded"
                       : fmt::format("no metric of this name was recorded, but {}", names);
}

std::string why_unknown(const Figure& figure) {
  return figure.of.empty() ? figure.why_not : fmt::format("{}: {}", figure.of, figure.why_not);
}

}  // namespace

std::string known_figures() {
  std::vector<std::string> names;
  for (const FigureInfo& figure : kFigures) names.emplace_back(figure.name);
  return fmt::format("{}, and of two runs {}", join(names, ", "), kSpeedup);
}

Result<Requirement> parse_requirement(std::string_view text) {
  const auto wrong = [&](const std::string& what, std::string hint) {
    return fail(Errc::kInvalidInput, fmt::format("--require '{}': {}", text, what), std::move(hint));
  };
  const std::size_t at = text.find_first_of("<>");
  if (at == std::string_view::npos)
    return wrong("no limit: name, <, <=, > or >=, and a number", fmt::format("in a shell with quotes: {}", kExample));
  Requirement requirement{.text = std::string(text), .name = std::string(trim(text.substr(0, at)))};
  const auto sense = std::find_if(kSenses.begin(), kSenses.end(),
                                  [&](const SenseText& s) { return text.substr(at).starts_with(s.text); });
  requirement.sense = sense->sense;
  const auto number = number_of(trim(text.substr(at + sense->text.size())));
  if (requirement.name.empty()) return wrong("no figure is named", fmt::format("such as {}", kExample));
  if (requirement.name.ends_with('='))
    return wrong("a comparison is one of <, <=, > and >=", fmt::format("such as {}", kExample));
  if (!number) return wrong("what stands behind the comparison is no number", fmt::format("such as {}", kExample));
  requirement.suffix = number->suffix;
  const FigureInfo* known = figure_info(requirement.name);
  if (known == nullptr && !number->suffix.empty())
    return wrong(
        fmt::format("there is no figure '{}' with a unit", requirement.name),
        fmt::format("known are {}; a metric that the job writes itself has a limit without a unit", known_figures()));
  if (known != nullptr) {
    const auto scale = scale_of(known->unit, number->suffix);
    if (!scale)
      return wrong(fmt::format("'{}' is no limit of {}", text.substr(at + sense->text.size()), known->name),
                   scale.error().hint);
    requirement.scale = *scale;
  }
  requirement.limit = number->value * requirement.scale;
  if (known != nullptr && known->unit == FigureUnit::kRatio && (requirement.limit < 0 || requirement.limit > 1))
    return wrong(fmt::format("{} is a share, from 0 to 1", known->name), "write 0.4 or 40%");
  return requirement;
}

std::vector<Figure> figures_of(const Explanation& e) {
  std::vector<Figure> figures;
  for (std::size_t device = 0; device < e.ledger.devices.size(); ++device) {
    if (is_of_others(e.ledger, device)) continue;
    figures.push_back(share_busy(e, device));
    add_stats(e, device, figures);
  }
  figures.push_back({"duration", "", seconds(e.ledger.span()), ""});
  const auto rate = [&](const char* name, const std::optional<double>& value) {
    if (value) figures.push_back({name, "", value, ""});
  };
  if (e.work) {
    rate("steps_per_second", e.work->steps_per_second);
    rate("samples_per_second", e.work->samples_per_second);
  }
  if (e.meta.origin != "batch")
    for (const SaidMetric& metric : e.said.metrics) figures.push_back({metric.name, "", metric.last, ""});
  return figures;
}

std::vector<Figure> figures_of_tasks(const std::vector<Sample>& attempts) {
  std::map<std::string, const Sample*> last;  // by task
  std::set<std::string> names;
  for (const Sample& attempt : attempts) last[attempt.task] = &attempt;
  std::int64_t failed = 0;
  for (const auto& [task, attempt] : last) {
    if (attempt->outcome != "succeeded") ++failed;
    for (const auto& [name, value] : attempt->metrics) names.insert(name);
  }
  std::vector<Figure> figures{{"failed_tasks", "", static_cast<double>(failed), ""}};
  for (const auto& [task, attempt] : last) {
    if (attempt->outcome != "succeeded") continue;
    for (const std::string& name : names) {
      Figure figure{name, fmt::format("task {}", task), std::nullopt, "none was recorded of it"};
      for (const auto& [written, value] : attempt->metrics)
        if (written == name) figure.value = value, figure.why_not.clear();
      figures.push_back(std::move(figure));
    }
  }
  return figures;
}

std::vector<Figure> figures_of_study(const StudyReport& report, const std::vector<std::string>& objectives) {
  std::int64_t failed = 0;
  for (const StateFacts& facts : report.states)
    if (facts.state == TrialState::kFail) failed += facts.count;
  std::vector<Figure> figures{{"failed_trials", "", static_cast<double>(failed), ""}};
  Figure best{"value", "", std::nullopt, "no trial has completed with a value"};
  if (report.directions.size() > 1) best.why_not = "the study has several objectives, and none is the best in all";
  if (!report.best.empty())
    best.value = report.best.back().value, best.of = fmt::format("trial {}", report.best.back().trial);
  figures.push_back(best);
  for (const std::string& name : objectives)
    if (name != best.name) best.name = name, figures.push_back(best);
  return figures;
}

std::vector<Figure> with_speedup(std::vector<Figure> figures, const Comparison& comparison) {
  const std::string name(kSpeedup);
  if (std::any_of(figures.begin(), figures.end(), [&](const Figure& figure) { return figure.name == name; }))
    return figures;
  if (!comparison.ratio) {
    figures.push_back({name, "", std::nullopt, "these two cannot be compared"});
  } else if (steps_may_differ(comparison)) {
    figures.push_back({name, "", std::nullopt, "the steps of A and B may hold different numbers of samples"});
  } else {
    figures.push_back({name, "the slow end of its 95 % interval", 1 / comparison.ratio->high, ""});
    figures.push_back({name, "the fast end of its 95 % interval", 1 / comparison.ratio->low, ""});
  }
  return figures;
}

JudgedRequirement judged(const Requirement& requirement, const std::vector<Figure>& figures) {
  JudgedRequirement answer{.requirement = requirement};
  const Figure *worst = nullptr, *unknown = nullptr;  // of what it is about; the first one without a value
  for (const Figure& figure : figures) {
    if (figure.name != requirement.name) continue;
    if (!figure.value)
      unknown = unknown != nullptr ? unknown : &figure;
    else if (worst == nullptr || is_worse(requirement.sense, *figure.value, *worst->value))
      worst = &figure;
  }
  if (worst != nullptr) {
    answer.value = worst->value, answer.of = worst->of;
    const bool kept = keeps(requirement, *worst->value);
    if (unknown == nullptr || !kept) answer.kept = kept;  // broken it is, whatever the unknown one is
  }
  if (!answer.kept) answer.why_not = unknown != nullptr ? why_unknown(*unknown) : why_none(requirement, figures);
  return answer;
}

std::vector<JudgedRequirement> judged(const std::vector<Requirement>& requirements,
                                      const std::vector<Figure>& figures) {
  std::vector<JudgedRequirement> answers;
  for (const Requirement& requirement : requirements) answers.push_back(judged(requirement, figures));
  return answers;
}

bool all_kept(const std::vector<JudgedRequirement>& requirements) {
  return std::all_of(requirements.begin(), requirements.end(),
                     [](const JudgedRequirement& one) { return one.kept.value_or(false); });
}

}  // namespace headroom::compare
