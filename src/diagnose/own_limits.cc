// SPDX-License-Identifier: Apache-2.0
#include "diagnose/own_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/human.h"
#include "diagnose/claims.h"
#include "diagnose/core_waits.h"
#include "diagnose/host_waits.h"
#include "model/named_causes.h"
#include "model/observations.h"

namespace headroom::diagnose {

namespace {

// Whether no bytes that came to it over PCIe can be missing: rates of a log may be of a moment each, and the driver's
// counter has 32 bits.
bool all_counted(const Analysis& a, std::size_t device) {
  constexpr double kFastest = 19e9;  // bytes per second from pageable memory, as an H200's came
  constexpr double kWrap = 4294967296;
  const auto& copied = a.gpus[device].copied;
  if (!copied || is_imported(a.meta)) return false;
  const MetricStats* rate = a.stats_of(device, Metric::kPcieRxRate);  // GPM's, between two readings
  return (rate && rate->samples > 0) || std::all_of(copied->begin(), copied->end(), [](const CopiedBytes& one) {
           return kFastest * seconds(one.end - one.begin) < kWrap;
         });
}

// If what came over PCIe around the claimed time took none, and would have taken the threshold's; nothing where some of
// it may not have been counted.
std::optional<OwnLimit> limit_of_copies(const Analysis& a, const Claims& claims) {
  double rate = a.limits[Threshold::kPageable];
  for (const std::size_t device : devices_of(claims)) {
    if (!all_counted(a, device)) return std::nullopt;
    const auto& link = a.gpus[device].link;
    if (const auto best = link ? link->bytes_per_second() : std::nullopt) rate = std::min(rate, *best);
  }
  const double all = seconds(end_of_work(a) - a.window.begin);
  const double took = copying(a, claims) * seconds(length(claims)) * a.limits[Threshold::kPageable] / rate;
  if (took >= all) return std::nullopt;
  return OwnLimit{Cause::kPageableCopies, all / (all - took),
                  fmt::format("if what came over PCIe took no time: {} at {:.2g} GB/s",
                              human_duration(static_cast<Nanos>(took * kSecond)), rate / 1e9)};
}

// The same wait bounds it in whichever finding it is.
std::optional<OwnLimit> limit_of_cores(const Analysis& a, const Claims& claims) {
  const HostSummary s = host_during(a.job, a.devices, claims);
  const auto cores = core_waits(a);
  if (!cores || s.helpers > 0 || s.owner_threads >= a.limits[Threshold::kOtherThreads]) return std::nullopt;
  return OwnLimit{Cause::kCpuOversubscribed, without_waits(cores->waited + cores->starting, cores->ran),
                  own_core_words("its main thread")};
}

std::optional<OwnLimit> limit(const Analysis& a, Cause cause, const Claims& claims) {
  if (a.job.batch.present || claims.empty()) return std::nullopt;
  if (cause == Cause::kPageableCopies) return limit_of_copies(a, claims);
  if (cause == Cause::kCpuOversubscribed) return limit_of_cores(a, claims);
  return std::nullopt;
}

}  // namespace

void limit_candidates(const Analysis& a, Finding& finding) {
  if (!finding.gain) return;
  for (const Cause cause : finding.candidates) {
    auto own = limit(a, cause, finding.counted.empty() ? finding.claims : finding.counted);
    if (!own || own->high >= finding.gain->high || human_factor(own->high) == human_factor(finding.gain->high))
      continue;
    finding.gain->beside += fmt::format("; {} {}", human_factor(own->high), own->gain().words());
    finding.limits.push_back(std::move(*own));
  }
  if (!finding.limits.empty()) finding.bound = bound_words(*finding.gain);
}

std::vector<OwnLimit> limits_of_the_run(const Analysis& a, const std::vector<Finding>& findings) {
  std::vector<OwnLimit> limits;
  for (const Cause cause : {Cause::kPageableCopies, Cause::kCpuOversubscribed}) {
    Claims open;  // of all findings that leave this cause open
    for (const Finding& finding : findings)
      if (may_be(finding, cause)) open = united(open, finding.counted.empty() ? finding.claims : finding.counted);
    if (auto all = limit(a, cause, open)) limits.push_back(std::move(*all));
  }
  return limits;
}

}  // namespace headroom::diagnose
