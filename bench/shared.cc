// SPDX-License-Identifier: Apache-2.0
// A batch of many workers, simulated: the folder and the code that shares its work are the product's, on a file system
// of this machine; nodes, tasks, the time and their deaths are made up. How near the makespan comes to what these nodes
// could have done, how often the folder is asked for something, and whether each task ran once.
//   bench_shared FOLDER [TASKS [NODES [SEED]]]   10,000 tasks on 200 nodes of 4 GPUs, seed 1; FOLDER must not exist
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "batch/shared_work.h"

// Every call by which the code that shares work asks the file system for a file, counted by the linker's --wrap; lists
// of folders are not.
namespace {
std::int64_t calls = 0;
}
// NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,readability-identifier-naming)
extern "C" {
int __real_rename(const char* from, const char* to);
int __wrap_rename(const char* from, const char* to) { return ++calls, __real_rename(from, to); }
int __real_link(const char* from, const char* to);
int __wrap_link(const char* from, const char* to) { return ++calls, __real_link(from, to); }
int __real_unlink(const char* path);
int __wrap_unlink(const char* path) { return ++calls, __real_unlink(path); }
int __real_rmdir(const char* path);
int __wrap_rmdir(const char* path) { return ++calls, __real_rmdir(path); }
int __real_mkdir(const char* path, mode_t mode);
int __wrap_mkdir(const char* path, mode_t mode) { return ++calls, __real_mkdir(path, mode); }
int __real_stat(const char* path, struct stat* info);
int __wrap_stat(const char* path, struct stat* info) { return ++calls, __real_stat(path, info); }
int __real_lstat(const char* path, struct stat* info);
int __wrap_lstat(const char* path, struct stat* info) { return ++calls, __real_lstat(path, info); }
int __real_open(const char* path, int flags, mode_t mode);
int __wrap_open(const char* path, int flags, mode_t mode) { return ++calls, __real_open(path, flags, mode); }
}
// NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,readability-identifier-naming)

namespace headroom::batch {
namespace {

constexpr std::size_t kSlots = 4;           // GPUs of a node, a task on each
constexpr Nanos kAnswers = 60 * kSecond;    // the controller: so long after it was asked the first nodes begin
constexpr Nanos kAllThere = 180 * kSecond;  // after the first one, the last one begins
constexpr double kDie = 0.05;               // of the nodes, at any time, for good
constexpr Nanos kBegin = 1'700'000'000 * kSecond;

struct Plan {
  std::vector<TaskSpec> tasks;
  std::map<std::string, Nanos> length;
  double work = 0;  // node-slots x seconds
  Nanos longest = 0;
};

Plan plan_of(std::size_t count, std::mt19937_64& random) {
  std::lognormal_distribution<double> lengths(std::log(480.0), 0.7);  // seconds: 10 minutes on average
  Plan plan;
  for (std::size_t i = 0; i < count; ++i) {
    TaskSpec task;
    task.name = fmt::format("task-{}", i);
    task.identity = task.name;
    const auto length = static_cast<Nanos>(lengths(random) * kSecond);
    plan.length[task.name] = length;
    plan.work += seconds(length);
    plan.longest = std::max(plan.longest, length);
    plan.tasks.push_back(std::move(task));
  }
  return plan;
}

enum class What { kBegins, kTaskEnds, kAsks, kBeats, kDies };
struct Event {
  Nanos at = 0;
  What what = What::kBegins;
  std::size_t node = 0;
  std::string piece;
  bool operator>(const Event& other) const { return at > other.at; }
};

struct Node {
  std::unique_ptr<SharedWork> work;
  Nanos begin = 0, dies = 0;                   // 0: it does not
  bool gone = false, open = true;              // open: it asks for more
  std::map<std::string, std::string> running;  // piece, task
  std::deque<SharedWork::Piece> ready;
};

class Simulation {
 public:
  Simulation(std::string folder, Plan plan, std::size_t nodes, std::mt19937_64& random)
      : folder_(std::move(folder)), plan_(std::move(plan)), nodes_(nodes) {
    std::uniform_real_distribution<double> any(0, 1);
    const auto usual = static_cast<Nanos>(plan_.work / static_cast<double>(nodes * kSlots) * kSecond);
    for (std::size_t i = 0; i < nodes; ++i) {
      nodes_[i].begin = kBegin + kAnswers + static_cast<Nanos>(any(random) * static_cast<double>(kAllThere));
      push({nodes_[i].begin, What::kBegins, i, ""});
      if (any(random) >= kDie) continue;
      nodes_[i].dies = nodes_[i].begin + static_cast<Nanos>(any(random) * static_cast<double>(usual));
      push({nodes_[i].dies, What::kDies, i, ""});
    }
  }

