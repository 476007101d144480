// SPDX-License-Identifier: Apache-2.0
#include "exposition/families.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace headroom::exposition {

namespace {

constexpr std::int64_t kHertzPerMegahertz = 1'000'000;
constexpr int kNanosecond = 9;  // decimals of a second

struct Reason {
  std::int64_t bit;
  const char* name;
};
constexpr Reason kReasons[]{{kReasonGpuIdle, "gpu_idle"},          {kReasonApplicationClocks, "application_clocks"},
                            {kReasonSwPowerCap, "sw_power_cap"},   {kReasonHwSlowdown, "hw_slowdown"},
                            {kReasonSyncBoost, "sync_boost"},      {kReasonSwThermal, "sw_thermal"},
                            {kReasonHwThermal, "hw_thermal"},      {kReasonHwPowerBrake, "hw_power_brake"},
                            {kReasonDisplayClock, "display_clock"}};

// Collects families and leaves out those without a sample.
class Builder {
 public:
  explicit Builder(const Snapshot& snapshot) : snapshot_(snapshot), labels_(gpu_labels(snapshot)) {}

  std::vector<Family> take() && { return std::move(families_); }
  void add(Family family) {
    if (!family.samples.empty()) families_.push_back(std::move(family));
  }
  [[nodiscard]] Label gpu(std::size_t place) const { return {"gpu", labels_[place]}; }

  void about_the_recording();
  void ledger();
  void findings();
  void batch();
  void devices();
  void readings();
  void recorder();

 private:
  [[nodiscard]] Family reading(Metric metric) const;
  [[nodiscard]] Family clocks() const;
  [[nodiscard]] Family reasons() const;
  [[nodiscard]] std::optional<std::int64_t> of(std::size_t place, Metric metric) const;

