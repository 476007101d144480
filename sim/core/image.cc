// SPDX-License-Identifier: Apache-2.0
#include "sim/core/image.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "sim/core/faults.h"

namespace headroom::sim {

namespace {

template <class F>
void for_slots(std::uint64_t set, F f) {
  for (; set != 0; set &= set - 1) f(static_cast<std::uint32_t>(std::countr_zero(set)));
}

std::uint64_t checksum(const BinRecord& bin) {
  std::uint64_t words[sizeof(BinRecord) / 8], sum = 0x9e3779b97f4a7c15;
  std::memcpy(words, &bin, sizeof bin);
  for (std::size_t i = 0; i < std::size(words); ++i)
    if (i != 1) sum = std::rotl(sum ^ words[i], 7) * 0xbf58476d1ce4e5b9;
  return sum;
}

// Temperature settles towards idle + (full - idle) * power / limit, with the board's time constant.
double temperature_after(const DeviceInfo& info, double now_mc, double power_mw, std::int64_t bins) {
  const double range_mw = std::max(1.0, static_cast<double>(info.power_limit_mw) - info.power_idle_mw);
  const double range_mc = 1000.0 * (static_cast<double>(info.temperature_full_c) - info.temperature_idle_c);
  const double target = 1000.0 * info.temperature_idle_c + range_mc * (power_mw - info.power_idle_mw) / range_mw;
  const double bins_per_tau = std::max(1.0, info.temperature_tau_ms * 1e-3 * static_cast<double>(kBinsPerSecond));
  return target + (now_mc - target) * std::exp(-static_cast<double>(bins) / bins_per_tau);
}

// The image stands on edge next_bin - 1 + bins: closes those bins, the last of which is recorded.
void close_bins(Image& image, const Header& header, std::uint32_t device, std::int64_t bins, BinSink& sink) {
  const double energy = energy_uj(image, header, device);
  const double span_ns = 1e9 * static_cast<double>(bins) / static_cast<double>(kBinsPerSecond);
  const double power_mw = (energy - image.bin_energy_uj) * 1e6 / span_ns;
  image.temperature_mc = temperature_after(header.devices[device], image.temperature_mc, power_mw, bins);
  image.bin_energy_uj = energy;
  image.next_bin += bins;
  BinRecord& bin = sink.out[sink.count++];
  bin = {.index = image.next_bin - 1,
         .checksum = 0,
         .busy = image.queue.busy,
         .sm_active = image.queue.sm_active,
         .held = image.held,
         .energy_uj = energy,
         .temperature_mc = image.temperature_mc,
         .kernel = {},
         .sm = {}};
  for_slots(image.used, [&](std::uint32_t slot) {
    bin.kernel[slot] = image.queue.streams[slot].kernel;
    bin.sm[slot] = image.queue.streams[slot].sm;
  });
  seal(bin);
}

// The instants that may be passed in one go are bounded by a bin edge, a fault's edge and `now`. Without queued work
// nothing happens at bin edges that the ring will have forgotten: then the bound is the first one worth keeping.
Nanos next_stop(const Image& image, const Header& header, std::uint32_t device, Nanos now) {
  const Nanos limit = next_edge(header, device, image.first_context, image.queue.t, now);
  std::int64_t bin = image.next_bin;
  if ((image.queue.kernels | image.queue.copies) == 0) bin = std::max(bin, bin_at(header, limit) - kHistoryBins);
  return std::min(limit, edge_of(header, bin));
}

}  // namespace

Nanos edge_of(const Header& header, std::int64_t index) {
  return header.box.start_monotonic_ns + index * kSecond / kBinsPerSecond;
}

std::int64_t bin_at(const Header& header, Nanos at) {
  const Nanos since = std::max<Nanos>(0, at - header.box.start_monotonic_ns);
  const Nanos whole = since / kSecond, rest = since % kSecond;
  std::int64_t index = whole * kBinsPerSecond + rest * kBinsPerSecond / kSecond;
  while (edge_of(header, index + 1) <= at) ++index;
  return index;
}

Image first_image(const Header& header, std::uint32_t device) {
  Image image{};
  image.queue.t = header.box.start_monotonic_ns;
  image.queue.running = -1;
  image.next_bin = 1;
  image.temperature_mc = 1000.0 * header.devices[device].temperature_idle_c;
  return image;
}

contention::Policy policy_at(const Image& image, const Header& header, std::uint32_t device) {
  return {.schedule = header.schedule,
          .rate_permille = rate_permille(header, device, image.first_context, image.queue.t),
          .quantum = header.quantum};
}

bool advance(Image& image, const Header& header, std::uint32_t device, Nanos now, BinSink& sink) {
  while (image.queue.t < now) {
    const Nanos stop = next_stop(image, header, device, now);
    const bool closes = stop >= edge_of(header, image.next_bin);
    if (closes && sink.count == sink.capacity) return false;
    if (has_compute_context(image)) image.held += stop - image.queue.t;
    contention::advance(image.queue, policy_at(image, header, device), stop);
    if (closes) close_bins(image, header, device, bin_at(header, stop) - image.next_bin + 1, sink);
    if (lost(header, device, image.first_context, stop))
      for_slots(image.queue.kernels | image.queue.copies,
                [&](std::uint32_t slot) { contention::cancel(image.queue, slot); });
  }
  return true;
}

double energy_uj(const Image& image, const Header& header, std::uint32_t device) {
  const DeviceInfo& info = header.devices[device];
  // milliwatts times nanoseconds are picojoules
  const double pj = info.power_idle_mw * static_cast<double>(image.queue.t - header.box.start_monotonic_ns) +
                    info.power_held_mw * static_cast<double>(image.held) +
                    info.power_busy_mw * static_cast<double>(image.queue.busy) +
                    info.power_sm_mw * (static_cast<double>(image.queue.sm_active) * 1e-3);
  return pj * 1e-6 + added_energy_uj(header, device, image.first_context, image.queue.t);
}

std::uint64_t memory_used(const Image& image, const Header& header, std::uint32_t device) {
  std::uint64_t bytes = taken_by_nobody(header, device, image.first_context, image.queue.t);
  for_slots(image.live, [&](std::uint32_t slot) { bytes += image.contexts[slot].memory_bytes; });
  for (const Ghost& ghost : image.ghosts)
    if (ghost.keep_memory != 0 && ghost.until > image.queue.t) bytes += ghost.memory_bytes;
  return bytes;
}

bool has_compute_context(const Image& image) {
  bool found = false;
  for_slots(image.live,
            [&](std::uint32_t slot) { found = found || image.contexts[slot].kind == ContextKind::kCompute; });
  return found;
}

std::uint32_t create_context(Image& image, const Header& header, std::uint32_t device, std::uint32_t slot,
                             Owner owner) {
  if (is_live(image, slot)) end_context(image, header, device, slot, End::kDied);
  Context& context = image.contexts[slot];
  const contention::Stream& stream = image.queue.streams[slot];
  context = {.pid = owner.pid,
             .generation = context.generation + 1,
             .kind = owner.kind,
             .unused = 0,
             .memory_bytes = owner.kind == ContextKind::kCompute ? header.devices[device].context_bytes : 0,
             .created = image.queue.t,
             .kernel_base = stream.kernel,
             .sm_base = stream.sm};
  image.live |= std::uint64_t{1} << slot;
  image.used |= std::uint64_t{1} << slot;
  if (image.first_context == 0) image.first_context = image.queue.t;
  return context.generation;
}

void end_context(Image& image, const Header& header, std::uint32_t device, std::uint32_t slot, End how) {
  const Context& context = image.contexts[slot];
  const Nanos now = image.queue.t;
  contention::cancel(image.queue, slot);
  image.live &= ~(std::uint64_t{1} << slot);
  if (how == End::kDestroyed) return;
  for_faults(header, FaultKind::kStaleRows, device, image.first_context, [&](const Fault& fault, const Interval& when) {
    if (!when.holds(now)) return;
    for (Ghost& ghost : image.ghosts) {
      if (ghost.until > now) continue;
      ghost = {.pid = context.pid,
               .slot = slot,
               .kind = context.kind,
               .keep_memory = fault.keep_memory,
               .memory_bytes = context.memory_bytes,
               .created = context.created,
               .until = now + fault.delay};
      return;
    }
  });
}

void seal(BinRecord& bin) { bin.checksum = checksum(bin); }
bool is_sealed(const BinRecord& bin) { return bin.checksum == checksum(bin); }

}  // namespace headroom::sim
