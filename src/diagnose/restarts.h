// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "analyze/analysis.h"
#include "diagnose/claims.h"

// Processes of a job that use a GPU one after the other, and how the job ended.
namespace headroom::diagnose {

// Those that held a device, each after the one before it had ended; the longest such row of any device.
[[nodiscard]] std::vector<const ContextUse*> in_turn(const Analysis& a);
[[nodiscard]] bool many_in_turn(const Analysis& a, const std::vector<const ContextUse*>& row);

// The job ended by itself, and not well; nobody knows that of one of which only a window is looked at.
[[nodiscard]] bool failed(const Analysis& a);

// Its output said that a GPU's memory did not suffice, a process of it started after that, and it said so again.
[[nodiscard]] bool ran_out_again(const Analysis& a);

// The starts after it first said so, each one more try; nothing where it did not run out again.
[[nodiscard]] Claims tries_again(const Analysis& a);

}  // namespace headroom::diagnose
