// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "base/human.h"
#include "diagnose/idle_parts.h"
#include "diagnose/named_code.h"
#include "diagnose/rules.h"
#include "diagnose/words.h"
#include "model/observations.h"

namespace headroom::diagnose {

namespace {

std::string two_digits(double ratio) { return fmt::format("{:.2f}", ratio); }

std::string with_capital(std::string title) {
  title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(title[0])));
  return title;
}

// Of GPUs whose process would show that it waits for others, which did so the least and the most. Nothing for one GPU.
struct Extremes {
  std::size_t least = 0, most = 0;  // devices
  Nanos least_wait = 0, most_wait = 0;
};
std::optional<Extremes> extremes_of(const Analysis& a, const Claims& waits) {
  std::vector<Nanos> waited(a.devices.size());
  for (const ClaimedPiece& piece : waits) waited[piece.device] += piece.end - piece.begin;
  std::vector<std::size_t> used;
  for (std::size_t device = 0; device < a.devices.size(); ++device)
    if (a.ledger.total(Account::kUseful, device) > 0 && would_show_waits(a, device)) used.push_back(device);
  if (used.size() < 2) return std::nullopt;
  const auto [least, most] =
      std::minmax_element(used.begin(), used.end(), [&](auto x, auto y) { return waited[x] < waited[y]; });
  return Extremes{*least, *most, waited[*least], waited[*most]};
}

// Who comes last to an exchange waits there the least, and what the exchange itself takes all of them wait: where one
// waits for less than half as long as another, most of that wait is for the one.
bool one_comes_last(const Analysis& a, const std::optional<Extremes>& extremes) {
  return extremes && !is_most(a, extremes->least_wait, extremes->most_wait);
}

}  // namespace

std::vector<Finding> waiting_ranks(const Analysis& a, const IdleParts& parts) {
  Finding finding;
  finding.claims = parts.ranks;
  if (!a.material(finding.cost())) return {};
  const HostSummary s = host_during(a.job, a.devices, finding.claims);
  finding.candidates = {Cause::kStraggler, Cause::kHostGraphBuilding, Cause::kInputInMainProcess};
  finding.title = "One process of the job works on the CPU while its GPU and others' wait";
  finding.tiers = "NP";
  finding.confidence = Confidence::kMedium;
  finding.evidence.push_back(
      fmt::format("{}of {} processes with a GPU each, the busiest used or wanted {} cores, the least busy {}",
                  average_words(s), s.owners, human_figure(s.most_owner_cpu, 2), human_figure(s.least_owner_cpu, 2)));
  Claims told = finding.claims;
  std::erase_if(told, [](const ClaimedPiece& piece) { return piece.account != Account::kPeers; });
  if (const auto wait = peer_in(a, told, true)) {
    const std::string peer = process_name(wait->peer_pid, wait->peer_rank);
    finding.title =
        wait->peer_waits_for_kernels
            ? fmt::format("GPUs wait for {} of the job, and for its kernels", peer)
            : with_capital(fmt::format("{} of the job works on the CPU while its GPU and others' wait", peer));
    finding.evidence.push_back(peer_sentence(a, *wait));
    // Only one of them does it, and the others are seen to wait: it is not what each of them does.
    if (wait->at_work >= a.limits[Threshold::kMajority] && one_comes_last(a, extremes_of(a, told))) {
      finding.cause = Cause::kStraggler;
      finding.candidates.clear();
    }
  }
  finding.evidence.push_back(helper_sentence(s));
  append(finding.evidence, storage_sentences(s));
  append(finding.evidence, recurrences(a, finding.claims));
  finding.would_overturn = "run one process alone: if its GPU is idle as long, no other keeps it waiting";
  finding.advice = "find out what the busiest process does that the others do not: uneven data, logging, validation";
  gains_at_most(a, finding, "if what only the busiest one does there took no time");
  return only(std::move(finding));
}

