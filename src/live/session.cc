// SPDX-License-Identifier: Apache-2.0
#include "live/session.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "base/short_slice.h"
#include "live/gate.h"
#include "model/losses.h"
#include "sample/sampler.h"

namespace headroom {

namespace {

constexpr Nanos kClosePatience = 20 * kSecond;  // a slow disk is no reason to leave a recording unfinished

Error unexpected_error(const char* what) {
  return {.code = Errc::kIo, .what = fmt::format("internal error while recording: {}", what), .hint = ""};
}

Result<std::unique_ptr<SampleClock>> machine_clock() {
  HR_TRY(std::unique_ptr<SampleClock> clock, SystemClock::create());
  return clock;
}

}  // namespace

struct Session::State {
  // A source of evidence, and how far it has come. Guarded by `mutex`, save `source`, which stays, and `clock`.
  struct Part {
    enum class Is { kUnwanted, kOpening, kOpen, kMissing };
    EvidenceSource source;
    Is is = Is::kUnwanted;
    std::string why = source.why_not;          // it is not there
    std::optional<Result<OpenSource>> opened;  // not yet taken over by the thread that samples it
    std::unique_ptr<SampleClock> clock;        // of its own thread
  };

  explicit State(SessionOptions given) : options(std::move(given)), meta(options.meta) {
    for (EvidenceSource& source : options.sources) {
      Part& part = parts.emplace_back(Part{.source = std::move(source)});
      if (part.source.open) part.is = Part::Is::kOpening;
    }
    if (!options.make_clock) options.make_clock = machine_clock;
  }

  SessionOptions options;
  Gate gate;
  std::unique_ptr<SampleClock> clock;
  std::vector<Part> parts;
  OpenRecording recording;  // set by the sampling thread before `opened`
  std::thread sampling;
  std::atomic<std::size_t> gpus{0};
  std::atomic<bool> failed{false};

  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  RecordingMeta meta;
  std::optional<SessionEnd> end;  // asked to finish
  int own_threads = 0;            // that sample
  bool opened = false, closing = false, done = false;
  SessionResult result;
  // Not guarded: the sampling thread's.
  std::unique_ptr<Sampler> sampler;
  std::vector<std::function<void()>> before_last_look;

