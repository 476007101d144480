// SPDX-License-Identifier: Apache-2.0
#include "live/session.h"

#include <gmock/gmock.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <stdexcept>

namespace headroom {
namespace {

using testing::HasSubstr;

// Open or shut; whoever waits is let through once it is open.
class Barrier {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

class FakeReader final : public Reader {
 public:
  explicit FakeReader(std::function<void()> on_read) : on_read_(std::move(on_read)) {}
  void read(Nanos at, RecordingSink& sink) override {
    const std::array cells{Cell{.metric = Metric::kHostLoad1, .value = 1}};
    sink.add_row(sink.add_source({.kind = SourceKind::kHost, .key = "host"}), at, cells);
    on_read_();
  }

 private:
  std::function<void()> on_read_;
};

Result<OpenSource> opened(std::function<void()> on_read, std::size_t gpus = 0) {
  OpenSource source;
  source.readers.push_back(std::make_unique<FakeReader>(std::move(on_read)));
  source.gpus = gpus;
  return source;
}

// Time that stands still until the test moves it, for as many clocks as there are threads.
class ManualTime {
 public:
  class Clock final : public SampleClock {
   public:
    explicit Clock(ManualTime& world) : world_(world) {}
    Nanos boottime() override { return world_.now(); }
    Nanos monotonic() override { return world_.now(); }
    Nanos realtime() override { return world_.now(); }
    void wait_until(Nanos until) override {
      std::unique_lock lock(world_.mutex_);
      world_.changed_.wait(lock, [&] { return world_.now_ >= until || interrupted_; });
      interrupted_ = false;
    }
    void interrupt() override {
      const std::lock_guard lock(world_.mutex_);
      interrupted_ = true;
      world_.changed_.notify_all();
    }

   private:
    ManualTime& world_;
    bool interrupted_ = false;
  };
  Nanos now() {
    const std::lock_guard lock(mutex_);
    return now_;
  }
  void advance(Nanos by) {
    const std::lock_guard lock(mutex_);
    now_ += by;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  Nanos now_ = 1000 * kSecond;
};

// How often something has happened; who waits is let through at a count.
class Counter {
 public:
  void add() {
    const std::lock_guard lock(mutex_);
    ++count_;
    changed_.notify_all();
  }
  void wait_for(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return count_ >= count; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
};

// Has a source of its own and counts its reads.
class NamedReader final : public Reader {
 public:
  NamedReader(std::string key, std::function<void()> on_read) : key_(std::move(key)), on_read_(std::move(on_read)) {}
  void read(Nanos at, RecordingSink& sink) override {
    on_read_();
    const std::array cells{Cell{.metric = Metric::kHostLoad1, .value = 1}};
    sink.add_row(sink.add_source({.kind = SourceKind::kProcess, .key = key_}), at, cells);
  }

 private:
  std::string key_;
  std::function<void()> on_read_;
};

// With rows of its own: two threads do not write into one source, whose rows come in order of time.
Result<OpenSource> named(std::string key, std::function<void()> on_read) {
  OpenSource source;
  source.readers.push_back(std::make_unique<NamedReader>(std::move(key), std::move(on_read)));
  return source;
}

// A session over a recording in memory; everything it needs outlives threads that are left behind.
struct SessionTest : testing::Test {
  struct World {
    MemorySink* sink = nullptr;
    Recording closed;
    std::atomic<int> closes{0}, failures{0}, no_gpus{0};
    std::optional<Error> failure;
    Barrier read, go_on;
  };
  std::shared_ptr<World> world = std::make_shared<World>();
  SessionOptions options;

