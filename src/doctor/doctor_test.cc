// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <set>

#include "base/fd.h"
#include "base/testing.h"
#include "doctor/checks.h"

namespace headroom {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

DeviceStatus gpu(int index, const std::string& name) {
  DeviceStatus status;
  status.device.uuid = fmt::format("GPU-{}0000000", index + 1);
  status.device.index = index;
  status.device.name = name;
  status.device.persistence_mode = "on";
  status.device.mig_mode = "disabled";
  for (const auto metric : {Metric::kGpuUtil, Metric::kMemoryUsed, Metric::kPower, Metric::kEnergy, Metric::kSmClock,
                            Metric::kComputeProcesses}) {
    status.readings.emplace_back(metric, metric == Metric::kGpuUtil ? 0 : 1);
  }
  status.readings.emplace_back(Metric::kSmActive, tl::unexpected(Absent::kNotSupported));
  return status;
}

// A box on which everything is fine.
DoctorFacts healthy() {
  DoctorFacts facts;
  facts.nvml_path = "libnvidia-ml.so.1";
  facts.gpus = DeviceList{"550.54.15", {gpu(0, "A6000"), gpu(1, "A6000")}, {}};
  facts.kernel_module = "550.54.15";
  facts.device_files = {{"/dev/nvidia0", true}, {"/dev/nvidiactl", true}};
  facts.uid = 1000;
  facts.yama_ptrace_scope = 1;
  facts.pressure = facts.schedstat = facts.io_delay = true;
  facts.cores = 16;
  facts.recordings = "/home/ann/.local/state/headroom";
  facts.recordings_free_bytes = std::uint64_t{100} << 30U;
  return facts;
}

DoctorCheck check_of(const DoctorFacts& facts, const std::string& id) {
  for (auto& check : examine(facts)) {
    if (check.id == id) return check;
  }
  ADD_FAILURE() << "no check " << id;
  return {};
}

TEST(Doctor, AHealthyBoxHasNothingToFix) {
  for (const auto& check : examine(healthy())) {
    EXPECT_TRUE(check.status == CheckStatus::kOk || check.status == CheckStatus::kAbsent)
        << check.id << ": " << check.what;
    EXPECT_TRUE(check.fix.empty()) << check.id << ": " << check.fix;
  }
}

TEST(Doctor, IdentifiersAreUniqueAndDocumented) {
  const auto page = read_file(in_checkout("docs/doctor.md"));
  ASSERT_TRUE(page) << page.error().what;
  std::set<std::string_view> seen;
  for (const auto rules : {gpu_rules(), host_rules()}) {
    for (const auto& rule : rules) {
      EXPECT_TRUE(seen.insert(rule.id).second) << rule.id;
      EXPECT_NE(page->find(fmt::format("`{}`", rule.id)), std::string::npos) << rule.id << " is not in docs/doctor.md";
    }
  }
}

TEST(Doctor, WithoutADriverGpusAreAbsentAndNothingFails) {
  DoctorFacts facts = healthy();
  facts.gpus.reset();
  facts.kernel_module.clear();
  facts.device_files.clear();
  facts.nvml_error = Error{Errc::kNotFound, "load libnvidia-ml.so.1: not found", ""};
  EXPECT_EQ(check_of(facts, "driver").status, CheckStatus::kAbsent);
  for (const auto& check : examine(facts)) EXPECT_NE(check.status, CheckStatus::kFail) << check.id;
}

void set(DoctorFacts& facts, std::size_t gpu, Metric metric, Reading<std::int64_t> value) {
  for (auto& [known, reading] : facts.gpus->devices.at(gpu).readings)
    if (known == metric) reading = value;
}

TEST(Doctor, WhoComputesIsToldByTheListAndOthersAreOnlyThoseWhoAreKnown) {
  DoctorFacts facts = healthy();
  EXPECT_THAT(check_of(facts, "process_list").what, HasSubstr("nobody computes"));
  DeviceProcess stranger;
  stranger.pid = 77;
  facts.gpus->devices[0].processes = {stranger};
  EXPECT_EQ(check_of(facts, "other_users").status, CheckStatus::kOk);
  EXPECT_THAT(check_of(facts, "process_list").fix, HasSubstr("--pid=host"));
  facts.hidepid = "invisible";
  EXPECT_THAT(check_of(facts, "process_list").fix, HasSubstr("gid="));
  DeviceProcess mine = stranger;
  mine.uid = facts.uid;
  facts.gpus->devices[0].processes.push_back(mine);
  set(facts, 0, Metric::kGpuUtil, 400);
  EXPECT_EQ(check_of(facts, "process_list").status, CheckStatus::kOk);
  facts.wsl = true;
  set(facts, 0, Metric::kComputeProcesses, tl::unexpected(Absent::kNotSupported));
  EXPECT_THAT(check_of(facts, "process_list").fix, HasSubstr("WSL2 has none"));
}

struct Sick {
  const char* id;
  CheckStatus status;
  const char* says;
  std::function<void(DoctorFacts&)> make;
};

std::function<void(DoctorFacts&)> no_nvml(Errc code, const char* what) {
  return [=](DoctorFacts& facts) {
    facts.gpus.reset();
    facts.nvml_error = Error{code, what, "reboot"};
  };
}

const std::vector<Sick> kCases{
    {"driver", CheckStatus::kFail, "kernel module 550.54.15 is loaded",
     no_nvml(Errc::kNotFound, "load libnvidia-ml.so.1")},
    {"driver", CheckStatus::kFail, "MISMATCH", no_nvml(Errc::kIo, "NVML_ERROR_LIB_RM_VERSION_MISMATCH")},
    {"driver_version", CheckStatus::kWarn, "535.54.03", [](auto& f) { f.gpus->driver_version = "535.54.03"; }},
    {"device_files", CheckStatus::kFail, "/dev/nvidiactl", [](auto& f) { f.device_files[1].usable = false; }},
    {"gpus", CheckStatus::kFail, "GPU 3", [](auto& f) { f.unusable = {"open GPU 3: NVML_ERROR_GPU_IS_LOST"}; }},
    {"gpus", CheckStatus::kWarn, "no GPU", [](auto& f) { f.gpus->devices.clear(); }},
    {"readings", CheckStatus::kWarn, "compute_processes (no permission)",
     [](auto& f) { f.gpus->devices[1].readings[5].second = tl::unexpected(Absent::kNoPermission); }},
    {"process_list", CheckStatus::kWarn, "no process list for GPU 1",
     [](auto& f) { set(f, 1, Metric::kComputeProcesses, tl::unexpected(Absent::kNotSupported)); }},
    {"process_list", CheckStatus::kWarn, "kernels run on GPU 0, and the driver lists no process",
     [](auto& f) { set(f, 0, Metric::kGpuUtil, 400); }},
    {"process_list", CheckStatus::kWarn, "on GPU 0 cannot be seen here",
     [](auto& f) { f.gpus->devices[0].processes.push_back({.pid = 77}); }},
    {"mig", CheckStatus::kWarn, "GPU 1", [](auto& f) { f.gpus->devices[1].device.mig_mode = "enabled"; }},
    {"mps", CheckStatus::kWarn, "/tmp/mps", [](auto& f) { f.mps_pipe_directory = "/tmp/mps"; }},
    {"persistence", CheckStatus::kWarn, "GPU 0", [](auto& f) { f.gpus->devices[0].device.persistence_mode = "off"; }},
    {"compute_mode", CheckStatus::kWarn, "GPU 1",
     [](auto& f) { f.gpus->devices[1].device.compute_mode = "prohibited"; }},
    {"compute_mode", CheckStatus::kWarn, "exclusive",
     [](auto& f) { f.gpus->devices[0].device.compute_mode = "exclusive_process"; }},
    {"visible_devices", CheckStatus::kWarn, "no GPU", [](auto& f) { f.cuda_visible_devices = ""; }},
    {"visible_devices", CheckStatus::kWarn, "'7'", [](auto& f) { f.cuda_visible_devices = "1,7,0"; }},
    {"visible_devices", CheckStatus::kWarn, "no GPU", [](auto& f) { f.cuda_visible_devices = "GPU-9"; }},
    {"index_order", CheckStatus::kWarn, "unlike", [](auto& f) { f.gpus->devices[1].device.name = "T4"; }},
    {"index_order", CheckStatus::kWarn, "its GPU 0 is probably nvidia-smi's GPU 1",
     [](auto& f) {
       f.gpus->devices[0].device.name = "T4";
       f.gpus->devices[0].device.cuda_cores = 2560;
       f.gpus->devices[1].device.cuda_cores = 10752;
       for (auto& status : f.gpus->devices) status.device.sm_clock_max_mhz = 1500;
     }},
    {"other_users", CheckStatus::kWarn, "bob's python (pid 77) on GPU 1",
     [](auto& f) {
       f.gpus->devices[1].processes.push_back({.pid = 77, .name = "python", .user = "bob", .uid = 1001});
     }},
    {"hidepid", CheckStatus::kWarn, "hidepid=2", [](auto& f) { f.hidepid = "2"; }},
    {"yama", CheckStatus::kWarn, "ptrace_scope=3", [](auto& f) { f.yama_ptrace_scope = 3; }},
    {"container", CheckStatus::kWarn, "docker",
     [](auto& f) {
       f.container = "docker";
       f.foreign_pids = true;
     }},
    {"recordings", CheckStatus::kFail, "less than 16.0 MiB are free",
     [](auto& f) { f.recordings_free_bytes = 0, f.recordings_least_bytes = 16U << 20U; }},
    {"pressure", CheckStatus::kWarn, "PSI", [](auto& f) { f.pressure = false; }},
    {"schedstat", CheckStatus::kWarn, "core", [](auto& f) { f.schedstat = false; }},
    {"io_delay", CheckStatus::kAbsent, "block I/O", [](auto& f) { f.io_delay = false; }},
    {"recordings", CheckStatus::kFail, "Permission denied",
     [](auto& f) { f.recordings_problem = "Permission denied"; }},
    {"recordings", CheckStatus::kWarn, "nfs", [](auto& f) { f.recordings_network = "nfs"; }},
    {"recordings", CheckStatus::kWarn, "512 MiB free", [](auto& f) { f.recordings_free_bytes = 512U << 20U; }},
    {"config", CheckStatus::kFail, "unknown key",
     [](auto& f) { f.config_problem = "config.toml:1: unknown key", f.config_fix = "did you mean 'run'?"; }},
};

TEST(Doctor, EachTroubleIsNamedWithItsFix) {
  for (const auto& sick : kCases) {
    DoctorFacts facts = healthy();
    sick.make(facts);
    const auto check = check_of(facts, sick.id);
    EXPECT_EQ(check.status, sick.status) << sick.id << ": " << check.what;
    EXPECT_THAT(check.what, HasSubstr(sick.says));
    EXPECT_FALSE(check.fix.empty()) << sick.id << " says no next step";
  }
}

TEST(Doctor, NothingIsSaidOfADriverThatIsNotThere) {
  DoctorFacts facts = healthy();
  facts.virtual_gpus = true;
  EXPECT_THAT(check_of(facts, "driver_version").what, HasSubstr(facts.gpus->driver_version));
  facts.virtual_gpus = false, facts.container = "docker";
  EXPECT_THAT(check_of(facts, "container").what, HasSubstr("shows the pids the driver uses"));
  facts.gpus.reset(), facts.nvml_error = Error{Errc::kNotFound, "no driver", "install it"};
  const auto check = check_of(facts, "container");
  EXPECT_EQ(check.status, CheckStatus::kAbsent);
  EXPECT_THAT(check.what, HasSubstr("no driver here tells which pids it uses"));
}

TEST(Doctor, WhatIsHarmlessIsOk) {
  const std::vector<Sick> cases{
      {"hidepid", CheckStatus::kOk, "not from root",
       [](auto& f) {
         f.hidepid = "2";
         f.uid = 0;
       }},
      {"visible_devices", CheckStatus::kOk, "GPU 1 of 2", [](auto& f) { f.cuda_visible_devices = "1"; }},
      {"index_order", CheckStatus::kOk, "PCI_BUS_ID",
       [](auto& f) {
         f.gpus->devices[0].device.name = "T4";
         f.cuda_device_order = "PCI_BUS_ID";
       }},
      {"index_order", CheckStatus::kOk, "fastest comes first",
       [](auto& f) {
         f.gpus->devices[1].device.name = "T4";
         f.gpus->devices[0].device.cuda_cores = 10752;
         f.gpus->devices[1].device.cuda_cores = 2560;
         for (auto& status : f.gpus->devices) status.device.sm_clock_max_mhz = 1500;
       }},
      {"other_users", CheckStatus::kOk, "nobody else",
       [](auto& f) {
         f.gpus->devices[0].processes.push_back({.pid = 5, .name = "Xorg", .uid = 0, .kind = ContextKind::kGraphics});
         f.gpus->devices[0].processes.push_back({.pid = 6, .name = "python", .uid = 1000});
       }},
      {"gpm", CheckStatus::kOk, "GPU 1", [](auto& f) { f.gpus->devices[1].readings.back().second = 4; }},
      {"config", CheckStatus::kOk, "c.toml sets run.interval = 5s",
       [](auto& f) {
         f.config_path = "/c.toml", f.config_there = true;
         f.config_lines = {"run.interval = 5s"};
       }},
      {"families", CheckStatus::kOk, "f.toml adds 2 rules",
       [](auto& f) { f.families_path = "/f.toml", f.families_there = true, f.families_rules = 2; }},
      {"mps", CheckStatus::kOk, "pid 99", [](auto& f) { f.mps_daemons = {99}; }},
      {"cgroup_limits", CheckStatus::kOk, "2.5 cores of CPU time, 8 of 16 cores, 4",
       [](auto& f) {
         f.cpu_quota_cores = 2.5;
         f.cpuset_cores = 8;
         f.memory_max_bytes = std::int64_t{4} << 30;
       }},
  };
  for (const auto& harmless : cases) {
    DoctorFacts facts = healthy();
    harmless.make(facts);
    const auto check = check_of(facts, harmless.id);
    EXPECT_EQ(check.status, harmless.status) << harmless.id << ": " << check.what;
    EXPECT_THAT(check.what, HasSubstr(harmless.says));
  }
}

// ---- probing a machine ----

class Machine : public testing::Test {
 protected:
  Machine() {
    std::string name = (fs::temp_directory_path() / "doctor.XXXXXX").string();
    root_ = ::mkdtemp(name.data());
  }
  ~Machine() override { fs::remove_all(root_); }
  void put(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(root_ + path).parent_path());
    ASSERT_TRUE(write_file(root_ + path, text));
  }
  DoctorFacts probe() {
    DoctorFacts facts;
    probe_machine(root_, facts);
    return facts;
  }
  std::string root_;
};

