// SPDX-License-Identifier: Apache-2.0
#include "diagnose/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <utility>

#include "analyze/analysis.h"
#include "analyze/progress.h"
#include "base/human.h"
#include "diagnose/alike.h"
#include "diagnose/batch_times.h"
#include "diagnose/core_waits.h"
#include "diagnose/headline.h"
#include "diagnose/health.h"
#include "diagnose/idle_parts.h"
#include "diagnose/joined.h"
#include "diagnose/loop_role.h"
#include "diagnose/named_code.h"
#include "diagnose/own_limits.h"
#include "diagnose/pipeline.h"
#include "diagnose/rules.h"
#include "diagnose/unseen.h"
#include "diagnose/weigh.h"
#include "diagnose/words.h"
#include "model/events.h"
#include "model/losses.h"
#include "model/observations.h"
#include "model/parts.h"

namespace headroom {

namespace diagnose {

namespace {

// Their order only breaks ties.
constexpr std::array kRules{never_uses_gpu,
                            placement,
                            owners_unknown,
                            utilisation_not_reported,
                            device_lost,
                            idle_inseparable,
                            idle_phases,
                            late_gpus,
                            quiet_end,
                            between_jobs,
                            jobs_in_turn,
                            no_kernel_seen,
                            installed_first,
                            startup,
                            stopped,
                            out_of_memory,
                            unreleased,
                            foreign_tenant,
                            throttling,
                            sensor_outlier,
                            stalled,
                            busy_but_inefficient,
                            mostly_something_else,
                            no_process_there,
                            free_beside_others,
                            losses,
                            tail_imbalance,
                            tasks_waited,
                            discarded_work,
                            under_packing,
                            profiled_waits,
                            exposed_communication,
                            slow_rank};

constexpr std::array kIdleRules{idle_checkpoint, idle_input,    idle_host_code,    idle_unknown,    idle_validation,
                                idle_copies,     idle_sync,     restarted_workers, waiting_ranks,   waiting_for_peers,
                                uneven_gpus,     wanting_cores, wanting_memory,    slow_first_steps};

// What may be of starts: idle time before the first kernel, and start-up; where several processes had a device, the
// other idle time there, too, as readings do not tell when each one's first kernel began.
Nanos about_starts(const Analysis& a) {
  Nanos all = 0;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    Nanos starting = 0, other = 0;
    std::set<std::int64_t> owners;
    bool computed = false;
    for (const Slice& slice : a.devices[device].slices) {
      computed |= is_busy(slice.account);
      if (slice.pid > 0 && slice.account != Account::kForeign) owners.insert(slice.pid);
      if (is_busy(slice.account) || slice.account == Account::kUnobserved) continue;
      (slice.account == Account::kStartup || !computed ? starting : other) += slice.end - slice.begin;
    }
    all += starting + (owners.size() > 1 ? other : 0);
  }
  return all;
}

// Kernels that full clocks might not have needed: too little for a finding of its own may be too much to be well.
Nanos about_clocks(const Analysis& a) {
  double all = 0;
  for (std::size_t device = 0; device < a.devices.size(); ++device)
    if (const auto lost = clocks_limited(a, device))
      all += std::max(0.0, *lost) * static_cast<double>(a.gpus[device].clocks.limited_kernels);
  return static_cast<Nanos>(all);
}

// Of GPUs that several processes of the job had at once for long, without MPS: what each loses to the others' kernels
// no reading tells.
std::vector<std::string> had_at_once(const Analysis& a) {
  std::vector<std::string> sentences;
  for (std::size_t device = 0; device < a.devices.size() && !a.job.batch.present; ++device) {
    Nanos last = a.window.begin, both = 0;
    for (const ContextUse& use : a.job.uses) {
      if (!use.ours || use.device != a.devices[device].source || use.kind == ContextKind::kMps) continue;
      const Nanos begin = std::max(use.begin, a.window.begin), end = std::min(use.end, a.window.end);
      both += std::max<Nanos>(0, std::min(last, end) - begin);
      last = std::max(last, end);
    }
    if (as_share(both, a.ledger.span()) >= a.limits[Threshold::kMaterial])
      sentences.push_back(fmt::format(
          "several processes had {} at once for {}: their kernels take turns there, and how much longer each takes for "
          "it no reading tells",
          a.device_name(device), human_duration(both)));
  }
  return sentences;
}

// That no idle time is worth removing is a finding too, where nothing else says otherwise.
std::optional<Finding> healthy(const Analysis& a, const std::vector<Finding>& findings) {
  const bool troubled = std::any_of(findings.begin(), findings.end(), [](const Finding& f) {
    return f.cause != Cause::kRecordingLosses && f.cause != Cause::kSensorOutlier;
  });
  if (a.meta.exit_code.value_or(0) != 0) return std::nullopt;
  const double busy = a.share(a.ledger.total(Account::kUseful));
  for (const AccountInfo& account : kAccounts)
    if (account.id != Account::kUseful && a.material(a.ledger.total(account.id))) return std::nullopt;
  if (troubled || busy < a.limits[Threshold::kHealthyBusy] || a.material(about_starts(a)) ||
      a.material(about_clocks(a)))
    return std::nullopt;
  for (std::size_t device = 0; device < a.devices.size(); ++device)
    if (!memory_grows(a, device).empty()) return std::nullopt;
  Finding finding;
  finding.cause = Cause::kHealthy;
  finding.tiers = is_profiled(a) ? "C" : a.job.has_host ? "NP" : "N";
  finding.title = "Healthy: no idle time is worth removing";
  finding.evidence = {fmt::format("kernels were resident for {} of the GPU time; no other account has more than {}",
                                  human_percent(busy), human_percent(a.limits[Threshold::kMaterial]))};
  diagnose::append(finding.evidence, had_at_once(a));
  finding.told_apart_from = {"efficient: that cannot be seen from the share of resident kernels"};
  return finding;
}

// A line per process or piece is too many where there are thousands: the first, and what is said of all at the end.
void shorten(std::vector<std::string>& evidence) {
  constexpr std::size_t kFirst = 10, kLast = 2;
  if (evidence.size() <= kFirst + kLast + 1) return;
  const std::size_t left_out = evidence.size() - kFirst - kLast;
  const auto begin = evidence.begin() + kFirst;
  *begin = fmt::format("and {} more like these", left_out);
  evidence.erase(begin + 1, begin + static_cast<std::ptrdiff_t>(left_out));
}

void less_sure(Finding& finding, std::string why) {
  finding.confidence = finding.confidence == Confidence::kHigh ? Confidence::kMedium : Confidence::kLow;
  finding.evidence.push_back(std::move(why));
}

// A finding that rests mostly on time about which readings were lost is less sure, and says so; and so is every one
// where nobody knows which time that was.
void doubt(const Analysis& a, Finding& finding) {
  const Nanos lost = length(common(finding.claims, a.doubtful));
  const double share = as_share(lost, finding.cost());
  const bool anywhere = std::any_of(a.losses.begin(), a.losses.end(), [](const Loss& loss) {
    return loss.count > 0 && loss.places.empty() && loss.severity >= Severity::kDataLoss && touches_slices(loss);
  });
  if (lost > 0 && share >= a.limits[Threshold::kMajority])
    less_sure(finding, fmt::format("readings were lost in {} of this time", human_percent(share)));
  else if (anywhere)
    less_sure(finding, "readings were lost somewhere in the recording, perhaps in this time");
}

RecordingCost cost_of(const Recording& recording, const ExplainOptions& options) {
  RecordingCost cost;
  cost.file_bytes = options.file_bytes;
  for (const SourceId id : recording.all(SourceKind::kRecorder)) {
    const Track& track = recording.tracks[static_cast<std::size_t>(id)];
    const Column *cpu = track.find(Metric::kRecorderCpu), *rss = track.find(Metric::kRecorderRss);
    for (std::size_t row = 0; row < track.at.size(); ++row) {
      if (cpu && cpu->has(row)) cost.cpu_seconds = to_unit(Metric::kRecorderCpu, cpu->values[row]);
      if (rss && rss->has(row)) cost.max_rss_bytes = std::max(cost.max_rss_bytes.value_or(0), rss->values[row]);
    }
  }
  const Nanos span = recording.meta.end - recording.meta.start;
  if (cost.cpu_seconds && span > kSecond) cost.core_ratio = *cost.cpu_seconds / seconds(span);
  return cost;
}

}  // namespace

// Counters and states that are recorded for export and for people. explain_test.cc holds this list against the sources.
constexpr std::array kNotExplained{Metric::kEnergy,
                                   Metric::kPerformanceState,
                                   Metric::kEventSyncBoost,
                                   Metric::kNvlinkTx,
                                   Metric::kNvlinkRx,
                                   Metric::kFp32Active,
                                   Metric::kFp16Active,
                                   Metric::kNvlinkTxRate,
                                   Metric::kNvlinkRxRate,
                                   Metric::kBar1Used,
                                   Metric::kEccUncorrected,
                                   Metric::kMemoryReserved,
                                   Metric::kMemoryTemperature,
                                   Metric::kGraphicsProcesses,
                                   Metric::kProcessMemoryUtil,
                                   Metric::kThreadsRunning,
                                   Metric::kMinorFaults,
                                   Metric::kWriteChars,
                                   Metric::kVoluntarySwitches,
                                   Metric::kInvoluntarySwitches};

}  // namespace diagnose

