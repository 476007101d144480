// SPDX-License-Identifier: Apache-2.0
#include "live/session.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "model/losses.h"
#include "sample/sampler.h"

namespace headroom {

namespace {

constexpr Nanos kClosePatience = 20 * kSecond;  // a slow disk is no reason to leave a recording unfinished

// Passes everything on, one call at a time, until it is shut: what a reader that hung has to say afterwards is dropped.
class Gate final : public RecordingSink {
 public:
  void open(RecordingSink* sink) {
    const std::lock_guard lock(mutex_);
    sink_ = sink;
    for (const Event& event : early_) sink_->add_event(event);
    early_.clear();
  }
  // False if a call into the sink does not come back in time.
  [[nodiscard]] bool shut(Nanos patience) {
    std::unique_lock lock(mutex_, std::try_to_lock);
    for (const Nanos until = monotonic_now() + patience; !lock && monotonic_now() < until; lock.try_lock())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (!lock) return false;
    sink_ = nullptr;
    shut_ = true;
    return true;
  }

  SourceId add_source(const Source& source) override {
    const std::lock_guard lock(mutex_);
    return sink_ != nullptr ? sink_->add_source(source) : kNoSource;
  }
  void add_row(SourceId source, Nanos at, std::span<const Cell> cells) override {
    const std::lock_guard lock(mutex_);
    if (sink_ != nullptr) sink_->add_row(source, at, cells);
  }
  void add_event(const Event& event) override {
    const std::lock_guard lock(mutex_);
    if (sink_ != nullptr)
      sink_->add_event(event);
    else if (!shut_)
      early_.push_back(event);
  }
  void add_loss(const Loss& loss) override {
    const std::lock_guard lock(mutex_);
    if (sink_ != nullptr) sink_->add_loss(loss);
  }
  void set_meta(const RecordingMeta& meta) override {
    const std::lock_guard lock(mutex_);
    if (sink_ != nullptr) sink_->set_meta(meta);
  }

 private:
  std::mutex mutex_;
  RecordingSink* sink_ = nullptr;  // guarded, as is all below
  std::vector<Event> early_;       // from before it was opened
  bool shut_ = false;
};

Error unexpected_error(const char* what) {
  return {.code = Errc::kIo, .what = fmt::format("internal error while recording: {}", what), .hint = ""};
}

}  // namespace

struct Session::State {
  explicit State(SessionOptions given) : options(std::move(given)), meta(options.meta) {}

  SessionOptions options;
  Gate gate;
  std::unique_ptr<SystemClock> clock;
  OpenRecording recording;  // set by the sampling thread before `opened`
  std::thread sampling;
  std::atomic<std::size_t> gpus{0};
  std::atomic<bool> failed{false};

  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  RecordingMeta meta;
  std::optional<SessionEnd> end;                  // asked to finish
  std::optional<Result<GpuReaders>> opened_gpus;  // not yet taken over by the sampling thread
  bool gpus_pending = false;
  bool opened = false, closing = false, done = false;
  SessionResult result;
  // Not guarded: the sampling thread's.
  std::unique_ptr<Sampler> sampler;
  std::function<void()> before_last_look;

