// SPDX-License-Identifier: Apache-2.0
#include "base/iso_time.h"
#include "report/fleet.h"
#include "report/fleet_averages.h"
#include "report/json_values.h"

namespace headroom::report {

namespace {

Json accounts_json(const AccountTimes& times) {
  Json list = Json::array();
  for (const AccountInfo& account : kAccounts)
    if (const Nanos ns = times[static_cast<std::size_t>(account.id)]; ns > 0)
      list.push_back(
          {{"state", account.state}, {"cause", account.cause}, {"label", account.label}, {"gpu_seconds", seconds(ns)}});
  return list;
}

Json losses_json(const std::vector<FleetLoss>& losses, bool with_jobs) {
  Json list = Json::array();
  for (const FleetLoss& loss : losses) {
    Json json{{"cause", loss.cause ? Json(info(*loss.cause).id) : Json(nullptr)},
              {"title", loss.title},
              {"gpu_seconds", seconds(loss.cost)},
              {"at_most_back_gpu_seconds", loss.cause ? Json(seconds(loss.at_most)) : Json(nullptr)}};
    if (with_jobs) json["jobs"] = loss.jobs;
    list.push_back(std::move(json));
  }
  return list;
}

// Of a job and of a group.
template <class T>
void add_sums(const T& of, Json& json) {
  json["gpu_seconds"] = seconds(of.held());
  json["busy_gpu_seconds"] = seconds(busy_of(of.accounts));
  json["could_come_back"] = {{"low_gpu_seconds", seconds(of.back_low)}, {"high_gpu_seconds", seconds(of.back_high)}};
  json["undecided_gpu_seconds"] = seconds(of.undecided);
  json["accounts"] = accounts_json(of.accounts);
}

Json group_json(const FleetGroup& group) {
  Json json{{"name", text_json(group.name)}, {"jobs", group.jobs}};
  add_sums(group, json);
  json["findings"] = losses_json(group.losses, true);
  json["look_at"] = text_json(group.look_at);
  return json;
}

Json job_json(const FleetJob& job) {
  Json json{{"path", job.path}};
  for (const FleetByInfo& by : kFleetBys)
    if (by.id != FleetBy::kJob) json[std::string(by.name)] = text_json(job.names[static_cast<std::size_t>(by.id)]);
  json["tiers"] = job.tiers;
  json["start_ns"] = job.start == 0 ? Json(nullptr) : Json(job.start);
  json["span_ns"] = job.span;
  json["gpus"] = job.gpus;
  add_sums(job, json);
  json["findings"] = losses_json(job.losses, false);
  json["foreign_gpu_seconds"] = seconds(job.foreign);
  json["elsewhere_gpu_seconds"] = seconds(job.elsewhere);
  json["counted_with"] = text_json(job.counted_with);
  json["overlap_unknown"] = job.overlap_unknown;
  return json;
}

Json files_json(const std::vector<FleetLeftOut>& files) {
  Json list = Json::array();
  for (const FleetLeftOut& file : files) list.push_back({{"path", file.path}, {"why", file.why}});
  return list;
}

Json time_json(const std::optional<Nanos>& at) { return at ? Json(iso_time(*at)) : Json(nullptr); }

}  // namespace

std::string to_json(const Fleet& fleet) {
  Json groups = Json::array(), jobs = Json::array();
  for (const FleetGroup& group : fleet.groups) groups.push_back(group_json(group));
  for (const FleetJob& job : fleet.jobs) jobs.push_back(job_json(job));
  return dump({{"schema", "headroom.fleet/1"},
               {"by", name(fleet.by)},
               {"since", time_json(fleet.since)},
               {"until", time_json(fleet.until)},
               {"files", fleet.files},
               {"groups", groups},
               {"others", fleet.not_listed > 0 ? group_json(fleet.others) : Json(nullptr)},
               {"total", group_json(fleet.total)},
               {"jobs", jobs},
               {"left_out", files_json(fleet.left_out)},
               {"unreadable", files_json(fleet.unreadable)},
               {"averages", fleet.averages ? averages_json(*fleet.averages) : Json(nullptr)}});
}

}  // namespace headroom::report
