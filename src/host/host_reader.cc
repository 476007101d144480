// SPDX-License-Identifier: Apache-2.0
#include "host/host_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "host/proc_parse.h"

namespace headroom::host {

namespace {

constexpr Nanos kPeriod = kSecond, kMemoryPeriod = 5 * kSecond, kSwapPeriod = 10 * kSecond, kFactsPeriod = 30 * kSecond,
                kLongestCpuPeriod = 10 * kSecond;
constexpr Nanos kCostFactor = 10'000;  // a read may cost a ten-thousandth of the time until the next

int count_online(ProcDir& files) {
  if (const auto text = files.read("sys/devices/system/cpu/online"))
    if (const auto count = count_cpus(*text)) return *count;
  const auto text = files.read("proc/stat");
  int cores = 0;
  for (const auto line : split(text ? *text : std::string_view(), '\n'))
    if (line.starts_with("cpu") && line.size() > 3 && line[3] >= '0' && line[3] <= '9') ++cores;
  return cores;
}

}  // namespace

HostReader::HostReader(HostOptions options)
    : root_(std::move(options.root)), job_pid_(options.job_pid.value_or(0)), files_(root_.empty() ? "/" : root_) {
  ProcDir proc(root_ + "/proc");
  kernel_ = read_kernel_facts(proc, root_.empty());
}

std::string HostReader::job_folder() const {
  const std::int64_t pid = job_pid_;
  return pid == 0 ? "proc/self" : fmt::format("proc/{}", pid);
}

Host HostReader::describe() {
  Host host;
  host.cores = count_online(files_);
  if (const auto text = files_.read("proc/meminfo")) host.memory_total_bytes = find_kib(*text, "MemTotal");
  if (const auto text = files_.read("proc/sys/kernel/osrelease")) host.kernel = valid_utf8(trim(*text));
  // The affinity has the cpuset in it; it may name cores that are not online.
  if (const auto text = files_.read((job_folder() + "/status").c_str()))
    if (const auto allowed = count_cpus(parse_pid_status(*text).cpus_allowed_list))
      host.cores_usable = host.cores > 0 ? std::min(*allowed, host.cores) : *allowed;
  if (limits_.quota_cores)
    host.cores_usable = std::min(*limits_.quota_cores, host.cores_usable.value_or(*limits_.quota_cores));
  return host;
}

void HostReader::read(Nanos at, RecordingSink& sink) {
  if (at < next_) return;
  next_ = due_after(at, kPeriod);
  if (at >= next_facts_) {
    next_facts_ = due_after(at, kFactsPeriod);
    announce_cgroup(sink);
    announce(sink);
  }
  cells_.clear();
  read_cpu(at);
  read_load();
  read_memory(at);
  read_swap(at);
  read_pressure();
  if (!cells_.empty()) sink.add_row(host_, at, cells_);
  if (!cgroup_) return;
  cells_.clear();
  cgroup_->sample(files_, cells_);
  if (!cells_.empty()) sink.add_row(cgroup_source_, at, cells_);
}

void HostReader::announce(RecordingSink& sink) {
  Host host = describe();
  if (host_ != kNoSource && !host.cores_usable) host.cores_usable = announced_.cores_usable;  // the job has ended
  if (host_ != kNoSource && host == announced_) return;
  host_ = sink.add_source(Source{SourceKind::kHost, "host", kNoSource, to_attrs(host)});
  announced_ = std::move(host);
}

void HostReader::announce_cgroup(RecordingSink& sink) {
  const auto mountinfo = read_file(root_ + "/proc/self/mountinfo");
  const auto text = files_.read((job_folder() + "/cgroup").c_str());
  if (!mountinfo || !text) return;  // the job has ended: what we know still holds
  CgroupPlace place = place_cgroup(*text, *mountinfo);
  if (place.cpu.empty() && place.memory.empty()) return;
  CgroupLimits limits = read_cgroup_limits(files_, place);
  if (cgroup_ && place == place_ && limits == limits_) return;
  place_ = std::move(place);
  limits_ = std::move(limits);
  Attrs attrs{{"version", place_.cpu_v2 && place_.memory_v2 ? "2" : "1"}};
  if (limits_.quota_cores) attrs["cpu_quota_cores"] = fmt::format("{}", *limits_.quota_cores);
  if (limits_.cpuset_cores) attrs["cpuset_cores"] = fmt::format("{}", *limits_.cpuset_cores);
  if (limits_.memory_max_bytes) attrs["memory_max_bytes"] = fmt::format("{}", *limits_.memory_max_bytes);
  cgroup_source_ = sink.add_source(Source{SourceKind::kCgroup, place_.path, kNoSource, std::move(attrs)});
  cgroup_.emplace(place_, limits_);
}

void HostReader::put_absent(Metric metric, const Reading<std::string_view>& text) {
  const Absent why = text || text.error() == Absent::kGone ? Absent::kNotSupported : text.error();
  cells_.push_back(Cell{metric, 0, why});
}

void HostReader::read_cpu(Nanos at) {
  if (at < next_cpu_) return;
  const Nanos before = thread_cpu_now();
  const auto text = files_.read_kept(stat_fd_, "proc/stat");
  const Nanos cost = root_.empty() ? thread_cpu_now() - before : 0;
  next_cpu_ = due_after(at, std::clamp(cost * kCostFactor, kPeriod, kLongestCpuPeriod));
  const auto ticks = text ? parse_cpu_ticks(*text) : std::nullopt;
  if (ticks)
    put(Metric::kHostCpuBusy, ticks->busy * kernel_.ns_per_tick);
  else
    put_absent(Metric::kHostCpuBusy, text);
  if (ticks && ticks->iowait)
    put(Metric::kHostCpuIoWait, *ticks->iowait * kernel_.ns_per_tick);
  else
    put_absent(Metric::kHostCpuIoWait, text);
}

void HostReader::read_load() {
  const auto text = files_.read_kept(load_fd_, "proc/loadavg");
  const auto load = text ? parse_loadavg(*text) : std::nullopt;
  if (load)
    put(Metric::kHostLoad1, from_unit(Metric::kHostLoad1, load->load1));
  else
    put_absent(Metric::kHostLoad1, text);
}

void HostReader::read_memory(Nanos at) {
  if (at < next_memory_) return;
  next_memory_ = due_after(at, kMemoryPeriod);
  const auto text = files_.read("proc/meminfo");
  const auto available = text ? find_kib(*text, "MemAvailable") : std::nullopt;  // since 3.14
  if (available)
    put(Metric::kHostMemoryAvailable, *available);
  else
    put_absent(Metric::kHostMemoryAvailable, text);
}

void HostReader::read_swap(Nanos at) {
  if (at < next_swap_) return;
  next_swap_ = due_after(at, kSwapPeriod);
  const auto text = files_.read("proc/vmstat");
  constexpr std::array kCounters{std::pair{Metric::kHostSwapIn, "pswpin"}, std::pair{Metric::kHostSwapOut, "pswpout"}};
  for (const auto& [metric, name] : kCounters) {
    const auto pages = text ? find_count(*text, name) : std::nullopt;
    if (pages)
      put(metric, *pages);
    else
      put_absent(metric, text);
  }
}

void HostReader::read_pressure() {
  constexpr std::array kFiles{std::pair{Metric::kPsiCpuSome, "proc/pressure/cpu"},
                              std::pair{Metric::kPsiIoSome, "proc/pressure/io"},
                              std::pair{Metric::kPsiMemorySome, "proc/pressure/memory"}};
  for (std::size_t i = 0; i < kFiles.size(); ++i) {
    const auto text = files_.read_kept(pressure_fds_[i], kFiles[i].second);
    const auto total = text ? parse_pressure_some(*text) : std::nullopt;
    if (total)
      put(kFiles[i].first, *total * kMicrosecond);
    else
      put_absent(kFiles[i].first, text);
  }
}

}  // namespace headroom::host