namespace {

bool one_could_run_all(const Analysis& a, const std::set<std::size_t>& devices) {
  Nanos kernels = 0;
  for (const std::size_t device : devices) kernels += a.ledger.total(Account::kUseful, device);
  return kernels <= a.ledger.span();
}

// "rank 1 (process 8, GPU 1)"; "the process on GPU 1" where nothing tells its number, or several were there.
std::string who_is_on(const Analysis& a, std::size_t device) {
  std::map<std::int64_t, std::int64_t> ranks;  // by pid
  bool all_have_one = true;
  for (const ContextUse& use : a.job.uses) {
    if (!use.ours || use.device != a.devices[device].source) continue;
    const auto rank = use.process ? a.job.ranks.find(*use.process) : a.job.ranks.end();
    if (rank == a.job.ranks.end())
      all_have_one = false;
    else
      ranks[use.pid] = rank->second;
  }
  const std::string gpu = a.device_name(device);
  return all_have_one && ranks.size() == 1 ? process_name(ranks.begin()->first, ranks.begin()->second, gpu)
                                           : "the process on " + gpu;
}

// The GPU of the process that the others wait for has no kernel meanwhile, either.
void add_its_own_half(const Analysis& a, const LateRank& late, Finding& finding) {
  finding.title = "The GPUs wait for " + who_is_on(a, late.device);
  finding.evidence.push_back(fmt::format("while others wait, {} itself has no kernel for {}",
                                         a.device_name(late.device), human_duration(length(late.claims))));
  const HostSummary s = host_during(a.job, a.devices, late.claims);
  const bool starved = s.owner_delay >= a.limits[Threshold::kHelpersStarved] && s.owner_delay > s.owner_cpu;
  const AccountSet accounts = info(Cause::kCpuOversubscribed).accounts;
  if (!starved || std::none_of(late.claims.begin(), late.claims.end(),
                               [&](const ClaimedPiece& piece) { return accounts.has(piece.account); }))
    return;
  finding.candidates.push_back(Cause::kCpuOversubscribed);
  finding.evidence.push_back(fmt::format("its main thread waited {} of that time for a free core, and used {} of one",
                                         human_percent(s.owner_delay), human_percent(s.owner_cpu)));
}

// Whether the other one is seen at its work for most of the wait.
bool is_at_work(const Analysis& a, const std::optional<PeerWait>& wait) {
  return wait && wait->at_work >= a.limits[Threshold::kMajority];
}

// Whom the others wait for, where one is at work meanwhile, or waits the least; else nothing.
void say_who_comes_last(const Analysis& a, const std::optional<PeerWait>& wait, bool uneven,
                        const std::optional<Extremes>& extremes, Finding& finding) {
  const bool at_work = is_at_work(a, wait);
  if (!at_work && !uneven) return;
  if (at_work && extremes && !uneven) {
    finding.advice =
        "they wait for one another about as long: let their work overlap (micro-batches of a pipeline), or exchange "
        "less often";
    return;
  }
  finding.candidates = {Cause::kStraggler, Cause::kExposedCommunication};
  if (!at_work)
    finding.advice = fmt::format("see why {}, which waits the least, comes last: its share of the data, its kernels",
                                 who_is_on(a, extremes->least));
  else
    finding.advice =
        fmt::format("see why {} takes longer: its share of the data, {}", process_name(wait->peer_pid, wait->peer_rank),
                    wait->peer_waits_for_kernels ? "its kernels"
                    : wait->peer_at.empty()      ? "what its code does before its kernels"
                                                 : "what it does in " + wait->peer_at);
}

// Where the others wait for the kernels of the slow one, these do not go: with equal shares of them each process works
// for as long as all do on average, so that of their waits the mean is saved; or what the slow one's kernels take
// longer than those of all on average, where readings say that this is more.
void gains_by_even_shares(const Analysis& a, Finding& finding) {
  const std::set<std::size_t> ranks = devices_of_ranks(a);
  if (finding.cause != Cause::kStraggler) return gains_by_spreading(a, ranks, finding);
  if (!finding.gain || ranks.empty()) return;
  const Claims& waits = finding.counted.empty() ? finding.claims : finding.counted;
  Nanos waited = 0, kernels = 0, longest = 0;
  for (const std::size_t device : ranks) {
    const Nanos here = a.ledger.total(Account::kUseful, device);
    waited += length_on(device, waits), kernels += here, longest = std::max(longest, here);
  }
  const auto many = static_cast<Nanos>(ranks.size());
  const Nanos all = a.ledger.span(), saved = std::max(waited / many, longest - kernels / many);
  const double factor = static_cast<double>(all) / static_cast<double>(std::max<Nanos>(1, all - saved));
  Gain gain = *finding.gain;
  gain.high = factor;
  gain.condition = "if each process got an equal share of these kernels";
  bound_by(std::move(gain), finding);
}

}  // namespace

