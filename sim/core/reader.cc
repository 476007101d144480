// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>

#include "sim/core/faults.h"
#include "sim/core/store.h"
#include "sim/read.h"

namespace headroom::sim {

namespace {

constexpr std::size_t kBinsPerLeg = 16;
// nvml.h: nvmlClocksEventReason…
constexpr std::uint64_t kReasonIdle = 0x1, kReasonSwPowerCap = 0x4, kReasonHwSlowdown = 0x8, kReasonSwThermal = 0x20,
                        kReasonHwThermal = 0x40, kReasonPowerBrake = 0x80;

// One device seen at `now`: the image advanced privately, with the bins that were crossed on the way.
struct View {
  const Header& header;
  const DeviceArea& area;
  std::uint32_t device;
  std::unique_ptr<Image> image = std::make_unique<Image>();
  std::vector<BinRecord> own;

  View(const Store& store, std::uint32_t index, Nanos now)
      : header(store.header()), area(store.area(index)), device(index) {
    load(area, *image);
    BinRecord leg[kBinsPerLeg];
    BinSink sink{leg, kBinsPerLeg};
    while (!advance(*image, header, device, now, sink)) take(sink);
    take(sink);
  }
  void take(BinSink& sink) {
    own.insert(own.end(), sink.out, sink.out + sink.count);
    sink.count = 0;
  }