  SessionTest() {
    options.interval = kMillisecond;
    options.meta.id = "test";
    options.sources.push_back({.tier = 'N', .name = "the driver", .where = ReadOn::kSamplerOnceOpen});
    options.source('N').why_not = "not wanted";
    options.open_recording = [w = world]() -> Result<OpenRecording> {
      auto sink = std::make_unique<MemorySink>();
      w->sink = sink.get();
      return OpenRecording{.sink = std::move(sink),
                           .path = "memory",
                           .close = [w]() -> Result<void> {
                             ++w->closes;
                             w->closed = w->sink->take();
                             return {};
                           },
                           .failure = [w] { return w->failure; }};
    };
    options.source('P').open = [w = world] { return opened([w] { w->read.open(); }); };
    options.on_failed = [w = world](const Error&, Failed) { ++w->failures; };
    options.source('N').on_missing = [w = world](const Error&) { ++w->no_gpus; };
  }
  std::int64_t lost(std::string_view what) const {
    for (const Loss& loss : world->closed.losses)
      if (loss.what == what) return loss.count;
    return 0;
  }
};

TEST_F(SessionTest, RecordsUntilItsEndAndClosesOnce) {
  Session session(options);
  session.add_event({.at = 5, .kind = "job_start"});  // perhaps before the recording is open
  world->read.wait();
  const SessionResult result = session.finish({.at = 77, .stop_reason = "job_ended", .exit_code = 3});
  EXPECT_EQ(result.path, "memory");
  EXPECT_FALSE(result.error);
  EXPECT_EQ(world->closes, 1);
  const RecordingMeta& meta = world->closed.meta;
  EXPECT_EQ(meta.end, 77);
  EXPECT_EQ(meta.stop_reason, "job_ended");
  EXPECT_EQ(meta.exit_code, 3);
  EXPECT_EQ(meta.tiers, "P");
  EXPECT_EQ(meta.missing_tiers, (std::vector<MissingTier>{{'N', "not wanted"}}));
  ASSERT_FALSE(world->closed.events.empty());
  EXPECT_EQ(world->closed.events[0].kind, "job_start");
}

TEST_F(SessionTest, GpusThatOpenInTimeAreATier) {
  Barrier asked;
  options.source('N').open = [&] { return opened([&] { asked.open(); }, 2); };
  Session session(options);
  asked.wait();
  EXPECT_EQ(session.gpus(), 2U);
  EXPECT_EQ(session.finish({.at = 1}).missing, "");
  EXPECT_EQ(world->closed.meta.tiers, "NP");
  EXPECT_EQ(world->no_gpus, 0);
}

TEST_F(SessionTest, ADriverThatDoesNotOpenIsToldOnceAndTheRestRecorded) {
  options.source('N').open = []() -> Result<OpenSource> { return fail(Errc::kNotFound, "no driver"); };
  Barrier told;
  options.source('N').on_missing = [&](const Error&) { told.open(); };
  Session session(options);
  told.wait();
  EXPECT_EQ(session.finish({.at = 1}).missing, "N");
  EXPECT_EQ(world->closed.meta.missing_tiers, (std::vector<MissingTier>{{'N', "no driver"}}));
}

TEST_F(SessionTest, ADriverThatThrowsIsADriverThatDoesNotOpen) {
  options.source('N').open = []() -> Result<OpenSource> { throw std::runtime_error("boom"); };
  Barrier told;
  options.source('N').on_missing = [&](const Error& error) {
    EXPECT_THAT(error.what, HasSubstr("boom"));
    told.open();
  };
  Session session(options);
  told.wait();
  EXPECT_EQ(session.finish({.at = 1}).path, "memory");
}

TEST_F(SessionTest, ADriverThatHangsWhileItOpensKeepsNobody) {
  options.source('N').open = [w = world]() -> Result<OpenSource> {
    w->go_on.wait();
    return OpenSource{};
  };
  {
    Session session(options);
    world->read.wait();
    EXPECT_EQ(session.finish({.at = 1}).missing, "N");
  }
  ASSERT_EQ(world->closed.meta.missing_tiers.size(), 1U);
  EXPECT_THAT(world->closed.meta.missing_tiers[0].why, HasSubstr("not open yet"));
  world->go_on.open();
}

TEST_F(SessionTest, AReaderThatHangsIsLeftBehindAndSaidSo) {
  options.source('P').open = [w = world] {
    return opened([w] {
      w->read.open();
      w->go_on.wait();
    });
  };
  Session session(options);
  world->read.wait();
  const SessionResult result = session.finish({.at = 9, .stop_reason = "job_ended", .exit_code = 0}, kMillisecond);
  EXPECT_FALSE(result.error);
  EXPECT_EQ(world->closes, 1);
  EXPECT_EQ(lost("reader_hung"), 1);
  EXPECT_EQ(world->closed.meta.end, 9);
  world->go_on.open();
}

TEST_F(SessionTest, ARecordingThatCannotBeOpenedIsToldOnce) {
  options.open_recording = []() -> Result<OpenRecording> { return fail(Errc::kNoPermission, "create x: denied"); };
  Session session(options);
  session.add_event({.at = 5, .kind = "job_start"});
  const SessionResult result = session.finish({.at = 1});
  EXPECT_EQ(result.path, "");
  ASSERT_TRUE(result.error);
  EXPECT_EQ(result.error->what, "create x: denied");
  EXPECT_TRUE(session.failed());
  EXPECT_EQ(world->failures, 1);
}

TEST_F(SessionTest, AFullDiskEndsTheRecordingWithOneMessage) {
  world->failure = Error{Errc::kNoSpace, "disk full", ""};
  Barrier told;
  options.on_failed = [&, w = world](const Error&, Failed when) {
    EXPECT_EQ(when, Failed::kMidway);
    ++w->failures;
    told.open();
  };
  Session session(options);
  told.wait();
  const SessionResult result = session.finish({.at = 1, .stop_reason = "job_ended", .exit_code = 0});
  EXPECT_EQ(world->failures, 1);
  EXPECT_EQ(world->closes, 1);
  EXPECT_EQ(world->closed.meta.stop_reason, "disk_full");
  EXPECT_EQ(result.error->code, Errc::kNoSpace);
}

TEST_F(SessionTest, DroppingItCloses) {
  {
    Session session(options);
    world->read.wait();
  }
  EXPECT_EQ(world->closes, 1);
  EXPECT_EQ(world->closed.meta.stop_reason, "interrupted");
}

// The slow one blocks for 300 ms while the fast one is looked at fifteen times.
TEST_F(SessionTest, ASourceWithAThreadOfItsOwnIsNotHeldByASlowOne) {
  constexpr Nanos kFast = 20 * kMillisecond;
  ManualTime time;
  Counter fast, slow;
  Barrier go_on;
  options.make_clock = [&] { return Result<std::unique_ptr<SampleClock>>(std::make_unique<ManualTime::Clock>(time)); };
  options.interval = kSecond;
  options.source('P').open = [&] {
    return named("slow", [&] {
      slow.add();
      go_on.wait();
    });
  };
  EvidenceSource own{.tier = 'Y', .name = "the stacks", .where = ReadOn::kOwnThread};
  own.interval = kFast;
  own.open = [&] { return named("fast", [&] { fast.add(); }); };
  options.sources.push_back(std::move(own));
  Session session(options);
  slow.wait_for(1);
  fast.wait_for(1);
  for (int tick = 1; tick <= 50; ++tick) {
    if (tick == 16) go_on.open();
    time.advance(kFast);
    fast.wait_for(tick + 1);
  }
  slow.wait_for(2);
  EXPECT_EQ(session.finish({.at = time.now(), .stop_reason = "duration"}).missing, "");
  const Recording& recording = world->closed;
  EXPECT_EQ(recording.meta.tiers, "PY");
  EXPECT_THAT(recording.losses, testing::IsEmpty());
  const auto track = [&](const char* key) {
    return recording.tracks.at(static_cast<std::size_t>(*recording.find(SourceKind::kProcess, key)));
  };
  ASSERT_EQ(track("fast").at.size(), 52U);  // and the last look
  for (int tick = 0; tick <= 50; ++tick)
    EXPECT_EQ(track("fast").at[static_cast<std::size_t>(tick)], 1000 * kSecond + tick * kFast);
  ASSERT_EQ(track("slow").at.size(), 3U);
  EXPECT_EQ(track("slow").at[0], 1000 * kSecond);
  EXPECT_EQ(track("slow").at[1], 1001 * kSecond);
}

TEST_F(SessionTest, AThreadThatHangsInItsOwnSourceIsLeftBehind) {
  EvidenceSource own{.tier = 'Y', .name = "the stacks", .where = ReadOn::kOwnThread};
  const auto asked = std::make_shared<Barrier>();
  own.open = [w = world, asked] {
    return named("stacks", [w, asked] {
      asked->open();
      w->go_on.wait();
    });
  };
  options.sources.push_back(std::move(own));
  Session session(options);
  asked->wait();
  world->read.wait();
  EXPECT_FALSE(session.finish({.at = 9, .stop_reason = "job_ended"}, 50 * kMillisecond).error);
  EXPECT_EQ(world->closes, 1);
  EXPECT_EQ(lost("reader_hung"), 1);
  EXPECT_EQ(world->closed.meta.tiers, "PY");
  world->go_on.open();
}

TEST_F(SessionTest, ASourceOfItsOwnThatDoesNotOpenIsAMissingTier) {
  EvidenceSource own{.tier = 'Y', .name = "the stacks", .where = ReadOn::kOwnThread};
  Barrier told;
  own.open = []() -> Result<OpenSource> { return fail(Errc::kNoPermission, "ptrace is not allowed"); };
  own.on_missing = [&](const Error&) { told.open(); };
  options.sources.push_back(std::move(own));
  Session session(options);
  told.wait();
  EXPECT_EQ(session.finish({.at = 1}).missing, "Y");
  EXPECT_EQ(world->closed.meta.tiers, "P");
  EXPECT_EQ(world->closed.meta.missing_tiers,
            (std::vector<MissingTier>{{'N', "not wanted"}, {'Y', "ptrace is not allowed"}}));
}

// A job that is over before anybody looked has said what it said.
TEST_F(SessionTest, ASourceThatKeepsWhatItSawIsLookedAtEvenIfTheEndComesFirst) {
  EvidenceSource own{.tier = 'X', .name = "the marks", .where = ReadOn::kOwnThread};
  const auto ended = std::make_shared<Barrier>();
  const auto reads = std::make_shared<Counter>(), last = std::make_shared<Counter>();
  own.open = [=] {
    ended->wait();
    OpenSource source;
    source.readers.push_back(std::make_unique<NamedReader>("marks", [=] { reads->add(); }));
    source.before_last_look = [=] { last->add(); };
    source.nothing_seen = [] { return ""; };
    return Result<OpenSource>(std::move(source));
  };
  options.sources.push_back(std::move(own));
  Session session(options);
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ended->open();
  });
  EXPECT_EQ(session.finish({.at = 1}, 60 * kSecond).missing, "");
  later.join();
  last->wait_for(1);
  reads->wait_for(1);
  EXPECT_EQ(world->closed.meta.tiers, "PX");
}

TEST_F(SessionTest, ASourceThatSawNothingIsNoTier) {
  EvidenceSource own{.tier = 'X', .name = "the marks", .where = ReadOn::kOwnThread};
  own.open = [] {
    OpenSource source;
    source.nothing_seen = [] { return "the job set none"; };
    return Result<OpenSource>(std::move(source));
  };
  options.sources.push_back(std::move(own));
  Session session(options);
  world->read.wait();
  EXPECT_EQ(session.finish({.at = 1}).missing, "") << "nothing went wrong";
  EXPECT_EQ(world->closed.meta.tiers, "P");
  EXPECT_EQ(world->closed.meta.missing_tiers.back(), (MissingTier{'X', "the job set none"}));
}

}  // namespace
}  // namespace headroom
