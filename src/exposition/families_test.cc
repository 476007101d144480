// SPDX-License-Identifier: Apache-2.0
#include "exposition/families.h"

#include <gmock/gmock.h>

#include <map>
#include <set>

#include "analyze/testing_random.h"
#include "base/strings.h"
#include "diagnose/explain.h"
#include "exposition/formats.h"
#include "import/jsonl_value.h"

namespace headroom::exposition {
namespace {

using headroom::testing::RecordingBuilder;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr auto kBusy = [](double) { return 1.0; };

std::vector<Family> families_of_recording(const Recording& recording) {
  return families_of(snapshot_of(recording, explain(recording)));
}

// "name{labels} value" without the name, of one family.
std::vector<std::string> lines_of(const std::vector<Family>& families, const std::string& name) {
  std::vector<std::string> lines;
  const std::string text = to_prometheus(families);
  for (const std::string_view line : split(text, '\n'))
    if (line.starts_with(name + "{") || line.starts_with(name + " ")) lines.emplace_back(line.substr(name.size()));
  return lines;
}

// What a strict reader of OpenMetrics would say of it; "" where nothing.
std::string fault_of(const std::string& text) {
  std::set<std::string> families, series;
  std::string family, type;
  if (!text.ends_with("# EOF\n")) return "no end";
  for (const std::string_view line : split(std::string_view(text).substr(0, text.size() - 6), '\n')) {
    if (line.empty()) continue;
    if (line.starts_with("# TYPE ")) {
      const auto words = split(line, ' ');
      family = words[2];
      type = words[3];
      if (!families.insert(family).second) return family + " comes twice";
    } else if (line.starts_with("# ")) {
      if (split(line, ' ')[2] != family) return "meta data of another family";
    } else {
      const std::string suffix = type == "counter" ? "_total" : type == "info" ? "_info" : "";
      const std::string_view name = line.substr(0, line.find_first_of("{ "));
      if (name != family + suffix) return std::string(line) + " is not of " + family;
      const auto space = line.rfind(' ');
      if (!series.emplace(line.substr(0, space)).second) return std::string(line) + " comes twice";
      const auto value = parse_decimal(line.substr(space + 1), 9);
      if (!value && !parse_decimal(line.substr(space + 1), 0)) return std::string(line) + " has no number";
      if (type == "counter" && value.value_or(0) < 0) return std::string(line) + " counts below 0";
    }
  }
  return "";
}

// The label's value in a line; "" where it has none.
std::string label_in(std::string_view line, const std::string& name) {
  const auto at = line.find(name + "=\"");
  if (at == std::string_view::npos) return "";
  const auto from = at + name.size() + 2;
  return std::string(line.substr(from, line.find('"', from) - from));
}

Nanos value_of(std::string_view line) { return parse_decimal(line.substr(line.rfind(' ') + 1), 9).value(); }

TEST(FamiliesOf, AccountsOfEveryGpuSumToTheElapsedTimeAndFindingsToNoMore) {
  std::mt19937 random(20261122);
  for (int i = 0; i < 150; ++i) {
    const Recording recording = headroom::testing::random_recording_or_batch(random);
    const std::vector<Family> families = families_of_recording(recording);
    ASSERT_EQ(fault_of(to_openmetrics(families)), "") << "recording " << i;
    const Nanos elapsed = value_of(lines_of(families, "headroom_elapsed_seconds_total").at(0));
    EXPECT_EQ(elapsed, recording.meta.end - recording.meta.start);
    std::map<std::string, Nanos> sums, claimed;
    for (const std::string& line : lines_of(families, "headroom_gpu_seconds_total"))
      sums[label_in(line, "gpu")] += value_of(line);
    for (const std::string& line : lines_of(families, "headroom_finding_gpu_seconds"))
      claimed[label_in(line, "gpu")] += value_of(line);
    ASSERT_EQ(sums.size(), 2U);
    for (const auto& [gpu, sum] : sums) {
      ASSERT_EQ(sum, elapsed) << "GPU " << gpu << " of recording " << i;
      ASSERT_LE(claimed[gpu], elapsed) << "GPU " << gpu << " of recording " << i;
    }
  }
}

TEST(FamiliesOf, AllAccountsAreThereAlsoWithoutTime) {
  const auto lines =
      lines_of(families_of_recording(RecordingBuilder(10).gpu(0, kBusy).build()), "headroom_gpu_seconds_total");
  EXPECT_EQ(lines.size(), kAccounts.size());
  EXPECT_THAT(lines, Contains("{gpu=\"0\",state=\"idle\",cause=\"hung\"} 0"));
}

Recording with_readings(std::vector<Reading<std::int64_t>> powers) {
  Recording recording = RecordingBuilder(static_cast<double>(powers.size())).gpu(0, kBusy).build();
  Column column{.metric = Metric::kPower, .values = {}, .absent = {}};
  for (const auto& power : powers) {
    column.values.push_back(power.value_or(0));
    column.absent.push_back(power ? 0 : static_cast<std::uint8_t>(power.error()));
  }
  recording.tracks[0].columns.push_back(column);
  return recording;
}

TEST(FamiliesOf, AReadingIsTheLastOneThatWasTaken) {
  const auto power = [](std::vector<Reading<std::int64_t>> powers) {
    return lines_of(families_of_recording(with_readings(std::move(powers))), "headroom_gpu_power_watts");
  };
  const auto absent = [](Absent why) -> Reading<std::int64_t> { return tl::unexpected(why); };
  EXPECT_THAT(power({100'000, 250'500}), ElementsAre("{gpu=\"0\"} 250.5"));
  EXPECT_THAT(power({100'000, 0}), ElementsAre("{gpu=\"0\"} 0")) << "0 is a reading";
  EXPECT_THAT(power({100'000, absent(Absent::kNotSampled)}), ElementsAre("{gpu=\"0\"} 100"));
  EXPECT_THAT(power({100'000, absent(Absent::kDeviceLost)}), IsEmpty()) << "it is not as it was";
  EXPECT_THAT(power({absent(Absent::kNotSupported), absent(Absent::kNotSupported)}), IsEmpty());
}

Snapshot two_gpus(int second_index) {
  Snapshot snapshot;
  snapshot.gpus.resize(2);
  snapshot.gpus[0].device = {.uuid = "GPU-a", .index = 0, .name = "NVIDIA \"A\"", .pci_bus_id = "00000000:01:00.0"};
  snapshot.gpus[1].device = {.uuid = "GPU-b", .index = second_index, .name = "B"};
  snapshot.gpus[0].readings = {
      {Metric::kSmClock, 1410},     {Metric::kEventReasons, kReasonSwPowerCap}, {Metric::kGpuUtil, 8'750},
      {Metric::kEnergy, 1'234'567}, {Metric::kMemoryTotal, 48LL << 30},         {Metric::kMemoryUsed, 16LL << 30},
      {Metric::kPcieTxRate, 5}};
  return snapshot;
}

TEST(FamiliesOf, GpusOfOneIndexAreToldByTheirUuid) {
  EXPECT_THAT(gpu_labels(two_gpus(1)), ElementsAre("0", "1"));
  EXPECT_THAT(gpu_labels(two_gpus(0)), ElementsAre("GPU-a", "GPU-b"));
}

TEST(FamiliesOf, ReadingsAreInBaseUnits) {
  const std::vector<Family> families = families_of(two_gpus(1));
  EXPECT_EQ(fault_of(to_openmetrics(families)), "");
  EXPECT_THAT(lines_of(families, "headroom_gpu_clock_hertz"), ElementsAre("{gpu=\"0\",clock=\"sm\"} 1410000000"));
  EXPECT_THAT(lines_of(families, "headroom_gpu_util_ratio"), ElementsAre("{gpu=\"0\"} 0.875"));
  EXPECT_THAT(lines_of(families, "headroom_gpu_energy_joules_total"), ElementsAre("{gpu=\"0\"} 1234.567"));
  EXPECT_THAT(lines_of(families, "headroom_gpu_pcie_tx_bytes_per_second"), ElementsAre("{gpu=\"0\"} 5"));
  EXPECT_THAT(lines_of(families, "headroom_gpu_clocks_event_reason"),
              Contains("{gpu=\"0\",reason=\"sw_power_cap\"} 1"));
  EXPECT_THAT(lines_of(families, "headroom_gpu_clocks_event_reason"), Contains("{gpu=\"0\",reason=\"gpu_idle\"} 0"));
  EXPECT_THAT(lines_of(families, "headroom_gpu_info"),
              Contains("{gpu=\"0\",uuid=\"GPU-a\",pci_bus_id=\"00000000:01:00.0\",name=\"NVIDIA \\\"A\\\"\","
                       "driver_version=\"\"} 1"));
}

TEST(FamiliesOf, EveryMetricOfAGpuHasANameByTheRules) {
  Snapshot snapshot = two_gpus(1);
  snapshot.gpus[0].readings.clear();
  for (std::size_t i = 0; i <= static_cast<std::size_t>(Metric::kEccUncorrected); ++i)
    snapshot.gpus[0].readings.emplace_back(static_cast<Metric>(i), 1);
  EXPECT_EQ(fault_of(to_openmetrics(families_of(snapshot))), "");
}

TEST(FamiliesOf, PartsOfFindingsCostNothingAgain) {
  Snapshot snapshot = two_gpus(1);
  snapshot.findings = {{.cause = "hang", .cost = {5 * kSecond, 0}},
                       {.cause = "hang", .part = true, .cost = {2 * kSecond, 0}},
                       {.cause = "healthy", .confidence = Confidence::kHigh, .cost = {}}};
  const std::vector<Family> families = families_of(snapshot);
  EXPECT_THAT(lines_of(families, "headroom_finding_gpu_seconds"), ElementsAre("{gpu=\"0\",cause=\"hang\"} 5"));
  EXPECT_THAT(lines_of(families, "headroom_findings"),
              ElementsAre("{cause=\"hang\",confidence=\"medium\"} 2", "{cause=\"healthy\",confidence=\"high\"} 1"));
}

TEST(SnapshotOf, TasksAreToldByTheirLastAttempt) {
  RecordingBuilder builder(20);
  builder.gpu(0, kBusy).gpu(1, kBusy);
  builder.attempt({"again", 10, {0}, 0, 5, "failed"}).attempt({"again", 11, {0}, 6, 10, "succeeded"});
  builder.attempt({"bad", 12, {1}, 0, 5, "failed"}).attempt({"cut", 13, {1}, 6, 9, "interrupted"});
  builder.attempt({"on", 14, {0, 1}, 11, 20, ""}).queue(12, 3);
  const std::vector<Family> families = families_of_recording(builder.build());
  EXPECT_THAT(lines_of(families, "headroom_batch_tasks"),
              ElementsAre("{state=\"ready\"} 1", "{state=\"running\"} 1", "{state=\"succeeded\"} 1",
                          "{state=\"failed\"} 1", "{state=\"cancelled\"} 0"));
  EXPECT_THAT(lines_of(families, "headroom_batch_packing"), ElementsAre("{gpu=\"0\"} 1", "{gpu=\"1\"} 1"));
  EXPECT_THAT(lines_of(families, "headroom_batch_tasks_waiting"), ElementsAre(" 3"));
}

TEST(SnapshotOf, WhatIsNoBatchHasNoTasks) {
  const auto families = families_of_recording(RecordingBuilder(10).gpu(0, kBusy).build());
  EXPECT_THAT(lines_of(families, "headroom_batch_tasks"), IsEmpty());
}

TEST(SnapshotOf, TheLastXidOfAGpu) {
  Recording recording = RecordingBuilder(10).gpu(0, kBusy).gpu(1, kBusy).build();
  recording.events.push_back(to_event(events::Xid{31}, RecordingBuilder::at(2), 1));
  recording.events.push_back(to_event(events::Xid{79}, RecordingBuilder::at(3), 1));
  const auto families = dcgm_families_of(snapshot_of(recording, explain(recording)));
  EXPECT_THAT(lines_of(families, "DCGM_FI_DEV_XID_ERRORS"),
              ElementsAre("{gpu=\"1\",UUID=\"GPU-1\",device=\"nvidia1\"} 79"));
}

TEST(DcgmFamiliesOf, UnitsAreThoseOfDcgmExporter) {
  const std::vector<Family> families = dcgm_families_of(two_gpus(1));
  const std::string labels =
      "{gpu=\"0\",UUID=\"GPU-a\",pci_bus_id=\"00000000:01:00.0\",device=\"nvidia0\",modelName=\"NVIDIA \\\"A\\\"\"} ";
  EXPECT_THAT(lines_of(families, "DCGM_FI_DEV_GPU_UTIL"), ElementsAre(labels + "87.5"));
  EXPECT_THAT(lines_of(families, "DCGM_FI_DEV_SM_CLOCK"), ElementsAre(labels + "1410"));
  EXPECT_THAT(lines_of(families, "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"), ElementsAre(labels + "1234567"));
  EXPECT_THAT(lines_of(families, "DCGM_FI_DEV_FB_USED"), ElementsAre(labels + "16384"));
  EXPECT_THAT(lines_of(families, "DCGM_FI_DEV_FB_FREE"), IsEmpty()) << "what the driver keeps is not known";
  EXPECT_THAT(lines_of(families, "DCGM_FI_PROF_GR_ENGINE_ACTIVE"), IsEmpty()) << "utilisation is something else";
}

TEST(DcgmFamiliesOf, FreeMemoryIsWhatNobodyHas) {
  Snapshot snapshot = two_gpus(1);
  snapshot.gpus[0].readings.emplace_back(Metric::kMemoryReserved, 1LL << 30);
  snapshot.gpus[0].device = {};
  EXPECT_THAT(lines_of(dcgm_families_of(snapshot), "DCGM_FI_DEV_FB_FREE"),
              ElementsAre("{gpu=\"0\",device=\"nvidia0\"} 31744"));
}

}  // namespace
}  // namespace headroom::exposition
