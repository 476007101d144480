// SPDX-License-Identifier: Apache-2.0
#include "diagnose/core_waits.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"
#include "model/named_causes.h"

namespace headroom::diagnose {

namespace {

// The one GPU that had kernels of the job; nothing where several had.
std::optional<std::size_t> only_device(const Analysis& a) {
  std::optional<std::size_t> only;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    if (a.ledger.total(Account::kUseful, device) == 0) continue;
    if (only) return std::nullopt;
    only = device;
  }
  return only;
}

// Seconds in which the device was idle while stacks were there, waiting for kernels.
double idle_at(const Analysis& a, std::size_t device, const std::string& place) {
  Nanos ns = 0;
  for (const Slice& slice : a.devices[device].slices)
    if (slice.account == Account::kSync && slice.where >= 0 &&
        a.ledger.places[static_cast<std::size_t>(slice.where)] == place)
      ns += slice.end - slice.begin;
  return seconds(ns);
}

}  // namespace

std::optional<SourceId> only_owner(const Analysis& a, std::size_t device) {
  std::optional<SourceId> only;
  for (const ContextUse& use : a.job.uses) {
    if (use.device != a.devices[device].source) continue;
    if (!use.ours || !use.process || (only && *only != *use.process)) return std::nullopt;
    only = use.process;
  }
  return only;
}

std::string these_cores(double usable) { return usable == 1 ? "this core" : fmt::format("these {:.3g} cores", usable); }

std::optional<CoreWaits> core_waits(const Analysis& a) {
  const auto device = a.job.batch.present ? std::nullopt : only_device(a);
  const auto owner = device ? only_owner(a, *device) : std::nullopt;
  if (!owner) return std::nullopt;
  const Window window = time_of_kernels(a.devices[*device]);
  double looked = 0, delay = 0, ran = 0, outside = 0;  // seconds
  for (const Activity& did : a.job.did[static_cast<std::size_t>(*owner)]) {
    outside += did.run_delay * seconds(std::max<Nanos>(0, std::min(did.end, window.begin) - did.begin) +
                                       std::max<Nanos>(0, did.end - std::max(did.begin, window.end)));
    const Nanos here = std::min(did.end, window.end) - std::max(did.begin, window.begin);
    if (here <= 0) continue;
    looked += seconds(here);
    delay += did.run_delay * seconds(here);
    ran += did.main_cpu.value_or(did.cpu) * seconds(here);
  }
  if (looked < a.limits[Threshold::kMajority] * seconds(window.length())) return std::nullopt;
  CoreWaits waits;
  const double busy = seconds(a.ledger.total(Account::kUseful, *device)) / seconds(window.length());
  waits.idle = std::max(0.0, 1 - busy);
  waits.waited = delay / looked;
  waits.ran = ran / looked;
  const double whole = seconds(std::max<Nanos>(1, a.ledger.span()));
  waits.waited_of_all = (waits.waited * seconds(window.length()) + outside) / whole;
  waits.ran_of_all = waits.ran * seconds(window.length()) / whole;
  // Who sleeps until its kernels are done wants no core meanwhile. Who looks again and again does, and so does who has
  // queued more of them when he wakes: then the device is not idle where he waits for them.
  const double there = idle_at(a, *device, a.code.kernel_waits.place) / seconds(window.length());
  const bool one_by_one = !a.devices[*device].spins && there >= a.limits[Threshold::kMajority] * waits.waited;
  const double slept = one_by_one ? std::max(0.0, a.code.kernel_waits.share - there) : 0;
  waits.at_least = std::clamp(waits.waited - std::max(0.0, busy - slept), 0.0, waits.idle);
  return waits;
}

Claims for_want_of_cores(const Analysis& a, Claims idle) {
  if (!a.material(length(idle))) return {};
  const auto waits = core_waits(a);
  if (!waits) return {};
  // What else the GPU was idle for may have had all of the rest.
  const auto whole = static_cast<double>(time_of_kernels(a.devices[idle.front().device]).length());
  const double claimed = static_cast<double>(length(idle)) / whole;
  const double other = std::max(0.0, waits->idle - claimed);
  if (waits->at_least - other < a.limits[Threshold::kMajority] * claimed) return {};
  return idle;
}

double without_waits(double waited, double ran) {
  constexpr double kSlowed = 0.25;  // own_core_words(); caches and hardware threads that others use, too: judgement
  return 1 / std::max(1e-9, 1 - waited - kSlowed * ran);
}

std::string own_core_words(std::string_view whose) {
  return fmt::format(
      "if {} had a core of its own whenever it wanted one, and ran on it in a quarter less time, sharing it with "
      "nobody",
      whose);
}

namespace {

constexpr double kThreads = 0.2;  // of a core: less is what libraries do beside

double cores_of_the_job(const HostSummary& s) {
  return static_cast<double>(s.owners) * (s.owner_cpu + s.owner_threads) + s.helper_cpu;
}

// Whether the job has nearly all of the cores: what others use is less than a quarter of them, by judgement.
bool fills_cores(const HostSummary& s) {
  constexpr double kMost = 0.75;
  return s.usable_cores > 0 && cores_of_the_job(s) >= kMost * s.usable_cores;
}

}  // namespace

bool of_one_thread(const HostSummary& s) {
  constexpr double kOneCore = 1.1;  // one thread runs or waits for a core, no more; readings are apart
  return s.helpers == 0 || s.helper_cpu / static_cast<double>(s.helpers) + s.helper_delay < kOneCore;
}

bool own_threads_fill_cores(const HostSummary& s) {
  return fills_cores(s) && (s.owner_threads >= kThreads || !of_one_thread(s));
}

std::string advice_for_cores(const HostSummary& s) {
  const std::string cores = these_cores(s.usable_cores);
  if (own_threads_fill_cores(s)) return "fewer processes or threads on " + cores;
  if (fills_cores(s) || static_cast<double>(s.helpers) > s.usable_cores)
    return fmt::format("fewer processes on {}, or more cores", cores);
  const std::string less = fmt::format("less other load on {}, or more cores", cores);
  if (s.owner_threads < kThreads && s.helpers == 0) return less;
  return fmt::format("{} (the job itself uses {})", less, human_figure(cores_of_the_job(s), 2));
}

void see_whose_threads(const Analysis& a, Finding& finding) {
  if (!names(finding, Cause::kCpuOversubscribed) || finding.claims.empty() || !a.job.has_host) return;
  finding.no_threads_to_save = !own_threads_fill_cores(host_during(a.job, a.devices, finding.claims));
}

void gains_the_wait(const Analysis& a, Finding& finding, double waited, double ran, std::string_view whose) {
  const double most = without_waits(waited, ran);
  if (!finding.gain || most >= finding.gain->high) return;
  std::string condition = own_core_words(whose);
  if (waited > a.share(finding.cost())) condition += ", in other time of the run, too";
  finding.bound = fmt::format("{} at most, {}", human_factor(most), condition);
  finding.gain = Gain{1.0, most, std::move(condition)};
}

}  // namespace headroom::diagnose
