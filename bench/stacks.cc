// SPDX-License-Identifier: Apache-2.0
// What reading Python stacks costs, as JSON.
//   bench_stacks cost PYTHON TICKS FILE     CPU time per sample of small programs at 20 Hz, and what a tree of 10
//   stores bench_stacks watch PID HZ SECONDS       reads in every other second; prints the seconds in which it did
//   (CLOCK_MONOTONIC)
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/time.h"
#include "model/losses.h"
#include "python/stack_reader.h"
#include "record/writer.h"

namespace {

using namespace headroom;

constexpr const char* kTwoAsleep = R"(
import threading, time
threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
time.sleep(1000)
)";
constexpr const char* kTwoBusy = R"(
import threading
def leaf(x): return x + 1
def twig(x): return leaf(x) + leaf(x)
def branch():
    while True:
        for i in range(100): twig(i)
def under(n, run):
    if n > 0: under(n - 1, run)
    else: run()
threading.Thread(target=under, args=(10, branch), daemon=True).start()
under(15, branch)
)";
// A main process that computes and waits in turn, and nine workers that do likewise, each with a second thread.
constexpr const char* kTree = R"(
import os, threading, time
def leaf(x): return x + 1
def decode(i):
    for k in range(200): leaf(k)
def collate(i):
    return [leaf(x) for x in range(300)]
def forward(i):
    for k in range(300): leaf(k)
def work(wait, kinds):
    i = 0
    while True:
        i += 1
        kinds[i % len(kinds)](i)
        time.sleep(wait)
def under(n, *rest):
    if n > 0: under(n - 1, *rest)
    else: work(*rest)
def start():
    for w in range(9):
        if os.fork() == 0:
            threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
            under(10, 0.003 + w / 1000, [decode, collate])
    threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
    under(15, 0.001, [forward, collate, decode])
start()
)";

class Target {
 public:
  Target(const char* python, const char* code) : pid_(::fork()) {
    if (pid_ != 0) return;
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::execl(python, python, "-c", code, static_cast<char*>(nullptr));
    ::_exit(127);
  }
  ~Target() {
    ::kill(-pid_, SIGKILL);
    while (::waitpid(-1, nullptr, 0) > 0) {
    }
  }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

void sleep_for(Nanos time) { ::usleep(static_cast<useconds_t>(time / kMicrosecond)); }

struct Cost {
  double median_us = 0, mean_us = 0, core_percent = 0;
  std::size_t rows = 0, lists = 0;
  std::int64_t rejected = 0;
};

constexpr Nanos kInterval = 50 * kMillisecond;

Cost measure(const Target& target, int ticks, std::size_t processes) {
  python::StackReader reader({.pids = {target.pid()}});
  MemorySink sink;
  for (int i = 0; i < 200 && reader.processes() < processes; ++i) {
    sleep_for(kInterval);
    reader.read(boottime_now(), sink);
  }
  const auto rows = [&] {
    std::size_t sum = 0;
    for (const Track& track : sink.recording().tracks) sum += track.lists.size();
    return sum;
  };
  for (int i = 0; i < 20; ++i) {  // names are read once
    sleep_for(kInterval);
    reader.read(boottime_now(), sink);
  }
  const std::size_t before = rows();
  std::vector<Nanos> costs;
  for (int i = 0; i < ticks; ++i) {
    sleep_for(kInterval);
    const Nanos begin = thread_cpu_now();
    reader.read(boottime_now(), sink);
    costs.push_back(thread_cpu_now() - begin);
  }
  Nanos sum = 0;
  for (const Nanos cost : costs) sum += cost;
  std::sort(costs.begin(), costs.end());
  Cost cost;
  cost.median_us = static_cast<double>(costs[costs.size() / 2]) / 1e3;
  cost.mean_us = static_cast<double>(sum) / static_cast<double>(costs.size()) / 1e3;
  cost.core_percent = 100 * static_cast<double>(sum) / static_cast<double>(costs.size()) / kInterval;
  cost.rows = rows() - before;
  cost.lists = sink.recording().lists.size();
  for (const Loss& loss : sink.recording().losses)
    if (loss.what == info(LossKind::kStackRejected).name) cost.rejected = loss.count;
  return cost;
}

// Bytes of a file in which only the stacks of a tree of 10 are.
void store(const Target& target, int ticks, const std::string& path) {
  const auto size = [&] { return static_cast<double>(std::filesystem::file_size(path)); };
  std::filesystem::remove(path);
  auto writer = Writer::create(path, {});
  if (!writer) return;
  python::StackReader reader({.pids = {target.pid()}});
  const Nanos cpu = process_cpu_now(), begin = boottime_now();
  for (int i = 0; i < ticks; ++i) {
    sleep_for(kInterval);
    reader.read(boottime_now(), **writer);
  }
  const double seconds_read = seconds(boottime_now() - begin);
  if (!(*writer)->close()) return;
  fmt::print("  \"stored\": {{\"seconds\": {:.1f}, \"bytes\": {:.0f}, \"cpu_percent_with_storing\": {:.3f}}},\n",
             seconds_read, size(), 100 * seconds(process_cpu_now() - cpu) / seconds_read);
}

int cost(const char* python, int ticks, const char* path) {
  fmt::print("{{\n");
  const auto print = [](const char* name, const Cost& cost) {
    fmt::print(
        "  \"{}\": {{\"median_us\": {:.1f}, \"mean_us\": {:.1f}, \"core_percent\": {:.3f}, \"rows\": {}, "
        "\"stacks\": {}, \"rejected\": {}}},\n",
        name, cost.median_us, cost.mean_us, cost.core_percent, cost.rows, cost.lists, cost.rejected);
  };
  print("two_asleep", measure(Target(python, kTwoAsleep), ticks, 1));
  print("two_busy", measure(Target(python, kTwoBusy), ticks, 1));
  {
    const Target tree(python, kTree);
    print("tree_of_10", measure(tree, ticks, 10));
    store(tree, ticks, path);
  }
  fmt::print("  \"ticks\": {}\n}}\n", ticks);
  return 0;
}

int watch(std::int64_t pid, int hz, int seconds_total) {
  python::StackReader reader({.pids = {pid}});
  MemorySink sink;
  fmt::print("[");
  for (int i = 0; i < seconds_total; ++i) {
    const Nanos begin = monotonic_now(), end = begin + kSecond;
    if (i % 2 == 0) {
      sleep_for(kSecond);
      continue;
    }
    for (Nanos next = begin; monotonic_now() < end; next += kSecond / hz) {
      reader.read(boottime_now(), sink);
      sleep_for(std::max<Nanos>(next + kSecond / hz - monotonic_now(), 0));
    }
    fmt::print("{}[{}, {}]", i > 1 ? ", " : "", begin, end);
  }
  fmt::print("]\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "cost" && argc == 5) return cost(argv[2], std::atoi(argv[3]), argv[4]);
  if (what == "watch" && argc == 5) return watch(std::atoll(argv[2]), std::atoi(argv[3]), std::atoi(argv[4]));
  fmt::print(stderr, "usage: bench_stacks cost PYTHON TICKS FILE | watch PID HZ SECONDS\n");
  return 2;
}