// What its stacks or its marks say: an exchange between processes, in which each waits for the others.
std::vector<Finding> waiting_for_peers(const Analysis& a, const IdleParts& parts) {
  Finding finding;
  const Claims waits = open_time(a, parts, {Account::kPeers});
  if (!a.material(length(waits))) return {};
  const LateRank& late = parts.late;
  finding.claims = united(waits, late.claims);
  finding.title = "The GPU waits for another process of the job";
  finding.candidates = {Cause::kExposedCommunication, Cause::kStraggler};
  finding.tiers = "N";
  for (const DeviceTime& device : a.devices)
    for (const Slice& slice : device.slices)
      if (slice.account == Account::kPeers) finding.tiers |= slice.tiers;
  finding.confidence = Confidence::kMedium;
  finding.advice = "see which process comes last to this exchange, and why; exchange less often, or beside the kernels";
  auto wait = peer_in(a, waits, true);
  if (wait && wait->peer_waits_for_kernels && holds(a, wait->peer, late.device) &&
      is_most(a, length(late.claims), length(waits)))
    wait->peer_waits_for_kernels = false,
    wait->peer_at.clear();  // its GPU had none: looks lie further apart than steps
  if (wait) finding.evidence.push_back(peer_sentence(a, *wait));
  // Where all wait alike, none is slow, or they take turns.
  const auto extremes = extremes_of(a, waits);
  const bool uneven = one_comes_last(a, extremes);
  // The exchange itself takes all of them as long as the one that waits the least, at most.
  constexpr Nanos kFew = 4;
  const bool hardly_exchanges = uneven && kFew * extremes->least_wait <= extremes->most_wait && is_at_work(a, wait);
  if (extremes)
    finding.evidence.push_back(fmt::format("{} waited for others {}, {} {}", a.device_name(extremes->least),
                                           human_duration(extremes->least_wait), a.device_name(extremes->most),
                                           human_duration(extremes->most_wait)));
  for (const std::size_t device : devices_of_ranks(a))
    if (!would_show_waits(a, device))
      finding.evidence.push_back(
          fmt::format("whether {} waited, too, is not known: neither stacks nor marks tell what it did for most of the "
                      "time in which its GPU was idle between kernels",
                      who_is_on(a, device)));
  if (hardly_exchanges)
    finding.evidence.push_back("the exchange itself takes each of them no longer than the shorter of these waits");
  say_who_comes_last(a, wait, uneven, extremes, finding);
  const bool both = !late.claims.empty();
  if (both) add_its_own_half(a, late, finding);
  if ((both && uneven) || hardly_exchanges) {
    finding.cause = Cause::kStraggler;
    finding.candidates.clear();
  }
  append(finding.evidence, recurrences(a, finding.claims));
  finding.would_overturn =
      "each process's time from one exchange to the next: if they are alike, it is the exchange itself";
  gains_at_most(a, finding,
                both ? "if none came later to an exchange than the others" : "if no process waited for another");
  if (wait && wait->peer_waits_for_kernels) gains_by_even_shares(a, finding);
  return only(std::move(finding));
}

namespace {

// While each GPU of the process keeps its work, what the one that waits least waits is the most that can go: its
// kernels and its other time remain.
void keeps_its_work(const Analysis& a, Finding& finding) {
  Nanos least = a.ledger.span();
  for (const std::size_t device : devices_of_one_process(a)) least = std::min(least, length_on(device, finding.claims));
  const Nanos left = a.ledger.span() - least;
  if (!finding.gain || left <= 0) return;
  const double factor = static_cast<double>(a.ledger.span()) / static_cast<double>(left);
  if (factor >= finding.gain->high) return;
  finding.gain->high = factor;
  finding.bound = bound_words(*finding.gain);
}

}  // namespace

std::vector<Finding> uneven_gpus(const Analysis& a, const IdleParts& parts) {
  const UnevenTime& uneven = parts.uneven;
  Finding finding;
  finding.claims = uneven.claims;
  if (!a.material(finding.cost())) return {};
  if (uneven.in_turn) {
    finding.candidates = {Cause::kOneProcessImbalance, Cause::kMoreGpusThanUseful};
    finding.title = "One process uses several GPUs, and they take turns";
  } else if (uneven.at_once) {
    finding.cause = Cause::kOneProcessImbalance;
    finding.title = "One process uses several GPUs at once, and one of them is done before another";
  } else {
    finding.cause = Cause::kOneProcessImbalance;
    finding.title = "One process uses several GPUs, and one of them does most of the work";
  }
  finding.tiers = "NP";
  finding.confidence = Confidence::kMedium;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const auto busy = static_cast<double>(a.ledger.total(Account::kUseful, device));
    finding.evidence.push_back(fmt::format("{} had a kernel for {} of the time", a.device_name(device),
                                           human_percent(busy / static_cast<double>(a.ledger.span()))));
  }
  finding.evidence.push_back(
      fmt::format("where one of them had no kernel for a time, another one had kernels{} for about as long: {} in all",
                  is_profiled(a) ? " or copies" : "", human_duration(finding.cost())));
  finding.would_overturn = uneven.in_turn        ? "Nsight Systems: kernels on both at the same time"
                           : job_is_over(a.meta) ? "a longer run: if the GPUs even out, this is wrong"
                                                 : "record for longer: if the GPUs even out, this is wrong";
  finding.advice = uneven.in_turn
                       ? "where each holds a part of the model, several micro-batches in the pipeline at once; "
                         "else one process per GPU with an equal share each (DistributedDataParallel)"
                       : "one process per GPU with an equal share each (DistributedDataParallel)";
  if (one_could_run_all(a, devices_of_one_process(a)))
    finding.advice += ", or fewer GPUs: one could run the kernels of all, if its memory holds them";
  if (uneven.in_turn || uneven.at_once)
    gains_by_removal(a, finding, "while each GPU keeps its work; more where the work can be spread");
  if (uneven.in_turn) keeps_its_work(a, finding);
  if (!uneven.in_turn) gains_by_spreading(a, devices_of_one_process(a), finding);
  return only(std::move(finding));
}

