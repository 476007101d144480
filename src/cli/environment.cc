// SPDX-License-Identifier: Apache-2.0
#include "cli/environment.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/answers.h"
#include "base/secrets.h"
#include "base/visible.h"
#include "cli/config.h"
#include "device/nvml_api.h"
#include "host/processes.h"
#include "host/tree_reader.h"
#include "model/slurm.h"

namespace headroom::cli {

std::optional<std::string> environment(const char* name) {
  const char* const value = ::secure_getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

JobVariables variables_of_job() {
  constexpr std::size_t kLongest = 1'000;
  JobVariables variables;
  for (char** one = environ; one != nullptr && *one != nullptr; ++one) {
    const std::string_view text = *one;
    const auto equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = text.substr(0, equals), value = text.substr(equals + 1);
    if (is_job_variable(name) && !is_secret(name, value) && value.size() <= kLongest)
      variables.emplace_back(name, visible(std::string(value)));
  }
  std::sort(variables.begin(), variables.end());
  if (slurm_job(variables)) leave_out_other_steps(host::slurmstepd_above(::getpid()), variables);
  return variables;
}

JobVariables variables_of_batch() {
  JobVariables variables = variables_of_job();
  std::erase_if(variables, [](const auto& variable) { return !is_slurm_variable(variable.first); });
  return variables;
}

std::string nvml_library() {
  const auto named = environment("HEADROOM_NVML");
  return named && !named->empty() ? *named : std::string(kNvmlLibrary);
}

bool on_virtual_gpus() { return environment("HEADROOM_SIM").has_value(); }

std::string file_of_virtual_gpus() {
  const auto box = environment("HEADROOM_SIM");
  std::error_code failed;
  return box ? std::filesystem::weakly_canonical(*box + "/alive", failed).string() : "";
}

bool foreign_pids() {
  if (!on_virtual_gpus()) return host::in_nested_pid_namespace();
  const auto theirs = environment("HEADROOM_SIM_PIDS");  // virtual GPUs name processes as their box sees them
  struct stat ours {};
  return theirs && ::stat("/proc/self/ns/pid", &ours) == 0 && *theirs != fmt::format("{}", ours.st_ino);
}

Result<Shelf> users_shelf() {
  HR_TRY(Shelf shelf, config() && config()->recordings
                          ? Result<Shelf>(Shelf(*config()->recordings))
                          : Shelf::of_user(environment("XDG_STATE_HOME"), environment("HOME")));
  HR_TRYV(answers(shelf.directory()));
  return shelf;
}

Result<std::string> users_state_folder() {
  HR_TRY(const Shelf shelf, Shelf::of_user(environment("XDG_STATE_HOME"), environment("HOME")));
  HR_TRYV(answers(shelf.directory()));
  return shelf.directory();
}

std::string host_name() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace headroom::cli