  [[nodiscard]] const DeviceInfo& info() const { return header.devices[device]; }
  [[nodiscard]] std::optional<BinRecord> exact(std::int64_t index) const {
    if (index == 0) {
      BinRecord start{};
      start.temperature_mc = 1000.0 * info().temperature_idle_c;
      return start;
    }
    const auto found = std::lower_bound(own.begin(), own.end(), index,
                                        [](const BinRecord& bin, std::int64_t i) { return bin.index < i; });
    if (found != own.end() && found->index == index) return *found;
    BinRecord bin;
    if (read_bin(area, index, bin)) return bin;
    return std::nullopt;
  }
  [[nodiscard]] BinRecord now_record() const {
    BinRecord bin{.index = 0,
                  .checksum = 0,
                  .busy = image->queue.busy,
                  .sm_active = image->queue.sm_active,
                  .held = image->held,
                  .energy_uj = energy_uj(*image, header, device),
                  .temperature_mc = image->temperature_mc,
                  .kernel = {},
                  .sm = {}};
    for (std::size_t slot = 0; slot < kSlots; ++slot) {
      bin.kernel[slot] = image->queue.streams[slot].kernel;
      bin.sm[slot] = image->queue.streams[slot].sm;
    }
    return bin;
  }
  [[nodiscard]] BinRecord at(Nanos instant) const;
};

BinRecord between(const BinRecord& a, const BinRecord& b, double part) {
  const auto mix = [&](Nanos x, Nanos y) { return x + static_cast<Nanos>(static_cast<double>(y - x) * part); };
  BinRecord bin = a;
  bin.busy = mix(a.busy, b.busy);
  bin.sm_active = mix(a.sm_active, b.sm_active);
  bin.held = mix(a.held, b.held);
  bin.energy_uj += (b.energy_uj - a.energy_uj) * part;
  bin.temperature_mc += (b.temperature_mc - a.temperature_mc) * part;
  for (std::size_t slot = 0; slot < kSlots; ++slot) {
    bin.kernel[slot] = mix(a.kernel[slot], b.kernel[slot]);
    bin.sm[slot] = mix(a.sm[slot], b.sm[slot]);
  }
  return bin;
}

// The state at an instant not later than the image's: a bin, or a straight line between its known neighbours.
BinRecord View::at(Nanos instant) const {
  const std::int64_t index = bin_at(header, instant);
  if (edge_of(header, index) == instant) {
    if (auto bin = exact(index)) return *bin;
  }
  const std::int64_t oldest = std::max<std::int64_t>(0, index - kHistoryBins), newest = image->next_bin;
  std::int64_t before = index, after = index + 1;
  std::optional<BinRecord> left, right;
  while (before >= oldest && !(left = exact(before))) --before;
  while (after < newest && !(right = exact(after))) ++after;
  if (!right) right = now_record();
  if (!left) return *right;
  const Nanos from = edge_of(header, before), to = right->index != 0 ? edge_of(header, after) : image->queue.t;
  return between(*left, *right,
                 to <= from ? 0.0 : static_cast<double>(instant - from) / static_cast<double>(to - from));
}

Nanos dram_of(const DeviceInfo& info, Nanos sm_active_permille) {
  return sm_active_permille / 1000 * static_cast<Nanos>(info.dram_permille) / 1000;
}

// What the sensor shows instead of the truth, if the script says so.
std::optional<std::uint32_t> false_power(const View& view, Nanos at) {
  std::optional<std::uint32_t> shown;
  for_faults(view.header, FaultKind::kPowerReading, view.device, view.image->first_context,
             [&](const Fault& fault, const Interval& when) {
               if (when.holds(at)) shown = static_cast<std::uint32_t>(fault.milliwatts);
             });
  return shown;
}

std::uint32_t mean_power(const View& view, Nanos at, double energy_now_uj) {
  if (const auto shown = false_power(view, at)) return *shown;
  const Nanos window = static_cast<Nanos>(view.info().power_window_bins) * kSecond / kBinsPerSecond;
  const Nanos from = std::max(view.header.box.start_monotonic_ns, at - window);
  if (at <= from) return view.info().power_idle_mw;
  return static_cast<std::uint32_t>(
      std::lround((energy_now_uj - view.at(from).energy_uj) * 1e6 / static_cast<double>(at - from)));
}

std::uint64_t share_in_use(const Image& image, contention::Schedule schedule) {
  const contention::Device& queue = image.queue;
  if (queue.kernels == 0) return 0;
  const auto share = [&](std::size_t slot) {
    const contention::Stream& stream = queue.streams[slot];
    return std::uint64_t{stream.segments[stream.head % contention::kMaxSegments].share_permille};
  };
  if (schedule == contention::Schedule::kRoundRobin && queue.running >= 0)
    return share(static_cast<std::size_t>(queue.running));
  std::uint64_t sum = 0, count = 0;
  for (std::uint64_t set = queue.kernels; set != 0; set &= set - 1, ++count)
    sum += share(static_cast<std::size_t>(std::countr_zero(set)));
  return schedule == contention::Schedule::kSpaceSharing ? std::min<std::uint64_t>(1000, sum) : sum / count;
}

void fill_power(const View& view, Snapshot& out) {
  const DeviceInfo& info = view.info();
  const Image& image = *view.image;
  const double energy = energy_uj(image, view.header, view.device);
  out.energy_uj = static_cast<std::uint64_t>(energy);
  out.power_mw = mean_power(view, out.now, energy);
  double power = info.power_idle_mw;
  if (out.held) power += info.power_held_mw;
  if (out.kernel_running) power += info.power_busy_mw;
  power += static_cast<double>(share_in_use(image, view.header.schedule) * info.power_sm_mw) / 1000.0;
  for_faults(view.header, FaultKind::kPower, view.device, image.first_context,
             [&](const Fault& fault, const Interval& when) {
               if (when.holds(out.now)) power += static_cast<double>(fault.milliwatts);
             });
  out.power_instant_mw = false_power(view, out.now).value_or(static_cast<std::uint32_t>(std::max(0.0, power)));
  out.temperature_mc = static_cast<std::int32_t>(image.temperature_mc);
  const double warmth = (image.temperature_mc * 1e-3 - info.temperature_idle_c) /
                        std::max(1.0, static_cast<double>(info.temperature_full_c) - info.temperature_idle_c);
  out.fan_percent = info.fan_count == 0 ? 0 : static_cast<std::uint32_t>(30.0 + 60.0 * std::clamp(warmth, 0.0, 1.0));
}

void fill_clocks(const View& view, Snapshot& out) {
  const DeviceInfo& info = view.info();
  const bool awake = out.held || out.kernel_running;
  const std::uint32_t rate = rate_permille(view.header, view.device, view.image->first_context, out.now);
  out.sm_clock_mhz = awake ? info.sm_clock_max_mhz * rate / 1000 : info.sm_clock_idle_mhz;
  out.memory_clock_mhz = awake ? info.memory_clock_max_mhz : info.memory_clock_idle_mhz;
  // Boards for servers stay in P0; the others rest in P8.
  out.pstate = awake || info.has_display == 0 ? 0 : 8;
  if (!out.kernel_running) out.event_reasons |= kReasonIdle;
  for_faults(view.header, FaultKind::kThrottle, view.device, view.image->first_context,
             [&](const Fault& fault, const Interval& when) {
               const Nanos held = std::min(out.now, when.end) - std::min(out.now, when.begin);
               if (when.holds(out.now)) out.event_reasons |= fault.reasons;
               if ((fault.reasons & kReasonSwPowerCap) != 0) out.sw_power_cap_ns += held;
               if ((fault.reasons & kReasonHwSlowdown) != 0) out.hw_slowdown_ns += held;
               if ((fault.reasons & kReasonSwThermal) != 0) out.sw_thermal_ns += held;
               if ((fault.reasons & kReasonHwThermal) != 0) out.hw_thermal_ns += held;
               if ((fault.reasons & kReasonPowerBrake) != 0) out.power_brake_ns += held;
             });
}

void fill_contexts(const View& view, Snapshot& out) {
  const Image& image = *view.image;
  for (std::uint64_t set = image.live; set != 0; set &= set - 1) {
    const auto slot = static_cast<std::uint32_t>(std::countr_zero(set));
    const Context& context = image.contexts[slot];
    const contention::Stream& stream = image.queue.streams[slot];
    out.contexts.push_back({.slot = slot,
                            .pid = context.pid,
                            .kind = context.kind,
                            .stale = false,
                            .memory_bytes = context.memory_bytes,
                            .created = context.created,
                            .kernel_ns = stream.kernel - context.kernel_base,
                            .sm_ns = (stream.sm - context.sm_base) / 1000,
                            .slot_kernel_base_ns = context.kernel_base,
                            .slot_sm_base_ns = context.sm_base / 1000});
  }
  for (const Ghost& ghost : image.ghosts) {
    if (ghost.until <= out.now) continue;
    out.contexts.push_back({.slot = ghost.slot,
                            .pid = ghost.pid,
                            .kind = ghost.kind,
                            .stale = true,
                            .memory_bytes = ghost.memory_bytes,
                            .created = ghost.created,
                            .kernel_ns = 0,
                            .sm_ns = 0,
                            .slot_kernel_base_ns = INT64_MAX,
                            .slot_sm_base_ns = INT64_MAX});
  }
}

Bin bin_of_record(const View& view, const BinRecord& record, std::int64_t index) {
  const Nanos at = edge_of(view.header, index);
  Bin bin{.index = index,
          .at = at,
          .busy_ns = record.busy,
          .sm_active_ns = record.sm_active / 1000,
          .dram_active_ns = dram_of(view.info(), record.sm_active),
          .energy_uj = static_cast<std::uint64_t>(record.energy_uj),
          .power_mw = mean_power(view, at, record.energy_uj),
          .temperature_mc = static_cast<std::int32_t>(record.temperature_mc),
          .slots = {}};
  for (std::size_t slot = 0; slot < kSlots; ++slot) bin.slots[slot] = {record.kernel[slot], record.sm[slot] / 1000};
  return bin;
}

}  // namespace

struct Reader::Impl {
  Store store;
  [[nodiscard]] const Header& header() const { return store.header(); }
  // Faults may count from a device's first context. For calls that name no device: from the first on any.
  [[nodiscard]] Nanos first_context(int device) const {
    Nanos first = 0;
    Image image{};
    for (std::uint32_t i = 0; i < header().box.device_count; ++i) {
      if (device >= 0 && static_cast<std::uint32_t>(device) != i) continue;
      load(store.area(i), image);
      if (image.first_context != 0 && (first == 0 || image.first_context < first)) first = image.first_context;
      image = {};
    }
    return first;
  }
};

Reader::~Reader() = default;

std::unique_ptr<Reader> Reader::open(const char* directory, OpenError* error) {
  if (directory == nullptr) directory = std::getenv("HEADROOM_SIM");
  *error = OpenError::kNoDirectory;
  if (directory == nullptr || *directory == '\0') return nullptr;
  Store store = Store::open(directory, Access::kRead, error);
  if (!store) return nullptr;
  std::unique_ptr<Reader> reader(new Reader);
  reader->impl_ = std::make_unique<Impl>();
  reader->impl_->store = std::move(store);
  return reader;
}

const BoxInfo& Reader::box() const { return impl_->header().box; }
std::uint32_t Reader::device_count() const { return box().device_count; }
const DeviceInfo& Reader::device(std::uint32_t index) const { return impl_->header().devices[index]; }
Nanos Reader::now() { return clock_now(); }

Snapshot Reader::snapshot(std::uint32_t device, Nanos now) const {
  const View view(impl_->store, device, now);
  const Image& image = *view.image;
  const DeviceInfo& info = view.info();
  Snapshot out{};
  out.now = image.queue.t;  // another process may already have advanced beyond `now`
  out.lost = lost(view.header, device, image.first_context, out.now);
  out.kernel_running = image.queue.kernels != 0;
  out.held = has_compute_context(image);
  out.busy_ns = image.queue.busy;
  out.sm_active_ns = image.queue.sm_active / 1000;
  out.dram_active_ns = dram_of(info, image.queue.sm_active);
  out.copy_ns = image.queue.copy_busy;
  out.pcie_rx_bytes = image.pcie_rx_bytes;
  out.pcie_tx_bytes = image.pcie_tx_bytes;
  const std::uint64_t capacity = info.memory_total_bytes - info.memory_reserved_bytes;
  out.memory_used_bytes = std::min(capacity, memory_used(image, view.header, device));
  out.memory_reserved_bytes = info.memory_reserved_bytes;
  out.memory_free_bytes = capacity - out.memory_used_bytes;
  fill_power(view, out);
  fill_clocks(view, out);
  for_faults(view.header, FaultKind::kGarbageRows, device, image.first_context,
             [&](const Fault&, const Interval& when) { out.garbage_rows = out.garbage_rows || when.holds(out.now); });
  fill_contexts(view, out);
  return out;
}

std::int64_t Reader::bin_of(Nanos at) const { return bin_at(impl_->header(), at); }
Nanos Reader::bin_edge(std::int64_t index) const { return edge_of(impl_->header(), index); }

std::vector<Bin> Reader::bins(std::uint32_t device, std::int64_t first, std::int64_t last, Nanos now) const {
  const View view(impl_->store, device, now);
  const std::int64_t newest = bin_at(view.header, now);
  first = std::max({first, std::int64_t{0}, newest - kHistoryBins + 1});
  last = std::min(last, newest);
  std::vector<Bin> bins;
  for (std::int64_t index = first; index <= last; ++index)
    bins.push_back(bin_of_record(view, view.at(edge_of(view.header, index)), index));
  return bins;
}

std::uint64_t Reader::timestamp_us(Nanos at) const {
  const Header& header = impl_->header();
  Nanos back = 0;
  for (std::uint32_t i = 0; i < header.fault_count; ++i) {
    const Fault& fault = header.faults[i];
    if (fault.kind == FaultKind::kClockBack && interval(header, fault, impl_->first_context(fault.device)).holds(at))
      back += fault.delay;
  }
  return static_cast<std::uint64_t>((at + header.box.realtime_offset_ns - back) / 1000);
}

Nanos Reader::instant_of(std::uint64_t timestamp_us) const {
  return static_cast<Nanos>(timestamp_us) * 1000 - box().realtime_offset_ns;
}

CallFault Reader::call_fault(const char* call, int device, Nanos now) const {
  if (impl_->header().fault_count == 0) return {0, 0};
  return sim::call_fault(impl_->header(), impl_->store.counters(), {call, device}, impl_->first_context(device), now);
}

bool Reader::is_lost(std::uint32_t device, Nanos now) const {
  const Header& header = impl_->header();
  return header.fault_count != 0 && lost(header, device, impl_->first_context(static_cast<int>(device)), now);
}

bool Reader::symbol_missing(const char* symbol) const {
  const Header& header = impl_->header();
  for (std::uint32_t i = 0; i < header.fault_count; ++i)
    if (header.faults[i].kind == FaultKind::kMissingSymbol && std::string_view(header.faults[i].call) == symbol)
      return true;
  return false;
}

std::vector<Xid> Reader::xids(Nanos after, Nanos until) const {
  const Header& header = impl_->header();
  std::vector<Xid> found;
  for (std::uint32_t i = 0; i < header.fault_count; ++i) {
    const Fault& fault = header.faults[i];
    if (fault.kind != FaultKind::kXid && !(fault.kind == FaultKind::kLost && fault.code != 0)) continue;
    const Nanos at = interval(header, fault, impl_->first_context(fault.device)).begin;
    if (at <= after || at > until) continue;
    for (std::uint32_t d = 0; d < header.box.device_count; ++d)
      if (concerns(fault, d)) found.push_back({at, d, static_cast<std::uint32_t>(fault.code)});
  }
  std::sort(found.begin(), found.end(), [](const Xid& a, const Xid& b) { return a.at < b.at; });
  return found;
}

}  // namespace headroom::sim
