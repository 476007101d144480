// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "model/finding.h"

namespace headroom {

// What most of a start is, where stacks tell: its imports, or functions of the job's own.
struct StartPart {
  double share = 1;  // of the start at most: what no stack tells may be of it, too
  double told = 1;   // what stacks tell to be of it
  bool imports = false;
  std::vector<std::int32_t> code;  // else, the largest first: indices into Ledger::places
};
[[nodiscard]] StartPart part_of_start(const Ledger& ledger, const Finding& finding);

// "load (train.py:3) and index (train.py:9)"
[[nodiscard]] std::string code_of_start(const Ledger& ledger, const StartPart& part);

}  // namespace headroom
