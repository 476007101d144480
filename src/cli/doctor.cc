// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <thread>

#include "base/filesystem.h"
#include "cli/config.h"
#include "cli/environment.h"
#include "cli/terminal.h"
#include "cli/verbs.h"
#include "device/nvml_reader.h"
#include "doctor/checks.h"
#include "host/cgroup.h"
#include "host/proc_dir.h"
#include "host/tree_reader.h"
#include "model/device_list.h"
#include "record/shelf.h"
#include "record/writer.h"
#include "report/doctor.h"

namespace headroom::cli {

namespace {

struct DoctorOptions {
  bool json = false;
  std::string root;
};

void probe_gpus(DoctorFacts& facts) {
  facts.nvml_path = nvml_library();
  host::TreeOptions tree_options;
  tree_options.driver_names_host_pids = facts.foreign_pids;
  host::TreeReader tree(std::move(tree_options));
  NvmlReaderOptions options;
  options.path = facts.nvml_path;
  options.describe = [&tree](std::int64_t pid) { return tree.describe(pid); };
  auto reader = NvmlReader::open(std::move(options));
  if (!reader) {
    facts.nvml_error = reader.error();
    return;
  }
  MemorySink sink;
  (*reader)->read(boottime_now(), sink);
  facts.gpus = device_list_of(sink.take());
  facts.gpus->driver_version = (*reader)->driver_version();
  facts.unusable = (*reader)->unusable();
}

void probe_limits(DoctorFacts& facts, const std::string& root) {
  host::ProcDir files(root.empty() ? "/" : root);
  const auto text = [&](const char* path) {
    const auto read = files.read(path);
    return read ? std::string(*read) : std::string();
  };
  const std::string groups = text("proc/self/cgroup"), mounts = text("proc/self/mountinfo");
  const auto limits = host::read_cgroup_limits(files, host::place_cgroup(groups, mounts));
  facts.cpu_quota_cores = limits.quota_cores;
  facts.cpuset_cores = limits.cpuset_cores;
  facts.memory_max_bytes = limits.memory_max_bytes;
  facts.cores = static_cast<int>(std::thread::hardware_concurrency());
}

// Looks only: the folder is made when the first recording is.
void probe_recordings(DoctorFacts& facts) {
  const auto shelf = users_shelf();
  if (!shelf) {
    facts.recordings_problem = shelf.error().what;
    return;
  }
  facts.recordings = shelf->directory();
  std::filesystem::path there = facts.recordings;
  std::error_code error;
  while (!std::filesystem::exists(there, error) && there.has_relative_path()) there = there.parent_path();
  if (!std::filesystem::is_directory(there, error)) {
    facts.recordings_problem = fmt::format("{} is not a folder", there.string());
  } else if (::access(there.c_str(), W_OK | X_OK) != 0) {
    facts.recordings_problem = fmt::format("{}: {}", there.string(), std::generic_category().message(errno));
  }
  facts.recordings_network = network_filesystem(there.string());
  facts.recordings_free_bytes = free_bytes(there.string());
  facts.recordings_least_bytes = WriterOptions().min_free_bytes;
}

void probe_config(DoctorFacts& facts) {
  facts.config_path = config_path();
  if (!config()) {
    facts.config_problem = config().error().what;
    facts.config_fix = config().error().hint;
    return;
  }
  facts.config_there = config()->there;
  facts.config_lines = config()->lines;
}

void probe_families(DoctorFacts& facts) {
  facts.families_path = families_path();
  std::error_code error;
  facts.families_there = !facts.families_path.empty() && std::filesystem::exists(facts.families_path, error);
  if (const auto rules = users_families()) {
    facts.families_rules = rules->size();
  } else {
    facts.families_problem = rules.error().what;
    facts.families_fix = rules.error().hint;
  }
}

int doctor(const DoctorOptions& options) {
  DoctorFacts facts;
  facts.virtual_gpus = on_virtual_gpus();
  facts.cuda_visible_devices = environment("CUDA_VISIBLE_DEVICES");
  facts.cuda_device_order = environment("CUDA_DEVICE_ORDER");
  facts.mps_pipe_directory = environment("CUDA_MPS_PIPE_DIRECTORY");
  facts.uid = ::geteuid();
  probe_machine(options.root, facts);
  facts.foreign_pids = foreign_pids();
  probe_gpus(facts);
  probe_limits(facts, options.root);
  probe_recordings(facts);
  probe_config(facts);
  probe_families(facts);
  const auto checks = examine(facts);
  const std::string text =
      options.json ? report::to_json(checks) : report::to_text(checks, text_options(STDOUT_FILENO));
  put(text);
  const bool failed = std::any_of(checks.begin(), checks.end(),
                                  [](const DoctorCheck& check) { return check.status == CheckStatus::kFail; });
  return failed ? kExitFailed : kExitOk;
}

}  // namespace

Action declare_doctor(VerbInput input) {
  auto options = std::make_shared<DoctorOptions>();
  input.app.add_flag("--json", options->json, "print headroom.doctor/1");
  input.app.add_option("--root", options->root, "look at the machine under this folder (a copy of /proc, /dev, /sys)")
      ->type_name("FOLDER");
  return [options] { return doctor(*options); };
}

}  // namespace headroom::cli
