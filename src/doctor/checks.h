// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "doctor/facts.h"
#include "model/doctor.h"

namespace headroom {

// One row per check, in the order in which people should read them.
struct DoctorRule {
  std::string_view id;
  std::string_view about;  // what it is, in the words of docs/doctor.md
  DoctorCheck (*check)(const DoctorFacts& facts);
};

[[nodiscard]] std::span<const DoctorRule> gpu_rules();   // gpu_checks.cc
[[nodiscard]] std::span<const DoctorRule> host_rules();  // host_checks.cc

[[nodiscard]] std::vector<DoctorCheck> examine(const DoctorFacts& facts);

}  // namespace headroom