TEST_F(Machine, AnEmptyOneHasNothingAndDoesNotCrash) {
  const auto facts = probe();
  EXPECT_EQ(facts.kernel_module, "");
  EXPECT_TRUE(facts.device_files.empty());
  EXPECT_FALSE(facts.pressure);
  EXPECT_FALSE(facts.schedstat);
  EXPECT_FALSE(facts.yama_ptrace_scope);
}

TEST_F(Machine, FactsAreReadFromItsFiles) {
  put("/proc/driver/nvidia/version",
      "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\nGCC version:  gcc "
      "12.2.0\n");
  put("/proc/self/mounts", "sysfs /sys sysfs rw 0 0\nproc /proc proc rw,nosuid,hidepid=invisible,gid=27 0 0\n");
  put("/proc/sys/kernel/yama/ptrace_scope", "2\n");
  put("/proc/sys/kernel/task_delayacct", "0\n");
  put("/proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n");
  put("/proc/self/schedstat", "3471 12 5\n");
  put("/proc/812/comm", "nvidia-cuda-mps\n");
  put("/proc/813/comm", "python3\n");
  put("/.dockerenv", "");
  for (const char* name : {"nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "nvidia-caps", "null"}) {
    put(std::string("/dev/") + name, "");
  }
  const auto facts = probe();
  EXPECT_EQ(facts.kernel_module, "550.54.15");
  EXPECT_EQ(facts.hidepid, "invisible");
  EXPECT_EQ(facts.yama_ptrace_scope, 2);
  EXPECT_FALSE(facts.io_delay);
  EXPECT_TRUE(facts.pressure);
  EXPECT_TRUE(facts.schedstat);
  EXPECT_THAT(facts.mps_daemons, testing::ElementsAre(812));
  EXPECT_EQ(facts.container, "docker");
  ASSERT_EQ(facts.device_files.size(), 4U);
  EXPECT_TRUE(facts.device_files[0].usable);
}

TEST_F(Machine, SwitchedOffIsOff) {
  put("/proc/self/mounts", "proc /proc proc rw,hidepid=0 0 0\n");
  put("/proc/self/schedstat", "0 0 0\n");
  EXPECT_EQ(probe().hidepid, "");
  EXPECT_FALSE(probe().schedstat);
}

}  // namespace
}  // namespace headroom
