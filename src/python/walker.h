// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "python/code_table.h"
#include "python/layout.h"
#include "python/memory.h"

namespace headroom::python {

inline constexpr std::size_t kMostFrames = 256;  // of a stack: the innermost ones
inline constexpr std::size_t kMostThreads = 32;  // of a process: the oldest ones

// Where an interpreter is found in a process.
struct Target {
  Layout layout;
  Address runtime = 0;     // _PyRuntime
  Address code_type = 0;   // PyCode_Type
  Address frame_type = 0;  // PyFrame_Type; 0: not known
};

enum class Gil : std::uint8_t { kNotHeld = 0, kHeld = 1, kUnknown = 2 };

struct ThreadLook {
  enum class Stack : std::uint8_t { kRead, kEmpty, kRejected };
  Address state = 0;            // of its PyThreadState: what tells it apart while it lives
  std::uint64_t thread_id = 0;  // pthread_self()
  std::uint64_t native_id = 0;  // gettid(); 0 before 3.11
  Stack stack = Stack::kEmpty;
  Gil gil = Gil::kUnknown;
  bool cut = false;            // there are more frames further out
  bool same = false;           // as in the last look that got a stack of it
  std::vector<CodeId> frames;  // outermost first; the last one may be what the innermost one calls (CodeTable::called)
};

struct ProcessLook {
  enum class Result : std::uint8_t { kRead, kNoInterpreter, kRejected };
  Result result = Result::kRejected;
  std::vector<ThreadLook> threads;  // the oldest first; of those that were looked at
  std::size_t left_out = 0;         // threads beyond kMostThreads
  bool more_interpreters = false;   // than the main one, which alone is looked at
};

// Reads the stacks of a main interpreter that goes on running meanwhile. All is copied in one system call in this
// order: the frames, what tells the innermost ones, the frames again. A frame that both copies show was there in
// between, when the innermost one was told; so whatever that one was, the frame below it called it. All frames of a
// stack but the innermost must be such; otherwise that stack is copied again, and rejected after some tries.
class StackWalker {
 public:
  // `source`, which outlives it, tells what the innermost frames call.
  StackWalker(Memory& memory, const Target& target, SourceFiles* source = nullptr, LinesOf lines = LinesOf::kOwnCode);

  // Reuses what `look` has allocated.
  void look(ProcessLook& look);
  [[nodiscard]] const CodeTable& codes() const { return codes_; }
  [[nodiscard]] std::size_t system_calls() const { return first_.system_calls() + second_.system_calls(); }

 private:
  struct Frame {
    Address at = 0, code = 0;
    bool from_python = false;                    // the next one outwards called it without C in between
    std::uint64_t instruction = 0;               // Layout::instruction
    bool operator==(const Frame& other) const {  // wherever it is in its code
      return at == other.at && code == other.code && from_python == other.from_python;
    }
  };
  struct Walk {
    bool sound = false;  // every frame led to the next
    bool cut = false;
    std::vector<Frame> frames;  // innermost first
  };
  struct Known {  // of a thread, from look to look
    Address state = 0;
    std::uint64_t thread_id = 0;
    Walk walk;
    std::vector<CodeId> frames;  // outermost first
    std::optional<CodeId> call;  // by the innermost one
    std::size_t checked = 0;     // the look in which all its code objects were last checked
    std::size_t seen = 0;        // the last look it was in
    std::vector<Region> touched;
  };

  bool list_threads(ProcessLook& look);
  bool list_states(Address interpreter, Address state);
  [[nodiscard]] std::optional<Address> gil_holder(Address interpreter);
  [[nodiscard]] std::optional<Address> innermost_frame(Snapshot& snapshot, Address state, std::vector<Region>& touched);
  [[nodiscard]] std::uint8_t owner_of(const std::byte* frame) const;
  [[nodiscard]] bool is_frame(const std::byte* bytes) const;
  [[nodiscard]] Frame frame_of(Address at, const std::byte* bytes) const;
  void walk(Snapshot& snapshot, Address state, Walk& walk, std::vector<Region>& touched);
  [[nodiscard]] Known& known(const ThreadLook& thread);
  void settle(ThreadLook& thread, Known& known);
  void order_twice(std::vector<Region>& regions) const;
  [[nodiscard]] bool held_still(Snapshot& snapshot, const Walk& walk) const;
  [[nodiscard]] bool accept(Snapshot& snapshot, ThreadLook& thread, Known& known);
  bool go_on(Snapshot& snapshot, Known& known);
  [[nodiscard]] std::optional<CodeId> called(Snapshot& snapshot, const Walk& walk);
  [[nodiscard]] bool knows_code(const Known& known, std::size_t i, Address code) const;
  [[nodiscard]] bool check_codes(Snapshot& snapshot, const Walk& walk, const Known& known);
  const std::byte* touch(Snapshot& snapshot, Address at, std::size_t size, std::vector<Region>& touched);

  Target target_;
  SourceFiles* source_;
  CodeTable codes_;
  Snapshot first_, second_;
  std::vector<Region> plan_, shared_, again_;  // to copy at once: in the next look; for all threads; of one thread
  std::vector<Address> states_;
  std::vector<Known> known_;
  Walk walk_;
  std::vector<CodeId> ids_;
  std::size_t looks_ = 0;
};

}  // namespace headroom::python
