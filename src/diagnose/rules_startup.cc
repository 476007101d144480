// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "base/human.h"
#include "diagnose/idle_parts.h"
#include "diagnose/named_code.h"
#include "diagnose/restarts.h"
#include "diagnose/rules.h"
#include "diagnose/startup_parts.h"
#include "diagnose/words.h"
#include "model/observations.h"

namespace headroom::diagnose {

namespace {

// What compiled: compilers that the job started ran, or its stacks were in one.
struct Compiled {
  Claims claims;
  Nanos by_programs = 0;
};

Compiled compiled_in(const Analysis& a, const Claims& startup) {
  const Claims programs = compiling(a, startup);
  Claims rest = without(startup, programs);
  std::erase_if(rest, [&](const ClaimedPiece& piece) { return family_of(a, piece) == stacks::Family::kCompile; });
  return {without(startup, rest), length(programs)};
}

// Whether stacks name so much of it that what none of them was at is no large part.
bool seen(const Analysis& a, const Claims& claims) {
  const Nanos named = length_of(claims, [](const ClaimedPiece& piece) { return piece.where >= 0; });
  return static_cast<double>(named) >= a.limits[Threshold::kCovers] * static_cast<double>(length(claims));
}

bool is_loading(const Analysis& a, const ClaimedPiece& piece) {
  const stacks::Family family = family_of(a, piece);
  return family == stacks::Family::kImport || family == stacks::Family::kDatasetIndex;
}

struct Stretches {
  std::size_t count = 0;
  Nanos longest = 0;
};

// Those of a few milliseconds are moments within an import, between kernels.
Stretches stretches_in(const Analysis& a, const Claims& claims) {
  constexpr Nanos kLeast = 20 * kMillisecond;
  std::vector<Nanos> lengths;
  ClaimedPiece last;
  for (const ClaimedPiece& piece : claims) {
    if (piece.account != Account::kStartup) continue;  // before the first process that uses the GPU
    const auto& slices = a.devices[piece.device].slices;
    const auto slice = std::upper_bound(slices.begin(), slices.end(), piece.begin,
                                        [](Nanos at, const Slice& s) { return at < s.end; });
    const bool goes_on = !lengths.empty() && piece.device == last.device && piece.begin == last.end &&
                         (slice == slices.begin() || std::prev(slice)->end < piece.begin ||
                          (std::prev(slice)->pid == slice->pid && std::prev(slice)->task == slice->task));
    if (!goes_on) lengths.push_back(0);
    lengths.back() += piece.end - piece.begin;
    last = piece;
  }
  Stretches stretches;
  for (const Nanos length : lengths) stretches.longest = std::max(stretches.longest, length);
  for (const Nanos length : lengths) stretches.count += length >= std::min(kLeast, stretches.longest) ? 1U : 0U;
  return stretches;
}

// The driver's finer readings are taken so often at least (docs/metrics.md): until then a kernel is known to have been
// within the interval between two readings, and is taken to have been at its end.
constexpr Nanos kSettled = 4 * kSecond;

Nanos last_end(const Claims& claims) {
  Nanos last = 0;
  for (const ClaimedPiece& piece : claims) last = std::max(last, piece.end);
  return last;
}

}  // namespace

Nanos imported_later(const Analysis& a, const Claims& claims) {
  Claims later;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    std::set<std::int64_t> computed;
    for (const Slice& slice : a.devices[device].slices) {
      if (is_busy(slice.account)) computed.insert(slice.pid);
      if (slice.account == Account::kStartup && computed.contains(slice.pid))
        later.push_back({device, slice.begin, slice.end, slice.account, slice.where});
    }
  }
  return length(common(claims, later));
}

