// SPDX-License-Identifier: Apache-2.0
#include "report/top.h"

#include <algorithm>

#include "report/json_values.h"
#include "report/progress_json.h"

namespace headroom::report {

namespace {

Json accounts_json(const std::vector<view::Share>& shares) {
  Json list = Json::array();
  for (const view::Share& share : shares) {
    const AccountInfo& account = info(share.account);
    list.push_back({{"state", account.state}, {"cause", account.cause}, {"label", account.label}, {"ns", share.ns}});
  }
  return list;
}

Json last_json(const view::Gpu& gpu, Metric metric) {
  for (const view::Series& series : gpu.series)
    if (series.metric == metric) return optional_json(series.last);
  return nullptr;
}

Json gpu_json(const Device& device, const view::Gpu& gpu) {
  return {{"uuid", device.uuid},
          {"index", device.index},
          {"name", device.name},
          {"accounts", accounts_json(gpu.ledger)},
          {"gpu_util_ratio", last_json(gpu, Metric::kGpuUtil)},
          {"memory_used_bytes", last_json(gpu, Metric::kMemoryUsed)},
          {"memory_total_bytes", optional_json(device.memory_total_bytes)},
          {"power_watts", last_json(gpu, Metric::kPower)},
          {"power_limit_watts", optional_json(device.power_limit_watts)},
          {"temperature_celsius", last_json(gpu, Metric::kTemperature)}};
}

Json uuids_json(const Explanation& e, const std::vector<std::size_t>& gpus) {
  Json list = Json::array();
  for (const std::size_t gpu : gpus) list.push_back(e.ledger.devices[gpu].uuid);
  return list;
}

template <class Names>
Json name_json(const Names& names, std::int32_t index) {
  return index >= 0 && static_cast<std::size_t>(index) < names.size() ? Json(names[static_cast<std::size_t>(index)])
                                                                      : Json(nullptr);
}

Json process_json(const Explanation& e, const view::View& view, const view::Process& process) {
  Json gpus = Json::array();
  for (const auto& on : process.gpus)
    gpus.push_back({{"device", e.ledger.devices[on.gpu].uuid}, {"memory_bytes", optional_json(on.memory_bytes)}});
  std::vector<std::string> phases;
  for (const Phase& phase : e.phases) phases.push_back(phase.name);
  return {{"pid", process.pid},
          {"name", process.name},
          {"command", process.command},
          {"in_job", process.in_job},
          {"rank", optional_json(process.rank)},
          {"lives", !process.end || *process.end > view.end},
          {"gpus", gpus},
          {"cores", optional_json(process.cores_now)},
          {"memory_bytes", optional_json(process.rss_bytes)},
          {"account", process.account ? Json(info(*process.account).cause) : Json(nullptr)},
          {"label", process.account ? Json(info(*process.account).label) : Json(nullptr)},
          {"phase", name_json(phases, process.phase)},
          {"where", name_json(e.ledger.places, process.where)}};
}

Json run_json(const Explanation& e, const view::View& view, const view::Run& run) {
  const Nanos end = std::min(run.end.value_or(view.end), view.end);
  return {{"task", run.task},
          {"attempt", run.attempt},
          {"pid", run.pid > 0 ? Json(run.pid) : Json(nullptr)},
          {"running", run.end ? *run.end > view.end : run.running},
          {"outcome", run.outcome && end < view.end ? Json(info(*run.outcome).name) : Json(nullptr)},
          {"ran_ns", std::max<Nanos>(0, end - run.begin)},
          {"gpus", uuids_json(e, run.gpus)},
          {"peak_gpu_memory_bytes", optional_json(run.peak_gpu_bytes)}};
}

Json shown_finding_json(const Finding& finding) {
  Json candidates = Json::array();
  for (const Cause cause : finding.candidates) candidates.push_back(info(cause).id);
  return {{"cause", finding.cause ? Json(info(*finding.cause).id) : Json(nullptr)},
          {"candidates", candidates},
          {"title", finding.title},
          {"device_seconds", seconds(finding.cost())},
          {"confidence", confidence_name(finding.confidence)},
          {"advice", finding.advice}};
}

}  // namespace

std::string top_json(const Explanation& e, const view::View& view, std::optional<Nanos> behind,
                     const std::vector<StandingFinding>& now) {
  Json gpus = Json::array(), processes = Json::array(), tasks = Json::array(), findings = Json::array();
  for (std::size_t i = 0; i < view.gpus.size(); ++i) gpus.push_back(gpu_json(e.ledger.devices[i], view.gpus[i]));
  for (const view::Process& process : view.processes) processes.push_back(process_json(e, view, process));
  for (const view::Run& run : view.runs) tasks.push_back(run_json(e, view, run));
  for (const Finding& finding : e.findings)
    if (finding.cost() > 0) findings.push_back(shown_finding_json(finding));
  const Json answer{
      {"schema", "headroom.top/1"},
      {"recording", {{"path", e.path}, {"id", e.meta.id}, {"stop_reason", text_json(e.meta.stop_reason)}}},
      {"headline", e.headline},
      {"progress", progress_json(e)},
      {"goes_on", view.goes_on},
      {"behind_ns", optional_json(behind)},
      {"begin_ns", view.begin},
      {"end_ns", view.end},
      {"recording_begin_ns", e.meta.start},
      {"recording_end_ns", e.meta.end},
      {"accounts", accounts_json(view.ledger)},
      {"gpus", gpus},
      {"processes", processes},
      {"processes_left_out", view.processes_left_out},
      {"tasks", tasks},
      {"findings", findings},
      {"now", standing_json(now, 0)},
      {"losses", losses_json(e.losses)}};
  return dump(answer);
}

}  // namespace headroom::report
