// SPDX-License-Identifier: Apache-2.0
#include "diagnose/named_waits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "analyze/testing.h"
#include "diagnose/explain.h"
#include "diagnose/testing.h"

namespace headroom {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RecordingBuilder;

constexpr std::int64_t kMegabyte = 1'000'000;

// A GPU that is busy for a third of the time, while its process hardly runs and waits for this.
Finding waiting_for(const WaitTarget& target, std::int64_t sent = 0, std::int64_t received = 0,
                    WaitChannel channel = WaitChannel::kPoll) {
  RecordingBuilder builder(100);
  builder.gpu(0, [](double) { return 0.35; }).sleeping_in(channel);
  builder.process(100, 1, 0, 100, 0.02).context(100, 0, 0, 100).process(101, 1, 0, 100, 0.3);
  builder.waits_for(100, target, sent, received);
  Explanation e = explain(builder.build());
  EXPECT_FALSE(e.findings.empty());
  return e.findings.empty() ? Finding{} : e.findings.front();
}

TEST(NamedWaits, AConnectionIsSaidWithItsFarEndAndWhatCameOverIt) {
  const Finding finding = waiting_for({WaitKind::kConnection, "10.0.0.5:9000"}, 1000, 5 * kMegabyte);
  EXPECT_THAT(finding.evidence,
              Contains(HasSubstr("its main thread was on a connection to 10.0.0.5:9000 (100 %), over which")));
  EXPECT_THAT(finding.evidence, Contains(HasSubstr("over which 472 MiB came and 96.7 KiB went")));
}

TEST(NamedWaits, WhatOnlyCameInIsNoUploadAndWhatOnlyWentOutNoReading) {
  const WaitTarget far{WaitKind::kConnection, "10.0.0.5:9000"};
  const Finding in = waiting_for(far, 1000, 5 * kMegabyte), out = waiting_for(far, 5 * kMegabyte, 1000);
  EXPECT_THAT(in.candidates, Not(Contains(Cause::kLoggingUpload)));
  EXPECT_THAT(in.told_apart_from, Contains(HasSubstr("uploads: ")));
  EXPECT_THAT(out.candidates, Not(Contains(Cause::kSlowStorage)));
  EXPECT_THAT(out.told_apart_from, Contains(HasSubstr("reading: ")));
  const Finding both = waiting_for(far, 5 * kMegabyte, 5 * kMegabyte), little = waiting_for(far, 10, 5000);
  for (const Finding* open : {&both, &little}) {
    EXPECT_THAT(open->candidates, Contains(Cause::kLoggingUpload));
    EXPECT_THAT(open->candidates, Contains(Cause::kSlowStorage));
  }
}

// Data for kernels is more than that; who sends text and gets a number back may have it judged there.
TEST(NamedWaits, WhoAsksAndGetsHardlyAnythingReadsNoData) {
  const WaitTarget far{WaitKind::kConnection, "10.0.0.5:9000"};
  const Finding asks = waiting_for(far, 5000, 2000, WaitChannel::kSocket);
  EXPECT_THAT(asks.told_apart_from, Contains(HasSubstr("reading: over the connection")));
  const Finding sends = waiting_for(far, 50000, 100, WaitChannel::kSocket);
  EXPECT_THAT(sends.told_apart_from, Contains(HasSubstr("reading: over the connection")));
  for (const auto& [sent, received] : {std::pair(5000, 20000), std::pair(50000, 2000), std::pair(0, 0)})
    EXPECT_THAT(waiting_for(far, sent, received, WaitChannel::kSocket).candidates, Contains(Cause::kSlowStorage));
}

// A store that is read from all day and written to at the end.
TEST(NamedWaits, WhatCameBeforeIsNotOfThisTime) {
  RecordingBuilder builder(100);
  builder.gpu(0, [](double) { return 0.35; }).sleeping_in(WaitChannel::kSocket);
  builder.process(100, 1, 0, 100, 0.02).context(100, 0, 0, 100);
  builder.waits_for(100, {WaitKind::kConnection, "10.0.0.5:9000"}, 0, 50 * kMegabyte);
  Recording recording = builder.build();
  Track& waits = recording.tracks[static_cast<std::size_t>(recording.all(SourceKind::kProcessWaits).front())];
  for (std::size_t row = 0; row < waits.at.size(); ++row)
    for (Column& column : waits.columns) {
      const auto second = static_cast<std::int64_t>(row);
      column.values[row] = column.metric == Metric::kConnectionSent
                               ? std::max<std::int64_t>(0, second - 80) * kMegabyte
                               : std::min<std::int64_t>(80, second) * 50 * kMegabyte;
    }
  const auto first_of = [&](Nanos from, Nanos to) {
    const Explanation e = explain(recording, {.window = std::pair(from, to)});
    return e.findings.empty() ? std::optional<Cause>() : e.findings.front().cause;
  };
  EXPECT_EQ(first_of(5 * kSecond, 75 * kSecond), Cause::kSlowStorage);
  EXPECT_EQ(first_of(85 * kSecond, 99 * kSecond), Cause::kLoggingUpload);
}

TEST(NamedWaits, WhatComesFromAProcessOfTheJobIsNoStorage) {
  const Finding finding = waiting_for({WaitKind::kConnection, "127.0.0.1:9000", {101}}, 1000, 5 * kMegabyte);
  EXPECT_NE(finding.cause, Cause::kSlowStorage);
  EXPECT_THAT(finding.title, HasSubstr("waits for process 101 (python3)"));
  EXPECT_THAT(finding.told_apart_from, Not(Contains(HasSubstr("uploads"))));
}

TEST(NamedWaits, WhatGoesToALoggerOfTheJobIsAnUpload) {
  const Finding sends =
      waiting_for({WaitKind::kConnection, "127.0.0.1:9000", {101}}, 5 * kMegabyte, 1000, WaitChannel::kSocket);
  EXPECT_EQ(sends.cause, Cause::kLoggingUpload) << sends.title;
  EXPECT_THAT(sends.title, HasSubstr("is sent over a connection to 127.0.0.1:9000"));
}

// Somebody else of the job is at the other end of a pipe for 3 of 4 s; it works, or sleeps as well.
TEST(NamedWaits, WhoIsFedByASleeperWaitsForNoLoader) {
  const auto fed_by = [](double cpu, WaitChannel channel) {
    RecordingBuilder builder(100);
    builder.gpu(0, [](double t) { return std::fmod(t, 4) < 1 ? 1.0 : 0.0; }).sleeping_in(WaitChannel::kPipe);
    builder.process(100, 1, 0, 100, 0.02).context(100, 0, 0, 100);
    builder.sleeping_in(channel).process(101, 1, 0, 100, cpu);
    builder.waits_for(100, {WaitKind::kPipe, "sh", {101}});
    return explain(builder.build()).findings.front();
  };
  const Finding sleeps = fed_by(0.01, WaitChannel::kSleep);
  EXPECT_THAT(sleeps.evidence, Contains(HasSubstr("hardly used the CPU (0.01 cores): it waits itself, on a timer")));
  EXPECT_THAT(sleeps.candidates, Contains(Cause::kInteractiveHoldingGpu));
  for (const Cause cause : {Cause::kInputTooFewWorkers, Cause::kSlowStorage, Cause::kInputInMainProcess})
    EXPECT_THAT(sleeps.candidates, Not(Contains(cause))) << info(cause).id;
  EXPECT_THAT(fed_by(0.9, WaitChannel::kSleep).evidence, Not(Contains(HasSubstr("waits itself"))));
  EXPECT_THAT(fed_by(0.01, WaitChannel::kSocket).candidates, Contains(Cause::kSlowStorage));
}

TEST(NamedWaits, TheProcessAtTheOtherEndOfAPipeIsNamed) {
  const Finding finding = waiting_for({WaitKind::kPipe, "python3", {101}});
  EXPECT_THAT(finding.evidence, Contains(HasSubstr("on a pipe from process 101 (python3)")));
  const Finding several = waiting_for({WaitKind::kPipe, "pt_data_worker", {}});
  EXPECT_THAT(several.evidence, Contains(HasSubstr("on a pipe from processes called pt_data_worker")));
}

TEST(NamedWaits, AProcessOnAnotherGpuAtTheOtherEndIsAStraggler) {
  RecordingBuilder builder(100);
  builder.gpu(0, [](double) { return 0.35; }).gpu(1, [](double) { return 0.9; }).sleeping_in(WaitChannel::kPipe);
  builder.process(100, 1, 0, 100, 0.02).context(100, 0, 0, 100).process(101, 1, 0, 100, 0.02).context(101, 1, 0, 100);
  builder.waits_for(100, {WaitKind::kUnixSocket, "python3", {101}});
  const Explanation e = explain(builder.build());
  const auto told = std::find_if(e.findings.begin(), e.findings.end(), [](const Finding& finding) {
    return finding.title.find("process 101 (python3), which is on a GPU, too") != std::string::npos;
  });
  ASSERT_NE(told, e.findings.end());
  EXPECT_EQ(told->candidates, (std::vector{Cause::kStraggler, Cause::kExposedCommunication}));
  ASSERT_TRUE(told->gain);
  EXPECT_NEAR(told->gain->high, 2 * 0.9 / (0.35 + 0.9), 0.01) << "equal shares of the kernels";
}

TEST(NamedWaits, WorkersWaitForNoKernels) {
  RecordingBuilder builder(100);
  builder.gpu(0, [](double) { return 0.35; }).sleeping_in(WaitChannel::kPipe).process(100, 1, 0, 100, 0.02);
  builder.context(100, 0, 0, 100).sleeping_in(WaitChannel::kPoll).process(101, 100, 0, 100, 0.1);
  builder.waits_for(101, {WaitKind::kConnection, "10.0.0.5:9000"}, 1000, 5 * kMegabyte);
  const Explanation e = explain(builder.build());
  ASSERT_FALSE(e.findings.empty());
  const auto& evidence = e.findings.front().evidence;
  EXPECT_THAT(evidence, Contains(HasSubstr("the main threads of its workers were on a connection to 10.0.0.5:9000")));
  EXPECT_THAT(evidence, Not(Contains(HasSubstr("waits for its kernels"))));
}

// Requests come every 10 s.
TEST(NamedWaits, WhoWaitsAtItsOwnPortWaitsForWhoConnects) {
  const auto serves = [](std::int64_t sent) {
    RecordingBuilder builder(100);
    builder.gpu(0, [](double t) { return std::fmod(t, 10) < 3 ? 1.0 : 0.0; }).sleeping_in(WaitChannel::kPoll);
    builder.process(100, 1, 0, 100, 0.02).context(100, 0, 0, 100);
    builder.waits_for(100, {WaitKind::kAccepted, "8080"}, sent, 0);
    return explain(builder.build());
  };
  const Explanation e = serves(0);
  const Finding& idle = e.findings.front();
  EXPECT_EQ(idle.cause, Cause::kInteractiveHoldingGpu);
  EXPECT_EQ(idle.title, "The GPU waits for who connects to its process");
  EXPECT_FALSE(idle.gain) << "no change of the job makes somebody ask";
  EXPECT_THAT(idle.bound, HasSubstr("none for the time of this job"));
  ASSERT_TRUE(e.bound);
  EXPECT_LT(e.bound->speedup_high, 1.1);
  EXPECT_THAT(e.bound->condition, HasSubstr("; what it waits for somebody stays"));
  const Finding sends = serves(5 * kMegabyte).findings.front();
  EXPECT_FALSE(sends.cause);
  EXPECT_THAT(sends.candidates, Contains(Cause::kLoggingUpload));
}

TEST(NamedWaits, ALockOnAFileIsNoWaitForWhatIsInIt) {
  const Finding finding = waiting_for({WaitKind::kFileLock, "/cache/shard.lock"}, 0, 0, WaitChannel::kOther);
  EXPECT_THAT(finding.title, HasSubstr("while the training process waits for a lock on /cache/shard.lock"));
  EXPECT_THAT(finding.evidence, Contains(HasSubstr("its main thread was at a lock on the file /cache/shard.lock")));
  EXPECT_THAT(finding.advice, HasSubstr("lslocks"));
}

TEST(NamedWaits, ATerminalInPollIsSomebodyWhoTypes) {
  EXPECT_EQ(waiting_for({WaitKind::kTerminal, "/dev/pts/3"}).cause, Cause::kInteractiveHoldingGpu);
}

TEST(NamedWaits, FilesThatDifferEachTimeAreToldByTheirFolder) {
  RecordingBuilder builder(100);
  builder.gpu(0, [](double) { return 0.35; }).sleeping_in(WaitChannel::kDisk);
  builder.process(100, 1, 0, 100, 0.02).context(100, 0, 0, 100);
  builder.waits_for(100, {WaitKind::kFile, "/data/train/a/0.jpg"});
  Recording recording = builder.build();
  const auto waits = static_cast<std::size_t>(recording.all(SourceKind::kProcessWaits).front());
  for (int i = 1; i < 100; ++i) {
    recording.texts.push_back(
        to_text({WaitKind::kFile, "/data/train/" + std::to_string(i % 7) + "/" + std::to_string(i) + ".jpg"}));
    recording.lists.push_back({static_cast<TextId>(recording.texts.size() - 1)});
    recording.tracks[waits].lists.push_back(
        {recording.meta.start + i * kSecond, static_cast<ListId>(recording.lists.size() - 1), 0});
  }
  const Explanation e = explain(recording);
  ASSERT_FALSE(e.findings.empty());
  EXPECT_THAT(e.findings[0].evidence, Contains(HasSubstr("was for files in /data/train/ (100 %)")));
}

}  // namespace
}  // namespace headroom
