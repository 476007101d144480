// SPDX-License-Identifier: Apache-2.0
#include "diagnose/host_waits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <set>

#include "base/human.h"
#include "base/strings.h"
#include "diagnose/core_waits.h"
#include "diagnose/idle_parts.h"
#include "diagnose/named_code.h"
#include "diagnose/words.h"
#include "diagnose/work_during.h"
#include "model/named_causes.h"

namespace headroom::diagnose {

void add(Causes& causes, const Causes& more) {
  for (const Cause cause : more)
    if (std::find(causes.begin(), causes.end(), cause) == causes.end()) causes.push_back(cause);
}

void put_first(Causes& causes, Cause cause) {
  std::erase(causes, cause);
  causes.insert(causes.begin(), cause);
}

bool no_loader(const Analysis& a, const HostSummary& s) {
  return s.helpers == 0 && s.unseen_cpu < a.limits[Threshold::kHelpersAtWork];
}

bool spins(const Analysis& a, const Claims& claims) {
  return std::any_of(claims.begin(), claims.end(), [&](const ClaimedPiece& p) { return a.devices[p.device].spins; });
}

namespace {

// Pauses that are too long for a step, and the rest: what happens once in an epoch is not what happens in every step.
struct Parts {
  Claims steps, pauses;
};

Parts parts_of(const Analysis& a, const Claims& claims) {
  Parts parts;
  parts.pauses = in_pauses(a, claims);
  parts.steps = without(claims, parts.pauses);
  // Too little of one kind for a finding of its own.
  if (!a.material(length(parts.pauses)))
    parts.steps = claims, parts.pauses.clear();
  else if (!a.material(length(parts.steps)))
    parts.pauses = claims, parts.steps.clear();
  return parts;
}

// Whether stacks name one function for nearly all of both.
bool of_one_function(const Analysis& a, const Claims& one, const Claims& other) {
  constexpr double kNearlyAll = 0.9;
  const std::vector<NamedCode> first = code_in(a, one), second = code_in(a, other);
  return !first.empty() && !second.empty() && first[0].where == second[0].where && first[0].least >= kNearlyAll &&
         second[0].least >= kNearlyAll;
}

}  // namespace

std::vector<Finding> of_parts(const Analysis& a, const Claims& claims,
                              Finding (*about)(const Analysis&, Claims, bool)) {
  Parts parts = parts_of(a, claims);
  std::vector<Finding> findings;
  if (!parts.steps.empty()) findings.push_back(about(a, std::move(parts.steps), false));
  if (!parts.pauses.empty()) findings.push_back(about(a, std::move(parts.pauses), true));
  const auto causes = [](const Finding& finding) {
    return std::set(finding.candidates.begin(), finding.candidates.end());
  };
  const bool alike = findings.size() == 2 && findings[0].title == findings[1].title &&
                     findings[0].cause == findings[1].cause && causes(findings[0]) == causes(findings[1]);
  // Whoever changes that code changes both parts: two findings would each promise what the other one costs.
  if (alike || (findings.size() == 2 && of_one_function(a, findings[0].claims, findings[1].claims)))
    return only(about(a, claims, false));
  return findings;
}

Causes waits_in(WaitChannel channel, bool loader, bool in_pauses) {
  switch (channel) {
    case WaitChannel::kSocket:
      if (in_pauses) return {Cause::kLoggingUpload, Cause::kSlowStorage};
      return {Cause::kSlowStorage, Cause::kLoggingUpload};
    case WaitChannel::kPoll:
    case WaitChannel::kPipe:
      if (loader) return {Cause::kBurstyInput, Cause::kInputTooFewWorkers, Cause::kLoggingUpload};
      return {Cause::kLoggingUpload, Cause::kSlowStorage};
    case WaitChannel::kFutex:
      return {Cause::kGilContention, Cause::kBurstyInput, Cause::kPageableCopies};
    case WaitChannel::kSleep:
      return {Cause::kLoggingUpload, Cause::kSyncPoints, Cause::kPageableCopies};
    case WaitChannel::kDisk:
    case WaitChannel::kNetworkFs:
      return {Cause::kSlowStorage, Cause::kCheckpointSync};
    case WaitChannel::kTerminal:
      return {Cause::kInteractiveHoldingGpu};
    case WaitChannel::kChild:
      return {Cause::kInputInMainProcess, Cause::kCheckpointSync};
    case WaitChannel::kRunning:
    case WaitChannel::kOther:
    case WaitChannel::kUnknown:
      break;
  }
  return {};
}

std::vector<Seen> seen_in(const Looks& looks, double least) {
  std::vector<Seen> seen;
  for (std::size_t i = 0; i < looks.in.size(); ++i) {
    const auto channel = static_cast<WaitChannel>(i);
    if (const double share = looks.share({channel}); share >= least) seen.push_back({share, channel});
  }
  std::stable_sort(seen.begin(), seen.end(), [](const Seen& x, const Seen& y) { return x.share > y.share; });
  return seen;
}

double on_a_lock(const HostSummary& s, const Claims& claims) {
  constexpr double kFewest = 5;  // looks: fewer may have met it there by chance
  if (s.owner_looks.count < kFewest) return 0;
  const double elsewhere = 1 - s.owner_looks.share({WaitChannel::kFutex});
  return std::max(0.0, 1 - elsewhere / std::max(1e-9, part_claimed(claims)));
}

namespace {

// The share of the claimed time in readings in which the process on its GPU wrote so much: what it wrote before the
// first step is no matter of later ones. 1 where it is not known which process that was.
double writing_share(const Analysis& a, const Claims& claims) {
  Nanos writing = 0, all = 0;
  for (const std::size_t device : devices_of(claims)) {
    const auto owner = only_owner(a, device);
    if (!owner) return 1;
    Claims here, readings;
    std::copy_if(claims.begin(), claims.end(), std::back_inserter(here),
                 [&](const ClaimedPiece& piece) { return piece.device == device; });
    for (const Activity& did : a.job.did[static_cast<std::size_t>(*owner)])
      if (did.write_bytes_per_second.value_or(0) >= a.limits[Threshold::kReading])
        readings.push_back({device, did.begin, did.end, Account::kUnexplained, -1});
    writing += length(common(here, readings)), all += length(here);
  }
  return as_share(writing, all);
}

}  // namespace

bool wrote(const Analysis& a, const HostSummary& s, const Claims& claims, bool in_pauses) {
  return s.owner_write.value_or(0) >= a.limits[Threshold::kReading] &&
         (in_pauses || writing_share(a, claims) >= a.limits[Threshold::kMajority]);
}

Causes waited_for(const Analysis& a, const HostSummary& s, const Claims& claims, bool in_pauses) {
  Causes causes;
  for (const WaitChannel channel : {WaitChannel::kSocket, WaitChannel::kDisk, WaitChannel::kNetworkFs})
    if (s.waiting_in({channel}) >= a.limits[Threshold::kChannelShare])
      add(causes, waits_in(channel, s.helpers > 0, in_pauses));
  if (s.owner_read.value_or(0) >= a.limits[Threshold::kReading]) add(causes, {Cause::kSlowStorage});
  if (wrote(a, s, claims, in_pauses))
    add(causes, {in_pauses ? Cause::kCheckpointSync : Cause::kLoggingUpload,
                 in_pauses ? Cause::kLoggingUpload : Cause::kCheckpointSync});
  return causes;
}

namespace {

struct Copied {
  double bytes = 0;
  Nanos claimed = 0;  // of the time between these readings
  double rate = 0;    // bytes per second times seconds claimed
};

// What came over PCIe to a device between readings in which some of its claimed time lies: at most of that time, at
// least all that was copied in it. Nothing where it was not counted.
std::optional<Copied> copied_in(const Analysis& a, std::size_t device, const Claims& claims) {
  if (!a.gpus[device].copied) return std::nullopt;
  Copied all;
  auto piece = std::find_if(claims.begin(), claims.end(), [&](const ClaimedPiece& p) { return p.device == device; });
  for (const CopiedBytes& copied : *a.gpus[device].copied) {
    while (piece != claims.end() && piece->device == device && piece->end <= copied.begin) ++piece;
    if (piece == claims.end() || piece->device != device) break;
    Nanos claimed = 0;
    for (auto one = piece; one != claims.end() && one->device == device && one->begin < copied.end; ++one)
      claimed += std::min(one->end, copied.end) - std::max(one->begin, copied.begin);
    if (claimed <= 0) continue;
    all.bytes += copied.bytes;
    all.claimed += claimed;
    all.rate += copied.bytes / seconds(copied.end - copied.begin) * seconds(claimed);
  }
  return all;
}

}  // namespace

double copying(const Analysis& a, const Claims& claims) {
  double bytes = 0;
  for (std::size_t device = 0; device < a.gpus.size(); ++device)
    bytes += copied_in(a, device, claims).value_or(Copied{}).bytes;
  return bytes / a.limits[Threshold::kPageable] / std::max(1e-9, seconds(length(claims)));
}

namespace {

// Whether so few bytes came that the link as it was, from the far side of the machine, had them in next to no time.
bool too_few_for_the_link(const Analysis& a, const Claims& claims) {
  constexpr double kFarSide = 0.5;  // of the link's rate: what remote memory leaves at the least, by judgement
  double time = 0;
  for (const std::size_t device : devices_of(claims)) {
    const auto rate = a.gpus[device].link ? a.gpus[device].link->bytes_per_second() : std::nullopt;
    const auto copied = copied_in(a, device, claims);
    if (!rate || !copied) return false;
    time += copied->bytes / (kFarSide * *rate);
  }
  return time < a.limits[Threshold::kMaterial] * seconds(length(claims));
}

}  // namespace

std::optional<double> copying_at_the_link(const Analysis& a, const Claims& claims) {
  double time = 0;
  for (const std::size_t device : devices_of(claims)) {
    const auto rate = a.gpus[device].link ? a.gpus[device].link->bytes_per_second() : std::nullopt;
    const auto copied = copied_in(a, device, claims);
    if (!rate || !copied) return std::nullopt;
    time += copied->bytes / *rate;
  }
  return time / std::max(1e-9, seconds(length(claims)));
}

bool over_a_narrow_link(const Analysis& a, const Claims& claims) {
  const std::vector<std::size_t> devices = devices_of(claims);
  return std::all_of(devices.begin(), devices.end(),
                     [&](std::size_t device) { return a.gpus[device].link && a.gpus[device].link->narrow(); });
}

std::vector<std::string> link_sentences(const Analysis& a, const Claims& claims) {
  std::vector<std::string> sentences;
  for (const std::size_t device : devices_of(claims))
    if (const auto& link = a.gpus[device].link; link && link->narrow())
      sentences.push_back(
          fmt::format("the link of {} ran as {} while kernels ran", a.device_name(device), link->words()));
  return sentences;
}

void may_be_the_link(const Analysis& a, Finding& finding) {
  std::vector<std::string> slow = link_sentences(a, finding.claims);
  if (slow.empty() || !may_be(finding, Cause::kPageableCopies)) return;
  add(finding.candidates, {Cause::kPcieOrNuma});
  append(finding.evidence, std::move(slow));
}

void exclude_copies(const Analysis& a, Finding& finding) {
  if (too_few_for_the_link(a, finding.claims)) std::erase(finding.candidates, Cause::kPcieOrNuma);
  const bool counted =
      std::all_of(a.gpus.begin(), a.gpus.end(), [](const GpuAnalysis& gpu) { return gpu.copied.has_value(); });
  if (!counted || copying(a, finding.claims) >= a.limits[Threshold::kMaterial]) return;
  if (std::erase(finding.candidates, Cause::kPageableCopies) > 0)
    finding.told_apart_from.push_back("copies: hardly any bytes came over PCIe");
}

void exclude_storage(const Analysis& a, const HostSummary& s, Finding& finding) {
  constexpr std::size_t kSet = 2;  // causes: one of them alone would be told by nothing but this
  const bool read = !s.owner_read || *s.owner_read + s.helper_read.value_or(0) >= 1;
  const bool wrote = !s.owner_write || *s.owner_write >= 1;
  const bool may_come = s.waiting_in({WaitChannel::kPoll, WaitChannel::kPipe, WaitChannel::kSocket, WaitChannel::kDisk,
                                      WaitChannel::kNetworkFs, WaitChannel::kOther, WaitChannel::kUnknown}) > 0 ||
                        s.owner_looks.blocked > 0;
  // Another thread may wait for it while the main one waits for that.
  const bool for_another = !a.code.one_python_thread_each &&
                           share_in(a, finding.claims, stacks::Family::kLock) >= a.limits[Threshold::kMajority];
  if (s.owner_looks.count == 0 || may_come) return;
  const auto exclude = [&](Cause cause, std::string_view words) {
    // Copies are told by their bytes, too.
    const bool may_be_alone = finding.candidates.size() == kSet && finding.candidates[0] == Cause::kPageableCopies;
    if ((finding.candidates.size() > kSet || may_be_alone) && std::erase(finding.candidates, cause) > 0)
      finding.told_apart_from.push_back(
          fmt::format("{}, and no look saw its main thread wait for a file, a pipe or a connection", words));
  };
  if (!read && !for_another) exclude(Cause::kSlowStorage, "slow storage: nothing was read");
  if (!wrote && (finding.asleep || finding.mostly_waits))  // who runs may make what it prints
    exclude(Cause::kLoggingUpload, "logging and uploads: nothing was written");
  if (finding.candidates.size() == 1) finding.cause = finding.candidates.front(), finding.candidates.clear();
}

void suspect_copies(const Analysis& a, Finding& finding) {
  if (copying(a, finding.claims) < a.limits[Threshold::kCovers]) return;
  put_first(finding.candidates, Cause::kPageableCopies);
  Copied all;
  std::size_t devices = 0;
  for (std::size_t device = 0; device < a.gpus.size(); ++device) {
    const Copied copied = copied_in(a, device, finding.claims).value_or(Copied{});
    all.claimed += copied.claimed, all.rate += copied.rate;
    if (copied.claimed > 0) ++devices;
  }
  finding.evidence.push_back(
      fmt::format("{}/s came over PCIe{} in the readings of that time",
                  human_bytes(static_cast<std::int64_t>(all.rate / std::max(1e-9, seconds(all.claimed)))),
                  devices > 1 ? " to each GPU, on average," : ""));
}

bool may_want_cores(const Analysis& a, const HostSummary& s, const Claims& claims) {
  return s.owner_delay >= a.limits[Threshold::kMaterial] &&
         s.owner_delay >= a.limits[Threshold::kHelpersStarved] * part_claimed(claims);
}

Causes asleep_for(const Analysis& a, const HostSummary& s, const Claims& claims, bool in_pauses) {
  Causes causes;
  if (copying(a, claims) >= a.limits[Threshold::kCovers]) causes.push_back(Cause::kPageableCopies);
  if (takes_commands(a)) add(causes, {Cause::kInteractiveHoldingGpu});
  add(causes, {Cause::kLoggingUpload, Cause::kSlowStorage});
  // Asleep on a connection or a disk it waits for what is beyond these, not for code of its own.
  // Its waits for kernels are among the looks: these are of whole readings, of which a part is claimed.
  const bool beyond = s.owner_looks.share({WaitChannel::kSocket, WaitChannel::kDisk, WaitChannel::kNetworkFs}) >=
                      a.limits[Threshold::kMajority] * part_claimed(claims);
  if (!beyond || s.helpers > 0) add(causes, {Cause::kBurstyInput});
  if (!beyond && no_loader(a, s)) add(causes, {Cause::kInputInMainProcess});
  for (const Seen& place : seen_in(s.owner_looks, a.limits[Threshold::kChannelShare])) {
    if (beyond && place.channel == WaitChannel::kFutex) continue;  // as in waits for kernels
    for (const Cause cause : waits_in(place.channel, s.helpers > 0, in_pauses))
      if (cause != Cause::kGilContention || s.owner_threads >= a.limits[Threshold::kHelpersAtWork])
        add(causes, {cause});
  }
  if (copying(a, claims) >= a.limits[Threshold::kChannelShare]) add(causes, {Cause::kPageableCopies});
  // Its stacks are in no loader that is known; a process of its own may be one, whether it works or waits itself.
  if (s.helpers == 0)
    std::erase(causes, Cause::kInputTooFewWorkers);
  else
    add(causes, {Cause::kInputTooFewWorkers});
  if (s.helper_cpu >= a.limits[Threshold::kHelpersAtWork]) add(causes, {Cause::kInputInMainProcess});
  return causes;
}

namespace {

// "python3 -i", "ipython". Without -i Python may read a whole program from its input.
bool is_interpreter(const std::string& command) {
  const auto words = split(command, ' ');
  const std::string_view program = words[0].substr(words[0].rfind('/') + 1);
  if (program.starts_with("ipython") || program.starts_with("ptpython")) return true;
  if (!program.starts_with("python")) return false;
  for (std::size_t i = 1; i < words.size() && words[i].starts_with("-") && !words[i].starts_with("--"); ++i) {
    if (words[i].starts_with("-m"))
      return i + 1 < words.size() && (words[i + 1] == "IPython" || words[i + 1] == "ptpython");
    if (words[i].starts_with("-c")) return false;
    if (words[i].find('i') != std::string_view::npos) return true;
  }
  return false;
}

bool is_notebook(const std::string& command) {
  return command.find("ipykernel") != std::string::npos || command.find("colab_kernel") != std::string::npos;
}

bool any_owner(const Analysis& a, bool (*is_so)(const std::string& command)) {
  std::set<SourceId> owners;
  for (const ContextUse& use : a.job.uses)
    if (use.ours && use.process) owners.insert(*use.process);
  return std::any_of(a.processes.begin(), a.processes.end(), [&](const RecordedProcess& process) {
    return owners.contains(process.source) && is_so(process.facts.cmdline);
  });
}

}  // namespace

bool notebook(const Analysis& a) { return any_owner(a, is_notebook); }

bool takes_commands(const Analysis& a) { return notebook(a) || any_owner(a, is_interpreter); }

void may_wait_for_somebody(const Analysis& a, const HostSummary& s, bool in_pauses, Finding& finding) {
  if (!in_pauses) return;
  if (takes_commands(a)) {
    put_first(finding.candidates, Cause::kInteractiveHoldingGpu);
    finding.evidence.push_back(
        notebook(a) ? "the process on the GPU is the kernel of a notebook: it waits for whoever types"
                    : "the process on the GPU is an interactive interpreter: it waits for the next command");
  } else if (s.waiting_in({WaitChannel::kPoll, WaitChannel::kPipe}) >= a.limits[Threshold::kMajority]) {
    add(finding.candidates, {Cause::kInteractiveHoldingGpu});
  }
}

void name_the_neighbour(const Analysis& a, Finding& finding) {
  std::set<SourceId> known;
  for (const ContextUse& use : a.job.uses)
    if (use.ours && use.process) {
      known.insert(*use.process);
      for (const SourceId id : descendants(a.job, *use.process)) known.insert(id);
    }
  const Work work = work_during(a, finding.claims, [&](const RecordedProcess& process) {
    return process.facts.in_job && !known.contains(process.source);
  });
  if (work.most < a.limits[Threshold::kOtherThreads]) return;
  finding.evidence.push_back(fmt::format("meanwhile process {} of the job ({}), which is not on a GPU, used {} cores",
                                         work.busiest.pid, name_of(work.busiest), human_figure(work.most, 2)));
  put_first(finding.candidates, Cause::kInputTooFewWorkers);
  finding.advice =
      fmt::format("see whether it waits for what process {} makes; if so, make that faster, or let several make it",
                  work.busiest.pid);
}

}  // namespace headroom::diagnose
