// SPDX-License-Identifier: Apache-2.0
#include "sample/sampler.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <utility>

#include "base/strings.h"
#include "model/events.h"
#include "model/losses.h"

namespace headroom {

Result<std::unique_ptr<SystemClock>> SystemClock::create() {
  auto clock = std::make_unique<SystemClock>();
  clock->timer_ = Fd(::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!clock->timer_) return tl::unexpected(errno_error("make a timer"));
  clock->wake_ = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!clock->wake_) return tl::unexpected(errno_error("make an event descriptor"));
  return clock;
}

void SystemClock::wait_until(Nanos until) {
  // A timer, because the time-out of poll() adds 0.1 % of the wait and does not run in suspend.
  itimerspec when{};
  const Nanos at = std::max<Nanos>(until, 1);  // 0 would disarm it
  when.it_value = {.tv_sec = static_cast<time_t>(at / kSecond), .tv_nsec = static_cast<long>(at % kSecond)};
  ::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr);
  pollfd fds[2] = {{.fd = timer_.get(), .events = POLLIN, .revents = 0},
                   {.fd = wake_.get(), .events = POLLIN, .revents = 0}};
  ::poll(fds, 2, -1);
  std::uint64_t count = 0;
  if (fds[1].revents != 0) [[maybe_unused]]
    const auto drained = ::read(wake_.get(), &count, sizeof count);
}

void SystemClock::interrupt() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto put = ::write(wake_.get(), &one, sizeof one);
}

namespace {

// How far realtime may drift against boottime without having been set: NTP slews by at most 500 ppm, and two clocks
// cannot be read at one instant.
constexpr Nanos kStepTolerance = 20 * kMillisecond;
constexpr Nanos kSlewPerSecond = kMillisecond;
constexpr Nanos kTornRead = kMillisecond;  // between the two readings of one clock: the thread was preempted
constexpr int kGapTicks = 3;

Nanos round_to_us(Nanos at) { return (at + kMicrosecond / 2) / kMicrosecond * kMicrosecond; }

}  // namespace

OwnCost own_cost() {
  OwnCost cost{.cpu = process_cpu_now()};
  char text[128];
  const Fd fd(::open("/proc/self/statm", O_RDONLY | O_CLOEXEC));
  const ssize_t got = fd ? ::read(fd.get(), text, sizeof text) : -1;
  if (got <= 0) return cost;
  const auto fields = split(std::string_view(text, static_cast<std::size_t>(got)), ' ');
  const auto pages = fields.size() > 1 ? parse_number<std::int64_t>(fields[1]) : std::nullopt;
  if (pages) cost.rss_bytes = *pages * ::sysconf(_SC_PAGESIZE);
  return cost;
}

Sampler::Sampler(SampleClock& clock, RecordingSink& sink, SamplerOptions options)
    : clock_(clock), sink_(sink), options_(std::move(options)) {
  HR_CHECK(options_.interval > 0, "a sampler needs an interval");
}

void Sampler::add(std::unique_ptr<Reader> reader) {
  readers_.push_back(std::move(reader));
  if (start_ != 0 && next_ - clock_.boottime() > options_.interval / 4) read(now_rounded(), readers_.size() - 1);
}

void Sampler::tick() {
  const Nanos now = clock_.boottime();
  if (start_ == 0) {
    start_ = now;
    next_ = now;
    recorder_ = sink_.add_source({.kind = SourceKind::kRecorder, .key = options_.key});
  }
  count_lateness(now);
  watch_clocks(now);
  next_ += ((now - next_) / options_.interval + 1) * options_.interval;
  const Nanos at = now_rounded();
  read(at, 0);
  if (const Nanos idle = idle_until() - next_; idle > 0)
    next_ += (idle + options_.interval - 1) / options_.interval * options_.interval;
  if (!options_.is_main) return;
  if (last_cost_ == 0 || at - last_cost_ >= options_.cost_interval) add_cost(at);
}

void Sampler::finish() {
  if (start_ == 0) return;
  const Nanos at = now_rounded();
  read(at, 0);
  if (options_.is_main) add_cost(at);
}

Nanos Sampler::now_rounded() {
  last_at_ = std::max(round_to_us(clock_.boottime()), last_at_ + kMicrosecond);
  return last_at_;
}

void Sampler::read(Nanos at, std::size_t first) {
  for (std::size_t i = first; i < readers_.size(); ++i) readers_[i]->read(at, sink_);
}

// Until when none of its readers has anything to read. The main one tells what recording costs, too.
Nanos Sampler::idle_until() const {
  if (options_.is_main || readers_.empty()) return 0;
  Nanos first = std::numeric_limits<Nanos>::max();
  for (const auto& reader : readers_) first = std::min(first, reader->idle_until());
  return first;
}

void Sampler::count_lateness(Nanos now) {
  const Nanos late = now - next_;
  const auto detail = [&] {
    return fmt::format("first {:.3f} s after the start, {:.3f} s late for a look every {:.3f} s",
                       seconds(next_ - start_), seconds(late), seconds(options_.interval));
  };
  const LossPlace place{round_to_us(next_ - options_.interval), round_to_us(now),
                        options_.is_main ? kNoSource : recorder_};
  if (late >= options_.interval) {
    const auto missed = late / options_.interval;
    sink_.add_loss(make_loss(LossKind::kMissedTick, missed, detail(), place));
    if (missed < kGapTicks) return;
    const bool suspended = (now - clock_.monotonic()) - suspended_ > late / 2;
    sink_.add_event(
        to_event(events::Gap{.reason = suspended ? "suspended" : "late"}, place.begin, place.source, place.end));
  } else if (late > options_.interval / 2) {
    sink_.add_loss(make_loss(LossKind::kLateTick, 1, detail(), place));
  }
}

void Sampler::watch_clocks(Nanos now) {
  suspended_ = now - clock_.monotonic();
  const Nanos before = clock_.boottime();
  const Nanos realtime = clock_.realtime();
  if (clock_.boottime() - before > kTornRead) return;
  const Nanos offset = realtime - before;
  const Nanos elapsed = before - std::exchange(clocks_at_, before);
  const Nanos delta = offset - std::exchange(realtime_offset_, offset);
  if (now == start_ || !options_.is_main) return;
  const Nanos tolerance = kStepTolerance + elapsed / kSecond * kSlewPerSecond;
  if (delta > tolerance || delta < -tolerance)
    sink_.add_event(to_event(events::ClockStep{.delta = delta}, round_to_us(now)));
}

void Sampler::add_cost(Nanos at) {
  last_cost_ = at;
  const OwnCost cost = options_.cost();
  std::array cells{Cell{.metric = Metric::kRecorderCpu, .value = cost.cpu}, Cell{.metric = Metric::kRecorderRss}};
  if (cost.rss_bytes)
    cells[1].value = *cost.rss_bytes;
  else
    cells[1].absent = cost.rss_bytes.error();
  sink_.add_row(recorder_, at, cells);
}

}  // namespace headroom