  Result<void> make_clocks();
  void start_threads(const std::shared_ptr<State>& self);
  void open_part(Part& part);
  std::optional<OpenSource> take_over(Part& part);
  void run_part(Part& part);
  void sample_part(Part& part, OpenSource source);
  void sample();
  void sample_until_end();
  bool open_recording();
  void take_over_all();
  [[nodiscard]] bool finished();
  void wake_all();    // with `mutex` held
  void name_tiers();  // in `meta`, with `mutex` held
  void fail_with(const Error& error);
  RecordingMeta final_meta();  // with `mutex` held
  void close_recording(bool reader_hung);
  void mark_done();
};

EvidenceSource& SessionOptions::source(char tier) {
  const auto known = std::find_if(sources.begin(), sources.end(), [&](const auto& one) { return one.tier == tier; });
  if (known != sources.end()) return *known;
  return sources.emplace_back(EvidenceSource{.tier = tier});
}

Session::Session(SessionOptions options) : state_(std::make_shared<State>(std::move(options))) {
  State& state = *state_;
  if (auto made = state.make_clocks(); !made) {
    state.fail_with(made.error());
    state.mark_done();
    return;
  }
  try {
    state.start_threads(state_);
  } catch (const std::exception& error) {  // no thread: out of processes or memory
    state.fail_with(unexpected_error(error.what()));
    state.mark_done();
  }
}

Session::~Session() {
  if (!state_->sampling.joinable()) return;
  finish({.at = state_->clock->boottime(), .stop_reason = "interrupted"});
}

void Session::add_event(const Event& event) { state_->gate.add_event(event); }
std::size_t Session::gpus() const { return state_->gpus; }
bool Session::failed() const { return state_->failed; }

SessionResult Session::finish(const SessionEnd& end, Nanos patience) {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  if (!state.end) state.end = end;
  state.wake_all();
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

Result<void> Session::State::make_clocks() {
  HR_TRY(clock, options.make_clock());
  for (Part& part : parts) {
    HR_CHECK(part.source.interval == 0 || part.source.where == ReadOn::kOwnThread, "a cadence needs its own thread");
    if (part.source.where != ReadOn::kOwnThread || !part.source.open) continue;
    HR_TRY(part.clock, options.make_clock());
  }
  return {};
}

// Those that open or sample a part are never waited for longer than the end of the session allows: detached.
void Session::State::start_threads(const std::shared_ptr<State>& self) {
  for (Part& part : parts) {
    if (!part.source.open || part.source.where == ReadOn::kSampler) continue;
    if (part.source.where == ReadOn::kOwnThread) {
      std::thread([self, &part] { self->run_part(part); }).detach();
      const std::lock_guard lock(mutex);
      ++own_threads;
    } else {
      std::thread([self, &part] { self->open_part(part); }).detach();
    }
  }
  sampling = std::thread([self] { self->sample(); });
}

void Session::State::wake_all() {
  if (clock) clock->interrupt();
  for (Part& part : parts)
    if (part.clock) part.clock->interrupt();
  changed.notify_all();
}

bool Session::State::finished() {
  const std::lock_guard lock(mutex);
  return end.has_value() || failed;
}

void Session::State::open_part(Part& part) {
  Result<OpenSource> source = [&]() -> Result<OpenSource> {
    try {
      return part.source.open();
    } catch (const std::exception& error) {
      return tl::unexpected(unexpected_error(error.what()));
    }
  }();
  const std::lock_guard lock(mutex);
  if (done) return;
  part.opened = std::move(source);
  clock->interrupt();
}

// What has been opened since the last call; the recording is told which tier it has, or why it has not.
std::optional<OpenSource> Session::State::take_over(Part& part) {
  std::optional<Result<OpenSource>> fresh;
  {
    const std::lock_guard lock(mutex);
    if (!part.opened || part.is != Part::Is::kOpening) return std::nullopt;
    fresh = std::exchange(part.opened, std::nullopt);
    part.is = *fresh ? Part::Is::kOpen : Part::Is::kMissing;
    if (!*fresh) {
      part.why = fresh->error().what;
      result.missing += part.source.tier;
    }
    name_tiers();
    gate.set_meta(meta);
  }
  if (!*fresh) {
    if (part.source.on_missing) part.source.on_missing(fresh->error());
    return std::nullopt;
  }
  gpus += (*fresh)->gpus;
  return std::move(**fresh);
}

void Session::State::run_part(Part& part) {
  ask_for_the_shortest_slice();
  open_part(part);
  const bool recording_opened = [&] {
    std::unique_lock lock(mutex);
    // The recording is opened even where the end has come already, and a source may have something for it.
    changed.wait(lock, [&] { return opened || failed || done; });
    return opened && !failed;
  }();
  try {
    auto source = recording_opened ? take_over(part) : std::nullopt;
    if (source) sample_part(part, std::move(*source));
  } catch (const std::exception& error) {
    fail_with(unexpected_error(error.what()));
  }
  const std::lock_guard lock(mutex);
  --own_threads;
  changed.notify_all();
}

void Session::State::sample_part(Part& part, OpenSource source) {
  Sampler own(*part.clock, gate,
              {.interval = part.source.interval > 0 ? part.source.interval : options.interval,
               .key = fmt::format("recorder/{}", part.source.tier),
               .is_main = false});
  for (auto& reader : source.readers) own.add(std::move(reader));
  while (!finished()) {
    if (part.clock->boottime() >= own.next()) own.tick();
    if (!finished()) part.clock->wait_until(own.next());
  }
  if (failed) return;
  if (source.before_last_look) {
    if (own.next() == 0) own.tick();  // a job that was over at once
    source.before_last_look();
  }
  own.finish();
  const std::string nothing = source.nothing_seen ? source.nothing_seen() : "";
  if (nothing.empty()) return;
  const std::lock_guard lock(mutex);
  part.is = Part::Is::kMissing;
  part.why = nothing;
}

void Session::State::sample() {
  ask_for_the_shortest_slice();
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
  for (Part& part : parts)
    if (part.source.open && part.source.where == ReadOn::kSampler) open_part(part);
  do {
    take_over_all();
    if (clock->boottime() >= sampler->next()) sampler->tick();
    if (auto failure = recording.failure(); failure) {
      fail_with(*failure);
      break;
    }
    if (!finished()) clock->wait_until(sampler->next());
  } while (!finished());
  take_over_all();
  if (!failed)
    for (const auto& prepare : before_last_look) prepare();
  if (!failed) sampler->finish();
  {
    std::unique_lock lock(mutex);  // one that hangs: until finish() closes without it
    changed.wait(lock, [&] { return own_threads == 0 || closing; });
  }
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
  name_tiers();
  gate.open(recording.sink.get());
  gate.set_meta(meta);
  changed.notify_all();
  return true;
}

void Session::State::name_tiers() {
  meta.tiers.clear();
  meta.missing_tiers = options.meta.missing_tiers;
  for (const Part& part : parts) {
    if (part.is == Part::Is::kOpen) meta.tiers += part.source.tier;
    if (part.is == Part::Is::kUnwanted || part.is == Part::Is::kMissing)
      meta.missing_tiers.push_back({.tier = part.source.tier, .why = part.why});
  }
}

void Session::State::take_over_all() {
  for (Part& part : parts) {
    if (part.source.where == ReadOn::kOwnThread) continue;
    auto source = take_over(part);
    if (!source) continue;
    for (auto& reader : source->readers) sampler->add(std::move(reader));
    if (source->before_last_look) before_last_look.push_back(std::move(source->before_last_look));
  }
}

void Session::State::fail_with(const Error& error) {
  Failed when = Failed::kAtStart;
  {
    const std::lock_guard lock(mutex);
    if (failed.exchange(true)) return;
    result.error = error;
    if (opened) when = Failed::kMidway;
    wake_all();
  }
  if (options.on_failed) options.on_failed(error, when);
}

RecordingMeta Session::State::final_meta() {
  for (Part& part : parts) {
    if (part.is != Part::Is::kOpening) continue;
    part.is = Part::Is::kMissing;
    part.why = fmt::format("{} was not open yet when the recording ended", part.source.name);
    result.missing += part.source.tier;
  }
  name_tiers();
  RecordingMeta final = meta;
  if (failed) final.stop_reason = result.error && result.error->code == Errc::kNoSpace ? "disk_full" : "failed";
  final.end = clock->boottime();
  if (!end) return final;
  if (!failed) {
    final.stop_reason = end->stop_reason;
    final.end = end->at;
  }
  final.exit_code = end->exit_code;
  final.extra.insert(end->extra.begin(), end->extra.end());
  return final;
}

// Whoever comes first closes: the sampling thread, or finish() when that thread hangs in a reader. Without `mutex`: the
// file system may hang as well.
void Session::State::close_recording(bool reader_hung) {
  RecordingMeta final;
  {
    const std::lock_guard lock(mutex);
    if (std::exchange(closing, true)) return;
    changed.notify_all();
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
