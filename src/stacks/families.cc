// SPDX-License-Identifier: Apache-2.0
#include "stacks/families.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/enum_table.h"

namespace headroom::stacks {

namespace {

constexpr std::array kFamilies{
    FamilyInfo{Family::kNone, "none", "other code", Account::kUnexplained, Busy::kUnknown, -1},
    FamilyInfo{Family::kLoaderFetch, "loader_fetch", "reading a batch", Account::kInput, Busy::kIdle, 5},
    FamilyInfo{Family::kLoaderWait, "loader_wait", "waiting for loader workers", Account::kInput, Busy::kIdle, 6},
    FamilyInfo{Family::kCollate, "collate", "collating a batch", Account::kInput, Busy::kIdle, 6},
    FamilyInfo{Family::kTransform, "transform", "transforms of the input", Account::kInput, Busy::kIdle, 6},
    FamilyInfo{Family::kDatasetIndex, "dataset_index", "indexing the data", Account::kInput, Busy::kIdle, 5},
    FamilyInfo{Family::kCopy, "copy", "copying to the device", Account::kTransfer, Busy::kUnknown, 5},
    FamilyInfo{Family::kForward, "forward", "forward pass", Account::kHostCode, Busy::kLaunches, 2},
    FamilyInfo{Family::kBackward, "backward", "backward pass", Account::kHostCode, Busy::kLaunches, 3},
    FamilyInfo{Family::kOptimizer, "optimizer", "optimizer step", Account::kHostCode, Busy::kLaunches, 3},
    FamilyInfo{Family::kSync, "sync", "CUDA synchronisation", Account::kSync, Busy::kWaitsForKernels, 5},
    FamilyInfo{Family::kPeers, "peers", "exchange with other processes", Account::kPeers, Busy::kUnknown, 6},
    FamilyInfo{Family::kMetrics, "metrics", "metrics", Account::kHostCode, Busy::kIdle, 3},
    FamilyInfo{Family::kEvaluation, "evaluation", "evaluation", Account::kValidationHost, Busy::kUnknown, 4},
    FamilyInfo{Family::kCheckpoint, "checkpoint", "saving a checkpoint", Account::kCheckpoint, Busy::kIdle, 6},
    FamilyInfo{Family::kLogging, "logging", "logging or upload", Account::kHostCode, Busy::kIdle, 5},
    FamilyInfo{Family::kImport, "import", "import", Account::kStartup, Busy::kIdle, 1},
    FamilyInfo{Family::kGraph, "graph", "building graphs", Account::kHostCode, Busy::kIdle, 4},
    FamilyInfo{Family::kCompile, "compile", "compiling", Account::kHostCode, Busy::kIdle, 5},
    FamilyInfo{Family::kAllocator, "allocator", "giving memory back to the driver", Account::kHostCode, Busy::kUnknown,
               5},
    FamilyInfo{Family::kLaunch, "launch", "launching kernels", Account::kHostCode, Busy::kLaunches, 1},
    FamilyInfo{Family::kWrite, "write", "writing to the disk", Account::kCheckpoint, Busy::kIdle, 4},
    FamilyInfo{Family::kTrial, "trial", "asking or telling the study", Account::kHostCode, Busy::kIdle, 5},
    FamilyInfo{Family::kSleep, "sleep", "sleeping or polling", Account::kUnexplained, Busy::kIdle, 0},
    FamilyInfo{Family::kLock, "lock", "waiting for a lock or a queue", Account::kUnexplained, Busy::kIdle, 0},
    FamilyInfo{Family::kGarbage, "garbage", "garbage collection", Account::kHostCode, Busy::kIdle, 5},
};
static_assert(in_order_of_ids(kFamilies));

bool fits(std::string_view pattern, std::string_view name) {
  if (pattern.empty() || pattern == "*") return true;
  const bool front = pattern.starts_with('*'), back = pattern.size() > 1 && pattern.ends_with('*');
  const std::string_view core = pattern.substr(front ? 1 : 0, pattern.size() - (front ? 1U : 0U) - (back ? 1U : 0U));
  if (front && back) return name.find(core) != std::string_view::npos;
  if (front) return name.ends_with(core);
  if (back) return name.starts_with(core);
  return name == core;
}

// "torch" of "/usr/lib/python3/dist-packages/torch/__init__.py"
std::string_view module_of(std::string_view file) {
  for (const std::string_view packages : {"site-packages/", "dist-packages/"})
    if (const auto at = file.rfind(packages); at != std::string_view::npos) {
      const std::string_view rest = file.substr(at + packages.size());
      return rest.substr(0, std::min(rest.find('/'), rest.find('.')));
    }
  if (constexpr std::string_view kPackage = "/__init__.py"; file.ends_with(kPackage))
    file.remove_suffix(kPackage.size());
  const std::string_view name = file.substr(file.rfind('/') + 1);
  return name.substr(0, name.find('.'));
}

// Names that hold a word of a family and are about more, or about something else: train_and_validate, load_checkpoint,
// a Transformer, what turns tokens into text again, activations that are computed again (checkpointed_forward).
bool is_about_more(Family family, std::string_view name) {
  const auto has = [&](std::string_view word) { return name.find(word) != std::string_view::npos; };
  if (family == Family::kTransform) return has("transformer") || has("train") || has("detok");
  if (family != Family::kEvaluation && family != Family::kCheckpoint) return false;
  if (has("train") || has("fit")) return true;
  return family == Family::kCheckpoint &&
         (has("load") || has("restore") || has("resume") || has("forward") || has("activation") || has("gradient"));
}

bool is_import(const Frame& frame) { return frame.file.find("importlib") != std::string_view::npos; }

}  // namespace

const FamilyInfo& info(Family family) { return kFamilies[static_cast<std::size_t>(family)]; }
std::span<const FamilyInfo> all_families() { return kFamilies; }

Families::Families(std::vector<FamilyRule> more) : rules_(std::move(more)) {
  const std::span<const FamilyRule> built_in = built_in_rules();
  rules_.insert(rules_.end(), built_in.begin(), built_in.end());
}

Family Families::family_of(const Frame& frame) const {
  if (is_unnamed(frame)) return Family::kNone;
  const std::string_view name = short_name(frame);
  const bool library = is_library(frame);
  for (const FamilyRule& rule : rules_)
    if (!(rule.of_users && (library || is_about_more(rule.family, name))) &&
        (fits(rule.function, name) || rule.function == frame.function) &&
        frame.file.find(rule.file) != std::string_view::npos)
      return rule.family;
  return Family::kNone;
}

namespace {

// What a forked process does: what lies outside is what its parent was at when it started it.
std::span<const Frame> own_frames(std::span<const Frame> frames) {
  for (std::size_t i = frames.size(); i-- > 0;)
    if (short_name(frames[i]) == "_bootstrap" && frames[i].file.ends_with("/multiprocessing/process.py"))
      return frames.subspan(i);
  return frames;
}

// Whether it is at an import: what a library runs meanwhile, its modules and classes, is a part of that.
bool only_imports(std::span<const Frame> frames) {
  for (std::size_t i = frames.size(); i-- > 0;) {
    if (frames[i].file.find("importlib._bootstrap") != std::string_view::npos) return true;
    if (!is_library(frames[i])) return false;
  }
  return false;
}

bool is_part_of_a_job(Family family) {
  return family == Family::kEvaluation || family == Family::kCheckpoint || family == Family::kImport ||
         family == Family::kDatasetIndex || family == Family::kCompile;
}

// Whether it waits for a program that it has started.
bool runs_a_program(std::span<const Frame> frames) {
  return std::any_of(frames.begin(), frames.end(),
                     [](const Frame& frame) { return frame.file.ends_with("/subprocess.py"); });
}

// Whether it waits for a process that it has started to end.
bool joins_a_process(std::span<const Frame> frames) {
  return runs_a_program(frames) || std::any_of(frames.begin(), frames.end(), [](const Frame& frame) {
           return frame.file.ends_with("/multiprocessing/popen_fork.py") && short_name(frame).find("wait") == 0;
         });
}

// Whether asyncio waits for the next event: whichever coroutine that is for, its frames are not on the stack.
bool waits_in_loop(std::span<const Frame> frames) {
  if (frames.size() < 2 || !frames.back().file.ends_with("/selectors.py")) return false;
  const Frame& loop = frames[frames.size() - 2];
  return loop.file.ends_with("/asyncio/base_events.py") && short_name(loop) == "_run_once";
}

// Whether the innermost frames, those of the standard library, are at a pipe, a queue or a barrier between processes.
bool waits_between_processes(std::span<const Frame> frames) {
  for (std::size_t i = frames.size(); i-- > 0 && is_library(frames[i]);)
    for (const std::string_view file : {"/multiprocessing/connection.py", "/multiprocessing/queues.py",
                                        "/multiprocessing/synchronize.py", "/multiprocessing/managers.py"})
      if (frames[i].file.ends_with(file)) return true;
  return false;
}

// By the innermost frames, those of the standard library.
ForThread waits_for_thread(std::span<const Frame> frames) {
  std::size_t i = frames.size();
  for (; i > 0 && is_library(frames[i - 1]); --i) {
    const std::string_view name = short_name(frames[i - 1]), file = frames[i - 1].file;
    if (file.ends_with("/queue.py") && name == "get") return ForThread::kResult;
    const bool of_future = name.starts_with("result") || name == "as_completed" || name == "wait";
    if (file.ends_with("/concurrent/futures/_base.py") && of_future) return ForThread::kResult;
    if (file.ends_with("/multiprocessing/pool.py") && (name == "get" || name == "next")) return ForThread::kResult;
  }
  if (i == frames.size() || !frames[i].file.ends_with("/threading.py")) return ForThread::kNo;
  const std::string_view called = frames[i].function;  // by the user's own code
  if (called == "Condition.wait" || called == "Condition.wait_for") return ForThread::kResult;
  return called == "Event.wait" || called == "Thread.join" ? ForThread::kEnd : ForThread::kNo;
}

// What a line calls that is no business of a GPU, by its module, or by its own name where no tensor has a method of
// that name.
bool is_plain_call(std::string_view name) {
  constexpr std::array<std::string_view, 26> kModules{
      "np",      "numpy",  "pd",        "pandas", "json",  "re",     "random", "math",      "pickle",
      "sqlite3", "csv",    "zlib",      "gzip",   "bz2",   "lzma",   "os",     "cv2",       "struct",
      "hashlib", "base64", "itertools", "gc",     "fcntl", "shutil", "socket", "subprocess"};
  constexpr std::array<std::string_view, 40> kNames{
      "append()",    "decode()", "digest()",   "dump()",       "dumps()",     "encode()",     "endswith()",
      "execute()",   "extend()", "fetchall()", "fetchmany()",  "fetchone()",  "findall()",    "finditer()",
      "flush()",     "format()", "fsync()",    "get()",        "hexdigest()", "isinstance()", "items()",
      "join()",      "keys()",   "len()",      "lower()",      "open()",      "read()",       "readline()",
      "readlines()", "recv()",   "replace()",  "setdefault()", "sorted()",    "startswith()", "strip()",
      "update()",    "upper()",  "write()",    "writelines()", "writerow()"};
  const auto dot = name.find('.');
  if (dot != std::string_view::npos &&
      std::find(kModules.begin(), kModules.end(), name.substr(0, dot)) != kModules.end())
    return true;
  return std::find(kNames.begin(), kNames.end(), name.substr(name.rfind('.') + 1)) != kNames.end();
}

// Python's own library, and packages that use no GPU.
bool is_plain_library(const Frame& frame) {
  constexpr std::array<std::string_view, 14> kPackages{"numpy/", "pandas/",   "PIL/",     "cv2/",     "scipy/",
                                                       "yaml/",  "requests/", "urllib3/", "h5py/",    "pyarrow/",
                                                       "nltk/",  "sklearn/",  "skimage/", "networkx/"};
  if (frame.file == "<__array_function__ internals>") return true;  // numpy's wrappers
  const std::string_view library = in_library(frame.file);
  const auto packages = library.find("-packages/");
  if (packages == std::string_view::npos)
    return library.starts_with("/lib/python3") || library.starts_with("lib/python3");
  const std::string_view package = library.substr(packages + std::string_view("-packages/").size());
  return std::any_of(kPackages.begin(), kPackages.end(),
                     [&](std::string_view known) { return package.starts_with(known); });
}

// By the innermost frames: all that the user's own code has called, or what its line calls.
bool is_plain(std::span<const Frame> frames) {
  if (is_unnamed(frames.back())) return false;
  if (is_call(frames.back())) return is_plain_call(frames.back().function);
  std::size_t i = frames.size();
  while (i > 0 && is_library(frames[i - 1]) && is_plain_library(frames[i - 1])) --i;
  return i < frames.size() && i > 0 && !is_library(frames[i - 1]) && !is_unnamed(frames[i - 1]);
}

// The user's function nearest to what it called; one that calls itself was called by another.
std::string caller_of(std::span<const Frame> outside, std::string_view called) {
  for (std::size_t i = outside.size(); i-- > 0;)
    if (!is_library(outside[i]) && !is_unnamed(outside[i]))
      if (std::string name = words(outside[i]); name != called) return name;
  return "";
}

// What the frames of a stack tell together, of which the innermost one is told first.
class FramesTold {
 public:
  StackKind kind;                           // its families
  Family innermost = Family::kNone;         // of the frames that have one
  std::optional<std::size_t> users, named;  // the innermost ones

