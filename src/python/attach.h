// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include "base/result.h"
#include "python/walker.h"

namespace headroom::python {

// Finds the interpreter in a process: by the dynamic symbols of the file that holds it, as the process itself sees that
// file (/proc/<pid>/root), and where it is mapped. Errors as PythonProcess::attach says.
[[nodiscard]] Result<Target> find_python(std::int64_t pid, ProcessMemory& memory);

}  // namespace headroom::python
