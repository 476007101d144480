// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "model/ledger.h"

namespace headroom {

// Whether time of this account comes with the job's steps: kernels, and idle time between them. A start, what comes
// once in many steps, and an end are outside of the loop.
[[nodiscard]] inline bool in_loop(Account account) {
  return is_busy(account) ||
         (is_held_idle(account) && account != Account::kStartup && account != Account::kCheckpoint &&
          account != Account::kValidationHost && account != Account::kTeardown && account != Account::kHung);
}

}  // namespace headroom
