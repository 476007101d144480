// SPDX-License-Identifier: Apache-2.0
#include "doctor/facts.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/fd.h"
#include "base/strings.h"

namespace headroom {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLimit = std::size_t{1} << 20U;

std::string text_of(const std::string& path) {
  auto text = read_file(path, kLimit);
  return text ? std::move(*text) : std::string();
}

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue …": the first word that looks like a version.
std::string module_version(const std::string& text) {
  const std::string first_line(text.substr(0, text.find('\n')));
  for (const auto word : split(first_line, ' ')) {
    const auto parts = split(word, '.');
    if (parts.size() >= 2 && parse_number<int>(parts[0]) && parse_number<int>(parts[1])) return std::string(word);
  }
  return trim(first_line).empty() ? "" : "unknown";
}

std::vector<DeviceFile> device_files(const std::string& folder) {
  std::vector<DeviceFile> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with("nvidia")) continue;
    const auto rest = std::string_view(name).substr(6);
    const bool gpu = !rest.empty() && parse_number<unsigned>(rest).has_value();
    if (!gpu && rest != "ctl" && rest != "-uvm") continue;
    found.push_back({entry.path().string(), ::access(entry.path().c_str(), R_OK | W_OK) == 0});
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
  return found;
}

// The hidepid option of the mount at /proc: "", or as the kernel writes it ("invisible", "2").
std::string hidepid_of(const std::string& mounts) {
  std::string found;
  for (const auto line : split(mounts, '\n')) {
    const auto words = split(line, ' ');
    if (words.size() < 4 || words[1] != "/proc") continue;
    found.clear();
    for (const auto option : split(words[3], ',')) {
      if (!option.starts_with("hidepid=")) continue;
      const auto value = option.substr(8);
      found = value == "0" || value == "off" ? "" : std::string(value);
    }
  }
  return found;
}

std::vector<std::int64_t> mps_daemons(const std::string& proc) {
  std::vector<std::int64_t> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(proc, error)) {
    const auto pid = parse_number<std::int64_t>(entry.path().filename().string());
    // The kernel cuts names at 15 characters: nvidia-cuda-mps-control and -server look alike.
    if (pid && text_of(entry.path().string() + "/comm").starts_with("nvidia-cuda-mps")) found.push_back(*pid);
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string container_of(const std::string& root) {
  std::error_code error;
  if (fs::exists(root + "/.dockerenv", error)) return "docker";
  if (fs::exists(root + "/run/.containerenv", error)) return "podman";
  const std::string groups = text_of(root + "/proc/1/cgroup");
  for (const char* name : {"docker", "kubepods", "containerd", "libpod", "lxc"}) {
    if (groups.find(name) != std::string::npos) return name;
  }
  return "";
}

}  // namespace

void probe_machine(const std::string& root, DoctorFacts& facts) {
  const std::string proc = root + "/proc";
  facts.kernel_module = module_version(text_of(proc + "/driver/nvidia/version"));
  facts.device_files = device_files(root + "/dev");
  facts.mps_daemons = mps_daemons(proc);
  std::string mounts = text_of(proc + "/self/mounts");
  if (mounts.empty()) mounts = text_of(proc + "/mounts");
  facts.hidepid = hidepid_of(mounts);
  facts.yama_ptrace_scope = parse_number<int>(trim(text_of(proc + "/sys/kernel/yama/ptrace_scope")));
  facts.container = container_of(root);
  const std::string release = text_of(proc + "/sys/kernel/osrelease");
  facts.wsl = release.find("microsoft") != std::string::npos || release.find("Microsoft") != std::string::npos;
  facts.pressure = !text_of(proc + "/pressure/cpu").empty();
  const std::string schedstat = text_of(proc + "/self/schedstat");
  facts.schedstat = !schedstat.empty() && trim(schedstat) != "0 0 0";
  // Before 5.14 there was no switch, and it was on.
  const std::string delays = text_of(proc + "/sys/kernel/task_delayacct");
  facts.io_delay = delays.empty() || trim(delays) == "1";
}

}  // namespace headroom
