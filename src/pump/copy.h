// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <climits>
#include <cstdint>

namespace headroom::pump {

// What a pump tells the recorder of what it passes on: records in a pipe, each written by one write(2) of at most
// PIPE_BUF bytes, so that it is whole or not there, whoever dies.
struct CopyHeader {
  std::int64_t at = 0;      // when the bytes came: CLOCK_BOOTTIME
  std::uint32_t lost = 0;   // lines of this stream that had no room before these
  std::uint16_t bytes = 0;  // that follow
  std::uint16_t stream = 0;
};
inline constexpr std::size_t kMostCopied = PIPE_BUF - sizeof(CopyHeader);

}  // namespace headroom::pump
