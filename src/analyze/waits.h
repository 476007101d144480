// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "analyze/job.h"

namespace headroom {

// What the main threads of the processes waited for: JobView::waits, and the key of it in each look of JobView::did.
void add_waits(const Recording& recording, JobView& view);

}  // namespace headroom
