// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "sim/core/layout.h"

// What the fault script says at an instant. Functions of the immutable table; only call counting has a memory.
namespace headroom::sim {

struct Interval {
  Nanos begin, end;  // begin kForEver: never
  [[nodiscard]] bool holds(Nanos at) const { return begin <= at && at < end; }
};
// When the fault is active on a device whose first context appeared at `first_context` (0: not yet).
[[nodiscard]] Interval interval(const Header& header, const Fault& fault, Nanos first_context);

inline bool concerns(const Fault& fault, std::uint32_t device) {
  return fault.device < 0 || static_cast<std::uint32_t>(fault.device) == device;
}

// Calls f(fault, interval) for every fault of `kind` that concerns the device.
template <class F>
void for_faults(const Header& header, FaultKind kind, std::uint32_t device, Nanos first_context, F f) {
  for (std::uint32_t i = 0; i < header.fault_count; ++i) {
    const Fault& fault = header.faults[i];
    if (fault.kind == kind && concerns(fault, device)) f(fault, interval(header, fault, first_context));
  }
}

// The first instant after `at` at which something about the device's course changes, or `limit`.
[[nodiscard]] Nanos next_edge(const Header& header, std::uint32_t device, Nanos first_context, Nanos at, Nanos limit);
[[nodiscard]] std::uint32_t rate_permille(const Header& header, std::uint32_t device, Nanos first_context, Nanos at);
[[nodiscard]] bool lost(const Header& header, std::uint32_t device, Nanos first_context, Nanos at);
// Was the device lost at any instant in (after, until]? A context that lived through it is broken for good.
[[nodiscard]] bool lost_between(const Header& header, std::uint32_t device, Nanos first_context, Nanos after,
                                Nanos until);
[[nodiscard]] std::uint64_t taken_by_nobody(const Header& header, std::uint32_t device, Nanos first_context, Nanos at);
// Energy that power faults added until `at`.
[[nodiscard]] double added_energy_uj(const Header& header, std::uint32_t device, Nanos first_context, Nanos at);

struct Call {
  const char* name;
  int device;  // < 0: the call names none
};
// `counters` may be null (then nth and count are ignored).
[[nodiscard]] CallFault call_fault(const Header& header, std::uint64_t* counters, Call call, Nanos first_context,
                                   Nanos at);

}  // namespace headroom::sim
