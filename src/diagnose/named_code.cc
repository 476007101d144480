// SPDX-License-Identifier: Apache-2.0
#include "diagnose/named_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "analyze/call_evidence.h"
#include "base/human.h"
#include "diagnose/idle_parts.h"
#include "diagnose/words.h"
#include "stacks/families.h"

namespace headroom::diagnose {

std::vector<NamedCode> code_in(const Analysis& a, const Claims& claims) {
  std::map<std::int32_t, Nanos> by_place;
  for (const ClaimedPiece& piece : claims)
    if (piece.where >= 0) by_place[piece.where] += piece.end - piece.begin;
  std::vector<NamedCode> named;
  const auto all = static_cast<double>(length(claims));
  for (const auto& [place, ns] : by_place)
    named.push_back({a.ledger.places[static_cast<std::size_t>(place)], static_cast<double>(ns) / all});
  std::stable_sort(named.begin(), named.end(), [](const auto& x, const auto& y) { return x.share > y.share; });
  return named;
}

namespace {

bool holds(const Analysis& a, SourceId process, std::size_t device) {
  return std::any_of(a.job.uses.begin(), a.job.uses.end(), [&](const ContextUse& use) {
    return use.ours && use.process == process && use.device == a.devices[device].source;
  });
}

// Of processes that wait for one of them, the time of the GPU of that one: what the others wait for is there.
Claims of_the_busiest(const Analysis& a, const Claims& claims) {
  Claims busiest;
  double most = 0;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    Claims here;
    std::copy_if(claims.begin(), claims.end(), std::back_inserter(here),
                 [&](const ClaimedPiece& piece) { return piece.device == device; });
    const double cores = here.empty() ? 0 : host_during(a.job, a.devices, here).most_owner_cpu;
    if (cores <= most) continue;
    most = cores;
    busiest = std::move(here);
  }
  return busiest;
}

// What another thread was at that kept the main one from going on, or may have: it had the interpreter, or the main
// thread slept on a lock meanwhile.
std::string beside(const Analysis& a, Finding& finding) {
  std::map<Account, Nanos> accounts;
  for (const ClaimedPiece& piece : finding.claims) accounts[piece.account] += piece.end - piece.begin;
  const auto most = std::max_element(accounts.begin(), accounts.end(),
                                     [](const auto& x, const auto& y) { return x.second < y.second; });
  const auto code = std::find_if(a.other_threads.begin(), a.other_threads.end(),
                                 [&](const ThreadCode& other) { return other.account == most->first; });
  if (code == a.other_threads.end() || most->first == Account::kStartup || most->first == Account::kTeardown) return "";
  const HostSummary s = host_during(a.job, a.devices, finding.claims);
  if (s.owner_threads < a.limits[Threshold::kOtherThreads]) return "";
  const double often = a.limits[Threshold::kChannelShare];
  std::string text;
  if (code->with_interpreter >= often)
    text = fmt::format("; another thread had the interpreter (GIL) in {} of them: {}",
                       human_percent(code->with_interpreter), code->place);
  else if (code->share >= often && s.waiting_in({WaitChannel::kFutex}) >= often)
    text = fmt::format("; in {} of them another thread was at {}, and the main one slept on a lock in {} of the looks",
                       human_percent(code->share), code->place, human_percent(s.waiting_in({WaitChannel::kFutex})));
  if (text.empty() || finding.cause) return text;
  // What keeps it from running is before what it would run, and alone where it does so for most of the time. A wait for
  // kernels lets go of the interpreter, so that it may be another's meanwhile without harm.
  if (most->first == Account::kHostCode && code->with_interpreter >= a.limits[Threshold::kMajority])
    std::erase_if(finding.candidates, [](Cause cause) { return cause != Cause::kCpuOversubscribed; });
  std::erase(finding.candidates, Cause::kGilContention);
  finding.candidates.insert(finding.candidates.begin(), Cause::kGilContention);
  if (finding.candidates.size() == 1) {
    finding.candidates.clear();
    finding.cause = Cause::kGilContention;
  }
  finding.advice =
      code->with_interpreter >= often
          ? fmt::format("run {} in another process, or in code that lets go of the interpreter", code->place)
          : fmt::format("see whether {} has that lock; if so, hold it for a shorter time", code->place);
  return text;
}

}  // namespace