namespace {

const std::string kKeepWarm = "in a sweep, keep the process warm between trials; keep what each start loads or builds";

// Where stacks tell of most of it that it was something else, imports are no matter.
bool may_import_late(const Analysis& a, const Claims& claims) {
  const Nanos imports =
      length_of(claims, [&](const ClaimedPiece& piece) { return family_of(a, piece) == stacks::Family::kImport; });
  return !seen(a, claims) || a.material(imports);
}

// What most of it was at, where the same code keeps the GPU waiting after the first kernel, too.
std::optional<NamedCode> costs_later(const Analysis& a, const Claims& claims) {
  const std::vector<NamedCode> code = code_in(a, claims);
  if (code.empty() || code[0].share < a.limits[Threshold::kMajority]) return std::nullopt;
  // What a script runs by itself is one function, whatever it is at: only the same line of it is the same code.
  const auto line = [&](Account account) { return a.ledger.line_of(code[0].where, account).line; };
  if (code[0].place.starts_with("<module>") &&
      (line(Account::kStartup) <= 0 || line(Account::kStartup) != line(Account::kHostCode)))
    return std::nullopt;
  // Where it waits for workers, for kernels or for other ranks, what it waits for is other code.
  const auto waits = [&](Account account) {
    return (account == Account::kInput && a.host.helpers > 0) || account == Account::kSync ||
           account == Account::kPeers;
  };
  Nanos later = 0;
  for (const DeviceTime& device : a.devices)
    for (const Slice& slice : device.slices)
      if (slice.where == code[0].where && slice.account != Account::kStartup && !is_busy(slice.account) &&
          !waits(slice.account))
        later += slice.end - slice.begin;
  if (!a.material(later)) return std::nullopt;
  return code[0];
}

void say_it_is_provisional(const Analysis& a, Finding& finding) {
  const bool held = std::any_of(a.job.uses.begin(), a.job.uses.end(), [](const auto& use) { return use.ours; });
  if (a.job.has_contexts && !a.job.batch.present && !held) {
    finding.confidence = Confidence::kLow;
    finding.evidence.push_back(
        "no process of the job has held a compute context so far: a job that uses no GPU at all looks the same");
  }
  if (a.ledger.busy() > 0)
    finding.evidence.push_back(
        fmt::format("provisional: readings still to come may place the first kernel up to {} earlier",
                    human_duration(a.meta.interval)));
}

// What to change in it, where nothing is imported after a first kernel.
void advise_on_start(const Analysis& a, Finding& finding) {
  finding.may_import_late = may_import_late(a, finding.claims);
  finding.advice = kKeepWarm;
  if (finding.may_import_late) finding.advice += words_for(a.meta, {"; import late", ""});
  const auto code = costs_later(a, finding.claims);
  if (!code) return;
  finding.advice = fmt::format("change {} first: it costs later, too", code->spot());
  finding.remedy = Remedy{.fix = "faster_startup",
                          .title = "Change the code that each start runs, too",
                          .why_safe = "its result must stay the same",
                          .undo = "the code as it was",
                          .safety = Safety::kModerate};
}

Finding about(const Analysis& a, Claims claims) {
  Finding finding;
  finding.claims = std::move(claims);
  finding.candidates = {Cause::kStartupLoad, Cause::kCompileWarmup};
  if (!a.job.has_host) finding.candidates.push_back(Cause::kEnvironmentInstall);  // nobody saw installers, or none
  finding.tiers = a.job.has_host ? "NP" : "N";
  finding.confidence = Confidence::kHigh;
  finding.title = "Start-up: the time from process start to the first kernel";
  const bool provisional = a.goes_on && a.window.end - last_end(finding.claims) < kSettled;
  if (a.ledger.busy() == 0)
    finding.title = provisional ? "Start-up so far: no kernel has run yet" : "Start-up: no kernel was seen after it";
  const Nanos later = imported_later(a, finding.claims);
  const Stretches s = stretches_in(a, finding.claims);
  if (a.material(later))  // an import goes on in many stretches, between kernels
    finding.evidence = {fmt::format("for {} of it modules were imported after a first kernel", human_duration(later))};
  else if (s.count > 1)
    finding.evidence = {fmt::format("at most {} of it came in one piece", human_duration(s.longest))};
  if (provisional) say_it_is_provisional(a, finding);
  if (const Nanos before = length(common(finding.claims, before_the_first(a))); a.material(before))
    finding.evidence.push_back(
        fmt::format("for {} of it no process that used a GPU later had been started yet", human_duration(before)));
  std::vector<std::string> no_core = starved_sentence(a, host_during(a.job, a.devices, finding.claims));
  const bool starved = !no_core.empty();
  append(finding.evidence, std::move(no_core));
  finding.would_overturn =
      "run it twice in a row: what the second start saves was reading from disk or filling caches; the rest is work, "
      "or waits";
  if (a.material(later)) {
    finding.title = "Start-up: the time to the first kernel, and modules that are imported after it";
    finding.told_apart_from = {"pauses between kernels: none had run yet, or its stacks were in an import"};
    finding.advice = kKeepWarm;
  } else {
    finding.told_apart_from = {
        fmt::format("pauses between kernels: {} had run yet", later > 0 ? "hardly any" : "none")};
    advise_on_start(a, finding);
  }
  if (starved) finding.advice += "; on cores that nothing else uses it starts sooner";
  return finding;
}

Finding compiles(const Analysis& a, Claims claims, const Compiled& compiled) {
  Finding finding = about(a, std::move(claims));
  finding.candidates.clear();
  finding.cause = Cause::kCompileWarmup;
  finding.title = "Start-up: code is compiled before the first kernel";
  if (compiled.by_programs > 0)
    finding.evidence.push_back(
        fmt::format("compilers that the job started ran for {} of it", human_duration(compiled.by_programs)));
  if (const Nanos itself = length(compiled.claims) - compiled.by_programs; itself > 0)
    finding.evidence.push_back(fmt::format("its stacks were in a compiler for {} of it", human_duration(itself)));
  finding.would_overturn =
      "run it a second time with what was compiled kept (a cache): if that start is faster by less, it was not that";
  finding.advice = "keep what is compiled between runs (a cache on disk), and shapes the same";
  return finding;
}

// What its workers make first, each for itself, is before the first batch.
void waits_for_its_workers(const Analysis& a, Finding& finding) {
  const double waits = share_in(a, finding.claims, stacks::Family::kLoaderWait);
  if (waits < a.limits[Threshold::kMajority]) return;
  name_the_workers_code(a, finding);
  const HostSummary s = host_during(a.job, a.devices, finding.claims);
  if (s.helpers < 2) return;
  finding.advice = fmt::format(
      "where each of its {} makes the same before the first batch: make it once, before they start; or start fewer of "
      "them; {}",
      count_of(s.helpers, "worker"), finding.advice);
  finding.remedy = Remedy{.fix = "faster_startup", .title = "Shorten what the workers do before the first batch"};
}

// Imports, data, models: all that stacks show is not in a compiler, and hardly one ran.
Finding loads(const Analysis& a, Claims claims, Nanos compiled) {
  Finding finding = about(a, std::move(claims));
  if (!seen(a, finding.claims)) {
    loads_unseen(a, compiled, finding);
    return finding;
  }
  finding.candidates.clear();
  finding.cause = Cause::kStartupLoad;
  const Nanos told = length_of(finding.claims, [&](const ClaimedPiece& piece) { return is_loading(a, piece); });
  // No rule knows every compiler: of other code it is not sure.
  const bool sure = is_most(a, told, finding.cost());
  finding.confidence = sure ? Confidence::kHigh : Confidence::kMedium;
  if (!sure && is_called_compiling(a, finding.claims)) {
    finding.cause.reset();
    finding.candidates = {Cause::kCompileWarmup, Cause::kStartupLoad};
  } else
    finding.told_apart_from.push_back(
        compiled == 0
            ? std::string("compiling: no compiler ran, and no stack was in one that is known")
            : fmt::format("compiling: compilers ran for {}, which are another finding's", human_duration(compiled)));
  may_wait_for_room(a, finding);
  if (!sure) may_wait_for_input(a, finding);  // what it imports meanwhile is no one else's to send
  if (!sure) may_only_wait(a, finding);
  waits_for_its_workers(a, finding);
  return finding;
}

// Processes that use the GPU one after the other: each start is one more.
std::optional<Finding> starts_again(const Analysis& a, const Claims& claims) {
  const auto row = in_turn(a);
  if (a.job.batch.present || !many_in_turn(a, row) || ran_out_again(a)) return std::nullopt;
  Finding finding = about(a, claims);
  finding.candidates.clear();
  finding.cause = Cause::kTrialChurn;
  finding.confidence = Confidence::kMedium;
  finding.title = fmt::format("At least {} processes one after the other each start from nothing", row.size());
  const Stretches s = stretches_in(a, claims);
  finding.evidence = {
      fmt::format("{} stretch{} of start-up seen, the longest {}; the driver's list is read now and then, and what is "
                  "gone by then is not in it",
                  s.count, s.count == 1 ? "" : "es", human_duration(s.longest))};
  if (!failed(a)) return finding;
  // Each may have been one more try.
  finding.evidence.push_back(fmt::format("the job ended with exit code {}", *a.meta.exit_code));
  finding.cause.reset();
  finding.candidates = {Cause::kTrialChurn, Cause::kOomRestartLoop};
  return finding;
}

}  // namespace

