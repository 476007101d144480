// SPDX-License-Identifier: Apache-2.0
#include "model/parts.h"

#include <gtest/gtest.h>

#include "model/entities.h"
#include "model/losses.h"

namespace headroom {
namespace {

struct Node {
  std::string host = "node1", boot = "boot-1", id = "1", uuid = "GPU-1";
  Nanos start = 100 * kSecond, realtime = 1'790'000'000 * kSecond;
  int seconds = 10;
};

// One GPU, one process with a stack and marks, one event with a source and one without, a loss at a place.
Recording node(const Node& of) {
  MemorySink sink;
  const SourceId gpu =
      sink.add_source({SourceKind::kGpu, of.uuid, kNoSource, to_attrs(Device{.index = 3, .given = true})});
  Process facts;
  facts.pid = 4711, facts.start = of.start + kSecond, facts.end = of.start + 9 * kSecond, facts.in_job = true;
  const SourceId process = sink.add_source({SourceKind::kProcess, "4711/1", kNoSource, to_attrs(facts)});
  const SourceId thread = sink.add_source({SourceKind::kPythonThread, "4711/1/4711", process, {{"tid", "4711"}}});
  for (int i = 1; i <= of.seconds; ++i) {
    sink.add_row(gpu, of.start + i * kSecond, std::vector<Cell>{{Metric::kGpuUtil, 100 * i, std::nullopt}});
    const std::vector<TextId> texts{sink.intern("main (" + of.host + ".py:1)"), sink.intern("step (a.py:2)")};
    sink.add_list_row(thread, {of.start + i * kSecond, sink.intern_list(texts), 1});
  }
  sink.add_event({of.start + 2 * kSecond, std::nullopt, "job_start", kNoSource, {{"pid", "4711"}}});
  sink.add_event({of.start + 3 * kSecond, of.start + 4 * kSecond, "xid", gpu, {{"code", "31"}}});
  sink.add_loss(make_loss(LossKind::kMissedTick, 2, "late", LossPlace{of.start, of.start + kSecond, gpu}));
  RecordingMeta meta;
  meta.id = of.id, meta.origin = "run", meta.host = of.host, meta.boot_id = of.boot, meta.stop_reason = "job_ended";
  meta.command = {"python3", "train.py", "a b"}, meta.tiers = "NPY", meta.missing_tiers = {{'X', "the job set none"}};
  meta.start = of.start, meta.end = of.start + of.seconds * kSecond, meta.start_realtime = of.realtime;
  meta.interval = kSecond, meta.job_pid = 4711, meta.exit_code = 0, meta.extra = {{"variables", "A=1"}};
  sink.set_meta(meta);
  return sink.take();
}

TEST(PartsTest, WhatWasPutTogetherComesApartAsItWas) {
  const Node later{
      .host = "node2", .boot = "boot-2", .id = "2", .start = 7 * kSecond, .realtime = 1'790'000'003 * kSecond};
  const Recording one = node({}), two = node(later);
  const Recording all = merged({one, two});
  ASSERT_TRUE(has_parts(all));
  EXPECT_FALSE(has_parts(one));
  EXPECT_EQ(part_of(all, 0), one);
  EXPECT_EQ(part_of(all, 1), two);
}

TEST(PartsTest, TheSameNumbersOfTwoMachinesStayApart) {
  const Recording all = merged({node({}), node({.host = "node2", .boot = "boot-2", .id = "2"})});
  const auto gpus = all.all(SourceKind::kGpu), processes = all.all(SourceKind::kProcess);
  ASSERT_EQ(gpus.size(), 2U);
  ASSERT_EQ(processes.size(), 2U);
  EXPECT_EQ(gpu_name(device_of(all.sources[static_cast<std::size_t>(gpus[0])])), "node1 GPU 3");
  EXPECT_EQ(gpu_name(device_of(all.sources[static_cast<std::size_t>(gpus[1])])), "node2 GPU 3");
  EXPECT_EQ(device_of(all.sources[static_cast<std::size_t>(gpus[1])]).uuid, "GPU-1");
  EXPECT_EQ(parts_of_sources(all), (std::vector<std::size_t>{0, 0, 0, 0, 1, 1, 1, 1}));
}

TEST(PartsTest, TimesAreUnixTimeByTheWallClockAtEachBegin) {
  const Recording all = merged(
      {node({}), node({.host = "node2", .boot = "b", .id = "2", .start = 5, .realtime = 1'790'000'003 * kSecond})});
  EXPECT_EQ(all.meta.start, 1'790'000'000 * kSecond);
  EXPECT_EQ(all.meta.start_realtime, all.meta.start);
  EXPECT_EQ(all.meta.end, 1'790'000'013 * kSecond);
  const auto gpus = all.all(SourceKind::kGpu);
  EXPECT_EQ(track_of(all, gpus[0]).at.front(), 1'790'000'001 * kSecond);
  EXPECT_EQ(track_of(all, gpus[1]).at.front(), 1'790'000'004 * kSecond);
  const Process process = process_of(all.sources[static_cast<std::size_t>(all.all(SourceKind::kProcess)[1])]);
  EXPECT_EQ(process.start, 1'790'000'004 * kSecond);
  ASSERT_EQ(all.events.size(), 4U);
  EXPECT_EQ(all.events.front().at, 1'790'000'002 * kSecond);
}

TEST(PartsTest, AMachineIsAHostSinceItWasBooted) {
  const auto meta = [](std::string host, std::string boot) {
    RecordingMeta one;
    one.host = std::move(host), one.boot_id = std::move(boot);
    return one;
  };
  const std::vector<RecordingMeta> metas{meta("a", "1"), meta("a", "1"), meta("a", "2"), meta("b", "3"), meta("", "")};
  const std::vector<PartName> names = part_names(metas);
  EXPECT_EQ(names, (std::vector<PartName>{
                       {"a", "a:1"}, {"a", "a:2"}, {"a (2)", "a (2)"}, {"b", "b"}, {"recording 5", "recording 5"}}));
  EXPECT_FALSE(of_one_machine(names));
  EXPECT_TRUE(of_one_machine(std::span(names).first(2)));
}

PartToJoin part(const std::string& name, const Recording& recording) {
  return {name, recording.meta, gpus_of_part(recording)};
}

TEST(PartsTest, OneGpuAtOneTimeIsNotCountedTwice) {
  const Recording run = node({}), beside = node({.id = "2", .realtime = 1'790'000'005 * kSecond});
  const auto refused = can_be_joined(std::vector{part("run.hrec", run), part("record.hrec", beside)});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().what,
            "run.hrec and record.hrec both have GPU 3 of node1 from 14:13:26 to 14:13:30: its time would count twice");
  EXPECT_TRUE(
      can_be_joined(std::vector{part("a", run), part("b", node({.id = "2", .realtime = 1'790'000'020 * kSecond}))}))
      << "one after the other";
  EXPECT_TRUE(can_be_joined(std::vector{part("a", run), part("b", node({.boot = "boot-2", .id = "2"}))}))
      << "of another machine, or since another boot";
}

TEST(PartsTest, WhatCannotBePlacedBesideTheOthersIsRefused) {
  const Recording one = node({});
  EXPECT_EQ(can_be_joined(std::vector{part("a", one), part("b", one)}).error().what,
            "a and b are one recording, by its id: its time would count twice");
  EXPECT_EQ(can_be_joined(std::vector{part("a", one), part("b", node({.id = "2", .realtime = 0}))}).error().what,
            "b has no date: when it was beside the others is not known");
  const Recording all = merged({one, node({.host = "node2", .boot = "b", .id = "2"})});
  EXPECT_EQ(can_be_joined(std::vector{part("a", one), part("job", all)}).error().what,
            "job was made of several recordings already");
}

TEST(PartsTest, AllTogetherSayWhatEachSays) {
  Recording one = node({}), two = node({.host = "node2", .boot = "b", .id = "2"});
  two.meta.exit_code = 3;
  two.meta.tiers = "NP";
  two.meta.missing_tiers = {{'Y', "no Python"}};
  two.meta.extra["variables"] = "A=2";
  const RecordingMeta all = meta_of_all(std::vector{one.meta, two.meta});
  EXPECT_EQ(all.command, one.meta.command);
  EXPECT_EQ(all.host, "");
  EXPECT_EQ(all.exit_code, 3);
  EXPECT_EQ(all.tiers, "NPY");
  EXPECT_EQ(all.missing_tiers,
            (std::vector<MissingTier>{{'Y', "of node2: no Python"}, {'X', "of node1: the job set none"}}));
  EXPECT_TRUE(all.extra.empty());
  EXPECT_FALSE(goes_on(all));
}

TEST(PartsTest, OfWhatStillGrewTheCopyIsCutShort) {
  Recording grows = node({});
  grows.meta.stop_reason.clear();
  const Recording all = merged({grows, node({.host = "node2", .boot = "b", .id = "2"})});
  EXPECT_EQ(part_of(all, 0).meta.stop_reason, "recovered");
  EXPECT_EQ(part_of(all, 1).meta.stop_reason, "job_ended");
}

TEST(PartsTest, WhatAPartSaysOfItselfIsNotBelieved) {
  Recording all = merged({node({}), node({.host = "node2", .boot = "b", .id = "2"})});
  for (Source& source : all.sources) {
    if (source.kind != SourceKind::kPart) continue;
    source.attrs["start_ns"] = "-9223372036854775808";
    source.attrs["start_realtime_ns"] = "9223372036854775807";
    source.attrs["loss.000000.places"] = "1 2 99;x;3";
    source.attrs["interval_ns"] = "many";
  }
  const Recording part = part_of(all, 1);
  EXPECT_LE(part.meta.end - part.meta.start, Nanos{1} << 62);
}

}  // namespace
}  // namespace headroom