std::span<const Metric> metrics_not_explained() { return diagnose::kNotExplained; }

namespace {

// Of each device the phases with names, if it has any, else those found in its utilisation: in the slices, the ledger
// and the list. For after the rules, which look at both.
void choose_phases(Analysis& a) {
  std::set<std::size_t> with_names;
  for (const Phase& phase : a.phases)
    if (!phase.named_by.empty()) with_names.insert(phase.device);
  if (with_names.empty()) return;
  std::vector<std::int32_t> place(a.phases.size(), -1);
  std::vector<Phase> chosen;
  for (std::size_t i = 0; i < a.phases.size(); ++i) {
    if (a.phases[i].named_by.empty() == with_names.contains(a.phases[i].device)) continue;
    place[i] = static_cast<std::int32_t>(chosen.size());
    chosen.push_back(std::move(a.phases[i]));
  }
  for (std::size_t device = 0; device < a.devices.size(); ++device)
    for (Slice& slice : a.devices[device].slices) {
      const std::int32_t phase = with_names.contains(device) ? slice.named : slice.phase;
      slice.phase = phase < 0 ? -1 : place[static_cast<std::size_t>(phase)];
      slice.named = -1;
    }
  a.phases = std::move(chosen);
  Ledger summed = ledger(a.devices, a.window.begin, a.window.end);
  a.ledger.entries = std::move(summed.entries);
}

// What the driver or the recording itself said, however little was read.
bool is_plain_fact(const Finding& finding) {
  return finding.cause == Cause::kDeviceLost || finding.cause == Cause::kUtilisationNotReported ||
         finding.cause == Cause::kRecordingLosses;
}

// A few seconds between whose kernels the GPU waited show what it waited for then, and not how much there is to gain;
// whether the job hangs, is done or is healthy they do not show.
void keep_what_a_moment_tells(const Analysis& a, std::vector<Finding>& findings) {
  constexpr std::array kOfMore{Cause::kHealthy, Cause::kHang, Cause::kUnreleasedAfterWork, Cause::kJobNeverUsesGpu};
  const auto is_of_more = [&](Cause cause) {
    return std::find(kOfMore.begin(), kOfMore.end(), cause) != kOfMore.end();
  };
  std::erase_if(findings, [&](const Finding& finding) {
    return !is_plain_fact(finding) && (a.ledger.busy() == 0 || (finding.cause && is_of_more(*finding.cause)) ||
                                       std::any_of(finding.candidates.begin(), finding.candidates.end(), is_of_more));
  });
  for (Finding& finding : findings) {
    if (is_plain_fact(finding)) continue;
    finding.confidence = Confidence::kLow;
    finding.gain.reset();
    finding.limits.clear();
    if (!finding.bound.empty()) diagnose::not_bounded("so short a time", finding);
  }
}

Window window_of(const Recording& recording, const ExplainOptions& options) {
  Window window{recording.meta.start, recording.meta.end};
  if (!options.window) return window;
  window.end = std::min(window.end, window.begin + options.window->second);
  window.begin = std::min(window.end, window.begin + options.window->first);
  return window;
}

// What the rules find, held to the law.
std::vector<Finding> found_by_rules(const Analysis& a, const diagnose::IdleParts& parts) {
  std::vector<Finding> findings;
  const auto take = [&](std::vector<Finding> found) {
    for (Finding& finding : diagnose::join_alike(a, std::move(found))) findings.push_back(std::move(finding));
  };
  for (const diagnose::Rule rule : diagnose::kRules) take(rule(a));
  for (const diagnose::IdleRule rule : diagnose::kIdleRules) take(rule(a, parts));
  for (Finding& finding : findings) diagnose::shorten(finding.evidence);
  return diagnose::keep_the_law(a, std::move(findings));
}

// The same findings with what is said of each alike, whichever rule made it.
std::vector<Finding> told_in_full(const Analysis& a, const diagnose::IdleParts& parts, std::vector<Finding> findings) {
  std::set<std::string> callers_told;
  for (Finding& finding : findings) {
    diagnose::name_the_trace(a, finding);
    diagnose::name_the_device(a, finding);
    diagnose::name_the_code(a, parts, callers_told, finding);
    diagnose::tell_the_role(a, finding);
    diagnose::name_the_phase(a, finding);
    diagnose::weigh(a, finding);
    if (finding.cause == Cause::kInteractiveHoldingGpu) diagnose::gains_nothing_while_nobody_asks(finding);
    if (finding.cause != Cause::kRecordingLosses) diagnose::doubt(a, finding);
  }
  diagnose::count_once(a, findings);
  for (Finding& finding : findings) {
    diagnose::bound_by_loading(a, findings, finding);
    diagnose::say_part_of_start(a, finding);
    diagnose::limit_candidates(a, finding);
    diagnose::see_whose_threads(a, finding);
  }
  return findings;
}

// How far the job is by the `end` of what was asked for; nothing of a batch, of which each task is somewhere else.
std::optional<Progress> progress_by(const Recording& recording, const Analysis& a, Nanos end) {
  if (a.job.batch.present) return std::nullopt;
  const bool ended = std::any_of(recording.events.begin(), recording.events.end(),
                                 [](const Event& event) { return is<events::JobEnd>(event); });
  const bool whole = end >= recording.meta.end;
  const bool runs = a.goes_on && !ended && whole;
  const bool to_the_end = !runs && whole;  // a job's last words are read when it has ended
  return progress_of(recording, to_the_end ? std::numeric_limits<Nanos>::max() : end,
                     runs                                          ? Ends::kRuns
                     : to_the_end && recording.meta.exit_code == 0 ? Ends::kEndedWell
                                                                   : Ends::kEnded);
}

// "; finding 1 gains more, ..." where one changes what the limit takes as it is: the kernels, or where they run.
std::string gains_beyond(const Bound& bound, const std::vector<Finding>& findings) {
  constexpr double kMore = 1.02;  // what differs by less is rounding
  std::size_t number = 0;
  for (const Finding& finding : findings) {
    if (finding.part_of) continue;
    ++number;
    if (finding.gain && finding.gain->high > kMore * bound.speedup_high)
      return fmt::format("; finding {} gains more, as it changes that work or where it is", number);
    if (finding.cause == Cause::kWrongGpuAssignment && !finding.gain)
      return fmt::format("; finding {} may gain more, as it changes where that work is", number);
  }
  return "";
}

// With what it leaves out: time that passes once in a trace, and changes of the work itself.
std::optional<Bound> bound_beside(const Analysis& a, const std::vector<Finding>& findings) {
  std::optional<Bound> bound = diagnose::bound_of(a);
  if (!bound || a.job.batch.present) return bound;
  if (const double asked = diagnose::speedup_while_asked(a, findings, bound->speedup_high);
      asked < bound->speedup_high) {
    bound->speedup_high = asked;
    bound->condition += "; what it waits for somebody stays";
  }
  for (const Finding& finding : findings)
    if (finding.passes_once)
      bound->condition += fmt::format("; {} of that time pass once in this trace, and later steps gain nothing by it",
                                      human_duration(finding.cost()));
  bound->condition += gains_beyond(*bound, findings);
  return bound;
}

// The checks of a recording that is too short to be well: what is wrong in it is, and the rest is not known.
std::vector<HealthCheck> health_of_little(const Analysis& a, bool moment) {
  std::vector<HealthCheck> checks = diagnose::health(a);
  for (HealthCheck& check : checks) {
    const bool of_this_time = moment && (check.check == "progress" || check.check == "runs_on_gpu");
    if (check.good == Answer::kYes || of_this_time)
      check = {check.check, Answer::kUnknown,
               moment ? "it was watched for too short a time" : "the log has too few readings"};
  }
  return checks;
}

}  // namespace

