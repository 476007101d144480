// SPDX-License-Identifier: Apache-2.0
#include "plan/step_model.h"

#include <algorithm>
#include <array>
#include <map>
#include <queue>
#include <utility>

#include "model/cores.h"
#include "model/loop_accounts.h"
#include "model/named_causes.h"
#include "model/observations.h"

namespace headroom::planning {

namespace {

constexpr std::size_t kMostFindings = 64;  // bits of a mask; findings are sorted by cost

// What a finding has of a stretch of time.
enum Has : std::size_t { kClaims, kCounts };

// Time of one finding on one device, being walked along.
struct Walk {
  const ClaimedPiece* at;
  const ClaimedPiece* end;
  std::size_t finding;
  Has has;
  bool inside = false;

  [[nodiscard]] Nanos next() const { return inside ? at->end : at->begin; }
};

void walks_of(const Claims& pieces, std::size_t index, Has has, std::vector<Walk>& walks) {
  const ClaimedPiece* const end = pieces.data() + pieces.size();
  for (const ClaimedPiece* at = pieces.data(); at != end;) {
    const ClaimedPiece* const first = at;
    while (at != end && at->device == first->device) ++at;
    walks.push_back({first, at, index, has});
  }
}

using Masks = std::array<std::uint64_t, 2>;  // by Has: bit i is finding i
using Sums = std::map<Masks, Nanos>;

// Time by the findings that claim it, and by those that count it, as walks along the time line go through it.
void sweep(std::vector<Walk> walks, Sums& sums) {
  const auto later = [&](std::size_t x, std::size_t y) { return walks[x].next() > walks[y].next(); };
  std::priority_queue<std::size_t, std::vector<std::size_t>, decltype(later)> queue(later);
  for (std::size_t i = 0; i < walks.size(); ++i) queue.push(i);
  std::array<std::array<int, kMostFindings>, 2> count{};
  Masks masks{};
  Nanos last = 0;
  while (!queue.empty()) {
    const std::size_t i = queue.top();
    queue.pop();
    Walk& walk = walks[i];
    const Nanos now = walk.next();
    if (masks != Masks{} && now > last) sums[masks] += now - last;
    last = now;
    walk.inside = !walk.inside;
    int& open = count[walk.has][walk.finding];
    open += walk.inside ? 1 : -1;
    const std::uint64_t bit = std::uint64_t{1} << walk.finding;
    masks[walk.has] = open > 0 ? masks[walk.has] | bit : masks[walk.has] & ~bit;
    if (walk.inside || ++walk.at != walk.end) queue.push(i);
  }
}

// When the last GPU that was used fell quiet for good, by a finding about the end of a log; nothing where none says so.
std::optional<Nanos> quiet_from(const Explanation& e, const Finding& finding) {
  if (!is_imported(e.meta) || e.batch) return std::nullopt;
  if (!names(finding, Cause::kMonitoringMostlyElse) && !names(finding, Cause::kUnreleasedAfterWork))
    return std::nullopt;
  constexpr Nanos kHardly = 100;  // of the time a hundredth
  Nanos from = 0;
  for (std::size_t device = 0; device < e.ledger.devices.size(); ++device) {
    if (kHardly * e.ledger.busy(device) < e.ledger.span()) continue;
    std::optional<Nanos> first, last;
    for (const ClaimedPiece& piece : finding.claims)
      if (piece.device == device) first = first.value_or(piece.begin), last = piece.end;
    if (!last || *last < e.ledger.end) return std::nullopt;
    from = std::max(from, *first);
  }
  return from > e.ledger.begin ? std::optional(from) : std::nullopt;
}

// Of a job all devices share one time line; of a batch each has its own.
Sums sums_of(const Explanation& e) {
  std::vector<Walk> walks;
  for (std::size_t i = 0; i < std::min(kMostFindings, e.findings.size()); ++i) {
    const Claims& claims = e.findings[i].claims;
    if (quiet_from(e, e.findings[i])) continue;  // no time of the job's
    // A GPU that the job never uses keeps none of its time.
    if (!e.batch && !claims.empty() && claims.front().account == Account::kNotUsed) continue;
    walks_of(claims, i, kClaims, walks);
    walks_of(e.findings[i].counted, i, kCounts, walks);
  }
  Sums sums;
  if (!e.batch) {
    sweep(std::move(walks), sums);
    return sums;
  }
  for (std::size_t device = 0; device < e.ledger.devices.size(); ++device) {
    std::vector<Walk> here;
    std::copy_if(walks.begin(), walks.end(), std::back_inserter(here),
                 [&](const Walk& walk) { return walk.at->device == device; });
    sweep(std::move(here), sums);
  }
  for (auto& [masks, ns] : sums) ns /= static_cast<Nanos>(std::max<std::size_t>(1, e.ledger.devices.size()));
  return sums;
}

StepModel::Claimed claimed_of(const Finding& finding, double seconds_of_all) {
  StepModel::Claimed claimed;
  Nanos loop = 0, input = 0;
  for (const ClaimedPiece& piece : finding.claims) {
    if (in_loop(piece.account)) loop += piece.end - piece.begin;
    if (piece.account == Account::kInput) input += piece.end - piece.begin;
  }
  const Nanos cost = finding.cost();
  claimed.outside = 2 * loop < cost;
  claimed.input = cost > 0 && 2 * input >= cost;
  if (finding.gain) claimed.most = seconds_of_all * (1 - 1 / std::max(1.0, finding.gain->high));
  return claimed;
}

// What processes below those on the GPU did, where the GPU waited for its data: they are the loader.
void add_loader(const Explanation& e, StepModel& model) {
  if (!e.host) return;
  HostTime host = *e.host;
  const double loop = model.seconds - model.outside;  // at their start they use a core that is free once they load
  if (loop > 0) host.owner_cores = std::max(0.0, host.owner_cores * model.seconds - model.outside) / loop;
  const bool by_threads = std::any_of(e.findings.begin(), e.findings.end(),
                                      [](const Finding& finding) { return finding.by_threads && !finding.asleep; });
  if (by_threads && host.helpers == 0) {  // they are a worker that shares the interpreter with the main thread
    host.helpers = 1;
    host.helper_cores = std::exchange(host.owner_cores, 0) * loop / std::max(1e-9, model.seconds);
  }
  model.cores = cores_for_helpers(host);
  model.others = *model.cores - cores_for_helpers(host, cores_of_others(*e.host));
  HostTime without = host;
  without.owner_cores = 0;
  model.owner_cores = cores_for_helpers(without) - *model.cores;
  if (host.helpers == 0 || e.ledger.total(Account::kInput) == 0) return;
  model.workers = static_cast<double>(host.helpers);
  model.cores_each = cores_of_a_worker(host);
  model.loading = host.helper_cores * model.seconds;
}

}  // namespace

Nanos time_of_job(const Explanation& e) {
  for (const Finding& finding : e.findings)
    if (const auto from = quiet_from(e, finding)) return *from - e.ledger.begin;
  return e.ledger.span();
}

StepModel step_model(const Explanation& e) {
  StepModel model;
  model.seconds = seconds(time_of_job(e));
  model.least = e.bound ? model.seconds / std::max(1.0, e.bound->speedup_high) : model.seconds;
  if (e.pipeline) model.rest = seconds(e.pipeline->rest);
  for (std::size_t device = 0; device < e.ledger.devices.size(); ++device)
    model.kernels = std::max(model.kernels, seconds(e.ledger.busy(device)));
  for (std::size_t i = 0; i < std::min(kMostFindings, e.findings.size()); ++i)
    model.findings.push_back(claimed_of(e.findings[i], model.seconds));
  for (const auto& [masks, ns] : sums_of(e)) {
    StepModel::Part part{masks[kClaims], seconds(ns), masks[kClaims] != 0, false, masks[kCounts] & ~masks[kClaims]};
    for (std::size_t i = 0; i < model.findings.size(); ++i) {
      if ((part.claimed_by >> i & 1U) == 0) continue;
      model.findings[i].seconds += part.seconds;
      part.outside &= model.findings[i].outside;
      part.input |= model.findings[i].input;
    }
    if (part.outside) model.outside += part.seconds;
    if (part.input) model.input += part.seconds;
    model.parts.push_back(part);
  }
  add_loader(e, model);
  return model;
}

namespace {

struct Saved {
  double outside = 0, input = 0, other = 0;  // of parts that are not in the loop; waits for data; the rest of the loop
  double hidden = 0;                         // of these: what goes on beside the rest of the loop
  double beyond = 0;                         // of time that is not sure to be claimed by nobody else
  double counted = 0;                        // of that, what lies outside of the loop and may go whatever the loop does

