// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

#include "host/proc_dir.h"

namespace headroom::host {

// Whether the process has a file of a GPU's driver open: /dev/nvidia*, those of Tegra boards (/dev/nvhost*, /dev/nvmap,
// /dev/nvgpu), WSL2's /dev/dxg, or `virtual_gpus`, the one that users of virtual GPUs hold ("" for none). Without one,
// no kernel of it can run. Nothing: that could not be seen (another user's process, or too many files).
[[nodiscard]] std::optional<bool> has_gpu_file(ProcDir& proc, std::int64_t pid, std::string_view virtual_gpus);

// Until when nothing of one process ran on a GPU, from looks at its files. The first file of a driver that is seen
// ends it: later looks would tell nothing. A look costs tens of microseconds: the older a process is, the rarer they
// are. One that did not run since, by its CPU clock, has opened nothing.
class GpuFiles {
 public:
  explicit GpuFiles(Nanos start) : start_(start) {}

  // Whether it takes a look to know more. `clock`: CPU time of the process, where that can be told.
  [[nodiscard]] bool due(std::optional<Nanos> clock, Nanos at);
  // `least`: the time between two looks at a young process. From the first file on, and where none can be seen, it is
  // not due any more. True: there it is.
  [[nodiscard]] bool look(ProcDir& proc, std::int64_t pid, std::string_view virtual_gpus, Nanos least, Nanos at);
  // At every look until then it had none open; nothing where there was no such look.
  [[nodiscard]] std::optional<Nanos> none_until() const { return none_until_; }

 private:
  Nanos start_, next_ = 0;
  bool over_ = false;
  std::optional<Nanos> none_until_, clock_;  // the latter: at the last look, before the files
};

}  // namespace headroom::host
