// SPDX-License-Identifier: Apache-2.0
#include "host/cgroup.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "base/time.h"
#include "host/proc_parse.h"

namespace headroom::host {

namespace {

bool has_controller(std::string_view list, std::string_view controller) {
  const auto parts = split(list, ',');
  return std::find(parts.begin(), parts.end(), controller) != parts.end();
}

// From the group up to the mount point. A mount may show only a part of the hierarchy (containers): the group's path is
// then below the mount's root, or, seen through another namespace, cannot be found; the mounted top is our best then.
std::vector<std::string> folders(const CgroupMount& mount, std::string_view path) {
  const std::string_view top = mount.root == "/" ? std::string_view() : std::string_view(mount.root);
  std::string_view below;
  if (path.starts_with(top) && (path.size() == top.size() || path[top.size()] == '/' || top.empty()))
    below = path.substr(top.size());
  if (below.find("/..") != std::string_view::npos) return {};  // outside of our cgroup namespace
  if (!below.empty() && below.front() != '/') return {};
  while (below.ends_with('/')) below.remove_suffix(1);
  std::string_view point = mount.point;
  while (point.starts_with('/')) point.remove_prefix(1);
  std::vector<std::string> list;
  for (;;) {
    list.push_back(fmt::format("{}{}", point, below));
    if (below.empty()) return list;
    below = below.substr(0, below.rfind('/'));
  }
}

const CgroupMount* mount_of(const std::vector<CgroupMount>& mounts, std::string_view controller) {
  for (const CgroupMount& mount : mounts)
    if (controller.empty() ? mount.v2 : !mount.v2 && has_controller(mount.options, controller)) return &mount;
  return nullptr;
}

// The folders of one controller: a v1 hierarchy if the process is in one, else v2.
std::vector<std::string> controller_folders(const std::vector<CgroupLine>& lines,
                                            const std::vector<CgroupMount>& mounts, std::string_view controller,
                                            std::string* path) {
  for (const CgroupLine& line : lines) {
    const bool matches = controller.empty() ? line.controllers.empty() : has_controller(line.controllers, controller);
    const CgroupMount* mount = matches ? mount_of(mounts, controller) : nullptr;
    if (!mount) continue;
    if (path) *path = valid_utf8(line.path);
    return folders(*mount, line.path);
  }
  return {};
}

Reading<std::string_view> read_in(ProcDir& root, const std::string& folder, std::string_view file) {
  return root.read(fmt::format("{}/{}", folder, file).c_str());
}

std::optional<double> quota_at(ProcDir& root, const std::string& folder, bool v2) {
  if (v2) {
    const auto text = read_in(root, folder, "cpu.max");
    return text ? parse_cpu_max(*text) : std::nullopt;
  }
  const auto quota_text = read_in(root, folder, "cpu.cfs_quota_us");
  const std::string quota(quota_text.value_or(""));  // the next read overwrites it
  const auto period = read_in(root, folder, "cpu.cfs_period_us");
  return period ? quota_cores(quota, *period) : std::nullopt;
}

std::optional<std::int64_t> memory_limit_at(ProcDir& root, const std::string& folder, bool v2) {
  const auto text = read_in(root, folder, v2 ? "memory.max" : "memory.limit_in_bytes");
  return text ? parse_memory_limit(*text) : std::nullopt;
}

std::optional<int> cpuset_at(ProcDir& root, const std::string& folder) {
  for (const auto* file : {"cpuset.cpus.effective", "cpuset.effective_cpus", "cpuset.cpus"})
    if (const auto text = read_in(root, folder, file))
      if (const auto count = count_cpus(*text)) return count;
  return std::nullopt;
}

std::string file_in(const std::vector<std::string>& folders, std::string_view file) {
  return folders.empty() ? std::string() : fmt::format("{}/{}", folders.front(), file);
}

}  // namespace

CgroupPlace place_cgroup(std::string_view cgroup_text, std::string_view mountinfo_text) {
  const auto lines = parse_cgroups(cgroup_text);
  const auto mounts = parse_cgroup_mounts(mountinfo_text);
  CgroupPlace place;
  std::string unified_path, cpuacct_path, memory_path;
  place.unified = controller_folders(lines, mounts, "", &unified_path);
  place.cpu = controller_folders(lines, mounts, "cpu", &place.path);
  place.cpuacct = controller_folders(lines, mounts, "cpuacct", &cpuacct_path);
  place.memory = controller_folders(lines, mounts, "memory", &memory_path);
  place.cpuset = controller_folders(lines, mounts, "cpuset", nullptr);
  place.cpu_v2 = place.cpu.empty();
  place.memory_v2 = place.memory.empty();
  if (place.path.empty() || place.path == "/") place.path = memory_path.empty() ? place.path : memory_path;
  // A group of its own in one hierarchy, the top of another: the top's counters are the machine's, not the group's.
  if (place.path.size() > 1 && cpuacct_path == "/") place.cpuacct.clear();
  if (place.path.size() > 1 && unified_path == "/") place.unified.clear();
  if (place.cpu.empty()) place.cpu = place.cpuacct = place.unified;
  if (place.memory.empty()) place.memory = place.unified;
  if (place.cpuset.empty()) place.cpuset = place.unified;
  if (place.path.empty()) place.path = unified_path;
  return place;
}

CgroupLimits read_cgroup_limits(ProcDir& root, const CgroupPlace& place) {
  CgroupLimits limits;
  if (!place.cpu.empty()) limits.quota_folder = place.cpu.front();
  for (const std::string& folder : place.cpu) {
    const auto quota = quota_at(root, folder, place.cpu_v2);
    if (!quota || (limits.quota_cores && *limits.quota_cores <= *quota)) continue;
    limits.quota_cores = quota;
    limits.quota_folder = folder;
  }
  for (const std::string& folder : place.memory) {
    const auto limit = memory_limit_at(root, folder, place.memory_v2);
    if (limit) limits.memory_max_bytes = std::min(*limit, limits.memory_max_bytes.value_or(*limit));
  }
  for (const std::string& folder : place.cpuset) {  // an empty set inherits that of the level above
    limits.cpuset_cores = cpuset_at(root, folder);
    if (limits.cpuset_cores) break;
  }
  return limits;
}

OwnCgroup::OwnCgroup(const std::string& root) : root_(root.empty() ? "/" : root) {
  const auto mountinfo = read_file(root + "/proc/self/mountinfo");
  const auto text = root_.read("proc/self/cgroup");
  if (mountinfo && text) place_ = place_cgroup(*text, *mountinfo);
}

std::optional<OomKills> OwnCgroup::oom_kills() {
  constexpr std::string_view kCount = "oom_kill ";
  const auto counted = [&](const Reading<std::string_view>& text) -> std::optional<std::int64_t> {
    if (text)
      for (const auto line : split(*text, '\n'))
        if (line.starts_with(kCount)) return parse_number<std::int64_t>(line.substr(kCount.size()));
    return std::nullopt;
  };
  if (!place_.memory.empty())
    if (const auto count =
            counted(read_in(root_, place_.memory.front(), place_.memory_v2 ? "memory.events" : "memory.oom_control")))
      return OomKills{.count = *count};
  const auto count = counted(root_.read("proc/vmstat"));
  return count ? std::optional(OomKills{.count = *count, .of_machine = true}) : std::nullopt;
}

CgroupProbe::CgroupProbe(const CgroupPlace& place, const CgroupLimits& limits)
    : cpu_usage_{file_in(place.cpuacct, place.cpu_v2 ? "cpu.stat" : "cpuacct.usage"), {}},
      cpu_throttled_{limits.quota_folder.empty() ? "" : limits.quota_folder + "/cpu.stat", {}},
      memory_usage_{file_in(place.memory, place.memory_v2 ? "memory.current" : "memory.usage_in_bytes"), {}},
      pressure_cpu_{file_in(place.unified, "cpu.pressure"), {}},
      pressure_io_{file_in(place.unified, "io.pressure"), {}},
      pressure_memory_{file_in(place.unified, "memory.pressure"), {}},
      cpu_v2_(place.cpu_v2) {}

void CgroupProbe::sample(ProcDir& root, std::vector<Cell>& cells) {
  // `parse` takes the text to a number in `unit` nanoseconds or bytes.
  const auto put = [&](Metric metric, File& file, std::int64_t unit, auto parse) {
    if (file.path.empty()) return;
    const auto text = root.read_kept(file.fd, file.path.c_str());
    const std::optional<std::int64_t> value = text ? parse(*text) : std::nullopt;
    if (value) return cells.push_back(Cell{metric, *value * unit, std::nullopt});
    const Absent why = text || text.error() == Absent::kGone ? Absent::kNotSupported : text.error();
    cells.push_back(Cell{metric, 0, why});
  };
  const auto count = [](std::string_view name) {
    return [name](std::string_view text) { return find_count(text, name); };
  };
  if (cpu_v2_)
    put(Metric::kCgroupCpu, cpu_usage_, kMicrosecond, count("usage_usec"));
  else
    put(Metric::kCgroupCpu, cpu_usage_, 1, parse_single);
  if (cpu_v2_)
    put(Metric::kCgroupThrottled, cpu_throttled_, kMicrosecond, count("throttled_usec"));
  else
    put(Metric::kCgroupThrottled, cpu_throttled_, 1, count("throttled_time"));
  put(Metric::kCgroupMemory, memory_usage_, 1, parse_single);
  put(Metric::kPsiCpuSome, pressure_cpu_, kMicrosecond, parse_pressure_some);
  put(Metric::kPsiIoSome, pressure_io_, kMicrosecond, parse_pressure_some);
  put(Metric::kPsiMemorySome, pressure_memory_, kMicrosecond, parse_pressure_some);
}

}  // namespace headroom::host
