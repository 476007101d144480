// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "analyze/analysis.h"
#include "diagnose/claims.h"

// Time that no reading covers: what ran in it nobody could have seen.
namespace headroom::diagnose {

// Whether there are readings of GPUs and nothing else: no process of a job is known.
[[nodiscard]] bool readings_alone(const Analysis& a);

// On its device of the budget the time around a loss: from the last good reading before, which may lie long before the
// driver said so, to the next one. Empty where there is no such device.
[[nodiscard]] Window unread_around(const Analysis& a, const LostDevice& lost);
// The same as slices of the ledger.
[[nodiscard]] Claims unread_by_loss(const Analysis& a, const LostDevice& lost);
// GPU time up to the end of the window that no reading covers, of GPUs that report their utilisation.
[[nodiscard]] Nanos unseen_at_end(const Analysis& a);
// Whether a device is unreported because a log was never asked for its utilisation: that says nothing of the driver.
[[nodiscard]] bool logged_no_utilisation(const Analysis& a, std::size_t device);
// "no column of utilisation"; that none is known as one, where the log has columns that are not kept.
[[nodiscard]] std::string no_utilisation_words(const Analysis& a);
// The readings of a GPU that a log of them has, where they are so few that they tell nothing but themselves: one has no
// length, and a handful no pattern.
[[nodiscard]] std::optional<std::int64_t> too_few_readings(const Analysis& a);
// True if somebody who came to a running job watched it for a few seconds only: that tells nothing of the rest of its
// life. A job whose whole life was seen is merely short.
[[nodiscard]] bool watched_for_a_moment(const Analysis& a);
// Whether a process of the job had run for a while when the recording began: what it did before nobody saw.
[[nodiscard]] bool was_met_midway(const Analysis& a);
// Whether it is too much, or behind a loss, to deny kernels of.
[[nodiscard]] bool may_have_missed_kernels(const Analysis& a);

}  // namespace headroom::diagnose
