// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "base/result.h"
#include "model/process_now.h"

namespace headroom::python {

// Neither stops nor traces the process. kNotFound: there is none; kInvalidInput: the number is a thread's. Where the
// stacks may not be read, or there are none, the threads are told all the same.
[[nodiscard]] Result<ProcessNow> look_now(std::int64_t pid);

}  // namespace headroom::python
