// SPDX-License-Identifier: Apache-2.0
// Too little memory of the host, and links that are slow: what shows them, and what looks like them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <optional>

#include "analyze/testing.h"
#include "diagnose/explain.h"
#include "diagnose/testing.h"
#include "model/events.h"
#include "model/notes.h"

namespace headroom {
namespace {

using ::testing::AllOf;
using testing::cell;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RecordingBuilder;

// A job without workers whose GPU has kernels for a part of the time; rates are per second.
struct Job {
  double busy = 0.3, blocked = 0.6, cpu = 0.05;
  double read = 0, faults = 0, swapped = 0;
  std::optional<double> pressure = std::nullopt;  // of the machine
  std::optional<double> group = std::nullopt;     // of the cgroup
  double available = 8e9;
};

void add_rows(RecordingBuilder& builder, SourceKind kind, const std::string& key,
              const std::function<std::vector<Cell>(double)>& cells) {
  const SourceId id = builder.sink().add_source({kind, key, kNoSource, {}});
  for (int t = 0; t <= 60; ++t) builder.sink().add_row(id, RecordingBuilder::at(t), cells(t));
}

Cell counter(Metric metric, double per_second, double t) {
  return cell(metric, static_cast<std::int64_t>(std::llround(per_second * t)));
}

Explanation explained(const Job& job) {
  RecordingBuilder builder(60);
  builder.gpu(0, [&](double) { return job.busy; }).sleeping_in(WaitChannel::kDisk);
  builder.process(
      {.pid = 7,
       .ppid = 1,
       .to = 60,
       .cpu = job.cpu,
       .extra = {cell(Metric::kReadBytes, std::llround(job.read)), cell(Metric::kMajorFaults, std::llround(job.faults)),
                 cell(Metric::kIoDelay, std::llround(job.blocked * 1e9))}});
  builder.context(7, 0, 0, 60);
  add_rows(builder, SourceKind::kHost, "host", [&](double t) {
    std::vector<Cell> cells{counter(Metric::kHostSwapIn, job.swapped, t),
                            cell(Metric::kHostMemoryAvailable, std::llround(job.available))};
    if (job.pressure) cells.push_back(counter(Metric::kPsiMemorySome, *job.pressure * 1e9, t));
    return cells;
  });
  if (job.group)
    add_rows(builder, SourceKind::kCgroup, "/job",
             [&](double t) { return std::vector{counter(Metric::kPsiMemorySome, *job.group * 1e9, t)}; });
  return explain(builder.build());
}

Finding first(const Job& job) {
  const Explanation e = explained(job);
  return e.findings.empty() ? Finding{} : e.findings.front();
}

TEST(HostMemory, PagesSwappedInForTheJobWhileItIsBlockedAreSwapping) {
  const Finding swap = first({.read = 8e6, .faults = 400, .swapped = 2000});
  EXPECT_EQ(swap.cause, Cause::kSwapThrash) << swap.title;
  EXPECT_EQ(swap.confidence, Confidence::kMedium);
  EXPECT_THAT(swap.evidence, Contains(HasSubstr("swapped in 2,000 pages per second, and 400 page faults")));
  EXPECT_THAT(swap.told_apart_from, Contains(HasSubstr("slow storage: beside the pages")));
  ASSERT_TRUE(swap.gain);
  EXPECT_GE(swap.gain->high, 1 / 0.3 * 0.95) << "all of its idle time may go";
}

TEST(HostMemory, FilesReadBesideThePagesLeaveStorageOpen) {
  EXPECT_THAT(first({.read = 90e6, .faults = 400, .swapped = 2000}).candidates,
              ElementsAre(Cause::kSwapThrash, Cause::kSlowStorage));
}

TEST(HostMemory, SwappingOfOthersAndFilesThatAreMappedAreNone) {
  EXPECT_EQ(first({.read = 90e6, .faults = 0, .swapped = 2000}).cause, Cause::kSlowStorage) << "of others";
  EXPECT_EQ(first({.read = 90e6, .faults = 9000, .swapped = 2000}).cause, Cause::kSlowStorage) << "mapped files";
  EXPECT_FALSE(names(first({.read = 90e6, .faults = 400, .swapped = 0}), Cause::kSwapThrash));
}

TEST(HostMemory, WhoRunsMeanwhileIsNotHeldUpByThePagesAlone) {
  const Finding runs = first({.blocked = 0.02, .cpu = 0.68, .faults = 400, .swapped = 2000});
  EXPECT_FALSE(runs.cause) << runs.title;
  EXPECT_THAT(runs.candidates, AllOf(Contains(Cause::kHostGraphBuilding), Contains(Cause::kSwapThrash)));
}

TEST(HostMemory, OfAHealthyJobNothingIsSaid) {
  for (const Finding& finding : explained({.busy = 0.98, .blocked = 0, .faults = 400, .swapped = 2000}).findings) {
    EXPECT_EQ(finding.cause, Cause::kHealthy) << finding.title;
    EXPECT_FALSE(names(finding, Cause::kSwapThrash));
  }
}

TEST(HostMemory, AGroupThatWaitsForMemoryAndReadsDoesNotKeepItsData) {
  const Finding thrash = first({.read = 200e6, .group = 0.7});
  EXPECT_EQ(thrash.cause, Cause::kPageCacheThrash) << thrash.title;
  EXPECT_THAT(thrash.evidence, Contains(HasSubstr("some process of the job's cgroup waited for memory for 70 %")));
  EXPECT_THAT(thrash.told_apart_from, Contains(HasSubstr("swapping")));
  EXPECT_EQ(first({.read = 90e6, .group = 0.02}).cause, Cause::kSlowStorage) << "nobody waits for memory";
  EXPECT_EQ(first({.read = 90e6, .pressure = 0.7, .group = 0.02}).cause, Cause::kSlowStorage) << "others do";
}

TEST(HostMemory, WhereSomeProcessOfTheMachineWaitsForMemoryItMayBeStorageAllTheSame) {
  const Finding thrash = first({.read = 100e6, .pressure = 0.7});
  EXPECT_THAT(thrash.candidates, ElementsAre(Cause::kPageCacheThrash, Cause::kSlowStorage));
  EXPECT_EQ(thrash.confidence, Confidence::kLow);
}

TEST(HostMemory, MoreReadThanMemoryCouldKeepLeavesBothOpen) {
  const Finding both = first({.read = 200e6, .available = 8e9});  // 12 GB in all
  EXPECT_THAT(both.candidates, ElementsAre(Cause::kSlowStorage, Cause::kPageCacheThrash)) << both.title;
  EXPECT_THAT(both.evidence, Contains(HasSubstr("of memory at most were there to keep it")));
  EXPECT_EQ(first({.read = 200e6, .available = 64e9}).cause, Cause::kSlowStorage) << "it could have kept all";
}

// Kernels for a part of the time, the rest in a copy; bytes come over a link of this width.
struct Copies {
  int width = 16, width_max = 16, generation = 4, generation_max = 4;
  double bytes_per_second = 0.5e9, busy = 0.6;
  bool stacks = true;
};

Explanation explained(const Copies& copies) {
  RecordingBuilder builder(60);
  builder.gpu(0, [&](double) { return copies.busy; });
  if (copies.stacks) builder.process(7, 1, 0, 60, 0.1).context(7, 0, 0, 60);
  for (int i = 0; copies.stacks && i < 60; ++i) {
    builder.stacks(7, i, i + copies.busy, {"<module> (/u/train.py:1)", "_wait (/x/headroom_sim.py:1)"});
    builder.stacks(7, i + copies.busy, i + 1, {"<module> (/u/train.py:1)", "to_device (/u/train.py:9)"});
  }
  Recording recording = builder.build();
  const SourceId gpu = recording.all(SourceKind::kGpu).front();
  Device device = device_of(recording.sources[static_cast<std::size_t>(gpu)]);
  device.pcie_link_gen_max = copies.generation_max, device.pcie_link_width_max = copies.width_max;
  recording.sources[static_cast<std::size_t>(gpu)].attrs = to_attrs(device);
  Track& track = recording.tracks[static_cast<std::size_t>(gpu)];
  if (!copies.stacks)
    std::erase_if(track.columns, [](const Column& column) { return column.metric == Metric::kComputeProcesses; });
  const std::size_t rows = track.at.size();
  Column bytes{Metric::kPcieRx, {}, {}};
  for (const Nanos at : track.at)
    bytes.values.push_back(std::llround(copies.bytes_per_second * seconds(at - recording.meta.start)));
  track.columns.push_back({Metric::kPcieLinkGen, std::vector<std::int64_t>(rows, copies.generation), {}});
  track.columns.push_back({Metric::kPcieLinkWidth, std::vector<std::int64_t>(rows, copies.width), {}});
  track.columns.push_back(std::move(bytes));
  return explain(recording);
}

TEST(Link, ReadingsAloneNameANarrowOneUnderLoad) {
  const Finding narrow = explained({.width = 1, .stacks = false}).findings.front();
  EXPECT_THAT(narrow.candidates, AllOf(Contains(Cause::kPcieOrNuma), Contains(Cause::kAllocatorChurn),
                                       Contains(Cause::kSwapThrash), Contains(Cause::kPageCacheThrash)));
  EXPECT_THAT(narrow.evidence, Contains("the link of GPU 0 ran as PCIe 4.0 x1 of 4.0 x16 while kernels ran"));
  const Finding wide = explained({.stacks = false}).findings.front();
  EXPECT_THAT(wide.evidence, Not(Contains(HasSubstr("link"))));
  const Finding idle = explained({.width = 1, .busy = 0.4, .stacks = false}).findings.front();
  EXPECT_THAT(idle.evidence, Not(Contains(HasSubstr("link")))) << "an idle GPU's is slowed down";
}

TEST(Link, SoFewBytesThatEveryLinkHadThemInNoTimeExcludeIt) {
  EXPECT_THAT(explained({.bytes_per_second = 1e6, .stacks = false}).findings.front().candidates,
              Not(Contains(Cause::kPcieOrNuma)));
}

TEST(Link, CopiesThatFillASlowOneWaitForItAndNotForTheirMemory) {
  const auto first = [](const Copies& copies) { return explained(copies).findings.front(); };
  const Finding slow = first({.width = 1, .bytes_per_second = 0.5e9});  // 0.25 s of the 0.4 at its best
  EXPECT_EQ(slow.cause, Cause::kPcieOrNuma) << slow.title;
  EXPECT_EQ(slow.confidence, Confidence::kMedium);
  EXPECT_THAT(slow.evidence, Contains(HasSubstr("the bytes that came over it take 63 % of this time at its best")));
  ASSERT_TRUE(slow.gain);
  EXPECT_GE(slow.gain->high, 1 / 0.6 * 0.95);
  const Finding wide = first({});
  EXPECT_THAT(wide.candidates, AllOf(Contains(Cause::kPageableCopies), Not(Contains(Cause::kPcieOrNuma))));
  EXPECT_THAT(first({.width = 8}).candidates, AllOf(Contains(Cause::kPageableCopies), Contains(Cause::kPcieOrNuma)))
      << "slower than it could be, and carries far more than this";
}

TEST(Link, CopiesThatTakeSoLongOnlyFromPageableMemoryComeFromThere) {
  const auto first = [](double bytes_per_second) {
    return explained({.bytes_per_second = bytes_per_second}).findings.front();
  };
  const Finding pageable = first(1e9);
  EXPECT_EQ(pageable.cause, Cause::kPageableCopies) << pageable.title;
  EXPECT_THAT(pageable.evidence, Contains(HasSubstr("at the link's best they take 7.9 % of it")));
  EXPECT_EQ(first(10e9).cause, std::nullopt) << "the link itself takes most of it";
  EXPECT_EQ(first(0.5e9).cause, std::nullopt) << "too few bytes for it";
}

// A job whose loader worker (process 8) was killed, and which failed of it.
struct Killed {
  std::string line = "RuntimeError: DataLoader worker (pid 8) is killed by signal: Killed.";
  std::optional<std::string> kills = std::nullopt, of = "cgroup";
  int exit_code = 1;
  std::optional<int> worker_code = std::nullopt;
};

Explanation failed_of(const Killed& job) {
  RecordingBuilder builder(60);
  builder.gpu(0, [](double) { return 0.9; }).process(7, 1, 0, 60, 0.5).context(7, 0, 0, 60, 0.9);
  builder.meta().exit_code = job.exit_code;
  if (job.kills) builder.meta().extra = {{"oom_kills", *job.kills}, {"oom_kills_of", job.of.value_or("")}};
  if (!job.line.empty())
    builder.sink().add_event(
        to_event(events::Note{.text = std::string(kNoteException) + job.line, .line = {}}, RecordingBuilder::at(60)));
  Recording recording = builder.build();
  if (job.worker_code)
    for (Source& source : recording.sources)
      if (source.kind == SourceKind::kProcess) source.attrs["exit_code"] = fmt::format("{}", *job.worker_code);
  return explain(recording);
}

Answer memory_sufficed(const Explanation& e) {
  for (const HealthCheck& check : e.health)
    if (check.check == "no_out_of_memory") return check.good;
  return Answer::kYes;
}

TEST(HostMemory, AKilledLoaderWorkerIsToldByWhatTheKernelCounts) {
  const Explanation counted = failed_of({.kills = "1"});
  EXPECT_THAT(counted.headline, HasSubstr("is killed by signal: Killed.). It was out of host memory: the kernel killed "
                                          "1 process in the job's cgroup for want of memory meanwhile. "));
  EXPECT_EQ(memory_sufficed(counted), Answer::kNo);
  const Explanation none = failed_of({.kills = "0"});
  EXPECT_THAT(none.headline,
              HasSubstr("The kernel counted no kill for want of memory in the job's cgroup meanwhile. "));
  EXPECT_EQ(memory_sufficed(none), Answer::kUnknown);
  const Explanation uncounted = failed_of({});
  EXPECT_THAT(uncounted.headline,
              HasSubstr("Whether the kernel killed that worker for want of host memory was not counted. "));
  EXPECT_EQ(memory_sufficed(uncounted), Answer::kUnknown);
  EXPECT_THAT(
      failed_of({.line = "RuntimeError: DataLoader worker (pid(s) 8) exited unexpectedly", .kills = "2"}).headline,
      HasSubstr("It was out of host memory: the kernel killed 2 processes in the job's cgroup"));
}

// Its own end by the kernel's signal, or that of a process of it, says as much as words.
TEST(HostMemory, WhoWasKilledSaysItWithoutWords) {
  EXPECT_THAT(failed_of({.line = "", .kills = "1", .exit_code = 137}).headline, HasSubstr("It was out of host memory"));
  EXPECT_THAT(failed_of({.line = "", .kills = "1", .worker_code = 137}).headline,
              HasSubstr("It was out of host memory"));
}

TEST(HostMemory, AKillOfWhomIsNotKnownIsNoWantOfTheJobs) {
  const Explanation other = failed_of({.line = "ValueError: 3", .kills = "1"});
  EXPECT_THAT(other.headline,
              HasSubstr("The kernel killed 1 process in the job's cgroup for want of memory meanwhile. "));
  EXPECT_EQ(memory_sufficed(other), Answer::kUnknown);
  const Explanation machine = failed_of({.kills = "1", .of = "machine"});
  EXPECT_THAT(machine.headline,
              HasSubstr("The kernel killed 1 process on this machine for want of memory meanwhile. "));
  EXPECT_EQ(memory_sufficed(machine), Answer::kUnknown);
  for (const char* nothing : {"ValueError: 3", ""}) {
    EXPECT_THAT(failed_of({.line = nothing, .kills = "0"}).headline, Not(HasSubstr("memory")));
    EXPECT_THAT(failed_of({.line = nothing}).headline, Not(HasSubstr("memory")));
  }
  EXPECT_THAT(failed_of({.kills = "1", .exit_code = 0}).headline, Not(HasSubstr("memory"))) << "it did not fail";
}

}  // namespace
}  // namespace headroom
