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
    options.why_no_gpus = "not wanted";
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
    options.open_host = [w = world] {
      std::vector<std::unique_ptr<Reader>> readers;
      readers.push_back(std::make_unique<FakeReader>([w] { w->read.open(); }));
      return readers;
    };
    options.on_failed = [w = world](const Error&, Failed) { ++w->failures; };
    options.on_no_gpus = [w = world](const Error&) { ++w->no_gpus; };
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
  options.open_gpus = [&]() -> Result<GpuReaders> {
    GpuReaders gpus;
    gpus.gpus = 2;
    gpus.readers.push_back(std::make_unique<FakeReader>([&] { asked.open(); }));
    return gpus;
  };
  Session session(options);
  asked.wait();
  EXPECT_EQ(session.gpus(), 2U);
  EXPECT_FALSE(session.finish({.at = 1}).no_gpus);
  EXPECT_EQ(world->closed.meta.tiers, "NP");
  EXPECT_EQ(world->no_gpus, 0);
}

TEST_F(SessionTest, ADriverThatDoesNotOpenIsToldOnceAndTheRestRecorded) {
  options.open_gpus = []() -> Result<GpuReaders> { return fail(Errc::kNotFound, "no driver"); };
  Barrier told;
  options.on_no_gpus = [&](const Error&) { told.open(); };
  Session session(options);
  told.wait();
  EXPECT_TRUE(session.finish({.at = 1}).no_gpus);
  EXPECT_EQ(world->closed.meta.missing_tiers, (std::vector<MissingTier>{{'N', "no driver"}}));
}

TEST_F(SessionTest, ADriverThatThrowsIsADriverThatDoesNotOpen) {
  options.open_gpus = []() -> Result<GpuReaders> { throw std::runtime_error("boom"); };
  Barrier told;
  options.on_no_gpus = [&](const Error& error) {
    EXPECT_THAT(error.what, HasSubstr("boom"));
    told.open();
  };
  Session session(options);
  told.wait();
  EXPECT_EQ(session.finish({.at = 1}).path, "memory");
}

TEST_F(SessionTest, ADriverThatHangsWhileItOpensKeepsNobody) {
  options.open_gpus = [w = world]() -> Result<GpuReaders> {
    w->go_on.wait();
    return GpuReaders{};
  };
  {
    Session session(options);
    world->read.wait();
    EXPECT_TRUE(session.finish({.at = 1}).no_gpus);
  }
  ASSERT_EQ(world->closed.meta.missing_tiers.size(), 1U);
  EXPECT_THAT(world->closed.meta.missing_tiers[0].why, HasSubstr("not open yet"));
  world->go_on.open();
}

TEST_F(SessionTest, AReaderThatHangsIsLeftBehindAndSaidSo) {
  options.open_host = [w = world] {
    std::vector<std::unique_ptr<Reader>> readers;
    readers.push_back(std::make_unique<FakeReader>([w] {
      w->read.open();
      w->go_on.wait();
    }));
    return readers;
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

}  // namespace
}  // namespace headroom
