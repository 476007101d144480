// SPDX-License-Identifier: Apache-2.0
#include "model/events.h"

#include <gmock/gmock.h>

#include <set>

namespace headroom {
namespace {

TEST(Events, EveryNameIsItsOwnAndFound) {
  std::set<std::string_view> names;
  for (const EventKindInfo& kind : kEventKinds) {
    EXPECT_TRUE(names.insert(kind.name).second) << kind.name;
    EXPECT_EQ(event_kind_of(kind.name), kind.id);
  }
  EXPECT_EQ(event_kind_of("of_a_newer_program"), std::nullopt);
}

// What lies in recordings is spelled here once more, on purpose: a name that changed could not read them.
TEST(Events, StoredNamesStay) {
  using namespace events;
  const auto stored = [](const Event& event) { return std::pair(event.kind, event.attrs); };
  using Stored = std::pair<std::string, Attrs>;
  EXPECT_EQ(stored(to_event(JobStart{"a b", 7}, 0)), (Stored{"job_start", {{"argv", "a b"}, {"pid", "7"}}}));
  EXPECT_EQ(stored(to_event(JobEnd{.exit_code = 3, .signal = {}}, 0)), (Stored{"job_end", {{"exit_code", "3"}}}));
  EXPECT_EQ(stored(to_event(JobEnd{.exit_code = {}, .signal = 9}, 0)), (Stored{"job_end", {{"signal", "9"}}}));
  EXPECT_EQ(stored(to_event(DeviceLost{.index = 2, .text = {}, .line = {}}, 0)),
            (Stored{"device_lost", {{"index", "2"}}}));
  EXPECT_EQ(stored(to_event(DeviceLost{.index = {}, .text = "lost", .line = 4}, 0)),
            (Stored{"device_lost", {{"text", "lost"}, {"line", "4"}}}));
  EXPECT_EQ(stored(to_event(DeviceBack{2}, 0)), (Stored{"device_back", {{"index", "2"}}}));
  EXPECT_EQ(stored(to_event(Xid{79}, 0)), (Stored{"xid", {{"code", "79"}}}));
  EXPECT_EQ(stored(to_event(ClockStep{-5, 3}, 0)), (Stored{"clock_step", {{"delta_ns", "-5"}, {"line", "3"}}}));
  EXPECT_EQ(stored(to_event(ProcessStart{7, "sh"}, 0)), (Stored{"process_start", {{"pid", "7"}, {"comm", "sh"}}}));
  EXPECT_EQ(stored(to_event(ProcessEnd{7, 1}, 0)), (Stored{"process_end", {{"pid", "7"}, {"exit_code", "1"}}}));
  EXPECT_EQ(stored(to_event(Gap{"late", 3}, 0)), (Stored{"gap", {{"reason", "late"}, {"line", "3"}}}));
  EXPECT_EQ(stored(to_event(DiskLow{12}, 0)), (Stored{"disk_low", {{"free_bytes", "12"}}}));
  EXPECT_EQ(stored(to_event(Note{"t", {}}, 0)), (Stored{"note", {{"text", "t"}}}));
  EXPECT_EQ(stored(to_event(RepeatedHeader{9}, 0)), (Stored{"repeated_header", {{"line", "9"}}}));
  EXPECT_EQ(stored(to_event(QueueLength{9}, 0)), (Stored{"queue", {{"waiting", "9"}}}));
  const Attrs start{{"task", "t"}, {"group", "g"}, {"attempt", "4"}, {"number", "2"},
                    {"pid", "7"},  {"gpus", ""},   {"slot", "1"}};
  const AttemptStart started{"t", "g", 4, 2, 7, {}, 1};
  EXPECT_EQ(stored(to_event(started, 0)), (Stored{"attempt_start", start}));
  Attrs end = start;
  end.merge(Attrs{{"outcome", "gpu_out_of_memory"},
                  {"proof", "verified"},
                  {"exit_code", "1"},
                  {"gpu_time_ns", "5"},
                  {"cpu_time_ns", "6"},
                  {"peak_gpu_bytes", "8"},
                  {"steps", "2.5"},
                  {"reason", "exit code 1: no memory"}});
  EXPECT_EQ(stored(to_event(AttemptEnd{started, AttemptOutcome::kGpuOutOfMemory, PlacementProof::kVerified, 1, 5, 6, 8,
                                       2.5, "exit code 1: no memory"},
                            0)),
            (Stored{"attempt_end", end}));
}

TEST(Events, WhatIsWrittenIsRead) {
  events::AttemptEnd told;
  told.start = {"t", "g", 4, 2, 7, {"GPU-1", "GPU-2"}, std::nullopt};
  told.outcome = AttemptOutcome::kHung;
  told.proof = PlacementProof::kCpuFallback;
  told.cpu_time = 77;
  const Event event = to_event(told, 5, 3, 9);
  EXPECT_EQ(event.at, 5);
  EXPECT_EQ(event.source, 3);
  EXPECT_EQ(event.end, 9);
  const auto read = of_event<events::AttemptEnd>(event);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->start.gpus, told.start.gpus);
  EXPECT_EQ(read->start.slot, std::nullopt);
  EXPECT_EQ(read->outcome, told.outcome);
  EXPECT_EQ(read->proof, told.proof);
  EXPECT_EQ(read->cpu_time, 77);
  EXPECT_EQ(read->gpu_time, std::nullopt);
  EXPECT_EQ(to_event(*read, 5, 3, 9), event);
}

TEST(Events, WhatIsMissingOrMalformedStaysAbsent) {
  const Event event{
      0, {}, "attempt_end", kNoSource, {{"attempt", "x"}, {"outcome", "of_a_newer_program"}, {"new", "1"}}};
  const auto read = of_event<events::AttemptEnd>(event);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->start.attempt, 0U);
  EXPECT_EQ(read->outcome, std::nullopt);
  EXPECT_FALSE(of_event<events::AttemptStart>(event));
  EXPECT_FALSE(of_event<events::QueueLength>({0, {}, "of_a_newer_program", kNoSource, {}}));
}

}  // namespace
}  // namespace headroom
