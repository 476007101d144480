// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "analyze/analysis.h"
#include "base/enum_table.h"
#include "diagnose/claims.h"

namespace headroom::diagnose {

// What can be observed of a job while its GPU is idle, and speaks for or against causes of that (weigh.cc has the
// table).
enum class Clue : std::uint8_t {
  kRan,
  kHardlyRan,
  kSlept,
  kWantedCore,
  kWantedCoreLonger,
  kOnConnection,
  kOnPipe,
  kOnFullPipe,
  kInPoll,
  kOnTimer,
  kOnLock,
  kOnFile,
  kAtTerminal,
  kRead,
  kHardlyRead,
  kWrote,
  kWroteNothing,
  kThreadsRan,
  kInterpreterTaken,
  kInterpreterOften,
  kCopied,
  kCopiedSome,
  kWaitsForKernels,
  kHardlyWaitsForKernels,
  kKernelsOnlyAwaited,
  kLaunches,
  kWithoutKernels,
  kOwnCode,
  kPlainCode,
  kNamedOtherwise,
  kNamesNoLoading,
  kEachStep,
  kPauses,
  kPrepares,
  kEnds,
  kHelpersAtWork,
  kHelpersBusy,
  kNoHelpers,
  kNotebook,
  kCalledCompiling,
  kFlushesLittle,
};

struct ClueInfo {
  Clue id;
  std::string_view words;  // a clause about the process on the GPU
};
inline constexpr std::array kClues{
    ClueInfo{Clue::kRan, "its main thread ran long enough to fill most of this time"},
    ClueInfo{Clue::kHardlyRan, "its main thread hardly ran"},
    ClueInfo{Clue::kSlept, "it slept or waited for most of this time"},
    ClueInfo{Clue::kWantedCore, "its main thread waited for a core"},
    ClueInfo{Clue::kWantedCoreLonger, "it did so for longer than it ran"},
    ClueInfo{Clue::kOnConnection, "it was seen asleep on a connection"},
    ClueInfo{Clue::kOnPipe, "it was seen asleep on a pipe or local socket"},
    ClueInfo{Clue::kOnFullPipe, "it was seen asleep on a full pipe"},
    ClueInfo{Clue::kInPoll, "it was seen asleep in poll"},
    ClueInfo{Clue::kOnTimer, "it was seen asleep on a timer"},
    ClueInfo{Clue::kOnLock, "it was seen asleep on a lock"},
    ClueInfo{Clue::kOnFile, "it was seen blocked on files"},
    ClueInfo{Clue::kAtTerminal, "it was seen asleep at a terminal"},
    ClueInfo{Clue::kRead, "data came from storage"},
    ClueInfo{Clue::kHardlyRead, "hardly anything came from storage"},
    ClueInfo{Clue::kWrote, "it wrote to storage"},
    ClueInfo{Clue::kWroteNothing, "nothing was written to storage"},
    ClueInfo{Clue::kThreadsRan, "its other threads ran"},
    ClueInfo{Clue::kInterpreterTaken, "another thread had the interpreter"},
    ClueInfo{Clue::kInterpreterOften, "another thread often had the interpreter"},
    ClueInfo{Clue::kCopied, "such copies take most of this time for what came over PCIe"},
    ClueInfo{Clue::kCopiedSome, "such copies take a part of this time for what came over PCIe"},
    ClueInfo{Clue::kWaitsForKernels, "it also waits for its kernels"},
    ClueInfo{Clue::kHardlyWaitsForKernels, "its stacks hardly ever wait for kernels"},
    ClueInfo{Clue::kKernelsOnlyAwaited, "kernels ran hardly ever but while it waited for them"},
    ClueInfo{Clue::kLaunches, "its stacks are in code that launches kernels"},
    ClueInfo{Clue::kWithoutKernels, "hardly a kernel ran while it was in that code"},
    ClueInfo{Clue::kOwnCode, "its stacks are in its own code"},
    ClueInfo{Clue::kPlainCode, "its stacks are in code that uses no GPU"},
    ClueInfo{Clue::kNamedOtherwise, "the name of its function speaks of no validation"},
    ClueInfo{Clue::kNamesNoLoading, "the name of its function speaks of no data"},
    ClueInfo{Clue::kEachStep, "that code was seen in nearly every second"},
    ClueInfo{Clue::kPauses, "the pauses are too long for a step"},
    ClueInfo{Clue::kPrepares, "the same code ran before the first kernel"},
    ClueInfo{Clue::kEnds, "the same code ran after the last kernel"},
    ClueInfo{Clue::kHelpersAtWork, "processes that it started were at work"},
    ClueInfo{Clue::kHelpersBusy, "they ran, or wanted to, for most of it"},
    ClueInfo{Clue::kNoHelpers, "it has no worker processes"},
    ClueInfo{Clue::kNotebook, "it is a notebook or an interactive interpreter"},
    ClueInfo{Clue::kCalledCompiling, "most of it is in code whose name says that it compiles"},
    ClueInfo{Clue::kFlushesLittle, "it waited until the disk had it (fsync), and it was little"},
};
static_assert(in_order_of_ids(kClues));
[[nodiscard]] constexpr const ClueInfo& info(Clue clue) { return kClues[static_cast<std::size_t>(clue)]; }

// What was seen in the claimed time; empty where the processes on these GPUs were not watched.
[[nodiscard]] std::vector<Clue> clues_in(const Analysis& a, const Claims& claims);

}  // namespace headroom::diagnose
