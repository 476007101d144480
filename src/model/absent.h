// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <tl/expected.hpp>

namespace headroom {

// Why a value could not be read. Zero is a measurement; these are not. The numbers are stored in recordings.
enum class Absent : std::uint8_t {
  kNotSampled = 1,    // nobody asked at this instant
  kNotSupported = 2,  // this device or driver does not have it
  kNoPermission = 3,
  kDeviceLost = 4,  // the GPU fell off the bus
  kNoData = 5,      // asked, and nothing new was there (NVML_ERROR_NOT_FOUND)
  kError = 6,       // any other error of the driver or the kernel
  kGarbage = 7,     // a value was returned that cannot be true (e.g. 4294967295 %)
  kGone = 8,        // the process had ended
};

struct AbsentInfo {
  Absent id;
  std::string_view name;  // in JSON and CSV
  std::string_view text;  // for people
};

inline constexpr std::array kAbsents{
    AbsentInfo{Absent::kNotSampled, "not_sampled", "not sampled"},
    AbsentInfo{Absent::kNotSupported, "not_supported", "not supported by this device or driver"},
    AbsentInfo{Absent::kNoPermission, "no_permission", "no permission"},
    AbsentInfo{Absent::kDeviceLost, "device_lost", "the device was lost"},
    AbsentInfo{Absent::kNoData, "no_data", "the driver had no data"},
    AbsentInfo{Absent::kError, "error", "the driver answered with an error"},
    AbsentInfo{Absent::kGarbage, "garbage", "the value cannot be true"},
    AbsentInfo{Absent::kGone, "gone", "the process had ended"},
};

[[nodiscard]] std::string_view absent_name(Absent absent);
[[nodiscard]] std::string_view absent_text(Absent absent);
[[nodiscard]] std::optional<Absent> absent_of(std::string_view name);

template <class T>
using Reading = tl::expected<T, Absent>;

}  // namespace headroom