  const Snapshot& snapshot_;
  std::vector<std::string> labels_;
  std::vector<Family> families_;
};

void Builder::about_the_recording() {
  add({.name = "headroom_recording_info",
       .type = FamilyType::kInfo,
       .help = "the recording that all of this is of",
       .samples = {{.labels = {{"recording", snapshot_.recording},
                               {"origin", snapshot_.origin},
                               {"writer", snapshot_.writer},
                               {"host", snapshot_.host}},
                    .value = 1}}});
  add({.name = "headroom_elapsed_seconds_total",
       .type = FamilyType::kCounter,
       .unit = "seconds",
       .help = "time that is counted: what headroom_gpu_seconds_total of every GPU sums to",
       .samples = {{.value = snapshot_.elapsed, .decimals = kNanosecond}}});
  add({.name = "headroom_recording_end_timestamp_seconds",
       .unit = "seconds",
       .help = "Unix time of the last instant that the recording speaks about",
       .samples = {{.value = snapshot_.end_realtime, .decimals = kNanosecond}}});
}

void Builder::ledger() {
  Family family{
      .name = "headroom_gpu_seconds_total",
      .type = FamilyType::kCounter,
      .unit = "seconds",
      .help = "where the time of a GPU went, each nanosecond once, as known when it was counted (docs/ledger.md)",
      .samples = {}};
  for (std::size_t i = 0; i < snapshot_.gpus.size(); ++i) {
    if (!snapshot_.gpus[i].accounts) continue;
    for (const AccountInfo& account : kAccounts)
      family.samples.push_back(
          {.labels = {gpu(i), {"state", std::string(account.state)}, {"cause", std::string(account.cause)}},
           .value = (*snapshot_.gpus[i].accounts)[static_cast<std::size_t>(account.id)],
           .decimals = kNanosecond});
  }
  add(std::move(family));
}

// Parts of other findings claim the same time once more: they are counted, and cost nothing here.
void Builder::findings() {
  std::map<std::pair<std::string, std::string>, std::int64_t> counts;
  std::map<std::pair<std::size_t, std::string>, Nanos> costs;
  for (const FindingCost& finding : snapshot_.findings) {
    ++counts[{finding.cause, std::string(confidence_name(finding.confidence))}];
    for (std::size_t i = 0; i < finding.cost.size() && !finding.part; ++i)
      if (finding.cost[i] > 0) costs[{i, finding.cause}] += finding.cost[i];
  }
  Family number{.name = "headroom_findings",
                .help = "findings by cause (docs/causes.md); candidates of a set with commas between",
                .samples = {}};
  for (const auto& [key, count] : counts)
    number.samples.push_back({.labels = {{"cause", key.first}, {"confidence", key.second}}, .value = count});
  Family cost{.name = "headroom_finding_gpu_seconds",
              .unit = "seconds",
              .help = "time of a GPU that findings claim, each nanosecond once; less when the diagnosis changes",
              .samples = {}};
  for (const auto& [key, ns] : costs)
    cost.samples.push_back({.labels = {gpu(key.first), {"cause", key.second}}, .value = ns, .decimals = kNanosecond});
  add(std::move(number));
  add(std::move(cost));
}

void Builder::batch() {
  if (snapshot_.tasks.empty()) return;
  Family tasks{.name = "headroom_batch_tasks", .help = "tasks of the batch by state", .samples = {}};
  for (const auto& [state, count] : snapshot_.tasks)
    tasks.samples.push_back({.labels = {{"state", std::string(name(state))}}, .value = count});
  add(std::move(tasks));
  if (snapshot_.tasks_waiting)
    add({.name = "headroom_batch_tasks_waiting",
         .help = "tasks of the batch that are ready and wait for a GPU",
         .samples = {{.value = *snapshot_.tasks_waiting}}});
  Family packing{.name = "headroom_batch_packing", .help = "tasks of the batch that run on the GPU now", .samples = {}};
  for (std::size_t i = 0; i < snapshot_.gpus.size(); ++i)
    packing.samples.push_back({.labels = {gpu(i)}, .value = snapshot_.gpus[i].tasks});
  add(std::move(packing));
  Family kernels{.name = "headroom_batch_gpu_seconds_total",
                 .type = FamilyType::kCounter,
                 .unit = "seconds",
                 .help = "time of kernels of tasks of the batch, counted when they have ended, by whether it counted",
                 .samples = {}};
  for (std::size_t i = 0; i < snapshot_.gpus.size(); ++i)
    if (snapshot_.gpus[i].accounts)
      for (const auto& [outcome, ns] :
           {std::pair("useful", snapshot_.gpus[i].useful), std::pair("discarded", snapshot_.gpus[i].discarded)})
        kernels.samples.push_back({.labels = {gpu(i), {"outcome", outcome}}, .value = ns, .decimals = kNanosecond});
  add(std::move(kernels));
}

void Builder::devices() {
  Family family{.name = "headroom_gpu_info",
                .type = FamilyType::kInfo,
                .help = "what a GPU is; its UUID is the same after a reboot, its index need not be",
                .samples = {}};
  for (std::size_t i = 0; i < snapshot_.gpus.size(); ++i) {
    const Device& device = snapshot_.gpus[i].device;
    family.samples.push_back({.labels = {gpu(i),
                                         {"uuid", device.uuid},
                                         {"pci_bus_id", device.pci_bus_id},
                                         {"name", device.name},
                                         {"driver_version", device.driver_version}},
                              .value = 1});
  }
  add(std::move(family));
}

std::optional<std::int64_t> Builder::of(std::size_t place, Metric metric) const {
  for (const auto& [known, value] : snapshot_.gpus[place].readings)
    if (known == metric) return value;
  return std::nullopt;
}

Family Builder::reading(Metric metric) const {
  const MetricInfo& known = info(metric);
  const bool has_prefix = known.name.starts_with("gpu_");
  Family family{.name = fmt::format("headroom_{}{}", has_prefix ? "" : "gpu_", known.name),
                .type = known.kind == MetricKind::kCounter ? FamilyType::kCounter : FamilyType::kGauge,
                .unit = known.unit == "bytes/s" ? "bytes_per_second" : std::string(known.unit),
                .help = std::string(known.help),
                .samples = {}};
  for (std::size_t i = 0; i < snapshot_.gpus.size(); ++i)
    if (const auto value = of(i, metric))
      family.samples.push_back({.labels = {gpu(i)}, .value = *value, .decimals = known.exp10});
  return family;
}

Family Builder::clocks() const {
  Family family{
      .name = "headroom_gpu_clock_hertz", .unit = "hertz", .help = "clocks of the SMs and of memory", .samples = {}};
  for (std::size_t i = 0; i < snapshot_.gpus.size(); ++i)
    for (const auto& [metric, clock] : {std::pair(Metric::kSmClock, "sm"), std::pair(Metric::kMemoryClock, "memory")})
      if (const auto value = of(i, metric))
        family.samples.push_back({.labels = {gpu(i), {"clock", clock}}, .value = *value * kHertzPerMegahertz});
  return family;
}

Family Builder::reasons() const {
  Family family{.name = "headroom_gpu_clocks_event_reason",
                .help = "1 where this keeps the clocks below their maximum (throttle reasons)",
                .samples = {}};
  for (std::size_t i = 0; i < snapshot_.gpus.size(); ++i)
    if (const auto bits = of(i, Metric::kEventReasons))
      for (const Reason& reason : kReasons)
        family.samples.push_back({.labels = {gpu(i), {"reason", reason.name}}, .value = (*bits & reason.bit) ? 1 : 0});
  return family;
}

// In the order of the table of metrics; those with a form of their own last.
void Builder::readings() {
  std::vector<Metric> known;
  for (const Gpu& gpu : snapshot_.gpus)
    for (const auto& [metric, value] : gpu.readings)
      if (metric != Metric::kSmClock && metric != Metric::kMemoryClock && metric != Metric::kEventReasons)
        known.push_back(metric);
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  for (const Metric metric : known) add(reading(metric));
  add(clocks());
  add(reasons());
}

void Builder::recorder() {
  if (snapshot_.recorder_cpu_ns)
    add({.name = "headroom_recorder_cpu_seconds_total",
         .type = FamilyType::kCounter,
         .unit = "seconds",
         .help = "CPU time of the recorder: what watching costs",
         .samples = {{.value = *snapshot_.recorder_cpu_ns, .decimals = kNanosecond}}});
  if (snapshot_.recorder_rss_bytes)
    add({.name = "headroom_recorder_resident_memory_bytes",
         .unit = "bytes",
         .help = "resident memory of the recorder",
         .samples = {{.value = *snapshot_.recorder_rss_bytes}}});
  std::map<std::pair<std::string, std::string>, std::int64_t> losses;
  for (const Loss& loss : snapshot_.losses)
    losses[{loss.what, std::string(severity_name(loss.severity))}] += loss.count;
  Family family{.name = "headroom_losses_total",
                .type = FamilyType::kCounter,
                .help = "what was lost or had to be mended (docs/losses.md)",
                .samples = {}};
  for (const auto& [key, count] : losses)
    family.samples.push_back({.labels = {{"what", key.first}, {"severity", key.second}}, .value = count});
  add(std::move(family));
}

}  // namespace

std::vector<std::string> gpu_labels(const Snapshot& snapshot) {
  std::map<int, int> of_index;
  for (const Gpu& gpu : snapshot.gpus) ++of_index[gpu.device.index];
  std::vector<std::string> labels;
  for (const Gpu& gpu : snapshot.gpus)
    labels.push_back(of_index[gpu.device.index] == 1 ? std::to_string(gpu.device.index) : gpu.device.uuid);
  return labels;
}

std::vector<Family> families_of(const Snapshot& snapshot) {
  Builder builder(snapshot);
  builder.about_the_recording();
  builder.ledger();
  builder.findings();
  builder.batch();
  builder.devices();
  builder.readings();
  builder.recorder();
  return std::move(builder).take();
}

}  // namespace headroom::exposition
