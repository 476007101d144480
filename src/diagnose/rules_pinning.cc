// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "base/human.h"
#include "base/strings.h"
#include "diagnose/rules.h"
#include "model/visible.h"

namespace headroom::diagnose {

namespace {

// What one process of the job was told by its environment and arguments, and where the driver saw it.
struct Placement {
  Process process;
  std::set<std::size_t> held;          // positions in Board::devices
  std::optional<std::size_t> ordinal;  // from its arguments
  std::string ordinal_flag;
};

struct Board {
  std::vector<Device> devices;  // all of the machine, by index
  std::vector<SourceId> sources;
  std::vector<Placement> placements;  // of the job
};

// The number in "3" or "cuda:3".
std::optional<std::size_t> ordinal_of(std::string_view value) {
  value = value.substr(0, value.find_first_of("'\""));
  if (value.starts_with("cuda:") || value.starts_with("gpu:")) value.remove_prefix(value.find(':') + 1);
  return parse_number<std::size_t>(value);
}

// The device that a command line asks for by number, as training scripts spell it.
void read_ordinal(Placement& placement) {
  constexpr std::array<std::string_view, 8> kFlags{"gpu_device_id", "gpu_id", "gpu",         "device",
                                                   "device_id",     "cuda",   "cuda_device", "gpus"};
  const auto words = split(placement.process.cmdline, ' ');
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string word = lower(words[i]);
    const auto equals = word.find('=');
    std::string name = word.substr(0, equals);
    name.erase(0, name.find_first_not_of('-'));
    std::replace(name.begin(), name.end(), '-', '_');
    if (std::find(kFlags.begin(), kFlags.end(), name) == kFlags.end()) continue;
    std::optional<std::size_t> ordinal;
    if (equals != std::string::npos)
      ordinal = ordinal_of(std::string_view(word).substr(equals + 1));
    else if (word.starts_with("-") && i + 1 < words.size())
      ordinal = ordinal_of(words[i + 1]);
    if (!ordinal) continue;
    placement.ordinal = ordinal;
    placement.ordinal_flag =
        equals != std::string::npos ? std::string(words[i]) : fmt::format("{} {}", words[i], words[i + 1]);
  }
}

Board board_of(const Analysis& a) {
  Board board;
  for (const auto& [source, device] : a.machine) {
    board.sources.push_back(source);
    board.devices.push_back(device);
  }
  std::multimap<SourceId, SourceId> devices_of;
  for (const ContextUse& use : a.job.uses)
    if (use.process) devices_of.emplace(*use.process, use.device);
  for (const auto& [source, process] : a.processes) {
    if (!process.in_job) continue;
    Placement placement{process};
    for (auto [entry, last] = devices_of.equal_range(source); entry != last; ++entry) {
      const auto at = std::find(board.sources.begin(), board.sources.end(), entry->second);
      if (at != board.sources.end()) placement.held.insert(static_cast<std::size_t>(at - board.sources.begin()));
    }
    read_ordinal(placement);
    board.placements.push_back(std::move(placement));
  }
  return board;
}

std::string gpus(const Board& board, const std::set<std::size_t>& set) {
  std::vector<std::string> names;
  for (const std::size_t device : set) names.push_back(fmt::format("GPU {}", board.devices[device].index));
  return names.empty() ? "no GPU" : fmt::format("{}", fmt::join(names, ", "));
}

// GPUs by the index that nvidia-smi prints: what people mean when they write numbers into the mask.
std::set<std::size_t> meant(const Board& board, const std::string& mask) {
  const auto by_bus = visible_devices(board.devices, mask, "PCI_BUS_ID").ordinals;
  return {by_bus.begin(), by_bus.end()};
}

bool numeric(const std::string& mask) { return !mask.empty() && mask.find("GPU-") == std::string::npos; }

Finding placed(std::string title) {
  Finding finding;
  finding.cause = Cause::kWrongGpuAssignment;
  finding.confidence = Confidence::kHigh;
  finding.tiers = "NP";
  finding.title = std::move(title);
  return finding;
}

// An ordinal beyond what the mask shows: most programs fail, some wrap round or fall back to the CPU.
void contradictions(const Analysis& a, const Board& board, std::vector<Finding>& findings) {
  Finding finding = placed("A device number contradicts the mask");
  bool placeless = false;
  for (const Placement& p : board.placements) {
    if (!p.ordinal || !p.process.cuda_visible_devices) continue;
    const auto visible = visible_devices(board.devices, p.process.cuda_visible_devices, p.process.cuda_device_order);
    if (*p.ordinal < visible.ordinals.size()) continue;
    placeless |= p.held.empty();
    finding.evidence.push_back(
        fmt::format("process {}: '{}' under CUDA_VISIBLE_DEVICES={}, which shows {} device{}, numbered from 0; the "
                    "driver saw it on {}",
                    p.process.pid, p.ordinal_flag, *p.process.cuda_visible_devices, visible.ordinals.size(),
                    visible.ordinals.size() == 1 ? "" : "s", gpus(board, p.held)));
  }
  if (placeless) finding.claims = claim_accounts(a, {Account::kNotUsed});  // what it was meant for stood free
  if (finding.evidence.empty()) return;
  finding.told_apart_from = {"a mask in CUDA's own order: the number is out of range in any order"};
  finding.would_overturn = "how the program counts devices: if outside the mask (OpenCL may), this is wrong";
  finding.advice = "pin once: set the mask and let the program use device 0";
  findings.push_back(std::move(finding));
}

// A numeric mask, honoured, in CUDA's order, which is not nvidia-smi's.
void other_numbering(const Board& board, std::vector<Finding>& findings) {
  Finding finding = placed("CUDA numbers these GPUs otherwise than nvidia-smi");
  for (const Placement& p : board.placements) {
    const auto& mask = p.process.cuda_visible_devices;
    if (!mask || !numeric(*mask) || p.held.empty() || p.process.cuda_device_order == "PCI_BUS_ID") continue;
    const auto wanted = meant(board, *mask);
    const auto visible = visible_devices(board.devices, mask, p.process.cuda_device_order).ordinals;
    const bool honoured = std::all_of(p.held.begin(), p.held.end(), [&](std::size_t device) {
      return std::find(visible.begin(), visible.end(), device) != visible.end();
    });
    const bool elsewhere =
        std::any_of(p.held.begin(), p.held.end(), [&](std::size_t d) { return !wanted.contains(d); });
    if (honoured && elsewhere)
      finding.evidence.push_back(
          fmt::format("process {}: CUDA_VISIBLE_DEVICES={} is {} for nvidia-smi; the driver saw it on {}",
                      p.process.pid, *mask, gpus(board, wanted), gpus(board, p.held)));
  }
  if (finding.evidence.empty()) return;
  finding.evidence.push_back("CUDA_DEVICE_ORDER was not PCI_BUS_ID, so CUDA counted the fastest GPU first");
  finding.told_apart_from = {"a mask set too late: the process is where CUDA's own order puts it"};
  finding.would_overturn = "run with CUDA_DEVICE_ORDER=PCI_BUS_ID: if it lands on the same GPU, this is wrong";
  finding.advice = "set CUDA_DEVICE_ORDER=PCI_BUS_ID, or mask by UUID (headroom devices)";
  findings.push_back(std::move(finding));
}

// On a GPU that the environment at its start does not show.
void not_honoured(const Board& board, std::vector<Finding>& findings) {
  Finding finding = placed("A process is on a GPU that its environment does not show");
  for (const Placement& p : board.placements) {
    const auto& mask = p.process.cuda_visible_devices;
    if (!mask || p.held.empty()) continue;
    const auto visible = visible_devices(board.devices, mask, p.process.cuda_device_order).ordinals;
    const auto by_bus = meant(board, *mask);
    const bool outside = std::any_of(p.held.begin(), p.held.end(), [&](std::size_t device) {
      return std::find(visible.begin(), visible.end(), device) == visible.end() && !by_bus.contains(device);
    });
    if (outside)
      finding.evidence.push_back(
          fmt::format("process {}: CUDA_VISIBLE_DEVICES was '{}' when it started; the driver saw "
                      "it on {}",
                      p.process.pid, *mask, gpus(board, p.held)));
  }
  if (finding.evidence.empty()) return;
  finding.told_apart_from = {"CUDA's own order: no order of the mask's numbers leads to this GPU"};
  finding.would_overturn = "whether the parent changes the environment between fork and exec: then this is wrong";
  finding.advice = "look for code that sets CUDA_VISIBLE_DEVICES itself, and remove one of the two";
  findings.push_back(std::move(finding));
}

// Processes one after the other need no second GPU.
bool two_at_once(std::vector<const Placement*> processes) {
  std::sort(processes.begin(), processes.end(),
            [](const Placement* x, const Placement* y) { return x->process.start < y->process.start; });
  for (std::size_t i = 1; i < processes.size(); ++i) {
    const auto& end = processes[i - 1]->process.end;
    if (!end || processes[i]->process.start < *end) return true;
  }
  return false;
}

// "python3 train.py" of "python3 train.py --seed 1".
std::string program_of(const Process& process) {
  const auto words = split(process.cmdline, ' ');
  if (words.size() < 2 || words[1].starts_with('-')) return std::string(words.front());
  return fmt::format("{} {}", words[0], words[1]);
}

// Whether what one of the two does may be held against the other.
bool alike(const Placement& x, const Placement& y) {
  return x.process.ppid == y.process.ppid || program_of(x.process) == program_of(y.process);
}

// It may have done its work without a GPU.
bool may_have_succeeded(const Placement& p) { return !p.process.end || p.process.exit_code == 0; }

// Workers with one mask that all ended, not one of which the driver saw on a GPU, while others like them held one.
struct GoneWorkers {
  std::string mask;
  std::set<std::size_t> wanted;  // positions in Board::devices
  std::vector<const Placement*> workers;
  std::size_t others = 0, unseen = 0;  // with other masks: that held a context, and that ended without one being seen
  bool seen_to_fail = true;

