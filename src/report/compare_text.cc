// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/human.h"
#include "base/visible.h"
#include "report/compare.h"

namespace headroom::report {

namespace {

constexpr std::size_t kLabel = 18, kNarrow = 60;

std::string row(std::string_view label, const std::string& words, const TextOptions& options) {
  if (options.width < kNarrow) return wrap(words, options.width, fmt::format("  {}: ", label), "    ");
  return wrap(words, options.width, "  " + pad_right(label, kLabel), std::string(kLabel + 2, ' '));
}

std::string label_of(CompareReason reason) {
  switch (reason) {
    case CompareReason::kDifferentTasks:
      return "different tasks";
    case CompareReason::kDifferentWork:
      return "different work";
    case CompareReason::kWorkUnknown:
      return "work not counted";
    case CompareReason::kConcurrencyDiffersOrUnknown:
      return "concurrency";
    case CompareReason::kDifferentHardware:
      return "hardware";
    case CompareReason::kInterleavedWithOtherWork:
      return "other work between";
    case CompareReason::kCacheStateUnknown:
      return "page cache";
    case CompareReason::kOutcomesDiffer:
      return "outcomes";
    case CompareReason::kParametersUnknown:
      return "parameters";
    case CompareReason::kParametersDifferUnintended:
      return "parameters differ";
    case CompareReason::kTooFewRepeats:
      return "repeats";
    case CompareReason::kNotInterleaved:
      return "order";
    case CompareReason::kOtherTenants:
      return "others on the GPU";
    case CompareReason::kThrottled:
      return "lowered clocks";
    case CompareReason::kFasterWithMoreWork:
      return "implausible";
  }
  return "";
}

std::string reasons_text(const Comparison& c, bool refusing, const TextOptions& options) {
  std::string text;
  for (const ComparedReason& reason : c.reasons)
    if (reason.refuses == refusing) text += row(label_of(reason.reason), reason.text, options);
  return text;
}

std::string refused(const Comparison& c, const TextOptions& options) {
  const auto count = std::count_if(c.reasons.begin(), c.reasons.end(), [](const auto& r) { return r.refuses; });
  std::string text =
      wrap(bold(fmt::format("These two cannot be compared, for {}:", count_of(count, "reason")), options),
           options.width, "", "");
  text += reasons_text(c, true, options);
  if (const std::string also = reasons_text(c, false, options); !also.empty())
    text += wrap("Not enough to refuse, but it would count, too:", options.width, "", "") + also;
  if (!c.valid_command.empty()) text += wrap("A valid pair: " + c.valid_command, options.width, "", "  ");
  return text;
}

// Three digits of a time below a second: two sides may differ in the last.
std::string time_words(double seconds) {
  if (!(seconds > 0)) return "-";
  if (seconds < 1e-3) return fmt::format("{:.3g} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.3g} ms", seconds * 1e3);
  return seconds < 60 ? fmt::format("{:.2f} s", seconds)
                      : human_duration(static_cast<Nanos>(std::min(seconds, 9e9) * 1e9));
}

std::string answer(const Comparison& c) {
  const Ratio& ratio = *c.ratio;
  const auto percent = [](double by) { return human_percent(std::abs(by)); };
  const std::string interval = fmt::format("95 % interval {:.3f} to {:.3f}", ratio.low, ratio.high);
  if (!c.differs())
    return fmt::format("No difference can be told: B takes {:.3f} of A's time per {} ({}).", ratio.value, c.unit,
                       interval);
  return fmt::format("B is {} by {}: it takes {:.3f} of A's time per {} ({}).", ratio.value < 1 ? "faster" : "slower",
                     percent(ratio.value < 1 ? 1 / ratio.value - 1 : ratio.value - 1), ratio.value, c.unit, interval);
}

std::string per_unit(const ComparedSide& side) {
  return side.work && *side.work > 0 ? time_words(side.seconds / *side.work) : "";
}

std::string parts_text(const char* title, const std::vector<ComparedPart>& parts, const Comparison& c,
                       const TextOptions& options) {
  if (parts.empty()) return "";
  constexpr std::size_t kShown = 6;
  constexpr double kWorthALine = 0.005;  // of the largest
  const std::size_t name = options.width < kNarrow ? 14 : 22;
  std::string text = wrap(fmt::format("{}, per {}", title, c.unit), options.width, "", "");
  text += fmt::format("  {}{}{}\n", pad_right("", name), pad_left("A", 12), pad_left("B", 12));
  std::size_t lines = 0;
  const double largest = std::max(parts.front().a_seconds, parts.front().b_seconds);
  for (const ComparedPart& part : parts) {
    if (!options.full && (lines == kShown || std::max(part.a_seconds, part.b_seconds) < kWorthALine * largest)) break;
    text += fmt::format("  {}{}{}\n", pad_right(visible(part.name), name), pad_left(time_words(part.a_seconds), 12),
                        pad_left(time_words(part.b_seconds), 12));
    ++lines;
  }
  return text;
}

std::string metric_words(double mean, const std::optional<double>& spread) {
  return spread ? fmt::format("{:.5g} (+-{:.2g})", mean, *spread) : fmt::format("{:.5g}", mean);
}

std::string changes_text(const Comparison& c, const TextOptions& options) {
  std::string text;
  for (const ComparedParameter& parameter : c.parameters) {
    const auto value = [](const std::string& of) { return of.empty() ? std::string("not set") : of; };
    text += row(parameter.name,
                fmt::format("{} -> {}{}", value(parameter.a), value(parameter.b),
                            parameter.intended ? "" : "  (not said to differ)"),
                options);
  }
  return text.empty() ? "" : "What differs\n" + text;
}

std::string metrics_text(const Comparison& c, const TextOptions& options) {
  if (c.metrics.empty()) return "";
  std::string text = "What the programs printed\n";
  for (const ComparedMetric& metric : c.metrics)
    text +=
        row(metric.name,
            fmt::format("{} -> {}", metric_words(metric.a, metric.a_spread), metric_words(metric.b, metric.b_spread)),
            options);
  return text;
}

std::string artefacts_text(const Comparison& c, const TextOptions& options) {
  if (c.artefacts.empty()) return "";
  const auto same = std::count_if(c.artefacts.begin(), c.artefacts.end(), [](const auto& a) { return a.same; });
  const auto all = static_cast<std::int64_t>(c.artefacts.size());
  std::string text = wrap(
      same == all
          ? fmt::format("Artefacts: {} the same.", all == 1 ? "it is" : fmt::format("all {} are", human_count(all)))
          : fmt::format("Artefacts: {} of {} differ.", human_count(all - same), human_count(all)),
      options.width, "", "");
  std::size_t lines = 0;
  constexpr std::size_t kShown = 5;
  for (const ComparedArtefact& artefact : c.artefacts) {
    if (artefact.same || (!options.full && lines == kShown)) continue;
    text += wrap(fmt::format("{}: {}", artefact.name, artefact.difference), options.width, "  ", "    ");
    ++lines;
  }
  return text;
}

}  // namespace

std::string to_text(const Comparison& c, const TextOptions& given) {
  const TextOptions options = clamped(given);
  std::string text;
  if (!c.comparable()) {
    text = refused(c, options) + changes_text(c, options) + artefacts_text(c, options);
    return text;
  }
  text = wrap(bold(answer(c), options), options.width, "", "");
  text += row("per " + c.unit, fmt::format("A {}, B {}; {}", per_unit(c.a), per_unit(c.b), c.method), options);
  text += reasons_text(c, false, options);
  text += changes_text(c, options) + metrics_text(c, options);
  text += parts_text("GPU time", c.accounts, c, options) + parts_text("Phases", c.phases, c, options);
  return text + artefacts_text(c, options);
}

}  // namespace headroom::report
