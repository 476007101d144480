// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "python/threads_now.h"

// `headroom stacks --pid`: what the threads of a process are at, for people and as headroom.threads/1.
namespace headroom::cli {

[[nodiscard]] std::string threads_text(const python::ProcessNow& now);
[[nodiscard]] std::string threads_json(const python::ProcessNow& now);

}  // namespace headroom::cli
