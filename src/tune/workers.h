// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include "tune/timeline.h"

namespace headroom::tune {

// From a moment on so many, until the next; in order, from the first begin on.
using OpenCurve = std::vector<std::pair<Nanos, std::int64_t>>;

enum class Until : std::uint8_t { kEnd, kAliveUntil };
enum class From : std::uint8_t { kBegin, kFirstStep };
[[nodiscard]] OpenCurve open_curve(const std::vector<TrialSpan>& spans, From from, Until until);

// How many trials were there to be open at once, by those that were not dead: the count that held for more than half of
// the time in which any was open. Where none did, because workers have gaps between trials, the highest that held for a
// hundredth of it. 0: no trial. Where the storage knows who had each trial: as many as were there for most of the time,
// from the first trial of each to its last, if that is more.
[[nodiscard]] std::int64_t infer_workers(const Study& study, const Timeline& timeline);

// Declares RUNNING trials dead whose workers have gone on: since they began, younger ones began, and since they were
// heard of last more were open than there are workers, and that is longer ago than any trial took that ended. The
// oldest first, so many as are too many. Where the number of workers is inferred it takes more: two younger ones per
// worker, and too many open for most of the time since; else somebody started a worker more.
enum class Told : std::uint8_t { kNo = 0, kYes };
void find_replaced(const Study& study, std::int64_t workers, Told told, Timeline& timeline);

// A gap of so many usual ones between trials is nobody's start-up: the worker was not there.
inline constexpr double kPause = 10;

// Declares RUNNING trials dead whose worker has begun another one since, as the storage has it. A worker of which three
// trials ended, and none beside another, runs one at a time; who asks for several and tells them later does not.
void find_left_behind(const Study& study, Timeline& timeline);

// Gives each trial a worker: the storage's, else the one that has been free for longest and is still there; or the one
// that has been free for nearest to as long as usual, where that makes these times far more alike.
void place_lanes(const Study& study, Timeline& timeline);

// From the study's begin on so many workers, and from the last sign of one that died or left on, so many less, as its
// lanes have it. Empty: none left before the study ran out, or others came later.
[[nodiscard]] OpenCurve fewer_workers(const Timeline& timeline);
// How many had left by then, of those that were there: also within a session that a pause of nobody ends, after which
// others came.
[[nodiscard]] OpenCurve gone_workers(const Timeline& timeline);

// Seconds from the end of a trial to the begin of the next one of its worker.
[[nodiscard]] std::vector<double> gaps(const Timeline& timeline);

}  // namespace headroom::tune
