// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "model/process_now.h"

// What `headroom stacks --pid` prints: for people, and as headroom.threads/1.
namespace headroom {

[[nodiscard]] std::string threads_text(const ProcessNow& now);
[[nodiscard]] std::string threads_json(const ProcessNow& now);

}  // namespace headroom