namespace {

// What of a start may have the cause of a finding about it. What compilers were seen at is no loading; other code may
// be in one that is not known, but for imports and the like.
Claims may_be_of_it(const Analysis& a, const Claims& claims, const Finding& finding) {
  if (finding.cause == Cause::kStartupLoad) return finding.claims;
  if (finding.cause != Cause::kCompileWarmup) return claims;
  Claims open = claims;
  std::erase_if(open, [&](const ClaimedPiece& piece) { return is_loading(a, piece); });
  return united(finding.claims, open);
}

// `all`: later starts, too, of tries that `claims` leave out.
std::vector<Finding> starts(const Analysis& a, const Claims& all, const Claims& claims) {
  if (!a.material(length(claims))) return {};
  if (auto churn = trial_churn(a, claims)) return only(std::move(*churn));
  const Compiled compiled = compiled_in(a, claims);
  const Claims rest = without(claims, compiled.claims);
  const Nanos compiling = length(compiled.claims);
  std::vector<Finding> findings;
  if (a.material(compiling) && a.material(length(rest))) {
    findings = {compiles(a, compiled.claims, compiled), loads(a, rest, compiling)};
  } else if (2 * compiling >= length(claims)) {  // what is left is too little for a finding of its own
    findings = {compiles(a, claims, compiled)};
  } else if (auto again = starts_again(a, claims)) {
    // What was gone before it was listed started, too, in time that nothing explains.
    gains_at_most(a, *again, "if starting took no time", true);
    return only(std::move(*again));
  } else {
    findings = {loads(a, claims, compiling)};
  }
  for (Finding& finding : findings) {
    Gain gain{.condition = "for runs of this length", .more = "; less for longer ones"};
    if (length(all) == length(claims)) {
      // Of what the other finding names the cause of, nothing may have this one's.
      const bool each = findings.size() == 2 && findings[0].cause && findings[1].cause;
      const Claims counted = each ? finding.claims : may_be_of_it(a, claims, finding);
      if (length(counted) > finding.cost()) gain.more = counting(without(counted, finding.claims)) + gain.more;
      gains_by_removal(a, counted, finding, gain);
      continue;
    }
    // What makes one start faster does so for the later ones.
    gain.later_starts = true;
    gains_by_removal(a, all, finding, gain);
  }
  return findings;
}

}  // namespace

