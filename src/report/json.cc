// SPDX-License-Identifier: Apache-2.0
#include "report/json.h"

#include <map>
#include <tuple>

#include "model/slurm.h"
#include "model/thresholds.h"
#include "report/finding_json.h"
#include "report/json_values.h"
#include "report/ledger_json.h"
#include "report/progress_json.h"
#include "report/requirements.h"

namespace headroom::report {

namespace {

Json metric_json(const MetricStats& stats) {
  Json excluded = Json::array();
  for (const auto& reading : stats.excluded)
    excluded.push_back({{"at_ns", reading.at}, {"value", reading.value}, {"reason", reading.reason}});
  if (stats.samples == 0)
    return {{"mean", nullptr},
            {"min", nullptr},
            {"p50", nullptr},
            {"p95", nullptr},
            {"max", nullptr},
            {"samples", 0},
            {"absent", absent_name(stats.absent.value_or(Absent::kNotSampled))},
            {"excluded", excluded}};
  return {{"mean", stats.mean}, {"min", stats.min},         {"p50", stats.p50},    {"p95", stats.p95},
          {"max", stats.max},   {"samples", stats.samples}, {"excluded", excluded}};
}

Json device_json(const Explanation& e, std::size_t index) {
  const Device& device = e.ledger.devices[index];
  Json metrics = Json::object();
  for (const DeviceStats& stats : e.devices)
    if (stats.device == index)
      for (const MetricStats& s : stats.metrics) metrics[std::string(info(s.metric).name)] = metric_json(s);
  Json json{{"uuid", device.uuid},
            {"index", device.index},
            {"name", device.name},
            {"memory_total_bytes", optional_json(device.memory_total_bytes)},
            {"power_limit_watts", optional_json(device.power_limit_watts)},
            {"metrics", metrics}};
  if (!device.host.empty()) json["host"] = device.host;
  return json;
}

Json phase_json(const Explanation& e, const Phase& phase) {
  return {{"name", phase.name},
          {"device", e.ledger.devices[phase.device].uuid},
          {"count", phase.count},
          {"total_ns", phase.total},
          {"mean_ns", phase.count > 0 ? phase.total / phase.count : 0},
          {"gpu_util_ratio", optional_json(phase.gpu_util_ratio)},
          {"memory_used_bytes", optional_json(phase.memory_used_bytes)},
          {"memory_util_ratio", optional_json(phase.memory_util_ratio)},
          {"power_watts", optional_json(phase.power_watts)},
          {"period_ns", optional_json(phase.period)},
          {"named_by", phase.named_by.empty() ? Json(nullptr) : Json(phase.named_by)},
          {"steps", optional_json(phase.steps)},
          {"steps_shared", phase.steps ? Json(phase.steps_shared) : Json(nullptr)}};
}

// What a finding claims, summed by device, account and place.
Json claims_json(const Explanation& e, const Claims& claims) {
  std::map<std::tuple<std::size_t, Account, std::int32_t>, Nanos> sums;
  for (const ClaimedPiece& piece : claims) sums[{piece.device, piece.account, piece.where}] += piece.end - piece.begin;
  Json list = Json::array();
  for (const auto& [key, ns] : sums) {
    const auto& [device, account, where] = key;
    const std::int32_t line = e.ledger.line_of(where, account).line;
    list.push_back({{"device", e.ledger.devices[device].uuid},
                    {"account", info(account).cause},
                    {"label", info(account).label},
                    {"where", where < 0 ? Json(nullptr) : Json(e.ledger.places[static_cast<std::size_t>(where)])},
                    {"line", line > 0 ? Json(line) : Json(nullptr)},
                    {"ns", ns}});
  }
  return list;
}

Json gain_json(const std::optional<Gain>& gain) {
  if (!gain) return nullptr;
  return {{"low", gain->low}, {"high", gain->high}, {"of", "time at equal work"}, {"if", gain->words()}};
}

Json role_json(const LoopRole& role) {
  if (!role.known()) return nullptr;
  return {{"part", text_json(std::string(name_of(role.part)))},
          {"recurs", text_json(std::string(name_of(role.recurs)))},
          {"caller", text_json(role.caller)}};
}

// What one of its causes can gain: as the finding does, or less where the recording bounds that one nearer.
Json gain_of(const Finding& finding, Cause cause) {
  const OwnLimit* limit = finding.limit_of(cause);
  return gain_json(limit ? std::optional(limit->gain()) : finding.gain);
}

}  // namespace

// Identifiers are places in the list, from 1 on.
Json finding_json(const Explanation& e, std::size_t index) {
  const Finding& finding = e.findings[index];
  Json candidates = Json::array(), candidate_labels = Json::array(), evidence = Json::array(), beyond = Json::array();
  for (const Cause cause : finding.candidates) {
    candidates.push_back(info(cause).id);
    candidate_labels.push_back(info(cause).words);
    if (!info(cause).beyond.empty()) beyond.push_back({{"cause", info(cause).id}, {"takes", info(cause).beyond}});
  }
  for (std::size_t i = 0; i < finding.candidates.size(); ++i) evidence.push_back(finding.speaks_for_candidate(i));
  Json gains = Json::array();
  for (const Cause cause : finding.candidates) gains.push_back(gain_of(finding, cause));
  Json less_likely = Json::array();
  for (std::size_t i = 0; i < finding.less_likely.size(); ++i)
    less_likely.push_back({{"cause", info(finding.less_likely[i]).id},
                           {"label", info(finding.less_likely[i]).words},
                           {"evidence", finding.speaks_for_candidate(i + 1)},
                           {"gain", gain_of(finding, finding.less_likely[i])}});
  const Nanos budget = e.ledger.budget();
  return {{"id", index + 1},
          {"part_of", finding.part_of ? Json(*finding.part_of + 1) : Json(nullptr)},
          {"cause", finding.cause ? Json(info(*finding.cause).id) : Json(nullptr)},
          {"label", finding.cause ? Json(info(*finding.cause).words) : Json(nullptr)},
          {"less_likely", less_likely},
          {"cause_evidence", finding.cause ? finding.speaks_for_candidate(0) : ""},
          {"candidates", candidates},
          {"candidate_labels", candidate_labels},
          {"candidate_evidence", evidence},
          {"candidate_gains", gains},
          {"beyond", beyond},
          {"title", finding.title},
          {"device_seconds", seconds(finding.cost())},
          {"share", budget > 0 ? static_cast<double>(finding.cost()) / static_cast<double>(budget) : 0.0},
          {"confidence", confidence_name(finding.confidence)},
          {"tier", finding.tiers.letters()},
          {"claims", claims_json(e, finding.claims)},
          {"role", role_json(finding.role)},
          {"evidence", finding.evidence},
          {"told_apart_from", finding.told_apart_from},
          {"would_overturn", finding.would_overturn},
          {"advice", finding.advice},
          {"gain", gain_json(finding.gain)},
          {"bound", finding.bound}};
}

namespace {

Json unix_ns_json(const std::optional<std::int64_t>& unix_seconds) {
  return unix_seconds ? Json(*unix_seconds * kSecond) : Json(nullptr);
}

Json slurm_json(const std::optional<SlurmJob>& job) {
  if (!job) return nullptr;
  return {{"job_id", job->job},
          {"array_job_id", optional_json(job->array_job)},
          {"array_task_id", optional_json(job->array_task)},
          {"step_id", optional_json(job->step)},
          {"rank", optional_json(job->rank)},
          {"local_rank", optional_json(job->local_rank)},
          {"node_index", optional_json(job->node_index)},
          {"node", text_json(job->node)},
          {"nodes", optional_json(job->nodes)},
          {"tasks", optional_json(job->tasks)},
          {"partition", text_json(job->partition)},
          {"job_name", text_json(job->name)},
          {"account", text_json(job->account)},
          {"cluster", text_json(job->cluster)},
          {"restarts", optional_json(job->restarts)},
          {"start_ns", unix_ns_json(job->start_seconds)},
          {"end_ns", unix_ns_json(job->end_seconds)}};
}

Json recording_json(const Explanation& e) {
  Json tiers = Json::array(), missing = Json::array();
  for (const char tier : e.meta.tiers) tiers.push_back(std::string(1, tier));
  for (const auto& m : e.meta.missing_tiers) missing.push_back({{"tier", std::string(1, m.tier)}, {"why", m.why}});
  Json environment = nullptr;
  if (const auto variables = job_variables(e.meta)) {
    environment = Json::object();
    for (const auto& [name, value] : *variables) environment[name] = value;
  }
  return {{"path", e.path},
          {"id", e.meta.id},
          {"origin", e.meta.origin},
          {"start", e.meta.start_realtime},
          {"start_ns", e.meta.start_realtime},
          {"clock", e.meta.start == e.meta.start_realtime ? "unix" : "boottime"},
          {"clock_start_ns", e.meta.start},
          {"duration_ns", e.meta.end - e.meta.start},
          {"interval_ns", e.meta.interval},
          {"command", e.meta.command},
          {"environment", environment},
          {"slurm", slurm_json(slurm_job(e.meta))},
          {"exit_code", optional_json(e.meta.exit_code)},
          {"stop_reason", e.meta.stop_reason},
          {"tiers", tiers},
          {"missing_tiers", missing}};
}

Json work_json(const std::optional<Work>& work) {
  if (!work) return nullptr;
  return {{"steps", work->steps},
          {"counted_ns", work->counted},
          {"counted_by", work->via},
          {"processes", work->processes},
          {"steps_per_second", optional_json(work->steps_per_second)},
          {"samples_per_second", optional_json(work->samples_per_second)}};
}

}  // namespace

namespace {

Json parts_json(const Explanation& e) {
  Json recordings = Json::array();
  for (const ExplainedRecording& part : e.parts)
    recordings.push_back({{"name", part.name},
                          {"path", text_json(part.path)},
                          {"host", text_json(part.host)},
                          {"start_ns", part.begin},
                          {"end_ns", part.end},
                          {"gpus", part.gpus},
                          {"stop_reason", part.stop_reason},
                          {"exit_code", optional_json(part.exit_code)}});
  return {{"recordings", recordings}, {"about", e.about_parts}};
}

}  // namespace

std::string to_json(const Explanation& e) {
  Json devices = Json::array(), phases = Json::array(), findings = Json::array(), health = Json::array();
  for (std::size_t i = 0; i < e.ledger.devices.size(); ++i) devices.push_back(device_json(e, i));
  for (const Phase& phase : e.phases) phases.push_back(phase_json(e, phase));
  for (std::size_t i = 0; i < e.findings.size(); ++i) findings.push_back(finding_json(e, i));
  for (const HealthCheck& check : e.health)
    health.push_back({{"check", check.check}, {"answer", answer_name(check.good)}, {"evidence", check.evidence}});
  Json bound = nullptr;
  if (e.bound)
    bound = {{"speedup_high", e.bound->speedup_high}, {"of", "time at equal work"}, {"if", e.bound->condition}};
  Json metrics = Json::object(), parameters = Json::object();
  for (const SaidMetric& metric : e.said.metrics) metrics[metric.name] = metric.last;
  for (const auto& [name, value] : e.said.parameters) parameters[name] = value;
  Json pipeline = nullptr;
  if (e.pipeline)
    pipeline = {
        {"gpu_part_ns", e.pipeline->gpu_part}, {"kernels_ns", e.pipeline->kernels}, {"rest_ns", e.pipeline->rest}};
  Json document{
      {"schema", "headroom.why/1"},
      {"headline", e.headline},
      {"recording", recording_json(e)},
      {"devices", devices},
      {"phases", phases},
      {"work", work_json(e.work)},
      {"progress", progress_json(e)},
      {"metrics", metrics},
      {"metric_values", metric_values_json(e.said.metrics)},
      {"parameters", parameters},
      {"ledger", ledger_json(e)},
      {"findings", findings},
      {"bound", bound},
      {"pipeline", pipeline},
      {"health", health},
      {"losses", losses_json(e.losses)},
      {"cost",
       {{"cpu_seconds", optional_json(e.cost.cpu_seconds)}, {"max_rss_bytes", optional_json(e.cost.max_rss_bytes)}}}};
  if (!e.parts.empty()) document["parts"] = parts_json(e);
  if (!e.requirements.empty()) document["requirements"] = requirements_json(e.requirements);
  return dump(document);
}

std::string thresholds_json() {
  Json rows = Json::array();
  for (const ThresholdInfo& row : kThresholds)
    rows.push_back({{"name", row.name}, {"value", row.value}, {"unit", row.unit}, {"why", row.why}});
  return dump(Json{{"schema", "headroom.thresholds/1"}, {"thresholds", rows}});
}

}  // namespace headroom::report
