// SPDX-License-Identifier: Apache-2.0
#include "sim/core/faults.h"

#include <algorithm>
#include <cstring>

namespace headroom::sim {

namespace {

bool matches(const char* pattern, const char* call) {
  const char* star = std::strchr(pattern, '*');
  if (star == nullptr) return std::strcmp(pattern, call) == 0;
  return std::strncmp(pattern, call, static_cast<std::size_t>(star - pattern)) == 0;
}

// Counts a matching call; true if the script wants this one.
bool counted(const Fault& fault, std::uint64_t* counter) {
  if (fault.nth == 0 && fault.count == 0) return true;
  if (counter == nullptr) return true;
  const std::uint64_t number = __atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
  const std::uint64_t first = std::max<std::uint32_t>(1, fault.nth);
  const std::uint64_t count = fault.count == 0 ? (fault.nth != 0 ? 1 : UINT64_MAX) : fault.count;
  return number >= first && number - first < count;
}

}  // namespace

Interval interval(const Header& header, const Fault& fault, Nanos first_context) {
  if (fault.at_first_context != 0 && first_context == 0) return {kForEver, kForEver};
  const Nanos begin = (fault.at_first_context != 0 ? first_context : header.box.start_monotonic_ns) + fault.at;
  return {begin, fault.duration == kForEver ? kForEver : begin + fault.duration};
}

Nanos next_edge(const Header& header, std::uint32_t device, Nanos first_context, Nanos at, Nanos limit) {
  for (const FaultKind kind : {FaultKind::kLost, FaultKind::kThrottle, FaultKind::kPower})
    for_faults(header, kind, device, first_context, [&](const Fault&, const Interval& when) {
      if (when.begin > at) limit = std::min(limit, when.begin);
      if (when.end > at) limit = std::min(limit, when.end);
    });
  return limit;
}

std::uint32_t rate_permille(const Header& header, std::uint32_t device, Nanos first_context, Nanos at) {
  std::uint32_t rate = 1000;
  for_faults(header, FaultKind::kThrottle, device, first_context, [&](const Fault& fault, const Interval& when) {
    if (when.holds(at)) rate = std::min(rate, fault.rate_permille);
  });
  return rate;
}

bool lost(const Header& header, std::uint32_t device, Nanos first_context, Nanos at) {
  bool found = false;
  for_faults(header, FaultKind::kLost, device, first_context,
             [&](const Fault&, const Interval& when) { found = found || when.holds(at); });
  return found;
}

bool lost_between(const Header& header, std::uint32_t device, Nanos first_context, Nanos after, Nanos until) {
  bool found = false;
  for_faults(header, FaultKind::kLost, device, first_context,
             [&](const Fault&, const Interval& when) { found = found || (when.begin <= until && when.end > after); });
  return found;
}

std::uint64_t taken_by_nobody(const Header& header, std::uint32_t device, Nanos first_context, Nanos at) {
  std::uint64_t bytes = 0;
  for_faults(header, FaultKind::kOutOfMemory, device, first_context, [&](const Fault& fault, const Interval& when) {
    if (when.holds(at)) bytes += fault.bytes;
  });
  return bytes;
}

double added_energy_uj(const Header& header, std::uint32_t device, Nanos first_context, Nanos at) {
  double energy = 0;
  for_faults(header, FaultKind::kPower, device, first_context, [&](const Fault& fault, const Interval& when) {
    const Nanos overlap = std::min(at, when.end) - std::min(at, when.begin);
    energy += static_cast<double>(fault.milliwatts) * static_cast<double>(overlap) * 1e-6;
  });
  return energy;
}

CallFault call_fault(const Header& header, std::uint64_t* counters, Call call, Nanos first_context, Nanos at) {
  CallFault answer{0, 0};
  for (std::uint32_t i = 0; i < header.fault_count; ++i) {
    const Fault& fault = header.faults[i];
    if (fault.kind != FaultKind::kError && fault.kind != FaultKind::kSlow) continue;
    if (fault.device >= 0 && fault.device != call.device) continue;
    if (!matches(fault.call, call.name) || !interval(header, fault, first_context).holds(at)) continue;
    if (!counted(fault, counters == nullptr ? nullptr : counters + i)) continue;
    if (fault.kind == FaultKind::kSlow)
      answer.delay_ns += fault.delay;
    else if (answer.error == 0)
      answer.error = fault.code;
  }
  return answer;
}

}  // namespace headroom::sim
