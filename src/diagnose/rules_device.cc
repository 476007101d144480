// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/human.h"
#include "diagnose/rules.h"
#include "diagnose/unseen.h"
#include "diagnose/words.h"
#include "model/gpu_vendor.h"
#include "model/observations.h"

namespace headroom::diagnose {

std::vector<Finding> sensor_outlier(const Analysis& a) {
  std::vector<Finding> findings;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const MetricStats* power = a.stats_of(device, Metric::kPower);
    if (!power || power->excluded.empty()) continue;
    const ExcludedReading& first = power->excluded.front();
    Finding finding;
    finding.cause = Cause::kSensorOutlier;
    finding.confidence = Confidence::kHigh;
    finding.tiers = "N";
    finding.title =
        power->excluded.size() == 1
            ? fmt::format("One power reading of {} cannot be true", a.device_name(device))
            : fmt::format("{} power readings of {} cannot be true", power->excluded.size(), a.device_name(device));
    finding.evidence.push_back(fmt::format("power {:.1f} W at {}: {}", first.value, a.when(first.at), first.reason));
    const auto n = static_cast<double>(power->samples), out = static_cast<double>(power->excluded.size());
    double with = power->mean * n;
    for (const auto& excluded : power->excluded) with += excluded.value;
    finding.evidence.push_back(fmt::format(
        "left out of the statistics (kept in the recording): mean {:.1f} W, maximum {:.1f} W; with it {:.1f} W",
        power->mean, power->max, with / (n + out)));
    finding.told_apart_from = {"a real peak: the readings around it are ordinary"};
    findings.push_back(std::move(finding));
  }
  return findings;
}

namespace {

// What the sensors say of a device while it ran kernels.
struct KernelLoad {
  bool of_a_phase = false;  // of its busiest one; else all in all
  double busy = 0;
  std::optional<double> memory, power, limit;  // shares of the time; watts
  std::optional<double> sm;                    // share of the SMs' time
  std::optional<double> engine;                // share of the time in which the engine for kernels was active
  // Of the time in which kernels ran, where the engine's activity is known: of the SMs, of the tensor and the FP64
  // pipes, and of the memory's bandwidth.
  std::optional<double> sm_of_kernels, tensor_of_kernels, fp64_of_kernels, dram_of_kernels;

  [[nodiscard]] bool low(const Thresholds& limits) const {
    const double low_sm = limits[Threshold::kLowSmActive];
    if (gaps(limits)) return true;
    if (sm_of_kernels) return busy >= limits[Threshold::kMaterial] && *sm_of_kernels < low_sm;
    if (busy < limits[Threshold::kFullBusy]) return false;
    if (sm) return *sm < low_sm;
    const bool low_power = !limit || (power && *power <= limits[Threshold::kLowPower] * *limit);
    return memory && *memory <= limits[Threshold::kLowMemoryTraffic] && low_power;
  }

  // The driver counts far more time than its engine was active in.
  [[nodiscard]] bool gaps(const Thresholds& limits) const {
    constexpr double kMost = 0.8;  // by judgement: copies beside kernels, and what readings miss, make up less
    return engine && busy >= limits[Threshold::kFullBusy] && *engine <= kMost * busy;
  }