void name_the_code(const Analysis& a, Finding& finding) {
  constexpr std::size_t kMost = 3;
  constexpr double kLeast = 0.05;  // of the time: less is an accident of sampling
  // A wait for others that no stack tells: what they wait for is at the busiest one.
  const bool straggler = !finding.candidates.empty() && finding.candidates.front() == Cause::kStraggler;
  const Claims late = straggler ? common(finding.claims, late_rank(a).claims) : Claims{};
  const bool ranks = straggler && (!late.empty() || !common(finding.claims, rank_waits(a)).empty());
  const Claims looked_at = !late.empty() ? late : ranks ? of_the_busiest(a, finding.claims) : finding.claims;
  std::vector<NamedCode> named = code_in(a, looked_at);
  std::erase_if(named, [](const NamedCode& code) { return code.share < kLeast; });
  if (named.empty() || named[0].place == kNotBegun) return;  // the finding says no more
  const bool profiled = finding.tiers.has("C");
  const bool few = !profiled && length(looked_at) < kSecond;  // shares of a handful of stacks would be accidents
  if (few && ranks) return;                                   // and that of another process is in the title
  std::string text;
  for (std::size_t i = 0; i < std::min(kMost, named.size()); ++i)
    text += (i == 0 ? " " : ", ") + named[i].place + (few ? "" : " " + human_percent(named[i].share));
  if (!few) text += ranks ? " of this time of its GPU" : " of this time";
  if (!few && !ranks) text += beside(a, finding);
  finding.evidence.insert(finding.evidence.begin(), profiled ? "by the trace:" + text
                                                             : fmt::format("{} Python stacks{} say:{}",
                                                                           !late.empty() ? "the late one's"
                                                                           : ranks       ? "the busiest one's"
                                                                                         : "its",
                                                                           few ? ", a few only," : "", text));
  // That it waits for workers is said already.
  if (named[0].share >= a.limits[Threshold::kMajority] && named[0].place != info(stacks::Family::kLoaderWait).label)
    finding.title += ": " + named[0].place;
  if (!profiled) finding.tiers |= "Y";
}

std::optional<PeerWait> peer_in(const Analysis& a, const Claims& claims, bool told) {
  std::vector<std::pair<Nanos, const PeerWait*>> waits;
  for (const PeerWait& wait : a.peer_waits) {
    if (wait.told != told || wait.peer == kNoSource) continue;
    Nanos ns = 0;
    for (const ClaimedPiece& piece : claims)
      if (piece.where >= 0 && a.ledger.places[static_cast<std::size_t>(piece.where)] == wait.where &&
          holds(a, wait.process, piece.device))
        ns += piece.end - piece.begin;
    if (ns > 0) waits.emplace_back(ns, &wait);
  }
  const auto most = std::max_element(waits.begin(), waits.end(), [](const auto& x, const auto& y) {
    return std::pair(x.first, x.second->at_work) < std::pair(y.first, y.second->at_work);
  });
  if (most == waits.end() ||
      static_cast<double>(most->first) < a.limits[Threshold::kMajority] * static_cast<double>(length(claims)))
    return std::nullopt;
  return *most->second;
}

std::string peer_sentence(const Analysis& a, const PeerWait& wait) {
  std::vector<std::size_t> gpus;
  for (std::size_t device = 0; device < a.devices.size(); ++device)
    if (holds(a, wait.peer, device)) gpus.push_back(device);
  return fmt::format("meanwhile process {} of the job ({}) was at work in {} of the looks at its stacks, mostly {}{}",
                     wait.peer_pid, gpu_names(a, gpus), human_percent(wait.at_work),
                     wait.peer_waits_for_kernels ? "waiting for its own kernels in " : "at ", wait.peer_at);
}

