// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "screen/scene.h"

// The parts of a picture, from the top. Each has `rows` rows at most from `row` on and returns the row after its last.
// For picture.cc.
namespace headroom::screen {

// How many of so many rows the GPUs have where others need rows, too: at least one for each strip, if two thirds will
// do.
[[nodiscard]] std::size_t rows_for_gpus(const Scene& scene, const State& state, std::size_t rows);
std::size_t put_gpus(Canvas& canvas, std::size_t row, std::size_t rows, const Scene& scene, const State& state);
std::size_t put_table(Canvas& canvas, std::size_t row, std::size_t rows, const Scene& scene, const State& state);
std::size_t put_finding(Canvas& canvas, std::size_t row, std::size_t rows, const Scene& scene, const State& state);

[[nodiscard]] std::vector<std::string> lines_of(std::string_view text);  // without empty ones at the end

inline constexpr std::string_view kHelp = R"(headroom top: what the GPUs did, and what they waited for

  q          quit                            ?   this page
  space      stand still, go on              e   the end: live again
  t T        next, previous reading          b   the beginning
  j J        forward, back by a time         > < play faster, slower
  + -        a longer, a shorter window      w   why: the report of the window
  left right one GPU, all GPUs               /   filter by name or pid; !x: all but x
  up down    choose a row                    o   sort, then m c r t p n u
  Enter      all of the chosen row           Tab tasks or processes of a batch
  Esc        back                            k   signal to the chosen process
  1 to 9     one GPU, the first is 1; once more: all
  B S P F    bars, accounts over time, table, finding: hide, and show again
  mouse      click on a GPU: it alone, and all again; on a row: choose it, and
             all of the chosen one; the wheel scrolls

The first line says what the GPUs did in the window, which ends now, or where a
replay stands. Bars and strips show the accounts of the ledger in that window:
the legend below them names them (docs/ledger.md). A strip shows them over time,
the oldest on the left, computing at the bottom.

Computing: a kernel was on the GPU (the driver may count copies, too).
CPU is in cores, between the last two readings. W is a GPU's power where
nothing else is on that GPU.
Signals ask first, go to processes of the recording's job on this machine only,
and to none with --readonly or while the picture stands still.
)";

}  // namespace headroom::screen
