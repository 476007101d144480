// SPDX-License-Identifier: Apache-2.0
#include "device/nvml_api.h"

#include <dlfcn.h>
#include <array>
#include <initializer_list>
#include <utility>

#include "base/strings.h"

namespace headroom {

std::optional<DriverVersion> parse_driver_version(std::string_view text) {
  const auto parts = split(trim(text), '.');
  if (parts.size() < 2) return std::nullopt;
  const auto major = parse_number<int>(parts[0]);
  const auto minor = parse_number<int>(parts[1]);
  if (!major || !minor) return std::nullopt;
  return DriverVersion{*major, *minor};
}

bool scrambles_process_list(std::string_view driver_version) {
  const auto version = parse_driver_version(driver_version);
  return version && *version >= DriverVersion{535, 43} && *version <= DriverVersion{535, 86};
}

namespace {

constexpr const char* kNoDriver = "is the NVIDIA driver installed? headroom doctor says more";

// The address of the first of `names` that the library has.
void* find_symbol(void* library, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (void* symbol = ::dlsym(library, name); symbol != nullptr) return symbol;
  }
  return nullptr;
}

constexpr std::array kErrorNames{
    std::pair{nvml::kUninitialized, "NVML_ERROR_UNINITIALIZED"},
    std::pair{nvml::kInvalidArgument, "NVML_ERROR_INVALID_ARGUMENT"},
    std::pair{nvml::kNotSupported, "NVML_ERROR_NOT_SUPPORTED"},
    std::pair{nvml::kNoPermission, "NVML_ERROR_NO_PERMISSION"},
    std::pair{nvml::kNotFound, "NVML_ERROR_NOT_FOUND"},
    std::pair{nvml::kInsufficientSize, "NVML_ERROR_INSUFFICIENT_SIZE"},
    std::pair{nvml::kDriverNotLoaded, "NVML_ERROR_DRIVER_NOT_LOADED"},
    std::pair{nvml::kTimeout, "NVML_ERROR_TIMEOUT"},
    std::pair{nvml::kLibraryNotFound, "NVML_ERROR_LIBRARY_NOT_FOUND"},
    std::pair{nvml::kFunctionNotFound, "NVML_ERROR_FUNCTION_NOT_FOUND"},
    std::pair{nvml::kGpuIsLost, "NVML_ERROR_GPU_IS_LOST"},
    std::pair{nvml::kResetRequired, "NVML_ERROR_RESET_REQUIRED"},
    std::pair{nvml::kLibRmVersionMismatch, "NVML_ERROR_LIB_RM_VERSION_MISMATCH"},
    std::pair{nvml::kNoData, "NVML_ERROR_NO_DATA"},
    std::pair{nvml::kArgumentVersionMismatch, "NVML_ERROR_ARGUMENT_VERSION_MISMATCH"},
    std::pair{nvml::kDeprecated, "NVML_ERROR_DEPRECATED"},
    std::pair{nvml::kGpuNotFound, "NVML_ERROR_GPU_NOT_FOUND"},
    std::pair{nvml::kUnknown, "NVML_ERROR_UNKNOWN"},
};

Error init_error(const std::string& path, nvml::Return code) {
  Error error{Errc::kIo, fmt::format("initialise {}: {}", path, nvml_error_name(code)), kNoDriver};
  if (code == nvml::kNoPermission) {
    error.code = Errc::kNoPermission;
    error.hint = "may this user open /dev/nvidiactl? headroom doctor says more";
  } else if (code == nvml::kLibRmVersionMismatch) {
    error.hint = "the driver was updated under a running kernel module: reboot, or reload the nvidia modules";
  } else if (code == nvml::kDriverNotLoaded) {
    error.code = Errc::kNotFound;
    error.hint = "the kernel module is not loaded: nvidia-smi says why; headroom doctor says more";
  }
  return error;
}

}  // namespace

Result<NvmlApi> NvmlApi::load(const std::string& path) {
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const message = ::dlerror();
    std::string_view why = message == nullptr ? "not found" : message;
    if (why.starts_with(path + ": ")) why.remove_prefix(path.size() + 2);
    return fail(Errc::kNotFound, fmt::format("load {}: {}", path, why), kNoDriver);
  }
  NvmlApi api;
  api.path = path;
  api.library = std::shared_ptr<void>(library, [](void* handle) { ::dlclose(handle); });
#define HEADROOM_NVML_NAMES(...) __VA_ARGS__
#define HEADROOM_NVML_LOAD(member, arguments, names) \
  api.member = reinterpret_cast<decltype(api.member)>(find_symbol(library, {HEADROOM_NVML_NAMES names}));
  HEADROOM_NVML_FUNCTIONS(HEADROOM_NVML_LOAD)
#undef HEADROOM_NVML_LOAD
#undef HEADROOM_NVML_NAMES
  if (api.init == nullptr || api.device_count == nullptr || api.handle_by_index == nullptr || api.uuid == nullptr) {
    return fail(Errc::kUnsupported, fmt::format("load {}: not an NVML library, or one far too old", path),
                "HEADROOM_NVML=PATH names another; headroom doctor says more");
  }
  return api;
}

std::string nvml_error_name(nvml::Return code) {
  for (const auto& [known, name] : kErrorNames) {
    if (known == code) return name;
  }
  return fmt::format("NVML error {}", code);
}

Absent absent_for(nvml::Return code) {
  switch (code) {
    case nvml::kNotSupported:
    case nvml::kFunctionNotFound:
    case nvml::kArgumentVersionMismatch:
    case nvml::kDeprecated:
      return Absent::kNotSupported;
    case nvml::kNoPermission:
      return Absent::kNoPermission;
    case nvml::kNotFound:
    case nvml::kNoData:
      return Absent::kNoData;
    case nvml::kGpuIsLost:
    case nvml::kResetRequired:
    case nvml::kGpuNotFound:
      return Absent::kDeviceLost;
    default:
      return Absent::kError;
  }
}

Result<std::unique_ptr<NvmlSession>> NvmlSession::open(NvmlApi api) {
  if (const auto code = api.init(); code != nvml::kSuccess) {
    return tl::unexpected<Error>(init_error(api.path, code));
  }
  std::unique_ptr<NvmlSession> session(new NvmlSession(std::move(api)));
  const NvmlApi& loaded = session->api_;
  std::array<char, nvml::kVersionBytes> text{};
  if (loaded.system_driver_version != nullptr &&
      loaded.system_driver_version(text.data(), nvml::kVersionBytes) == nvml::kSuccess) {
    text.back() = '\0';
    session->driver_version_ = text.data();
  }
  unsigned count = 0;
  if (const auto code = loaded.device_count(&count); code != nvml::kSuccess) {
    return fail(Errc::kIo, fmt::format("count the GPUs: {}", nvml_error_name(code)), kNoDriver);
  }
  for (unsigned index = 0; index < count; ++index) {
    nvml::Device handle = nullptr;
    const auto code = loaded.handle_by_index(index, &handle);
    session->handles_.push_back(code == nvml::kSuccess ? handle : nullptr);
    session->handle_errors_.push_back(code);
  }
  return session;
}

NvmlSession::~NvmlSession() {
  if (api_.shutdown != nullptr) api_.shutdown();
}

}  // namespace headroom
