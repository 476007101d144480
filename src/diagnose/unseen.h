// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "analyze/analysis.h"
#include "diagnose/claims.h"

// Time that no reading covers: what ran in it nobody could have seen.
namespace headroom::diagnose {

// On its device of the budget the time around a loss: from the last good reading before, which may lie long before the
// driver said so, to the next one. Empty where there is no such device.
[[nodiscard]] Window unread_around(const Analysis& a, const LostDevice& lost);
// The same as slices of the ledger.
[[nodiscard]] Claims unread_by_loss(const Analysis& a, const LostDevice& lost);
// GPU time up to the end of the window that no reading covers, of GPUs that report their utilisation.
[[nodiscard]] Nanos unseen_at_end(const Analysis& a);
// Whether it is too much, or behind a loss, to deny kernels of.
[[nodiscard]] bool may_have_missed_kernels(const Analysis& a);

}  // namespace headroom::diagnose
