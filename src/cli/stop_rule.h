// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "base/time.h"
#include "cli/cli11.h"
#include "live/session.h"

// When enough of a job was seen: `headroom probe` stops what it runs, and does so through hidden options of `run`.
namespace headroom::cli {

struct StopRule {
  std::int64_t warm_up = 0;  // its first steps, which count for nothing
  std::int64_t steps = 0;    // after the first count that is past these; 0: however many
  Nanos time = 0;            // after that count; 0: however long

  [[nodiscard]] bool any() const { return steps > 0 || time > 0; }
};
void declare_stop_rule(CLI::App& app, StopRule& rule);
// The options that say it.
[[nodiscard]] std::vector<std::string> words_of(const StopRule& rule);

// Calls `counted` with the steps that the job has done, by the most trusted of those that count them, whenever they
// have become more. From the session's threads.
void watch_steps(SessionOptions& session, std::function<void(std::int64_t steps)> counted);

}  // namespace headroom::cli
