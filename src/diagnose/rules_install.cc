// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/human.h"
#include "base/strings.h"
#include "diagnose/rules.h"

namespace headroom::diagnose {

namespace {

bool is_pip_module(const Process& process) { return process.cmdline.find(" -m pip ") != std::string::npos; }

bool installs(const Process& process) {
  constexpr std::array<std::string_view, 11> kInstallers{"pip",    "pip3",    "uv",  "conda", "mamba", "micromamba",
                                                         "poetry", "apt-get", "apt", "dpkg",  "pixi"};
  return std::find(kInstallers.begin(), kInstallers.end(), process.comm) != kInstallers.end() || is_pip_module(process);
}

// By whose name people know the cache: pip's may be an interpreter that runs it as a module.
void add_cache_of(const Process& process, std::vector<std::string>& names) {
  constexpr std::array<std::string_view, 3> kWithout{"apt-get", "apt", "dpkg"};
  std::string name = process.comm;
  if (is_pip_module(process) || name == "pip3") name = "pip";
  const bool has = std::find(kWithout.begin(), kWithout.end(), name) == kWithout.end();
  if (has && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
}

// When it may have installed. `uv run`, `conda run` and their like do so first, if at all, and then live as long as
// what they start: until that one of their children began that leads to a GPU, or any, where none does.
Window install_time(const Analysis& a, SourceId source, const Process& process, const std::set<SourceId>& towards) {
  Window time{process.start, process.end.value_or(a.window.end)};
  const bool launches = towards.contains(source);
  if (!launches && process.cmdline.find(" run ") == std::string::npos) return time;
  const auto& children = a.job.children[static_cast<std::size_t>(source)];
  for (const auto& [child, facts] : a.processes)
    if ((!launches || towards.contains(child)) && std::find(children.begin(), children.end(), child) != children.end())
      time.end = std::max(time.begin, std::min(time.end, facts.start));
  return time;
}

bool compiles(const Process& process) {
  constexpr std::array<std::string_view, 13> kCompilers{"nvcc",    "cicc", "ptxas", "fatbinary", "cudafe++",
                                                        "cc1plus", "cc1",  "g++",   "clang",     "clang++",
                                                        "nvlink",  "ld",   "c++"};
  return std::find(kCompilers.begin(), kCompilers.end(), process.comm) != kCompilers.end();
}

// Installers overlap: those that others start.
std::vector<Window> apart(std::vector<Window> times) {
  std::sort(times.begin(), times.end(), [](const Window& x, const Window& y) { return x.begin < y.begin; });
  std::vector<Window> merged;
  for (const Window& time : times)
    if (!merged.empty() && time.begin <= merged.back().end)
      merged.back().end = std::max(merged.back().end, time.end);
    else
      merged.push_back(time);
  return merged;
}

Claims everywhere(const Analysis& a, std::vector<Window> times) {
  const std::vector<Window> merged = apart(std::move(times));
  Claims all;
  for (std::size_t device = 0; device < a.devices.size(); ++device)
    for (const Window& time : merged) all.push_back({device, time.begin, time.end, Account::kNoTask, -1});
  return all;
}

}  // namespace

Claims compiling(const Analysis& a, const Claims& claims) {
  std::vector<Window> times;
  for (const auto& [source, process] : a.processes)
    if (process.in_job && compiles(process)) times.push_back({process.start, process.end.value_or(a.window.end)});
  return common(claims, everywhere(a, std::move(times)));
}

Claims installing(const Analysis& a) {
  if (a.job.batch.present || !a.job.has_job) return {};
  const std::set<SourceId> towards = towards_the_gpus(a);
  std::vector<Window> times;
  for (const auto& [source, process] : a.processes)
    if (process.in_job && installs(process)) times.push_back(install_time(a, source, process, towards));
  return everywhere(a, std::move(times));
}

// Before any process of the job has run a kernel.
std::vector<Finding> installed_first(const Analysis& a) {
  Finding finding;
  finding.claims = common(claim_accounts(a, {Account::kNoTask, Account::kStartup}), installing(a));
  if (!a.material(finding.cost())) return {};
  const std::set<SourceId> towards = towards_the_gpus(a);
  std::vector<std::string> keeps;  // what it has downloaded, of those that were seen
  for (const auto& [source, process] : a.processes) {
    if (!process.in_job || !installs(process)) continue;
    add_cache_of(process, keeps);
    const Window time = install_time(a, source, process, towards);
    const bool launched = time.end < process.end.value_or(a.window.end);
    // The end of a process is known to a sample only.
    finding.evidence.push_back(fmt::format(
        "process {} of the job is {}{}; it {} {}", process.pid, process.comm, is_pip_module(process) ? " -m pip" : "",
        launched ? "started what it was to run after" : "lived for at most", human_duration(time.length())));
  }
  finding.cause = Cause::kEnvironmentInstall;
  finding.title = "The GPU waits while software is installed";
  finding.tiers = "NP";
  finding.confidence = Confidence::kMedium;
  finding.told_apart_from = {"input and host code: no kernel had run yet"};
  finding.advice = "install into the image or environment once, with pinned versions, not at the start of each job";
  if (!keeps.empty()) finding.advice += fmt::format("; keep the cache of {} on a local disk", join(keeps, " and "));
  finding.remedy = Remedy{.fix = "install_before"};
  gains_by_removal(a, finding, "for runs of this length; less for longer ones");
  return only(std::move(finding));
}

}  // namespace headroom::diagnose
