// SPDX-License-Identifier: Apache-2.0
// The readers on the fixture roots: see tests/roots/README.md for what they hold and where they come from.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/testing.h"
#include "host/cgroup.h"
#include "host/host_reader.h"
#include "host/tree_reader.h"

namespace headroom::host {
namespace {

namespace fs = std::filesystem;
using ::testing::UnorderedElementsAre;

std::string root(const std::string& machine) { return in_checkout("tests/roots/" + machine); }

Recording read_tree(const std::string& machine, std::int64_t job, int ticks = 1) {
  TreeOptions options;
  options.root = root(machine);
  options.pids = {job};
  TreeReader tree(std::move(options));
  MemorySink sink;
  for (int i = 0; i < ticks; ++i) tree.read((i + 10'000) * kSecond, sink);
  return sink.take();
}

Recording read_host(const std::string& machine, std::int64_t job, int ticks = 1) {
  HostReader reader({root(machine), job});
  MemorySink sink;
  for (int i = 0; i < ticks; ++i) reader.read((i + 10'000) * kSecond, sink);
  return sink.take();
}

std::vector<std::int64_t> pids(const Recording& recording) {
  std::vector<std::int64_t> found;
  for (const Source& source : recording.sources) found.push_back(process_of(source).pid);
  return found;
}

SourceId source_of(const Recording& recording, std::int64_t pid) {
  for (std::size_t i = 0; i < recording.sources.size(); ++i)
    if (process_of(recording.sources[i]).pid == pid) return static_cast<SourceId>(i);
  return kNoSource;
}

Reading<std::int64_t> value(const Recording& recording, SourceId source, Metric metric) {
  const Column* column = recording.tracks.at(static_cast<std::size_t>(source)).find(metric);
  return column ? column->at(0) : tl::unexpected(Absent::kNotSampled);
}
Reading<std::int64_t> of_pid(const Recording& recording, std::int64_t pid, Metric metric) {
  return value(recording, source_of(recording, pid), metric);
}
Reading<std::int64_t> channel(WaitChannel family) { return static_cast<std::int64_t>(family); }

TEST(Captured618, TheWholeTreeIsFound) {
  const Recording recording = read_tree("debian12-6.18-hybrid", 20062);
  EXPECT_THAT(pids(recording), UnorderedElementsAre(20062, 20063, 20064, 20065));
  EXPECT_TRUE(recording.losses.empty());
}

TEST(Captured618, WorkersComputeAndTheParentPolls) {
  const Recording recording = read_tree("debian12-6.18-hybrid", 20062);
  EXPECT_EQ(of_pid(recording, 20062, Metric::kWaitChannel), channel(WaitChannel::kPoll));
  EXPECT_EQ(of_pid(recording, 20063, Metric::kWaitChannel), channel(WaitChannel::kRunning));
  EXPECT_EQ(of_pid(recording, 20065, Metric::kWaitChannel), channel(WaitChannel::kSleep));
  EXPECT_EQ(of_pid(recording, 20063, Metric::kProcessState), 'R');
  EXPECT_EQ(of_pid(recording, 20063, Metric::kCpuUser), 710 * kMillisecond);
  EXPECT_EQ(of_pid(recording, 20063, Metric::kMainCpu), 718'353'971);
  EXPECT_EQ(of_pid(recording, 20063, Metric::kRunDelay), 2'220'436'919);
  EXPECT_EQ(of_pid(recording, 20063, Metric::kRss), 2607 * 4096);
  EXPECT_EQ(of_pid(recording, 20062, Metric::kThreads), 2);
  EXPECT_EQ(of_pid(recording, 20062, Metric::kThreadsRunning), 0);
  EXPECT_EQ(of_pid(recording, 20062, Metric::kReadChars), 1'235'932);
  EXPECT_EQ(of_pid(recording, 20062, Metric::kReadBytes), 65'536);
}

TEST(Captured618, ProcessFactsAreThoseOfItsFiles) {
  const Recording recording = read_tree("debian12-6.18-hybrid", 20062);
  const Process process = process_of(recording.sources.at(static_cast<std::size_t>(source_of(recording, 20063))));
  EXPECT_EQ(process.start, kMillisecond * 10 * 271'925);
  EXPECT_EQ(process.ppid, 20062);
  EXPECT_EQ(process.uid, 1000);
  EXPECT_EQ(process.user, "user");
  EXPECT_EQ(process.cmdline, "python3 train.py --workers 2");
  EXPECT_EQ(process.cuda_visible_devices, "1");
  EXPECT_EQ(process.cuda_device_order, std::nullopt);
}

// In the middle of exec a process has its new name and no environment yet.
TEST(Captured618, AnEnvironmentThatIsStillEmptyIsLookedAtAgain) {
  const Recording whole = read_tree("debian12-6.18-hybrid", 20062);
  const Process job = process_of(whole.sources.at(static_cast<std::size_t>(source_of(whole, 20062))));
  const fs::path copy = fs::path(::testing::TempDir()) / fmt::format("execs.{}", ::getpid());
  fs::copy(root("debian12-6.18-hybrid"), copy, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  const fs::path environment = copy / "proc/20062/environ";
  std::ofstream(environment, std::ios::trunc).close();
  TreeOptions options;
  options.root = copy.string();
  options.pids = {20062};
  TreeReader tree(std::move(options));
  MemorySink sink;
  const auto order = [&] {
    const Recording& recording = sink.recording();
    return process_of(recording.sources.at(static_cast<std::size_t>(source_of(recording, 20062)))).cuda_device_order;
  };
  for (const Nanos age : {100 * kMillisecond, 400 * kMillisecond}) tree.read(job.start + age, sink);
  EXPECT_EQ(order(), std::nullopt);
  std::ofstream(environment) << "CUDA_DEVICE_ORDER=PCI_BUS_ID" << '\0';
  tree.read(job.start + 700 * kMillisecond, sink);
  EXPECT_EQ(order(), "PCI_BUS_ID");
  fs::remove_all(copy);
}

TEST(Captured618, ANumberInADistributedJobIsThatOfItsLauncher) {
  const fs::path copy = fs::path(::testing::TempDir()) / fmt::format("ranks.{}", ::getpid());
  fs::copy(root("debian12-6.18-hybrid"), copy, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  const auto rank = [&](std::string environment) {
    std::replace(environment.begin(), environment.end(), ' ', '\0');
    std::ofstream(copy / "proc/20062/environ", std::ios::trunc) << environment << '\0';
    ProcDir proc((copy / "proc").string());
    UserNames users(copy.string());
    return read_process_facts(proc, read_kernel_facts(proc, false), users, 20062, Environment::kRead).process.rank;
  };
  EXPECT_EQ(rank("RANK=3 LOCAL_RANK=1 WORLD_SIZE=4"), 3);
  EXPECT_EQ(rank("OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2"), 0);
  EXPECT_EQ(rank("RANK=0 WORLD_SIZE=1"), std::nullopt) << "it is alone";
  EXPECT_EQ(rank("RANK=gold WORLD_SIZE=4"), std::nullopt);
  EXPECT_EQ(rank("RANK=4 WORLD_SIZE=4"), std::nullopt);
  EXPECT_EQ(rank("SLURM_PROCID=1 SLURM_NTASKS=2"), std::nullopt) << "of a task, which may have a process per GPU";
  fs::remove_all(copy);
}

TEST(Captured618, DelayAccountingThatIsOffIsNotZero) {
  const Recording recording = read_tree("debian12-6.18-hybrid", 20062);
  const auto off = read_file(root("debian12-6.18-hybrid") + "/proc/sys/kernel/task_delayacct");
  ASSERT_TRUE(off);
  const auto delay = of_pid(recording, 20063, Metric::kIoDelay);
  if (*off == "0\n")
    EXPECT_EQ(delay, tl::unexpected(Absent::kNotSupported));
  else
    EXPECT_EQ(delay, 0);
}

TEST(Captured618, HostAndMixedCgroups) {
  const Recording recording = read_host("debian12-6.18-hybrid", 20062);
  ASSERT_EQ(recording.sources.size(), 2U);
  const SourceId host_id = *recording.find(SourceKind::kHost, "host");
  const Host host = host_of(recording.sources[static_cast<std::size_t>(host_id)]);
  EXPECT_EQ(host.cores, 2);
  EXPECT_EQ(host.cores_usable, 2.0);
  EXPECT_EQ(host.kernel, "6.18.44");
  EXPECT_GT(value(recording, host_id, Metric::kHostCpuBusy).value_or(0), 0);
  EXPECT_GT(value(recording, host_id, Metric::kPsiCpuSome).value_or(0), 0);
  const auto group = recording.find(SourceKind::kCgroup, "/jobs/training");  // its memory's: the rest is at the top
  ASSERT_TRUE(group);
  EXPECT_FALSE(value(recording, *group, Metric::kCgroupCpu).has_value());  // that would be the machine's
  EXPECT_FALSE(value(recording, *group, Metric::kPsiCpuSome).has_value());
  EXPECT_GT(value(recording, *group, Metric::kCgroupMemory).value_or(0), 0);
}

TEST(Composed418, ALoaderStuckInNfsIsTellable) {
  const Recording recording = read_tree("rhel8-4.18-cgroup1", 4100);
  EXPECT_THAT(pids(recording), UnorderedElementsAre(4100, 4101, 4102));  // no sshd, no shell, no kernel thread
  EXPECT_EQ(of_pid(recording, 4101, Metric::kProcessState), 'D');
  EXPECT_EQ(of_pid(recording, 4101, Metric::kWaitChannel), channel(WaitChannel::kNetworkFs));
  EXPECT_EQ(of_pid(recording, 4101, Metric::kIoDelay), 42 * kSecond);
  EXPECT_EQ(of_pid(recording, 4101, Metric::kMajorFaults), 3000);
  EXPECT_EQ(of_pid(recording, 4102, Metric::kRunDelay), 45 * kSecond);
  EXPECT_EQ(of_pid(recording, 4102, Metric::kInvoluntarySwitches), 89'000);
  EXPECT_EQ(of_pid(recording, 4100, Metric::kThreadsRunning), 1);
  const Process job = process_of(recording.sources.at(static_cast<std::size_t>(source_of(recording, 4100))));
  EXPECT_EQ(job.comm, "python3 (main) 1");
  EXPECT_EQ(job.cmdline, "python3 train.py --note 'two words'");
  EXPECT_EQ(job.cuda_visible_devices, "0,1");
  EXPECT_EQ(job.cuda_device_order, "PCI_BUS_ID");
}

TEST(Composed418, LimitsOfAllLevelsHoldAndTheTightestIsNamed) {
  const Recording recording = read_host("rhel8-4.18-cgroup1", 4100);
  const Host host = host_of(recording.sources.at(static_cast<std::size_t>(*recording.find(SourceKind::kHost, "host"))));
  EXPECT_EQ(host.cores, 64);
  EXPECT_EQ(host.cores_usable, 4.0);  // 16 by cpuset, 4 by quota
  EXPECT_EQ(host.memory_total_bytes, 263'842'340LL * 1024);
  EXPECT_EQ(host.kernel, "4.18.0-553.el8_10.x86_64");
  const SourceId group = *recording.find(SourceKind::kCgroup, "/slurm/uid_1000/job_77");
  const Attrs& attrs = recording.sources[static_cast<std::size_t>(group)].attrs;
  EXPECT_EQ(attrs.at("cpu_quota_cores"), "4");
  EXPECT_EQ(attrs.at("cpuset_cores"), "16");
  EXPECT_EQ(attrs.at("memory_max_bytes"), "68719476736");  // the user's limit is below the job's
  EXPECT_EQ(attrs.at("version"), "1");
  EXPECT_EQ(value(recording, group, Metric::kCgroupCpu), 350 * kSecond);
  EXPECT_EQ(value(recording, group, Metric::kCgroupThrottled), 1'234'567'890);
  EXPECT_EQ(value(recording, group, Metric::kCgroupMemory), 3'221'225'472);
}

TEST(Composed418, WithoutPressureFilesThereIsNoPressureRatherThanNone) {
  const Recording recording = read_host("rhel8-4.18-cgroup1", 4100);
  const SourceId host = *recording.find(SourceKind::kHost, "host");
  EXPECT_EQ(value(recording, host, Metric::kPsiIoSome), tl::unexpected(Absent::kNotSupported));
  EXPECT_EQ(value(recording, host, Metric::kHostSwapOut), 1075);
  EXPECT_EQ(value(recording, host, Metric::kHostLoad1), 325);
  EXPECT_EQ(value(recording, host, Metric::kHostCpuIoWait), 70 * kSecond);
}

TEST(Composed515, WhatAnOrphanedSessionStartedBelongsToTheJob) {
  const Recording recording = read_tree("ubuntu22-5.15-cgroup2", 5200);
  EXPECT_THAT(pids(recording), UnorderedElementsAre(5200, 5203, 5209, 5210));
  EXPECT_EQ(of_pid(recording, 5200, Metric::kWaitChannel), channel(WaitChannel::kPoll));
  EXPECT_EQ(of_pid(recording, 5203, Metric::kWaitChannel), channel(WaitChannel::kFutex));
  EXPECT_EQ(of_pid(recording, 5210, Metric::kWaitChannel), channel(WaitChannel::kSocket));
  EXPECT_EQ(of_pid(recording, 5209, Metric::kWaitChannel), channel(WaitChannel::kChild));
  EXPECT_EQ(of_pid(recording, 5200, Metric::kIoDelay), tl::unexpected(Absent::kNotSupported));
}

TEST(Composed515, NestedLimitsAndPressureOfTheGroup) {
  const Recording recording = read_host("ubuntu22-5.15-cgroup2", 5200);
  const SourceId group = *recording.find(SourceKind::kCgroup, "/system.slice/docker-aa.scope");
  const Attrs& attrs = recording.sources[static_cast<std::size_t>(group)].attrs;
  EXPECT_EQ(attrs.at("cpu_quota_cores"), "1.5");
  EXPECT_EQ(attrs.at("memory_max_bytes"), "17179869184");
  EXPECT_EQ(attrs.at("version"), "2");
  EXPECT_EQ(value(recording, group, Metric::kCgroupCpu), 6000 * kSecond);
  EXPECT_EQ(value(recording, group, Metric::kCgroupThrottled), 2500 * kMillisecond);
  EXPECT_EQ(value(recording, group, Metric::kCgroupMemory), 5'368'709'120);
  EXPECT_EQ(value(recording, group, Metric::kPsiIoSome), 22 * kMillisecond);
  const Host host = host_of(recording.sources.at(static_cast<std::size_t>(*recording.find(SourceKind::kHost, "host"))));
  EXPECT_EQ(host.cores_usable, 1.5);
}

TEST(Composed515, ContainerPidsFindTheirProcess) {
  TreeOptions options;
  options.root = root("ubuntu22-5.15-cgroup2");
  options.pids = {5200};
  TreeReader tree(std::move(options));
  MemorySink sink;
  tree.read(kSecond, sink);
  ASSERT_TRUE(tree.describe(17));
  EXPECT_EQ(tree.describe(17)->pid, 5203);
  EXPECT_TRUE(tree.describe(17)->in_job);
  ASSERT_TRUE(tree.describe(5300));
  EXPECT_FALSE(tree.describe(5300)->in_job);
  EXPECT_EQ(tree.describe(5300)->uid, 1001);
  EXPECT_EQ(tree.describe(5300)->user, "");  // not in this machine's passwd
  EXPECT_FALSE(tree.describe(2));            // a kernel thread is nobody's process
  EXPECT_FALSE(tree.describe(999'999));
}

Recording read_machine(const std::string& machine, std::size_t most) {
  TreeOptions options;
  options.root = root(machine);
  options.most_of_machine = most;
  TreeReader tree(std::move(options));
  MemorySink sink;
  for (int i = 0; i < 2; ++i) tree.read((i + 10'000) * kSecond, sink);
  return sink.take();
}

TEST(Machine, AllItsProcessesAreFoundAndAreOfNoJob) {
  const Recording recording = read_machine("debian12-6.18-hybrid", 100);
  EXPECT_THAT(pids(recording), ::testing::IsSupersetOf({20062, 20063, 20064, 20065}));
  for (const Source& source : recording.sources) EXPECT_FALSE(process_of(source).in_job) << source.key;
}

TEST(Machine, OfManyThoseThatHaveUsedMostCpuAreRead) {
  EXPECT_THAT(pids(read_machine("debian12-6.18-hybrid", 2)), UnorderedElementsAre(20063, 20064));
}

TEST(Rhythm, TheHostIsReadOnceASecondAndMemoryLessOften) {
  HostReader reader({root("rhel8-4.18-cgroup1"), 4100});
  MemorySink sink;
  for (int i = 0; i < 100; ++i) reader.read(1000 * kSecond + i * 100 * kMillisecond, sink);
  const Recording recording = sink.take();
  const Track& track = recording.tracks[static_cast<std::size_t>(*recording.find(SourceKind::kHost, "host"))];
  EXPECT_EQ(track.at.size(), 10U);
  const Column* memory = track.find(Metric::kHostMemoryAvailable);
  int present = 0;
  for (std::size_t row = 0; row < track.at.size(); ++row) present += memory->has(row) ? 1 : 0;
  EXPECT_EQ(present, 2);
}

TEST(Rhythm, DearFilesOfAProcessAreNotReadAtEveryTickOfTen) {
  TreeOptions options;
  options.root = root("rhel8-4.18-cgroup1");
  options.pids = {4102};
  TreeReader tree(std::move(options));
  MemorySink sink;
  for (int i = 0; i < 20; ++i) tree.read(1000 * kSecond + i * 100 * kMillisecond, sink);
  const Recording recording = sink.take();
  const Track& track = recording.tracks.at(0);
  const auto present = [&](Metric metric) {
    int count = 0;
    for (std::size_t row = 0; row < track.at.size(); ++row) count += track.find(metric)->has(row) ? 1 : 0;
    return count;
  };
  EXPECT_EQ(present(Metric::kCpuUser), 20);
  EXPECT_EQ(present(Metric::kRunDelay), 20);
  EXPECT_EQ(present(Metric::kReadBytes), 10) << "of a small tree every 200 ms";
  EXPECT_EQ(present(Metric::kVoluntarySwitches), 1);
}

// A root of its own whose files the test may change.
class ChangingRoot : public ::testing::Test {
 protected:
  ChangingRoot() {
    char name[] = "/tmp/headroom-roots-XXXXXX";
    root_ = ::mkdtemp(name);
    fs::copy(root("rhel8-4.18-cgroup1"), root_, fs::copy_options::recursive);
  }
  ~ChangingRoot() override { fs::remove_all(root_); }
  void write(const std::string& path, const std::string& text) const {
    fs::create_directories(fs::path(root_ + "/" + path).parent_path());
    std::ofstream(root_ + "/" + path) << text;
  }
  [[nodiscard]] std::string text(const std::string& path) const { return *read_file(root_ + "/" + path); }
  void newest_pid(std::int64_t pid) const { write("proc/loadavg", "0 0 0 1/9 " + std::to_string(pid) + "\n"); }
  void new_process(std::int64_t pid, std::int64_t ppid, std::int64_t start_ticks) const {
    std::string stat = text("proc/4102/stat");
    stat.replace(0, 4, std::to_string(pid));
    stat.replace(stat.find("R 4100 4100 4100") + 2, 4, std::to_string(ppid));
    stat.replace(stat.find("360501"), 6, std::to_string(start_ticks));
    write("proc/" + std::to_string(pid) + "/stat", stat);
    write("proc/" + std::to_string(pid) + "/status", "Tgid:\t" + std::to_string(pid) + "\nUid:\t1000\n");
  }
  TreeReader tree() {
    TreeOptions options;
    options.root = root_;
    options.pids = {4100};
    return TreeReader(std::move(options));
  }
  std::string root_;
  MemorySink sink_;
  Nanos now_ = 10'000 * kSecond;
};

TEST_F(ChangingRoot, ANumberGivenToAnotherProcessIsAnotherProcess) {
  TreeReader reader = tree();
  reader.read(now_, sink_);
  ASSERT_EQ(reader.size(), 3U);
  new_process(4102, 1, 999'999);  // the worker ended, and a stranger got its number
  newest_pid(4102);
  reader.read(now_ + kSecond, sink_);
  EXPECT_FALSE(reader.contains(4102));
  const auto ended = sink_.recording().find(SourceKind::kProcess, "4102/3605010000000");
  ASSERT_TRUE(ended);
  EXPECT_EQ(process_of(sink_.recording().sources[static_cast<std::size_t>(*ended)]).end, now_ + kSecond);
}

TEST_F(ChangingRoot, NewChildrenAreFoundAcrossTheWrapOfPids) {
  TreeReader reader = tree();
  newest_pid(32'700);
  reader.read(now_, sink_);
  new_process(32'750, 4101, 400'000);
  new_process(310, 32'750, 400'001);  // its number is lower: the numbers wrapped
  newest_pid(310);
  reader.read(now_ + kSecond, sink_);
  EXPECT_TRUE(reader.contains(32'750));
  EXPECT_TRUE(reader.contains(310));
  EXPECT_FALSE(reader.contains(3000));
}

TEST_F(ChangingRoot, ThreadsAndZombiesAreNoProcesses) {
  TreeReader reader = tree();
  reader.read(now_, sink_);
  new_process(4195, 4100, 400'000);
  write("proc/4195/status", "Tgid:\t4101\nUid:\t1000\n");  // a thread of 4101
  newest_pid(4195);
  reader.read(now_ + kSecond, sink_);
  EXPECT_EQ(reader.size(), 3U);
}

TEST_F(ChangingRoot, AStatThatIsNonsenseIsAbsentAndTheProcessStays) {
  TreeReader reader = tree();
  reader.read(now_, sink_);
  write("proc/4102/stat", "nonsense");
  reader.read(now_ + kSecond, sink_);
  EXPECT_TRUE(reader.contains(4102));
  const Recording recording = sink_.take();
  const Column* cpu = recording.tracks[static_cast<std::size_t>(source_of(recording, 4102))].find(Metric::kCpuUser);
  EXPECT_EQ(cpu->at(1), tl::unexpected(Absent::kGarbage));
}

TEST_F(ChangingRoot, WithoutProcThereIsNothingAndNoCrash) {
  fs::remove_all(root_ + "/proc");
  TreeReader reader = tree();
  reader.read(now_, sink_);
  HostReader host({root_, 4100});
  host.read(now_, sink_);
  EXPECT_EQ(reader.size(), 0U);
  EXPECT_FALSE(reader.describe(4100));
  const Recording recording = sink_.take();
  const SourceId id = *recording.find(SourceKind::kHost, "host");
  EXPECT_EQ(value(recording, id, Metric::kHostCpuBusy), tl::unexpected(Absent::kNotSupported));
}

// The killer's count, in the words of both versions.
TEST(OwnCgroups, CountWhatTheKernelKilled) {
  for (const bool v2 : {true, false}) {
    const std::string root = ::testing::TempDir() + (v2 ? "oom2" : "oom1");
    fs::create_directories(root + "/proc/self");
    fs::create_directories(root + "/sys/fs/cgroup/memory/job");
    std::ofstream(root + "/proc/self/cgroup") << (v2 ? "0::/job\n" : "4:memory:/job\n");
    std::ofstream(root + "/proc/self/mountinfo")
        << (v2 ? "26 25 0:24 / /sys/fs/cgroup/memory rw - cgroup2 cgroup2 rw\n"
               : "26 25 0:24 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n");
    OwnCgroup group(root);
    EXPECT_FALSE(group.oom_kills());
    std::ofstream(root + "/proc/vmstat") << "oom_kill_disable 9\noom_kill 7\n";
    EXPECT_EQ(group.oom_kills(), (OomKills{.count = 7, .of_machine = true})) << "the group's are not counted";
    std::ofstream(root + "/sys/fs/cgroup/memory/job/" + (v2 ? "memory.events" : "memory.oom_control"))
        << (v2 ? "low 0\nmax 9\noom 3\noom_kill 2\noom_group_kill 0\n"
               : "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
    EXPECT_EQ(group.oom_kills(), (OomKills{.count = 2}));
    fs::remove_all(root);
  }
}

TEST(CgroupPlaces, PathsThatLeadNowhereLeadNowhere) {
  constexpr std::string_view kMounts = "26 25 0:24 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
  EXPECT_TRUE(place_cgroup("0::/../../other\n", kMounts).cpu.empty());  // outside of our namespace
  EXPECT_TRUE(place_cgroup("0::no-slash\n", kMounts).cpu.empty());
  EXPECT_THAT(place_cgroup("0::/a/b\n", kMounts).cpu,
              ::testing::ElementsAre("sys/fs/cgroup/a/b", "sys/fs/cgroup/a", "sys/fs/cgroup"));
  EXPECT_THAT(place_cgroup("0::/\n", kMounts).cpu, ::testing::ElementsAre("sys/fs/cgroup"));
}

TEST(CgroupPlaces, AContainerSeesItsPartAsTheTop) {
  constexpr std::string_view kMounts = "33 22 0:29 /docker/x /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n";
  EXPECT_THAT(place_cgroup("3:cpu,cpuacct:/docker/x/job\n", kMounts).cpu,
              ::testing::ElementsAre("sys/fs/cgroup/cpu/job", "sys/fs/cgroup/cpu"));
  EXPECT_THAT(place_cgroup("3:cpu,cpuacct:/docker/xy\n", kMounts).cpu, ::testing::ElementsAre("sys/fs/cgroup/cpu"));
}

TEST_F(ChangingRoot, AMovedJobIsFollowedToItsNewGroup) {
  HostReader reader({root_, 4100});
  reader.read(now_, sink_);
  write("proc/4100/cgroup", "8:cpu,cpuacct:/slurm/uid_1000\n10:memory:/slurm/uid_1000\n");
  reader.read(now_ + 31 * kSecond, sink_);
  EXPECT_TRUE(sink_.recording().find(SourceKind::kCgroup, "/slurm/uid_1000"));
  fs::remove_all(root_ + "/proc/4100");  // the job has ended: the last group is still told about
  reader.read(now_ + 62 * kSecond, sink_);
  EXPECT_EQ(sink_.recording().all(SourceKind::kCgroup).size(), 2U);
}

}  // namespace
}  // namespace headroom::host
