// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>

#include "base/result.h"
#include "base/time.h"

namespace headroom {

// How long a file system may take to say that a file is there.
inline constexpr Nanos kPatienceWithFiles = 5 * kSecond;

// kIo where the file system of `path` does not answer in that time: a call to a network mount whose server is gone
// never returns, and no flag helps. So a thread asks, and is left behind; the same path is not asked again. A file that
// is not there is an answer.
[[nodiscard]] Result<void> answers(const std::string& path);

// Calls `ask` on a thread of its own; false where it has not returned after `patience`: the thread is left behind, so
// `ask` owns what it uses.
[[nodiscard]] bool returns_within(Nanos patience, std::function<void()> ask);

}  // namespace headroom