std::vector<Finding> startup(const Analysis& a) {
  Claims all = claim_accounts(a, {Account::kStartup});
  const bool in_turns = !a.job.batch.present && many_in_turn(a, in_turn(a));
  if (!in_turns) all = united(all, before_the_first(a));  // is no part of each start
  all = without(all, installing(a));
  Claims claims = without(all, tries_again(a));
  std::vector<Finding> findings;
  if (Claims waits = before_who_asks(a, claims); a.material(length(waits))) {
    all = without(all, waits), claims = without(claims, waits);
    findings.push_back(waits_for_who_asks(a, std::move(waits)));
  }
  if (Claims waits = before_who_types(a, claims); a.material(length(waits))) {
    all = without(all, waits), claims = without(claims, waits);
    findings.push_back(waits_for_who_types(a, std::move(waits)));
  }
  for (Finding& start : starts(a, all, claims)) findings.push_back(std::move(start));
  return findings;
}

std::vector<Finding> slow_first_steps(const Analysis& a, const IdleParts& parts) {
  Finding finding;
  finding.claims = parts.first_steps;
  if (!a.material(finding.cost())) return {};
  finding.cause = Cause::kStartupLoad;
  finding.title = "The first steps keep the GPU waiting for longer than later ones";
  finding.tiers = "NY";
  finding.confidence = Confidence::kMedium;
  finding.evidence = {
      "it lies in long pauses within seconds of the start-up, in code that launches kernels and hardly "
      "ever paused again: libraries and kernels are loaded, or tuned, at their first use"};
  finding.would_overturn = "the times of the steps: if later ones take as long as the first, this is wrong";
  finding.advice = kKeepWarm;
  gains_by_removal(a, finding, "for runs of this length; less for longer ones");
  return only(std::move(finding));
}

}  // namespace headroom::diagnose
