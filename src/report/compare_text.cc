// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "base/visible.h"
#include "report/compare.h"
#include "report/compare_words.h"
#include "report/requirements.h"

namespace headroom::report {

namespace {

constexpr std::size_t kLabel = 18, kNarrow = 60;

std::string row(std::string_view label, const std::string& words, const TextOptions& options) {
  if (options.width < kNarrow) return wrap(words, options.width, fmt::format("  {}: ", label), "    ");
  const std::string own = display_width(label) < kLabel ? pad_right(label, kLabel) : fmt::format("{}: ", label);
  return wrap(words, options.width, "  " + own, std::string(kLabel + 2, ' '));
}

std::string reasons_text(const Comparison& c, bool refusing, const TextOptions& options) {
  std::string text;
  for (const ComparedReason& reason : c.reasons)
    if (reason.refuses == refusing) text += row(reason_label(reason.reason), reason.text, options);
  return text;
}

std::string refused(const Comparison& c, const TextOptions& options) {
  std::string text = wrap(bold(refusal_words(c) + ":", options), options.width, "", "");
  text += reasons_text(c, true, options);
  if (const std::string also = reasons_text(c, false, options); !also.empty())
    text += wrap("Not enough to refuse, but it would count, too:", options.width, "", "") + also;
  if (c.valid_command.empty()) return text;
  constexpr std::string_view kLead = "A valid pair:";
  const std::string command = visible(c.valid_command);  // never broken, so that it can be pasted
  const bool beside = kLead.size() + 1 + display_width(command) <= options.width;
  text += fmt::format("{}{}{}\n", kLead, beside ? " " : "\n", command);
  return text + (c.valid_note.empty() ? "" : wrap(c.valid_note + ".", options.width, "  ", "  "));
}

// Two figures for one pair would puzzle whoever meets the second one elsewhere.
std::string other_measure(const Comparison& c, const TextOptions& options) {
  if (!c.other) return "";
  const bool whole = c.other->unit == "run";
  const Ratio& ratio = c.other->ratio;
  return row("per " + c.other->unit,
             fmt::format("{:.3f} ({:.3f} to {:.3f}): {}", ratio.value, ratio.low, ratio.high,
                         whole ? "the whole runs, with what they took beside their steps, such as start-up"
                               : "the steps alone, without what the runs took beside them, such as start-up"),
             options);
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
            fmt::format("{} -> {}{}", metric_words(metric.a, metric.a_spread), metric_words(metric.b, metric.b_spread),
                        metric.equal_work ? "" : ", not after the same work"),
            options);
  return text;
}

std::string figures_text(const Comparison& c, const TextOptions& options) {
  const Table table = figures_table(c.figures);
  if (!options.full || table.rows.empty()) return "";
  constexpr std::size_t kFigure = 26;
  std::string text = table.caption + "\n";
  text += fmt::format("  {}{}{}\n", pad_right("", kFigure), pad_left("A", 12), pad_left("B", 12));
  for (const auto& cells : table.rows)
    text += fmt::format("  {}{}{}\n", pad_right(cells[0], kFigure), pad_left(cells[1], 12), pad_left(cells[2], 12));
  return text;
}

std::string memory_text(const Comparison& c, const TextOptions& options) {
  if (!options.full || c.memory.empty()) return "";
  std::string text = std::string(kMemoryTitle) + "\n";
  for (const ComparedMemory& one : c.memory) text += row(info(one.fact).label, one.text, options);
  return text;
}

std::string artefacts_text(const Comparison& c, const TextOptions& options) {
  if (c.artefacts.empty()) return "";
  std::string text = wrap(artefact_words(c), options.width, "", "");
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
    text = refused(c, options) + requirements_text(c.requirements, options) + changes_text(c, options);
    return text + figures_text(c, options) + memory_text(c, options) + artefacts_text(c, options);
  }
  text = wrap(bold(answer_words(c), options), options.width, "", "");
  text += row("per " + c.unit, fmt::format("A {}, B {}; {}", per_unit(c.a), per_unit(c.b), c.method), options);
  text += other_measure(c, options) + reasons_text(c, false, options) + requirements_text(c.requirements, options);
  text += changes_text(c, options) + metrics_text(c, options);
  text += parts_text("GPU time of the whole runs", c.accounts, c, options) +
          parts_text("Phases of the whole runs", c.phases, c, options);
  if (const std::string words = short_phases_words(c); !words.empty()) text += wrap(words, options.width, "  ", "  ");
  return text + figures_text(c, options) + memory_text(c, options) + artefacts_text(c, options);
}

}  // namespace headroom::report