  // How likely it is that of all of them those which held one all have another mask, if the mask had no part in it.
  [[nodiscard]] double chance() const {
    double chance = 1;
    for (std::size_t i = 0; i < others; ++i)
      chance *= static_cast<double>(others + unseen - i) / static_cast<double>(others + unseen + workers.size() - i);
    return chance;
  }
};

bool starts_others(const Board& board, const Placement& p) {
  return std::any_of(board.placements.begin(), board.placements.end(),
                     [&](const Placement& child) { return child.process.ppid == p.process.pid; });
}

// Those like a worker that had another mask and held a context, or ended without one being seen.
struct Others {
  std::set<const Placement*> held, unseen;
};

void add_others(const Board& board, const Placement& worker, Others& others) {
  for (const Placement& other : board.placements) {
    const bool same_mask = other.process.cuda_visible_devices == worker.process.cuda_visible_devices;
    if (same_mask || !alike(worker, other) || starts_others(board, other)) continue;
    if (!other.held.empty())
      others.held.insert(&other);
    else if (!may_have_succeeded(other))
      others.unseen.insert(&other);
  }
}

// Nothing where one of them may have succeeded, or where as many with other masks ended so, too: a context that lives
// for less than an interval may not be seen.
std::optional<GoneWorkers> gone_workers(const Board& board, const std::string& mask) {
  GoneWorkers gone{.mask = mask, .wanted = meant(board, mask), .workers = {}};
  if (gone.wanted.empty()) return std::nullopt;
  for (const Placement& p : board.placements)
    if (p.process.cuda_visible_devices == mask && (!p.held.empty() || !starts_others(board, p)))
      gone.workers.push_back(&p);
  Others others;
  for (const Placement* worker : gone.workers) {
    // Where their arguments tell a number, contradictions() judges that.
    if (!worker->held.empty() || worker->ordinal || may_have_succeeded(*worker)) return std::nullopt;
    add_others(board, *worker, others);
    gone.seen_to_fail = gone.seen_to_fail && worker->process.exit_code;
  }
  gone.others = others.held.size(), gone.unseen = others.unseen.size();
  // Of one whose end nobody saw it may be chance.
  if (gone.workers.empty() || gone.others == 0 || (!gone.seen_to_fail && gone.workers.size() < 2)) return std::nullopt;
  constexpr double kMayBeChance = 0.05;
  if (gone.unseen > 0 && gone.chance() > kMayBeChance) return std::nullopt;
  return gone;
}

std::vector<GoneWorkers> all_gone_workers(const Board& board) {
  std::set<std::string> masks;
  for (const Placement& p : board.placements)
    if (p.process.cuda_visible_devices) masks.insert(*p.process.cuda_visible_devices);
  std::vector<GoneWorkers> all;
  for (const std::string& mask : masks)
    if (auto gone = gone_workers(board, mask)) all.push_back(std::move(*gone));
  return all;
}

std::string gone_words(const GoneWorkers& gone) {
  std::set<int> codes;
  Nanos longest = 0;
  for (const Placement* worker : gone.workers) {
    if (worker->process.exit_code) codes.insert(*worker->process.exit_code);
    longest = std::max(longest, *worker->process.end - worker->process.start);
  }
  const std::string how =
      !gone.seen_to_fail ? fmt::format("within {}", human_duration(longest))
                         : fmt::format("with exit code{} {}", codes.size() == 1 ? "" : "s", fmt::join(codes, ", "));
  return fmt::format(
             "{} with CUDA_VISIBLE_DEVICES={} ended {}, and the driver saw no context of {}; {} like {} with other "
             "masks held "
             "one",
             count_of(gone.workers.size(), "process", "processes"), gone.mask, how,
             gone.workers.size() == 1 ? "it" : "them", gone.others, gone.workers.size() == 1 ? "it" : "them") +
         (gone.unseen > 0 ? fmt::format(", and of {} no context was seen either", gone.unseen) : "");
}

// The number of such a GPU lies beyond a mask that shows fewer.
bool numbered_beyond(const Board& board, const GoneWorkers& gone) {
  return std::any_of(gone.wanted.begin(), gone.wanted.end(), [&](std::size_t device) {
    return board.devices[device].index >= static_cast<int>(gone.wanted.size());
  });
}

// What these workers have in common is which GPU they were meant for.
void gone_under_a_mask(const Analysis& a, const Board& board, std::vector<Finding>& findings) {
  for (const GoneWorkers& gone : all_gone_workers(board)) {
    if (!numeric(gone.mask) || !numbered_beyond(board, gone)) continue;
    Finding finding = placed(fmt::format("Workers for {} ended before {}", gpus(board, gone.wanted),
                                         gone.seen_to_fail ? "they held a context" : "the driver saw one of them"));
    finding.confidence = gone.seen_to_fail ? Confidence::kMedium : Confidence::kLow;
    finding.evidence = {
        gone_words(gone),
        fmt::format("a program with this mask numbers what it shows from 0, {} in all: a number that counts all GPUs "
                    "lies beyond that, and ends so",
                    gone.wanted.size())};
    if (!gone.seen_to_fail)
      finding.evidence.push_back(
          fmt::format("how they ended was not seen, nor a context of less than {}", human_duration(a.meta.interval)));
    finding.would_overturn = "what these processes printed: if their error names something else, this is wrong";
    finding.advice = "pin once: set the mask and let the worker use device 0, or give it its number and no mask";
    finding.claims = claim_accounts(a, {Account::kNotUsed});
    findings.push_back(std::move(finding));
  }
}

// Several processes, none masked at its start, all on the same GPU while others stood free.
void crowded(const Analysis& a, const Board& board, std::vector<Finding>& findings) {
  if (board.devices.size() < 2) return;
  std::map<std::size_t, std::vector<const Placement*>> on;
  for (const Placement& p : board.placements)
    for (const std::size_t device : p.held) on[device].push_back(&p);
  if (on.size() != 1 || on.begin()->second.size() < 2) return;
  const auto& crowd = on.begin()->second;
  const bool one_way = std::all_of(crowd.begin(), crowd.end(), [&](const Placement* p) {
    return p->process.cuda_visible_devices == crowd.front()->process.cuda_visible_devices;
  });
  if (!one_way || !two_at_once(crowd)) return;
  // Workers that were meant for another GPU and never held it: not all went there.
  const auto meant_elsewhere = [&](const Placement& p) {
    const auto& mask = p.process.cuda_visible_devices;
    return p.held.empty() && mask && mask != crowd.front()->process.cuda_visible_devices &&
           std::any_of(crowd.begin(), crowd.end(), [&](const Placement* c) { return alike(*c, p); });
  };
  if (std::any_of(board.placements.begin(), board.placements.end(), meant_elsewhere)) return;
  Finding finding = placed(
      fmt::format("All processes that were seen on a GPU were on GPU {}", board.devices[on.begin()->first].index));
  finding.confidence = Confidence::kMedium;
  const auto& mask = crowd.front()->process.cuda_visible_devices;
  const std::size_t others = board.devices.size() - 1;
  finding.evidence.push_back(fmt::format("{} processes held a context there, none on the {}", crowd.size(),
                                         others == 1 ? "other GPU" : fmt::format("{} other GPUs", others)));
  finding.evidence.push_back(
      fmt::format("one that ended within {} may not have been seen", human_duration(a.meta.interval)));
  finding.evidence.push_back(mask ? fmt::format("all of them started with CUDA_VISIBLE_DEVICES={}", *mask)
                                  : "none of them had CUDA_VISIBLE_DEVICES when it started");
  std::set<std::string> flags;
  for (const Placement* p : crowd)
    if (p->ordinal) flags.insert(p->ordinal_flag);
  if (!flags.empty()) finding.evidence.push_back(fmt::format("their arguments say {}", fmt::join(flags, ", ")));
  if (mask) {
    finding.told_apart_from = {"a mask set too late: the mask was there at the start, and it names one GPU for all"};
    finding.would_overturn = "the device list in the trainer's settings: if it is longer than this mask, this is wrong";
    finding.advice =
        "give each worker another entry of the device list, if it holds one GPU only; else look in the output for "
        "workers "
        "that failed as they started";
  } else {
    finding.told_apart_from = {"CUDA's own order: no mask was there to be counted in any order"};
    finding.would_overturn =
        "where the trainer sets the mask: if before the worker imports its framework, this is wrong";
    finding.advice = "set the mask before each worker starts: inside a worker that has touched CUDA it has no effect";
  }
  finding.claims = claim_accounts(a, {Account::kNotUsed});
  findings.push_back(std::move(finding));
}

// "0,9,1" on a machine with two GPUs shows GPU 0 alone.
void cut_short(const Board& board, std::vector<Finding>& findings) {
  for (const Placement& p : board.placements) {
    const auto& mask = p.process.cuda_visible_devices;
    if (!mask || board.devices.empty()) continue;
    const auto visible = visible_devices(board.devices, mask, p.process.cuda_device_order);
    if (visible.stopped_at.empty() || visible.stopped_at == "-1" || visible.stopped_at.starts_with("MIG")) continue;
    Finding finding = placed("An entry of the mask is invalid and hides what follows");
    finding.evidence = {fmt::format(
        "process {}: CUDA_VISIBLE_DEVICES={}: '{}' names no GPU here, {} of the list {} left", p.process.pid, *mask,
        visible.stopped_at, visible.ordinals.size(), visible.ordinals.size() == 1 ? "is" : "are")};
    finding.told_apart_from = {"a GPU that was lost: the machine's GPUs all answered"};
    finding.would_overturn =
        "CUDA_VISIBLE_DEVICES=ENTRY nvidia-smi -L and a CUDA program: if it sees the GPU, this is wrong";
    finding.advice = "use the UUIDs that headroom devices prints";
    findings.push_back(std::move(finding));
    return;  // children inherit it: once is enough
  }
}

}  // namespace

std::vector<Finding> wrong_pins(const Analysis& a) {
  std::vector<Finding> findings;
  if (!a.job.has_job || !a.job.has_contexts) return findings;
  const Board board = board_of(a);
  contradictions(a, board, findings);
  other_numbering(board, findings);
  not_honoured(board, findings);
  if (!a.job.batch.present) gone_under_a_mask(a, board, findings);
  if (!a.job.batch.present) crowded(a, board, findings);  // a batch places its tasks itself, and proves it
  cut_short(board, findings);
  return findings;
}

std::vector<std::string> gone_workers_of(const Analysis& a, const std::vector<std::size_t>& devices) {
  if (!a.job.has_job || !a.job.has_contexts || a.job.batch.present) return {};
  const Board board = board_of(a);
  std::vector<std::string> words;
  for (const GoneWorkers& gone : all_gone_workers(board))
    if (std::any_of(devices.begin(), devices.end(), [&](std::size_t device) {
          return std::any_of(gone.wanted.begin(), gone.wanted.end(),
                             [&](std::size_t wanted) { return board.sources[wanted] == a.devices[device].source; });
        }))
      words.push_back(gone_words(gone));
  return words;
}

}  // namespace headroom::diagnose