  void add(std::size_t i, const Frame& frame, Family family) {
    if (is_unnamed(frame)) {
      waiting_ = false;
      return;
    }
    const bool library = is_library(frame);
    if (!named) named = i;
    if (!users && !library && !is_call(frame)) users = i;
    if (!library && does_more(family, i)) family = Family::kNone;
    trains_ |= family == Family::kBackward || family == Family::kOptimizer ||
               (!library && short_name(frame).starts_with("train"));
    // A thread of a pool waits in its loop, unless the loop has called something else.
    const bool told = family != Family::kNone && (waiting_ || !only_waits(family));
    waiting_ = told && only_waits(family);
    if (!told) return;
    if (innermost == Family::kNone) innermost = family;
    if (is_part_of_a_job(family)) kind.within = family;
    if (users && i < *users) kind.outside = higher(kind.outside, family);
    kind.family = higher(kind.family, family);
  }

 private:
  // A function of the user's that exchanges something may do more: only where it is at nothing else of his.
  [[nodiscard]] bool does_more(Family family, std::size_t i) const {
    return family == Family::kPeers ? users != i : family == Family::kEvaluation && trains_;
  }
  static Family higher(Family known, Family family) { return info(family).rank > info(known).rank ? family : known; }

  bool waiting_ = true;  // all further in only waits
  bool trains_ = false;  // a frame further in does: what called it does more than to evaluate
};

// From the outside: the module that the user's code asked for, not what that one needs.
std::string imported_words(std::span<const Frame> frames) {
  auto module = std::find_if(frames.begin(), frames.end(), is_import);
  while (module != frames.end() && is_import(*module)) ++module;
  const bool known = module != frames.end() && !module->file.starts_with('<');
  return known ? fmt::format("import {}", module_of(module->file)) : "imports";
}

void put_place(std::span<const Frame> frames, const FramesTold& told, StackKind& kind) {
  if (kind.family == Family::kLoaderWait) {
    kind.where = info(kind.family).label;
  } else if (kind.family == Family::kImport) {
    kind.where = imported_words(frames);
  } else if (told.users) {
    const Frame& own = frames[*told.users];
    kind.where = words(own), kind.file = own.file, kind.line = own.line;
    kind.caller = caller_of(frames.first(*told.users), kind.where);
  } else if (told.named) {
    kind.where = words(frames[*told.named]);
  }
}

}  // namespace

std::vector<std::string> users_functions(std::span<const Frame> frames) {
  std::vector<std::string> functions;
  for (const Frame& frame : own_frames(frames)) {
    if (is_library(frame) || is_unnamed(frame) || is_call(frame)) continue;
    if (std::string name = words(frame); std::find(functions.begin(), functions.end(), name) == functions.end())
      functions.push_back(std::move(name));
  }
  return functions;
}

StackKind Families::kind_of(std::span<const Frame> all) const {
  const std::span<const Frame> frames = own_frames(all);
  if (frames.empty()) return {};
  FramesTold told;
  for (std::size_t i = frames.size(); i-- > 0;) told.add(i, frames[i], family_of(frames[i]));
  StackKind kind = told.kind;
  if (only_imports(frames)) kind.family = told.innermost = Family::kImport;
  kind.busy = info(told.innermost).busy;
  if (only_waits(told.innermost)) {
    kind.waits = kind.family != Family::kLoaderWait && kind.family != Family::kPeers;
    kind.for_child = joins_a_process(frames);
    kind.of_processes = waits_between_processes(frames);
    if (!kind.of_processes) kind.for_thread = waits_for_thread(frames);
  }
  kind.in_loop = waits_in_loop(frames);
  const bool innermost_is_users = told.users && *told.users + (is_call(frames.back()) ? 2 : 1) == frames.size();
  kind.own = (kind.family == Family::kNone && innermost_is_users) || (kind.waits && runs_a_program(frames));
  // What loads waits between two tries itself; what it calls waits for something else.
  const bool own_or_called =
      kind.family == Family::kNone ||
      (told.users && info(kind.family).account == Account::kInput && family_of(frames[*told.users]) == Family::kNone);
  if (innermost_is_users && own_or_called && short_name(frames.back()) == "sleep()") {
    kind.family = Family::kSleep;
    kind.own = true;
  }
  kind.plain = (kind.family == Family::kNone || kind.family == Family::kMetrics) && is_plain(frames);
  put_place(frames, told, kind);
  return kind;
}

}  // namespace headroom::stacks