WorkersAt workers_at(const Analysis& a, const Claims& claims) {
  std::map<std::int32_t, double> looks_at;
  double all = 0, at_work = 0;
  const std::vector<WorkerLook>& looks = a.worker_looks.looks;
  for (const ClaimedPiece& piece : claims) {
    auto look = std::upper_bound(looks.begin(), looks.end(), std::pair(piece.device, piece.begin),
                                 [](const auto& at, const WorkerLook& x) { return at < std::pair(x.device, x.at); });
    for (; look != looks.end() && look->device == piece.device && look->at <= piece.end; ++look) {
      all += 1;
      if (look->place < 0) continue;
      looks_at[look->place] += 1;
      at_work += 1;
    }
  }
  WorkersAt workers;
  for (const auto& [place, count] : looks_at)
    workers.code.push_back({a.worker_looks.places[static_cast<std::size_t>(place)], count / at_work});
  std::stable_sort(workers.code.begin(), workers.code.end(),
                   [](const auto& x, const auto& y) { return x.share > y.share; });
  if (all > 0) workers.at_work = at_work / all;
  return workers;
}

void name_the_workers_code(const Analysis& a, Finding& finding) {
  constexpr std::size_t kMost = 3;
  constexpr double kLeast = 0.05;
  std::string text;
  const std::vector<NamedCode> code = workers_at(a, finding.claims).code;
  for (std::size_t i = 0; i < std::min(kMost, code.size()); ++i)
    if (code[i].share >= kLeast)
      text += fmt::format("{} {} {}", i == 0 ? "" : ",", code[i].place, human_percent(code[i].share));
  if (text.empty()) return;
  finding.evidence.insert(finding.evidence.begin(), "what its workers were at then, by their Python stacks:" + text);
  if (code[0].share >= a.limits[Threshold::kMajority]) finding.title += ": " + code[0].place;
  finding.tiers |= "Y";
}

void name_the_phase(const Analysis& a, Finding& finding) {
  constexpr double kLeast = 0.05;
  const auto is_said = [](const Phase& phase) { return !phase.named_by.empty() && phase.named_by != "stacks"; };
  if (std::none_of(a.phases.begin(), a.phases.end(), is_said)) return;
  std::map<std::string, Nanos> by_name;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const std::vector<Slice>& slices = a.devices[device].slices;
    for (const ClaimedPiece& piece : finding.claims) {
      if (piece.device != device) continue;
      auto slice = std::upper_bound(slices.begin(), slices.end(), piece.begin,
                                    [](Nanos at, const Slice& s) { return at < s.end; });
      for (; slice != slices.end() && slice->begin < piece.end; ++slice)
        if (slice->named >= 0 && a.phases[static_cast<std::size_t>(slice->named)].named_by != "stacks")
          by_name[a.phases[static_cast<std::size_t>(slice->named)].name] +=
              std::min(piece.end, slice->end) - std::max(piece.begin, slice->begin);
    }
  }
  std::vector<std::pair<Nanos, std::string>> order;
  for (const auto& [name, ns] : by_name)
    if (static_cast<double>(ns) >= kLeast * static_cast<double>(finding.cost())) order.emplace_back(-ns, name);
  if (order.empty()) return;
  std::sort(order.begin(), order.end());
  constexpr std::size_t kMost = 2;
  std::string text;
  for (std::size_t i = 0; i < std::min(kMost, order.size()); ++i)
    text += fmt::format("{}{} of it in {}{}", i == 0 ? "" : ", ",
                        human_percent(static_cast<double>(-order[i].first) / static_cast<double>(finding.cost())),
                        i == 0 ? "the phase " : "", order[i].second);
  finding.evidence.insert(finding.evidence.begin(), text);
}

}  // namespace headroom::diagnose
