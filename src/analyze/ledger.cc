// SPDX-License-Identifier: Apache-2.0
#include "analyze/ledger.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "analyze/idle_cause.h"
#include "analyze/utilisation.h"

namespace headroom {

namespace {

constexpr Nanos kNever = -1;

// One process's use of the device, with the instants that divide its time.
struct Use {
  ContextUse context;
  Nanos first_kernel = kNever, last_kernel = kNever;  // within the sample's precision
  bool hung = false;                                  // after its last kernel nothing of it moved any more
  const Track* track = nullptr;                       // its kGpuProcess rows
  HostView host;
};

// Everything needed to account for one device.
class DeviceAccountant {
 public:
  DeviceAccountant(const Recording& recording, const JobView& job, SourceId gpu);
  [[nodiscard]] std::vector<Slice> slices();
  [[nodiscard]] bool used_by_job() const {
    return std::any_of(uses_.begin(), uses_.end(), [](const Use& use) { return use.context.ours; });
  }

 private:
  struct Share {
    const Use* use;  // nullptr: nobody was seen
    double weight;
  };
  void add_use(const Recording& recording, const ContextUse& context);
  void find_kernels();
  void find_cuts();
  [[nodiscard]] bool hung(const Use& use) const;
  [[nodiscard]] const std::vector<Share>& owners(Nanos begin, Nanos end);  // until the next call
  void busy(Nanos begin, Nanos end, Nanos sample_begin);
  void idle(Nanos begin, Nanos end);
  [[nodiscard]] Slice idle_piece(Nanos begin, Nanos end) const;
  [[nodiscard]] Slice active_piece(Nanos begin, Nanos end, const Use& use) const;
  [[nodiscard]] double idle_share(Nanos begin, Nanos end) const;
  void emit(Slice slice);

