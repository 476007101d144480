// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "analyze/analysis.h"

// Whose processes a log names on the GPUs (gpustat does).
namespace headroom::diagnose {

// "alice python on GPUs 0 and 1; bob vllm on GPU 2"; "" where the log names nobody.
[[nodiscard]] std::string users_words(const Analysis& a);
// What else a log says of the processes on its GPUs: "4101 python (GPU 0)"; "" where it names none.
[[nodiscard]] std::string named_processes(const Analysis& a);
// Of programs that computed on a device, those that its last reading lists; where that lists none, the one that was
// seen last. Both "" where the log does not tell, and of a window that ends before it.
struct LastListed {
  std::string still, gone;
};
[[nodiscard]] LastListed last_listed(const Analysis& a, std::size_t device);
[[nodiscard]] bool has_users(const Analysis& a, std::size_t device);
// The devices with kernels, by job as far as users tell: those that share one may be one job's. Empty where they tell
// of one at most, or where kernels ran on a device on which nobody is named.
[[nodiscard]] std::vector<std::vector<std::size_t>> jobs_by_users(const Analysis& a);

}  // namespace headroom::diagnose
