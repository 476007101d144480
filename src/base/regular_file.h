// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace headroom {

// For files whose path somebody else may have a hand in: a FIFO, a device or a folder is refused instead of waited for,
// and so is a network mount that does not answer.
[[nodiscard]] Result<Fd> open_regular(const std::string& path);
// Without asking first whether it answers, which a thread does: a file that this process has just made.
[[nodiscard]] Result<Fd> open_regular_at_once(const std::string& path);
[[nodiscard]] Result<std::string> read_regular(const std::string& path, std::size_t limit);  // kInvalidInput beyond it

// The same of a file that people named, who may also mean what their shell's <(…) stands for: that has a writer.
[[nodiscard]] Result<std::string> read_named(const std::string& path, std::size_t limit);

// The last `most` bytes; "" where it cannot be read.
[[nodiscard]] std::string read_regular_tail(const std::string& path, std::size_t most);

}  // namespace headroom
