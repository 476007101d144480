// SPDX-License-Identifier: Apache-2.0
#include "analyze/ledger.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "analyze/uses.h"
#include "analyze/utilisation.h"

namespace headroom {

namespace {

// Everything needed to account for one device.
class DeviceAccountant {
 public:
  DeviceAccountant(const Recording& recording, const JobView& job, SourceId gpu);
  [[nodiscard]] std::vector<Slice> slices();
  [[nodiscard]] bool used_by_job() const {
    return std::any_of(uses_.begin(), uses_.end(),
                       [](const Use& use) { return use.context.ours && use.claim != Claim::kNeverHeld; });
  }

 private:
  struct Share {
    const Use* use;  // nullptr: nobody was seen
    double weight;
  };
  void first_sample();
  void move_to(const UtilSample& sample);
  struct Piece {
    Nanos begin = 0, end = 0, busy = 0;  // its busy time is at its end
  };
  enum class Standing : std::uint8_t { kNobody, kThere, kComputing };
  void find_bounds(const UtilSample& sample);
  [[nodiscard]] Standing standing(Nanos begin, Nanos end, const UtilSample& sample) const;
  [[nodiscard]] const std::vector<Piece>& lay_out(const UtilSample& sample);  // until the next call
  void find_kernels();
  void find_kernels(const Piece& piece);
  void find_cuts();
  [[nodiscard]] bool hung(const Use& use) const;
  [[nodiscard]] const std::vector<Share>& owners(Nanos begin, Nanos end);  // until the next call
  void busy(Nanos begin, Nanos end, Nanos sample_begin);
  void idle(Nanos begin, Nanos end);
  [[nodiscard]] Slice idle_piece(Nanos begin, Nanos end) const;
  [[nodiscard]] Slice free_piece(Nanos begin, Nanos end) const;
  [[nodiscard]] Slice active_piece(Nanos begin, Nanos end, const Use& use) const;
  [[nodiscard]] double idle_share(Nanos begin, Nanos end) const;
  void emit(Slice slice);

