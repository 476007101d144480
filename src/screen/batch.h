// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "model/batch_progress.h"
#include "screen/canvas.h"
#include "view/batch_trail.h"

namespace headroom::screen {

// What is repainted below the messages of a running batch: how far it is, what fails, how long it may take; each GPU
// with what is on it, its readings and a strip of accounts over the last minutes as `headroom top` draws them; the
// tasks that have run longest. As many rows as that takes, `most.rows` at most: strips go first, then GPUs are counted.
[[nodiscard]] std::vector<Line> batch_picture(const BatchProgress& progress, const view::BatchTrail& trail, Size most,
                                              Look look);

}  // namespace headroom::screen