  [[nodiscard]] double all() const { return outside + input + other; }
};

const StepModel::Claimed* claimed_by(const StepModel& model, const Change& change) {
  return change.finding && *change.finding < model.findings.size() ? &model.findings[*change.finding] : nullptr;
}

// The findings that it is about, as bits.
std::uint64_t findings_of(const StepModel& model, const Change& change) {
  return claimed_by(model, change) == nullptr ? 0 : change.also | std::uint64_t{1} << *change.finding;
}

// Seconds that a finding lets go at most, by this change.
double most_of(const StepModel& model, const Change& change, std::size_t finding) {
  return change.most > 0 && finding == change.finding ? change.most : model.findings[finding].most;
}

// What of a part a change lets go.
double share_of(const StepModel& model, const Change& change, const StepModel::Part& part) {
  double share = 0;
  const std::uint64_t claiming = part.claimed_by & findings_of(model, change);
  for (std::size_t i = 0; i < model.findings.size(); ++i)
    if ((claiming >> i & 1U) != 0)
      share = std::max(share, std::min(1.0, most_of(model, change, i) / std::max(1e-9, model.findings[i].seconds)));
  return change.share * share;
}

// What all of them let go of a part, at most.
double share_of_all(const StepModel& model, std::span<const Change> changes, const StepModel::Part& part) {
  double share = 0;
  for (const Change& change : changes) share = std::max(share, share_of(model, change, part));
  return share;
}

// What it lets go of time that no finding of its is sure of, which may be another one's: what others of the changes let
// go of that is theirs.
double beyond_of(const StepModel& model, const Change& change, std::span<const Change> changes) {
  const std::uint64_t findings = findings_of(model, change);
  if (findings == 0) return 0;
  double most = 0, claimed = 0, others = 0;
  for (std::size_t i = 0; i < model.findings.size(); ++i)
    if ((findings >> i & 1U) != 0) most = std::max(most, most_of(model, change, i));
  for (const StepModel::Part& part : model.parts) {
    if ((part.claimed_by & findings) != 0)
      claimed += part.seconds;
    else if ((part.counted_by & findings) != 0)
      others += part.seconds * share_of_all(model, changes, part);
  }
  if (change.only_own) most = claimed;
  return change.share * (std::max(0.0, most - claimed - others) + change.beside);
}

// What the findings of a change count outside of the loop, beside their claims, and no other change lets go.
double counted_outside(const StepModel& model, const Change& change, std::span<const Change> changes) {
  const std::uint64_t findings = findings_of(model, change);
  double counted = 0;
  for (const StepModel::Part& part : model.parts)
    if (part.outside && (part.claimed_by & findings) == 0 && (part.counted_by & findings) != 0)
      counted += part.seconds * (1 - share_of_all(model, changes, part));
  return change.only_own ? 0 : change.share * counted;
}

// Of each part the change that saves most of it counts.
Saved saved_by(const StepModel& model, std::span<const Change> changes) {
  Saved saved;
  for (const StepModel::Part& part : model.parts) {
    double gone = 0, hidden = 0;
    for (const Change& change : changes) {
      double& best = change.mechanism == Mechanism::kOverlaps ? hidden : gone;
      best = std::max(best, share_of(model, change, part));
    }
    const double both = std::max(gone, hidden) * part.seconds;
    (part.input ? saved.input : part.outside ? saved.outside : saved.other) += both;
    saved.hidden += both - gone * part.seconds;
  }
  for (const Change& change : changes) {
    saved.beyond = std::max(saved.beyond, beyond_of(model, change, changes));
    saved.counted = std::max(saved.counted, counted_outside(model, change, changes));
  }
  return saved;
}

// Seconds of the training process that workers take over: what no other change lets go.
double taken_over(const StepModel& model, std::span<const Change> changes, const Change& loads) {
  double taken = 0;
  for (const StepModel::Part& part : model.parts) {
    if ((part.claimed_by >> *loads.finding & 1U) == 0) continue;
    double others = 0;
    for (const Change& change : changes)
      if (change.mechanism != Mechanism::kLoads) others = std::max(others, share_of(model, change, part));
    taken += part.seconds * std::max(0.0, loads.share - others);
  }
  return taken;
}

// Seconds that the loader takes, if the changes are made; 0 where it is no limit.
double loader_of(const StepModel& model, std::span<const Change> changes, double enlarged) {
  double loading = model.loading, workers = model.workers, left = 1;
  std::optional<double> cores = model.cores;
  bool free = false;
  for (const Change& change : changes) {
    if (change.cheaper) left = std::min(left, 1 - change.share);
    free |= change.frees;
    if (change.mechanism != Mechanism::kLoads || change.workers <= 0) continue;
    workers = std::max(workers, change.workers);
    cores = std::max(cores, cores_then(model, change));
    if (const StepModel::Claimed* claimed = claimed_by(model, change); claimed && model.workers <= 0)
      loading = std::max(loading, taken_over(model, changes, change) / (claimed->input ? 1 : enlarged));
  }
  if (workers <= 0) return 0;
  return left * loading / (free || !cores ? workers : std::min(workers, std::max(1.0, *cores)));
}

}  // namespace

std::optional<double> cores_then(const StepModel& model, const Change& change) {
  const StepModel::Claimed* claimed = claimed_by(model, change);
  const double loop = model.seconds - model.outside;
  if (!model.cores || model.workers > 0 || claimed == nullptr || loop <= 0) return model.cores;
  return *model.cores + std::min(model.owner_cores, claimed->seconds / loop);
}

double loading_time(const StepModel& model, std::span<const Change> changes) { return loader_of(model, changes, 1); }

double simulate(const StepModel& model, std::span<const Change> changes) {
  const Saved saved = saved_by(model, changes);
  double enlarged = 1, spread = 1, packed = 1, least = model.least;
  for (const Change& change : changes) {
    double& faster = change.mechanism == Mechanism::kEnlarges ? enlarged
                     : change.mechanism == Mechanism::kPacks  ? packed
                                                              : spread;
    if (change.factor > 1) faster = std::max(faster, 1 / (1 - change.share * (1 - 1 / change.factor)));
    if (const StepModel::Claimed* claimed = claimed_by(model, change); claimed && !change.keeps)
      least = std::min(least, model.seconds - most_of(model, change, *change.finding) -
                                  change.share * change.beside);  // maybe of fewer kernels
  }
  double outside = std::max(0.0, model.outside - saved.outside);
  double input = std::max(0.0, model.input - saved.input);
  double counted = std::min(saved.counted, outside);  // of what is outside, what may still go
  const double beside = std::max(0.0, model.seconds - model.outside - saved.input - saved.other);
  const double not_hidden = std::max(0.0, saved.hidden - beside) / 2;  // so much of it that both last as long
  double loop = model.seconds - saved.all() - saved.beyond + not_hidden - outside - input;
  // What goes beyond the claims is what they count outside of the loop, then in the loop, in waits for data, and
  // outside.
  const double first = std::min(saved.beyond, counted);
  outside -= first, counted -= first, loop += first;
  for (double* part : {&input, &outside}) {
    const double taken = std::clamp(-loop, 0.0, *part);
    *part -= taken;
    loop += taken;
  }
  loop = std::max(0.0, loop);
  // Loading a sample costs what it costs in a larger batch, too. Where that keeps the loop from being shorter, what is
  // counted outside of it goes instead.
  const double steps = input + loop / enlarged;
  const double loads = std::min(loader_of(model, changes, enlarged), model.seconds - model.outside);
  outside -= std::clamp(loads - steps, 0.0, std::min(counted, outside));
  const double time = outside + std::max(steps, loads);
  const double alone = std::clamp(std::max(time, least), 0.0, model.seconds);
  const auto on_more_gpus = [&](double all) {
    const double rest = std::min(model.rest, all);
    return rest + (all - rest) / spread;
  };
  // Tasks beside each other on a GPU wait less, and have the same kernels.
  return std::max(on_more_gpus(alone) / packed, on_more_gpus(std::min(alone, least)));
}

}  // namespace headroom::planning
