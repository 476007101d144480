// SPDX-License-Identifier: Apache-2.0
#include "diagnose/health.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "base/human.h"
#include "base/strings.h"
#include "diagnose/health_ends.h"
#include "diagnose/rules.h"
#include "diagnose/unseen.h"
#include "diagnose/users.h"
#include "diagnose/words.h"
#include "model/job_variables.h"
#include "model/notes.h"
#include "model/precision_names.h"

namespace headroom::diagnose {

namespace {

// Of a log whose they may have been; the headline has the names.
std::string whose_words(const Analysis& a) {
  const bool named = !users_words(a).empty() || !named_processes(a).empty();
  return named ? "the log names the processes that were there" : "whose they were is not recorded";
}

// Between two looks at the list it may have had one; where a look showed one it had.
bool held_a_context(const Analysis& a) {
  return std::any_of(a.job.uses.begin(), a.job.uses.end(), [&](const ContextUse& use) {
    return use.ours && use.held_from < a.window.end && use.end > a.window.begin;
  });
}

bool was_seen_with_one(const Analysis& a) {
  return std::any_of(a.job.uses.begin(), a.job.uses.end(), [&](const ContextUse& use) {
    return use.ours && use.first_seen < a.window.end && use.last_seen > a.window.begin;
  });
}

// Of a job whose contexts were listed.
HealthCheck ran_no_kernel(const Analysis& a) {
  const bool held = held_a_context(a);
  if (held && !was_seen_with_one(a) && !a.job.batch.present)
    return {"runs_on_gpu", Answer::kUnknown, "no kernel ran in this time, and no look at the driver's list lies in it"};
  if (a.goes_on)
    return {"runs_on_gpu", Answer::kUnknown,
            held ? "it holds a compute context, and no kernel has run yet" : "it has held no compute context so far"};
  if (!held && too_short_to_list(a))
    return {
        "runs_on_gpu", Answer::kUnknown,
        fmt::format("not known whether it held a compute context: it lived {}, and the driver's list is read every {}",
                    human_duration(a.ledger.span()), human_duration(a.job.listing_interval))};
  return {"runs_on_gpu", Answer::kNo,
          held                ? "it held a context and no kernel ran"
          : was_met_midway(a) ? "it held no compute context in this time"
                              : "it never held a compute context"};
}

HealthCheck runs_on_gpu(const Analysis& a) {
  const Nanos own = a.ledger.busy() - a.ledger.total(Account::kForeign);
  const bool unseen = a.ledger.budget() > 0 && a.ledger.total(Account::kUnobserved) == a.ledger.budget();
  if (unseen) return {"runs_on_gpu", Answer::kUnknown, "no reading says whether kernels ran"};
  if (own <= 0 && may_have_missed_kernels(a))
    return {"runs_on_gpu", Answer::kUnknown,
            fmt::format("no kernel of it was seen, and nothing is known of the last {}{}",
                        human_duration(unseen_at_end(a)), a.devices.size() == 1 ? "" : " of GPU time")};
  if (!a.job.has_contexts)
    return {"runs_on_gpu", own > 0 ? Answer::kYes : Answer::kUnknown,
            own > 0 ? "kernels ran; " + whose_words(a) : "no kernel was seen in the recorded time"};
  if (own <= 0) return ran_no_kernel(a);
  if (!held_a_context(a) && !a.job.batch.present)
    return {"runs_on_gpu", Answer::kUnknown,
            fmt::format("kernels of unlisted processes ran for {}", human_duration(own))};
  return {"runs_on_gpu", Answer::kYes, fmt::format("its kernels ran for {}", human_duration(own))};
}

// "bf16-mixed", "fp16", "True": yes. "32-true" (Lightning's word for plain), "float32", "no": no. Else nobody knows.
std::optional<Answer> is_mixed(std::string_view name, const std::string& value) {
  constexpr std::array<std::string_view, 6> kHalf{"bf16", "bfloat16", "fp16", "float16", "mixed", "half"};
  const auto has = [&](std::string_view word) { return value.find(word) != std::string::npos; };
  if (std::any_of(kHalf.begin(), kHalf.end(), has) || value == "16" || value == "16bit" || value.starts_with("16-"))
    return Answer::kYes;
  if (has("tf32")) return std::nullopt;
  if (has("32") || has("64") || value == "no" || value == "false" || value == "none" || value == "0")
    return Answer::kNo;
  if (name != "precision" && name != "dtype" && (value == "true" || value == "yes" || value == "1"))
    return Answer::kYes;
  return std::nullopt;
}

// Of a parameter, an option or a variable; nothing where it is not about that, or its value is not known here.
std::optional<Answer> mixed_by(std::string_view called, std::string_view value) {
  std::string name = lower(called);
  std::replace(name.begin(), name.end(), '-', '_');
  if (std::find(kPrecisionNames.begin(), kPrecisionNames.end(), name) == kPrecisionNames.end()) return std::nullopt;
  return is_mixed(name, lower(value));
}

// By its command's options: "--fp16", "--precision bf16-mixed", "--mixed_precision=no".
std::optional<HealthCheck> precision_asked(const std::vector<std::string>& command) {
  for (std::size_t i = 1; i < command.size(); ++i) {
    const std::string_view word = command[i];
    if (!word.starts_with("--")) continue;
    const auto equals = word.find('=');
    const bool alone = i + 1 == command.size() || command[i + 1].starts_with("-");
    const std::string_view value = equals != std::string_view::npos ? word.substr(equals + 1)
                                   : alone                          ? "true"
                                                                    : std::string_view(command[i + 1]);
    std::string_view name = word.substr(2, equals == std::string_view::npos ? equals : equals - 2);
    const bool denied = name.starts_with("no-") || name.starts_with("no_");
    if (denied) name.remove_prefix(3);
    if (const auto mixed = mixed_by(name, denied ? "false" : value))
      return HealthCheck{"mixed_precision", *mixed,
                         fmt::format("the command says {}{}", word,
                                     equals == std::string_view::npos && !alone ? " " + command[i + 1] : "")};
  }
  return std::nullopt;
}

// What the job said of its own arithmetic, or was told; nothing where that is nothing that is known here.
std::optional<HealthCheck> precision_said(const Analysis& a) {
  for (const auto& [name, value] : a.said.parameters)
    if (const auto mixed = mixed_by(name, value))
      return HealthCheck{"mixed_precision", *mixed, fmt::format("the job says {}={}", name, value)};
  if (a.job.batch.present) return std::nullopt;
  if (auto asked = precision_asked(a.meta.command)) return asked;
  for (const auto& [name, value] : job_variables(a.meta).value_or(JobVariables{}))
    if (const auto mixed = mixed_by(name, value))
      return HealthCheck{"mixed_precision", *mixed, fmt::format("{}={} in its environment", name, value)};
  return std::nullopt;
}

struct Pipes {
  double tensor = 0, engine = 0;  // shares of the time: tensor pipes active, kernels running
};

// Of the first GPU that tells.
std::optional<Pipes> pipes_of(const Analysis& a) {
  for (std::size_t i = 0; i < a.devices.size(); ++i) {
    const MetricStats* tensor = a.stats_of(i, Metric::kTensorActive);
    if (!tensor || tensor->samples == 0) continue;
    for (const Metric metric : {Metric::kGraphicsActive, Metric::kGpuUtil})
      if (const MetricStats* engine = a.stats_of(i, metric); engine && engine->samples > 0 && engine->mean > 0)
        return Pipes{tensor->mean, engine->mean};
  }
  return std::nullopt;
}

// What would tell.
// By their kind (GPM): from compute capability 9 on.
bool all_tell_pipes(const Analysis& a) {
  return !a.devices.empty() && std::all_of(a.devices.begin(), a.devices.end(), [](const DeviceTime& time) {
    const std::string& capability = time.device.compute_capability;
    return parse_number<int>(capability.substr(0, capability.find('.'))).value_or(0) >= 9;
  });
}

std::string precision_untold(const Analysis& a) {
  const bool could_read = !a.job.batch.present && !read_its_output(a.meta);
  return fmt::format(
      "not told: {}headroom.params(precision=...) in the job says it, as a model cast by model.bfloat16() does not; {}",
      could_read ? "run --output-lines reads what the job prints of it, or " : "",
      all_tell_pipes(a) ? "how busy their tensor pipes were, which GPUs from Hopper on tell, was not read"
                        : "GPUs from Hopper on tell how busy their tensor pipes are");
}

// Tensor pipes work on TF32, too, which many libraries use unasked: only their idleness while kernels run tells.
HealthCheck mixed_precision(const Analysis& a) {
  const std::optional<Pipes> pipes = pipes_of(a);
  const std::string active =
      pipes ? fmt::format("in the readings that tell, tensor pipes active {} of the time, kernels {}",
                          human_percent(pipes->tensor), human_percent(pipes->engine))
            : "";
  if (auto said = precision_said(a)) {
    if (pipes) said->evidence += "; " + active;
    return *said;
  }
  if (!a.code.precision.mixed.empty())
    return {"mixed_precision", Answer::kYes, fmt::format("{} is on its Python stacks", a.code.precision.mixed)};
  const std::string open = active.empty() ? "" : "; " + active;
  if (a.code.precision.autocast)
    return {"mixed_precision", Answer::kUnknown,
            "torch.autocast is on its Python stacks: it is in use unless it was switched off (enabled=False)" + open};
  if (!a.code.precision.cast.empty())
    return {"mixed_precision", Answer::kUnknown,
            a.code.precision.cast +
                " is on its Python stacks: it casts a module, which may be the one that trains, or a copy to be saved" +
                open};
  if (!pipes) return {"mixed_precision", Answer::kUnknown, precision_untold(a)};
  if (pipes->tensor > a.limits[Threshold::kTensorUsed] * pipes->engine)
    return {"mixed_precision", Answer::kUnknown,
            active + ": by 16 bits or by TF32, which headroom.params(precision=...) in the job would tell apart"};
  return {"mixed_precision", Answer::kNo, active};
}

std::int64_t memory_size(const Analysis& a, std::size_t device) {  // 0: not recorded
  return std::max<std::int64_t>(0, a.devices[device].device.memory_total_bytes.value_or(0));
}

// The GPU whose memory was the fullest; where no size is known, the one with most in use.
std::optional<std::size_t> fullest_gpu(const Analysis& a) {
  std::optional<std::size_t> fullest;
  std::pair<bool, double> most{false, -1};  // whether its size is known; a share of it, else bytes
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const MetricStats* used = a.stats_of(device, Metric::kMemoryUsed);
    if (!used || used->samples == 0) continue;
    const std::int64_t size = memory_size(a, device);
    const std::pair level{size > 0, size > 0 ? used->max / static_cast<double>(size) : used->max};
    if (level > most) most = level, fullest = device;
  }
  return fullest;
}

HealthCheck memory(const Analysis& a) {
  if (a.meta.origin == "run" && too_short_to_list(a))
    return {"memory", Answer::kUnknown, "memory use: so short a job may lie between two readings"};
  const auto device = fullest_gpu(a);
  const bool recorded = std::any_of(a.gpus.begin(), a.gpus.end(), [](const GpuAnalysis& gpu) {
    return gpu.stats.find(Metric::kMemoryUsed) != nullptr;
  });
  if (!device)
    return {"memory", Answer::kUnknown, recorded ? "no reading of it in this time" : "memory use was not recorded"};
  const double used = a.stats_of(*device, Metric::kMemoryUsed)->max;
  const auto size = static_cast<double>(memory_size(a, *device));
  const std::string in_use = fmt::format("{}{}", a.devices.size() > 1 ? a.device_name(*device) + ": " : "",
                                         human_bytes(static_cast<std::int64_t>(used)));
  if (size <= 0) return {"memory", Answer::kUnknown, in_use + " at most; the GPU's size was not recorded"};
  HealthCheck check{"memory", used / size < a.limits[Threshold::kMemoryFull] ? Answer::kYes : Answer::kNo,
                    fmt::format("{} of {} at most", in_use, human_bytes(memory_size(a, *device)))};
  std::int64_t others = 0;
  for (const Tenant& tenant : a.tenants)
    if (tenant.device == *device) others += tenant.peak_bytes;
  if (others > 0) check.evidence += fmt::format(" (processes outside the job held {})", human_bytes(others));
  const bool one_job = a.job.has_job && !a.job.batch.present && others == 0;
  if (one_job && a.ledger.busy(*device) > 0 && 2 * used < size) check.evidence += ": " + larger_batch_words(used, size);
  if (const std::string growth = memory_grows(a, *device); !growth.empty()) {
    check.good = Answer::kNo;
    check.evidence += growth;
  }
  // What a job takes in its last moment lies behind the last reading.
  const bool failed = a.meta.exit_code.value_or(0) != 0 && a.window.end >= a.meta.end && !a.job.batch.present;
  if (failed && check.good == Answer::kYes) {
    check.good = Answer::kUnknown;
    check.evidence += " when it was read; what it took right before it failed is not known";
  }
  return check;
}

HealthCheck clocks(const Analysis& a) {
  bool known = false, recorded = false;
  std::vector<std::size_t> low;
  for (std::size_t device = 0; device < a.devices.size(); ++device) {
    const ClockLimits& clocks = a.gpus[device].clocks;
    recorded |= clocks.recorded;
    known |= clocks.recorded && (clocks.looks > 0 || clocks.counted);
    if (clocks_lost(a, device) || limit_of_unknown_cost(a, device)) low.push_back(device);
  }
  if (!known && low.empty())
    return {
        "clocks", Answer::kUnknown,
        recorded ? "no clock event reasons were read while it was seen busy" : "clock event reasons were not recorded"};
  if (low.empty() && a.ledger.busy() == 0) return {"clocks", Answer::kUnknown, "no kernel was seen that could show"};
  if (low.empty()) return {"clocks", Answer::kYes, "no lasting limit while busy"};
  return {"clocks", Answer::kNo,
          a.devices.size() > 1 ? gpu_names(a, low) + " lowered while busy" : "lowered while busy"};
}

// Whether a task of a batch that is known to use a GPU had one for most of the last part of the time: of one that never
// does, no kernel is expected.
bool gpu_task_late(const Analysis& a) {
  const double most = a.limits[Threshold::kMajority] * static_cast<double>(a.window.end - a.late_from);
  const auto late = [&](Nanos begin, Nanos end) {
    return static_cast<double>(std::min(end, a.window.end) - std::max(begin, a.late_from)) >= most;
  };
  const auto computed = [&](const Slice& slice) {
    const TaskAttempt* attempt = is_busy(slice.account) ? a.attempt_at(slice.task, slice.begin) : nullptr;
    return attempt && late(attempt->begin, attempt->end);
  };
  return std::any_of(a.job.uses.begin(), a.job.uses.end(),
                     [&](const ContextUse& use) { return use.ours && late(use.begin, use.end); }) ||
         std::any_of(a.devices.begin(), a.devices.end(), [&](const DeviceTime& time) {
           return std::any_of(time.slices.begin(), time.slices.end(), computed);
         });
}

// Whether what the processes of the job did in the last part of the time was read for most of it: those of a short job
// end between two readings.
bool read_late(const Analysis& a) {
  const auto late = [&](Nanos begin, Nanos end) {
    return seconds(std::max<Nanos>(0, std::min(end, a.window.end) - std::max(begin, a.late_from)));
  };
  double lived = 0, read = 0;
  for (const RecordedProcess& process : a.processes) {
    if (!process.facts.in_job) continue;
    lived += late(process.facts.start, process.facts.end.value_or(a.window.end));
    for (const Activity& did : a.job.did[static_cast<std::size_t>(process.source)]) read += late(did.begin, did.end);
  }
  return read >= a.limits[Threshold::kMajority] * lived;
}

// The last part of the time, and the ends of the last kernels and readings of all.
struct LateTime {
  Nanos busy = 0, unseen = 0;
  Nanos last_busy, last_read;
};

LateTime late_time(const Analysis& a) {
  LateTime late{.last_busy = a.window.begin, .last_read = a.window.begin};
  for (const DeviceTime& time : a.devices)
    for (const Slice& slice : time.slices) {
      const Nanos length = std::max<Nanos>(0, slice.end - std::max(slice.begin, a.late_from));
      if (slice.account == Account::kUnobserved) {
        late.unseen += length;
        continue;
      }
      late.last_read = std::max(late.last_read, slice.end);
      if (is_busy(slice.account)) late.busy += length, late.last_busy = std::max(late.last_busy, slice.end);
    }
  return late;
}

// Does anything still move in the last part of the time?
HealthCheck progress(const Analysis& a) {
  const auto [busy, unseen, last, read] = late_time(a);
  const auto late = static_cast<double>(a.window.end - a.late_from) * static_cast<double>(a.devices.size());
  if (busy == 0 && static_cast<double>(unseen) >= a.limits[Threshold::kMajority] * late)
    return {"progress", Answer::kUnknown, "the end is covered by no sample"};
  if (busy > 0) {
    constexpr Nanos kSeen = 100;  // a hundredth of the time
    const Nanos end = a.window.end - std::max(kSecond / 5, a.window.length() / kSeen);
    std::string ran = fmt::format("kernels ran until {} before the end", human_duration(a.window.end - last));
    if (last >= end) ran = "kernels ran to the end";
    if (read < end) ran = "kernels ran late in it; its end is covered by no sample";
    return {"progress", Answer::kYes, std::move(ran)};
  }
  if (a.goes_on && a.ledger.busy() == 0) return {"progress", Answer::kUnknown, "no kernel has run yet"};
  const bool never = a.ledger.busy() == 0;
  const std::string none = fmt::format(
      "{}{}",
      never ? "no kernel was seen"
            : fmt::format("no kernel in the last {} of the time", human_percent(a.limits[Threshold::kProgressTail])),
      unseen > 0 || (never && a.ledger.total(Account::kUnobserved) > 0) ? ", as far as samples cover it" : "");
  if (a.host.late_cpu > a.limits[Threshold::kProgressCpu]) return {"progress", Answer::kYes, none + ", but CPU work"};
  if (!a.job.has_host || !read_late(a)) return {"progress", Answer::kUnknown, none};
  if (a.job.batch.present && !gpu_task_late(a))
    return {"progress", Answer::kUnknown, none + ", and no task that was seen to use a GPU ran for most of it"};
  return {"progress", Answer::kNo, none + ", and hardly any CPU work"};
}

// Kernels that come back, or other work, are no deadlock.
HealthCheck no_hang(const Analysis& a, const HealthCheck& progress) {
  const Nanos hung = a.ledger.total(Account::kHung);
  const bool stalled =
      std::any_of(a.gpus.begin(), a.gpus.end(), [](const GpuAnalysis& gpu) { return gpu.stall.has_value(); });
  if (hung > 0) return {"no_hang", Answer::kNo, fmt::format("nothing of the job moved for {}", human_duration(hung))};
  if (stalled) return {"no_hang", Answer::kUnknown, "kernels only waited for a time: a hang, or a peer that is late"};
  if (progress.good == Answer::kYes) return {"no_hang", Answer::kYes, progress.evidence};
  if (!a.job.batch.present && a.window.end >= a.meta.end && a.meta.exit_code == 0)
    return {"no_hang", Answer::kYes, "the job ended by itself, with exit code 0"};
  return {"no_hang", Answer::kUnknown, progress.evidence};
}

}  // namespace

std::vector<HealthCheck> health(const Analysis& a) {
  const HealthCheck moves = progress(a);
  std::vector<HealthCheck> checks{runs_on_gpu(a), mixed_precision(a), memory(a),           clocks(a),
                                  moves,          no_hang(a, moves),  no_out_of_memory(a), ended_well(a)};
  // That its library is not there matters to few; that another one has its place, to somebody who wants ranges.
  if (!a.no_nvtx.empty())
    checks.push_back({"nvtx_ranges",
                      a.no_nvtx.find(kNoteNvtxTaken) == std::string::npos ? Answer::kUnknown : Answer::kNo, a.no_nvtx});
  return checks;
}

}  // namespace headroom::diagnose