Explanation explain(const Recording& recording, const ExplainOptions& options,
                    const std::function<void(const Analysis&)>& look) {
  if (has_parts(recording)) return explain_parts(recording, options);
  const Window window = window_of(recording, options);
  Analysis a =
      analyze(recording, window, options.limits, {options.job_duration, options.families, options.source_text});
  if (look) look(a);
  const diagnose::IdleParts parts = diagnose::idle_parts(a);
  Explanation e;
  e.findings = told_in_full(a, parts, found_by_rules(a, parts));
  e.limits = diagnose::limits_of_the_run(a, e.findings);
  if (auto healthy = diagnose::healthy(a, e.findings)) e.findings.push_back(std::move(*healthy));
  for (Finding& finding : e.findings) diagnose::name_the_likely(finding);
  for (Finding& finding : e.findings)
    if (finding.would_overturn.empty() && finding.cause) finding.would_overturn = info(*finding.cause).overturn;
  const bool moment = diagnose::watched_for_a_moment(a);
  e.too_few = moment || diagnose::too_few_readings(a).has_value();
  if (moment)
    keep_what_a_moment_tells(a, e.findings);
  else if (e.too_few)
    std::erase_if(e.findings, [](const Finding& finding) { return !is_plain_fact(finding); });
  e.path = options.path;
  e.progress = progress_by(recording, a, window.end);
  diagnose::put_headline(a, e);
  if (!e.too_few) e.bound = bound_beside(a, e.findings);
  e.pipeline = diagnose::pipeline(a);
  e.batch = diagnose::batch_times(a);
  e.host = diagnose::host_time(a.host);
  e.health = e.too_few ? health_of_little(a, moment) : diagnose::health(a);
  e.cost = diagnose::cost_of(recording, options);
  choose_phases(a);
  e.work = std::move(a.work);
  e.said = std::move(a.said);
  e.meta = std::move(a.meta);
  e.ledger = std::move(a.ledger);
  for (GpuAnalysis& gpu : a.gpus) e.devices.push_back(std::move(gpu.stats));
  e.phases = std::move(a.phases);
  e.losses = std::move(a.losses);
  for (DeviceTime& time : a.devices) e.slices.push_back(std::move(time.slices));
  return e;
}

}  // namespace headroom
