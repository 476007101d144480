// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace headroom::output {

// Who ran out of memory, as its own words or the kernel say.
enum class OomKind : std::uint8_t {
  kNone,
  kCuda,
  kCublas,
  kPyTorch,
  kTensorFlow,
  kJax,
  kXgboost,
  kLightgbm,
  kHostKiller,      // the kernel's (or a cgroup's) OOM killer
  kHostAllocation,  // the host refused an allocation: std::bad_alloc, MemoryError
  kFullGpu,         // no words; it failed with the GPU's memory full
};
[[nodiscard]] std::string_view oom_kind_name(OomKind kind);
[[nodiscard]] bool is_host(OomKind kind);

struct OomEvidence {
  int exit_code = 0;                                // 128+n for signal n; 0: it succeeded
  std::string_view output_tail;                     // the last lines of stdout and stderr
  std::optional<std::int64_t> peak_gpu_used_bytes;  // of the whole GPU, in the attempt's last seconds
  std::optional<std::int64_t> gpu_memory_bytes;
  std::int64_t cgroup_oom_kills = 0;  // how much oom_kill in memory.events grew meanwhile
  bool oom_kill_meanwhile = false;    // there was one while it ran, of it or of what shares that count
  bool oom_kills_of_machine = false;  // its cgroup's are not counted: both are of the machine
};
struct OomVerdict {
  OomKind kind = OomKind::kNone;
  std::string evidence;  // the line, or the numbers, it rests on
};
// A success is never an OOM, whatever was printed on the way.
[[nodiscard]] OomVerdict recognise_oom(const OomEvidence& evidence);

// Whether one line, while it is not known yet how the job ends, says that a GPU's memory did not suffice.
[[nodiscard]] bool says_gpu_out_of_memory(std::string_view line);

}  // namespace headroom::output