  bool run() {
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      now_ = event.at;
      Node& node = nodes_[event.node];
      if (!node.gone) happens(event, node);
    }
    return failed_.empty();
  }

  void tell(double wall) const {
    std::size_t dead = 0, again = 0, never = 0;
    for (const Node& node : nodes_) dead += node.dies > 0 && node.dies < last_end_ ? 1U : 0U;
    for (const auto& [task, length] : plan_.length) {
      const auto runs = runs_.find(task);
      never += ended_.contains(task) ? 0U : 1U;
      again += runs != runs_.end() && runs->second > 1 ? 1U : 0U;
    }
    const double span = seconds(last_end_ - kBegin);
    fmt::print("tasks {}, nodes {} of {} GPUs, {} of them died; SIMULATED\n", plan_.length.size(), nodes_.size(),
               kSlots, dead);
    fmt::print("makespan_seconds {:.0f}\nlower_bound_seconds {:.0f}\n", span, lower_bound());
    fmt::print("one_queue_seconds {:.0f}\n", one_queue());
    fmt::print("never_ran {}\nran_again {}\nlost_with_their_node {}\n", never, again, lost_);
    fmt::print("calls_per_second {:.1f}\ncalls_per_task {:.1f}\n", static_cast<double>(calls) / span,
               static_cast<double>(calls) / static_cast<double>(plan_.length.size()));
    fmt::print("wall_seconds {:.1f}\n", wall);
    if (!failed_.empty()) fmt::print("failed: {}\n", failed_);
  }

 private:
  void push(Event event) { events_.push(std::move(event)); }

  void happens(const Event& event, Node& node) {
    switch (event.what) {
      case What::kBegins:
        return begins(event.node, node);
      case What::kTaskEnds:
        return ends(event, node);
      case What::kAsks:
        return asks(event.node, node);
      case What::kBeats:
        check(node.work->beat());
        return push({now_ + kBeat, What::kBeats, event.node, ""});
      case What::kDies:
        lost_ += node.running.size();
        node.gone = true;
    }
  }

  void begins(std::size_t index, Node& node) {
    auto work = SharedWork::open(
        folder_, {.name = fmt::format("n{}.j1", index), .started_by = "slurm 1", .now = [this] { return now_; }},
        plan_.tasks);
    if (!work) return check(tl::unexpected(work.error()));
    node.work = std::make_unique<SharedWork>(std::move(*work));
    push({now_ + kBeat, What::kBeats, index, ""});
    asks(index, node);
  }

  // As a worker's feeder does: what runs, and about as much again that can begin at once.
  void asks(std::size_t index, Node& node) {
    for (;;) {
      while (node.running.size() < kSlots && !node.ready.empty()) {
        const SharedWork::Piece piece = std::move(node.ready.front());
        node.ready.pop_front();
        const std::string& task = piece.tasks.front().name;
        node.running[piece.name] = task;
        ++runs_[task];
        push({now_ + plan_.length.at(task), What::kTaskEnds, index, piece.name});
      }
      if (!node.open && node.running.empty()) return leaves(node);
      if (!node.open || node.ready.size() >= node.work->ahead(kSlots)) return;
      auto piece = node.work->claim();
      if (!piece) return check(tl::unexpected(piece.error()));
      if (*piece) {
        node.ready.push_back(std::move(**piece));
        continue;
      }
      node.open = node.work->somebody_is_silent();
      if (node.open) return push({now_ + node.work->patience(), What::kAsks, index, ""});
    }
  }