  // They fill the SMs and neither the memory nor the pipes that multiply matrices: float32 arithmetic, above all.
  [[nodiscard]] bool without_tensor_pipes(const Thresholds& limits) const {
    constexpr double kFullSms = 0.7, kHardly = 0.1, kBandwidth = 0.5;  // by judgement; bf16 on an H200: 0.5 and more
    return busy >= limits[Threshold::kMaterial] && sm_of_kernels.value_or(0) >= kFullSms &&
           tensor_of_kernels.value_or(1) < kHardly && fp64_of_kernels.value_or(0) < kHardly &&
           dram_of_kernels.value_or(1) < kBandwidth;
  }
};

KernelLoad kernel_load(const Analysis& a, std::size_t device) {
  const auto mean = [&](Metric metric) -> std::optional<double> {
    const MetricStats* stats = a.stats_of(device, metric);
    return stats && stats->samples > 0 ? std::optional(stats->mean) : std::nullopt;
  };
  KernelLoad load;
  const Nanos span = a.ledger.span();
  load.busy = span > 0 ? static_cast<double>(a.ledger.busy(device)) / static_cast<double>(span) : 0;
  load.memory = mean(Metric::kMemoryUtil);
  load.power = mean(Metric::kPower);
  for (const Phase& phase : a.phases)
    if (phase.device == device && phase.name == "kernels running") {
      load.of_a_phase = true;
      load.busy = phase.gpu_util_ratio.value_or(load.busy);
      load.memory = phase.memory_util_ratio;  // absent where no reading is of such a phase alone: then it is not known
      load.power = phase.power_watts;
    }
  load.sm = mean(Metric::kSmActive);
  const auto engine = mean(Metric::kGraphicsActive);
  if (readings_alone(a) && !load.of_a_phase) load.engine = engine;
  const auto of_kernels = [&](std::optional<double> share) {
    return share && engine && *engine > 0 ? std::optional(std::min(1.0, *share / *engine)) : std::nullopt;
  };
  load.sm_of_kernels = of_kernels(load.sm);
  load.tensor_of_kernels = of_kernels(mean(Metric::kTensorActive));
  load.fp64_of_kernels = of_kernels(mean(Metric::kFp64Active));
  load.dram_of_kernels = of_kernels(mean(Metric::kDramActive));
  load.limit = a.devices[device].device.power_limit_watts;
  return load;
}

std::vector<std::string> evidence_of(const KernelLoad& load) {
  std::vector<std::string> evidence{fmt::format("{} a kernel was resident {} of the time",
                                                load.of_a_phase ? "in its busiest phase" : "all in all",
                                                human_percent(load.busy))};
  if (load.memory)
    evidence.push_back(fmt::format("its memory was read or written {} of the time", human_percent(*load.memory)));
  if (load.power)
    evidence.push_back(load.limit ? fmt::format("it drew {:.0f} of {:.0f} W", *load.power, *load.limit)
                                  : fmt::format("it drew {:.0f} W (its limit was not logged)", *load.power));
  if (load.sm && !load.sm_of_kernels)
    evidence.push_back(fmt::format("SMs were active {} of the time", human_percent(*load.sm)));
  return evidence;
}

Finding no_tensor_pipes(const Analysis& a, std::size_t device, const KernelLoad& load) {
  Finding finding;
  finding.cause = Cause::kBusyButInefficient;
  finding.confidence = Confidence::kLow;
  finding.tiers = "N";
  finding.title = fmt::format("{}: its kernels hardly use its tensor cores", a.device_name(device));
  finding.evidence = {
      fmt::format("while they run, {} of its SMs are active, the tensor pipes {} of the time, and the "
                  "memory moves {} of what it could",
                  human_percent(*load.sm_of_kernels), human_percent(*load.tensor_of_kernels),
                  human_percent(*load.dram_of_kernels))};
  append(finding.evidence, evidence_of(load));
  finding.told_apart_from = {"kernels that wait for memory: its bandwidth is not what limits them"};
  finding.advice = fmt::format(
      "if these are matrix products or convolutions in float32: {}",
      words_for(a.meta, {"torch.set_float32_matmul_precision('high') (TF32), or torch.autocast with bfloat16",
                         "TF32 or bfloat16 in the library that computes them"}));
  finding.would_overturn =
      "a profile of the kernels (Nsight Systems): others than matrix products have no use for them";
  return finding;
}

// What else was logged of what the kernels do: how busy the tensor pipes were, and what went over PCIe.
std::vector<std::string> pipes_and_link(const Analysis& a, std::size_t device) {
  std::vector<std::string> words;
  const auto mean = [&](Metric metric) -> std::optional<double> {
    const MetricStats* stats = a.stats_of(device, metric);
    return stats && stats->samples > 0 ? std::optional(stats->mean) : std::nullopt;
  };
  if (const auto tensor = mean(Metric::kTensorActive))
    words.push_back(fmt::format("its tensor pipes were active {} of the time", human_percent(*tensor)));
  const auto in = mean(Metric::kPcieRxRate), out = mean(Metric::kPcieTxRate);
  const auto rate = [](double bytes) { return human_bytes(static_cast<std::int64_t>(bytes)) + "/s"; };
  if (in && out)
    words.push_back(fmt::format("over PCIe {} came to it and {} went from it", rate(*in), rate(*out)));
  else if (in)
    words.push_back(fmt::format("over PCIe {} came to it", rate(*in)));
  return words;
}

}  // namespace

