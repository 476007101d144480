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

// Beside one that worked: whether the job can have both is what its owner wants to know.
bool a_gpu_stood_idle(const Explanation& e) {
  for (std::size_t device = 0; device < e.ledger.devices.size(); ++device)
    if (e.ledger.busy(device) == 0) return e.ledger.busy() > 0;
  return false;
}

Nanos times(Nanos one, std::int64_t count) {
  constexpr double kMost = 9e18;
  const double all = static_cast<double>(one) * static_cast<double>(count);
  return static_cast<Nanos>(std::min(all, kMost));
}

// Amdahl's two parts: waits between kernels are no part of what a faster GPU makes faster. What goes on beside the
// kernels may be the limit then, as it may be now: how long it takes, hidden behind them, is not known.
std::vector<Projection> with_faster_gpus(const Explanation& e, const PlanRequest& request) {
  if (!e.pipeline) return {};
  const Nanos all = request.left.value_or(e.ledger.span());
  const double kernels = seconds(all) * seconds(e.pipeline->kernels) / seconds(e.ledger.span());
  const double rest = seconds(all) - kernels;
  const std::string which = fmt::format("{} {}", request.left ? "the remaining" : "all", human_duration(all));
  std::vector<Projection> list{
      {which + " with kernels twice as fast", rest + kernels / 2, seconds(all), "if all else takes as long as now"},
      {which + " however fast the kernels become", rest, seconds(all), "if all else takes as long as now"}};
  const std::size_t gpus = a_gpu_stood_idle(e) ? e.ledger.devices.size() : 1;
  if (gpus == 1) return list;
  const double part = seconds(all) * seconds(e.pipeline->gpu_part) / seconds(e.ledger.span());
  const double others = seconds(all) - part, shared = others + part / static_cast<double>(gpus);
  list.push_back({fmt::format("{} with its GPU part split evenly over {} GPUs", which, gpus), shared, shared,
                  "if it can be split, and all else takes as long as now"});
  list.push_back(
      {which + " however fast its GPU part becomes", others, seconds(all), "if all else takes as long as now"});
  return list;
}

}  // namespace

std::vector<Projection> projections(const Explanation& e, const PlanRequest& request, const Projected& gains) {
  constexpr double kTheSame = 1.005;
  const bool more_than_asked = gains.all.high > kTheSame * gains.asked.high;
  std::vector<Projection> list = with_faster_gpus(e, request);
  const auto add = [&](const std::string& what, Nanos now) {
    if (now <= 0) return;
    const auto project = [&](const Gain& gain, const char* with, const std::string& condition) {
      list.push_back({what + with, seconds(now) / gain.high, seconds(now) / gain.low,
                      "if it goes on as recorded, with none to all of " + condition});
    };
    if (more_than_asked) project(gains.asked, ", with nothing but what was asked about", "what was asked about");
    project(gains.all, ", with all options", "the options");
  };
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