  const JobView& job_;
  std::vector<UtilSample> samples_;
  std::vector<Nanos> idle_before_;   // idle nanoseconds in samples_[0..i)
  std::vector<Use> uses_;            // in order of begin
  std::vector<std::size_t> around_;  // positions in uses_ of those that touch the sample at hand, in order …
  std::size_t next_ = 0;             // … and of the first that begins after it: ten thousand tasks are not all asked
  std::vector<Nanos> cuts_;          // instants where the account of idle time may change
  std::vector<Slice> slices_;
  std::vector<Piece> pieces_;
  std::vector<Nanos> bounds_;
  std::vector<Share> shares_;  // kept from call to call: a day has a hundred thousand samples
  std::vector<Nanos> parts_;
  bool touched_ = false;
};

DeviceAccountant::DeviceAccountant(const Recording& recording, const JobView& job, SourceId gpu)
    : job_(job), samples_(util_samples(recording, gpu)), uses_(uses_of(recording, job, gpu)) {
  idle_before_.reserve(samples_.size() + 1);
  idle_before_.push_back(0);
  for (const UtilSample& sample : samples_)
    idle_before_.push_back(idle_before_.back() + (sample.util ? sample.end - sample.begin - busy_ns(sample) : 0));
  find_kernels();
  for (Use& use : uses_) use.hung = hung(use);
  find_cuts();
}

void DeviceAccountant::find_cuts() {
  for (const Use& use : uses_)
    for (const Nanos cut : {use.context.begin, use.first_kernel, use.last_kernel, use.context.end})
      if (cut != kNever) cuts_.push_back(cut);
  for (const Use& use : uses_)
    for (const Activity& activity : use.host.driver) cuts_.push_back(activity.end);
  for (const QueueChange& change : job_.batch.queue) cuts_.push_back(change.at);
  std::sort(cuts_.begin(), cuts_.end());
}

void DeviceAccountant::first_sample() {
  around_.clear();
  next_ = 0;
}

// Samples come in order of time.
void DeviceAccountant::move_to(const UtilSample& sample) {
  std::erase_if(around_, [&](std::size_t i) { return uses_[i].context.end <= sample.begin; });
  for (; next_ < uses_.size() && uses_[next_].context.begin < sample.end; ++next_)
    if (uses_[next_].context.end > sample.begin) around_.push_back(next_);
}

// Of a batch it is known to the millisecond who had the device, and several short tasks may follow one another within
// one sample: unmeasured time goes by how long each was there.
double held_within(const Use& use, Nanos begin, Nanos end) {
  const Nanos held = std::min(use.context.end, end) - std::max(use.context.held_from, begin);
  return static_cast<double>(std::max<Nanos>(1, held));
}

// The processes that can own kernels of (begin, end], by measured share where the driver gave one. Foreign ones too.
const std::vector<DeviceAccountant::Share>& DeviceAccountant::owners(Nanos begin, Nanos end) {
  shares_.clear();
  double measured = 0;
  for (const std::size_t i : around_) {
    const Use& use = uses_[i];
    if (use.context.held_from >= end || use.context.end <= begin) continue;
    if (!can_own(use.claim)) continue;
    double weight = 0;
    if (const Column* util = use.track ? use.track->find(Metric::kProcessSmUtil) : nullptr) {
      const auto next = std::lower_bound(use.track->at.begin(), use.track->at.end(), end);
      const auto row = static_cast<std::size_t>(next - use.track->at.begin());
      if (next != use.track->at.end() && *next <= end + 2 * job_.listing_interval && util->has(row))
        weight = static_cast<double>(util->values[row]);
    }
    measured += weight;
    shares_.push_back({&use, weight});
  }
  if (measured <= 0)
    for (Share& share : shares_) share.weight = job_.batch.present ? held_within(*share.use, begin, end) : 1;
  if (shares_.empty()) shares_.push_back({nullptr, 1});
  return shares_;
}

// Where one task ends and the next begins within the sample at hand.
void DeviceAccountant::find_bounds(const UtilSample& sample) {
  bounds_.assign({sample.begin, sample.end});
  for (const std::size_t i : around_)
    if (can_own(uses_[i].claim))
      for (const Nanos at : {uses_[i].context.held_from, uses_[i].context.end})
        if (at > sample.begin && at < sample.end) bounds_.push_back(at);
  std::sort(bounds_.begin(), bounds_.end());
  bounds_.erase(std::unique(bounds_.begin(), bounds_.end()), bounds_.end());
}

// Who could own kernels of [begin, end), a part of a sample.
DeviceAccountant::Standing DeviceAccountant::standing(Nanos begin, Nanos end, const UtilSample& sample) const {
  Standing best = Standing::kNobody;
  for (const std::size_t i : around_) {
    const Use& use = uses_[i];
    if (!can_own(use.claim) || use.context.held_from >= end || use.context.end <= begin) continue;
    const bool computing =
        use.claim == Claim::kContext && use.first_kernel != kNever && use.first_kernel < sample.begin;
    best = std::max(best, computing ? Standing::kComputing : Standing::kThere);
  }
  return best;
}

// Where the busy time of a sample was. Nothing is known of that in general: at its end. A batch knows when its tasks
// had the device: none while nobody could own a kernel; first where somebody is who computed before this sample, since
// a task that begins has its start-up before it; the rest elsewhere. Within each of these by length.
const std::vector<DeviceAccountant::Piece>& DeviceAccountant::lay_out(const UtilSample& sample) {
  const Nanos busy = busy_ns(sample);
  pieces_.assign(1, {sample.begin, sample.end, busy});
  if (!job_.batch.present || busy == 0) return pieces_;
  find_bounds(sample);
  struct Part {
    Nanos length = 0, busy = 0, before = 0, given = 0;
  };
  std::array<Part, 3> parts;  // by Standing
  for (std::size_t i = 1; i < bounds_.size(); ++i)
    parts[static_cast<std::size_t>(standing(bounds_[i - 1], bounds_[i], sample))].length += bounds_[i] - bounds_[i - 1];
  Part &computing = parts[2], &there = parts[1];
  // The driver's clock and ours differ a little, or a kernel's owner was not seen.
  if (computing.length + there.length < busy) return pieces_;
  computing.busy = std::min(busy, computing.length);
  there.busy = busy - computing.busy;
  pieces_.clear();
  for (std::size_t i = 1; i < bounds_.size(); ++i) {
    Piece piece{bounds_[i - 1], bounds_[i], 0};
    Part& part = parts[static_cast<std::size_t>(standing(piece.begin, piece.end, sample))];
    if (part.busy > 0) {
      __extension__ using Wide = __int128;
      part.before += piece.end - piece.begin;
      const auto so_far = static_cast<Nanos>(static_cast<Wide>(part.busy) * part.before / part.length);
      piece.busy = so_far - part.given;
      part.given = so_far;
    }
    pieces_.push_back(piece);
  }
  return pieces_;
}

void DeviceAccountant::find_kernels(const Piece& piece) {
  for (const Share& share : owners(piece.begin, piece.end)) {
    if (!share.use || share.weight <= 0) continue;
    const auto note = [&](Use& use) {
      if (use.first_kernel == kNever) use.first_kernel = std::max(use.context.begin, piece.end - piece.busy);
      use.last_kernel = std::min(use.context.end, piece.end);
    };
    note(uses_[static_cast<std::size_t>(share.use - uses_.data())]);
    for (const std::size_t i : around_)
      if (uses_[i].claim == Claim::kAttempt && uses_[i].context.attempt == share.use->context.attempt) note(uses_[i]);
  }
}

void DeviceAccountant::find_kernels() {
  first_sample();
  for (const UtilSample& sample : samples_) {
    move_to(sample);
    for (const Piece& piece : lay_out(sample))
      if (piece.busy > 0) find_kernels(piece);
  }
}

// Held for a minute and ten times its longest pause before, while neither it nor its helpers used the CPU or the disk
// and it waited for somebody else (a timer would be a decision, not a hang).
bool DeviceAccountant::hung(const Use& use) const {
  constexpr Nanos kShortest = 60 * kSecond;
  if (use.last_kernel == kNever || use.host.driver.empty()) return false;
  const Nanos tail = use.context.end - use.last_kernel;
  if (tail < kShortest) return false;
  Nanos pause = 0, longest = 0;
  auto sample = std::upper_bound(samples_.begin(), samples_.end(), use.first_kernel,
                                 [](Nanos at, const UtilSample& s) { return at < s.end; });
  for (; sample != samples_.end() && sample->begin < use.last_kernel; ++sample) {
    pause = busy_ns(*sample) > 0 ? 0 : pause + sample->end - sample->begin;
    longest = std::max(longest, pause);
  }
  if (tail < 10 * longest) return false;
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
      slice.task = use->task;
      if (!use->counted) slice.account = Account::kDiscarded;
      if (!use->context.ours) slice.account = Account::kForeign;
      if (use->claim == Claim::kUnseen) slice.tier = 'S', slice.confidence = Confidence::kMedium;
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

// `use` holds the device, for the time [begin, end) with this account.
Slice piece_of(const Use& use, Nanos begin, Nanos end, Account account, char tier, Confidence confidence) {
  return {begin, end, account, use.context.pid, tier, confidence, -1, use.task};
}

Slice DeviceAccountant::active_piece(Nanos begin, Nanos end, const Use& use) const {
  const IdleCause cause =
      idle_cause_at(use.host, begin + (end - begin + 1) / 2, [this](Nanos a, Nanos b) { return idle_share(a, b); });
  return piece_of(use, begin, end, cause.account, use.host.driver.empty() ? 'N' : 'P', cause.confidence);
}

Slice DeviceAccountant::free_piece(Nanos begin, Nanos end) const {
  if (job_.batch.present) {
    const bool waiting = job_.batch.waiting(begin + (end - begin) / 2);
    return {begin, end, waiting ? Account::kTaskWaiting : Account::kNoTask, 0, 'S', Confidence::kHigh};
  }
  if (!touched_ && job_.has_job) return {begin, end, Account::kNotUsed, 0, 'N', Confidence::kHigh};
  return {begin, end, Account::kNoTask, 0, 'N', Confidence::kMedium};
}

Slice DeviceAccountant::idle_piece(Nanos begin, Nanos end) const {
  const Nanos middle = begin + (end - begin) / 2;
  if (!job_.has_contexts && !job_.batch.present) return {begin, end, Account::kUnexplained, 0, 'N', Confidence::kLow};
  const Use *active = nullptr, *starting = nullptr, *ending = nullptr, *attempt = nullptr, *never = nullptr;
  for (const std::size_t i : around_) {
    const Use& use = uses_[i];
    if (!use.context.ours || middle < use.context.begin || middle >= use.context.end) continue;
    const bool ever = use.first_kernel != kNever;
    if (use.claim == Claim::kNeverHeld)
      never = &use;
    else if (use.claim == Claim::kAttempt)
      attempt = &use;
    else if (!ever && middle >= use.context.held_from)
      active = &use;
    else if (ever && middle < use.first_kernel)
      starting = &use;
    else if (ever && middle < use.last_kernel)
      active = &use;
    else if (ever)
      ending = &use;
  }
  if (active) return active_piece(begin, end, *active);
  if (starting) return piece_of(*starting, begin, end, Account::kStartup, 'P', Confidence::kHigh);
  if (ending && ending->hung) return piece_of(*ending, begin, end, Account::kHung, 'P', Confidence::kMedium);
  if (ending) return piece_of(*ending, begin, end, Account::kTeardown, 'N', Confidence::kMedium);
  if (attempt && attempt->first_kernel != kNever && middle < attempt->first_kernel)
    return piece_of(*attempt, begin, end, Account::kStartup, 'S', Confidence::kHigh);
  if (attempt && attempt->first_kernel != kNever && middle >= attempt->last_kernel)
    return piece_of(*attempt, begin, end, Account::kTeardown, 'S', Confidence::kMedium);
  if (attempt) return piece_of(*attempt, begin, end, Account::kUnexplained, 'S', Confidence::kLow);
  if (never) return piece_of(*never, begin, end, Account::kNotUsed, 'S', Confidence::kHigh);
  return free_piece(begin, end);
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
  first_sample();
  for (const UtilSample& sample : samples_) {
    move_to(sample);
    if (!sample.util) {
      emit({sample.begin, sample.end, Account::kUnobserved, 0, 'N', Confidence::kHigh});
      continue;
    }
    for (const Piece& piece : lay_out(sample)) {
      idle(piece.begin, piece.end - piece.busy);
      busy(piece.end - piece.busy, piece.end, piece.begin);
    }
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
  using Key = std::tuple<std::size_t, Account, std::int32_t, std::int32_t, std::int64_t, char, Confidence>;
  std::map<Key, Nanos> totals;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    sum.devices.push_back(devices[i].device);
    for (const Slice& slice : devices[i].slices) {
      const Nanos ns = std::min(slice.end, sum.end) - std::max(slice.begin, sum.begin);
      if (ns > 0) totals[{i, slice.account, slice.phase, slice.task, slice.pid, slice.tier, slice.confidence}] += ns;
    }
  }
  for (const auto& [key, ns] : totals) {
    const auto& [device, account, phase, task, pid, tier, confidence] = key;
    sum.entries.push_back({account, device, pid, phase, tier, confidence, ns, task});
  }
  return sum;
}

}  // namespace headroom
