// SPDX-License-Identifier: Apache-2.0
#include "cli/environment.h"

#include <cstdlib>

#include "device/nvml_api.h"

namespace headroom::cli {

std::optional<std::string> environment(const char* name) {
  const char* const value = ::secure_getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

std::string nvml_library() {
  const auto named = environment("HEADROOM_NVML");
  return named && !named->empty() ? *named : std::string(kNvmlLibrary);
}

bool on_virtual_gpus() { return environment("HEADROOM_SIM").has_value(); }

Result<Shelf> users_shelf() { return Shelf::of_user(environment("XDG_STATE_HOME"), environment("HOME")); }

}  // namespace headroom::cli
