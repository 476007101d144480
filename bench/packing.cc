// SPDX-License-Identifier: Apache-2.0
// The batch planner on simulated workloads: relative speed against the best fixed concurrency found by trying (told the
// true memory and lengths), out-of-memory, waste; makespans against the lower bound on skewed sets; noise and decision
// intervals; the planner's own cost. Everything but the cost is simulated.
//   bench_packing [SEEDS [FIRST]]       8 seeds from 700, on which no constant was chosen
//   bench_packing --end [SEEDS [FIRST]] how often the end lay where it was expected; 3 seeds from 500
//   bench_packing --batches [COUNT [FIRST]] the same of mixed batches, with failures and additions; 100 from 100
//   bench_packing --short [SEEDS [FIRST]]  only the batch of tasks of two seconds
//   bench_packing --grid [SEEDS [FIRST]]   first batches by length, busy share, number and cores; 3 seeds from 900
//   bench_packing --trace FAMILY SEED   one run, a line every ten simulated seconds
#include <fmt/format.h>
#include <malloc.h>

#include <chrono>
#include <cstdlib>
#include <string_view>

#include "scheduler/testing/families.h"
#include "scheduler/testing/fixed_concurrency.h"

namespace headroom::scheduler::families {
namespace {

struct Row {
  double k = 0, bound = 0, one = 0, four = 0, eight = 0, steps = 0, shares = 0, worst = 9;
  double ooms = 0, waste = 0, turns = 0;
  bool slower_than_one = false;
};

Row measure(const Family& family, std::uint64_t first, int seeds) {
  Row row;
  const double n = seeds;
  for (std::uint64_t seed = first; seed < first + static_cast<std::uint64_t>(seeds); ++seed) {
    std::map<int, double> fixed;
    Best best;
    for (const int k : {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24}) {
      fixed[k] = FixedRun(family, seed, k, Order::kLongestFirst).run().makespan;
      if (best.makespan == 0 || fixed[k] < best.makespan) best = {k, fixed[k]};
    }
    const RunResult steps = run_planner(family, seed);
    const RunResult shares = run_planner(family, seed, {.signals = Signals::kShares});
    row.k += best.k / n;
    row.bound += lower_bound(family, tasks_of(family, seed)) / best.makespan / n;
    row.one += best.makespan / fixed[1] / n;
    row.four += best.makespan / fixed[4] / n;
    row.eight += best.makespan / fixed[8] / n;
    row.steps += best.makespan / steps.makespan / n;
    row.shares += best.makespan / shares.makespan / n;
    row.worst = std::min(row.worst, best.makespan / steps.makespan);
    row.ooms += static_cast<double>(steps.ooms) / n;
    row.waste = std::max(row.waste, steps.waste);
    row.turns += steps.direction_changes / n;
    row.slower_than_one = row.slower_than_one || steps.makespan > fixed[1];
  }
  return row;
}

void print_families(std::uint64_t first, int seeds) {
  fmt::print("relative speed = best fixed concurrency's makespan / makespan; simulated; {} seeds from {}\n", seeds,
             first);
  fmt::print("{:<15}{:>7}{:>10}{:>6}{:>6}{:>6}{:>8}{:>8}{:>7}{:>6}{:>8}{:>7}\n", "family", "best k", "LB/best", "k1",
             "k4", "k8", "planner", "(util)", "worst", "OOMs", "waste %", "turns");
  double logs = 0, logs_shares = 0, lowest = 9;
  int count = 0;
  for (const Family& family : all_families()) {
    const Row row = measure(family, first, seeds);
    fmt::print("{:<15}{:>7.1f}{:>10.2f}{:>6.2f}{:>6.2f}{:>6.2f}{:>8.3f}{:>8.3f}{:>7.2f}{:>6.1f}{:>8.2f}{:>7.1f}{}\n",
               family.name, row.k, row.bound, row.one, row.four, row.eight, row.steps, row.shares, row.worst, row.ooms,
               100 * row.waste, row.turns, row.slower_than_one ? "  slower than one per GPU" : "");
    logs += std::log(row.steps), logs_shares += std::log(row.shares), ++count;
    lowest = std::min(lowest, row.steps);
  }
  fmt::print("geomean {:.3f} with steps, {:.3f} with utilisation and CPU time; lowest family {:.3f}\n\n",
             std::exp(logs / count), std::exp(logs_shares / count), lowest);
}

void print_skew(std::uint64_t first, int seeds) {
  fmt::print(
      "lower bound / makespan; simulated; FIFO, round robin and longest first at their best fixed concurrency\n");
  fmt::print("{:<12}{:>5}{:>7}{:>13}{:>15}{:>18}{:>16}{:>22}\n", "set", "GPUs", "FIFO", "round robin", "longest first",
             "planner, unknown", "planner, known", "known, wrong by 20 %");
  const std::vector<int> ks{1, 2, 3, 4, 5, 6, 8};
  for (const int gpus : {2, 4, 8}) {
    for (const Family& family : {skewed(gpus), heavy_tailed(gpus)}) {
      double sums[6] = {};
      for (std::uint64_t seed = first; seed < first + static_cast<std::uint64_t>(seeds); ++seed) {
        const double bound = lower_bound(family, tasks_of(family, seed)) / seeds;
        sums[0] += bound / best_fixed(family, seed, ks, Order::kAsGiven).makespan;
        sums[1] += bound / best_fixed(family, seed, ks, Order::kRoundRobin).makespan;
        sums[2] += bound / best_fixed(family, seed, ks, Order::kLongestFirst).makespan;
        sums[3] += bound / run_planner(family, seed).makespan;
        sums[4] += bound / run_planner(family, seed, {.lengths_known = true}).makespan;
        sums[5] += bound / run_planner(family, seed, {.lengths_known = true, .length_error_cv = 0.2}).makespan;
      }
      fmt::print("{:<12}{:>5}{:>7.2f}{:>13.2f}{:>15.2f}{:>18.2f}{:>16.2f}{:>22.2f}\n", family.name, gpus, sums[0],
                 sums[1], sums[2], sums[3], sums[4], sums[5]);
    }
  }
  fmt::print("\n");
}

// Geomean over all families, each seed against the best fixed concurrency of the same noise.
double geomean(std::uint64_t first, int seeds, const RunOptions& options, double* lowest) {
  double logs = 0;
  int count = 0;
  *lowest = 9;
  for (const Family& family : all_families()) {
    double relative = 0;
    for (std::uint64_t seed = first; seed < first + static_cast<std::uint64_t>(seeds); ++seed) {
      const double best =
          best_fixed(family, seed, {2, 3, 4, 5, 6, 8, 10, 12, 16, 20}, Order::kLongestFirst, options.noise).makespan;
      relative += best / run_planner(family, seed, options).makespan / seeds;
    }
    logs += std::log(relative), ++count;
    *lowest = std::min(*lowest, relative);
  }
  return std::exp(logs / count);
}

void print_sensitivity(std::uint64_t first, int seeds) {
  fmt::print("sensitivity; simulated; geomean over the families and lowest family; {} seeds from {}\n", seeds, first);
  fmt::print("{:<22}{:>14}{:>14}{:>14}\n", "noise, decision every", "2 s", "5 s", "10 s");
  for (const double noise : {0.05, 0.20}) {
    fmt::print("{:<22}", fmt::format("{:.0f} %", 100 * noise));
    for (const int every : {2, 5, 10}) {
      double lowest = 0;
      const double all = geomean(first, seeds, {.noise = noise, .decide_every = every * kSecond}, &lowest);
      fmt::print("{:>14}", fmt::format("{:.3f} / {:.2f}", all, lowest));
    }
    fmt::print("\n");
  }
  fmt::print("\n");
}

// Tasks of two seconds, read twice a second.
void print_short(std::uint64_t first, int seeds) {
  const Family family = short_tasks();
  const double n = seeds;
  double relative = 0, worst = 9, makespan = 0, k = 0;
  for (std::uint64_t seed = first; seed < first + static_cast<std::uint64_t>(seeds); ++seed) {
    const Best best = best_fixed(family, seed, {3, 4, 5, 6, 8, 12}, Order::kAsGiven);
    const double ours = run_planner(family, seed, {.signals = Signals::kShares, .read_every = kSecond / 2}).makespan;
    relative += best.makespan / ours / n, worst = std::min(worst, best.makespan / ours);
    makespan += ours / n, k += best.k / n;
  }
  fmt::print(
      "{} tasks of two seconds: best k {:.1f}, of its speed {:.3f}, worst seed {:.2f}; ours {:.1f} s; simulated\n\n",
      tasks_of(family, first).size(), k, relative, worst, makespan);
}

// As people begin them: nothing known; then once more, with what the first left.
void print_first(std::uint64_t first, int seeds) {
  const double n = seeds;
  for (const Family& family : first_batches()) {
    double ours = 0, again = 0, makespan = 0, k = 0, worst = 9;
    for (std::uint64_t seed = first; seed < first + static_cast<std::uint64_t>(seeds); ++seed) {
      const Best best = best_fixed(family, seed, {1, 2, 3, 4, 5, 6, 8, 12, 16}, Order::kAsGiven);
      const RunOptions options{.signals = Signals::kShares, .read_every = kSecond / 2, .by_looks = true};
      RunOptions known = options;
      known.lengths_known = true;
      const double one = best.makespan / run_planner(family, seed, options).makespan;
      ours += one / n, worst = std::min(worst, one), makespan += best.makespan / n, k += best.k / n;
      again += best.makespan / run_planner(family, seed, known).makespan / n;
    }
    fmt::print("{:<18} best k {:>4.1f} {:>6.1f} s; of its speed {:.3f}, worst seed {:.2f}; known {:.3f}\n", family.name,
               k, makespan, ours, worst, again);
  }
}

// The makespan over that of the best fixed concurrency, which is k.
std::string grid_cell(const Family& family, std::uint64_t first, int seeds) {
  double ratio = 0, k = 0;
  for (std::uint64_t seed = first; seed < first + static_cast<std::uint64_t>(seeds); ++seed) {
    const Best best = best_fixed(family, seed, {1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24}, Order::kAsGiven);
    const RunOptions options{.signals = Signals::kShares, .read_every = kSecond / 2, .by_looks = true};
    ratio += run_planner(family, seed, options).makespan / best.makespan / seeds, k += 1.0 * best.k / seeds;
  }
  return fmt::format("{:.2f}{} (k{:.0f})", ratio, ratio > 1.1 ? "*" : " ", k);
}

// Of first batches of equal tasks; the mean of the seeds.
void print_grid(std::uint64_t first, int seeds) {
  fmt::print("makespan / that of the best fixed concurrency (k); simulated; {} seeds from {}\n", seeds, first);
  fmt::print("{:>6} {:>6} {:>5}", "s", "tasks", "cores");
  for (const double busy : kFirstBusy) fmt::print("{:>14}", fmt::format("{:.0f} % busy", 100 * busy));
  fmt::print("\n");
  for (const double length : kFirstLengths) {
    for (const int count : kFirstCounts) {
      for (const double cores : kFirstCores) {
        fmt::print("{:>6} {:>6} {:>5}", length, count, cores);
        for (const double busy : kFirstBusy)
          fmt::print("{:>14}", grid_cell(first_batch(length, busy, count, cores), first, seeds));
        fmt::print("\n");
      }
    }
  }
}

void print_trace(const Family& family, std::uint64_t seed, RunOptions options, int every) {
  int reading = 0;
  options.watch = [&](Nanos now, const Planner& planner) {
    if (reading++ % every != 0) return;
    fmt::print("{:>6.1f} s {:>5} ready", seconds(now), planner.counts().ready);
    for (int g = 0; g < family.gpus; ++g) {
      const GpuView gpu = planner.gpu(g);
      fmt::print(" | {:>2} tasks load {:.2f} parallelism {:.2f} rate {:.2f} memory {:>3.0f} of {:.0f}",
                 gpu.running.size(), gpu.load, gpu.parallelism, gpu.predicted_rate,
                 static_cast<double>(gpu.counted_bytes) / 1e9, static_cast<double>(gpu.limit_bytes) / 1e9);
      if (gpu.max_load) fmt::print(" held at {:.2f}", *gpu.max_load);
    }
    fmt::print(" | {}\n", planner.why_waiting());
  };
  const RunResult run = run_planner(family, seed, options);
  fmt::print("{:.0f} s; lower bound {:.0f} s; {} out of memory; {:.1f} turns a GPU\n", run.makespan,
             lower_bound(family, tasks_of(family, seed)), run.ooms, run.direction_changes);
}

// From a tenth of the batch on, and before.
struct Ends {
  ExpectedEnd early, later;
  void add(const RunResult& run) { early.add(run, 0, 0.1), later.add(run, 0.1, 1); }
};

void print_end(std::string_view name, const Ends& ends) {
  fmt::print("{:<18}", name);
  for (const ExpectedEnd* end : {&ends.later, &ends.early})
    fmt::print("{:>7} looks, said {:>4.0f} %, held {:.2f}, {:.2f} sooner, high/low {:>5.2f}", end->looks,
               100.0 * static_cast<double>(end->said) / static_cast<double>(std::max<std::size_t>(1, end->looks)),
               end->held_share(),
               static_cast<double>(end->sooner) / static_cast<double>(std::max<std::size_t>(1, end->said)),
               end->usual_width());
  fmt::print("\n");
}

// The mean over the families of how often it held, so that long ones do not rule.
void print_ends_of_families(std::uint64_t first, int seeds, bool known) {
  double later = 0, early = 0, said_early = 0;
  Ends all;
  for (const Family& family : all_families()) {
    Ends own;
    for (std::uint64_t seed = first; seed < first + static_cast<std::uint64_t>(seeds); ++seed)
      for (const Signals signals : {Signals::kSteps, Signals::kShares, Signals::kCompletions}) {
        const RunResult run =
            run_planner(family, seed, {.signals = signals, .lengths_known = known, .expect_every = 5 * kSecond});
        own.add(run), all.add(run);
      }
    print_end(family.name, own);
    later += own.later.held_share();
    if (own.early.said > 0) early += own.early.held_share(), said_early += 1;
  }
  print_end("all looks", all);
  fmt::print("mean of the families: held {:.3f}; before a tenth {:.3f}\n\n",
             later / static_cast<double>(all_families().size()), early / std::max(1.0, said_early));
}

void print_ends_of_small_batches(std::uint64_t first, int seeds, bool known) {
  std::map<std::size_t, std::pair<std::string_view, Ends>> rows;
  for (std::uint64_t seed = first; seed < first + 20 * static_cast<std::uint64_t>(seeds); ++seed) {
    const std::vector<Family> families = small_batches(seed);
    for (std::size_t i = 0; i < families.size(); ++i)
      for (const Signals signals : {Signals::kSteps, Signals::kShares, Signals::kCompletions}) {
        rows[i].first = families[i].name;
        rows[i].second.add(
            run_planner(families[i], seed, {.signals = signals, .lengths_known = known, .expect_every = kSecond}));
      }
  }
  for (const auto& [i, row] : rows) print_end(row.first, row.second);
  fmt::print("\n");
}

void print_ends(std::uint64_t first, int seeds) {
  for (const bool known : {false, true}) {
    fmt::print("the end, lengths {}: from a tenth of the batch on | before; simulated; {} seeds from {}\n",
               known ? "known" : "not known", seeds, first);
    print_ends_of_small_batches(first, seeds, known);
    print_ends_of_families(first, seeds, known);
  }
}

// Early, in the middle, and in the last tenth; the mean over the batches, so that long ones do not rule. Read by
// bench/parts.py.
void print_batches(std::uint64_t first, int count) {
  struct Stretch {
    std::string_view name;
    double from, to, held = 0, said = 0, widths = 0, looks = 0, batches = 0;
  };
  Stretch parts[] = {{"early", 0, 0.2}, {"middle", 0.2, 0.9}, {"late", 0.9, 1}};
  double too_early = 0;
  for (std::uint64_t seed = first; seed < first + static_cast<std::uint64_t>(count); ++seed) {
    const MixedBatch batch = mixed_batch(seed);
    const RunResult run = run_planner(batch.family, seed, batch.options);
    for (Stretch& part : parts) {
      ExpectedEnd end;
      end.add(run, part.from, part.to);
      part.looks += static_cast<double>(end.looks), part.said += static_cast<double>(end.said);
      if (end.said == 0) continue;
      part.held += end.held_share(), part.widths += std::log(end.usual_width()), ++part.batches;
    }
    for (const auto& one : run.expected) too_early += one.said && one.ended == 0 ? 1 : 0;
  }
  for (const Stretch& part : parts)
    fmt::print("{:<7} held {:.3f} in {:.0f} batches, said {:.3f} of the time, high/low {:.2f}\n", part.name,
               part.held / std::max(1.0, part.batches), part.batches, part.said / std::max(1.0, part.looks),
               std::exp(part.widths / std::max(1.0, part.batches)));
  fmt::print("before the first task had ended: said {:.0f} times\n", too_early);
}

int trace(std::string_view name, std::uint64_t seed) {
  std::vector<Family> all = all_families();
  for (const Family& family : all) {
    if (family.name != name) continue;
    print_trace(family, seed, {}, 10);
    return 0;
  }
  for (const Family& family : first_batches())
    if (family.name == name)
      return print_trace(family, seed,
                         {.signals = Signals::kShares,
                          .lengths_known = std::getenv("KNOWN") != nullptr,
                          .read_every = kSecond / 2,
                          .by_looks = true},
                         1),
             0;
  if (double length = 0, busy = 0, cores = 0; name.starts_with("cell")) {
    int count = 0;
    if (std::sscanf(std::string(name).c_str(), "cell %lf %lf %d %lf", &length, &busy, &count, &cores) != 4) return 2;
    print_trace(first_batch(length, busy, count, cores), seed,
                {.signals = Signals::kShares, .read_every = kSecond / 2, .by_looks = true}, 1);
    return 0;
  }
  if (name == "skew") print_trace(skewed(2), seed, {.lengths_known = true}, 10);
  if (name == "short") print_trace(short_tasks(), seed, {.signals = Signals::kShares, .read_every = kSecond / 2}, 1);
  return name == "skew" || name == "short" ? 0 : 2;
}

enum class Requests { kSlots, kSame, kAllDifferent };

// Measured, not simulated: what the planner itself costs.
void print_cost(int count, Requests requests) {
  const auto bytes = [] { return static_cast<double>(mallinfo2().uordblks + mallinfo2().hblkhd); };
  constexpr std::int64_t kGib = 1 << 30;
  PlannerSetup setup;
  setup.slots = 16;
  setup.host.cores = 16;
  for (int g = 0; g < 4; ++g) setup.gpus.push_back({std::to_string(g), "Model", 80 * kGib});
  TasksAdded all;
  for (int i = 0; i < count; ++i) {
    PlannedTask& task = all.tasks.emplace_back();
    task.task = static_cast<TaskIndex>(i);
    task.resources.gpus = requests == Requests::kSlots ? 0 : 1;
    if (requests != Requests::kSlots)
      task.resources.gpu_memory_bytes = 16 * kGib + (requests == Requests::kAllDifferent ? i * 1024 : 0);
  }
  const double before = bytes();
  const auto begin = std::chrono::steady_clock::now();
  Planner planner(setup);
  std::vector<Action> actions = planner.handle(0, all);
  const auto added = std::chrono::steady_clock::now();
  const double after = bytes();
  std::vector<AttemptId> running;
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    for (const Action& action : actions)
      if (const auto* start = std::get_if<StartAttempt>(&action)) running.push_back(start->attempt);
    actions = planner.handle(static_cast<Nanos>(i), AttemptEnded{.attempt = running[i]});
  }
  const double total = std::chrono::duration<double>(std::chrono::steady_clock::now() - added).count();
  const std::string_view words = requests == Requests::kSlots  ? "on slots"
                                 : requests == Requests::kSame ? "on GPUs"
                                                               : "no two requests alike";
  fmt::print(
      "{:>7} queued tasks, {:<21}: {:>4.0f} bytes and {:.2f} us to add each, {:>6.2f} us of planning to run each\n",
      count, words, (after - before) / count, 1e6 * std::chrono::duration<double>(added - begin).count() / count,
      1e6 * total / count);
}

// All that has no option of its own.
void print_all(std::uint64_t first, int seeds) {
  for (const auto requests : {Requests::kSlots, Requests::kSame, Requests::kAllDifferent})
    for (const int count : {1'000, 10'000, 100'000}) print_cost(count, requests);
  fmt::print("\n");
  print_families(first, seeds);
  print_short(first, seeds);
  print_skew(first, seeds);
  print_sensitivity(first, std::min(seeds, 4));
}

// What is printed by which option, of so many seeds from the first on where none are given.
struct Part {
  std::string_view option;
  void (*print)(std::uint64_t first, int seeds);
  std::uint64_t first;
  int seeds;
};
constexpr Part kParts[] = {{"--short", print_short, 700, 8}, {"--first", print_first, 700, 8},
                           {"--grid", print_grid, 900, 3},   {"--batches", print_batches, 100, 100},
                           {"--end", print_ends, 500, 3},    {"", print_all, 700, 8}};

}  // namespace
}  // namespace headroom::scheduler::families

int main(int argc, char** argv) {
  namespace f = headroom::scheduler::families;
  if (argc == 4 && std::string_view(argv[1]) == "--trace")
    return f::trace(argv[2], static_cast<std::uint64_t>(std::atoi(argv[3])));
  const std::string_view option = argc > 1 && std::string_view(argv[1]).starts_with("--") ? argv[1] : "";
  const int words = option.empty() ? 1 : 2;
  for (const f::Part& part : f::kParts) {
    if (part.option != option) continue;
    const int seeds = argc > words ? std::atoi(argv[words]) : part.seeds;
    const int first = argc > words + 1 ? std::atoi(argv[words + 1]) : static_cast<int>(part.first);
    if (seeds < 1) return 2;
    part.print(static_cast<std::uint64_t>(first), seeds);
    return 0;
  }
  return 2;
}
