// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/human.h"
#include "diagnose/restarts.h"
#include "diagnose/rules.h"

namespace headroom::diagnose {

namespace {

stacks::Family family_of(const Analysis& a, const ClaimedPiece& piece) {
  if (piece.where < 0) return stacks::Family::kNone;
  const auto known = a.families.find(a.ledger.places[static_cast<std::size_t>(piece.where)]);
  return known == a.families.end() ? stacks::Family::kNone : known->second;
}

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
  Nanos named = 0;
  for (const ClaimedPiece& piece : claims)
    if (piece.where >= 0) named += piece.end - piece.begin;
  return static_cast<double>(named) >= a.limits[Threshold::kCovers] * static_cast<double>(length(claims));
}

struct Stretches {
  std::size_t count = 0;
  Nanos longest = 0;
};

Stretches stretches_in(const Analysis& a, const Claims& claims) {
  Stretches stretches;
  ClaimedPiece last;
  Nanos begin = 0;
  for (const ClaimedPiece& piece : claims) {
    if (piece.account != Account::kStartup) continue;  // before the first process that uses the GPU
    const auto& slices = a.devices[piece.device].slices;
    const auto slice = std::upper_bound(slices.begin(), slices.end(), piece.begin,
                                        [](Nanos at, const Slice& s) { return at < s.end; });
    const bool goes_on = stretches.count > 0 && piece.device == last.device && piece.begin == last.end &&
                         (slice == slices.begin() || std::prev(slice)->end < piece.begin ||
                          (std::prev(slice)->pid == slice->pid && std::prev(slice)->task == slice->task));
    begin = goes_on ? begin : piece.begin;
    stretches.count += goes_on ? 0U : 1U;
    stretches.longest = std::max(stretches.longest, piece.end - begin);
    last = piece;
  }
  return stretches;
}

Finding about(const Analysis& a, Claims claims) {
  Finding finding;
  finding.claims = std::move(claims);
  finding.candidates = {Cause::kStartupLoad, Cause::kCompileWarmup};
  if (!a.job.has_host) finding.candidates.push_back(Cause::kEnvironmentInstall);  // nobody saw installers, or none
  finding.tiers = a.job.has_host ? "NP" : "N";
  finding.confidence = Confidence::kHigh;
  finding.title = "Start-up: the time from process start to the first kernel";
  const Stretches s = stretches_in(a, finding.claims);
  finding.evidence = {fmt::format("{} stretch{} of start-up, the longest {}", s.count, s.count == 1 ? "" : "es",
                                  human_duration(s.longest))};
  if (const Nanos before = length(common(finding.claims, before_the_first(a))); a.material(before))
    finding.evidence.push_back(
        fmt::format("for {} of it no process of the job was on the GPU yet: what starts them was starting itself",
                    human_duration(before)));
  finding.told_apart_from = {"input and host code: no kernel had run yet"};
  finding.would_overturn = "run it twice in a row: if the second start is as slow, it is code, not loading";
  finding.advice = "in a sweep, keep the process warm between trials; cache the data index; import late";
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
  finding.would_overturn = "run it twice in a row: if the second start is faster by less, it was not that";
  finding.advice = "keep what is compiled between runs (a cache on disk), and shapes the same";
  return finding;
}

// Imports, data, models: all that stacks show is not in a compiler, and hardly one ran.
Finding loads(const Analysis& a, Claims claims, Nanos compiled) {
  Finding finding = about(a, std::move(claims));
  if (!seen(a, finding.claims)) return finding;
  finding.candidates.clear();
  finding.cause = Cause::kStartupLoad;
  Nanos told = 0;
  for (const ClaimedPiece& piece : finding.claims)
    if (const auto family = family_of(a, piece);
        family == stacks::Family::kImport || family == stacks::Family::kDatasetIndex)
      told += piece.end - piece.begin;
  // No rule knows every compiler: of other code it is not sure.
  const bool sure = static_cast<double>(told) >= a.limits[Threshold::kMajority] * static_cast<double>(finding.cost());
  finding.confidence = sure ? Confidence::kHigh : Confidence::kMedium;
  finding.told_apart_from.push_back(
      compiled == 0 ? std::string("compiling: no compiler ran, and no stack was in one that is known")
                    : fmt::format("compiling: that was for {} beside", human_duration(compiled)));
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

std::vector<Finding> startup(const Analysis& a) {
  Claims all = claim_accounts(a, {Account::kStartup});
  const bool in_turns = !a.job.batch.present && many_in_turn(a, in_turn(a));
  if (!in_turns) all = united(all, before_the_first(a));  // is no part of each start
  all = without(all, installing(a));
  const Claims claims = without(all, tries_again(a));
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
    findings = {std::move(*again)};
  } else {
    findings = {loads(a, claims, compiling)};
  }
  for (Finding& finding : findings) {
    if (length(all) == length(claims)) {
      gains_by_removal(a, finding, "for runs of this length; less for longer ones");
      continue;
    }
    const Claims own = std::exchange(finding.claims, all);  // what makes one start faster does so for the later ones
    gains_by_removal(a, finding, "for runs of this length, with the later starts; less for longer ones");
    finding.claims = own;
  }
  return findings;
}

}  // namespace headroom::diagnose
