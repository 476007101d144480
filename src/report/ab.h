// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

#include "model/comparison.h"
#include "report/layout.h"

namespace headroom::report {

// What to say of `headroom ab` beside the comparison itself.
struct AbFacts {
  int pairs = 0;      // that are complete
  std::string order;  // "alternate", "random"
  std::uint64_t seed = 0;
  std::string stopped;       // why there are not as many pairs as were asked for, or not narrow enough; "": there are
  std::string failed;        // which run did not succeed, and why; "": none
  bool interrupted = false;  // by a signal
  std::string resume, folder;
};
[[nodiscard]] std::string to_text(const Comparison& comparison, const AbFacts& facts, const TextOptions& options);
// "headroom.compare/1" with the member "ab".
[[nodiscard]] std::string to_json(const Comparison& comparison, const AbFacts& facts);

}  // namespace headroom::report
