// SPDX-License-Identifier: Apache-2.0
#include "analyze/accountant.h"

#include <algorithm>
#include <array>

#include "analyze/process_evidence.h"
#include "analyze/ran_before.h"

namespace headroom {

namespace {

bool was_met_midway(const Recording& recording) {
  const auto processes = recording.all(SourceKind::kProcess);
  return std::any_of(processes.begin(), processes.end(), [&](SourceId id) {
    return ran_before(process_of(recording.sources[static_cast<std::size_t>(id)]), recording.meta.start);
  });
}

// Of a job that ran before and after: the end of the recording is none of the job.
bool was_only_watched(const RecordingMeta& meta) {
  return meta.origin == "record" && (meta.stop_reason == "duration" || meta.stop_reason == "interrupted");
}

}  // namespace

DeviceAccountant::DeviceAccountant(const AccountedJob& all, SourceId gpu)
    : job_(all.job),
      limits_(all.limits),
      evidence_(all.evidence),
      places_(all.places),
      time_(util_samples(all.recording, gpu, limits_)),
      uses_(uses_of(all.recording, job_, gpu, limits_)),
      unlisted_(may_have_held(all.recording, job_, gpu, limits_)),
      goes_on_(goes_on(all.recording.meta) || was_only_watched(all.recording.meta)),
      desktop_(job_.has_job && std::any_of(job_.graphics.begin(), job_.graphics.end(),
                                           [&](const ContextUse& use) { return use.device == gpu && !use.ours; })) {
  find_kernels();
  leave_out_the_absent();
  // Its first kernel is still to come: until then all of it is start-up, unless it was met midway.
  starting_ = job_.no_kernel_yet && job_.has_job && job_.has_contexts && !was_met_midway(all.recording) &&
              std::none_of(job_.uses.begin(), job_.uses.end(), [](const ContextUse& use) { return use.ours; });
  if (job_.no_kernel_yet)
    for (Use& use : uses_)
      if (use.claim == Claim::kContext && use.context.ours && !use.context.from_before)
        use.first_kernel = use.context.end;
}

void DeviceAccountant::add_kernels(KernelTimes& of_processes) const {
  for (const Use& use : uses_)
    if (use.context.ours && use.context.process && use.first_kernel != kNever)
      of_processes[*use.context.process].push_back({use.context.device, {use.first_kernel, use.last_kernel}});
}

void DeviceAccountant::divide(const KernelTimes& of_processes) {
  for (Use& use : uses_) {
    if (!use.context.ours || !use.context.process || use.first_kernel == kNever) continue;
    for (const auto& [device, kernels] : of_processes.at(*use.context.process)) {
      if (device == use.context.device || kernels.end <= use.context.begin || use.context.end <= kernels.begin)
        continue;
      use.first_kernel = std::max(use.context.begin, std::min(use.first_kernel, kernels.begin));
      use.last_kernel = std::min(use.context.end, std::max(use.last_kernel, kernels.end));
    }
  }
  for (Use& use : uses_) use.hung = use.hung || hung(use), use.spins = spins(use, time_, limits_);
  for (Use& use : uses_)
    if (pauses(use)) use.last_kernel = use.context.end;
  find_cuts();
}

void DeviceAccountant::find_cuts() {
  for (const Use& use : uses_)
    for (const Nanos cut :
         {use.context.begin, use.first_kernel, use.last_kernel, use.context.seen_until, use.context.end})
      if (cut != kNever) cuts_.push_back(cut);
  for (const QueueChange& change : job_.batch.queue) cuts_.push_back(change.at);
  for (const Window& unlisted : unlisted_.windows) cuts_.insert(cuts_.end(), {unlisted.begin, unlisted.end});
  std::sort(cuts_.begin(), cuts_.end());
  const std::ptrdiff_t own = std::ssize(cuts_);
  for (const Use& use : uses_)
    for (const auto& evidence : evidence_) evidence->cut(use, cuts_);
  // Those of a single process are mostly in order.
  if (!std::is_sorted(cuts_.begin() + own, cuts_.end())) std::sort(cuts_.begin() + own, cuts_.end());
  std::inplace_merge(cuts_.begin(), cuts_.begin() + own, cuts_.end());
}

void DeviceAccountant::first_sample() {
  around_.clear();
  next_ = 0;
  left_at_.reset();
}

// Samples come in order of time.
void DeviceAccountant::move_to(const UtilSample& sample) {
  std::erase_if(around_, [&](std::size_t i) {
    const Use& use = uses_[i];
    if (use.context.end > sample.begin) return false;
    if (can_own(use.claim)) left_at_ = std::max(left_at_.value_or(use.context.end), use.context.end);
    return true;
  });
  for (; next_ < uses_.size() && uses_[next_].context.begin < sample.end; ++next_)
    if (uses_[next_].context.end > sample.begin) around_.push_back(next_);
}

namespace {

// In a batch it is known to the millisecond who had the device, and several short tasks may follow one another within
// one sample: unmeasured time goes by how long each was there.
double held_within(const Use& use, Nanos begin, Nanos end) {
  const Nanos held = std::min(use.context.end, end) - std::max(use.context.held_from, begin);
  return static_cast<double>(std::max<Nanos>(1, held));
}

// The driver's share of a process in [begin, end): what was measured at its end or soon after. One that ended before it
// could be measured has its latest one, for as long as it was there: it did not compute less for ending.
double measured_share(const Use& use, Nanos begin, Nanos end, Nanos soon) {
  const Column* util = use.track ? use.track->find(Metric::kProcessSmUtil) : nullptr;
  if (!util) return 0;
  const auto& at = use.track->at;  // not every look at the list is one at the shares
  auto row = static_cast<std::size_t>(std::lower_bound(at.begin(), at.end(), end) - at.begin());
  while (row < at.size() && at[row] <= end + soon && !util->has(row)) ++row;
  if (row < at.size() && at[row] <= end + soon) return static_cast<double>(util->values[row]);
  if (row < at.size() || use.context.end > end + soon) return 0;
  while (row > 0 && at[row - 1] >= begin - soon && !util->has(row - 1)) --row;
  if (row == 0 || at[row - 1] < begin - soon) return 0;
  return static_cast<double>(util->values[row - 1]) * held_within(use, begin, end) / static_cast<double>(end - begin);
}

}  // namespace

// The processes that can own kernels of (begin, end], by measured share where the driver gave one. Foreign ones too.
const std::vector<DeviceAccountant::Share>& DeviceAccountant::owners(Nanos begin, Nanos end, Nanos busy) {
  shares_.clear();
  double measured = 0;
  for (const std::size_t i : around_) {
    const Use& use = uses_[i];
    if (use.context.held_from >= end || use.context.end <= begin) continue;
    if (!can_own(use.claim)) continue;
    const double weight = measured_share(use, begin, end, 2 * job_.listing_interval);
    measured += weight;
    shares_.push_back({&use, weight});
  }
  if (measured <= 0) weigh_unmeasured(begin, end);
  if (!job_.batch.present) leave_to_the_old(begin, end, busy);
  if (shares_.empty()) shares_.push_back({nullptr, 1});
  return shares_;
}

// By how long each was there, in a batch, else alike. Who hardly can have run kernels stands back where another one
// can.
void DeviceAccountant::weigh_unmeasured(Nanos begin, Nanos end) {
  const auto any = [&](const auto& is_so) {
    return std::any_of(shares_.begin(), shares_.end(), [&](const Share& share) { return is_so(*share.use); });
  };
  const bool any_computes = any([](const Use& use) { return !use.only_holds; });
  // Of an attempt that no list named it is not known that it ever had a context.
  const bool any_listed =
      any([](const Use& use) { return use.claim == Claim::kContext && use.context.ours && !use.only_holds; });
  const bool any_ran = any([&](const Use& use) { return !use.only_holds && !hardly_ran(use); });
  for (Share& share : shares_) {
    const Use& use = *share.use;
    const bool stands_back =
        (any_computes && use.only_holds) || (any_listed && use.claim == Claim::kUnseen) || (any_ran && hardly_ran(use));
    share.weight = stands_back ? 0 : job_.batch.present ? held_within(use, begin, end) : 1;
  }
}

// Who starts within a sample has its start-up before it: what somebody who was there before had time for is his. (In a
// batch lay_out() sees to that.)
void DeviceAccountant::leave_to_the_old(Nanos begin, Nanos end, Nanos busy) {
  const auto starts = [&](const Share& share) {
    return share.use->context.process && share.use->context.begin > begin;
  };
  const auto had_time = [&](const Share& share) {
    return !starts(share) && !share.use->only_holds && std::min(end, share.use->context.end) - begin >= busy;
  };
  if (std::none_of(shares_.begin(), shares_.end(), had_time)) return;
  double left = 0;
  for (Share& share : shares_) {
    if (starts(share)) share.weight = 0;
    left += share.weight;
  }
  if (left > 0) return;
  for (Share& share : shares_) share.weight = had_time(share) ? 1 : 0;
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

// Whether what this reading tells was all before it: the driver's reading is of its last period, of up to a second
// (NVML, nvmlUtilization_t), the kernels of a process end with it, and nobody has come since.
bool DeviceAccountant::is_stale(const UtilSample& sample) const {
  return around_.empty() && left_at_ && sample.begin - *left_at_ < kSecond;
}

// Where the busy time of a sample was. Nothing is known of that in general: at its end. A batch knows when its tasks
// had the device: none while nobody could own a kernel, but for what is read long after the last one left; first where
// somebody is who computed before this sample, since a task that begins has its start-up before it; the rest elsewhere.
// Within each of these by length.
const std::vector<DeviceAccountant::Piece>& DeviceAccountant::lay_out(const UtilSample& sample) {
  const Nanos busy = busy_ns(sample);
  pieces_.assign(1, {sample.begin, sample.end, busy});
  if (!job_.batch.present || busy == 0) return pieces_;
  if (is_stale(sample)) {
    pieces_.front().busy = 0;
    return pieces_;
  }
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
  const auto& shares = owners(piece.begin, piece.end, piece.busy);
  const bool several = std::count_if(shares.begin(), shares.end(), [](const Share& s) { return s.weight > 0; }) > 1;
  for (const Share& share : shares) {
    if (!share.use || share.weight <= 0) continue;
    Use& owner = uses_[static_cast<std::size_t>(share.use - uses_.data())];
    owner.doubtful = owner.doubtful || (several && owner.claim == Claim::kUnseen);
    const auto note = [&](Use& use) {
      if (use.first_kernel == kNever) use.first_kernel = std::max(use.context.held_from, piece.end - piece.busy);
      use.last_kernel = std::min(use.context.end, piece.end);
    };
    note(owner);
    for (const std::size_t i : around_)
      if (uses_[i].claim == Claim::kAttempt && uses_[i].context.attempt == share.use->context.attempt) note(uses_[i]);
  }
}

void DeviceAccountant::find_kernels() {
  first_sample();
  for (const UtilSample& sample : time_.samples()) {
    move_to(sample);
    for (const Piece& piece : lay_out(sample))
      if (piece.busy > 0) find_kernels(piece);
    const bool listed = std::any_of(around_.begin(), around_.end(), [&](std::size_t i) {
      return uses_[i].claim == Claim::kContext && uses_[i].context.held_from < sample.end;
    });
    if (busy_ns(sample) == 0 || listed) continue;
    const bool any_ran = std::any_of(around_.begin(), around_.end(),
                                     [&](std::size_t i) { return can_own(uses_[i].claim) && !hardly_ran(uses_[i]); });
    for (const std::size_t i : around_) uses_[i].computed |= !any_ran || !hardly_ran(uses_[i]);
  }
  for (Use& use : uses_)
    if (use.context.from_before && use.first_kernel != kNever) use.first_kernel = use.context.begin;
}

// An attempt that was looked for in vain, or hardly ran, owns no kernels, unless some ran that can be nobody else's: a
// context may have been there between two looks.
void DeviceAccountant::leave_out_the_absent() {
  bool any = false;
  for (Use& use : uses_)
    if (use.claim == Claim::kUnseen && (use.looked_for || hardly_ran(use)) && !use.computed)
      use.claim = Claim::kNeverHeld, any = true;
  if (!any) return;
  for (Use& use : uses_) use.first_kernel = use.last_kernel = kNever, use.doubtful = false;
  find_kernels();
}

// Of an attempt that used less CPU than a program takes that opens the driver.
bool DeviceAccountant::hardly_ran(const Use& use) const {
  if (use.claim != Claim::kUnseen || use.context.attempt < 0) return false;
  const auto& cpu = job_.batch.attempts[static_cast<std::size_t>(use.context.attempt)].cpu_time;
  return cpu && *cpu < limits_.time(Threshold::kOpensTheDriver);
}

// Held for long, and for many times its longest pause before, while neither it nor what it has started used the CPU or
// the disk and it waited for somebody else (a timer would be a decision, not a hang).
bool DeviceAccountant::hung(const Use& use) const {
  if (use.last_kernel == kNever || !use.host.owner || use.host.owner->empty()) return false;
  const Nanos tail = use.context.end - use.last_kernel;
  if (tail < limits_.time(Threshold::kHangShortest)) return false;
  if (static_cast<double>(tail) < limits_[Threshold::kHangPauses] * static_cast<double>(longest_pause(use)))
    return false;
  const auto still = [&](const Activity& a) {
    return a.begin < use.last_kernel ||
           (a.cpu < limits_[Threshold::kHangTrickle] && a.read_bytes_per_second.value_or(0) < 1 &&
            a.write_bytes_per_second.value_or(0) < 1 && a.wait != WaitChannel::kSleep);
  };
  const auto all_still = [&](const std::vector<Activity>& list) {
    return std::all_of(list.begin(), list.end(), still);
  };
  if (!all_still(*use.host.owner)) return false;
  if (!use.context.process)
    return std::all_of(use.host.helpers.begin(), use.host.helpers.end(),
                       [&](const auto* list) { return all_still(*list); });
  // Those below it that hold a device, too: who waits for one that works does not hang.
  const auto below = descendants(job_, *use.context.process);
  return std::all_of(below.begin(), below.end(),
                     [&](SourceId id) { return all_still(job_.did[static_cast<std::size_t>(id)]); });
}

// Of a recording that goes on, or ended while the job went on: no kernel came for a while, but for no longer than at
// times before, or only now. More may come, so this is no end.
bool DeviceAccountant::pauses(const Use& use) const {
  const auto& samples = time_.samples();
  if (!goes_on_ || use.hung || use.last_kernel == kNever || samples.empty() || use.context.end < samples.back().end ||
      use.context.seen_until < use.context.end)
    return false;
  const Nanos tail = use.context.end - use.last_kernel;
  return tail < limits_.time(Threshold::kHeldLong) || tail <= longest_pause(use);
}

// Without a kernel, between its first and its last one.
Nanos DeviceAccountant::longest_pause(const Use& use) const {
  Nanos pause = 0, longest = 0;
  const auto& samples = time_.samples();
  auto sample = std::upper_bound(samples.begin(), samples.end(), use.first_kernel,
                                 [](Nanos at, const UtilSample& s) { return at < s.end; });
  for (; sample != samples.end() && sample->begin < use.last_kernel; ++sample) {
    pause = busy_ns(*sample) > 0 ? 0 : pause + sample->end - sample->begin;
    longest = std::max(longest, pause);
  }
  return longest;
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

// Kernels of one of the owners at hand.
Slice DeviceAccountant::kernels_piece(Nanos begin, Nanos end, const Use* owner) const {
  Slice slice{begin, end, Account::kUseful, 0, seen_by_};
  if (!owner && (job_.has_contexts || job_.owners_unknown)) {
    slice.confidence = Confidence::kLow;  // too short to be listed, or hidden from us
    if (desktop_ && !touched_) slice.account = Account::kForeign;
  }
  if (!owner) return slice;
  slice.pid = owner->context.pid;
  slice.task = owner->task;
  slice.account = owner->context.ours ? owner->kernels : Account::kForeign;
  if (shares_.size() > 1) slice.confidence = Confidence::kMedium;
  if (owner->claim == Claim::kUnseen)
    slice.tiers = "S", slice.confidence = owner->doubtful ? Confidence::kLow : Confidence::kMedium;
  return slice;
}

// Splits (begin, end] among the owners, one after the other; the rounding remainder goes to the largest.
void DeviceAccountant::busy(Nanos begin, Nanos end, Nanos sample_begin) {
  if (end <= begin) return;
  const auto& shares = owners(sample_begin, end, end - begin);
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
    emit(kernels_piece(begin, begin + parts_[i], shares[i].use));
    begin += parts_[i];
  }
}

namespace {

// `use` holds the device, and the time [begin, end) was that.
Slice piece_of(const Use& use, Nanos begin, Nanos end, const HostClaim& claim) {
  return {begin, end, claim.account, use.context.pid, claim.tiers, claim.confidence, -1, use.task};
}

}  // namespace

// The first evidence that speaks for it decides; without any, only where it lies between the kernels is known.
void DeviceAccountant::held_piece(Nanos begin, Nanos end, const Use& use, UsePart part) {
  const IdleStretch stretch{use, part, begin, end, time_};
  const bool past_kernels = part == UsePart::kTail || use.first_kernel == kNever;
  if (past_kernels && !use.hung && begin >= use.context.seen_until)
    return emit(piece_of(use, begin, end, {Account::kUnexplained, Confidence::kLow, ""}));
  // Of an attempt that nobody saw on the device, and of no kernel, it is not known whether it used it at all.
  const bool stranger = use.claim == Claim::kUnseen && use.first_kernel == kNever;
  for (const auto& evidence : evidence_) {
    if (stranger) break;
    claims_.clear();
    evidence->claim(stretch, claims_);
    for (const HostShare& share : claims_) {
      const Nanos stop = begin + share.length;
      Slice slice = piece_of(use, begin, stop, share.claim);
      slice.where = places_.index_of(share.claim.where);
      emit(slice);
      begin = stop;
    }
    if (begin == end) return;
  }
  switch (part) {
    case UsePart::kStartup:
      return emit(piece_of(use, begin, end, {Account::kStartup, Confidence::kHigh, "P"}));
    case UsePart::kTail:
      if (use.hung) return emit(piece_of(use, begin, end, {Account::kHung, Confidence::kMedium, "P"}));
      if (use.doubtful) break;
      return emit(piece_of(use, begin, end, {Account::kTeardown, Confidence::kMedium, seen_by_}));
    case UsePart::kBetween:
      break;
  }
  emit(piece_of(use, begin, end, {Account::kUnexplained, Confidence::kLow, seen_by_}));
}

// An attempt of a batch around its contexts, or one that was too short to be listed.
Slice DeviceAccountant::attempt_piece(Nanos begin, Nanos end, const Use& attempt) const {
  const Nanos middle = begin + (end - begin) / 2;
  const bool ever = attempt.first_kernel != kNever;
  if (ever && middle < attempt.first_kernel)
    return piece_of(attempt, begin, end, {Account::kStartup, Confidence::kHigh, "S"});
  if (ever && middle >= attempt.last_kernel)
    return piece_of(attempt, begin, end,
                    {attempt.hung ? Account::kHung : Account::kTeardown, Confidence::kMedium, "S"});
  return piece_of(attempt, begin, end, {Account::kUnexplained, Confidence::kLow, "S"});
}

Slice DeviceAccountant::free_piece(Nanos begin, Nanos end) const {
  if (job_.batch.present) {
    const bool waiting = job_.batch.waiting(begin + (end - begin) / 2);
    return {begin, end, waiting ? Account::kTaskWaiting : Account::kNoTask, 0, "S", Confidence::kHigh};
  }
  if (!touched_ && starting_) return {begin, end, Account::kStartup, 0, "N", Confidence::kLow};
  if (const auto& windows = unlisted_.windows; !touched_ && !windows.empty()) {
    const Nanos middle = begin + (end - begin) / 2;
    const auto before = [&](const Window& window) { return middle < window.begin; };
    const auto within = [&](const Window& window) { return middle >= window.begin && middle < window.end; };
    if (unlisted_.opened && std::all_of(windows.begin(), windows.end(), before))
      return {begin, end, Account::kStartup, 0, "P", Confidence::kMedium};
    if (std::any_of(windows.begin(), windows.end(), within))
      return {begin, end, Account::kUnexplained, 0, "P", Confidence::kLow};
  }
  if (!touched_ && job_.has_job) return {begin, end, Account::kNotUsed, 0, "N", Confidence::kHigh};
  return {begin, end, Account::kNoTask, 0, "N", Confidence::kMedium};
}

namespace {

// What a use says of an instant, the most telling last: one between its kernels speaks before one that starts, and that
// before one that has ended; an attempt's own context before the attempt.
enum class Word : std::uint8_t { kNone, kNeverHeld, kAttempt, kTail, kStartup, kBetween };

Word word_of(const Use& use, Nanos at) {
  if (!use.context.ours || at < use.context.begin || at >= use.context.end) return Word::kNone;
  if (use.claim == Claim::kNeverHeld) return Word::kNeverHeld;
  if (use.claim == Claim::kAttempt) return Word::kAttempt;
  if (use.first_kernel == kNever && at < use.context.held_from && (use.claim != Claim::kUnseen || use.opened))
    return use.claim == Claim::kUnseen ? Word::kStartup : Word::kNone;
  if (use.first_kernel == kNever) return Word::kBetween;
  if (at < use.first_kernel) return Word::kStartup;
  return at < use.last_kernel ? Word::kBetween : Word::kTail;
}

}  // namespace

// How much of a stretch between its kernels a process waited for another one of the job.
Nanos DeviceAccountant::waits_for_peers(const Use& use, Nanos begin, Nanos end) const {
  const IdleStretch stretch{use, UsePart::kBetween, begin, end, time_};
  Nanos waits = 0;
  std::vector<HostShare> shares;
  for (const auto& evidence : evidence_) {
    evidence->claim(stretch, shares);
    for (const HostShare& share : shares)
      if (share.claim.account == Account::kPeers) waits += share.length;
    if (!shares.empty()) break;
  }
  return waits;
}

void DeviceAccountant::idle_piece(Nanos begin, Nanos end) {
  if (!job_.has_contexts && !job_.batch.present)
    return emit({begin, end, Account::kUnexplained, 0, seen_by_, Confidence::kLow});
  Word best = Word::kNone;
  const Use* use = nullptr;
  for (const std::size_t i : around_) {
    const Word word = word_of(uses_[i], begin + (end - begin) / 2);
    if (word == Word::kNone || word < best) continue;
    // Of two that share the device, who waits for the other leaves the word to it.
    if (word == Word::kBetween && word == best &&
        waits_for_peers(uses_[i], begin, end) > waits_for_peers(*use, begin, end))
      continue;
    best = word;
    use = &uses_[i];
  }
  switch (best) {
    case Word::kBetween:
      return held_piece(begin, end, *use, UsePart::kBetween);
    case Word::kStartup:
      return held_piece(begin, end, *use, UsePart::kStartup);
    case Word::kTail:
      return held_piece(begin, end, *use, UsePart::kTail);
    case Word::kAttempt:
      return emit(attempt_piece(begin, end, *use));
    case Word::kNeverHeld:
      return emit(piece_of(*use, begin, end, {Account::kNotUsed, Confidence::kHigh, "S"}));
    case Word::kNone:
      break;
  }
  emit(free_piece(begin, end));
}

// Between the kernels of a single process of the job it is known whose they were; else they are idle time like any
// other: a model that goes to the GPU is a part of the start-up.
void DeviceAccountant::copies(Nanos begin, Nanos end) {
  if (begin == end) return;
  const auto& shares = owners(begin, end, 0);
  const Use* use = shares.size() == 1 ? shares.front().use : nullptr;
  if (!use || !use->context.ours || begin < use->first_kernel || end > use->last_kernel) return idle(begin, end);
  emit(piece_of(*use, begin, end, {Account::kTransfer, Confidence::kHigh, seen_by_}));
}

void DeviceAccountant::idle(Nanos begin, Nanos end) {
  while (next_cut_ < cuts_.size() && cuts_[next_cut_] <= begin) ++next_cut_;  // pieces come in order of time
  auto cut = cuts_.begin() + static_cast<std::ptrdiff_t>(next_cut_);
  while (begin < end) {
    const Nanos stop = cut == cuts_.end() ? end : std::min(*cut++, end);
    idle_piece(begin, stop);
    begin = stop;
  }
}

std::vector<Slice> DeviceAccountant::slices() {
  touched_ = used_by_job();
  first_sample();
  slices_.reserve(2 * time_.samples().size());
  for (const UtilSample& sample : time_.samples()) {
    move_to(sample);
    seen_by_ = sample.exact ? "C" : "N";
    if (!sample.util) {
      emit({sample.begin, sample.end, Account::kUnobserved, 0, "N", Confidence::kHigh});
      continue;
    }
    Nanos copied = copies_ns(sample);
    for (const Piece& piece : lay_out(sample)) {
      const Nanos kernels = piece.end - piece.busy;
      const Nanos here = std::min(copied, kernels - piece.begin);
      copied -= here;
      idle(piece.begin, kernels - here);
      copies(kernels - here, kernels);
      busy(piece.end - piece.busy, piece.end, piece.begin);
    }
  }
  return std::move(slices_);
}

}  // namespace headroom
