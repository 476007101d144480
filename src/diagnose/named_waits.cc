// SPDX-License-Identifier: Apache-2.0
#include "diagnose/named_waits.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "base/human.h"
#include "diagnose/claims.h"
#include "diagnose/host_stacks.h"
#include "diagnose/host_waits.h"
#include "diagnose/idle_parts.h"
#include "diagnose/words.h"
#include "diagnose/work_during.h"
#include "model/named_causes.h"

namespace headroom::diagnose {

namespace {

std::string_view place_of(WaitChannel channel) {
  constexpr std::array<std::string_view, 12> kPlaces{"on the CPU",
                                                     "in poll",
                                                     "on a lock",
                                                     "on a timer",
                                                     "on a pipe or local socket",
                                                     "on a connection",
                                                     "on the disk",
                                                     "on a remote file system",
                                                     "for a child process",
                                                     "at a terminal",
                                                     "elsewhere",
                                                     "unknown"};
  return kPlaces[static_cast<std::size_t>(channel)];
}

// Looks that found threads waiting for the same things, whichever processes these were of.
struct NamedWait {
  WaitChannel channel = WaitChannel::kUnknown;
  std::vector<WaitTarget> targets;
  double share = 0;  // of all looks
  Looks::Named looks{};
};

void unite(std::vector<std::int64_t>& pids, const std::vector<std::int64_t>& more) {
  for (const std::int64_t pid : more)
    if (std::find(pids.begin(), pids.end(), pid) == pids.end()) pids.push_back(pid);
}

// Most often first.
std::vector<NamedWait> named_waits(const Analysis& a, const Looks& looks) {
  using Names = std::vector<std::pair<WaitKind, std::string>>;
  std::map<std::pair<WaitChannel, Names>, NamedWait> by_name;
  for (const auto& [where, seen] : looks.waits) {
    const std::vector<WaitTarget>& targets = a.job.waits.at(where.second);
    Names names;
    for (const WaitTarget& target : targets) names.emplace_back(target.kind, target.name);
    NamedWait& one = by_name[{where.first, names}];
    one.channel = where.first;
    if (one.targets.empty())
      one.targets = targets;
    else
      for (std::size_t i = 0; i < one.targets.size(); ++i) unite(one.targets[i].pids, targets[i].pids);
    one.share += seen.count / looks.count;
    one.looks.seconds += seen.seconds, one.looks.sent += seen.sent, one.looks.received += seen.received;
  }
  std::vector<NamedWait> waits;
  for (auto& [names, wait] : by_name) waits.push_back(std::move(wait));
  std::stable_sort(waits.begin(), waits.end(), [](const auto& x, const auto& y) { return x.share > y.share; });
  return waits;
}

// The one process at the other end; nothing where the recording has several of that number.
const RecordedProcess* process_at(const Analysis& a, const WaitTarget& target) {
  const RecordedProcess* found = nullptr;
  for (const RecordedProcess& process : a.processes) {
    if (target.pids.size() != 1 || process.facts.pid != target.pids.front()) continue;
    if (found) return nullptr;
    found = &process;
  }
  return found;
}

// Of several at the other end of a pipe the only one on a GPU: those that it has forked have what it had.
WaitTarget without_forked(const Analysis& a, WaitTarget target) {
  std::vector<std::int64_t> on_gpus;
  for (const RecordedProcess& process : a.processes)
    if (a.job.holds[static_cast<std::size_t>(process.source)] &&
        std::find(target.pids.begin(), target.pids.end(), process.facts.pid) != target.pids.end())
      on_gpus.push_back(process.facts.pid);
  if (target.pids.size() > 1 && on_gpus.size() == 1) target.pids = std::move(on_gpus);
  return target;
}

// "process 4243 (ffmpeg -i a.mp4 -)", where that is one; else "".
std::string other_end(const Analysis& a, const WaitTarget& told) {
  const WaitTarget target = without_forked(a, told);
  if (target.pids.size() != 1) return "";
  const RecordedProcess* process = process_at(a, target);
  constexpr std::array kNoProcess{WaitKind::kConnection, WaitKind::kAccepted, WaitKind::kFileLock};  // by their names
  const bool named = process || std::find(kNoProcess.begin(), kNoProcess.end(), target.kind) == kNoProcess.end();
  return fmt::format("process {}{}", target.pids.front(),
                     named ? fmt::format(" ({})", process ? name_of(process->facts) : target.name) : "");
}

std::string words_of(const Analysis& a, const WaitTarget& target) {
  const std::string other = other_end(a, target);
  if (target.kind == WaitKind::kChild) return "waiting " + headroom::words_of(target, other);
  const bool over_net = target.kind == WaitKind::kConnection || target.kind == WaitKind::kAccepted;
  return headroom::words_of(target, other.empty() || !over_net ? other : other + " of the job");
}

// The folder that all of these lie in, however deep: a loader opens another file each time.
std::string common_folder(const std::vector<const NamedWait*>& files) {
  std::string folder = files.front()->targets.front().name;
  for (const NamedWait* file : files) {
    const std::string& name = file->targets.front().name;
    const auto differ = std::mismatch(folder.begin(), folder.end(), name.begin(), name.end()).first;
    folder.erase(differ, folder.end());
  }
  folder.resize(folder.rfind('/') == std::string::npos ? 0 : folder.rfind('/') + 1);
  return folder;
}

bool is_one(const NamedWait& wait, WaitKind kind) {
  return wait.targets.size() == 1 && wait.targets.front().kind == kind;
}

// Files of which none is waited for often enough to be told, as their folder.
void tell_files_by_folder(double least, WaitChannel channel, std::vector<NamedWait>& waits) {
  std::vector<const NamedWait*> files;
  double share = 0;
  for (const NamedWait& wait : waits)
    if (is_one(wait, WaitKind::kFile) && wait.share < least) files.push_back(&wait), share += wait.share;
  if (files.size() < 2) return;
  const std::string folder = common_folder(files);
  if (folder.size() > 1)  // neither nothing nor the root
    waits.push_back({.channel = channel, .targets = {{WaitKind::kFile, folder}}, .share = share});
}

// A connection whose other end is no process of the job, as far as is known; whichever end made it.
bool leads_out(const NamedWait& wait) {
  return (is_one(wait, WaitKind::kConnection) || is_one(wait, WaitKind::kAccepted)) &&
         wait.targets.front().pids.empty();
}

// A connection to a process of the job that is on no GPU, such as one that logs for it.
bool leads_aside(const Analysis& a, const NamedWait& wait) {
  if (!is_one(wait, WaitKind::kConnection)) return false;
  const RecordedProcess* other = process_at(a, wait.targets.front());
  return other && !a.job.holds[static_cast<std::size_t>(other->source)];
}

// What over such a connection came and went: whether it is fed by the far end, or feeds that; or asks it for something
// and gets an answer, of which neither is data for kernels. What a process of the job sends may come from anywhere.
enum class Flow { kUnknown, kIn, kOut, kAsks };
Flow flow_of(const Analysis& a, const NamedWait& wait) {
  constexpr double kFarMore = 10;            // times as many bytes, by judgement
  constexpr double kAnswersPerSecond = 1e5;  // bytes: below that it may be what is asked and answered, by judgement
  constexpr double kNoDataPerSecond = 4e3;   // ... and below that, a page a second, it is no data for kernels
  constexpr double kAskedPerSecond = 1e4;    // ... nor a state that is sent: some requests with their headers
  const double least = kAnswersPerSecond * wait.looks.seconds, sent = wait.looks.sent, received = wait.looks.received;
  const bool out = leads_out(wait);
  if (!out && !leads_aside(a, wait)) return Flow::kUnknown;
  if (out && received >= std::max(least, kFarMore * sent) && received > 0) return Flow::kIn;
  if (sent >= std::max(least, kFarMore * received) && sent > 0) return Flow::kOut;
  if (is_one(wait, WaitKind::kConnection) && sent > 0 && received > 0 && sent < kAskedPerSecond * wait.looks.seconds &&
      received < kNoDataPerSecond * wait.looks.seconds)
    return Flow::kAsks;
  return Flow::kUnknown;
}

std::string words_of(const Analysis& a, const NamedWait& wait) {
  std::string text;
  for (const WaitTarget& target : wait.targets) text += (text.empty() ? "" : ", or ") + words_of(a, target);
  return text;
}

// The one of this place that was seen most, if that is often.
std::optional<NamedWait> most_in(WaitChannel channel, double least, std::vector<NamedWait> waits) {
  std::erase_if(waits, [&](const NamedWait& wait) { return wait.channel != channel; });
  tell_files_by_folder(least, channel, waits);
  const auto most = std::max_element(waits.begin(), waits.end(),
                                     [](const NamedWait& x, const NamedWait& y) { return x.share < y.share; });
  if (most == waits.end() || most->share < least) return std::nullopt;
  return *most;
}

// `any`: whether a place has a name.
std::string places_sentence(const Analysis& a, const Looks& looks, std::string_view whose, bool& any) {
  constexpr double kNearlyAll = 0.9;
  const double least = a.limits[Threshold::kChannelShare];
  const std::vector<NamedWait> waits = named_waits(a, looks);
  std::string text = fmt::format("when looked at in or near this time, {}", whose);
  std::string_view comma = " ";
  for (const Seen& place : seen_in(looks, least)) {
    const auto named = most_in(place.channel, least, waits);
    const bool all = named && named->share >= kNearlyAll * place.share;
    any |= named.has_value();
    text += fmt::format("{}{} ({}", std::exchange(comma, ", "), all ? words_of(a, *named) : place_of(place.channel),
                        human_percent(place.share));
    if (named && !all) text += fmt::format("; {} in {}", words_of(a, *named), human_percent(named->share));
    text += ")";
    if (named && named->looks.sent + named->looks.received > 0)
      text += fmt::format(", over which {} came and {} went by the last look at it",
                          human_bytes(static_cast<std::int64_t>(named->looks.received)),
                          human_bytes(static_cast<std::int64_t>(named->looks.sent)));
  }
  return text;
}

}  // namespace

std::vector<std::string> named_places(const Analysis& a, const Looks& looks, std::string_view whose) {
  bool any = false;
  std::string sentence = places_sentence(a, looks, whose, any);
  return any ? std::vector{std::move(sentence)} : std::vector<std::string>();
}

std::string looks_sentence(const Analysis& a, const Looks& looks, const Claims& claims) {
  constexpr double kMostOfIt = 0.75;  // then looks that are near the claims are in them
  bool any = false;
  const std::string text = places_sentence(a, looks, "its main thread was", any);
  if (part_claimed(claims) >= kMostOfIt) return text;
  // The driver's own wait for kernels is one on a lock.
  const double on_lock = looks.share({WaitChannel::kFutex}), kernels = a.code.kernel_waits.share;
  if (on_lock >= a.limits[Threshold::kChannelShare] && kernels >= kMostOfIt * on_lock)
    return text + fmt::format("; its stacks found it waiting for its kernels in {}, which is a wait on a lock, too",
                              human_percent(kernels));
  return text + "; waits for its kernels may be among these";
}

namespace {

// One process of the job is at the other end; the end of a child is told by name_the_child().
bool is_to_a_process(const NamedWait& wait) {
  return wait.targets.size() == 1 && wait.targets.front().pids.size() == 1 && !is_one(wait, WaitKind::kChild) &&
         !is_one(wait, WaitKind::kFileLock);
}

// The share of the looks at owners in which they waited for what this takes.
template <class Wanted>
double share_of(const std::vector<NamedWait>& waits, const Wanted& wanted) {
  double share = 0;
  for (const NamedWait& wait : waits) share += wanted(wait) ? wait.share : 0;
  return share;
}

void say_who(const Analysis& a, const WaitTarget& target, Finding& finding) {
  finding.title = "The GPU waits while the training process waits for " + other_end(a, target);
  const RecordedProcess* other = process_at(a, target);
  if (!other) return;
  if (!a.job.holds[static_cast<std::size_t>(other->source)]) return may_sleep_itself(a, *other, finding);
  finding.title += ", which is on a GPU, too";
  // It waits for that process, whatever that is at; why it wakes up late is another matter.
  const bool cores = may_be(finding, Cause::kCpuOversubscribed);
  finding.candidates = {Cause::kStraggler, Cause::kExposedCommunication};
  if (cores) finding.candidates.push_back(Cause::kCpuOversubscribed);
}

}  // namespace

void nobody_asks(Finding& finding) {
  finding.cause = Cause::kInteractiveHoldingGpu;
  finding.candidates.clear();
  finding.title = "The GPU waits for who connects to its process";
  finding.advice = "let other work have the GPU while nobody asks, or start the process when somebody does";
  finding.remedy =
      Remedy{.fix = "let_the_gpu_go", .why_safe = "who asks first waits until it has started", .undo = "as it was"};
  finding.told_apart_from.emplace_back(
      "uploads and reading: it waited at its own port, and hardly anything came or went");
}

double share_on(const Analysis& a, const Looks& looks, WaitKind kind) {
  return share_of(named_waits(a, looks), [&](const NamedWait& wait) { return is_one(wait, kind); });
}

double share_for_owners(const Analysis& a, const Looks& looks) {
  return share_of(named_waits(a, looks), [&](const NamedWait& wait) {
    if (wait.targets.size() != 1 || is_one(wait, WaitKind::kChild) || is_one(wait, WaitKind::kFileLock)) return false;
    const auto& pids = wait.targets.front().pids;  // processes that it has forked later have its end of a pipe, too
    return std::any_of(a.processes.begin(), a.processes.end(), [&](const RecordedProcess& process) {
      return a.job.holds[static_cast<std::size_t>(process.source)] &&
             std::find(pids.begin(), pids.end(), process.facts.pid) != pids.end();
    });
  });
}

std::string pipe_end(const Analysis& a, const Looks& looks) {
  for (const NamedWait& wait : named_waits(a, looks))
    if (is_to_a_process(wait)) return other_end(a, wait.targets.front());
  return "";
}

namespace {

// Whoever reads from the pipe is slower than what the job writes.
void writes_to_a_full_pipe(const Analysis& a, const std::vector<NamedWait>& waits, Finding& finding) {
  const auto pipe =
      std::find_if(waits.begin(), waits.end(), [](const NamedWait& wait) { return is_one(wait, WaitKind::kFullPipe); });
  const std::string reader = pipe == waits.end() ? "" : other_end(a, pipe->targets.front());
  const double share = share_of(waits, [](const NamedWait& wait) { return is_one(wait, WaitKind::kFullPipe); });
  finding.cause = Cause::kLoggingUpload;
  finding.candidates.clear();
  if (share < a.limits[Threshold::kChannelShare])  // else it is in what the looks are said to have found
    finding.evidence.push_back(
        fmt::format("in {} of the looks in or near this time its main thread was on a full pipe{}",
                    human_percent(share), reader.empty() ? "" : " to " + reader));
  finding.title = fmt::format("The GPU waits while the job writes to a pipe that is full{}",
                              reader.empty() ? "" : fmt::format(", which {} reads", reader));
  finding.advice = "write less or less often, or from a thread of its own; or let its reader take it faster";
}

// Whoever holds the lock lets go of it too late.
void waits_for_a_lock(const Analysis& a, const std::vector<NamedWait>& waits, bool in_pauses, Finding& finding) {
  const auto lock =
      std::find_if(waits.begin(), waits.end(), [](const NamedWait& wait) { return is_one(wait, WaitKind::kFileLock); });
  const WaitTarget& file = lock->targets.front();
  const std::string holder = other_end(a, file);
  finding.title = gpu_waits(in_pauses, fmt::format("while the training process waits for a lock on {}{}", file.name,
                                                   holder.empty() ? "" : ", which " + holder + " has"));
  finding.advice = fmt::format(
      "see {}: hold it for less time, or give each its own copy",
      holder.empty() ? "who holds that lock meanwhile (lslocks)" : "what " + holder + " does while it has that lock");
}

// Of processes with a GPU each one is seen to wait, over a pipe or a socket, for a process on a GPU; what its sockets
// are between several processes have, as those do that hand them down.
void may_wait_for_a_rank(const Analysis& a, const std::vector<NamedWait>& waits, Finding& finding) {
  const double share = share_of(waits, [&](const NamedWait& wait) {
    return wait.targets.size() == 1 && !is_one(wait, WaitKind::kChild) && !is_one(wait, WaitKind::kFileLock) &&
           std::any_of(a.processes.begin(), a.processes.end(), [&](const RecordedProcess& process) {
             const auto& pids = wait.targets.front().pids;
             return a.job.holds[static_cast<std::size_t>(process.source)] &&
                    std::find(pids.begin(), pids.end(), process.facts.pid) != pids.end();
           });
  });
  if (!has_ranks(a) || share < a.limits[Threshold::kChannelShare] || finding.candidates.size() < 2) return;
  const bool cores = std::count(finding.candidates.begin(), finding.candidates.end(), Cause::kCpuOversubscribed) > 0;
  finding.candidates = {Cause::kStraggler, Cause::kExposedCommunication};
  if (cores) finding.candidates.push_back(Cause::kCpuOversubscribed);
  finding.evidence.push_back(
      "a socket or pipe that a process on a GPU waits on leads to another one on a GPU: they may "
      "wait for one another");
}

double flow_share(const Analysis& a, const std::vector<NamedWait>& waits, Flow flow) {
  return share_of(waits, [&](const NamedWait& wait) { return flow_of(a, wait) == flow; });
}

// Shares of the looks at owners: over what they waited on data came to them, left them, or was asked for.
struct FlowShares {
  double fed, feeds, asks, dry;  // connections; dry: no more than acknowledgements came
  double reads, writes;          // pipes
  double locks;                  // files
  [[nodiscard]] double connected() const { return fed + feeds + asks; }
};

// However much went, what came is no more than an acknowledgement.
bool hardly_fed(const NamedWait& wait) {
  constexpr double kAcknowledgedPerSecond = 1e3;  // bytes: a short answer with its headers, by judgement
  const bool connection = is_one(wait, WaitKind::kConnection) || is_one(wait, WaitKind::kAccepted);
  return connection && wait.looks.sent + wait.looks.received > 0 &&
         wait.looks.received < kAcknowledgedPerSecond * wait.looks.seconds;
}

FlowShares flow_shares(const Analysis& a, const std::vector<NamedWait>& waits) {
  const auto on = [&](WaitKind kind) {
    return share_of(waits, [&](const NamedWait& wait) { return is_one(wait, kind); });
  };
  return {.fed = flow_share(a, waits, Flow::kIn),
          .feeds = flow_share(a, waits, Flow::kOut),
          .asks = flow_share(a, waits, Flow::kAsks),
          .dry = share_of(waits, hardly_fed),
          .reads = on(WaitKind::kPipe),
          .writes = on(WaitKind::kFullPipe),
          .locks = on(WaitKind::kFileLock)};
}

void rule_out(Cause cause, std::string_view why, Finding& finding) {
  if (finding.candidates.size() < 2 || std::erase(finding.candidates, cause) == 0 || why.empty()) return;
  finding.told_apart_from.emplace_back(why);
}

// `most`: of the looks; `some`: less is none.
void rule_out_by_flow(const FlowShares& s, const HostSummary& host, double most, double some, Finding& finding) {
  if (s.fed >= most && s.feeds < some)
    rule_out(Cause::kLoggingUpload, "uploads: over the connection that it waited on far more came than went", finding);
  if (s.reads >= most && s.writes + s.feeds < some)
    rule_out(Cause::kLoggingUpload, "uploads: it read from the pipe that it waited on", finding);
  if (s.feeds >= most && s.fed < some)
    rule_out(Cause::kSlowStorage, "reading: over the connection that it waited on far more went than came", finding);
  if (std::max(s.asks, s.dry) >= most && s.reads + s.fed < some)
    rule_out(Cause::kSlowStorage, "reading: over the connection that it waited on hardly anything came", finding);
  if (s.writes >= most && s.reads + s.fed < some)
    rule_out(Cause::kSlowStorage, "reading: it wrote to the pipe that it waited on", finding);
  if (finding.cause) return;
  // What it waits for is beyond the connection, and no code of its own.
  if (host.helpers == 0 && s.connected() >= most)
    for (const Cause cause : {Cause::kBurstyInput, Cause::kInputInMainProcess, Cause::kGilContention})
      rule_out(cause, "", finding);
  if (s.feeds + s.asks >= most)
    rule_out(Cause::kInputTooFewWorkers, "", finding);  // what takes it makes nothing for it
  // Most of it is the wait at the far end, and a wait for a core less than half.
  if (s.connected() >= most && host.owner_delay < most)
    rule_out(Cause::kCpuOversubscribed, "too few cores: it waited for its connection for most of this time", finding);
}

// A cause that is alone in its set is the one, by what went over connections.
struct FlowCause {
  Flow flow;
  Cause cause;
  const char* title;
  const char* advice;
};

constexpr std::array kFlowCauses{
    FlowCause{Flow::kIn, Cause::kSlowStorage, "The GPU waits for data that comes over a connection",
              "read ahead beside the kernels, or copy the data to a local disk"},
    FlowCause{Flow::kOut, Cause::kLoggingUpload, "The GPU waits while data is sent over a connection",
              "send less or less often, or from a thread or process of its own"},
    FlowCause{Flow::kAsks, Cause::kLoggingUpload, "The GPU waits for answers over a connection",
              "ask less often, or from a thread or process of its own"},
};

// Names the far end where most looks were at the one.
void decide(const Analysis& a, const std::vector<NamedWait>& waits, const FlowCause& by, double least,
            Finding& finding) {
  finding.cause = by.cause;
  finding.candidates.clear();
  finding.title = by.title;
  finding.advice = by.advice;
  const auto most =
      std::find_if(waits.begin(), waits.end(), [&](const NamedWait& w) { return flow_of(a, w) == by.flow; });
  if (most != waits.end() && most->share >= least && is_one(*most, WaitKind::kConnection))
    finding.title += " to " + most->targets.front().name;
}

}  // namespace

void follow_the_wait(const Analysis& a, const HostSummary& s, bool in_pauses, Finding& finding) {
  const std::vector<NamedWait> waits = named_waits(a, s.owner_looks);
  const FlowShares flows = flow_shares(a, waits);
  // The looks are of whole readings, of which a part is claimed.
  const double claimed = part_claimed(finding.claims), some = a.limits[Threshold::kChannelShare];
  const double most = a.limits[Threshold::kMajority] * claimed, covers = a.limits[Threshold::kCovers] * claimed;
  rule_out_by_flow(flows, s, most, some, finding);
  if (finding.cause) return;
  const double accepted =
      share_of(waits, [](const NamedWait& wait) { return leads_out(wait) && is_one(wait, WaitKind::kAccepted); });
  if (accepted >= most && in_pauses) {
    put_first(finding.candidates, Cause::kInteractiveHoldingGpu);
    constexpr double kNearlyAll = 0.9;
    if (accepted >= kNearlyAll * claimed && flows.fed + flows.feeds < some) nobody_asks(finding);
  }
  const auto by_flow = std::find_if(kFlowCauses.begin(), kFlowCauses.end(), [&](const FlowCause& one) {
    return finding.candidates == Causes{one.cause} && flow_share(a, waits, one.flow) >= most;
  });
  if (flows.writes >= most && flows.reads + flows.fed < some && may_be(finding, Cause::kLoggingUpload))
    writes_to_a_full_pipe(a, waits, finding);
  else if (by_flow != kFlowCauses.end())
    decide(a, waits, *by_flow, covers, finding);
  else if (flows.locks >= most)
    waits_for_a_lock(a, waits, in_pauses, finding);
  else if (!waits.empty() && waits.front().share >= covers && is_to_a_process(waits.front()))
    say_who(a, waits.front().targets.front(), finding);
  else
    may_wait_for_a_rank(a, waits, finding);
}

}  // namespace headroom::diagnose
