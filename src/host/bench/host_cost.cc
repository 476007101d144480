// SPDX-License-Identifier: Apache-2.0
// What reading the host costs: host_cost [TICKS [INTERVAL_MS [WARM_UP_TICKS [SIZE]]]]. Forks trees of 1, 32 and 200
// processes (or of SIZE) that sleep or that wake ten times a second, reads them at the interval, and prints the CPU
// time per tick. New processes cost more for the first dozen ticks: their facts are read twice. Rows go nowhere:
// storing them is another layer's cost.
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <map>
#include <vector>

#include "host/host_reader.h"
#include "host/tree_reader.h"

namespace {

using namespace headroom;

class NullSink final : public RecordingSink {
 public:
  SourceId add_source(const Source& source) override {
    return ids_.try_emplace({source.kind, source.key}, static_cast<SourceId>(ids_.size())).first->second;
  }
  void add_row(SourceId /*source*/, Nanos /*at*/, std::span<const Cell> cells) override { cells_ += cells.size(); }
  TextId intern(std::string_view /*text*/) override { return 0; }
  ListId intern_list(std::span<const TextId> /*texts*/) override { return 0; }
  void add_list_row(SourceId /*source*/, const ListRow& /*row*/) override {}
  void add_event(const Event& /*event*/) override {}
  void add_loss(const Loss& /*loss*/) override {}
  void set_meta(const RecordingMeta& /*meta*/) override {}
  [[nodiscard]] std::size_t cells() const { return cells_; }

 private:
  std::map<std::pair<SourceKind, std::string>, SourceId> ids_;
  std::size_t cells_ = 0;
};

enum class Load { kAsleep, kWaking };

[[noreturn]] void work(Load load, pid_t parent) {
  constexpr useconds_t kTenth = 100'000;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(0);  // which had died by then
  for (;;) {
    if (load == Load::kAsleep)
      ::pause();
    else
      ::usleep(kTenth);
  }
}

// A tree of `size` processes below one child of ours; returns its pid.
pid_t start_tree(int size, Load load) {
  const pid_t above = ::getpid(), root = ::fork();
  if (root != 0) return root;
  const pid_t self = ::getpid();
  for (int i = 1; i < size; ++i)
    if (::fork() == 0) work(load, self);
  work(load, above);
}

struct Cost {
  std::vector<Nanos> ticks;
  void print(const char* what, Nanos interval) {
    std::sort(ticks.begin(), ticks.end());
    Nanos sum = 0;
    for (const Nanos tick : ticks) sum += tick;
    const double mean = static_cast<double>(sum) / static_cast<double>(ticks.size());
    fmt::print("  {:<6} median {:7.1f} us  mean {:7.1f} us  max {:7.1f} us  {:.4f} % of a core\n", what,
               static_cast<double>(ticks[ticks.size() / 2]) / 1e3, mean / 1e3, static_cast<double>(ticks.back()) / 1e3,
               100 * mean / static_cast<double>(interval));
  }
};

void measure(int size, Load load, int ticks, int warm_up, Nanos interval) {
  const pid_t root = start_tree(size, load);
  host::TreeOptions options;
  options.pids = {root};
  options.recorder_pid = ::getpid();
  options.recorder_is_subreaper = true;
  host::TreeReader tree(options);
  host::HostReader machine({"", root});
  NullSink sink;
  constexpr useconds_t kSettle = 300'000;
  ::usleep(kSettle);
  for (int i = 0; i < warm_up; ++i) {
    tree.read(boottime_now(), sink);
    machine.read(boottime_now(), sink);
    ::usleep(static_cast<useconds_t>(interval / kMicrosecond));
  }
  const std::size_t warm_cells = sink.cells();
  Cost tree_cost, machine_cost;
  for (int i = 0; i < ticks; ++i) {
    ::usleep(static_cast<useconds_t>(interval / kMicrosecond));
    const Nanos at = boottime_now(), begin = thread_cpu_now();
    tree.read(at, sink);
    const Nanos middle = thread_cpu_now();
    machine.read(at, sink);
    machine_cost.ticks.push_back(thread_cpu_now() - middle);
    tree_cost.ticks.push_back(middle - begin);
  }
  fmt::print("{} processes, {}: {} found, {:.0f} cells a tick\n", size, load == Load::kAsleep ? "asleep" : "waking",
             tree.size(), static_cast<double>(sink.cells() - warm_cells) / ticks);
  tree_cost.print("tree", interval);
  machine_cost.print("host", interval);
  ::kill(root, SIGKILL);
  while (::waitpid(-1, nullptr, 0) > 0) {
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int ticks = argc > 1 ? std::max(1, std::atoi(argv[1])) : 20;
  const Nanos interval = (argc > 2 ? std::max(1, std::atoi(argv[2])) : 1000) * kMillisecond;
  const int warm_up = argc > 3 ? std::max(1, std::atoi(argv[3])) : 2;
  const std::vector<int> sizes =
      argc > 4 ? std::vector<int>{std::max(1, std::atoi(argv[4]))} : std::vector<int>{1, 32, 200};
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  for (const int size : sizes)
    for (const Load load : {Load::kAsleep, Load::kWaking}) measure(size, load, ticks, warm_up, interval);
  return 0;
}