// "100 %" means that a kernel was resident, not that it did much. A question, not a loss: it costs no idle time.
std::vector<Finding> busy_but_inefficient(const Analysis& a) {
  std::vector<Finding> findings;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const KernelLoad load = kernel_load(a, device);
    if (a.gpus[device].stall) continue;
    if (load.without_tensor_pipes(a.limits)) findings.push_back(no_tensor_pipes(a, device, load));
    if (!load.low(a.limits)) continue;
    Finding finding;
    finding.candidates = {Cause::kLaunchBound, Cause::kBusyButInefficient, Cause::kBatchTooSmall};
    finding.confidence = Confidence::kLow;
    finding.tiers = "N";
    finding.title = fmt::format("{}: busy does not mean full here", a.device_name(device));
    finding.evidence = evidence_of(load);
    if (load.gaps(a.limits)) {
      finding.title = fmt::format("{}: its engine for kernels was active {} of the time, of which the driver counts {}",
                                  a.device_name(device), human_percent(*load.engine), human_percent(load.busy));
      finding.evidence.emplace_back(
          "in the rest it may have copied and done nothing else, or its kernels come with gaps between them that are "
          "too short for the driver's readings");
      append(finding.evidence, pipes_and_link(a, device));
    } else if (load.sm_of_kernels) {
      finding.confidence = Confidence::kMedium;
      finding.title = fmt::format("{}: while its kernels run, {} of its SMs are active", a.device_name(device),
                                  human_percent(*load.sm_of_kernels));
    } else if (load.sm) {
      append(finding.evidence, pipes_and_link(a, device));
    }
    if (load.gaps(a.limits)) {
      finding.would_overturn =
          "a trace (Nsight Systems, PyTorch's profiler) in which kernels follow one another without gaps";
    } else if (load.sm_of_kernels || load.sm) {
      finding.advice =
          "give each kernel more to do (a larger batch, fused operators), or share the GPU with other tasks";
      finding.would_overturn = "the time of a step with twice the batch: where it doubles, it is not the SMs that wait";
    } else {
      finding.told_apart_from = {"an efficient compute-bound kernel: cannot be excluded from these readings"};
      finding.would_overturn = "SM and tensor activity (DCGM, or Nsight Systems): near their maximum, the GPU is full";
    }
    findings.push_back(std::move(finding));
  }
  return findings;
}

// Kernels that are resident and do nothing: one side of a collective that waits for the other.
std::vector<Finding> stalled(const Analysis& a) {
  Finding finding;
  std::vector<std::size_t> waiting;
  Nanos longest = 0;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const auto& stall = a.gpus[device].stall;
    if (!stall) continue;
    for (const Slice& slice : a.devices[device].slices) {
      const Nanos from = std::max(slice.begin, stall->time.begin), to = std::min(slice.end, stall->time.end);
      if (slice.account == Account::kUseful && from < to)
        add_piece(finding.claims, {device, from, to, slice.account, slice.where});
    }
    waiting.push_back(device);
    longest = std::max(longest, stall->time.length());
    finding.evidence.push_back(
        fmt::format("{}: busy from {} on, for {}, {}, its memory untouched; {} where its kernels work",
                    a.device_name(device), a.when(stall->time.begin), human_duration(stall->time.length()),
                    level_words(stall->by, stall->level), level_words(stall->by, stall->usual)));
  }
  if (!a.material(finding.cost())) return {};
  finding.candidates = {Cause::kHang, Cause::kExposedCommunication, Cause::kStraggler, Cause::kBusyButInefficient};
  finding.confidence = Confidence::kMedium;
  finding.tiers = "N";
  finding.title = fmt::format("{} looked busy for {} and did no work: kernels only waited", gpu_names(a, waiting),
                              human_duration(longest));
  if (waiting.size() == 1) std::swap(finding.candidates[1], finding.candidates[3]);  // a peer is not in sight
  finding.told_apart_from = {"an idle GPU: a kernel was resident all that time"};
  finding.would_overturn = "an energy or SM counter that shows work in that time";
  finding.advice = fmt::format(
      "look at the stacks of every rank ({}): one is late or gone while the others wait in a collective; "
      "NCCL_DEBUG=INFO and a shorter timeout of the process group name it",
      stack_tool(a));
  gains_by_removal(a, finding, "if nothing of it was needed and the rest stays as it is");
  return only(std::move(finding));
}

}  // namespace headroom::diagnose