  const JobView& job_;
  std::vector<UtilSample> samples_;
  std::vector<Nanos> idle_before_;  // idle nanoseconds in samples_[0..i)
  std::vector<Use> uses_;
  std::vector<Nanos> cuts_;  // instants where the account of idle time may change
  std::vector<Slice> slices_;
  std::vector<Share> shares_;  // kept from call to call: a day has a hundred thousand samples
  std::vector<Nanos> parts_;
  bool touched_ = false;
};

DeviceAccountant::DeviceAccountant(const Recording& recording, const JobView& job, SourceId gpu)
    : job_(job), samples_(util_samples(recording, gpu)) {
  for (const ContextUse& context : job.uses)
    if (context.device == gpu) add_use(recording, context);
  idle_before_.reserve(samples_.size() + 1);
  idle_before_.push_back(0);
  for (const UtilSample& sample : samples_)
    idle_before_.push_back(idle_before_.back() + (sample.util ? sample.end - sample.begin - busy_ns(sample) : 0));
  find_kernels();
  for (Use& use : uses_) use.hung = hung(use);
  find_cuts();
}

void DeviceAccountant::add_use(const Recording& recording, const ContextUse& context) {
  Use use{context};
  use.track = &recording.tracks[static_cast<std::size_t>(context.source)];
  if (context.ours && context.process) {
    use.host.driver = activities(recording, *context.process);
    for (const SourceId id : descendants(recording, *context.process)) {
      const bool holds =
          std::any_of(job_.uses.begin(), job_.uses.end(), [&](const auto& u) { return u.process == id; });
      if (!holds) use.host.helpers.push_back(activities(recording, id));
    }
  }
  uses_.push_back(std::move(use));
}

void DeviceAccountant::find_cuts() {
  for (const Use& use : uses_)
    for (const Nanos cut : {use.context.begin, use.first_kernel, use.last_kernel, use.context.end})
      if (cut != kNever) cuts_.push_back(cut);
  for (const Use& use : uses_)
    for (const Activity& activity : use.host.driver) cuts_.push_back(activity.end);
  std::sort(cuts_.begin(), cuts_.end());
}

// The processes that can own kernels of (begin, end], by measured share where the driver gave one. Foreign ones too.
const std::vector<DeviceAccountant::Share>& DeviceAccountant::owners(Nanos begin, Nanos end) {
  shares_.clear();
  double measured = 0;
  for (const Use& use : uses_) {
    if (use.context.held_from >= end || use.context.end <= begin) continue;
    double weight = 0;
    if (const Column* util = use.track->find(Metric::kProcessSmUtil)) {
      const auto next = std::lower_bound(use.track->at.begin(), use.track->at.end(), end);
      const auto row = static_cast<std::size_t>(next - use.track->at.begin());
      if (next != use.track->at.end() && *next <= end + 2 * job_.listing_interval && util->has(row))
        weight = static_cast<double>(util->values[row]);
    }
    measured += weight;
    shares_.push_back({&use, weight});
  }
  if (measured <= 0)
    for (Share& share : shares_) share.weight = 1;
  if (shares_.empty()) shares_.push_back({nullptr, 1});
  return shares_;
}

void DeviceAccountant::find_kernels() {
  for (const UtilSample& sample : samples_) {
    const Nanos busy = busy_ns(sample);
    if (busy == 0) continue;
    for (const Share& share : owners(sample.begin, sample.end)) {
      if (!share.use || share.weight <= 0) continue;
      Use& use = uses_[static_cast<std::size_t>(share.use - uses_.data())];
      if (use.first_kernel == kNever) use.first_kernel = std::max(use.context.begin, sample.end - busy);
      use.last_kernel = std::min(use.context.end, sample.end);
    }
  }
}

// Held for a minute and ten times its longest pause before, while neither it nor its helpers used the CPU or the disk
// and it waited for somebody else (a timer would be a decision, not a hang).
bool DeviceAccountant::hung(const Use& use) const {
  constexpr Nanos kShortest = 60 * kSecond;
  if (use.last_kernel == kNever || use.host.driver.empty()) return false;
  const Nanos tail = use.context.end - use.last_kernel;
  Nanos pause = 0, longest = 0;
  for (const UtilSample& sample : samples_) {
    if (sample.end <= use.first_kernel || sample.begin >= use.last_kernel) continue;
    pause = busy_ns(sample) > 0 ? 0 : pause + sample.end - sample.begin;
    longest = std::max(longest, pause);
  }
  if (tail < kShortest || tail < 10 * longest) return false;
  const auto still = [&](const Activity& a) {
    constexpr double kTrickle = 0.01;
    return a.begin < use.last_kernel || (a.cpu < kTrickle && a.read_bytes_per_second < 1 &&
                                         a.write_bytes_per_second < 1 && a.wait != WaitChannel::kSleep);
  };
  const auto all_still = [&](const std::vector<Activity>& list) {
    return std::all_of(list.begin(), list.end(), still);
  };
  return all_still(use.host.driver) && std::all_of(use.host.helpers.begin(), use.host.helpers.end(), all_still);
}

void DeviceAccountant::emit(Slice slice) {
  if (slice.end <= slice.begin) return;
  if (!slices_.empty()) {
    Slice& last = slices_.back();
    Slice same = slice;
    same.begin = last.begin;
    same.end = last.end;
    if (last.end == slice.begin && same == last) {
      last.end = slice.end;
      return;
    }
  }
  slices_.push_back(slice);
}

// Splits (begin, end] among the owners, one after the other; the rounding remainder goes to the largest.
void DeviceAccountant::busy(Nanos begin, Nanos end, Nanos sample_begin) {
  if (end <= begin) return;
  const auto& shares = owners(sample_begin, end);
  double sum = 0;
  for (const Share& share : shares) sum += share.weight;
  parts_.clear();
  Nanos given = 0;
  for (const Share& share : shares) {
    parts_.push_back(static_cast<Nanos>(static_cast<double>(end - begin) * (share.weight / sum)));
    given += parts_.back();
  }
  const auto largest = std::max_element(shares.begin(), shares.end(),
                                        [](const Share& a, const Share& b) { return a.weight < b.weight; });
  parts_[static_cast<std::size_t>(largest - shares.begin())] += end - begin - given;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const Use* use = shares[i].use;
    Slice slice{begin, begin + parts_[i], Account::kUseful};
    if (use) {
      slice.pid = use->context.pid;
      if (!use->context.ours) slice.account = Account::kForeign;
      if (shares.size() > 1) slice.confidence = Confidence::kMedium;
    } else if (job_.has_contexts) {
      slice.confidence = Confidence::kLow;  // too short to be listed, or hidden from us
    }
    emit(slice);
    begin += parts_[i];
  }
}

double DeviceAccountant::idle_share(Nanos begin, Nanos end) const {
  if (end <= begin) return 0;
  const auto first = std::upper_bound(samples_.begin(), samples_.end(), begin,
                                      [](Nanos at, const UtilSample& s) { return at < s.end; });
  const auto last =
      std::lower_bound(first, samples_.end(), end, [](const UtilSample& s, Nanos at) { return s.begin < at; });
  if (first == last) return 0;
  const Nanos idle = idle_before_[static_cast<std::size_t>(last - samples_.begin())] -
                     idle_before_[static_cast<std::size_t>(first - samples_.begin())];
  const Nanos length = (last - 1)->end - first->begin;
  return static_cast<double>(idle) / static_cast<double>(std::max<Nanos>(1, length));
}

Slice DeviceAccountant::active_piece(Nanos begin, Nanos end, const Use& use) const {
  const IdleCause cause =
      idle_cause_at(use.host, begin + (end - begin + 1) / 2, [this](Nanos a, Nanos b) { return idle_share(a, b); });
  const char tier = use.host.driver.empty() ? 'N' : 'P';
  return {begin, end, cause.account, use.context.pid, tier, cause.confidence};
}

Slice DeviceAccountant::idle_piece(Nanos begin, Nanos end) const {
  const Nanos middle = begin + (end - begin) / 2;
  if (!job_.has_contexts) return {begin, end, Account::kUnexplained, 0, 'N', Confidence::kLow};
  const Use *active = nullptr, *starting = nullptr, *ending = nullptr;
  for (const Use& use : uses_) {
    if (!use.context.ours || middle < use.context.begin || middle >= use.context.end) continue;
    const bool ever = use.first_kernel != kNever;
    if (!ever) {
      if (middle >= use.context.held_from) active = &use;
    } else if (middle < use.first_kernel)
      starting = &use;
    else if (middle < use.last_kernel)
      active = &use;
    else
      ending = &use;
  }
  if (active) return active_piece(begin, end, *active);
  if (starting) return {begin, end, Account::kStartup, starting->context.pid, 'P', Confidence::kHigh};
  if (ending && ending->hung) return {begin, end, Account::kHung, ending->context.pid, 'P', Confidence::kMedium};
  if (ending) return {begin, end, Account::kTeardown, ending->context.pid, 'N', Confidence::kMedium};
  if (!touched_ && job_.has_job) return {begin, end, Account::kNotUsed, 0, 'N', Confidence::kHigh};
  return {begin, end, Account::kNoTask, 0, 'N', Confidence::kMedium};
}

void DeviceAccountant::idle(Nanos begin, Nanos end) {
  auto cut = std::upper_bound(cuts_.begin(), cuts_.end(), begin);
  while (begin < end) {
    const Nanos stop = cut == cuts_.end() ? end : std::min(*cut++, end);
    emit(idle_piece(begin, stop));
    begin = stop;
  }
}

std::vector<Slice> DeviceAccountant::slices() {
  touched_ = used_by_job();
  for (const UtilSample& sample : samples_) {
    if (!sample.util) {
      emit({sample.begin, sample.end, Account::kUnobserved, 0, 'N', Confidence::kHigh});
      continue;
    }
    const Nanos turn = sample.end - busy_ns(sample);
    idle(sample.begin, turn);
    busy(turn, sample.end, sample.begin);
  }
  return std::move(slices_);
}

}  // namespace

