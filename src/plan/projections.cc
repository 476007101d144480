// SPDX-License-Identifier: Apache-2.0
#include "plan/projections.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/human.h"

namespace headroom::planning {

namespace {

// An epoch as the job itself calls it.
std::optional<Nanos> told_epoch(const Explanation& e) {
  for (const Phase& phase : e.phases)
    if (phase.name == "epoch" && phase.count > 0) return phase.total / phase.count;
  return std::nullopt;
}

// For who asks about epochs: how often the longest phase that recurs regularly begins.
std::optional<Nanos> period_of(const Explanation& e) {
  std::optional<Nanos> period;
  Nanos longest = 0;
  for (const Phase& phase : e.phases) {
    if (!phase.period || phase.count < 2 || phase.total <= longest) continue;
    longest = phase.total;
    period = phase.period;
  }
  return period;
}

Nanos times(Nanos one, std::int64_t count) {
  constexpr double kMost = 9e18;
  const double all = static_cast<double>(one) * static_cast<double>(count);
  return static_cast<Nanos>(std::min(all, kMost));
}

}  // namespace

std::vector<Projection> projections(const Explanation& e, const PlanRequest& request, const Gain& gain,
                                    const std::string& with) {
  std::vector<Projection> list;
  const auto add = [&](std::string what, Nanos now) {
    if (now <= 0) return;
    list.push_back({std::move(what), seconds(now) / gain.high, seconds(now) / gain.low,
                    fmt::format("if it goes on as recorded, {}", with)});
  };
  if (e.pipeline) {  // Amdahl's two parts: waits between kernels are no part of what a faster GPU makes faster
    const double kernels = seconds(e.pipeline->kernels), rest = seconds(e.ledger.span()) - kernels;
    const std::string all = human_duration(e.ledger.span());
    list.push_back({fmt::format("all {} with kernels twice as fast", all), rest + kernels / 2, rest + kernels / 2,
                    "if all else takes as long as now"});
    list.push_back(
        {fmt::format("all {} however fast the kernels become", all), rest, rest, "if all else takes as long as now"});
  }
  if (request.left) add(fmt::format("the remaining {}", human_duration(*request.left)), *request.left);
  const bool asked = request.epochs || request.trials;
  auto epoch = request.epoch ? request.epoch : told_epoch(e);
  if (!epoch && asked) epoch = period_of(e);
  if (epoch && (asked || !request.left)) add(fmt::format("an epoch of {}", human_duration(*epoch)), *epoch);
  Nanos run = e.ledger.span();
  if (request.epochs && epoch) {
    run = times(*epoch, *request.epochs);
    add(fmt::format("{} of {}", count_of(*request.epochs, "epoch"), human_duration(*epoch)), run);
  }
  if (request.trials) {
    const Nanos sweep = times(run, *request.trials);
    add(fmt::format("{} of {}, {} today", count_of(*request.trials, "trial"), human_duration(run),
                    human_duration(sweep)),
        sweep);
  }
  return list;
}

}  // namespace headroom::planning
