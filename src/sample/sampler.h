// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/time.h"
#include "model/reader.h"

namespace headroom {

// The clocks of a sampler and its way of waiting: a parameter, so that tests neither sleep nor drift.
class SampleClock {
 public:
  SampleClock() = default;
  SampleClock(const SampleClock&) = delete;
  SampleClock& operator=(const SampleClock&) = delete;
  virtual ~SampleClock() = default;

  virtual Nanos boottime() = 0;
  virtual Nanos monotonic() = 0;  // stands still while the machine is suspended
  virtual Nanos realtime() = 0;
  // Returns when boottime() has reached `until`, or earlier when interrupted.
  virtual void wait_until(Nanos until) = 0;
  // Ends the wait under way, or the next one, from any thread.
  virtual void interrupt() = 0;
};

// The machine's clocks. One thread waits.
class SystemClock final : public SampleClock {
 public:
  [[nodiscard]] static Result<std::unique_ptr<SystemClock>> create();

  Nanos boottime() override { return boottime_now(); }
  Nanos monotonic() override { return monotonic_now(); }
  Nanos realtime() override { return realtime_now(); }
  void wait_until(Nanos until) override;
  void interrupt() override;

 private:
  Fd timer_, wake_;
};

// The cost of recording for this process so far.
struct OwnCost {
  Nanos cpu = 0;
  Reading<std::int64_t> rss_bytes = tl::unexpected(Absent::kNotSampled);
};
[[nodiscard]] OwnCost own_cost();

struct SamplerOptions {
  Nanos interval = kSecond;
  Nanos cost_interval = 10 * kSecond;  // between rows of what recording costs
  std::function<OwnCost()> cost = own_cost;
  std::string key = "recorder";  // of its kRecorder source
  // One sampler of a recording is the main one: it tells what recording costs and that a clock was set, and what it
  // misses concerns every source. What another one misses concerns its kRecorder source alone.
  bool is_main = true;
};

// Asks many readers at one cadence and hands on what they say, with what went wrong on the way. Ticks are absolute on
// CLOCK_BOOTTIME: a late one does not shift the next, and one whose time has passed is counted, not caught up with.
//   losses   late_tick: began more than half an interval late; missed_tick: left out
//   events   gap [reason = suspended|late] over three intervals or more without a tick; clock_step [delta_ns]
// Ticks before which every reader is idle do not take place: a thread that has nothing to look at sleeps.
// All calls come from one thread; a reader that blocks delays the others, and is seen in the losses.
class Sampler {
 public:
  Sampler(SampleClock& clock, RecordingSink& sink, SamplerOptions options);

  void add(std::unique_ptr<Reader> reader);           // also while running; it is read at once if the next tick is far
  [[nodiscard]] Nanos next() const { return next_; }  // when the next tick is due; 0 before the first
  void tick();
  void finish();  // a last look at everything

 private:
  Nanos now_rounded();
  void read(Nanos at, std::size_t first);
  [[nodiscard]] Nanos idle_until() const;
  void count_lateness(Nanos now);
  void watch_clocks(Nanos now);
  void add_cost(Nanos at);

  SampleClock& clock_;
  RecordingSink& sink_;
  SamplerOptions options_;
  std::vector<std::unique_ptr<Reader>> readers_;
  SourceId recorder_ = kNoSource;
  Nanos start_ = 0, next_ = 0, last_at_ = 0, last_cost_ = 0;
  Nanos realtime_offset_ = 0, suspended_ = 0, clocks_at_ = 0;
};

}  // namespace headroom
