// SPDX-License-Identifier: Apache-2.0
#include "record/meta.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/fd.h"
#include "base/ids.h"
#include "base/json.h"
#include "base/strings.h"

namespace headroom {

namespace {

using Json = nlohmann::json;

std::string as_text(const Json& json) { return json.is_string() ? json.get<std::string>() : json_text(json); }

// A list of small numbers takes many times its length in memory.
Json parse(std::string_view text) {
  constexpr std::size_t kLongest = std::size_t{4} << 20;  // the longest command that Linux starts takes half of it
  return text.size() > kLongest ? Json(Json::value_t::discarded) : parse_json<Json>(text);
}

std::string missing_tiers_to_json(const std::vector<MissingTier>& missing) {
  Json list = Json::array();
  for (const auto& tier : missing) list.push_back({{"tier", std::string(1, tier.tier)}, {"why", tier.why}});
  return json_text(list);
}

std::vector<MissingTier> missing_tiers_from_json(std::string_view text) {
  std::vector<MissingTier> missing;
  const Json list = parse(text);
  if (!list.is_array()) return missing;
  for (const auto& entry : list) {
    if (!entry.is_object() || !entry.contains("tier") || !entry.contains("why")) continue;
    const std::string tier = as_text(entry["tier"]);
    if (tier.size() == 1) missing.push_back({tier[0], as_text(entry["why"])});
  }
  return missing;
}

// Field 22 of /proc/<pid>/stat; fields are counted after the last ')', because a process may be called ") x (".
std::string start_ticks(std::string_view pid) {
  const auto stat = read_file(fmt::format("/proc/{}/stat", pid), 4096);
  if (!stat) return "";
  const auto after = stat->rfind(')');
  if (after == std::string::npos) return "";
  const auto fields = split(trim(std::string_view(*stat).substr(after + 1)), ' ');
  constexpr std::size_t kStartTime = 22 - 3;
  const bool gone = fields[0] == "Z" || fields[0] == "X";
  return fields.size() > kStartTime && !gone ? std::string(fields[kStartTime]) : "";
}

// A file may name any process as its recorder. A recorder has the file open; where that cannot be seen, at least it and
// the file have one owner.
bool may_be_writing(std::string_view pid, const std::string& path) {
  const std::string process = fmt::format("/proc/{}", pid);
  struct stat file {
  }, other{};
  if (::stat(path.c_str(), &file) != 0) return false;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir((process + "/fd").c_str()), ::closedir);
  if (!folder) return ::stat(process.c_str(), &other) == 0 && other.st_uid == file.st_uid;
  while (const dirent* entry = ::readdir(folder.get()))
    if (::stat(fmt::format("{}/fd/{}", process, entry->d_name).c_str(), &other) == 0 && other.st_dev == file.st_dev &&
        other.st_ino == file.st_ino)
      return true;
  return false;
}

}  // namespace

std::string places_to_json(const std::vector<LossPlace>& places) {
  Json list = Json::array();
  for (const LossPlace& place : places) {
    Json one = Json::array({place.begin, place.end});
    if (place.source != kNoSource) one.push_back(place.source);
    list.push_back(std::move(one));
  }
  return json_text(list);
}

std::vector<LossPlace> places_from_json(std::string_view text) {
  std::vector<LossPlace> places;
  const Json list = parse(text);
  if (!list.is_array()) return places;
  const auto whole = [](const Json& number) { return number.is_number_integer(); };
  for (const Json& one : list) {
    if (!one.is_array() || one.size() < 2 || one.size() > 3 || !std::all_of(one.begin(), one.end(), whole)) continue;
    places.push_back({one[0].get<Nanos>(), one[1].get<Nanos>(), kNoSource});
    if (one.size() == 3) places.back().source = one[2].get<SourceId>();
  }
  return places;
}

std::string attrs_to_json(const Attrs& attrs) { return json_text(Json(attrs)); }

Attrs attrs_from_json(std::string_view text) {
  Attrs attrs;
  const Json json = parse(text);
  if (!json.is_object()) return attrs;
  for (const auto& [name, value] : json.items()) attrs[name] = as_text(value);
  return attrs;
}

std::map<std::string, std::string> meta_to_rows(const RecordingMeta& meta) {
  std::map<std::string, std::string> rows{
      {"id", meta.id},           {"origin", meta.origin},           {"writer", meta.writer}, {"host", meta.host},
      {"boot_id", meta.boot_id}, {"stop_reason", meta.stop_reason}, {"cwd", meta.cwd},       {"tiers", meta.tiers},
  };
  rows["command"] = json_text(Json(meta.command));
  rows["missing_tiers"] = missing_tiers_to_json(meta.missing_tiers);
  rows["start_ns"] = fmt::format("{}", meta.start);
  rows["end_ns"] = fmt::format("{}", meta.end);
  rows["start_realtime_ns"] = fmt::format("{}", meta.start_realtime);
  rows["interval_ns"] = fmt::format("{}", meta.interval);
  rows["job_pid"] = meta.job_pid ? fmt::format("{}", *meta.job_pid) : "";
  rows["exit_code"] = meta.exit_code ? fmt::format("{}", *meta.exit_code) : "";
  rows["extra"] = attrs_to_json(meta.extra);
  return rows;
}

RecordingMeta meta_from_rows(const std::map<std::string, std::string>& rows) {
  const auto text = [&](const char* key) {
    const auto found = rows.find(key);
    return found == rows.end() ? std::string() : found->second;
  };
  RecordingMeta meta;
  meta.id = text("id");
  meta.origin = text("origin");
  meta.writer = text("writer");
  meta.host = text("host");
  meta.boot_id = text("boot_id");
  meta.stop_reason = text("stop_reason");
  meta.cwd = text("cwd");
  meta.tiers = text("tiers");
  const Json command = parse(text("command"));
  if (command.is_array())
    for (const auto& argument : command) meta.command.push_back(as_text(argument));
  meta.missing_tiers = missing_tiers_from_json(text("missing_tiers"));
  meta.start = parse_number<Nanos>(text("start_ns")).value_or(0);
  meta.end = parse_number<Nanos>(text("end_ns")).value_or(0);
  meta.start_realtime = parse_number<Nanos>(text("start_realtime_ns")).value_or(0);
  meta.interval = parse_number<Nanos>(text("interval_ns")).value_or(0);
  meta.job_pid = parse_number<std::int64_t>(text("job_pid"));
  meta.exit_code = parse_number<int>(text("exit_code"));
  meta.extra = attrs_from_json(text("extra"));
  return meta;
}

std::string owner_of_this_process() {
  const std::string ticks = start_ticks("self");
  const std::string boot = boot_id();
  return ticks.empty() || boot.empty() ? "" : fmt::format("{}/{}/{}", boot, ::getpid(), ticks);
}

bool owner_is_alive(std::string_view owner, const std::string& path) {
  const auto parts = split(owner, '/');
  if (parts.size() != 3 || parts[0].empty() || parts[2].empty() || !parse_number<int>(parts[1])) return false;
  if (parts[0] != boot_id() || start_ticks(parts[1]) != parts[2]) return false;
  return may_be_writing(parts[1], path);
}

}  // namespace headroom
