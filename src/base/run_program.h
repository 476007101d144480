// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>

#include "base/child.h"
#include "base/result.h"
#include "base/time.h"

namespace headroom {

struct ProgramAnswer {
  ExitStatus status;
  std::string out, error;  // what it printed, at least its beginning
};

// Runs a program that answers and ends, in a group of its own and without input; its standard streams in `options` are
// set here. Its children have its standard output, and are waited for. kBusy: it takes longer than `patience`, and was
// killed; else as Child::spawn().
[[nodiscard]] Result<ProgramAnswer> run_program(ChildOptions options, Nanos patience,
                                                std::size_t most = std::size_t{1} << 20);

}  // namespace headroom