// Processes with a GPU each that did not work for as long, or one after the other.
std::vector<Finding> free_beside_others(const Analysis& a) {
  Finding finding;
  finding.claims = without(free_while_others_work(a), before_the_first(a));
  if (!a.material(finding.cost())) return {};
  std::set<std::size_t> used;
  Nanos longest = 0;  // that a process of the job was on one of them
  finding.title =
      fmt::format("{} stood free while another GPU of the job was in use", gpu_names(a, devices_of(finding.claims)));
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    if (!a.devices[device].used) continue;
    used.insert(device);
    const Nanos there = a.ledger.span() - a.ledger.total(Account::kNoTask, device);
    longest = std::max(longest, there);
    finding.evidence.push_back(fmt::format("{}: a process of the job was there for {}, and kernels ran for {}",
                                           a.device_name(device), human_duration(there),
                                           human_duration(a.ledger.total(Account::kUseful, device))));
  }
  finding.candidates = {Cause::kStraggler, Cause::kTailImbalance};
  if (one_could_run_all(a, used)) finding.candidates.push_back(Cause::kMoreGpusThanUseful);
  finding.tiers = "N";
  finding.confidence = Confidence::kMedium;
  finding.told_apart_from = {"steps that use no GPU: a process of the job was on another one"};
  finding.would_overturn = "nvidia-smi in that time: if it lists a process of the job there, this is wrong";
  finding.advice =
      "give each GPU an equal share of the work, and start the longest of separate commands first; what runs one after "
      "the other on several GPUs can run at the same time, or on one";
  const Claims held = claim(a, [&](std::size_t device, const Slice& slice) {
    return used.contains(device) && slice.account != Account::kNoTask;
  });
  Nanos any = 0;  // that one of them was used
  for (const Window& time : times_of(held)) any += time.length();
  const Nanos left = a.ledger.span() - std::max<Nanos>(0, any - longest);
  if (left > 0)
    bound_by(Gain{1.0, static_cast<double>(a.ledger.span()) / static_cast<double>(left),
                  "if what they do one after the other ran at the same time"},
             finding);
  gains_by_spreading(a, used, finding);
  return only(std::move(finding));
}

// By the steps that the ranks count themselves. Of ranks that wait for each other within a step all take as long: then
// nothing is seen here.
std::vector<Finding> slow_rank(const Analysis& a) {
  const double least = a.limits[Threshold::kStraggler];
  if (a.ranks.empty() || a.ranks.front().slowest <= least) return {};
  const RankPace& slow = a.ranks.front();
  const RankPace& next = a.ranks[1];
  Finding finding;
  finding.cause = Cause::kStraggler;
  finding.tiers = slow.via == "marks" || slow.via == "nvtx" || slow.via == "trace" ? "X" : "L";
  finding.confidence = Confidence::kMedium;
  finding.title =
      with_capital(fmt::format("{} is slower than its {} peers: steps {} to {} took it {} times their median",
                               slow.name, a.ranks.size() - 1, slow.from, slow.to, two_digits(slow.slowest)));
  finding.evidence = {
      fmt::format("over all {} steps that each of them did it took {} times their median", slow.steps,
                  two_digits(slow.all)),
      fmt::format("the next slowest, {}, took at most {} times in as many steps", next.name, two_digits(next.slowest))};
  finding.would_overturn = "its share of the data, or of the work: if it has more of it, it is not slow";
  finding.advice =
      fmt::format("see what {} shares its machine and GPU with in these steps, and what data it has", slow.name);
  bound_by(Gain{1.0, std::max(1.0, slow.bound),
                fmt::format("if every step waits for its slowest rank, and {} were as its peers", slow.name)},
           finding);
  constexpr double kWorthAChange = 1.01;  // as in a plan
  if (finding.gain->high < kWorthAChange) {
    finding.bound = fmt::format("not worth a change: {}", finding.bound);
    finding.advice.clear();
  }
  return only(std::move(finding));
}

}  // namespace headroom::diagnose
