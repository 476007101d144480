// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "storage/storage.h"
#include "storage/study_assembler.h"

// What Optuna's tables are like in every database, by the version in `alembic_version`.
namespace headroom {

inline constexpr std::array<std::string_view, 10> kOptunaTables{
    "version_info", "studies",      "study_directions",          "study_system_attributes", "trials",
    "trial_params", "trial_values", "trial_intermediate_values", "trial_system_attributes", "alembic_version",
};
inline constexpr std::string_view kHeartbeatTable = "trial_heartbeats";  // once Optuna 2.5 has opened the storage

// kUnsupported, with what to do, unless it is one of v2.6.0.a to v3.2.0.a; "" is a storage before versions were kept.
[[nodiscard]] Result<void> check_schema(std::string_view version);

// The value of a row whose type is in a column of its own, as it is from v3.0.0.c and v3.0.0.d; "": no such column.
// Nothing where the two make no sense together.
[[nodiscard]] std::optional<double> stored_value(std::optional<double> value, std::string_view type);

[[nodiscard]] std::optional<Nanos> stored_time(std::string_view text);  // "2026-11-20 10:40:34.726566"

// Part of a query: true for the keys that StudyAssembler::is_read().
inline constexpr std::string_view kReadKeys =
    "(key = 'fixed_params' OR key = 'failed_trial' OR key LIKE 'completed_rung%' OR key LIKE 'constraints%' OR "
    "key = 'study:metric_names')";

// What all engines answer in the end: the studies, or that the wanted one is not among them.
[[nodiscard]] Result<StorageContent> finished_content(const StorageRequest& request, StudyAssembler& assembler,
                                                      std::string engine);

}  // namespace headroom
