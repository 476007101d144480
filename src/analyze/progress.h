// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>

#include "analyze/stats.h"
#include "model/explanation.h"

// How far a job is and how long it may still take, from what it said itself: "Epoch 3/5", a bar of 267 steps, phases
// of these names, steps that it counts.
namespace headroom {

enum class Ends : std::uint8_t { kRuns, kEnded, kEndedWell };  // the job, by the instant that is asked about

// As of `at`; nothing where the job told nothing of folds, epochs or steps. Where it did not say of how many, there is
// a place and no time left. Once a fold has ended the time left is that of all folds, by their lengths, as below.
//
// The time left is a range, by the shortest and the longest epoch among the last twenty, with what is between them
// (validation, checkpoints); the time before the first epoch is in none. Of n lengths it is widened by a quarter / n on
// either side: what was seen once may have been short by chance. An epoch that takes longer than all before widens it,
// and where it takes three times as long nothing is said: who knows what the job waits for. Before an epoch has ended
// its steps stand in, from the first count on, so that the start is not in it: the paces of up to four parts of what
// was done. The pauses between epochs are then not in it, which is said. Nothing is said of less than ten steps or two
// seconds. Steps without epochs tell when these steps end, and not whether others follow.
//
// Of numbers from 0 on it is not known whether the last one is the whole ("Epoch 4/4") or the one before: the range has
// both. Where several outputs tell, the one that tells most counts. It is no forecast: a job that slows down, stops
// early or does something else behind its epochs takes longer or shorter.
//
// The next validation is told where phases of that kind began three times or more in an output or by marks, at
// distances of which the longest is at most half as much again as the shortest; widened likewise. Nothing is said while
// one is open, when one is overdue, or where the job will have ended by then.
[[nodiscard]] std::optional<Progress> progress_of(const Recording& recording, Nanos at, Ends job);

}  // namespace headroom
