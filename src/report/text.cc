// SPDX-License-Identifier: Apache-2.0
#include "report/text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "base/strings.h"
#include "report/ledger_text.h"

namespace headroom::report {

namespace {

std::string device_ledger(const Explanation& e, std::size_t device, const TextOptions& options) {
  const Device& d = e.ledger.devices[device];
  const std::string title =
      d.name.empty() ? fmt::format("GPU {}", d.index) : fmt::format("GPU {}  {}", d.index, d.name);
  return account_rows(e.ledger, device, title, human_duration(e.ledger.span()) + " = 100 %", options);
}

std::string phases(const Explanation& e) {
  if (e.phases.empty()) return {};
  std::string text = "Phases by utilisation\n";
  text += fmt::format("  {}{}{}{}{}{}{}\n", pad_right("phase", 21), pad_left("times", 6), pad_left("mean", 9),
                      pad_left("total", 9), pad_left("GPU", 7), pad_left("memory", 10), pad_left("power", 8));
  for (const Phase& p : e.phases) {
    const std::string name =
        e.ledger.devices.size() > 1 ? fmt::format("GPU {} {}", e.ledger.devices[p.device].index, p.name) : p.name;
    const auto memory = p.memory_used_bytes ? human_bytes(static_cast<std::int64_t>(*p.memory_used_bytes)) : "-";
    text += fmt::format("  {}{}{}{}{}{}{}\n", pad_right(name, 21), pad_left(fmt::format("{}", p.count), 6),
                        pad_left(human_duration(p.total / std::max<std::int64_t>(1, p.count)), 9),
                        pad_left(human_duration(p.total), 9),
                        pad_left(p.gpu_util_ratio ? human_percent(*p.gpu_util_ratio) : "-", 7), pad_left(memory, 10),
                        pad_left(p.power_watts ? fmt::format("{:.0f} W", *p.power_watts) : "-", 8));
  }
  return text + "\n";
}

std::string candidate_table(const Finding& finding, const TextOptions& options) {
  std::size_t left = 0;
  for (const Cause cause : finding.candidates) left = std::max(left, display_width(info(cause).words));
  left = std::min(left + 2, options.width / 2);
  std::string text = fmt::format("   {}{}\n", pad_right("could be", left + 2), "what would tell");
  for (const Cause cause : finding.candidates)
    text += wrap(info(cause).observe, options.width, fmt::format("     {} ", pad_right(info(cause).words, left - 1)),
                 std::string(5 + left, ' '));
  return text;
}

std::string labelled(std::string_view label, std::string_view text, const TextOptions& options) {
  return wrap(text, options.width, "   " + pad_right(label, 10), std::string(13, ' '));
}

// `number`: "2", or "2a" for what is part of finding 2.
std::string one_finding(const Finding& finding, const std::string& number, const TextOptions& options) {
  std::string cost = finding.cost() > 0 ? "costs " + human_duration(finding.cost()) : "";
  if (finding.part_of) cost += " of these";
  const std::string head = fmt::format("{}. {}", number, finding.title);
  std::string text;
  if (display_width(head) + display_width(cost) + 2 <= options.width)
    text = bold(pad_right(head, options.width - display_width(cost)), options) + cost + "\n";
  else
    text = wrap(cost.empty() ? head : head + " (" + cost + ")", options.width, "", "   ");
  if (cost.empty() && text.back() == '\n') text = text.substr(0, text.find_last_not_of(" \n") + 1) + "\n";
  const std::size_t shown =
      options.width >= 100 ? finding.evidence.size() : std::min<std::size_t>(4, finding.evidence.size());
  for (std::size_t i = 0; i < shown; ++i) text += wrap(finding.evidence[i], options.width, "   - ", "     ");
  if (shown < finding.evidence.size())
    text += fmt::format("   - and {} more in --json or a wider terminal\n", finding.evidence.size() - shown);
  if (!finding.candidates.empty()) text += candidate_table(finding, options);
  if (!finding.told_apart_from.empty()) text += labelled("Not", join(finding.told_apart_from, "; "), options);
  if (!finding.advice.empty()) text += labelled("Try", finding.advice, options);
  if (!finding.bound.empty()) text += labelled("Gain", finding.bound, options);
  if (!finding.would_overturn.empty()) text += labelled("Wrong if", finding.would_overturn, options);
  text += labelled("Rests on",
                   fmt::format("tier{} {}, confidence {}", finding.tiers.letters().size() > 1 ? "s" : "",
                               finding.tiers.letters(), confidence_name(finding.confidence)),
                   options);
  return text + "\n";
}

std::string figure(Metric metric, double value) {
  const std::string_view unit = info(metric).unit;
  if (unit == "ratio") return human_percent(value);
  if (unit == "bytes") return human_bytes(static_cast<std::int64_t>(value));
  if (unit == "bytes/s") return human_bytes(static_cast<std::int64_t>(value)) + "/s";
  if (unit == "watts") return fmt::format("{:.1f} W", value);
  if (unit == "celsius") return fmt::format("{:.0f} C", value);
  if (unit == "mhz") return fmt::format("{:.0f} MHz", value);
  return fmt::format("{:g}", value);
}

std::string statistics(const Explanation& e, const TextOptions& options) {
  std::string text;
  const std::size_t rows = options.width >= 100 ? 100 : 6;
  for (const DeviceStats& device : e.devices) {
    std::string body;
    std::size_t shown = 0;
    for (const MetricStats& s : device.metrics) {
      if (s.samples == 0 || shown == rows) continue;
      ++shown;
      body += fmt::format("  {}{}{}{}{}{}{}\n", pad_right(info(s.metric).name, 21),
                          pad_left(figure(s.metric, s.mean), 10), pad_left(figure(s.metric, s.min), 9),
                          pad_left(figure(s.metric, s.p50), 9), pad_left(figure(s.metric, s.p95), 9),
                          pad_left(figure(s.metric, s.max), 9), pad_left(human_count(s.samples), 9));
    }
    if (body.empty()) continue;
    text +=
        fmt::format("  {}{}{}{}{}{}{}\n", pad_right(fmt::format("GPU {}", e.ledger.devices[device.device].index), 21),
                    pad_left("mean", 10), pad_left("min", 9), pad_left("p50", 9), pad_left("p95", 9),
                    pad_left("max", 9), pad_left("readings", 9));
    text += body;
  }
  return text.empty() ? text : "Readings\n" + text + "\n";
}

std::string health_lines(const Explanation& e, const TextOptions& options) {
  std::vector<std::string> good, bad, unknown;
  for (const HealthCheck& check : e.health) {
    std::string words = check.check;
    std::replace(words.begin(), words.end(), '_', ' ');
    auto& list = check.good == Answer::kYes ? good : check.good == Answer::kNo ? bad : unknown;
    list.push_back(fmt::format("{} ({})", words, check.evidence));
  }
  std::string text;
  if (!good.empty()) text += wrap(join(good, ", "), options.width, "Healthy: ", "  ");
  if (!bad.empty()) text += wrap(join(bad, ", "), options.width, "Not healthy: ", "  ");
  if (!unknown.empty()) text += wrap(join(unknown, ", "), options.width, "Not known: ", "  ");
  return text.empty() ? text : text + "\n";
}

std::string bounds(const Explanation& e, const TextOptions& options) {
  std::string text;
  if (e.bound)
    text += wrap(fmt::format("{} at equal work, {}.", human_factor(e.bound->speedup_high), e.bound->condition),
                 options.width, "At most ", "  ");
  if (e.pipeline) {
    const Nanos all = e.pipeline->gpu_part + e.pipeline->rest, twice = e.pipeline->gpu_part / 2 + e.pipeline->rest;
    text += wrap(fmt::format("{} of {} have a GPU at work. Twice as fast there makes {} ({}); however fast, while the "
                             "rest stays as it is: never under {} ({}).",
                             human_duration(e.pipeline->gpu_part), human_duration(all), human_duration(twice),
                             human_factor(static_cast<double>(all) / static_cast<double>(twice)),
                             human_duration(e.pipeline->rest),
                             human_factor(static_cast<double>(all) / static_cast<double>(e.pipeline->rest))),
                 options.width, "By faster GPU work alone: ", "  ");
  }
  for (const Projection& p : e.projections)
    text +=
        wrap(fmt::format("{}: between {} and {}, {}.", p.what, human_duration(static_cast<Nanos>(p.low_seconds * 1e9)),
                         human_duration(static_cast<Nanos>(p.high_seconds * 1e9)), p.condition),
             options.width, "For ", "  ");
  return text.empty() ? text : text + "\n";
}

// One line per reason, not per tier.
std::string missing_tiers(const Explanation& e, const TextOptions& options) {
  std::vector<std::pair<std::string, std::string>> reasons;  // why, tiers
  for (const MissingTier& missing : e.meta.missing_tiers) {
    const auto known =
        std::find_if(reasons.begin(), reasons.end(), [&](const auto& r) { return r.first == missing.why; });
    if (known == reasons.end())
      reasons.emplace_back(missing.why, std::string(1, missing.tier));
    else
      known->second += fmt::format(" {}", missing.tier);
  }
  std::string text;
  for (const auto& [why, tiers] : reasons)
    text += wrap(fmt::format("tier{} {}: {}", tiers.size() > 1 ? "s" : "", tiers, why), options.width, "  without ",
                 "    ");
  return text;
}

std::string footer(const Explanation& e, const TextOptions& options) {
  std::string tiers;
  for (const char tier : e.meta.tiers) tiers += fmt::format(" {}", tier);
  std::string line = fmt::format("{} with tier{}{}", e.meta.origin.starts_with("import") ? "Imported" : "Recorded",
                                 e.meta.tiers.size() == 1 ? "" : "s", tiers.empty() ? " none" : tiers);
  if (e.meta.interval > 0) line += fmt::format(", a reading every {}", human_duration(e.meta.interval));
  std::vector<std::string> cost;
  if (e.cost.core_ratio) cost.push_back(human_percent(*e.cost.core_ratio) + " of one core");
  if (e.cost.max_rss_bytes) cost.push_back(human_bytes(*e.cost.max_rss_bytes) + " resident");
  if (e.cost.file_bytes) cost.push_back(human_bytes(*e.cost.file_bytes) + " on disk");
  if (!cost.empty()) line += "; cost " + join(cost, ", ");
  std::string text = wrap(line + ".", options.width, "", "  ");
  text += missing_tiers(e, options);
  for (const Loss& loss : e.losses)
    if (loss.count > 0)
      text += wrap(
          fmt::format("{} {}{}", human_count(loss.count), loss.what, loss.detail.empty() ? "" : ": " + loss.detail),
          options.width, loss.severity >= Severity::kDataLoss ? "  lost    " : "  noted   ", "    ");
  const std::string name = options.recording.empty() ? shell_quote(e.path) : options.recording;
  if (!name.empty() && !e.path.empty())
    text += wrap(fmt::format("headroom why {0} --json; headroom export {0} --format chrome", name), options.width,
                 "Next: ", "  ");
  return text;
}

}  // namespace

std::string to_text(const Explanation& explanation, const TextOptions& wanted) {
  const TextOptions options = clamped(wanted);
  std::string text = wrap(explanation.headline, options.width, "", "");
  if (options.colour) text = bold(text.substr(0, text.size() - 1), options) + "\n";
  text += "\n";
  for (std::size_t i = 0; i < explanation.ledger.devices.size(); ++i) text += device_ledger(explanation, i, options);
  if (!explanation.ledger.devices.empty()) text += "\n";
  text += phases(explanation);
  std::size_t number = 0, part = 0;
  for (const Finding& finding : explanation.findings) {
    part = finding.part_of ? part + 1 : 0;
    if (part == 0) ++number;
    constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz";
    const std::string_view letter = part == 0 ? "" : kLetters.substr((part - 1) % kLetters.size(), 1);
    text += one_finding(finding, fmt::format("{}{}", number, letter), options);
  }
  text += bounds(explanation, options) + statistics(explanation, options) + health_lines(explanation, options);
  return text + footer(explanation, options);
}

}  // namespace headroom::report
