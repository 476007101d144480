// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "model/doctor.h"
#include "report/layout.h"

namespace headroom::report {

// What needs attention first, with the fix for each; then what is fine; then what is not here.
[[nodiscard]] std::string to_text(const std::vector<DoctorCheck>& checks, const TextOptions& options);
// "headroom.doctor/1"
[[nodiscard]] std::string to_json(const std::vector<DoctorCheck>& checks);

}  // namespace headroom::report
