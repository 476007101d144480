// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/explanation.h"
#include "report/live_findings.h"
#include "screen/canvas.h"
#include "view/view.h"

// `headroom top` without its terminal: what is looked at, what a person has chosen, what keys do, and the picture of it
// all. The terminal shows the picture and hands in keys; tests look at the picture.
namespace headroom::screen {

// A window of a recording, explained. Live or not: the same.
struct Scene {
  const Explanation& explanation;  // of the window
  const view::View& view;          // likewise
  Nanos begin = 0, end = 0;        // of the whole recording, on its clock
  std::string name;                // of the recording
  std::string trouble;             // why what is shown is not the newest; ""
  std::optional<Nanos> behind;     // live: the age of the last reading
  // Live: what stands at the end of the whole recording.
  std::vector<report::StandingFinding> now = {};
  std::vector<std::string> lacks = {};  // what this picture of a machine cannot have, and what helps: a line each
};

enum class Page : std::uint8_t { kMain, kWhy, kHelp };
enum class Prompt : std::uint8_t { kNone, kFilter, kForward, kBack, kSort, kSignal };
enum class Box : std::uint8_t { kBars, kStrips, kTable, kFinding };  // of the main page
inline constexpr std::size_t kBoxes = 4;
enum class Sort : std::uint8_t { kUsual, kMemory, kCpu, kResident, kTime, kPid, kName };

// A process, or a run of a batch's task, as a row of the table.
struct Row {
  std::int64_t pid = 0;
  Nanos begin = 0;
  std::string name, command;
  std::vector<std::size_t> gpus;  // positions in Ledger::devices
  std::optional<std::int64_t> gpu_bytes, resident_bytes;
  std::optional<double> cores, watts;  // watts: of its GPUs, where nothing else is on them
  std::optional<double> sm_util;       // of a process on one GPU: the share of time in which its kernels ran
  Nanos lasted = 0;                    // by the end of the window
  std::string doing;                   // the account of its GPU, the phase, the function
  bool lives = false, in_job = true;
};

// What a person has chosen.
struct State {
  Page page = Page::kMain;
  Prompt prompt = Prompt::kNone;
  std::string typed;               // at the prompt
  std::string message;             // until the next key
  std::optional<std::size_t> gpu;  // looked at alone: position in Ledger::devices
  std::array<bool, kBoxes> hidden{};
  bool processes = false;  // of a batch: them, not its tasks
  Sort sort = Sort::kUsual;
  std::string filter;        // part of a name, a command or a pid; "!" before it: all others
  std::size_t row = 0;       // chosen in the table
  std::size_t scrolled = 0;  // lines of a page
  bool detail = false;       // of the chosen row
  Nanos window = 60 * kSecond;
  std::optional<Nanos> at;  // end of the window, from the recording's start; absent: the recording's end, as it grows
  bool plays = false;       // `at` moves on with the clock
  int speed = 1;
  bool readonly = false;
  Row target;  // of the signal that is asked for: rows may change places meanwhile

  [[nodiscard]] bool shows(Box box) const { return !hidden[static_cast<std::size_t>(box)]; }
};

struct Key {
  enum class Kind : std::uint8_t {
    kLetter,
    kUp,
    kDown,
    kLeft,
    kRight,
    kPageUp,
    kPageDown,
    kHome,
    kEnd,
    kEnter,
    kEscape,
    kBackspace,
    kTab,
    kWheelUp,
    kWheelDown,
    kClick
  };
  Kind kind = Kind::kLetter;
  char letter = 0;  // ASCII; others do nothing
  Spot spot = {};   // of a click: what was there
};
[[nodiscard]] inline Key letter(char c) { return {Key::Kind::kLetter, c}; }

// What a key asks of the world.
struct Wish {
  enum class Kind : std::uint8_t { kNone, kQuit, kSignal } kind = Kind::kNone;
  std::int64_t pid = 0;
  Nanos process_start = 0;  // of that process on the recording's clock: a number is used again
  std::string signal;       // "TERM", "INT", "KILL"
};

// Changes the state by a key. Steps in time go by the recording's interval.
[[nodiscard]] Wish press(State& state, const Scene& scene, Key key);

// Moves on what plays; at the end of the recording it stands still.
void pass(State& state, Nanos time, Nanos span);

// The window to explain next, as offsets from the start of a recording of this length; nothing where there is no time.
[[nodiscard]] std::optional<std::pair<Nanos, Nanos>> window_of(const State& state, Nanos span);

// The picture: always `size.rows` rows of `size.columns` cells. Below 40 x 10 it says so; beyond 300 x 100 is left
// empty.
[[nodiscard]] Picture picture(const Scene& scene, const State& state, Size size, Look look);

// The rows of the main page that say how old the last reading is: that changes when nothing else does.
[[nodiscard]] std::vector<Line> head(const Scene& scene, const State& state, Size size, Look look);

inline constexpr Size kSmallest{40, 10}, kLargest{300, 100};

// Those that the state's GPU and filter leave, in its order.
[[nodiscard]] std::vector<Row> rows_of(const Scene& scene, const State& state);
[[nodiscard]] bool has_tasks(const Scene& scene);

// Index of the finding that `headroom why` puts first; nothing where none costs device time, nor what a job was seen at
// for a few seconds: that is no alarm.
[[nodiscard]] std::optional<std::size_t> first_finding(const Explanation& explanation);

}  // namespace headroom::screen
