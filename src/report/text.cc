// SPDX-License-Identifier: Apache-2.0
#include "report/text.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "base/strings.h"
#include "base/visible.h"
#include "model/damage.h"
#include "model/job_variables.h"
#include "model/losses.h"
#include "model/named_causes.h"
#include "model/notes.h"
#include "model/observations.h"
#include "report/bars.h"
#include "report/details.h"
#include "report/findings_text.h"
#include "report/layout.h"
#include "report/palette.h"
#include "report/requirements.h"
#include "report/slurm_words.h"
#include "report/time_limit.h"
#include "report/words.h"

namespace headroom::report {

namespace {

// What a check is about, where its evidence alone does not say.
std::string_view subject(const std::string& check) {
  if (check == "memory") return "memory: ";
  if (check == "clocks") return "clocks: ";
  if (check == "mixed_precision") return "mixed precision: ";
  if (check == "no_hang") return "no hang: ";
  if (check == "no_out_of_memory") return "no running out of memory: ";
  if (check == "runs_on_gpu") return "the job on the GPU: ";
  return "";
}

// The same where the answer is no.
std::string_view wrong(const std::string& check) {
  if (check == "no_hang") return "a hang: ";
  if (check == "no_out_of_memory") return "out of memory: ";
  return subject(check);
}

// The same where it is not known.
std::string_view open(const std::string& check) {
  if (check == "no_hang") return "whether it hung: ";
  if (check == "no_out_of_memory") return "whether memory ran out: ";
  return subject(check);
}

// To compute in full precision is a choice.
bool is_a_problem(const HealthCheck& check) { return check.good == Answer::kNo && check.check != "mixed_precision"; }

// That kernels ran to the end is why there is no hang: it stands there.
bool said_by_no_hang(const Explanation& e, const HealthCheck& check) {
  return check.check == "progress" && std::any_of(e.health.begin(), e.health.end(), [&](const HealthCheck& other) {
           return other.check == "no_hang" && other.good == check.good && other.evidence == check.evidence;
         });
}

std::string checks(const Explanation& e, Answer answer) {
  std::vector<std::string> words;
  for (const HealthCheck& check : e.health)
    if (check.good == answer && !said_by_no_hang(e, check))
      words.push_back(
          fmt::format("{}{}", answer == Answer::kUnknown ? open(check.check) : subject(check.check), check.evidence));
  return join(words, "; ");
}

std::vector<std::string> problems_of_checks(const Explanation& e) {
  std::vector<std::string> words;
  for (const HealthCheck& check : e.health)
    if (is_a_problem(check)) words.push_back(fmt::format("{}{}", wrong(check.check), check.evidence));
  return words;
}

// What is wrong beside lost time.
std::string problems(const Explanation& e, const TextOptions& options) {
  std::vector<std::string> words = problem_words(e);
  bool lost = false;
  const Loss* unread = nullptr;
  for (const Loss& loss : e.losses) {
    if (!is_a_problem(loss, e.meta)) continue;
    if (!lost_in_reading(loss))
      lost = true;
    else if (unread == nullptr || loss.severity > unread->severity)
      unread = &loss;
  }
  if (unread != nullptr)
    words.push_back(fmt::format("a part of the recording could not be read: {} (--full says more)",
                                unread->detail.empty() ? info(*loss_kind_of(unread->what)).help : unread->detail));
  if (lost) words.emplace_back("data was lost while recording (--full says which)");
  return words.empty() ? "" : alarm("Problems:", options) + wrap(join(words, "; ") + ".", options.width - 9, " ", "  ");
}

std::string health_in_full(const Explanation& e, const TextOptions& options) {
  std::string text;
  const auto line = [&](std::string_view label, const std::string& words) {
    if (!words.empty()) text += wrap(words + ".", options.width, label, "  ");
  };
  line("Problems: ", join(problems_of_checks(e), "; "));
  line("Cut short: ", cut_short(e.meta));
  line("In order: ", checks(e, Answer::kYes));
  for (const HealthCheck& check : e.health)
    if (check.good == Answer::kNo && !is_a_problem(check))
      line("Not in use: ", std::string(subject(check.check)) + check.evidence);
  line("Not known: ", checks(e, Answer::kUnknown));
  return text.empty() ? text : text + "\n";
}

// One line per reason, not per kind of evidence.
std::string missing_evidence(const Explanation& e, const TextOptions& options) {
  std::vector<std::pair<std::string, std::string>> reasons;  // why, letters
  for (const MissingTier& missing : e.meta.missing_tiers) {
    const auto known =
        std::find_if(reasons.begin(), reasons.end(), [&](const auto& r) { return r.first == missing.why; });
    if (known == reasons.end())
      reasons.emplace_back(missing.why, std::string(1, missing.tier));
    else
      known->second += missing.tier;
  }
  std::string text;
  for (const auto& [why, letters] : reasons)
    if (const std::string words = evidence_words(letters); !words.empty())
      text += wrap(fmt::format("{}: {}", words, why), options.width, "  without ", "    ");
  return text;
}

std::string environment_of_job(const Explanation& e, const TextOptions& options) {
  std::vector<std::string> words;
  for (const auto& [name, value] : job_variables(e.meta).value_or(JobVariables()))
    if (!is_slurm_variable(name)) words.push_back(fmt::format("{}={}", name, value));
  return words.empty() ? "" : wrap(join(words, ", ") + ".", options.width, "Environment: ", "  ");
}

std::string evidence_in_full(const Explanation& e, const TextOptions& options) {
  const std::string evidence = evidence_words(e.meta.tiers), cost = recording_cost(e);
  std::string line = evidence.empty() ? "none" : evidence;
  if (e.meta.interval > 0 && !length_is_assumed(e))
    line += fmt::format(", a reading every {}", human_duration(e.meta.interval));
  if (!cost.empty()) line += "; cost " + cost;
  std::string text = wrap(line + ".", options.width, "Evidence: ", "  ") + missing_evidence(e, options);
  text += environment_of_job(e, options);
  for (const Loss& loss : e.losses) {
    if (loss.count <= 0) continue;
    const auto kind = loss_kind_of(loss.what);
    std::string words = kind ? fmt::format("{} ({})", info(*kind).help, loss.what) : loss.what;
    if (!loss.detail.empty()) words += "; " + loss.detail;
    text += wrap(fmt::format("{}: {}", human_count(loss.count), words), options.width,
                 loss.severity >= Severity::kDataLoss ? "  lost    " : "  noted   ", "    ");
  }
  return text;
}

// Of a log: the columns that nothing here was made of.
std::string columns_left_out(const Explanation& e) {
  constexpr std::size_t kShown = 80;
  for (const Loss& loss : e.losses) {
    if (loss.what != info(LossKind::kColumnNotKept).name || e.meta.tiers.find('N') == std::string::npos) continue;
    if (loss.detail.size() <= kShown) return ". Columns left out: " + loss.detail;
    const auto comma = loss.detail.rfind(", ", kShown);
    return fmt::format(". Columns left out: {} and others (--full)",
                       loss.detail.substr(0, comma == std::string::npos ? kShown : comma));
  }
  return "";
}

// Of a log whose utilisation had no unit: that it was taken for a fraction.
std::string fractions_read(const Explanation& e) {
  const auto found = std::find_if(e.losses.begin(), e.losses.end(),
                                  [](const Loss& loss) { return loss.what == info(LossKind::kFractionOfOne).name; });
  if (found == e.losses.end()) return "";
  return found->detail.starts_with(info(Metric::kGpuUtil).name)
             ? ". Utilisation was read as a fraction: 1 is 100 %"
             : ". Ratios beside the utilisation were read as fractions: 1 is 100 % (--full)";
}

// Of a log whose numbers have commas: what they were read as.
std::string commas_read(const Explanation& e) {
  const auto read = e.meta.extra.find("decimal_commas");
  return read == e.meta.extra.end() ? "" : ". Commas in the log were read as decimal points: " + read->second;
}

// Of a log with columns of several runs: which is read.
std::string runs_read(const Explanation& e) {
  const auto runs = e.meta.extra.find("other_runs");
  return runs == e.meta.extra.end() ? "" : ". Of the runs in the log " + runs->second;
}

// What a log does not say of its times and GPUs, and was assumed.
std::string assumed_of_log(const Explanation& e) {
  std::string words;
  for (const Loss& loss : e.losses)
    if (const auto kind = loss_kind_of(loss.what); kind && info(*kind).in_short && !loss.detail.empty())
      words += ". In the log " + loss.detail;
  return words;
}

bool names_users(const RecordingMeta& meta) {
  const auto first = meta.extra.lower_bound("users.");
  return first != meta.extra.end() && first->first.starts_with("users.");
}

std::string evidence_in_short(const Explanation& e, const TextOptions& options) {
  std::string line = evidence_words(e.meta.tiers);
  if (line.empty()) return "";
  if (e.meta.tiers == "N")
    line += e.meta.extra.contains("processes")         ? " only: of processes their shares of the GPU"
            : names_users(e.meta)                      ? " only: of processes whose they are and on which GPU"
            : e.meta.extra.contains("named_processes") ? " only: of processes their names and on which GPU"
                                                       : " only: nothing of the job's processes";
  if (e.cost.core_ratio) line += fmt::format(". Recording cost {} of one core", human_percent(*e.cost.core_ratio));
  return wrap(line + assumed_of_log(e) + runs_read(e) + fractions_read(e) + commas_read(e) + columns_left_out(e) + ".",
              options.width, "Evidence: ", "  ");
}

// Never wrapped: a command is there to be copied.
std::string next(const Explanation& e, const TextOptions& options) {
  if (e.path.empty()) return "";
  if (e.path == "-")
    return fmt::format("Next: {}\n", typed("headroom import - keeps it; then: headroom why last --full", options));
  const std::string name = visible(recording_argument(e, options) + options.reading);
  if (options.full && !options.reading.empty())  // export takes no such options
    return fmt::format("Next: {}\n", typed(fmt::format("headroom why {} --json", name), options));
  if (!options.full) return fmt::format("Next: {}\n", typed(fmt::format("headroom why {} --full", name), options));
  return fmt::format("Next: {}\n      {}\n", typed(fmt::format("headroom why {} --json", name), options),
                     typed(fmt::format("headroom export {} --format chrome -o trace.json", name), options));
}

bool is_seen(Nanos part, const Ledger& ledger) {
  constexpr Nanos kSeen = 100;  // a hundredth of the time
  return part > 0 && part >= ledger.budget() / kSeen;
}

std::string gloss(const Explanation& e, const TextOptions& options) {
  const std::string computing = computing_words(e);
  if (computing.empty()) return "\n";
  const std::string ends = ends_words(e.ledger);
  return faint(wrap(computing + (ends.empty() ? "" : " " + ends), options.width, "  ", "  "), options) + "\n";
}

// Where a job is that goes on, or what would tell.
std::string progress_line(const Explanation& e) {
  if (!goes_on(e.meta)) return "";
  if (e.progress) return progress_of(e);
  const auto& missing = e.meta.missing_tiers;
  const auto unread = std::find_if(missing.begin(), missing.end(), [](const MissingTier& one) {
    return one.tier == 'L' && one.why != kOutputToldNothing;
  });
  if (unread == missing.end() || e.meta.origin != "run") return "";
  return fmt::format("not told: what the job prints is not read: {}", unread->why);
}

}  // namespace

std::string computing_words(const Explanation& e) {
  const Ledger& ledger = e.ledger;
  if (ledger.total(Account::kUseful) == 0) return "";
  const auto by_engine = [](const DeviceStats& readings) {
    return std::any_of(readings.metrics.begin(), readings.metrics.end(), [](const MetricStats& stats) {
      return stats.metric == Metric::kGraphicsActive && stats.samples > 0;
    });
  };
  const bool profiled = std::all_of(ledger.entries.begin(), ledger.entries.end(), [](const LedgerEntry& entry) {
    return entry.account != Account::kUseful || entry.tiers.has("C");
  });
  const bool live = !is_imported(e.meta);  // then the driver's ring buffer was read beside GPM
  bool sure = true, for_another = true;
  Nanos waited = 0;  // with a kernel
  for (const Finding& finding : e.findings) {
    const bool late = names(finding, Cause::kStraggler);
    for (const ClaimedPiece& piece : finding.claims) {
      if (!late || finding.part_of || !is_busy(piece.account)) continue;
      waited += piece.end - piece.begin;
      sure = sure && finding.confidence != Confidence::kLow;
      for_another =
          for_another && !may_be(finding, Cause::kExposedCommunication);  // on all GPUs at once: no GPU here tells
    }
  }
  if (waited > 0 && !for_another)
    return fmt::format(
        "Computing: a kernel was on the GPU; {} of that hardly worked (below).",
        human_percent(static_cast<double>(waited) / static_cast<double>(ledger.total(Account::kUseful))));
  if (waited > 0)
    return fmt::format("Computing: a kernel was on the GPU; {} of that {} waited for another GPU (below).",
                       human_percent(static_cast<double>(waited) / static_cast<double>(ledger.total(Account::kUseful))),
                       sure ? "only" : "may only have");
  if (profiled || (live && !e.devices.empty() && std::all_of(e.devices.begin(), e.devices.end(), by_engine)))
    return "Computing: a kernel was on the GPU.";
  return "Computing: a kernel was on the GPU (the driver may count copies, too).";
}

std::string ends_words(const Ledger& ledger) {
  Nanos ends = 0;
  for (const LedgerEntry& entry : ledger.entries)
    if (entry.account == Account::kUnexplained && entry.tiers.empty()) ends += entry.ns;
  return is_seen(ends, ledger)
             ? fmt::format("Unexplained: in {} of it a process ended, at what moment no reading says.",
                           human_duration(ends))
             : "";
}

std::string unread_words(const Ledger& ledger) {
  const Nanos unread = ledger.total(Account::kUnobserved);
  return is_seen(unread, ledger)
             ? fmt::format(", as far as readings tell (for {} of GPU time there is none)", human_duration(unread))
             : "";
}

bool length_is_assumed(const Explanation& e) {
  return std::any_of(e.losses.begin(), e.losses.end(),
                     [](const Loss& loss) { return loss.what == info(LossKind::kAssumedInterval).name; });
}

std::string cut_short(const RecordingMeta& meta) {
  const std::string_view why = meta.stop_reason == "disk_full" ? "the disk was full"
                               : meta.stop_reason == "failed"  ? "its file could not be written"
                               : meta.stop_reason == "recovered"
                                   ? "its recorder died or could not write, or went on after this copy was made"
                                   : "";
  return why.empty() ? "" : fmt::format("the recording was cut short ({}): what came after that is not in it", why);
}

std::vector<std::string> problem_words(const Explanation& e) {
  std::vector<std::string> words = problems_of_checks(e);
  if (std::string words_of_it = cut_short(e.meta); !words_of_it.empty()) words.push_back(std::move(words_of_it));
  return words;
}

std::string recording_cost(const Explanation& e) {
  std::vector<std::string> cost;
  if (e.cost.core_ratio) cost.push_back(human_percent(*e.cost.core_ratio) + " of one core");
  if (e.cost.max_rss_bytes) cost.push_back(human_bytes(*e.cost.max_rss_bytes) + " of memory");
  if (e.cost.file_bytes) cost.push_back(human_bytes(*e.cost.file_bytes) + " on disk");
  return join(cost, ", ");
}

std::string ledger_part(const Explanation& e, const TextOptions& options, std::size_t lines) {
  if (e.ledger.devices.empty()) return "";
  return (length_is_assumed(e) ? share_sentences(e.ledger, options, lines) : bars(e.ledger, options, lines)) +
         gloss(e, options);
}

std::string shared_part(const Explanation& e, const TextOptions& options, std::size_t lines) {
  const std::size_t for_bars = std::max<std::size_t>(lines, 20) * 2 / 5;
  std::string text = ledger_part(e, options, options.full ? 10'000 : for_bars);
  if (options.full)
    return text + named_phases_text(e, options, 10'000) + said_text(e, options) + all_findings(e, options) +
           limits_text(e, options) + readings_text(e, options) + health_in_full(e, options) +
           evidence_in_full(e, options) + next(e, options);
  const std::string rest = problems(e, options) + evidence_in_short(e, options) + next(e, options);
  const std::size_t least = lines_in(rest) + least_lines(e, options);
  if (lines_in(text) + least > lines) {  // shorter bars rather than findings cut short
    constexpr std::size_t kGloss = 2, kLeast = 4;
    text = ledger_part(e, options, std::max(kLeast, lines - std::min(lines, least + kGloss)));
  }
  std::size_t taken = lines_in(text) + lines_in(rest);
  // The phases before the last details of the findings, and not before what to try.
  const std::size_t for_phases = least_phase_lines(e);
  const bool both_fit = lines >= taken + least_lines(e, options) + for_phases;
  const std::size_t kept = taken + (both_fit ? for_phases : 0);
  const std::string findings = top_findings(e, options, lines > kept ? lines - kept : 0);
  taken += lines_in(findings);
  constexpr std::size_t kForPhases = 8;  // of what the findings leave
  return text + named_phases_text(e, options, std::min(kForPhases, lines > taken ? lines - taken : 0)) + findings +
         rest;
}

std::size_t line_limit(std::size_t devices, const TextOptions& options) {
  const std::size_t at_80_columns = devices <= 2 ? 40 : 50;
  return options.width >= 80 ? at_80_columns : at_80_columns * 80 / options.width;
}

std::string to_text(const Explanation& explanation, const TextOptions& wanted) {
  const TextOptions options = clamped(wanted);
  std::string text = bold(wrap(explanation.headline, options.width, "", ""), options);
  if (const std::string progress = progress_line(explanation); !progress.empty())
    text += wrap(progress + ".", options.width, "Progress: ", "  ");
  if (const std::string where = slurm_words(slurm_job(explanation.meta)); !where.empty())
    text += wrap(where + ".", options.width, "", "  ");
  else if (const std::string rank = rank_words(explanation.meta.extra); !rank.empty())
    text += rank + ".\n";
  for (const std::string& words : explanation.about_parts) text += wrap(words + ".", options.width, "- ", "  ");
  text += "\n";
  if (!explanation.requirements.empty()) text += requirements_text(explanation.requirements, options) + "\n";
  return text +
         shared_part(explanation, options, line_limit(explanation.ledger.devices.size(), options) - lines_in(text));
}

}  // namespace headroom::report
