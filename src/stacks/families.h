// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/ledger.h"
#include "model/loop_role.h"
#include "stacks/frame.h"

// What a stack was at, by the frames that PyTorch, Lightning, Hugging Face, Keras, JAX, scikit-learn, LightGBM,
// XGBoost, Optuna and Python itself have on it then.
namespace headroom::stacks {

enum class Family : std::uint8_t {
  kNone,  // the user's own code, or a library that no rule knows
  kLoaderFetch,
  kLoaderWait,
  kCollate,
  kTransform,
  kDatasetIndex,
  kCopy,
  kForward,
  kBackward,
  kOptimizer,
  kSync,
  kPeers,
  kMetrics,
  kEvaluation,
  kCheckpoint,
  kLogging,
  kImport,
  kGraph,
  kCompile,
  kAllocator,
  kLaunch,
  kWrite,
  kTrial,
  kSleep,
  kLock,
  kGarbage,
};

// How sure it is that no kernel runs meanwhile: of a reading in which the device was idle for a part of the time, that
// part is looked for in the stacks with the least of it first.
enum class Busy : std::uint8_t { kIdle, kUnknown, kLaunches, kWaitsForKernels };

struct FamilyInfo {
  Family id;
  std::string_view name;   // in files: "loader_fetch"
  std::string_view label;  // for people
  Account account;         // of time in which the device was idle between kernels; kUnexplained: it does not say
  Busy busy;
  int rank;  // of several families on one stack the highest speaks, and of equals the innermost
};
[[nodiscard]] const FamilyInfo& info(Family family);
[[nodiscard]] inline bool only_waits(Family family) { return family == Family::kSleep || family == Family::kLock; }
[[nodiscard]] std::span<const FamilyInfo> all_families();

// A frame belongs to a family where its file's path holds `file` and its function's short name fits `function`: a name
// ("forward"; "item()" of what a line calls, "gc.collect()" with what it is called of), or one with a * at its begin,
// its end or both. Empty fits all; one of them must not be.
struct FamilyRule {
  Family family = Family::kNone;
  std::string file, function;
  bool of_users = false;  // frames of the user's own code only
};
[[nodiscard]] std::span<const FamilyRule> built_in_rules();

// What of another thread of its process it waits for: what that makes, in a queue of threads, for a future or on a
// condition; or its end, or that it says so.
enum class ForThread : std::uint8_t { kNo, kResult, kEnd };

// One kind of stack.
struct StackKind {
  Family family = Family::kNone;
  Busy busy = Busy::kUnknown;
  // What the user would look for: the innermost function of the user's own; of an import its module, of a stack
  // without code of the user its innermost function. "" where none is named.
  std::string where;
  bool waits = false;  // it does nothing itself: a lock, a queue, a poll, but for the loader's workers or other ranks
  // The part of the job that all this is for: the outermost of evaluation, checkpoint, import, data index, compilation.
  Family within = Family::kNone;
  // It is in the user's own code itself, or waits for a program that this has started: no loader's worker feeds it
  // then.
  bool own = false;
  bool for_child = false;     // it waits for the end of a process that it has started
  bool in_loop = false;       // the event loop of asyncio has nothing to run: all coroutines wait
  bool of_processes = false;  // what it waits in is between processes: a pipe, a queue or a barrier of multiprocessing
  ForThread for_thread = ForThread::kNo;
  // Of metrics, and of code that no rule knows: it is in Python's own library, in one that uses no GPU, or in a
  // function in C that is known to use none, so that it launches no kernel and waits for none.
  bool plain = false;
  bool feeds_main = false;  // another thread, while the main one waits so: set by stack_view()
  // Of a function of the user's: the other one of his that called it, and what the frames outside of it are a part of.
  std::string caller;
  Family outside = Family::kNone;
  // Of a function of the user's: the file and the line of its frame, as recorded.
  std::string file;
  int line = 0;
  bool operator==(const StackKind&) const = default;
};

// The part of the training loop that the name of a function of the user's tells, the innermost first, and which that
// is: "train_step (train.py)". Of those only that no other rule here knows.
struct NamedPart {
  LoopPart part = LoopPart::kUnknown;
  std::string by;
};
[[nodiscard]] NamedPart named_part(std::span<const Frame> frames);

// Whether the name of a function of the user's leaves open that it validates, computes what a validation tells or makes
// its samples; or that it makes or brings data. That of what may hold a whole program leaves open all.
[[nodiscard]] bool may_validate(std::string_view function);
[[nodiscard]] bool may_load(std::string_view function);

// The functions of the user's on a stack, for people, the outermost first and each once: "train (train.py)".
[[nodiscard]] std::vector<std::string> users_functions(std::span<const Frame> frames);

class Families {
 public:
  // `more` go before the rules that are built in.
  explicit Families(std::vector<FamilyRule> more = {});
  // `frames` from outermost to innermost.
  [[nodiscard]] StackKind kind_of(std::span<const Frame> frames) const;
  [[nodiscard]] Family family_of(const Frame& frame) const;  // of this frame alone

 private:
  std::vector<FamilyRule> rules_;
};

}  // namespace headroom::stacks
