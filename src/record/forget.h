// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/recording.h"

namespace headroom {

// Makes it the recording that would have begun at that instant: rows, list rows and events from before are gone. What
// holds until another comes stays: the phases that are open and what a main thread waits for begin there, and that a
// GPU was lost, or came back, keeps its time. Nothing changes where it begins then, or later.
void forget_before(Recording& recording, Nanos instant);

// Those of one source, lists aside.
void forget_rows(Track& track, Nanos instant);

}  // namespace headroom
