// SPDX-License-Identifier: Apache-2.0
//
// Several real processes on one box: contention, death and arrest. No process here is timed against the wall clock.
#include "sim/box/box.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <thread>

#include "sim/box/janitor.h"
#include "sim/box/script.h"
#include "sim/core/client.h"
#include "sim/read.h"

namespace headroom::sim {
namespace {

constexpr std::uint64_t kSeed = 4711;

Box make_box(std::string_view gpus, contention::Schedule schedule = contention::Schedule::kRoundRobin) {
  BoxOptions options;
  options.plan = *plan_of_names(gpus);
  options.schedule = schedule;
  auto box = Box::create(options);
  EXPECT_TRUE(box) << (box ? "" : box.error().what);
  return std::move(*box);
}

std::unique_ptr<Client> attach(const Box& box, const char* mask = nullptr, const char* order = nullptr) {
  int error = 0;
  auto client = Client::attach({box.directory().c_str(), mask, order}, &error);
  EXPECT_EQ(error, 0);
  return client;
}

// A process of the test; killed and reaped when dropped.
class Process {
 public:
  explicit Process(const std::function<int()>& body) : pid_(::fork()) {
    if (pid_ == 0) ::_exit(body());
  }
  ~Process() { end(SIGKILL); }
  Process(Process&& other) noexcept : pid_(std::exchange(other.pid_, -1)) {}
  Process& operator=(Process&& other) noexcept {
    std::swap(pid_, other.pid_);
    return *this;
  }
  [[nodiscard]] pid_t pid() const { return pid_; }
  void send(int signal) const { ::kill(pid_, signal); }
  void end(int signal) {
    if (pid_ > 0) ::kill(pid_, signal);
    wait();
  }
  int wait() {
    int status = 0;
    if (pid_ > 0) ::waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_;
};

// Launches, allocates, copies and waits in a random mixture until it is killed. With an odd seed it never waits, so
// that it is nearly always in the middle of a change.
int flood(const Box& box, std::uint64_t seed) {
  int error = 0;
  const auto client = Client::attach({box.directory().c_str(), nullptr, nullptr}, &error);
  if (!client) return 1;
  std::mt19937_64 random(seed);
  for (;;) {
    std::uint64_t address = 0;
    if (seed % 2 != 0) {
      (void)client->launch(0, 10, 1000);
      if (client->allocate(0, 1 << 20, &address) == 0) (void)client->release(0, address);
      continue;
    }
    switch (random() % 8) {
      case 0:
        (void)client->allocate(0, random() % (64 << 20), &address);
        break;
      case 1:
        (void)client->copy(0, random() % (1 << 20), true, true, true);
        break;
      case 2:
        (void)client->synchronize(0);
        break;
      case 3:
        if (random() % 20 == 0) (void)client->destroy_context(0);
        break;
      default:
        (void)client->launch(0, static_cast<Nanos>(random() % 300'000), 1000);
        break;
    }
  }
}

// What must hold of every image that anybody can ever see.
void expect_sound(const Box& box, const std::string& when) {
  auto image = std::make_unique<Image>();
  load(box.store().area(0), *image);
  Nanos kernels = 0;
  std::uint64_t memory = 0;
  for (std::uint32_t slot = 0; slot < kSlots; ++slot) {
    const contention::Stream& stream = image->queue.streams[slot];
    ASSERT_LE(stream.attained, stream.submitted) << when;
    ASSERT_LE(stream.count, contention::kMaxSegments) << when;
    ASSERT_TRUE(is_live(*image, slot) || stream.count == 0) << when;
    kernels += stream.kernel;
    if (is_live(*image, slot)) memory += image->contexts[slot].memory_bytes;
  }
  ASSERT_EQ(kernels, image->queue.busy) << when;
  ASSERT_EQ(memory, memory_used(*image, box.store().header(), 0)) << when;
  BinRecord older{}, newer{};
  const std::int64_t newest = image->next_bin - 1;
  for (std::int64_t i = std::max<std::int64_t>(1, newest - 20); i < newest; ++i) {
    if (!read_bin(box.store().area(0), i, older) || !read_bin(box.store().area(0), i + 1, newer)) continue;
    ASSERT_GE(newer.busy, older.busy) << when;
    ASSERT_LE(newer.busy - older.busy, kSecond / kBinsPerSecond + 1) << when;
  }
}

int live_contexts(const Box& box) {
  auto image = std::make_unique<Image>();
  load(box.store().area(0), *image);
  return __builtin_popcountll(image->live);
}

TEST(Box, KilledClientsNeverWedgeTheModelNorKeepMemory) {
  const Box box = make_box("A6000");
  Janitor janitor = *Janitor::start(box);
  std::mt19937_64 random(kSeed);
  std::vector<Process> clients;
  for (std::uint64_t i = 0; i < 3; ++i) clients.emplace_back([&] { return flood(box, kSeed + i); });
  for (int kill = 0; kill < 200; ++kill) {
    sleep_for(static_cast<Nanos>(random() % 4'000'000));
    Process& victim = clients[random() % clients.size()];
    victim.end(SIGKILL);
    victim = Process([&] { return flood(box, random()); });
    if (kill % 3 == 0) janitor.tidy();  // else the other clients find it themselves
    expect_sound(box, fmt::format("seed {} kill {}", kSeed, kill));
    if (HasFatalFailure()) return;
  }
  clients.clear();
  janitor.tidy();
  EXPECT_EQ(live_contexts(box), 0);
  OpenError error{};
  const auto reader = Reader::open(box.directory().c_str(), &error);
  ASSERT_TRUE(reader);
  EXPECT_EQ(reader->snapshot(0, Reader::now()).memory_used_bytes, 0u);
}

TEST(Box, AStoppedClientBlocksNobody) {
  const Box box = make_box("A6000");
  std::mt19937_64 random(kSeed);
  Process stopped([&] { return flood(box, 1); });
  const auto client = attach(box);
  for (int i = 0; i < 100; ++i) {
    sleep_for(static_cast<Nanos>(random() % 1'000'000));
    stopped.send(SIGSTOP);
    const Nanos before = clock_now();
    for (int k = 0; k < 20; ++k) ASSERT_EQ(client->launch(0, 1000, 1000), 0);
    ASSERT_LT(clock_now() - before, 5 * kSecond) << "a stopped client must not hold anything";
    expect_sound(box, fmt::format("seed {} stop {}", kSeed, i));
    if (HasFatalFailure()) return;
    stopped.send(SIGCONT);
  }
}

TEST(Box, SurvivorsFindADeathWithoutAJanitor) {
  const Box box = make_box("A6000");
  const auto client = attach(box);
  ASSERT_EQ(client->create_context(0, ContextKind::kCompute), 0);
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  Process rival([&] {
    const auto own = attach(box);
    std::uint64_t address = 0;
    if (own->allocate(0, std::uint64_t{40} << 30, &address) != 0) return 1;
    if (own->launch(0, 60 * kSecond, 1000) != 0) return 2;
    (void)!::write(ready[1], "r", 1);
    ::pause();
    return 0;
  });
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  std::uint64_t address = 0;
  EXPECT_EQ(client->allocate(0, std::uint64_t{10} << 30, &address), HEADROOM_SIM_OUT_OF_MEMORY);
  rival.end(SIGKILL);
  EXPECT_EQ(client->allocate(0, std::uint64_t{40} << 30, &address), 0) << "out of memory makes it look for the dead";
  ASSERT_EQ(client->launch(0, 5 * kMillisecond, 1000), 0);
  ASSERT_EQ(client->synchronize(0), 0);
  headroom_sim_stats stats{};
  ASSERT_EQ(client->stats(0, &stats), 0);
  EXPECT_EQ(stats.kernel_ns, 5 * kMillisecond);
  EXPECT_LT(stats.busy_ns, 30 * kSecond) << "the dead client's queue went with it";
}

// How much longer equal jobs with two kernels in flight take together than alone, by the device's own clock.
double slowdown(const Box& box, int jobs, Nanos kernel, std::uint32_t share) {
  constexpr int kKernels = 30;
  int results[2], ready[2], go[2];
  for (int* ends : {results, ready, go}) EXPECT_EQ(::pipe(ends), 0);
  std::vector<Process> processes;
  for (int i = 0; i < jobs; ++i) {
    processes.emplace_back([&] {
      const auto client = attach(box);
      if (client->create_context(0, ContextKind::kCompute) != 0) return 1;
      char byte = 0;
      (void)!::write(ready[1], &byte, 1);
      (void)!::read(go[0], &byte, 1);
      headroom_sim_stats begun{}, ended{};
      std::vector<Nanos> tickets;
      for (int k = 0; k < kKernels; ++k) {
        Nanos ticket = 0;
        if (client->launch(0, kernel, share) != 0 || client->record(0, &ticket) != 0) return 2;
        if (k == 0) (void)client->stats(0, &begun);
        tickets.push_back(ticket);
        if (k >= 2 && client->wait_for(0, tickets[static_cast<std::size_t>(k - 2)]) != 0) return 3;
      }
      if (client->synchronize(0) != 0 || client->stats(0, &ended) != 0) return 4;
      const double taken = static_cast<double>(ended.done_at_ns - begun.now_ns);
      const double ratio = taken / static_cast<double>(kKernels * kernel);
      (void)!::write(results[1], &ratio, sizeof ratio);
      return 0;
    });
  }
  char byte = 0;
  for (int i = 0; i < jobs; ++i) EXPECT_EQ(::read(ready[0], &byte, 1), 1);  // all have their contexts
  EXPECT_EQ(::write(go[1], "gggggggg", static_cast<std::size_t>(jobs)), jobs);
  double sum = 0;
  for (int i = 0; i < jobs; ++i) {
    double ratio = 0;
    EXPECT_EQ(::read(results[0], &ratio, sizeof ratio), static_cast<ssize_t>(sizeof ratio));
    sum += ratio;
  }
  for (Process& process : processes) EXPECT_EQ(process.wait(), 0);
  for (const int fd : {results[0], results[1], ready[0], ready[1], go[0], go[1]}) ::close(fd);
  return sum / jobs;
}

void expect_slowdown(contention::Schedule schedule, int jobs, std::uint32_t share, double expected) {
  const Box box = make_box("A6000", schedule);
  const double seen = slowdown(box, jobs, 8 * kMillisecond, share);
  EXPECT_NEAR(seen, expected, 0.04 * expected) << jobs << " jobs, share " << share;
}

TEST(Box, OnAQuietMachineEqualJobsShareEqually) {
  expect_slowdown(contention::Schedule::kRoundRobin, 1, 1000, 1.0);
  expect_slowdown(contention::Schedule::kRoundRobin, 2, 1000, 2.0);
  expect_slowdown(contention::Schedule::kProcessorSharing, 3, 1000, 3.0);
}

TEST(Box, OnAQuietMachineSmallKernelsRunSideBySideUnderMps) {
  expect_slowdown(contention::Schedule::kSpaceSharing, 2, 500, 1.0);
  expect_slowdown(contention::Schedule::kSpaceSharing, 3, 500, 1.5);
}

TEST(Box, MemoryRunsOutAsCudasDoes) {
  const Box box = make_box("RTX4050");
  const auto client = attach(box);
  std::uint64_t free_bytes = 0, total = 0, address = 0;
  ASSERT_EQ(client->memory_info(0, &free_bytes, &total), 0);
  EXPECT_EQ(total >> 20, 6141u);
  EXPECT_EQ(client->allocate(0, free_bytes + 1, &address), HEADROOM_SIM_OUT_OF_MEMORY);
  ASSERT_EQ(client->allocate(0, free_bytes / (2 << 20) * (2 << 20), &address), 0);
  std::uint64_t more = 0;
  EXPECT_EQ(client->allocate(0, 2 << 20, &more), HEADROOM_SIM_OUT_OF_MEMORY);
  EXPECT_EQ(client->release(0, address + 1), HEADROOM_SIM_INVALID_VALUE);
  ASSERT_EQ(client->release(0, address), 0);
  EXPECT_EQ(client->allocate(0, 2 << 20, &more), 0);
}

TEST(Box, TheMaskIsReadAtAttachAndOrdinalsFollowIt) {
  const Box box = make_box("1xT4,1xA6000");
  const DeviceInfo* info = nullptr;
  int index = -1;
  ASSERT_EQ(attach(box)->device_info(0, &info, &index), 0);
  EXPECT_EQ(index, 1) << "fastest first";
  ASSERT_EQ(attach(box, "0", "PCI_BUS_ID")->device_info(0, &info, &index), 0);
  EXPECT_EQ(index, 0);
  EXPECT_EQ(attach(box, "1", "PCI_BUS_ID")->launch(1, 1, 1000), HEADROOM_SIM_INVALID_DEVICE)
      << "mask 1 and ordinal 1: the second pinning is out of range";
  EXPECT_EQ(attach(box, "")->launch(0, 1, 1000), HEADROOM_SIM_NO_DEVICE);
}

TEST(Box, AForkedChildIsNotInitialised) {
  const Box box = make_box("T4");
  const auto client = attach(box);
  ASSERT_EQ(client->launch(0, 1000, 1000), 0);
  Process child([&] { return client->launch(0, 1000, 1000) == HEADROOM_SIM_NOT_INITIALIZED ? 0 : 1; });
  EXPECT_EQ(child.wait(), 0);
  EXPECT_EQ(client->launch(0, 1000, 1000), 0) << "the parent is not disturbed";
}

TEST(Box, ThreadsOfOneProcessShareAContext) {
  const Box box = make_box("A6000");
  const auto client = attach(box);
  constexpr int kThreads = 4, kLaunches = 300;
  std::vector<std::thread> threads;
  std::atomic<int> errors = 0;
  for (int i = 0; i < kThreads; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < kLaunches; ++k) {
        std::uint64_t address = 0;
        if (client->launch(0, 1000, 1000) != 0 || client->allocate(0, 1 << 20, &address) != 0) ++errors;
        if (client->release(0, address) != 0) ++errors;
        if (k % 50 == 0 && client->synchronize(0) != 0) ++errors;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(errors, 0);
  ASSERT_EQ(client->synchronize(0), 0);
  headroom_sim_stats stats{};
  ASSERT_EQ(client->stats(0, &stats), 0);
  EXPECT_EQ(stats.kernel_ns, kThreads * kLaunches * 1000);
  EXPECT_EQ(live_contexts(box), 1);
}

TEST(Box, ADeviceHolds64ContextsAndRefusesTheNext) {
  const Box box = make_box("H200");
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  std::vector<Process> processes;
  for (std::size_t i = 0; i < kSlots; ++i) {
    processes.emplace_back([&] {
      const auto client = attach(box);
      const char result = client->create_context(0, ContextKind::kCompute) == 0 ? 'y' : 'n';
      (void)!::write(ready[1], &result, 1);
      ::pause();
      return 0;
    });
    char result = 0;
    ASSERT_EQ(::read(ready[0], &result, 1), 1);
    ASSERT_EQ(result, 'y');
  }
  const auto client = attach(box);
  EXPECT_EQ(client->launch(0, 1, 1000), HEADROOM_SIM_NO_SLOT);
  processes.front().end(SIGKILL);
  EXPECT_EQ(client->launch(0, 1, 1000), 0) << "a dead owner's slot is free";
}

TEST(Box, AReaderSeesWhatClientsDo) {
  const Box box = make_box("A100-80");
  const auto client = attach(box);
  std::uint64_t address = 0;
  ASSERT_EQ(client->allocate(0, 1 << 30, &address), 0);
  ASSERT_EQ(client->launch(0, 200 * kMillisecond, 500), 0);
  ASSERT_EQ(client->copy(0, 1 << 20, true, true, true), 0);
  ASSERT_EQ(client->synchronize(0), 0);
  OpenError error{};
  const auto reader = Reader::open(box.directory().c_str(), &error);
  ASSERT_TRUE(reader);
  const Nanos now = Reader::now();
  const Snapshot seen = reader->snapshot(0, now);
  EXPECT_EQ(seen.busy_ns, 200 * kMillisecond);
  EXPECT_EQ(seen.sm_active_ns, 100 * kMillisecond);
  EXPECT_EQ(seen.pcie_rx_bytes, 1u << 20);
  ASSERT_EQ(seen.contexts.size(), 1u);
  EXPECT_EQ(seen.contexts[0].pid, static_cast<std::uint32_t>(::getpid()));
  EXPECT_EQ(seen.contexts[0].kernel_ns, 200 * kMillisecond);
  EXPECT_EQ(seen.contexts[0].memory_bytes, (1ull << 30) + reader->device(0).context_bytes);
  EXPECT_EQ(seen.memory_used_bytes + seen.memory_free_bytes + seen.memory_reserved_bytes,
            reader->device(0).memory_total_bytes);
  const auto bins = reader->bins(0, 0, reader->bin_of(now), now);
  ASSERT_FALSE(bins.empty());
  EXPECT_EQ(bins.front().index, 0);
  EXPECT_LE(bins.back().at, now);
  EXPECT_LT(std::abs(reader->instant_of(reader->timestamp_us(now)) - now), 1000);
}

TEST(Box, AReaderSeesWhatTheScriptSays) {
  BoxOptions options;
  options.plan = *plan_of_names("2xH100");
  const auto faults = parse_faults(R"(
    [[fault]]
    kind = "power_reading"
    device = 0
    watts = 590
    [[fault]]
    kind = "garbage"
    device = 0
    [[fault]]
    kind = "lost"
    device = 1
    [[fault]]
    kind = "clock_back"
    by = 60
    [[fault]]
    kind = "throttle"
    device = 0
    rate = 0.5
    reason = "sw_thermal"
    [[fault]]
    kind = "error"
    call = "nvmlDeviceGetFanSpeed"
    code = 4
    [[fault]]
    kind = "missing"
    symbols = "nvmlGpmSampleGet"
  )",
                                   "faults.toml", options.plan);
  ASSERT_TRUE(faults) << faults.error().what;
  options.faults = *faults;
  const auto box = Box::create(options);
  ASSERT_TRUE(box) << box.error().what;
  OpenError error{};
  const auto reader = Reader::open(box->directory().c_str(), &error);
  ASSERT_TRUE(reader);
  const Nanos now = Reader::now();
  const Snapshot seen = reader->snapshot(0, now);
  EXPECT_EQ(seen.power_mw, 590'000u);
  EXPECT_LT(static_cast<double>(seen.energy_uj), 200e6) << "the sensor lies, the energy does not";
  EXPECT_TRUE(seen.garbage_rows);
  EXPECT_NE(seen.event_reasons & 0x20, 0u);
  EXPECT_GT(seen.sw_thermal_ns, 0);
  EXPECT_FALSE(reader->is_lost(0, now));
  EXPECT_TRUE(reader->is_lost(1, now));
  EXPECT_TRUE(reader->snapshot(1, now).lost);
  const auto xids = reader->xids(0, now);
  ASSERT_EQ(xids.size(), 1u);
  EXPECT_EQ(xids[0].code, 79u);
  EXPECT_EQ(reader->instant_of(reader->timestamp_us(now)) / kSecond, (now - 60 * kSecond) / kSecond);
  EXPECT_EQ(reader->call_fault("nvmlDeviceGetFanSpeed", 0, now).error, 4);
  EXPECT_EQ(reader->call_fault("nvmlDeviceGetFanSpeed_v2", 0, now).error, 0);
  EXPECT_TRUE(reader->symbol_missing("nvmlGpmSampleGet"));
}

TEST(Box, AContextThatLivedThroughALossStaysBroken) {
  BoxOptions options;
  options.plan = *plan_of_names("T4");
  options.faults =
      *parse_faults("[[fault]]\nkind='lost'\nat='first-context'\nafter=0.05\nfor=0.05\n", "f", options.plan);
  const auto box = Box::create(options);
  ASSERT_TRUE(box);
  const auto client = attach(*box);
  ASSERT_EQ(client->launch(0, 10 * kSecond, 1000), 0);
  EXPECT_EQ(client->synchronize(0), HEADROOM_SIM_DEVICE_LOST);
  sleep_for(70 * kMillisecond);
  EXPECT_EQ(client->launch(0, 1000, 1000), HEADROOM_SIM_DEVICE_LOST) << "the device is back, this context is not";
  EXPECT_EQ(client->destroy_context(0), 0);
  EXPECT_EQ(client->launch(0, 1000, 1000), 0);
}

// Makes a box in another process and says where it is. (Sweeping opens every `alive` file, so the process that sweeps
// must own no box.)
std::string box_of(const Process&, int pipe) {
  char path[256] = {};
  EXPECT_GT(::read(pipe, path, sizeof path - 1), 0);
  return path;
}

TEST(Box, StaleBoxesAreSweptAndLivingOnesAreNot) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const auto own_a_box = [&]() -> int {
    const Box box = make_box("T4");
    (void)!::write(ends[1], box.directory().c_str(), box.directory().size());
    for (;;) ::pause();
  };
  Process dead(own_a_box);
  const std::string dead_box = box_of(dead, ends[0]);
  Process living(own_a_box);
  const std::string living_box = box_of(living, ends[0]);
  dead.end(SIGKILL);
  sweep_stale_boxes();  // a simulator that starts elsewhere at this moment may be faster
  EXPECT_FALSE(std::filesystem::exists(dead_box));
  EXPECT_TRUE(std::filesystem::exists(living_box + "/model"));
  living.end(SIGKILL);
  sweep_stale_boxes();
}

}  // namespace
}  // namespace headroom::sim
