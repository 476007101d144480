// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/metric.h"

namespace headroom {

enum class WaitKind : std::uint8_t {
  kConnection,  // that it made; name: the far end, "10.0.0.5:443" or "[fe80::1]:443"
  kAccepted,    // that somebody made to it, or may make; name: its own port
  kUnixSocket,  // name: what the processes at the other end are called
  kPipe,        // that it reads from; likewise
  kFullPipe,    // that it writes to; likewise
  kChild,       // until it ends; name: what it is called
  kFile,        // name: its path
  kTerminal,    // likewise
  kDevice,      // likewise, "/dev/nvidia0"
  kFileLock,    // that another process holds on a file; likewise
};

// What a thread that sleeps waits for, where its system call tells it.
struct WaitTarget {
  WaitKind kind = WaitKind::kFile;
  std::string name;
  std::vector<std::int64_t> pids{};  // the processes of the job at its other end, as far as known; who has the lock
  bool operator==(const WaitTarget&) const = default;
};

// For people: "runs", "waits on a lock or event"; "" where it is in none of these families, or not known in which.
[[nodiscard]] std::string_view words_of(WaitChannel channel);
// Likewise, after "waits": "on a connection to 10.0.0.5:443, process 7", "for the file /data/a.npy". `other_end` is
// who is there, "process 7 (ffmpeg)"; "": what the target's name tells.
[[nodiscard]] std::string words_of(const WaitTarget& target, const std::string& other_end);

// As it stands in a recording: "connection 10.0.0.5:443", "pipe pids=42,43 loader.py". Inverse; nothing for what no
// such text is, or for a kind of a newer program.
[[nodiscard]] std::string to_text(const WaitTarget& target);
[[nodiscard]] std::optional<WaitTarget> wait_target_of(std::string_view text);

}  // namespace headroom