  static void leaves(Node& node) {
    node.work->leave();
    node.gone = true;
  }

  void ends(const Event& event, Node& node) {
    const auto task = node.running.extract(event.piece);
    const auto ours = node.work->finish(event.piece, {.succeeded = {task.mapped()}, .failed = {}});
    if (!ours) return check(tl::unexpected(ours.error()));
    if (*ours) ended_.insert(task.mapped());
    last_end_ = now_;
    asks(event.node, node);
  }

  void check(const Result<void>& done) {
    if (!done && failed_.empty()) failed_ = done.error().what;
  }

  // With the nodes that there were for as long as they lived, all of them at work all the time.
  [[nodiscard]] double lower_bound() const {
    const auto could = [&](Nanos until) {
      double work = 0;
      for (const Node& node : nodes_) {
        const Nanos end = node.dies > 0 ? std::min(until, node.dies) : until;
        work += kSlots * std::max(0.0, seconds(end - node.begin));
      }
      return work;
    };
    Nanos low = kBegin, high = last_end_;
    while (high - low > kSecond) (could((low + high) / 2) < plan_.work ? low : high) = (low + high) / 2;
    return std::max(seconds(high - kBegin), seconds(kAnswers + plan_.longest));
  }

  // One scheduler that sees all nodes, takes the tasks in their order and knows of each death at once.
  [[nodiscard]] double one_queue() const {
    using Slot = std::pair<Nanos, Nanos>;  // when it is free; when its node dies
    std::priority_queue<Slot, std::vector<Slot>, std::greater<>> slots;
    for (const Node& node : nodes_)
      for (std::size_t i = 0; i < kSlots; ++i)
        slots.emplace(node.begin, node.dies > 0 ? node.dies : std::numeric_limits<Nanos>::max());
    std::deque<Nanos> lengths;
    for (const TaskSpec& task : plan_.tasks) lengths.push_back(plan_.length.at(task.name));
    Nanos last = kBegin;
    while (!lengths.empty()) {
      const auto [free, dies] = slots.top();
      slots.pop();
      if (free >= dies) continue;
      const Nanos length = lengths.front();
      lengths.pop_front();
      if (free + length > dies)
        lengths.push_front(length);  // again, as soon as it is known: a little too soon
      else
        slots.emplace(free + length, dies), last = std::max(last, free + length);
    }
    return seconds(last - kBegin);
  }

  std::string folder_;
  Plan plan_;
  std::vector<Node> nodes_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  Nanos now_ = kBegin, last_end_ = kBegin;
  std::map<std::string, int> runs_;
  std::set<std::string> ended_;
  std::size_t lost_ = 0;
  std::string failed_;
};

}  // namespace
}  // namespace headroom::batch

int main(int argc, char** argv) {
  using namespace headroom::batch;
  if (argc < 2 || std::filesystem::exists(argv[1])) {
    fmt::print(stderr, "usage: bench_shared FOLDER [TASKS [NODES [SEED]]]; FOLDER must not exist\n");
    return 2;
  }
  const auto number = [&](int at, std::size_t usual) {
    return argc > at ? std::strtoul(argv[at], nullptr, 10) : usual;
  };
  std::mt19937_64 random(number(4, 1));
  const auto begin = std::chrono::steady_clock::now();
  Simulation simulation(argv[1], plan_of(number(2, 10'000), random), number(3, 200), random);
  const bool done = simulation.run();
  simulation.tell(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  std::filesystem::remove_all(argv[1]);
  return done ? 0 : 1;
}
