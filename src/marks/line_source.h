// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"
#include "base/time.h"

namespace headroom::marks {

// Where the output of a job is read from. Never blocks.
class LineSource {
 public:
  struct Piece {
    std::string_view bytes;
    Nanos at = 0;
    std::uint16_t stream = 0;      // of the source: each has lines of its own
    std::int64_t lost_before = 0;  // lines of the stream that came between the piece before and this one
    bool follows = true;           // false: what stands unended before it has no end
  };
  using Take = std::function<void(const Piece&)>;
  LineSource() = default;
  LineSource(const LineSource&) = delete;
  LineSource& operator=(const LineSource&) = delete;
  virtual ~LineSource() = default;

  // Hands over what has come, about `most` bytes of it. False if there is more.
  virtual bool look(std::size_t most, Nanos now, const Take& take) = 0;
};

// The records of pumps, out of a non-blocking pipe (pump/copy.h).
[[nodiscard]] std::unique_ptr<LineSource> copied_lines(Fd pipe);

// What is appended to a file that is open already, from an offset on.
[[nodiscard]] std::unique_ptr<LineSource> lines_of_file(Fd file, std::int64_t from);

// What is appended to the file at `path`: from its end as it is now, or, where there is none yet, from its begin. It
// may be cut short (then it is read from its begin), and it may be moved away and another put in its place, which is
// read when the first one has been. kInvalidInput: not a regular file.
[[nodiscard]] Result<std::unique_ptr<LineSource>> lines_at_path(const std::string& path);

}  // namespace headroom::marks
