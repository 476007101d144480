// SPDX-License-Identifier: Apache-2.0
#include "tune/study_clock.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/human.h"

namespace headroom::tune {

namespace {

constexpr Nanos kMinute = 60 * kSecond;
constexpr Nanos kQuarter = 15 * kMinute;    // offsets of time zones are multiples of it
constexpr Nanos kSlack = kMinute;           // by which clocks of a database and its clients may differ
constexpr Nanos kJustAfter = 10 * kMinute;  // well under what two time zones differ by, which is mostly hours
constexpr Nanos kEver = 5'000'000'000 * kSecond;
constexpr Nanos kWestmost = 14 * 60 * kMinute;

// Offsets that heartbeats leave possible: a heartbeat comes after a trial's begin and before its end.
struct Possible {
  Nanos low = -kWestmost, high = kWestmost;
  std::int64_t heartbeats = 0;
  [[nodiscard]] bool holds(Nanos offset) const { return offset >= low && offset <= high; }
};

Possible by_heartbeats(const Study& study) {
  Possible possible;
  for (const Trial& trial : study.trials) {
    const auto heartbeat = sane(trial.heartbeat), start = sane(trial.start), complete = sane(trial.complete);
    if (!heartbeat || !start) continue;
    ++possible.heartbeats;
    possible.high = std::min(possible.high, *heartbeat - *start + kSlack);
    if (complete) possible.low = std::max(possible.low, *heartbeat - *complete - kSlack);
  }
  return possible;
}

// The only offset of a time zone that is possible.
std::optional<Nanos> only_offset(const Possible& possible) {
  std::optional<Nanos> only;
  for (Nanos offset = -kWestmost; offset <= kWestmost; offset += kQuarter) {
    if (!possible.holds(offset)) continue;
    if (only) return std::nullopt;
    only = offset;
  }
  return only;
}

StudyClock unknown(std::string why) { return {.offset = 0, .known = false, .how = std::move(why)}; }

// `utc` or `local`, by a test that one of them passes and the other does not; where they are the same, that passes it.
template <class Test>
std::optional<Nanos> only_one(Nanos utc, Nanos local, const Test& test) {
  const bool a = test(utc), b = test(local);
  if (utc != local && a == b) return std::nullopt;
  if (!a && !b) return std::nullopt;
  return a ? utc : local;
}

}  // namespace

std::optional<Nanos> latest_time(const Study& study) {
  std::optional<Nanos> latest;
  for (const Trial& trial : study.trials) {
    for (const auto time : {sane(trial.start), sane(trial.complete)})
      if (time && (!latest || *time > *latest)) latest = time;
  }
  return latest;
}

StudyClock study_clock(const Study& study, const StudyOptions& options) {
  if (study.times_in_utc) return {.offset = 0, .known = true, .how = "the storage names the zone of its times"};
  if (options.utc_offset) return {.offset = -*options.utc_offset, .known = true, .how = "as told"};
  const auto latest = latest_time(study);
  if (!latest) return unknown("no trial has a time");
  const Nanos utc = 0, local = -options.local_offset;
  const Possible possible = by_heartbeats(study);
  if (possible.heartbeats > 0) {
    if (possible.low > possible.high)
      return unknown("heartbeats contradict each other: some trials may be in local time and some in UTC");
    auto found = only_offset(possible);
    if (!found) found = only_one(utc, local, [&](Nanos offset) { return possible.holds(offset); });
    if (found) return {.offset = *found, .known = true, .how = "heartbeats"};
  }
  const auto written = sane(study.written);
  const Nanos never_after = std::min(written.value_or(kEver), options.now > 0 ? options.now : kEver) + kSlack;
  const auto fits = [&](Nanos offset) { return *latest + offset <= never_after && possible.holds(offset); };
  if (!fits(utc) && !fits(local))
    return unknown("neither as UTC nor as local time of this machine do its times make sense");
  const auto in_use = written ? written : sane(options.now);  // a server does not tell when it was written
  const auto just_after = [&](Nanos offset) { return fits(offset) && *in_use - *latest - offset <= kJustAfter; };
  auto found = in_use ? only_one(utc, local, just_after) : std::nullopt;
  if (found)
    return {.offset = *found,
            .known = true,
            .how = written ? fmt::format("the storage was written last at {} UTC", clock_time(*written))
                           : "its latest time was just now"};
  if (utc != local) found = only_one(utc, local, fits);
  if (found) return {.offset = *found, .known = true, .how = "otherwise its times would be in the future"};
  return unknown("nothing here tells whether its times are UTC or local time; UTC is assumed");
}

}  // namespace headroom::tune