std::vector<DeviceTime> device_times(const Recording& recording, const JobView& job) {
  std::vector<DeviceTime> devices;
  for (const SourceId id : recording.all(SourceKind::kGpu)) {
    DeviceAccountant accountant(recording, job, id);
    DeviceTime time{id, device_of(recording.sources[static_cast<std::size_t>(id)])};
    time.used = accountant.used_by_job();
    if (job.has_job && !time.used && time.device.given == false) continue;
    time.slices = accountant.slices();
    devices.push_back(std::move(time));
  }
  std::stable_sort(devices.begin(), devices.end(),
                   [](const auto& a, const auto& b) { return a.device.index < b.device.index; });
  return devices;
}

Ledger ledger(const std::vector<DeviceTime>& devices, Nanos begin, Nanos end) {
  Ledger sum;
  sum.begin = begin;
  sum.end = std::max(begin, end);
  using Key = std::tuple<std::size_t, Account, std::int32_t, std::int64_t, char, Confidence>;
  std::map<Key, Nanos> totals;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    sum.devices.push_back(devices[i].device);
    for (const Slice& slice : devices[i].slices) {
      const Nanos ns = std::min(slice.end, sum.end) - std::max(slice.begin, sum.begin);
      if (ns > 0) totals[{i, slice.account, slice.phase, slice.pid, slice.tier, slice.confidence}] += ns;
    }
  }
  for (const auto& [key, ns] : totals) {
    const auto& [device, account, phase, pid, tier, confidence] = key;
    sum.entries.push_back({account, device, pid, phase, tier, confidence, ns});
  }
  return sum;
}

}  // namespace headroom