  void open_gpus();
  void sample();
  void sample_until_end();
  bool open_recording();
  void take_over_gpus();
  void fail_with(const Error& error);
  RecordingMeta final_meta();  // with `mutex` held
  void close_recording(bool reader_hung);
  void mark_done();
};

Session::Session(SessionOptions options) : state_(std::make_shared<State>(std::move(options))) {
  State& state = *state_;
  auto clock = SystemClock::create();
  if (!clock) {
    state.fail_with(clock.error());
    state.mark_done();
    return;
  }
  state.clock = std::move(*clock);
  try {
    state.gpus_pending = static_cast<bool>(state.options.open_gpus);
    if (state.gpus_pending) std::thread([shared = state_] { shared->open_gpus(); }).detach();
    state.sampling = std::thread([shared = state_] { shared->sample(); });
  } catch (const std::exception& error) {  // no thread: out of processes or memory
    state.fail_with(unexpected_error(error.what()));
    state.mark_done();
  }
}

Session::~Session() {
  if (!state_->sampling.joinable()) return;
  finish({.at = boottime_now(), .stop_reason = "interrupted"});
}

void Session::add_event(const Event& event) { state_->gate.add_event(event); }
std::size_t Session::gpus() const { return state_->gpus; }
bool Session::failed() const { return state_->failed; }

SessionResult Session::finish(const SessionEnd& end, Nanos patience) {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  if (!state.end) state.end = end;
  if (state.clock) state.clock->interrupt();
  const auto done_within = [&](Nanos time) {
    return state.changed.wait_for(lock, std::chrono::nanoseconds(time), [&] { return state.done; });
  };
  if (!done_within(patience) && !(state.closing && done_within(kClosePatience))) {
    if (state.sampling.joinable()) state.sampling.detach();
    if (state.opened && !state.closing) {
      lock.unlock();
      state.close_recording(true);
      lock.lock();
    } else if (!state.result.error) {
      state.result.error = Error{.code = Errc::kIo, .what = "the recording could not be closed in time", .hint = ""};
    }
    return state.result;
  }
  lock.unlock();
  if (state.sampling.joinable()) state.sampling.join();
  return state.result;
}

void Session::State::open_gpus() {
  Result<GpuReaders> readers = [&]() -> Result<GpuReaders> {
    try {
      return options.open_gpus();
    } catch (const std::exception& error) {
      return tl::unexpected(unexpected_error(error.what()));
    }
  }();
  const std::lock_guard lock(mutex);
  if (done) return;
  opened_gpus = std::move(readers);
  clock->interrupt();
}

void Session::State::sample() {
  try {
    sample_until_end();
  } catch (const std::exception& error) {
    fail_with(unexpected_error(error.what()));
    if (opened) close_recording(false);
  }
  mark_done();
}

void Session::State::sample_until_end() {
  if (!open_recording()) return;
  sampler = std::make_unique<Sampler>(*clock, gate, SamplerOptions{.interval = options.interval});
  const auto finished = [&] {
    const std::lock_guard lock(mutex);
    return end.has_value();
  };
  if (options.open_host)
    for (auto& reader : options.open_host()) sampler->add(std::move(reader));
  do {
    take_over_gpus();
    if (clock->boottime() >= sampler->next()) sampler->tick();
    if (auto failure = recording.failure(); failure) {
      fail_with(*failure);
      break;
    }
    if (!finished()) clock->wait_until(sampler->next());
  } while (!finished());
  take_over_gpus();
  if (!failed && before_last_look) before_last_look();
  if (!failed) sampler->finish();
  close_recording(false);
}

bool Session::State::open_recording() {
  auto opening = options.open_recording();
  if (!opening) {
    fail_with(opening.error());
    return false;
  }
  const std::lock_guard lock(mutex);
  recording = std::move(*opening);
  result.path = recording.path;
  opened = true;
  meta.tiers = options.open_host ? "P" : "";
  if (!options.open_gpus) meta.missing_tiers.push_back({.tier = 'N', .why = options.why_no_gpus});
  gate.open(recording.sink.get());
  gate.set_meta(meta);
  return true;
}

void Session::State::take_over_gpus() {
  std::optional<Result<GpuReaders>> fresh;
  {
    const std::lock_guard lock(mutex);
    if (!opened_gpus) return;
    fresh = std::exchange(opened_gpus, std::nullopt);
    gpus_pending = false;
    if (*fresh)
      meta.tiers.insert(0, "N");
    else
      meta.missing_tiers.push_back({.tier = 'N', .why = fresh->error().what});
    result.no_gpus = !*fresh;
    gate.set_meta(meta);
  }
  if (!*fresh) {
    if (options.on_no_gpus) options.on_no_gpus(fresh->error());
    return;
  }
  gpus = (*fresh)->gpus;
  for (auto& reader : (*fresh)->readers) sampler->add(std::move(reader));
  before_last_look = std::move((*fresh)->before_last_look);
}

void Session::State::fail_with(const Error& error) {
  Failed when = Failed::kAtStart;
  {
    const std::lock_guard lock(mutex);
    if (failed.exchange(true)) return;
    result.error = error;
    if (opened) when = Failed::kMidway;
  }
  if (options.on_failed) options.on_failed(error, when);
}

RecordingMeta Session::State::final_meta() {
  RecordingMeta final = meta;
  if (gpus_pending) {
    final.missing_tiers.push_back({.tier = 'N', .why = "the driver was not open yet when the recording ended"});
    result.no_gpus = true;
  }
  if (failed) final.stop_reason = result.error && result.error->code == Errc::kNoSpace ? "disk_full" : "failed";
  final.end = boottime_now();
  if (!end) return final;
  if (!failed) {
    final.stop_reason = end->stop_reason;
    final.end = end->at;
  }
  final.exit_code = end->exit_code;
  return final;
}

// Whoever comes first closes: the sampling thread, or finish() when that thread hangs in a reader. Without `mutex`: the
// file system may hang as well.
void Session::State::close_recording(bool reader_hung) {
  RecordingMeta final;
  {
    const std::lock_guard lock(mutex);
    if (std::exchange(closing, true)) return;
    final = final_meta();
  }
  Result<void> closed = fail(Errc::kIo, "the recording could not be closed in time");
  if (gate.shut(kSecond)) {
    if (reader_hung)
      recording.sink->add_loss(make_loss(LossKind::kReaderHung, 1, "a reader did not come back before the end"));
    recording.sink->set_meta(final);
    closed = recording.close();
  }
  const std::lock_guard lock(mutex);
  if (!closed && !result.error) result.error = closed.error();
}

void Session::State::mark_done() {
  const std::lock_guard lock(mutex);
  done = true;
  changed.notify_all();
}

}  // namespace headroom
